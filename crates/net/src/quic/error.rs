//! Who failed, and why: binding, connecting, and the end of a connection.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use noq::{ConnectionError, TransportErrorCode};
use rustls::CertificateError;
use wayferry_proto::{CloseReason, MAX_REASON, sanitise};

use crate::trust::SelfSigned;

/// Why a listener could not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenError {
    /// Another process has the port.
    PortInUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// Other processes have all ports of the range.
    NoFreePort {
        /// The range asked for.
        ports: RangeInclusive<u16>,
    },
    /// The address is not one of this host, or binding is not allowed.
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The local set-up failed.
    Setup(SetupError),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PortInUse { address } => write!(f, "UDP address `{address}` is in use"),
            Self::NoFreePort { ports } => {
                write!(f, "all UDP ports from {} to {} are in use", ports.start(), ports.end())
            }
            Self::Bind { address, source } => write!(f, "cannot bind UDP address `{address}`: {source}"),
            Self::Setup(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ListenError {}

/// Why no connection came about.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is nothing to connect to.
    NoAddress,
    /// The peer shows another certificate than the pinned one. Its address is out of the race, and no other was right.
    WrongFingerprint {
        /// Where.
        address: SocketAddr,
    },
    /// The peer's certificate does not verify; likewise.
    Certificate {
        /// Where.
        address: SocketAddr,
        /// What is wrong with it.
        fault: CertificateFault,
    },
    /// The peer does not accept this side's certificate, and has proved who it is. Final: no other address was tried.
    Rejected {
        /// Where.
        address: SocketAddr,
        /// What it said.
        reason: String,
    },
    /// The TLS handshake failed for another reason, until the time was over. Before it is complete everyone can say so.
    Tls {
        /// Where.
        address: SocketAddr,
        /// What went wrong, and who says so; may be empty.
        reason: String,
    },
    /// The answer was, until the time was over, that no version of QUIC is known to both.
    NoCommonVersion {
        /// Where.
        address: SocketAddr,
    },
    /// The answer was, until the time was over, an end of the attempt.
    Refused {
        /// Where.
        address: SocketAddr,
        /// What it said.
        reason: String,
    },
    /// No address answered in time.
    TimedOut {
        /// How long it was tried.
        after: Duration,
    },
    /// No address could be tried at all, for example because there is no route.
    Unreachable {
        /// The last one.
        address: SocketAddr,
        /// What the system said.
        reason: String,
    },
    /// The local set-up failed.
    Setup(SetupError),
}

impl ConnectError {
    /// Whether certificates decided: trying again or elsewhere cannot help.
    pub fn is_verdict(&self) -> bool {
        matches!(self, Self::WrongFingerprint { .. } | Self::Certificate { .. } | Self::Rejected { .. })
    }

    /// How much it tells, where several addresses failed.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::WrongFingerprint { .. } | Self::Certificate { .. } | Self::Rejected { .. } => 5,
            Self::Tls { .. } => 4,
            Self::NoCommonVersion { .. } => 3,
            Self::Refused { .. } | Self::Setup(_) => 2,
            Self::TimedOut { .. } => 1,
            Self::Unreachable { .. } | Self::NoAddress => 0,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => f.write_str("no address to connect to"),
            Self::WrongFingerprint { address } => {
                write!(f, "the certificate at `{address}` is not the expected one")
            }
            Self::Certificate { address, fault: fault @ CertificateFault::WrongName { .. } } => {
                write!(f, "host name mismatch: the certificate at `{address}` {fault}")
            }
            Self::Certificate { address, fault } => write!(f, "the certificate at `{address}` {fault}"),
            Self::Rejected { address, reason } => write!(f, "rejected by `{address}`: {reason}"),
            Self::Tls { address, reason } if reason.is_empty() => {
                write!(f, "TLS handshake with `{address}` failed")
            }
            Self::Tls { address, reason } => write!(f, "TLS handshake with `{address}` failed: {reason}"),
            Self::NoCommonVersion { address } => {
                write!(f, "`{address}` speaks no version of QUIC that is known here")
            }
            Self::Refused { address, reason } => write!(f, "`{address}` refused the connection: {reason}"),
            Self::TimedOut { after } => write!(f, "no answer within {after:?}"),
            Self::Unreachable { address, reason } => write!(f, "cannot reach `{address}`: {reason}"),
            Self::Setup(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}

/// What is wrong with a certificate. `Display` gives a verb: "has expired".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Its time is over, by this host's clock.
    Expired,
    /// Its time has not come, by this host's clock.
    NotYetValid,
    /// Only its own key vouches for it.
    SelfSigned,
    /// It has no chain to a trusted authority.
    UnknownIssuer,
    /// It is for other names.
    WrongName {
        /// The name that was asked for.
        expected: String,
    },
    /// Anything else.
    Other(String),
}

