//! What can go wrong, as data.
//!
//! [`Error`] says who erred, what was expected and what came; [`CloseReason`] says why a session ended and has a code
//! and a bounded text for the wire. Invariant: text that came from the peer is stripped of control characters and
//! bounded before it is stored in either.

use std::fmt;

use crate::Versions;

/// Longest text that a [`CloseReason`] carries, in bytes.
pub const MAX_REASON: usize = 256;

/// One mistake; all but [`Error::Misuse`] are the peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes ended before the field named.
    Truncated {
        /// The field.
        expected: &'static str,
    },
    /// A number or a length is larger than allowed.
    OutOfRange {
        /// The field.
        expected: &'static str,
        /// The largest value allowed.
        max: u64,
        /// The value that came.
        got: u64,
    },
    /// A code that stands for nothing.
    Unknown {
        /// The field.
        expected: &'static str,
        /// The value that came.
        got: u64,
    },
    /// A text is not UTF-8.
    NotUtf8 {
        /// The field.
        expected: &'static str,
    },
    /// Bytes are left after the end of a message.
    Trailing {
        /// The message.
        after: &'static str,
        /// How many.
        bytes: usize,
    },
    /// The peer did what the protocol forbids.
    Violation {
        /// What should have come.
        expected: &'static str,
        /// What came.
        got: String,
    },
    /// The peer exceeded a limit.
    TooMuch {
        /// What is limited.
        limit: &'static str,
        /// The most that is allowed.
        max: u64,
    },
    /// The caller asked for what the protocol cannot carry.
    Misuse {
        /// What the call must respect.
        expected: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { expected } => write!(f, "expected {expected}, got the end"),
            Self::OutOfRange { expected, max, got } => {
                write!(f, "expected {expected} of at most {max}, got {got}")
            }
            Self::Unknown { expected, got } => write!(f, "expected {expected}, got the unknown code {got}"),
            Self::NotUtf8 { expected } => write!(f, "expected {expected} in UTF-8"),
            Self::Trailing { after, bytes } => write!(f, "{bytes} bytes left after {after}"),
            Self::Violation { expected, got } => write!(f, "expected {expected}, got {got}"),
            Self::TooMuch { limit, max } => write!(f, "{limit}: more than {max}"),
            Self::Misuse { expected } => write!(f, "wrong use: {expected}"),
        }
    }
}

impl std::error::Error for Error {}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Nothing is left to do.
    Done,
    /// No protocol version is known to both.
    Incompatible {
        /// The versions of the side that closed.
        ours: Versions,
        /// The versions of its peer.
        theirs: Versions,
    },
    /// The display's secret is not the one of the ticket.
    BadSecret,
    /// The peer broke a rule; the text says which.
    ProtocolViolation(String),
    /// The peer exceeded the limit named.
    TooMuch(String),
    /// Nothing was heard for too long.
    Timeout,
    /// The session asked for is not (or no longer) here, or another display took it over.
    Gone,
    /// A carrier lost its link or gave it up.
    LinkLost(String),
    /// TLS refused the connection. From the wire it comes as [`CloseReason::Other`].
    TlsRefused(String),
    /// A reason that this build does not know.
    Other {
        /// Its code.
        code: u32,
        /// Its text.
        text: String,
    },
}

impl CloseReason {
    /// Code and text (≤ [`MAX_REASON`] bytes) for the carrier.
    pub fn to_wire(&self) -> (u32, String) {
        let (code, text) = match self {
            Self::Done => (0, String::new()),
            Self::Incompatible { ours, theirs } => {
                (1, format!("{}-{} {}-{}", ours.min, ours.max, theirs.min, theirs.max))
            }
            Self::BadSecret => (2, String::new()),
            Self::ProtocolViolation(text) => (3, text.clone()),
            Self::TooMuch(limit) => (4, limit.clone()),
            Self::Timeout => (5, String::new()),
            Self::Gone => (6, String::new()),
            Self::LinkLost(text) => (7, text.clone()),
            Self::TlsRefused(text) => (8, text.clone()),
            Self::Other { code, text } => (*code, text.clone()),
        };
        (code, sanitise(&text, MAX_REASON))
    }

