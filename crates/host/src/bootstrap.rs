//! How the two sides of `wayferry ssh` meet.
//!
//! ssh forwards a Unix socket from the remote machine to ours (`-R`); ssh's own stdio and terminal stay with the remote
//! command, as the user expects of ssh. Carrying the bootstrap on ssh's stdio instead would take the terminal away from
//! the command, and a second ssh connection would ask for the password twice. Over the forwarded socket the two sides
//! exchange, line by line, their certificate fingerprints and the host's ticket; the same socket then becomes the
//! byte-stream carrier if no UDP comes through. What ssh authenticated is thus what both pin. Invariant: not a byte
//! beyond the last line is read, so that the carrier finds its stream from the beginning.
//!
//! ```text
//! display -> host   wayferry 1 <fingerprint>
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

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_proto::Time;

use crate::clock::Clock;
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
    /// Who the display is: its fingerprint.
    Greeting(String),
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
    /// The line's text, with its end.
    pub fn encode(&self) -> String {
        match self {
            Self::Greeting(fingerprint) => format!("wayferry {VERSION} {fingerprint}\n"),
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
            ["wayferry", VERSION, fingerprint] => Ok(Self::Greeting(fingerprint.to_owned())),
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
    let text = line.encode();
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
                interests.until(Some(deadline));
                interests.wait(now)?;
                signals.map_or(Ok(()), Signals::check)?;
            }
            Err(error) => return Err(Error::Bootstrap(format!("cannot read from ssh's socket: {error}"))),
        }
    }
    let text = String::from_utf8(text).map_err(|_| Error::Bootstrap("a line is not text".into()))?;
    // A terminal on the way ends lines with two characters.
    Line::decode(text.trim_end_matches('\r'))
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

/// Version of this exchange.
const VERSION: &str = "1";
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

    fn hear_now(socket: &OwnedFd) -> Result<Line, Error> {
        let clock = Clock::start();
        hear(socket, &clock, clock.now(), None)
    }

    #[test]
    fn lines_survive_and_nothing_behind_them_is_read() {
        let (a, b) = pair();
        let lines = [
            Line::Greeting("ab".repeat(32)),
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
        say(&a, &Line::Greeting("x".into())).expect("say");
        assert!(hear_now(&b).is_ok());
        rustix::net::send(&a, b"wayferry 2 x y\nwhat\nattempts -1\n", SendFlags::NOSIGNAL).expect("send");
        assert_eq!(hear_now(&b).expect_err("newer").code(), 75);
        assert_eq!(hear_now(&b).expect_err("nonsense").code(), 78);
        assert_eq!(hear_now(&b).expect_err("no number").code(), 78);
        rustix::net::send(&a, &[b'x'; MAX_LINE + 1], SendFlags::NOSIGNAL).expect("send");
        assert_eq!(hear_now(&b).expect_err("too long").code(), 78);
        drop(a);
        assert_eq!(hear_now(&b).expect_err("closed").code(), 78);
    }
}
