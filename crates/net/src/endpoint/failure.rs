//! What can go wrong, as data.
//!
//! One type for everything in this module: who ended it, with which code, in whose words. Invariant: the peer's text has lost
//! its control characters and is bounded.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why something did not work.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The connection is over.
    Closed {
        /// The application's code; for [`By::Transport`] that of QUIC (RFC 9000 §20.1); else 0.
        code: u64,
        /// In whose words depends on `by`.
        reason: String,
        /// Who ended it.
        by: By,
    },
    /// The TLS handshake failed.
    Tls {
        /// The alert that one side sent the other (RFC 8446 §6), if that is known.
        alert: Option<u8>,
        /// Its name, and what more is known.
        text: String,
    },
    /// The peer gave the stream up, with this code.
    Reset(u64),
    /// The peer wants no more of the stream, and says so with this code.
    Stopped(u64),
    /// The stream was finished, reset or stopped here.
    StreamGone,
    /// The datagram is too large for the path.
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// What goes now, in bytes.
        max: usize,
    },
    /// One of the two sides does not do datagrams (RFC 9221 §3).
    NoDatagrams,
    /// The peer did not take early data, and with it nothing of this stream.
    EarlyDataRejected,
    /// What was asked for cannot be.
    Config(String),
    /// The system refused something.
    Io(Arc<io::Error>),
    /// The server answered the WebTransport request with this status.
    Rejected {
        /// Of HTTP.
        status: u16,
    },
    /// The peer does not keep to WebTransport or HTTP/3.
    Protocol(String),
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// This side.
    Local,
    /// The application at the other end.
    Peer,
    /// One of the two QUIC stacks, because the other broke the rules, or ran out of something.
    Transport,
    /// Nothing was heard for too long, or there was no answer in time.
    Timeout,
    /// The peer does not know the connection any more (RFC 9000 §10.3).
    Reset,
    /// Nobody listens at that port, says the host.
    Refused,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { code, reason, by } => {
                let who = match by {
                    By::Local => "closed here",
                    By::Peer => "closed by the peer",
                    By::Transport => "ended by QUIC",
                    By::Timeout => "timed out",
                    By::Reset => "forgotten by the peer",
                    By::Refused => "refused",
                };
                write!(f, "connection {who} with code {code}")?;
                if reason.is_empty() { Ok(()) } else { write!(f, ": {reason}") }
            }
            Self::Tls { text, .. } => write!(f, "TLS handshake failed: {text}"),
            Self::Reset(code) => write!(f, "stream reset by the peer with code {code}"),
            Self::Stopped(code) => write!(f, "stream stopped by the peer with code {code}"),
            Self::StreamGone => f.write_str("the stream was finished, reset or stopped before"),
            Self::TooLarge { size, max } => {
                write!(f, "a datagram of {size} bytes is too large, {max} can be sent")
            }
            Self::NoDatagrams => f.write_str("one of the sides does not do datagrams"),
            Self::EarlyDataRejected => f.write_str("the peer did not take the early data"),
            Self::Config(text) | Self::Protocol(text) => f.write_str(text),
            Self::Io(error) => error.fmt(f),
            Self::Rejected { status } => write!(f, "the server answered with status {status}"),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}
