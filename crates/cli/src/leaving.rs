//! What a display tells its user of the session that it leaves behind, and of one that was there before it came.
//!
//! A session outlives its display, which a user who pressed Ctrl-C may not expect. Invariant: a line that is told is a
//! whole command that does what is said of it.

use std::cell::RefCell;

use crate::error::SessionError;
use crate::tell::{OwnEvent, tell};
use wayferry_host::display_side::Outcome;

/// Where the session is, once its name is known.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// The machine as the user calls it; empty for this one.
    host: String,
    session: RefCell<Option<String>>,
}

impl Leaving {
    /// A session on this machine, as the user calls it; empty for this one.
    pub(crate) fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), session: RefCell::new(None) }
    }

    /// The session is called so. `wanted` is what it would be called if that name had been free.
    pub(crate) fn met(&self, name: &str, wanted: Option<&str>) {
        self.session.replace(Some(name.to_owned()));
        let host = &self.host;
        if let Some(wanted) = wanted.filter(|wanted| is_next_of(name, wanted)) {
            tell(&OwnEvent::NameTaken { wanted, name, host });
        }
    }

    /// Whether the session was reached at all.
    pub(crate) fn has_met(&self) -> bool {
        self.session.borrow().is_some()
    }

    /// Tells what goes on without this display, if anything does.
    pub(crate) fn tell(&self, outcome: &Result<Outcome, SessionError>) {
        let goes_on = match outcome {
            Ok(Outcome::Exit(_) | Outcome::HostLeft) => false,
            Ok(Outcome::Stopped | Outcome::ConnectionEnded(_)) => true,
            Err(error) => error.leaves_the_session(),
        };
        if let Some(session) = self.session.borrow().as_ref().filter(|_| goes_on) {
            let place = format!("{}:{session}", self.host);
            tell(&OwnEvent::SessionGoesOn { place: &place });
        }
    }
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
    fn a_name_with_a_number_tells_of_another_session() {
        assert!(is_next_of("foot-2", "foot") && is_next_of("foot-17", "foot"));
        for (name, wanted) in [("foot", "foot"), ("foot-1", "foot"), ("foot-x", "foot"), ("work", "foot")] {
            assert!(!is_next_of(name, wanted), "{name}");
        }
    }
}
