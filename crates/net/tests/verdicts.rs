//! What a display is told when TLS refuses, with real certificates on real handshakes.

mod certificates;
mod common;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use certificates::*;
use common::*;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::sync::oneshot;
use wayferry_net::quic::{CertificateFault, ConnectError, Connected, Listener, Options, Reconnect, connect};
use wayferry_net::{Identity, Peers, Roots, Trust};
use wayferry_proto::{Class, Priority, StreamId, Transmit};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(20);
/// For what is no verdict, and told when the time is over.
const BRIEF: Duration = Duration::from_secs(2);

fn listen(identity: &Identity) -> Listener {
    Listener::bind(LOCAL, None, identity, Peers::Secret, &Options::default()).unwrap()
}

fn attempt(addresses: &[SocketAddr], trust: impl Into<Trust>) -> Result<Connected, ConnectError> {
    attempt_for(PATIENCE, addresses, trust)
}

fn attempt_for(
    patience: Duration,
    addresses: &[SocketAddr],
    trust: impl Into<Trust>,
) -> Result<Connected, ConnectError> {
    let display = Identity::ephemeral().unwrap();
    connect(addresses, &display, trust, patience, &Options::default()).map(|(connected, _)| connected)
}

#[test]
fn a_public_certificate_for_the_name_is_enough() {
    let authority = Authority::new();
    let host = authority.identity(Kind::Good);
    let mut listener = listen(&host);
    let connected = attempt(&[listener.local_addr()], authority.trust(NAME)).unwrap();
    assert_eq!(connected.peer, Some(host.fingerprint()));
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    send_all(&mut *accepted.carrier, 0, Class::Events, &b"welcome"[..]);
    let mut carrier = connected.carrier;
    assert_eq!(Streams::receive(&mut *carrier, 1).whole[&0], b"welcome");
    // An address is a name, too.
    let by_address = listen(&authority.identity(Kind::Address));
    assert!(attempt(&[by_address.local_addr()], authority.trust("127.0.0.1")).is_ok());
}