impl CertificateFault {
    pub(crate) fn of(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::NotValidForNameContext { expected, .. } => {
                Self::WrongName { expected: bounded(&expected.to_str()) }
            }
            CertificateError::NotValidForName => Self::WrongName { expected: "the name asked for".into() },
            CertificateError::Other(other) if other.0.downcast_ref::<SelfSigned>().is_some() => {
                Self::SelfSigned
            }
            // rustls-webpki takes shorter keys for such as do not match.
            CertificateError::BadSignature => {
                Self::Other("a signature is wrong, or made with an RSA key of fewer than 2048 bits".into())
            }
            other => Self::Other(bounded(&other.to_string())),
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("has expired"),
            Self::NotYetValid => f.write_str("is not valid yet"),
            Self::SelfSigned => f.write_str("is self-signed"),
            Self::UnknownIssuer => f.write_str("comes from an authority that is not trusted"),
            Self::WrongName { expected } => write!(f, "is not for `{expected}`"),
            Self::Other(reason) => write!(f, "is not good: {reason}"),
        }
    }
}

/// What this host refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// A socket, thread or runtime.
    System(io::Error),
    /// The directory for qlog files.
    Qlog {
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The TLS configuration.
    Tls(String),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "cannot set up QUIC: {error}"),
            Self::Qlog { directory, source } => {
                write!(f, "cannot create qlog directory `{}`: {source}", directory.display())
            }
            Self::Tls(reason) => write!(f, "cannot set up TLS: {reason}"),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<io::Error> for SetupError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustls::Error> for SetupError {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error.to_string())
    }
}

impl From<SetupError> for ListenError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<SetupError> for ConnectError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

/// What the user should know although everything works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The kernel gave a UDP socket a smaller buffer than asked for: bursts may be lost.
    BufferClamped {
        /// Which of the two, and with it the sysctl to change.
        buffer: Buffer,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes granted.
        granted: usize,
    },
}

/// One of the two buffers of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// `SO_RCVBUF`.
    Receive,
    /// `SO_SNDBUF`.
    Send,
}

impl Buffer {
    /// The kernel setting that limits it.
    pub fn sysctl(self) -> &'static str {
        match self {
            Self::Receive => "net.core.rmem_max",
            Self::Send => "net.core.wmem_max",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::BufferClamped { buffer, wanted, granted } = self;
        let (which, sysctl) = match buffer {
            Buffer::Receive => ("receive", buffer.sysctl()),
            Buffer::Send => ("send", buffer.sysctl()),
        };
        write!(
            f,
            "UDP {which} buffer is {granted} bytes instead of {wanted}; `sysctl -w {sysctl}={wanted}` allows more"
        )
    }
}

/// What TLS said, when it was TLS.
enum Verdict {
    WrongFingerprint,
    Certificate(CertificateFault),
    /// The peer's, about this side's certificate.
    Rejected(String),
    Other(String),
}

