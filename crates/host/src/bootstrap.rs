//! How the two sides of `wayferry ssh` meet.
//!
//! On a strand of the trunk that ssh's stdio carries ([`wayferry_proto::trunk`]); where the remote command has a
//! terminal, which must stay its own, on a Unix socket that ssh forwards from there to here (`-R`). The two sides
//! exchange, line by line, their certificate fingerprints and the host's ticket; the same socket then becomes the
//! byte-stream carrier. What ssh authenticated is thus what both pin. The secret that lets the display in is its own,
//! and the ticket repeats it: so a display that comes on this socket need not wait for the ticket, and says its first
//! two lines and its session's first words in one flight. Invariant: not a byte beyond the last line is read, so that
//! the carrier finds its stream from the beginning.
//!
//! ```text
//! display -> host   wayferry 2 <fingerprint> <secret>
//! host -> display   ticket <ticket> <session's name>
//! display -> host   quic | stream
//! ```
//!
//! `wayferry doctor` shows nothing, and asks instead whether its attempts at QUIC got there:
//!
//! ```text
//! display -> host   attempts
//! host -> display   attempts <count>
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_net::Fingerprint;
use wayferry_proto::{Secret, Time};

use crate::clock::Clock;
use crate::control::{Answer, Word as _};
use crate::edge::signals::Signals;
use crate::edge::wait::Interests;
use crate::error::Error;

/// How the session will be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The QUIC connection that has just been made.
    Quic,
    /// The socket on which this was said.
    Stream,
}

/// One line of the exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Who the display is, and what is to let it in, once.
    Greeting {
        /// Of its certificate.
        fingerprint: Fingerprint,
        /// Made for this.
        secret: Secret,
    },
    /// Where and who the host is, and what its session is called.
    Ticket {
        /// See [`wayferry_net::Ticket`].
        ticket: String,
        /// On its machine.
        name: String,
    },
    /// What the display decided.
    Choice(Choice),
    /// What has come to the host's UDP port?
    AskAttempts,
    /// So many handshakes were begun there.
    Attempts(u64),
}

impl Line {
    /// The error for a line in place of the ticket's.
    pub fn is_no_ticket(&self) -> Error {
        let what = match self {
            Self::Greeting { .. } => "a greeting",
            Self::Ticket { .. } => "a ticket",
            Self::Choice(_) => "a choice",
            Self::AskAttempts | Self::Attempts(_) => "a question of `wayferry doctor`",
        };
        Error::Bootstrap(format!("{UNEXPECTED}: {what}"))
    }

    /// The line's text, with its end.
    pub fn encode(&self) -> String {
        match self {
            Self::Greeting { fingerprint, secret } => {
                // Both are 32 bytes, written alike.
                format!("wayferry {VERSION} {fingerprint} {}\n", Fingerprint(*secret.expose()))
            }
            Self::Ticket { ticket, name } => format!("ticket {ticket} {name}\n"),
            Self::Choice(Choice::Quic) => "quic\n".into(),
            Self::Choice(Choice::Stream) => "stream\n".into(),
            Self::AskAttempts => "attempts\n".into(),
            Self::Attempts(count) => format!("attempts {count}\n"),
        }
    }

    /// Reads a line without its end.
    ///
    /// # Errors
    /// [`Error::Incompatible`] for a greeting of another version, [`Error::Bootstrap`] for anything else.
    pub fn decode(text: &str) -> Result<Self, Error> {
        match text.split(' ').collect::<Vec<_>>()[..] {
            ["wayferry", VERSION, fingerprint, secret] => {
                let read = |text: &str| text.parse().map_err(|_| Error::Bootstrap(NO_GREETING.into()));
                let Fingerprint(bytes) = read(secret)?;
                Ok(Self::Greeting { fingerprint: read(fingerprint)?, secret: Secret::from(bytes) })
            }
            ["wayferry", VERSION, ..] => Err(Error::Bootstrap(NO_GREETING.into())),
            ["wayferry", version, ..] => Err(Error::Incompatible(format!(
                "the other side meets in version {version}, this one in version {VERSION}"
            ))),
            ["ticket", ticket, name] => {
                crate::sessions::check(name).map_err(Error::Bootstrap)?;
                Ok(Self::Ticket { ticket: ticket.to_owned(), name: name.to_owned() })
            }
            // A session that cannot meet this display answers instead.
            ["not", ..] => Err(Error::NoSession(text["not ".len()..].to_owned())),
            ["quic"] => Ok(Self::Choice(Choice::Quic)),
            ["stream"] => Ok(Self::Choice(Choice::Stream)),
            ["attempts"] => Ok(Self::AskAttempts),
            ["attempts", count] => {
                let count = count.parse().map_err(|_| Error::Bootstrap(format!("{UNEXPECTED} `{text}`")))?;
                Ok(Self::Attempts(count))
            }
            _ => Err(Error::Bootstrap(format!("{UNEXPECTED} `{text}`"))),
        }
    }
}

/// Writes a line; it always fits into an empty socket.
pub fn say(socket: &OwnedFd, line: &Line) -> Result<(), Error> {
    say_all(socket, std::slice::from_ref(line))
}

