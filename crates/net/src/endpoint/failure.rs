//! What can go wrong, as data.
//!
//! One type for everything in this module: who ended it, with which code, in whose words. Invariant: the peer's text
//! has lost its control characters and is bounded.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use noq::{ConnectionError, TransportErrorCode};
use rustls::CertificateError;
use wayferry_proto::sanitise;

use super::alert;
use crate::quic::error::{CertificateFault, is_crypto};

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
    /// No program listens at that port, says the host.
    Refused,
}

impl Failure {
    /// The end of a connection as noq tells it; `ours`: why this side ended it.
    pub(super) fn of(error: &ConnectionError, ours: Option<&Self>) -> Self {
        match error {
            ConnectionError::LocallyClosed => {
                ours.cloned().unwrap_or_else(|| Self::closed(By::Local, 0, String::new()))
            }
            ConnectionError::ApplicationClosed(close) => {
                let reason = clean(&String::from_utf8_lossy(&close.reason));
                Self::closed(By::Peer, close.error_code.into_inner(), reason)
            }
            ConnectionError::TransportError(error) if is_crypto(error.code) => {
                let tls = error.crypto.as_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
                Self::tls(error.code, &tls.map_or_else(|| clean(&error.reason), tls_text))
            }
            ConnectionError::ConnectionClosed(close) if is_crypto(close.error_code) => {
                let said = clean(&String::from_utf8_lossy(&close.reason));
                Self::tls(
                    close.error_code,
                    &["says the peer", &said].join(if said.is_empty() { "" } else { ": " }),
                )
            }
            ConnectionError::TransportError(error) => {
                Self::closed(By::Transport, error.code.into(), clean(&error.to_string()))
            }
            ConnectionError::ConnectionClosed(close) => Self::closed(
                By::Transport,
                close.error_code.into(),
                clean(&format!("says the peer: {close}")),
            ),
            ConnectionError::TimedOut => Self::timeout("nothing was heard for too long".into()),
            ConnectionError::Reset => Self::closed(By::Reset, 0, String::new()),
            ConnectionError::VersionMismatch => {
                Self::closed(By::Transport, 0, "the peer speaks no common version of QUIC".into())
            }
            ConnectionError::CidsExhausted => {
                Self::closed(By::Transport, 0, "no connection IDs are left".into())
            }
        }
    }

    pub(super) fn closed(by: By, code: u64, reason: String) -> Self {
        Self::Closed { code, reason, by }
    }

    pub(super) fn timeout(reason: String) -> Self {
        Self::closed(By::Timeout, 0, reason)
    }

    pub(super) fn no_answer(patience: Duration) -> Self {
        Self::timeout(format!("no handshake within {patience:?}"))
    }

    /// Either side has found fault in TLS, or the configuration is wrong: it says more than a missing answer.
    pub(super) fn is_verdict(&self) -> bool {
        matches!(self, Self::Tls { .. } | Self::Config(_))
    }

    fn tls(code: TransportErrorCode, text: &str) -> Self {
        // RFC 9001 §4.8
        let alert = (u64::from(code) & 0xff) as u8;
        let text = match (alert::name(alert), text.is_empty()) {
            (Some(name), true) => name.into(),
            (Some(name), false) => format!("{name}: {text}"),
            (None, _) => format!("alert {alert}: {text}"),
        };
        Self::Tls { alert: Some(alert), text }
    }
}

/// What TLS on this side found.
fn tls_text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "the peer's certificate is not one of those that are pinned".into()
        }
        rustls::Error::InvalidCertificate(error) => {
            format!("the peer's certificate {}", CertificateFault::of(error))
        }
        error => clean(&error.to_string()),
    }
}

/// Without control characters, and bounded.
pub(super) fn clean(text: &str) -> String {
    sanitise(text, REASON_MAX)
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

impl From<rustls::Error> for Failure {
    fn from(error: rustls::Error) -> Self {
        Self::Config(format!("TLS cannot use that: {error}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// Bytes of a peer's text that are kept: more than fit into the packet that it comes in.
const REASON_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use noq::{ApplicationClose, ConnectionClose, VarInt};

    use super::*;

    fn peer_closed(code: u64, reason: &'static str) -> Failure {
        let error_code = VarInt::from_u64(code).unwrap().into();
        let close = ConnectionClose {
            error_code,
            frame_type: noq_proto::MaybeFrame::None,
            reason: reason.as_bytes().into(),
        };
        Failure::of(&ConnectionError::ConnectionClosed(close), None)
    }

    #[test]
    fn alerts_have_names_and_other_codes_are_not_alerts() {
        let Failure::Tls { alert, text } = peer_closed(0x178, "") else { panic!() };
        assert_eq!((alert, text.as_str()), (Some(120), "no_application_protocol: says the peer"));
        let Failure::Tls { alert, text } = peer_closed(0x1c7, "no\n") else { panic!() };
        assert_eq!((alert, text.as_str()), (Some(199), "alert 199: says the peer: no·"));
        let Failure::Closed { code: 0x1, by: By::Transport, .. } = peer_closed(0x1, "") else { panic!() };
        let close = ApplicationClose { error_code: VarInt::from_u32(0x178), reason: "bye\x1b".into() };
        let failure = Failure::of(&ConnectionError::ApplicationClosed(close), None);
        assert_eq!(failure.to_string(), "connection closed by the peer with code 376: bye·");
    }

    #[test]
    fn what_this_side_said_is_told_back() {
        let ours = Failure::closed(By::Local, 7, "enough".into());
        let failure = Failure::of(&ConnectionError::LocallyClosed, Some(&ours));
        assert_eq!(failure.to_string(), "connection closed here with code 7: enough");
        let failure = Failure::of(
            &ConnectionError::ApplicationClosed(ApplicationClose {
                error_code: VarInt::MAX,
                reason: Default::default(),
            }),
            Some(&ours),
        );
        assert!(matches!(failure, Failure::Closed { code, by: By::Peer, .. } if code == (1 << 62) - 1));
    }
}
