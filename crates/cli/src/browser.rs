//! Opens addresses here that a host wants opened, as far as the user lets it.
//!
//! The user is asked once, on the terminal or by a notification, and the answer holds for as long as the display is
//! there, or for good if the user says so. Where there is no way to ask, the answer is no. Invariant: a browser is
//! started with one argument, which is a [`Url`], and nothing of what the host says is given to a shell.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use wayferry_host::notes::question::Question;
use wayferry_host::opening::Open;
use wayferry_host::url::Url;
use wayferry_proto::UrlFate;

use crate::flags::OpenUrl;
use crate::memory::{Memory, Standing};
use crate::tell::notice;

/// How the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// On the terminal, which is this program's.
    Terminal,
    /// By a notification of the desk.
    Desk,
    Nowhere,
}

/// Whether addresses may be opened at all; see [`opener`].
pub(crate) fn may_open(how: Option<OpenUrl>, memory: Option<&Memory>) -> bool {
    resolve(how, memory) != OpenUrl::Never
}

/// What the user has said, now or before.
fn resolve(how: Option<OpenUrl>, memory: Option<&Memory>) -> OpenUrl {
    how.or_else(|| memory?.recall().open_url.map(OpenUrl::from)).unwrap_or_default()
}

/// What opens addresses of `host`, which is how the user calls it; `None` if nothing does. Where the user has not said
/// `how`, the answer in `memory` holds.
pub(crate) fn opener(
    how: Option<OpenUrl>,
    host: String,
    memory: Option<Memory>,
    asking: Asking,
) -> Option<Open> {
    let mut allowed = match resolve(how, memory.as_ref()) {
        OpenUrl::Never => return None,
        OpenUrl::Always => Some(true),
        OpenUrl::Ask => None,
    };
    let mut pace = Pace::default();
    Some(Box::new(move |url| {
        if !pace.take(Instant::now()) {
            return Err((UrlFate::TooMany, "but too many came at once".into()));
        }
        if allowed.is_none() {
            let answer = match asking {
                Asking::Terminal => question(&host, url, memory.as_ref()),
                Asking::Desk => notified(&host, url, memory.as_ref()),
                Asking::Nowhere => None,
            };
            if let (Some(answer), Some(memory)) = (answer, &memory) {
                remember(answer, memory);
            }
            allowed = answer.map(Answer::is_yes);
        }
        match allowed {
            Some(true) => open(url),
            Some(false) => Err((UrlFate::Refused, "and you did not allow it".into())),
            None => Err((
                UrlFate::Refused,
                "but you could not be asked; `wayferry --open-url always` opens what this host wants".into(),
            )),
        }
    }))
}

impl From<Standing> for OpenUrl {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::Always => Self::Always,
            Standing::Never => Self::Never,
        }
    }
}

/// What the user says to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Until the display leaves.
    ForNow(bool),
    ForGood(Standing),
}

impl Answer {
    /// Everything that is not clear is a no.
    fn parse(text: &str) -> Self {
        match text.trim().to_lowercase().as_str() {
            "y" | "yes" => Self::ForNow(true),
            "always" => Self::ForGood(Standing::Always),
            "never" => Self::ForGood(Standing::Never),
            _ => Self::ForNow(false),
        }
    }

    fn is_yes(self) -> bool {
        matches!(self, Self::ForNow(true) | Self::ForGood(Standing::Always))
    }
}

/// Keeps an answer that is for good.
fn remember(answer: Answer, memory: &Memory) {
    let Answer::ForGood(standing) = answer else { return };
    if let Err(error) = memory.change(|facts| facts.open_url = Some(standing)) {
        notice(&format!("your answer is not remembered: cannot write {}: {error}", memory.path().display()));
    }
}

/// The user's answer; `None` if there is no terminal, or it is closed. It can be for good where there is a `memory`.
fn question(host: &str, url: &Url, memory: Option<&Memory>) -> Option<Answer> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    // One that reads the terminal from the background is stopped.
    if rustix::termios::tcgetpgrp(&terminal).ok()? != rustix::process::getpgrp() {
        return None;
    }
    let text = format!(
        "\r\nA program on `{host}` wants this opened here:\r\n  {}\r\nOpen it, and what it wants opened until this \
         display leaves? [{}] ",
        url.as_str(),
        if memory.is_some() { "y/N, or for good: always/never" } else { "y/N" }
    );
    terminal.write_all(text.as_bytes()).ok()?;
    let mut answer = String::new();
    let read = BufReader::new(std::io::Read::take(&terminal, MAX_ANSWER)).read_line(&mut answer).ok()?;
    (read > 0).then(|| Answer::parse(&answer))
}