/// Writes lines in one piece: the other side may have answered the first, and gone, before the next one.
pub fn say_all(socket: &OwnedFd, lines: &[Line]) -> Result<(), Error> {
    let text: String = lines.iter().map(Line::encode).collect();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match rustix::net::send(socket, rest, SendFlags::NOSIGNAL) {
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(Error::Bootstrap(format!("cannot write to ssh's socket: {error}"))),
        }
    }
    Ok(())
}

/// Reads one line and nothing behind it.
///
/// # Errors
/// The other side closed, sent something else, or said nothing until `deadline`; a signal.
pub fn hear(
    socket: &OwnedFd,
    clock: &Clock,
    deadline: Time,
    signals: Option<&Signals>,
) -> Result<Line, Error> {
    Line::decode(&hear_text(socket, clock, deadline, signals, None)?)
}

/// The same before it is looked into. It also ends when `caller` is readable, which has gone then.
fn hear_text(
    socket: &OwnedFd,
    clock: &Clock,
    deadline: Time,
    signals: Option<&Signals>,
    caller: Option<BorrowedFd<'_>>,
) -> Result<String, Error> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        match rustix::net::recv(socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Error::Bootstrap("the other side closed ssh's socket".into())),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if text.len() == MAX_LINE => return Err(Error::Bootstrap("a line is too long".into())),
            Ok(_) => text.push(byte[0]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let now = clock.now();
                if now >= deadline {
                    return Err(Error::Bootstrap("the other side says nothing".into()));
                }
                let mut interests = Interests::default();
                interests.read(socket);
                if let Some(signals) = signals {
                    interests.read(signals);
                }
                if let Some(caller) = caller {
                    interests.add_borrowed(caller, PollFlags::IN);
                }
                interests.until(Some(deadline));
                let ready = interests.wait(now)?;
                signals.map_or(Ok(()), Signals::check)?;
                if caller.is_some_and(|caller| ready.has(&caller)) {
                    return Err(Error::Bootstrap("who waited for it has gone".into()));
                }
            }
            Err(error) => return Err(Error::Bootstrap(format!("cannot read from ssh's socket: {error}"))),
        }
    }
    let text = String::from_utf8(text).map_err(|_| Error::Bootstrap("a line is not text".into()))?;
    // A terminal on the way ends lines with two characters.
    Ok(text.trim_end_matches('\r').to_owned())
}

/// Reads the first line that belongs here, past a few that do not: a login may print some first.
///
/// # Errors
/// As [`hear`].
pub fn hear_past(
    socket: &OwnedFd,
    clock: &Clock,
    deadline: Time,
    signals: Option<&Signals>,
) -> Result<Line, Error> {
    for _ in 0..MAX_NOISE {
        match hear(socket, clock, deadline, signals) {
            Err(Error::Bootstrap(what)) if what.starts_with(UNEXPECTED) => {}
            heard => return heard,
        }
    }
    hear(socket, clock, deadline, signals)
}

/// Waits until a session says that it takes a page on this socket ([`Request::Page`](crate::control::Request::Page)).
/// Through a login that says so behind a line with this mark: what stands before it is passed over. What follows is the
/// carrier's.
///
/// # Errors
/// As [`hear`], [`Error::NoSession`] where it says that it does not, and any when `caller` is readable before.
pub fn hear_taken(
    socket: &OwnedFd,
    clock: &Clock,
    deadline: Time,
    mark: Option<&str>,
    caller: &impl AsFd,
) -> Result<(), Error> {
    let hear = || hear_text(socket, clock, deadline, None, Some(caller.as_fd()));
    let mut noise = 0;
    while mark.is_some_and(|_| noise <= MAX_NOISE) && Some(hear()?.as_str()) != mark {
        noise += 1;
    }
    match Answer::decode(&hear()?) {
        Some(Answer::Done) => Ok(()),
        Some(Answer::Not(why)) => Err(Error::NoSession(why)),
        _ => Err(Error::Bootstrap("what it says is no answer".into())),
    }
}

