//! Hosts with public certificates, good and bad: what `wayferry attach` makes of each, and how it says so.

#[path = "../../net/tests/certificates/mod.rs"]
mod authority;
#[allow(dead_code, reason = "several test programs share it")]
mod rig;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

use authority::{Authority, Kind, NAME};
use wayferry_net::Ticket;
use wayferry_stage::Config;

use rig::{OnStage, Process, Site, stage};

/// A place, a compositor, an authority.
struct Scene {
    site: Site,
    stage: OnStage,
    authority: Authority,
}

impl Scene {
    fn new() -> Self {
        Self { site: Site::new(), stage: stage(&Config::default()), authority: Authority::new() }
    }

    /// A host with such a certificate, and its ticket.
    fn host(&self, kind: Kind) -> (Process, Ticket) {
        let (certificate, key) = self.authority.files(kind);
        let files = [certificate, key].map(|path| path.to_str().expect("text").to_owned());
        let mut host = self.site.host(&["--cert", &files[0], "--key", &files[1], "--"], &["true"]);
        let ticket = host.first_line().parse().expect("a ticket");
        (host, ticket)
    }

    /// `wayferry attach` that asks for a name and would wait for 20 s.
    fn attach(&self, name: &str, ticket: &Ticket) -> Process {
        let ca = self.authority.ca();
        let options = ["--tls-name", name, "--ca", ca.to_str().expect("text"), "--timeout", "20"];
        self.site.attach(&self.stage, &options, &ticket.to_string())
    }
}

#[test]
fn a_public_certificate_stands_for_the_tickets() {
    let scene = Scene::new();
    let (mut host, mut ticket) = scene.host(Kind::Good);
    // The name decides, not the ticket.
    ticket.fingerprint = wayferry_net::Fingerprint([1; 32]);
    let mut attach = scene.attach(NAME, &ticket);
    assert_eq!((host.code(), attach.code()), (0, 0), "{}", attach.stderr());
    let events = attach.events();
    let trust = events.iter().find(|event| event["event"] == "trust-named").expect("it is told");
    assert_eq!(trust["name"], "host.test", "{trust}");
}

#[test]
fn each_bad_certificate_ends_with_19_and_one_line() {
    let scene = Scene::new();
    for (kind, name, words) in [
        (Kind::Expired, NAME, "has expired"),
        (Kind::NotYetValid, NAME, "is not valid yet"),
        (Kind::SelfSigned, NAME, "is self-signed"),
        (Kind::OtherAuthority, NAME, "comes from an authority that is not trusted"),
        (Kind::OtherName, NAME, "host name mismatch: the certificate at `127.0.0.1:"),
        (Kind::Address, NAME, "is not for `host.test`"),
        (Kind::Good, "127.0.0.1", "is not for `127.0.0.1`"),
    ] {
        let (_host, ticket) = scene.host(kind);
        let mut attach = scene.attach(name, &ticket);
        attach.fails(19, words);
    }
}

/// A display that waited for the dead address, or tried it after the verdict, would end with 18.
#[test]
fn a_dead_address_beside_a_self_signed_one_changes_nothing() {
    let scene = Scene::new();
    let (_host, ticket) = scene.host(Kind::SelfSigned);
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (live, dead) = (ticket.addresses[0], silent.local_addr().expect("an address"));
    for addresses in [[dead, live], [live, dead]] {
        let ticket = Ticket { addresses: addresses.into(), ..ticket.clone() };
        let words = format!("verification failed: the certificate at `{live}` is self-signed");
        scene.attach(NAME, &ticket).fails(19, &words);
    }
}

#[test]
fn a_missing_authority_is_told_before_anything_is_sent() {
    let scene = Scene::new();
    let (_host, ticket) = scene.host(Kind::Good);
    let watched = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    watched.set_nonblocking(true).expect("an option");
    let address: SocketAddr = watched.local_addr().expect("an address");
    let ticket = Ticket { addresses: vec![address], ..ticket }.to_string();
    let options = ["--tls-name", NAME, "--ca", "/no/such/ca.pem"];
    let mut attach = scene.site.attach(&scene.stage, &options, &ticket);
    attach.fails(16, "`/no/such/ca.pem`");
    let received = watched.recv(&mut [0; 2000]).expect_err("nothing came");
    assert_eq!(received.kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_hosts_own_files_are_looked_at_before_it_listens() {
    let scene = Scene::new();
    let (certificate, _) = scene.authority.files(Kind::Good);
    let certificate = certificate.to_str().expect("text");
    let host = |cert: &str, key: &str| scene.site.host(&["--cert", cert, "--key", key, "--"], &["true"]);
    host("/no/cert", certificate).fails(74, "`/no/cert`");
    host(certificate, certificate).fails(74, "holds no private key in PEM");
    let (_, other) = scene.authority.files(Kind::SelfSigned);
    host(certificate, other.to_str().expect("text")).fails(16, "keys may not be consistent");
}