/// CRYPTO errors are 0x100–0x1ff of a transport close, sent by either side (RFC 9000 §20.1); never of an application
/// close with such a code.
fn verdict(error: &ConnectionError) -> Option<Verdict> {
    match error {
        ConnectionError::TransportError(error) if is_crypto(error.code) => {
            let tls = error.crypto.as_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
            Some(match tls {
                Some(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => {
                    Verdict::WrongFingerprint
                }
                Some(rustls::Error::InvalidCertificate(error)) => {
                    Verdict::Certificate(CertificateFault::of(error))
                }
                _ => Verdict::Other(bounded(&error.reason)),
            })
        }
        ConnectionError::ConnectionClosed(close) if is_crypto(close.error_code) => {
            Some(alert_verdict(u64::from(close.error_code) as u8))
        }
        _ => None,
    }
}

pub(crate) fn is_crypto(code: TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}

/// What the peer means by an alert (RFC 8446 §6): those that pinned peers can meet have words.
fn alert_verdict(alert: u8) -> Verdict {
    let refused = |text: &str| Verdict::Other(format!("the peer refused it: {text}"));
    match alert {
        42..=46 | 48 | 49 => Verdict::Rejected(UNKNOWN_HERE.into()),
        116 => Verdict::Rejected("it demands a certificate".into()),
        40 => refused("handshake failure"),
        51 => refused("wrong signature"),
        70 => refused("no common TLS version"),
        120 => refused("it does not speak this version of Wayferry"),
        _ => refused(&format!("alert {alert}")),
    }
}

/// Why an attempt at `address` failed before its handshake was complete. Nothing that a peer says so early proves
/// anything but the certificate that it shows.
pub(super) fn connect_error(address: SocketAddr, error: &ConnectionError, after: Duration) -> ConnectError {
    match verdict(error) {
        Some(Verdict::WrongFingerprint) => return ConnectError::WrongFingerprint { address },
        Some(Verdict::Certificate(fault)) => return ConnectError::Certificate { address, fault },
        Some(Verdict::Rejected(reason) | Verdict::Other(reason)) => {
            return ConnectError::Tls { address, reason };
        }
        None => {}
    }
    match error {
        ConnectionError::TimedOut => ConnectError::TimedOut { after },
        ConnectionError::VersionMismatch => ConnectError::NoCommonVersion { address },
        // Only the peer can say anything to the application (RFC 9000 §12.5).
        ConnectionError::ApplicationClosed(close) if close.error_code == NOT_ADMITTED.into() => {
            ConnectError::Rejected { address, reason: bounded(&String::from_utf8_lossy(&close.reason)) }
        }
        error => ConnectError::Refused { address, reason: bounded(&error.to_string()) },
    }
}

/// Why a connection that had come about is over. `ours`: what this side closed it with. `proven`: its handshake was
/// complete, so that only the peer can have ended it.
pub(super) fn close_reason(error: &ConnectionError, ours: Option<CloseReason>, proven: bool) -> CloseReason {
    match verdict(error).filter(|_| proven) {
        Some(Verdict::WrongFingerprint) => {
            return CloseReason::TlsRefused("the certificate is not the expected one".into());
        }
        Some(Verdict::Certificate(fault)) => {
            return CloseReason::TlsRefused(format!("the certificate {fault}"));
        }
        Some(Verdict::Rejected(reason) | Verdict::Other(reason)) => return CloseReason::TlsRefused(reason),
        None => {}
    }
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let text = String::from_utf8_lossy(&close.reason);
            match u32::try_from(close.error_code.into_inner()) {
                Ok(GIVEN_UP) => CloseReason::LinkLost(bounded(&text)),
                Ok(NOT_ADMITTED) => CloseReason::TlsRefused(bounded(&text)),
                Ok(code) => CloseReason::from_wire(code, &text),
                Err(_) => CloseReason::Other { code: u32::MAX, text: bounded(&text) },
            }
        }
        ConnectionError::LocallyClosed => {
            ours.unwrap_or_else(|| CloseReason::LinkLost("the endpoint was shut down".into()))
        }
        ConnectionError::TimedOut => CloseReason::LinkLost("nothing was heard for too long".into()),
        ConnectionError::Reset => {
            CloseReason::LinkLost("the peer does not know the connection any more".into())
        }
        error => CloseReason::LinkLost(bounded(&error.to_string())),
    }
}

fn bounded(text: &str) -> String {
    sanitise(text, MAX_REASON)
}

/// The application code of a carrier that was dropped without a close: the code of [`CloseReason::LinkLost`], which
/// the session never puts on the wire.
pub(super) const GIVEN_UP: u32 = 7;

/// The application code of an app side that knows a ticket, but does not admit its owner any more: the code of
/// [`CloseReason::TlsRefused`], which the session never puts on the wire either.
pub(super) const NOT_ADMITTED: u32 = 8;