    /// What the peer's code and text mean. In [`CloseReason::Incompatible`], `ours` becomes the receiver's versions.
    pub fn from_wire(code: u32, text: &str) -> Self {
        let text = sanitise(text, MAX_REASON);
        match code {
            0 => Self::Done,
            1 => match parse_versions(&text) {
                Some((theirs, ours)) => Self::Incompatible { ours, theirs },
                None => Self::Other { code, text },
            },
            2 => Self::BadSecret,
            3 => Self::ProtocolViolation(text),
            4 => Self::TooMuch(text),
            5 => Self::Timeout,
            6 => Self::Gone,
            7 => Self::LinkLost(text),
            _ => Self::Other { code, text },
        }
    }

    /// Whether it tells of the link rather than of one of the two sides.
    pub fn is_of_link(&self) -> bool {
        matches!(self, Self::LinkLost(_) | Self::TlsRefused(_))
    }
}

impl From<&Error> for CloseReason {
    fn from(error: &Error) -> Self {
        match error {
            Error::TooMuch { limit, .. } => Self::TooMuch((*limit).to_owned()),
            other => Self::ProtocolViolation(other.to_string()),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => write!(f, "done"),
            Self::Incompatible { ours, theirs } => write!(
                f,
                "no common protocol version: {}-{} here, {}-{} there",
                ours.min, ours.max, theirs.min, theirs.max
            ),
            Self::BadSecret => write!(f, "wrong secret"),
            Self::ProtocolViolation(text) => write!(f, "protocol violation: {text}"),
            Self::TooMuch(limit) => write!(f, "limit exceeded: {limit}"),
            Self::Timeout => write!(f, "no answer for too long"),
            Self::Gone => write!(f, "no such session"),
            Self::LinkLost(text) => write!(f, "link lost: {text}"),
            Self::TlsRefused(text) => write!(f, "TLS refused: {text}"),
            Self::Other { code, text } => write!(f, "closed with code {code}: {text}"),
        }
    }
}

/// Who ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// This side: the caller asked for it, or the peer erred.
    Us,
    /// The peer.
    Peer,
    /// The link was lost.
    Link,
}

/// `text` without control characters (each becomes `·`), cut to at most `max` bytes at a character's edge.
pub fn sanitise(text: &str, max: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(max));
    for char in text.chars().map(|char| if char.is_control() || is_bidi(char) { '·' } else { char }) {
        if clean.len() + char.len_utf8() > max {
            break;
        }
        clean.push(char);
    }
    clean
}

/// Characters that reorder what a terminal shows.
fn is_bidi(char: char) -> bool {
    matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn parse_versions(text: &str) -> Option<(Versions, Versions)> {
    let (first, second) = text.split_once(' ')?;
    let parse = |range: &str| {
        let (min, max) = range.split_once('-')?;
        Some(Versions { min: min.parse().ok()?, max: max.parse().ok()? })
    };
    Some((parse(first)?, parse(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_survive_the_wire() {
        let reasons = [
            CloseReason::Done,
            CloseReason::BadSecret,
            CloseReason::ProtocolViolation("expected x".into()),
            CloseReason::TooMuch("streams".into()),
            CloseReason::Timeout,
            CloseReason::Gone,
            CloseReason::LinkLost("cable".into()),
            CloseReason::Other { code: 99, text: "later".into() },
        ];
        for reason in reasons {
            let (code, text) = reason.to_wire();
            assert_eq!(CloseReason::from_wire(code, &text), reason);
        }
    }

    #[test]
    fn the_two_sides_of_an_incompatibility_swap() {
        let (one, two) = (Versions { min: 1, max: 1 }, Versions { min: 2, max: 4 });
        let (code, text) = CloseReason::Incompatible { ours: one, theirs: two }.to_wire();
        let heard = CloseReason::from_wire(code, &text);
        assert_eq!(heard, CloseReason::Incompatible { ours: two, theirs: one });
        assert_eq!(
            CloseReason::from_wire(1, "nonsense"),
            CloseReason::Other { code: 1, text: "nonsense".into() }
        );
    }

    #[test]
    fn text_of_the_peer_cannot_drive_a_terminal() {
        assert_eq!(sanitise("a\x1b[2J\u{202e}b\n", 64), "a·[2J·b·");
        assert_eq!(sanitise("äää", 5), "ää");
        let CloseReason::ProtocolViolation(text) = CloseReason::from_wire(3, &"\x07".repeat(9999)) else {
            panic!("another reason");
        };
        assert!(text.len() <= MAX_REASON && !text.contains('\x07'));
    }
}
