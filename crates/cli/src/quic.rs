//! The carriers of `wayferry_net` with our errors and options around them.
//!
//! Connecting takes seconds, so it runs in the background while this thread watches for signals. Nothing else is decided here. Invariant: every error of the net crate becomes exactly one of ours.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use wayferry_net::quic::{
    ConnectError, Connected, ListenError, Listener, Options, Reconnect, SetupError, Warning,
};
use wayferry_net::{ByteStream, Carrier, Fingerprint, Identity, Peers, Roots, Trust};

use crate::error::{Error, SessionError};
use crate::flags::{AttachFlags, HostFlags, OwnFlags};
use crate::run::signals::Signals;
use crate::tell::{OwnEvent, tell};

/// A fresh identity for this run.
pub(crate) fn identity() -> Result<Arc<Identity>, SessionError> {
    Identity::ephemeral().map(Arc::new).map_err(|error| SessionError::Tls(error.to_string()))
}

/// The identity that a host was given, or a fresh one.
pub(crate) fn host_identity(host: &HostFlags) -> Result<Arc<Identity>, Error> {
    let (Some(cert), Some(key)) = (&host.cert, &host.key) else { return Ok(identity()?) };
    Identity::load(cert, key).map(Arc::new).map_err(|error| Error::OwnCertificate(error.to_string()))
}

/// What makes the host of a ticket the right one. Says which authorities may vouch for it, if any.
pub(crate) fn trust(attach: &AttachFlags, pinned: Fingerprint) -> Result<Trust, Error> {
    let Some(name) = &attach.tls_name else { return Ok(pinned.into()) };
    let roots = Roots::load(attach.ca.as_deref()).map_err(|error| Error::Authorities(error.to_string()))?;
    tell(&OwnEvent::TrustNamed { name, roots: &roots.to_string() });
    Trust::named(name, roots)
        .map_err(|error| Error::Usage(format!("cannot use `--tls-name {name}`: {error}")))
}

/// Connects to whichever address answers first.
///
/// # Errors
/// [`SessionError::NothingAnswered`], those of certificates and of TLS, [`SessionError::Signal`] and what the system refuses.
pub(crate) fn connect(
    own: &OwnFlags,
    addresses: &[SocketAddr],
    identity: &Arc<Identity>,
    trust: impl Into<Trust>,
    patience: Duration,
    signals: &Signals,
) -> Result<(Box<dyn Carrier>, Reconnect), SessionError> {
    let reconnect = Reconnect::new(addresses, identity, trust, &options(own)).map_err(setup_error)?;
    let mut attempt = reconnect.attempt(Vec::new(), patience).map_err(setup_error)?;
    loop {
        match attempt.poll() {
            Some(Ok((Connected { carrier, .. }, warnings))) => {
                warn(warnings);
                return Ok((carrier, reconnect));
            }
            Some(Err(error)) => return Err(connect_error(addresses, patience, error)),
            None => drop(signals.wait_readable(&[attempt.wake_fd()], None)?),
        }
    }
}

/// Listens for displays.
pub(crate) fn listen(
    own: &OwnFlags,
    address: SocketAddr,
    identity: &Identity,
    peers: Peers,
) -> Result<Listener, SessionError> {
    match Listener::bind(address, own.port.clone(), identity, peers, &options(own)) {
        Ok(mut listener) => {
            warn(listener.take_warnings());
            Ok(listener)
        }
        Err(error) => Err(listen_error(address, error)),
    }
}

/// A carrier over a connected stream socket.
pub(crate) fn byte_stream(socket: OwnedFd) -> Result<Box<dyn Carrier>, SessionError> {
    ByteStream::spawn_on_socket(socket)
        .map_err(|source| SessionError::System { doing: "starting the link", source })
}

/// What the flags say of QUIC.
pub(crate) fn options(own: &OwnFlags) -> Options {
    let congestion = own.congestion.unwrap_or_default();
    let mut options = Options { qlog: own.qlog.clone(), congestion, ..Options::default() };
    if let Some(silence) = own.silence {
        options.idle_timeout = silence;
        // Often enough that one lost packet is not silence.
        options.keep_alive = options.keep_alive.min(silence / 4);
    }
    options
}

fn warn(warnings: Vec<Warning>) {
    for warning in warnings {
        tell(&OwnEvent::UdpBuffer { text: &warning.to_string() });
    }
}

