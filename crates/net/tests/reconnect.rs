//! Coming back with a ticket: what leaves early, who is believed, what is refused, and attempts in the background.

mod certificates;
mod common;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use certificates::*;
use common::*;
use wayferry_net::quic::{
    Attempt, CertificateFault, ConnectError, Connected, Listener, Options, Reconnect, Warning,
};
use wayferry_net::{Admitted, Identity, Peers, Trust};
use wayferry_proto::{Class, CloseReason, Priority, StreamId, Transmit};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(20);

fn listen(at: SocketAddr, identity: &Identity, peers: Peers) -> Listener {
    Listener::bind(at, None, identity, peers, &Options::default()).unwrap()
}

fn reconnect(addresses: &[SocketAddr], identity: &Identity, trust: impl Into<Trust>) -> Reconnect {
    Reconnect::new(addresses, identity, trust, &Options::default()).unwrap()
}

/// What may leave early: one stream with a word.
fn word(text: &'static str) -> Vec<Transmit> {
    let (stream, priority) = (StreamId(0), Priority::new(Class::Control, 0));
    let data = Transmit::Data { stream, bytes: text.as_bytes().into(), finish: true };
    vec![Transmit::Open { stream, priority }, data]
}

/// Connects and looks at both ends; the app side answers, so that tickets have come when it returns.
fn meet(reconnect: &Reconnect, listener: &mut Listener, text: &'static str) -> (Connected, Connected) {
    let (mut display, _) = reconnect.connect(word(text), PATIENCE).unwrap();
    let mut app = listener.accept(PATIENCE).unwrap();
    app.carrier.welcome();
    assert_eq!(Streams::receive(&mut *app.carrier, 1).whole[&0], text.as_bytes());
    send_all(&mut *app.carrier, 0, Class::Control, &b"welcome"[..]);
    assert_eq!(Streams::receive(&mut *display.carrier, 1).whole[&0], b"welcome");
    (display, app)
}

#[test]
fn who_comes_back_is_the_one_that_was_there() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Pinned(identity.fingerprint()));
    let reconnect = reconnect(&[listener.local_addr()], &identity, host.fingerprint());
    assert!(!reconnect.has_ticket());
    let (display, app) = meet(&reconnect, &mut listener, "first");
    assert!(!display.early && !app.early && reconnect.has_ticket());
    for _ in 0..8 {
        let (mut display, mut app) = meet(&reconnect, &mut listener, "again");
        assert!(display.early && app.early);
        assert_eq!((display.peer, app.peer), (Some(host.fingerprint()), Some(identity.fingerprint())));
        // What comes after is not early, and comes.
        send_all(&mut *display.carrier, 1, Class::Pipe, vec![3; 2 << 20]);
        assert_eq!(Streams::receive(&mut *app.carrier, 1).whole[&1].len(), 2 << 20);
        close(&mut *display.carrier, &CloseReason::Done);
        assert_eq!(closed(&mut *app.carrier), CloseReason::Done);
    }
}

/// All that reaches the app side is the display's first flight; it must be enough to be heard.
#[test]
fn early_data_is_there_before_the_handshake_is() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Pinned(identity.fingerprint()));
    let relay = Relay::start(listener.local_addr());
    let reconnect = reconnect(&[relay.address], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    relay.first_flights_only();
    let _attempt = reconnect.attempt(word("early"), PATIENCE).unwrap();
    let mut app = listener.accept(PATIENCE).unwrap();
    app.carrier.welcome();
    assert!(app.early);
    assert_eq!(app.peer, Some(identity.fingerprint()));
    assert_eq!(Streams::receive(&mut *app.carrier, 1).whole[&0], b"early");
}

