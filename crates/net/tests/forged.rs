//! Somebody who sees what a display sends first, and answers in the host's place: nothing of that is a verdict.

mod common;
mod forge;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use common::*;
use forge::{FORGERIES, Forger, Forgery, Packets, answers, close};
use wayferry_net::quic::{ConnectError, Listener, Options, Reconnect, connect};
use wayferry_net::{Identity, Peers};
use wayferry_proto::{Arrival, Class, CloseReason, Priority, StreamId, Transmit};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(30);

/// What stops the host instead.
const TO_THE_HOST: [(&str, Forgery); 2] = [
    ("a close of the display's", |seen| Packets::Follow(vec![seen.follow(&close(0))])),
    ("a frame that may not come, of the display's", |seen| Packets::Follow(vec![seen.follow(&[0x1d, 8, 0])])),
];

#[test]
fn regression_a_forged_packet_ends_a_first_attempt() {
    for (what, forgery) in FORGERIES.into_iter().chain(TO_THE_HOST) {
        let (host, mut listener) = host();
        let forger = Forger::start(listener.local_addr(), forgery, 0..2);
        let display = Identity::ephemeral().unwrap();
        // The host may be stopped when the display has proof of it already; then its carrier is lost, and it comes
        // again.
        let come = |_| {
            let connected =
                connect(&[forger.address], &display, host.fingerprint(), PATIENCE, &Options::default());
            let mut carrier = connected.unwrap_or_else(|error| panic!("{what}: {error}")).0.carrier;
            send_all(&mut *carrier, 0, Class::Events, &b"key"[..]);
            let app = listener.accept(Duration::from_secs(2));
            while let Some(arrival) = carrier.poll_arrival() {
                let Arrival::Closed { reason } = arrival else { continue };
                assert!(matches!(reason, CloseReason::LinkLost(_)), "{what}: {reason}");
            }
            app.map(|app| (app.carrier, carrier))
        };
        let (mut app, _display) = (0..4).find_map(come).unwrap_or_else(|| panic!("{what}: nothing came"));
        assert_eq!(Streams::receive(&mut *app, 1).whole[&0], b"key", "{what}");
    }
}

#[test]
fn regression_a_forged_packet_is_a_verdict() {
    let patience = Duration::from_millis(700);
    for (what, forgery) in FORGERIES.into_iter().chain(TO_THE_HOST) {
        let (host, listener) = host();
        let forger = Forger::start(listener.local_addr(), forgery, 0..usize::MAX);
        let display = Identity::ephemeral().unwrap();
        let tried = connect(&[forger.address], &display, host.fingerprint(), patience, &Options::default());
        // The host may be faster than the forger.
        if let Err(error) = tried {
            assert!(!error.is_verdict(), "{what}: {error}");
        }
    }
}

/// One that comes back says its first words as early data, and never twice in one attempt; so it is the next attempt
/// that succeeds.
#[test]
fn regression_a_forged_packet_ends_a_search() {
    for (what, forgery) in FORGERIES.into_iter().chain(TO_THE_HOST) {
        let (host, mut listener) = host();
        let forger = Forger::start(listener.local_addr(), forgery, 1..2);
        let display = Identity::ephemeral().unwrap();
        let reconnect =
            Reconnect::new(&[forger.address], &display, host.fingerprint(), &Options::default()).unwrap();
        let (connected, _) = reconnect.connect(Vec::new(), PATIENCE).unwrap();
        let accepted = listener.accept(PATIENCE).unwrap();
        accepted.carrier.welcome();
        drop((connected, accepted));
        let back = (0..8).find_map(|_| match reconnect.connect(hello(), Duration::from_secs(3)) {
            Ok((connected, _)) => Some(connected),
            Err(error) => {
                assert!(!error.is_verdict(), "{what}: {error}");
                None
            }
        });
        assert!(back.is_some(), "{what}");
    }
}

/// What is wrong with one address is told if no other was right.
#[test]
fn regression_a_wrong_certificate_at_one_address_ends_the_race() {
    let (host, mut listener) = host();
    let (_, impostor) = self::host();
    let display = Identity::ephemeral().unwrap();
    let connect = |addresses: &[SocketAddr]| {
        connect(addresses, &display, host.fingerprint(), PATIENCE, &Options::default())
    };
    let (right, wrong) = (listener.local_addr(), impostor.local_addr());
    // The right one comes later: its first packet is lost.
    let slow = Forger::start(right, |_| answers([]), 0..1);
    for addresses in [[wrong, right], [right, wrong], [wrong, slow.address]] {
        let (connected, _) = connect(&addresses).unwrap();
        assert_eq!(connected.peer, Some(host.fingerprint()));
        assert!(listener.accept(PATIENCE).is_some());
    }
    let error = connect(&[wrong]).err().unwrap();
    assert!(matches!(error, ConnectError::WrongFingerprint { address } if address == wrong), "{error}");
}

fn host() -> (Identity, Listener) {
    let host = Identity::ephemeral().unwrap();
    let listener = Listener::bind(LOCAL, None, &host, Peers::Secret, &Options::default()).unwrap();
    (host, listener)
}

fn hello() -> Vec<Transmit> {
    let (stream, priority) = (StreamId(0), Priority::new(Class::Control, 0));
    let data = Transmit::Data { stream, bytes: "hello".into(), finish: false };
    vec![Transmit::Open { stream, priority }, data]
}