/// What is told of one whose certificate is not admitted.
pub(super) const UNKNOWN_HERE: &str = "it does not accept this side's certificate";

#[cfg(test)]
mod tests {
    use noq::{ApplicationClose, ConnectionClose, VarInt};

    use super::*;

    fn peer_closed(code: u64) -> ConnectionError {
        ConnectionError::ConnectionClosed(ConnectionClose {
            error_code: VarInt::from_u64(code).unwrap().into(),
            frame_type: noq_proto::MaybeFrame::None,
            reason: Default::default(),
        })
    }

    #[test]
    fn crypto_errors_count_in_a_transport_close_only() {
        let address = ([127, 0, 0, 1], 1).into();
        let error = connect_error(address, &peer_closed(0x12a), Duration::ZERO);
        assert!(matches!(error, ConnectError::Tls { .. }));
        assert!(error.to_string().contains("does not accept this side's certificate"), "{error}");
        // H3_NO_ERROR is 0x100 of an application close.
        let close = ApplicationClose { error_code: VarInt::from_u32(0x100), reason: "bye".into() };
        let error = ConnectionError::ApplicationClosed(close);
        assert!(matches!(connect_error(address, &error, Duration::ZERO), ConnectError::Refused { .. }));
        assert_eq!(close_reason(&error, None, true), CloseReason::Other { code: 0x100, text: "bye".into() });
        for code in [0xff, 0x200] {
            let error = connect_error(address, &peer_closed(code), Duration::ZERO);
            assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
        }
    }

    /// Anyone who saw the first packet can send the close; the host itself, when the handshake is complete.
    #[test]
    fn regression_an_alert_counts_before_the_peer_has_proved_who_it_is() {
        let address: SocketAddr = ([127, 0, 0, 1], 1).into();
        for alert in 0..=255 {
            let error = peer_closed(0x100 + alert);
            assert!(!connect_error(address, &error, Duration::ZERO).is_verdict(), "{alert}");
            assert!(matches!(close_reason(&error, None, false), CloseReason::LinkLost(_)), "{alert}");
            assert!(matches!(close_reason(&error, None, true), CloseReason::TlsRefused(_)), "{alert}");
        }
    }

    #[test]
    fn alerts_have_words() {
        let address: SocketAddr = ([127, 0, 0, 1], 1).into();
        let error = |alert: u64| connect_error(address, &peer_closed(0x100 + alert), Duration::ZERO);
        for alert in [42, 43, 44, 45, 46, 48, 49] {
            assert!(
                matches!(error(alert), ConnectError::Tls { reason, .. } if reason == UNKNOWN_HERE),
                "{alert}"
            );
        }
        for (alert, text) in [(40, "handshake failure"), (70, "no common TLS version"), (199, "alert 199")] {
            let expected = format!("the peer refused it: {text}");
            assert!(matches!(error(alert), ConnectError::Tls { reason, .. } if reason == expected));
        }
        // Nothing answered is no verdict, nor is another version of QUIC.
        for error in [ConnectionError::TimedOut, ConnectionError::VersionMismatch, ConnectionError::Reset] {
            assert!(!connect_error(address, &error, Duration::ZERO).is_verdict(), "{error:?}");
        }
    }

    #[test]
    fn no_words_of_tls_leave_no_gap() {
        let error = ConnectError::Tls { address: ([127, 0, 0, 1], 1).into(), reason: String::new() };
        assert_eq!(error.to_string(), "TLS handshake with `127.0.0.1:1` failed");
    }

    #[test]
    fn our_own_codes_are_those_of_reasons_that_no_session_sends() {
        assert_eq!(CloseReason::LinkLost(String::new()).to_wire().0, GIVEN_UP);
        assert_eq!(CloseReason::TlsRefused(String::new()).to_wire().0, NOT_ADMITTED);
        let close = ApplicationClose { error_code: NOT_ADMITTED.into(), reason: UNKNOWN_HERE.into() };
        let error = ConnectionError::ApplicationClosed(close);
        assert_eq!(close_reason(&error, None, true), CloseReason::TlsRefused(UNKNOWN_HERE.into()));
        assert!(connect_error(([127, 0, 0, 1], 1).into(), &error, Duration::ZERO).is_verdict());
    }
}