#[test]
fn a_first_flight_that_is_sent_again_is_heard_once() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Pinned(identity.fingerprint()));
    let relay = Relay::start(listener.local_addr());
    let through = reconnect(&[relay.address], &identity, host.fingerprint());
    drop(meet(&through, &mut listener, "first"));
    relay.flights.try_iter().for_each(drop);
    let (display, app) = meet(&through, &mut listener, "early");
    assert!(display.early && app.early);
    let stranger = UdpSocket::bind(LOCAL).unwrap();
    for datagram in relay.flights.try_iter() {
        stranger.send_to(&datagram, listener.local_addr()).unwrap();
    }
    // The next one to come in is the next that really comes.
    let direct = reconnect(&[listener.local_addr()], &identity, host.fingerprint());
    let (_display, app) = meet(&direct, &mut listener, "after");
    assert!(!app.early && listener.poll_accept().is_none());
}

/// The peer has heard who comes where early data went; of two ways to the same host, that one is to win.
#[test]
fn regression_the_way_that_early_data_took_wins_among_equals() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let mut listener = listen(any, &host, Peers::Pinned(identity.fingerprint()));
    let port = listener.local_addr().port();
    let at = |last| SocketAddr::from(([127, 0, 0, last], port));
    let reconnect = reconnect(&[at(1)], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    reconnect.add_addresses(&[at(2), at(3)]);
    for round in 0..20 {
        let (mut display, _) = reconnect.connect(word("here"), PATIENCE).unwrap();
        assert!(display.early, "round {round}");
        // The others may have come in, too, and gone.
        let mut app = std::iter::from_fn(|| listener.accept(PATIENCE)).find(|app| app.early).unwrap();
        assert_eq!(Streams::receive(&mut *app.carrier, 1).whole[&0], b"here");
        send_all(&mut *app.carrier, 0, Class::Control, &b"welcome"[..]);
        assert_eq!(Streams::receive(&mut *display.carrier, 1).whole[&0], b"welcome");
    }
}

#[test]
fn early_data_that_was_not_taken_is_sent_again() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Secret);
    let address = listener.local_addr();
    let reconnect = reconnect(&[address], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    drop(listener);
    // The same host, which has forgotten its tickets.
    let mut listener = listen(address, &host, Peers::Secret);
    let (display, app) = meet(&reconnect, &mut listener, "early");
    assert!(!display.early && !app.early);
}

#[test]
fn a_ticket_does_not_help_another_certificate() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Secret);
    let address = listener.local_addr();
    let reconnect = reconnect(&[address], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    drop(listener);
    let mut impostor = listen(address, &Identity::ephemeral().unwrap(), Peers::Secret);
    let error = reconnect.connect(word("early"), PATIENCE).err().unwrap();
    assert!(matches!(error, ConnectError::WrongFingerprint { address: told } if told == address), "{error}");
    assert!(impostor.poll_accept().is_none());
}

#[test]
fn a_certificate_that_expired_meanwhile_is_refused_on_the_early_path_too() {
    let (authority, identity) = (Authority::new(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &authority.identity(Kind::Good), Peers::Secret);
    let address = listener.local_addr();
    let reconnect = reconnect(&[address], &identity, authority.trust(NAME));
    drop(meet(&reconnect, &mut listener, "first"));
    drop(listener);
    for (kind, expected) in
        [(Kind::Expired, CertificateFault::Expired), (Kind::SelfSigned, CertificateFault::SelfSigned)]
    {
        assert!(reconnect.has_ticket());
        let _listener = listen(address, &authority.identity(kind), Peers::Secret);
        let error = reconnect.connect(word("early"), PATIENCE).err().unwrap();
        assert!(matches!(&error, ConnectError::Certificate { fault, .. } if *fault == expected), "{error}");
    }
}

/// TLS asks the list only in a whole handshake.
#[test]
fn regression_who_was_dismissed_does_not_come_back_with_a_ticket() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let admitted = Admitted::new();
    admitted.admit(identity.fingerprint());
    let mut listener = listen(LOCAL, &host, Peers::Listed(admitted.clone()));
    let reconnect = reconnect(&[listener.local_addr()], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    admitted.dismiss(identity.fingerprint());
    match reconnect.connect(word("early"), PATIENCE) {
        Ok((mut display, _)) => {
            let reason = closed(&mut *display.carrier);
            assert!(matches!(reason, CloseReason::TlsRefused(_)), "{reason}");
        }
        Err(error) => assert!(matches!(error, ConnectError::Rejected { .. }), "{error}"),
    }
    assert!(listener.poll_accept().is_none());
}

#[test]
fn the_address_that_worked_is_the_first_next_time() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = listen(LOCAL, &host, Peers::Secret);
    let silent = UdpSocket::bind(LOCAL).unwrap();
    let (dead, live) = (silent.local_addr().unwrap(), listener.local_addr());
    let reconnect = reconnect(&[dead, live], &identity, host.fingerprint());
    drop(meet(&reconnect, &mut listener, "first"));
    assert_eq!(reconnect.addresses(), [live, dead]);
    reconnect.add_addresses(&[dead, LOCAL]);
    assert_eq!(reconnect.addresses(), [live, dead, LOCAL]);
    assert!(meet(&reconnect, &mut listener, "early").0.early);
}