/// `openssl req -x509` makes such a certificate unless told otherwise.
#[test]
fn regression_a_certificate_that_was_given_as_an_authority_is_refused_as_a_hosts() {
    let authority = Authority::new();
    let given = |kind, name| {
        let (certificate, key) = authority.files(kind);
        let listener = listen(&Identity::load(&certificate, &key).unwrap());
        let trust = Trust::named(name, Roots::load(Some(&certificate)).unwrap()).unwrap();
        attempt(&[listener.local_addr()], trust).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(given(Kind::OwnAuthority, NAME), Ok(()));
    assert_eq!(given(Kind::SelfSigned, NAME), Ok(()));
    let refused = |kind, name, words: &str| given(kind, name).is_err_and(|told| told.contains(words));
    assert!(refused(Kind::OwnAuthority, "another.test", "is not for `another.test`"));
    assert!(refused(Kind::ExpiredAuthority, NAME, "has expired"));
    // It is this one that is trusted, and no other that says the same of itself.
    let listener = listen(&authority.identity(Kind::OwnAuthority));
    let error = attempt(&[listener.local_addr()], authority.trust(NAME)).err().unwrap();
    assert!(error.to_string().contains("is self-signed"), "{error}");
}

#[test]
fn each_bad_certificate_is_named() {
    let authority = Authority::new();
    let wrong = |expected: &str| CertificateFault::WrongName { expected: expected.into() };
    for (kind, name, expected, words) in [
        (Kind::Expired, NAME, CertificateFault::Expired, "has expired"),
        (Kind::NotYetValid, NAME, CertificateFault::NotYetValid, "is not valid yet"),
        (Kind::SelfSigned, NAME, CertificateFault::SelfSigned, "is self-signed"),
        (Kind::OtherAuthority, NAME, CertificateFault::UnknownIssuer, "authority that is not trusted"),
        (Kind::OtherName, NAME, wrong(NAME), "host name mismatch: "),
        (Kind::Address, NAME, wrong(NAME), "is not for `host.test`"),
        (Kind::Good, "127.0.0.1", wrong("127.0.0.1"), "is not for `127.0.0.1`"),
    ] {
        let listener = listen(&authority.identity(kind));
        let error = attempt(&[listener.local_addr()], authority.trust(name)).err().unwrap();
        assert!(error.is_verdict() && error.to_string().contains(words), "{kind:?}: {error}");
        let ConnectError::Certificate { address, fault } = error else { panic!("{kind:?}: {error}") };
        assert_eq!((address, fault), (listener.local_addr(), expected), "{kind:?}");
    }
}

/// The dead address answers nothing: one that waited for it to the end would tell of a timeout.
#[test]
fn a_verdict_is_final_whichever_address_comes_first() {
    let authority = Authority::new();
    let listener = listen(&authority.identity(Kind::SelfSigned));
    let dead = UdpSocket::bind(LOCAL).unwrap().local_addr().unwrap();
    let silent = UdpSocket::bind(LOCAL).unwrap();
    let (live, silent) = (listener.local_addr(), silent.local_addr().unwrap());
    for addresses in [[dead, live], [live, dead], [silent, live], [live, silent]] {
        let error = attempt(&addresses, authority.trust(NAME)).err().unwrap();
        let told = format!("the certificate at `{live}` is self-signed");
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn another_application_protocol_is_another_version_of_wayferry() {
    let server = other_version(LOCAL);
    let pinned = Identity::ephemeral().unwrap().fingerprint();
    let error = attempt_for(BRIEF, &[server.address], pinned).err().unwrap();
    // Everyone can say so who sees the first packet.
    assert!(!error.is_verdict());
    assert!(matches!(&error, ConnectError::Tls { reason, .. } if reason == OTHER_VERSION), "{error}");
}

#[test]
fn so_it_is_for_early_data() {
    let (host, display) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(&host);
    let address = listener.local_addr();
    let reconnect = Reconnect::new(&[address], &display, host.fingerprint(), &Options::default()).unwrap();
    let (mut connected, _) = reconnect.connect(Vec::new(), PATIENCE).unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    send_all(&mut *accepted.carrier, 0, Class::Events, &b"welcome"[..]);
    assert_eq!(Streams::receive(&mut *connected.carrier, 1).whole[&0], b"welcome");
    drop((accepted, connected, listener));
    // The host was replaced by one of another version.
    let _server = other_version(address);
    assert!(reconnect.has_ticket());
    let priority = Priority::new(Class::Control, 0);
    let early = vec![Transmit::Open { stream: StreamId(0), priority }];
    let error = reconnect.connect(early, PATIENCE).err().unwrap();
    assert!(matches!(&error, ConnectError::Tls { reason, .. } if reason == OTHER_VERSION), "{error}");
}

#[test]
fn another_version_of_quic_is_announced() {
    let mut versions = EndpointConfig::default();
    // Reserved, so that no peer speaks it (RFC 9000 §15).
    versions.supported_versions(vec![0x0a1a_2a3a]);
    let server = Server::start(LOCAL, server_tls(), versions);
    let pinned = Identity::ephemeral().unwrap().fingerprint();
    let error = attempt_for(BRIEF, &[server.address], pinned).err().unwrap();
    assert!(
        matches!(error, ConnectError::NoCommonVersion { address } if address == server.address),
        "{error}"
    );
}

#[test]
fn a_display_without_a_certificate_is_told_that_one_is_demanded() {
    let authority = Authority::new();
    let mut listener = listen(&authority.identity(Kind::Good));
    let mut roots = rustls::RootCertStore::empty();
    let ca = std::fs::read(authority.ca()).unwrap();
    roots.add(rustls::pki_types::pem::PemObject::from_pem_slice(&ca).unwrap()).unwrap();
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"wayferry/1".to_vec()];
    let config = noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let told = runtime().block_on(async {
        let endpoint = Endpoint::client(LOCAL).unwrap();
        match endpoint.connect_with(config, listener.local_addr(), NAME).unwrap().await {
            Ok(connection) => connection.closed().await,
            Err(error) => error,
        }
    });
    // CRYPTO_ERROR with the alert certificate_required (RFC 8446 §6.2).
    let noq::ConnectionError::ConnectionClosed(close) = told else { panic!("{told}") };
    assert_eq!(u64::from(close.error_code), 0x100 + 116);
    assert!(listener.poll_accept().is_none());
}

/// Of another version than ours.
fn other_version(at: SocketAddr) -> Server {
    let mut tls = server_tls();
    tls.alpn_protocols = vec![b"wayferry/0".to_vec()];
    Server::start(at, tls, EndpointConfig::default())
}

const OTHER_VERSION: &str = "the peer refused it: it does not speak this version of Wayferry";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A server of somebody else's.
fn server_tls() -> rustls::ServerConfig {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap()
}

/// It accepts every peer that gets that far, on a thread of its own.
struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(at: SocketAddr, tls: rustls::ServerConfig, config: EndpointConfig) -> Self {
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let server = noq::ServerConfig::with_crypto(Arc::new(crypto));
        let socket = UdpSocket::bind(at).unwrap();
        let address = socket.local_addr().unwrap();
        let (stop, mut stopped) = oneshot::channel();
        let serve = async move {
            let endpoint = Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime)).unwrap();
            loop {
                tokio::select! {
                    incoming = endpoint.accept() => drop(incoming.unwrap().await),
                    _ = &mut stopped => return,
                }
            }
        };
        let thread = std::thread::spawn(move || runtime().block_on(serve));
        Self { address, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
