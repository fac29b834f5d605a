//! What a display tells its user of the session that it leaves behind, and of one that was there before it came.
//!
//! A session outlives its display, which a user who pressed Ctrl-C may not expect. Invariant: a line that is told is a
//! whole command that does what is said of it.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};

use crate::error::SessionError;
use crate::flags::Which;
use crate::ssh::quote;
use crate::tell::{OwnEvent, tell};
use wayferry_host::display_side::Outcome;

/// Where the session is, once its name is known.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// ssh's options, each as a word of a command line; and the machine as the user calls it, none for this one.
    options: Vec<String>,
    host: Option<String>,
    session: RefCell<Option<String>>,
}

impl Leaving {
    /// Of a session of the machine to which ssh goes with these options.
    pub(crate) fn new(options: &[OsString], host: &OsStr) -> Self {
        let options = options.iter().map(|word| word_of(&word.to_string_lossy()));
        let host = Some(host.to_string_lossy().into_owned());
        Self { options: options.collect(), host, session: RefCell::new(None) }
    }

    /// Of a session of this machine.
    pub(crate) fn here() -> Self {
        Self { options: Vec::new(), host: None, session: RefCell::new(None) }
    }

    /// The session is called so; gives what `attach` and `stop` take. `wanted` is what it would be called if that name
    /// had been free.
    pub(crate) fn met(&self, name: &str, wanted: Option<&str>) -> String {
        self.session.replace(Some(name.to_owned()));
        if let Some(wanted) = wanted.filter(|wanted| is_next_of(name, wanted)) {
            tell(&OwnEvent::NameTaken { wanted, name, place: &self.place(wanted) });
        }
        self.place(name)
    }

    /// Whether the session was reached at all.
    pub(crate) fn has_met(&self) -> bool {
        self.session.borrow().is_some()
    }

    /// What `attach` and `stop` take.
    fn place(&self, session: &str) -> String {
        let session = Some(session.to_owned());
        let which = match &self.host {
            Some(host) => Which::There { host: host.trim_end_matches('/').to_owned(), session },
            None => Which::Here(session),
        };
        let words = self.options.iter().cloned().chain([which.to_string()]);
        words.collect::<Vec<_>>().join(" ")
    }

    /// Tells what goes on without this display, if anything does.
    pub(crate) fn tell(&self, outcome: &Result<Outcome, SessionError>) {
        let goes_on = match outcome {
            Ok(Outcome::Exit(_) | Outcome::HostLeft) => false,
            Ok(Outcome::Stopped | Outcome::ConnectionEnded(_)) => true,
            Err(error) => error.leaves_the_session(),
        };
        if let Some(session) = self.session.borrow().as_ref().filter(|_| goes_on) {
            let place = self.place(session);
            tell(&OwnEvent::SessionGoesOn { place: &place });
        }
    }
}

/// A word for a shell, quoted only where it has to be.
fn word_of(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+./:@%,".contains(letter);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quote(text) }
}

/// Whether a session was called `name` because another has the name `wanted`.
fn is_next_of(name: &str, wanted: &str) -> bool {
    let number = name.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('-'));
    number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number >= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_attach_takes() {
        let leaving = |options: &[&str], host: &str| {
            let options: Vec<OsString> = options.iter().map(OsString::from).collect();
            Leaving::new(&options, OsStr::new(host)).place("foot")
        };
        assert_eq!(leaving(&[], "user@host"), "user@host:foot");
        assert_eq!(leaving(&[], "2001:db8::1"), "[2001:db8::1]:foot");
        assert_eq!(
            leaving(&["-p", "2222", "-oProxyCommand=nc %h 1"], "host"),
            "-p 2222 '-oProxyCommand=nc %h 1' host:foot"
        );
        assert_eq!(leaving(&[], "ssh://u@h:2222"), "ssh://u@h:2222/foot");
        assert_eq!(Leaving::here().place("foot"), ":foot");
    }

    #[test]
    fn a_name_with_a_number_tells_of_another_session() {
        assert!(is_next_of("foot-2", "foot") && is_next_of("foot-17", "foot"));
        for (name, wanted) in [("foot", "foot"), ("foot-1", "foot"), ("foot-x", "foot"), ("work", "foot")] {
            assert!(!is_next_of(name, wanted), "{name}");
        }
    }
}
