//! What can go wrong in a run: only that the world itself does not work. What a link does to packets is no error.

use std::fmt;

use noq_proto::ConnectionError;
use wayferry_proto::Time;

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Two hosts did not get to know each other over a link without loss.
    NoHandshake,
    /// A connection ended.
    Lost {
        /// When.
        at: Time,
        /// Why.
        reason: ConnectionError,
    },
    /// Time did not go on: something wants to be woken again and again at one moment.
    Stuck {
        /// When.
        at: Time,
    },
    /// A session ended, or found fault with its peer.
    Session {
        /// When.
        at: Time,
        /// What it said.
        why: String,
    },
    /// The work was not done when the time was over.
    Unfinished {
        /// When.
        at: Time,
        /// What is missing.
        missing: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |at: &Time| at.since_start().as_secs_f64() * 1e3;
        match self {
            Self::NoHandshake => write!(f, "the handshake did not end"),
            Self::Lost { at, reason } => write!(f, "the connection ended at {:.3} ms: {reason}", millis(at)),
            Self::Stuck { at } => write!(f, "time stopped at {:.3} ms", millis(at)),
            Self::Session { at, why } => write!(f, "the session failed at {:.3} ms: {why}", millis(at)),
            Self::Unfinished { at, missing } => write!(f, "not done at {:.3} ms: {missing}", millis(at)),
        }
    }
}

impl std::error::Error for Error {}