/// What a user is told of it.
pub(crate) fn connect_error(tried: &[SocketAddr], waited: Duration, error: ConnectError) -> SessionError {
    match error {
        ConnectError::WrongFingerprint { .. } => SessionError::Fingerprint(error.to_string()),
        ConnectError::Certificate { .. } => SessionError::Certificate(error.to_string()),
        ConnectError::Rejected { .. } => SessionError::Rejected(error.to_string()),
        ConnectError::NoCommonVersion { .. } => SessionError::Incompatible(error.to_string()),
        ConnectError::Tls { reason, .. } => SessionError::Tls(reason),
        ConnectError::Setup(error) => setup_error(error),
        ConnectError::Refused { .. } | ConnectError::Unreachable { .. } => {
            SessionError::Refused { tried: tried.to_vec(), reason: error.to_string() }
        }
        _ => SessionError::NothingAnswered { tried: tried.to_vec(), waited },
    }
}

fn listen_error(address: SocketAddr, error: ListenError) -> SessionError {
    let in_use = || std::io::ErrorKind::AddrInUse.into();
    match error {
        ListenError::PortInUse { address } => {
            SessionError::Bind { address: address.to_string(), source: in_use() }
        }
        ListenError::NoFreePort { ports } => SessionError::Bind {
            address: format!("{}, ports {} to {}", address.ip(), ports.start(), ports.end()),
            source: in_use(),
        },
        ListenError::Bind { address, source } => SessionError::Bind { address: address.to_string(), source },
        ListenError::Setup(error) => setup_error(error),
        _ => SessionError::Bind {
            address: address.to_string(),
            source: std::io::Error::other(error.to_string()),
        },
    }
}

fn setup_error(error: SetupError) -> SessionError {
    match error {
        SetupError::Qlog { directory, source } => SessionError::File { path: directory, source },
        SetupError::System(source) => SessionError::System { doing: "setting up QUIC", source },
        SetupError::Tls(reason) => SessionError::Tls(reason),
        _ => SessionError::Tls(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use wayferry_net::quic::CertificateFault;

    use super::*;

    /// The rows of docs/exit-codes.md.
    #[test]
    fn certificates_have_their_lines() {
        let address: SocketAddr = ([192, 0, 2, 1], 9).into();
        let line = |error| connect_error(&[address], Duration::from_secs(20), error).to_string();
        let fault = |fault| line(ConnectError::Certificate { address, fault });
        let wrong = CertificateFault::WrongName { expected: "host.test".into() };
        let none = String::new;
        for (told, expected) in [
            (
                fault(wrong),
                "verification failed: host name mismatch: the certificate at `192.0.2.1:9` is not for `host.test`",
            ),
            (
                fault(CertificateFault::SelfSigned),
                "verification failed: the certificate at `192.0.2.1:9` is self-signed",
            ),
            (line(ConnectError::Tls { address, reason: none() }), "TLS handshake failed"),
            (
                line(ConnectError::TimedOut { after: Duration::ZERO }),
                "connection timed out: no answer from `192.0.2.1:9` within 20 s",
            ),
        ] {
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn each_failure_has_its_exit_code() {
        let address: SocketAddr = ([127, 0, 0, 1], 9).into();
        let code = |error| connect_error(&[address], Duration::from_secs(1), error).code();
        assert_eq!(code(ConnectError::WrongFingerprint { address }), 19);
        for fault in [CertificateFault::Expired, CertificateFault::SelfSigned] {
            assert_eq!(code(ConnectError::Certificate { address, fault }), 19);
        }
        assert_eq!(code(ConnectError::Rejected { address, reason: "x".into() }), 19);
        assert_eq!(code(ConnectError::NoCommonVersion { address }), 75);
        assert_eq!(code(ConnectError::Tls { address, reason: "x".into() }), 16);
        assert_eq!(code(ConnectError::TimedOut { after: Duration::ZERO }), 18);
        assert_eq!(code(ConnectError::NoAddress), 18);
        assert_eq!(code(ConnectError::Unreachable { address, reason: "x".into() }), 18);
        assert_eq!(listen_error(address, ListenError::PortInUse { address }).code(), 73);
        assert_eq!(listen_error(address, ListenError::NoFreePort { ports: 1..=2 }).code(), 73);
    }
}
