//! Tests of a site in TLS, as browsers elsewhere meet it.

use std::io::{Read, Write};
use std::net::SocketAddr;

use rustls::crypto::ring as provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::super::{Tls, bind_everywhere};
use super::tests::site;
use super::*;
use crate::identity::Identity;

/// A site for guests, and what trusts it.
pub(super) struct Guests {
    server: Server,
    pub(super) port: u16,
    roots: RootCertStore,
}

fn guests() -> Guests {
    guests_of(site)
}

/// The same of this site, which is told its origin.
pub(super) fn guests_of(site: impl FnOnce(&str) -> Arc<Site>) -> Guests {
    let (listeners, port) = bind_everywhere(0).expect("a port");
    let (tls, roots) = tls();
    let site = site(&format!("https://page.test:{port}"));
    Guests { server: Server::start(listeners, site, Some(tls)).expect("threads"), port, roots }
}

fn tls() -> (Tls, RootCertStore) {
    let made = rcgen::generate_simple_self_signed(["page.test".to_owned()]).expect("a certificate");
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("PEM");
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(chain.as_bytes()).expect("a certificate");
    roots.add(root).expect("an authority");
    (Tls::new(&identity).expect("they fit"), roots)
}

impl Guests {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).expect("it listens")
    }

    /// A browser with this TLS.
    pub(super) fn browser(&self, alpn: &[&[u8]]) -> StreamOwned<ClientConnection, TcpStream> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("a version")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|it| it.to_vec()).collect();
        let name = ServerName::try_from("page.test").expect("a name");
        let inside = ClientConnection::new(Arc::new(config), name).expect("TLS");
        StreamOwned::new(inside, self.connect())
    }

    /// What is answered to such a browser.
    fn fetch(&self, alpn: &[&[u8]]) -> io::Result<(String, Vec<u8>)> {
        let mut stream = self.browser(alpn);
        let request = format!("GET / HTTP/1.1\r\nHost: page.test:{}\r\n\r\n", self.port);
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let alpn = stream.conn.alpn_protocol().map(<[u8]>::to_vec).unwrap_or_default();
        Ok((String::from_utf8(answer).expect("text"), alpn))
    }

    fn is_well(&self) {
        let (answer, _) = self.fetch(&[]).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{}", &answer[..300]);
    }
}

#[test]
fn guests_fetch_the_page_with_http_1_alone() {
    let guests = guests();
    let (answer, alpn) = guests.fetch(&[b"h2", b"http/1.1"]).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!((body.len(), &alpn[..]), (300_000, &b"http/1.1"[..]));
    assert!(!head.to_ascii_lowercase().contains("strict-transport-security"), "{head}");
    assert!(guests.fetch(&[b"h2"]).is_err(), "another protocol");
}

#[test]
fn no_door_opens_in_tls() {
    let guests = guests();
    guests.server.shared.site.open_once("/".into(), "/#wf1:x".into());
    // A program of this very user.
    guests.is_well();
}

#[test]
fn a_site_for_guests_is_at_all_addresses_and_its_port_is_taken() {
    let guests = guests();
    for ip in ["127.0.0.1", "127.0.0.2", "::1"] {
        let ip = ip.parse().expect("an address");
        match TcpStream::connect(SocketAddr::new(ip, guests.port)) {
            Ok(_) => {}
            // A machine may have no IPv6.
            Err(error) => {
                assert!(ip.is_ipv6() && error.kind() != io::ErrorKind::ConnectionRefused, "{error}")
            }
        }
    }
    assert!(bind_everywhere(guests.port).is_err() && super::super::bind(guests.port).is_err());
}

#[test]
fn what_is_no_handshake_gets_no_answer_of_the_site_and_harms_nobody() {
    let guests = guests();
    let http = format!("GET / HTTP/1.1\r\nHost: page.test:{}\r\n\r\n", guests.port);
    // A record that says it has a ClientHello, whose bytes are none; and one that is longer than any may be.
    let hello = [&[0x16, 3, 1, 0, 64, 1, 0, 0, 60][..], &[0xa5; 60]].concat();
    let long = [&[0x16, 3, 1, 0xff, 0xff][..], &[1; 70_000]].concat();
    for bytes in [http.as_bytes(), &hello, &long, &[0; 500], &[0xff; 500], &[0x80, 0x2e, 1, 0, 2]] {
        let mut stream = guests.connect();
        // It may have ended the connection before all was sent.
        let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        // RFC 8446 §6: an alert has its kind, a version, a length and two bytes.
        assert!(heard.is_empty() || (heard[0] == 21 && heard.len() == 7), "{heard:?} for {:?}", &bytes[..5]);
    }
    guests.is_well();
}

#[test]
fn slow_handshakes_hold_up_nobody_and_the_oldest_has_to_go() {
    let guests = guests();
    let slow: Vec<_> = (0..GUESTS_MAX + 8).map(|_| guests.connect()).collect();
    for mut stream in &slow {
        // The first ones may have gone.
        let _ = stream.write_all(&[0x16, 3, 1, 2, 0, 1]);
    }
    guests.is_well();
    let mut heard = Vec::new();
    let _ = (&slow[0]).read_to_end(&mut heard);
    assert!(heard.is_empty(), "it was closed");
    drop(guests.server);
    let mut last = &slow[GUESTS_MAX + 7];
    assert_eq!(last.read(&mut [0; 64]).unwrap_or(0), 0, "nothing was said to it until the end");
}

#[test]
fn a_handshake_has_the_time_of_a_request() {
    let (listeners, port) = bind_everywhere(0).expect("a port");
    let mut slow = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let (stream, _) = listeners[0].accept().expect("it was called");
    slow.write_all(&[0x16, 3, 1, 2, 0, 1]).expect("room");
    let over = Timed::new(stream, Instant::now());
    let (connections, gone, is_over) = Default::default();
    let shared = Shared { site: site("https://page.test"), tls: None, connections, gone, is_over };
    let inside = tls().0.accept(over).expect("TLS");
    let ended = serve_on(inside, 0, &shared).map_err(|error| error.kind());
    assert_eq!(ended, Err(io::ErrorKind::TimedOut));
    assert_eq!(slow.read(&mut [0; 64]).unwrap_or(0), 0, "nothing was said to it");
}

#[test]
fn who_opens_many_connections_closes_his_own() {
    let (listener, port) = bind_everywhere(0).expect("a port");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut connections = Connections::default();
    let from = ["192.0.2.1", "192.0.2.9", "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "192.0.2.9"];
    for (number, from) in (1..).zip(from) {
        let from = place(from.parse().expect("an address"));
        let stream = stream.try_clone().expect("a descriptor");
        connections.open.push(Connection { number, from, stream });
    }
    let gone: Vec<_> = std::iter::from_fn(|| connections.take_one()).map(|gone| gone.number).collect();
    assert_eq!(gone, [2, 3, 1, 4, 5, 6], "of the place that has two, then the oldest");
    drop(listener);
}