#[test]
fn a_patient_attempt_meets_a_host_that_comes_later() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let address = listen(LOCAL, &host, Peers::Secret).local_addr();
    let mut attempt = reconnect(&[address], &identity, host.fingerprint()).persist(word("at last")).unwrap();
    assert!(attempt.poll().is_none());
    let mut listener = listen(address, &host, Peers::Secret);
    let (display, _) = end(&mut attempt).unwrap();
    assert!(attempt.poll().is_none());
    let mut app = listener.accept(PATIENCE).unwrap();
    app.carrier.welcome();
    assert_eq!(Streams::receive(&mut *app.carrier, 1).whole[&0], b"at last");
    drop(attempt);
    drop(display);
    assert!(matches!(closed(&mut *app.carrier), CloseReason::LinkLost(_)));
}

#[test]
fn even_a_patient_attempt_takes_a_verdict() {
    let (host, identity) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let listener = listen(LOCAL, &host, Peers::Secret);
    let mut attempt =
        reconnect(&[listener.local_addr()], &identity, identity.fingerprint()).persist(Vec::new()).unwrap();
    assert!(end(&mut attempt).err().unwrap().is_verdict());
}

fn end(attempt: &mut Attempt) -> Result<(Connected, Vec<Warning>), ConnectError> {
    wait_readable(attempt.wake_fd());
    attempt.poll().expect("readable means that it is over")
}

/// Forwards datagrams between displays, one after the other, and an app side; keeps copies of what displays send first.
struct Relay {
    address: SocketAddr,
    orders: Sender<()>,
    flights: Receiver<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(target: SocketAddr) -> Self {
        let socket = UdpSocket::bind(LOCAL).unwrap();
        let address = socket.local_addr().unwrap();
        let ((orders, ordered), (flight, flights)) = (channel(), channel());
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut client, mut answered, mut strict) = ([0; 65536], target, false, false);
            // An empty datagram is the end.
            while let Ok((length @ 1.., from)) = socket.recv_from(&mut buffer) {
                let datagram = &buffer[..length];
                if from == target {
                    answered = true;
                    let _ = socket.send_to(datagram, client);
                    continue;
                }
                if from != client {
                    (client, answered) = (from, false);
                    strict |= ordered.try_recv().is_ok();
                }
                let first = is_first(datagram, answered);
                if first {
                    let _ = flight.send(datagram.to_vec());
                }
                if first || !strict {
                    let _ = socket.send_to(datagram, target);
                }
            }
        });
        Self { address, orders, flights, thread: Some(thread) }
    }

    /// From the next display on.
    fn first_flights_only(&self) {
        self.orders.send(()).unwrap();
    }
}

/// Whether a display sent it before it can have read an answer: Initial packets, and 0-RTT packets at any time (RFC
/// 9000 §17.2).
fn is_first(datagram: &[u8], answered: bool) -> bool {
    let long = datagram[0] & 0x80 != 0;
    match (datagram[0] >> 4) & 3 {
        0 => long && !answered,
        1 => long,
        _ => false,
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = UdpSocket::bind(LOCAL).unwrap().send_to(&[], self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
