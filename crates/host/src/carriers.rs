//! The carriers of `wayferry_net` with our errors around them.
//!
//! Connecting takes seconds, so it runs in the background while this thread watches for signals. Nothing else is
//! decided here. Invariant: every error of the net crate becomes exactly one of ours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use wayferry_net::quic::{
    ConnectError, Connected, ListenError, Listener, Options, Reconnect, SetupError, Warning,
};
use wayferry_net::ticket::ADDRESSES_MAX;
use wayferry_net::{ByteStream, Carrier, Identity, Peers, Trust};

use crate::edge::signals::Signals;
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// A fresh identity for this run.
pub fn identity() -> Result<Arc<Identity>, Error> {
    Identity::ephemeral().map(Arc::new).map_err(|error| Error::Tls(error.to_string()))
}

/// Connects to whichever address answers first.
///
/// # Errors
/// [`Error::NothingAnswered`], those of certificates and of TLS, [`Error::Signal`] and what the system refuses.
pub fn connect(
    options: &Options,
    addresses: &[SocketAddr],
    identity: &Arc<Identity>,
    trust: impl Into<Trust>,
    patience: Duration,
    signals: &Signals,
    reporter: &Reporter,
) -> Result<(Box<dyn Carrier>, Reconnect), Error> {
    let reconnect = reconnect(options, addresses, identity, trust)?;
    let mut attempt = reconnect.attempt(Vec::new(), patience).map_err(setup_error)?;
    loop {
        match attempt.poll() {
            Some(Ok((Connected { carrier, .. }, warnings))) => {
                warn(warnings, reporter);
                return Ok((carrier, reconnect));
            }
            Some(Err(error)) => return Err(connect_error(addresses, patience, error)),
            None => drop(signals.wait_readable(&[attempt.wake_fd()], None)?),
        }
    }
}

/// The way to the app side at one of these addresses; nothing is sent there yet.
///
/// # Errors
/// The identity cannot be used.
pub fn reconnect(
    options: &Options,
    addresses: &[SocketAddr],
    identity: &Identity,
    trust: impl Into<Trust>,
) -> Result<Reconnect, Error> {
    Reconnect::new(addresses, identity, trust, options).map_err(setup_error)
}

/// Listens for displays.
pub fn listen(
    options: &Options,
    address: SocketAddr,
    ports: Option<RangeInclusive<u16>>,
    identity: &Identity,
    peers: Peers,
    reporter: &Reporter,
) -> Result<Listener, Error> {
    match Listener::bind(address, ports, identity, peers, options) {
        Ok(mut listener) => {
            warn(listener.take_warnings(), reporter);
            Ok(listener)
        }
        Err(error) => Err(listen_error(address, error)),
    }
}

/// A carrier over a connected stream socket.
pub fn byte_stream(socket: OwnedFd) -> Result<Box<dyn Carrier>, Error> {
    ByteStream::spawn_on_socket(socket).map_err(|source| Error::System { doing: "starting the link", source })
}

/// The same, of which nothing is read until the session is pumped: lines come before what the other carrier says.
///
/// # Errors
/// The system has no thread or descriptor left.
pub fn byte_stream_behind_lines(socket: OwnedFd) -> Result<Box<dyn Carrier>, Error> {
    ByteStream::spawn_unread(socket).map_err(|source| Error::System { doing: "starting the link", source })
}

/// Tells the user what should be known of a socket.
pub(crate) fn warn(warnings: Vec<Warning>, reporter: &Reporter) {
    for warning in warnings {
        reporter.report(SessionEvent::UdpBuffer { text: warning.to_string() });
    }
}

/// What a user is told of it.
pub fn connect_error(tried: &[SocketAddr], waited: Duration, error: ConnectError) -> Error {
    match error {
        ConnectError::WrongFingerprint { .. } => Error::Fingerprint(error.to_string()),
        ConnectError::Certificate { .. } => Error::Certificate(error.to_string()),
        ConnectError::Rejected { .. } => Error::Rejected(error.to_string()),
        ConnectError::NoCommonVersion { .. } => Error::Incompatible(error.to_string()),
        ConnectError::Tls { reason, .. } => Error::Tls(reason),
        ConnectError::Setup(error) => setup_error(error),
        ConnectError::Refused { .. } | ConnectError::Unreachable { .. } => {
            Error::Refused { tried: tried.to_vec(), reason: error.to_string() }
        }
        _ => Error::NothingAnswered { tried: tried.to_vec(), waited },
    }
}