/// The user's answer to a notification; `None` if there is none, or no server that could ask.
fn notified(host: &str, url: &Url, memory: Option<&Memory>) -> Option<Answer> {
    let answers = [("y", "Open"), ("no", "Refuse"), ("always", "Always open"), ("never", "Never open")];
    // What is for good needs a memory.
    let answers = if memory.is_some() { &answers[..] } else { &answers[..2] };
    let question = Question {
        summary: format!("A program on {host} wants this opened here"),
        body: url.as_str().to_owned(),
        answers,
    };
    question.ask(PATIENCE).map(|answer| Answer::parse(&answer))
}

/// Starts the user's browser, and waits for none.
fn open(url: &Url) -> Result<(), (UrlFate, String)> {
    let named = std::env::var("BROWSER").unwrap_or_default();
    let browser = named.split(':').find(|name| !name.is_empty()).unwrap_or("xdg-open");
    let mut command = Command::new(browser);
    command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    match command.spawn() {
        Ok(mut child) => {
            // Without a thread it stays in the table of processes until this one ends, which is no harm.
            let _ = std::thread::Builder::new().name("browser".into()).spawn(move || child.wait());
            Ok(())
        }
        Err(error) => Err((UrlFate::Failed, format!("but `{browser}` cannot be started ({error})"))),
    }
}

/// How many addresses a host may have opened: a few at once, and then one now and then.
#[derive(Debug, Default)]
struct Pace {
    /// When all that were opened have been paid for.
    paid: Option<Instant>,
}

impl Pace {
    /// Whether another one may be opened at `now`.
    fn take(&mut self, now: Instant) -> bool {
        let paid = self.paid.map_or(now, |paid| paid.max(now)) + STEP;
        let fits = paid - now <= STEP * MAX_AT_ONCE;
        if fits {
            self.paid = Some(paid);
        }
        fits
    }
}

/// Addresses that a host may have opened at once.
const MAX_AT_ONCE: u32 = 5;
/// After those, one in so long.
const STEP: Duration = Duration::from_secs(2);
/// Bytes of the user's answer.
const MAX_ANSWER: u64 = 64;
/// How long the user may take for an answer to a notification.
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn a_flood_of_addresses_is_held_back() {
        let mut pace = Pace::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!((0..100).filter(|_| pace.take(at(0))).count(), MAX_AT_ONCE as usize);
        assert!(!pace.take(at(1)) && pace.take(at(2)) && !pace.take(at(2)));
        assert_eq!((0..100).filter(|_| pace.take(at(600))).count(), MAX_AT_ONCE as usize);
    }

    #[test]
    fn without_a_terminal_the_answer_is_no_and_never_asks_nothing() {
        assert!(opener(Some(OpenUrl::Never), "host".into(), None, Asking::Nowhere).is_none());
        let mut ask = opener(None, "host".into(), None, Asking::Nowhere).expect("it is asked");
        let url = Url::parse("https://example.org/").expect("an address");
        let (fate, reason) = ask(&url).expect_err("there was no way to ask");
        assert_eq!(fate, UrlFate::Refused);
        assert!(reason.contains("--open-url always"), "{reason}");
    }

    #[test]
    fn an_answer_for_good_holds_for_the_next_display_until_the_user_says_otherwise() {
        let dir = RuntimeDir::private().expect("a directory");
        let memory = || Memory::below(dir.path(), "host");
        let kept = || memory().expect("a name").recall().open_url;
        for (text, yes, standing) in [
            ("y\n", true, None),
            ("perhaps\n", false, None),
            ("Always\n", true, Some(Standing::Always)),
            ("no\n", false, Some(Standing::Always)),
            ("never\n", false, Some(Standing::Never)),
        ] {
            let answer = Answer::parse(text);
            remember(answer, &memory().expect("a name"));
            assert_eq!((answer.is_yes(), kept()), (yes, standing), "{text}");
        }
        assert!(opener(None, "host".into(), memory(), Asking::Nowhere).is_none());
        assert!(opener(Some(OpenUrl::Ask), "host".into(), memory(), Asking::Nowhere).is_some());
    }
}