/// Version of this exchange.
const VERSION: &str = "2";
/// The error for a greeting of this version that is wrong. It does not repeat what may be a secret.
const NO_GREETING: &str = "a greeting without a fingerprint and a secret";
/// The error for a line that does not belong here.
const UNEXPECTED: &str = "unexpected line";
/// Lines that a login may print first.
const MAX_NOISE: usize = 100;
/// Longest line: a ticket with its sixteen addresses is under 1 kB.
const MAX_LINE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (a, b) = std::os::unix::net::UnixStream::pair().expect("pair");
        (a.into(), b.into())
    }

    fn greeting() -> Line {
        Line::Greeting { fingerprint: Fingerprint([0xab; 32]), secret: Secret::from([7; 32]) }
    }

    fn hear_now(socket: &OwnedFd) -> Result<Line, Error> {
        let clock = Clock::start();
        hear(socket, &clock, clock.now(), None)
    }

    #[test]
    fn lines_survive_and_nothing_behind_them_is_read() {
        let (a, b) = pair();
        let lines = [
            greeting(),
            Line::Ticket { ticket: "wf1:abc".into(), name: "foot".into() },
            Line::Choice(Choice::Quic),
            Line::Choice(Choice::Stream),
            Line::AskAttempts,
            Line::Attempts(u64::MAX),
        ];
        for line in &lines {
            say(&a, line).expect("say");
        }
        rustix::net::send(&a, b"\0frame", SendFlags::NOSIGNAL).expect("send");
        for line in lines {
            assert_eq!(hear_now(&b).expect("hear"), line);
        }
        let mut rest = [0; 16];
        assert_eq!(rustix::net::recv(&b, &mut rest, RecvFlags::empty()).expect("recv").0, 6);
    }

    #[test]
    fn trouble_is_told_apart() {
        let (a, b) = pair();
        assert_eq!(hear_now(&b).expect_err("silence").code(), 78);
        say(&a, &greeting()).expect("say");
        assert!(hear_now(&b).is_ok());
        let older = format!("wayferry 1 {}\n", "ab".repeat(32));
        let text = format!("{older}wayferry 3 x y\nwhat\nattempts -1\n");
        rustix::net::send(&a, text.as_bytes(), SendFlags::NOSIGNAL).expect("send");
        for other in ["older", "newer"] {
            assert_eq!(hear_now(&b).expect_err(other).code(), 75);
        }
        assert_eq!(hear_now(&b).expect_err("nonsense").code(), 78);
        assert_eq!(hear_now(&b).expect_err("no number").code(), 78);
        rustix::net::send(&a, &[b'x'; MAX_LINE + 1], SendFlags::NOSIGNAL).expect("send");
        assert_eq!(hear_now(&b).expect_err("too long").code(), 78);
        drop(a);
        assert_eq!(hear_now(&b).expect_err("closed").code(), 78);
    }

    #[test]
    fn a_wrong_greeting_is_not_repeated() {
        let secret = "07".repeat(31);
        for text in [format!("wayferry 2 {} {secret}", "ab".repeat(32)), format!("wayferry 2 {secret}")] {
            let error = Line::decode(&text).expect_err("no greeting");
            assert_eq!(error.code(), 78);
            assert!(!error.to_string().contains(&secret), "{error}");
        }
        assert!(!format!("{:?}", greeting()).contains("7, 7"));
        assert!(!greeting().is_no_ticket().to_string().contains("0707"));
    }

    #[test]
    fn what_a_login_prints_is_passed_over_and_what_follows_the_ticket_is_not_read() {
        let (a, b) = pair();
        let ticket = Line::Ticket { ticket: "wf1:abc".into(), name: "foot".into() };
        let said = format!("Welcome.\nYou have mail\n{}WFMUX1\r\n", ticket.encode());
        rustix::net::send(&a, said.as_bytes(), SendFlags::NOSIGNAL).expect("send");
        let clock = Clock::start();
        assert_eq!(hear_past(&b, &clock, clock.now(), None).expect("the ticket"), ticket);
        let mut rest = [0; 16];
        assert_eq!(rustix::net::recv(&b, &mut rest, RecvFlags::empty()).expect("recv").0, 8);
    }

    /// What is made of it where a session says this, through a login or not, and how many bytes are left.
    fn taken(said: &str, mark: Option<&str>) -> (Result<(), u8>, usize) {
        let ((a, b), (_caller, here)) = (pair(), pair());
        rustix::net::send(&a, said.as_bytes(), SendFlags::NOSIGNAL).expect("send");
        let clock = Clock::start();
        let taken = hear_taken(&b, &clock, clock.now(), mark, &here).map_err(|error| error.code());
        let left = rustix::net::recv(&b, &mut [0; 64], RecvFlags::DONTWAIT).map_or(0, |(count, _)| count);
        (taken, left)
    }

    #[test]
    fn regression_what_a_login_prints_is_no_answer_of_the_session() {
        let login = "done\nnot today\nWelcome.\r\n";
        assert_eq!(taken(&format!("{login}mark\ndone\nWFMUX1\r\n"), Some("mark")), (Ok(()), 8));
        assert_eq!(taken(&format!("{login}mark\nnot here\n"), Some("mark")), (Err(82), 0));
        assert_eq!(taken(login, Some("mark")), (Err(78), 0), "it has not answered");
        assert_eq!(taken(&format!("{login}mark\nwhat\ndone\n"), Some("mark")), (Err(78), 5));
        let endless = "x\n".repeat(MAX_NOISE + 9);
        assert_eq!(taken(&format!("{endless}mark\ndone\n"), Some("mark")).0, Err(78));
        assert_eq!(taken("done\nWFMUX1\r\n", None), (Ok(()), 8));
        assert_eq!(taken("Welcome.\ndone\n", None), (Err(78), 5), "nothing comes before on its own socket");
    }

    #[test]
    fn an_answer_whose_page_has_gone_is_not_waited_for() {
        let ((_a, b), (caller, here)) = (pair(), pair());
        drop(caller);
        let (clock, never) = (Clock::start(), Time::new(std::time::Duration::from_secs(1 << 30)));
        assert_eq!(hear_taken(&b, &clock, never, None, &here).expect_err("it is gone").code(), 78);
    }
}