fn listen_error(address: SocketAddr, error: ListenError) -> Error {
    let in_use = || std::io::ErrorKind::AddrInUse.into();
    match error {
        ListenError::PortInUse { address } => Error::Bind { address: address.to_string(), source: in_use() },
        ListenError::NoFreePort { ports } => Error::Bind {
            address: format!("{}, ports {} to {}", address.ip(), ports.start(), ports.end()),
            source: in_use(),
        },
        ListenError::Bind { address, source } => Error::Bind { address: address.to_string(), source },
        ListenError::Setup(error) => setup_error(error),
        _ => Error::Bind { address: address.to_string(), source: std::io::Error::other(error.to_string()) },
    }
}

fn setup_error(error: SetupError) -> Error {
    match error {
        SetupError::Qlog { directory, source } => Error::File { path: directory, source },
        SetupError::System(source) => Error::System { doing: "setting up QUIC", source },
        SetupError::Tls(reason) => Error::Tls(reason),
        _ => Error::Tls(error.to_string()),
    }
}

/// Where a socket bound to `bound` can be reached from elsewhere: the address from which this machine sends to others
/// first, that of the loopback device last.
pub fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let all = interfaces.iter().filter(|interface| interface.is_oper_up()).map(if_addrs::Interface::ip);
    addresses(bound, far_addresses().into_iter().chain(all))
}

/// Those of `found` that a socket bound to `bound` has, each once.
fn addresses(bound: SocketAddr, found: impl Iterator<Item = IpAddr>) -> Vec<SocketAddr> {
    let loopback: IpAddr =
        if bound.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    let mut addresses = Vec::new();
    for ip in found.filter(|ip| is_elsewhere(*ip) && (ip.is_ipv4() || bound.is_ipv6())) {
        let address = SocketAddr::new(ip, bound.port());
        if addresses.len() < ADDRESSES_MAX - 1 && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.push(SocketAddr::new(loopback, bound.port()));
    addresses
}

/// Whether another machine can send there: an address of a single link has no meaning without its interface.
fn is_elsewhere(ip: IpAddr) -> bool {
    let is_of_a_link = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !ip.is_unspecified() && !ip.is_loopback() && !is_of_a_link
}

/// The addresses from which this machine sends to others.
fn far_addresses() -> Vec<IpAddr> {
    // Connecting a UDP socket sends nothing but shows the address that the system would send from. The far addresses
    // are those set aside for documentation (RFC 5737, RFC 3849), so they are routed like any other.
    let far4 = (Ipv4Addr::UNSPECIFIED.into(), SocketAddr::from(([192, 0, 2, 1], 9)));
    let far6 = (Ipv6Addr::UNSPECIFIED.into(), SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9)));
    let found = [far4, far6].map(|(any, far): (IpAddr, _)| {
        let socket = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(far).map(|()| socket));
        socket.and_then(|socket| socket.local_addr()).map(|address| address.ip())
    });
    found.into_iter().flatten().collect()
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

    #[test]
    fn a_bound_address_is_where_it_is_reached() {
        let bound = SocketAddr::from(([127, 0, 0, 1], 4433));
        assert_eq!(reachable(bound), [bound]);
    }

    #[test]
    fn a_ticket_names_every_address_that_others_can_reach() {
        let ips: Vec<IpAddr> = [
            "10.0.0.2",
            "192.168.1.5",
            "10.0.0.2",
            "169.254.1.1",
            "fe80::1",
            "2001:db8::7",
            "127.0.0.1",
            "::1",
        ]
        .map(|ip| ip.parse().expect("an address"))
        .into();
        let told = |bound: &str| {
            let bound: SocketAddr = bound.parse().expect("an address");
            let told = addresses(bound, ips.iter().copied());
            told.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(told("0.0.0.0:9"), ["10.0.0.2:9", "192.168.1.5:9", "127.0.0.1:9"]);
        assert_eq!(told("[::]:9"), ["10.0.0.2:9", "192.168.1.5:9", "[2001:db8::7]:9", "[::1]:9"]);
        let many = (0..99).map(|n| IpAddr::from([10, 0, 0, n]));
        assert_eq!(addresses("[::]:9".parse().expect("an address"), many).len(), ADDRESSES_MAX);
    }

    #[test]
    fn an_unspecified_address_is_reached_at_real_ones() {
        let found = reachable(SocketAddr::from(([0, 0, 0, 0], 4433)));
        assert!(found.contains(&SocketAddr::from(([127, 0, 0, 1], 4433))), "{found:?}");
        assert!(
            found.iter().all(|address| !address.ip().is_unspecified() && address.port() == 4433),
            "{found:?}"
        );
    }
}
