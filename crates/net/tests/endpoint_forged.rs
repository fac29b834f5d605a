//! Somebody who sees what a client sends first, and answers in the server's place once: that ends no attempt to
//! connect.

mod forge;
mod rig;

use std::net::UdpSocket;

use forge::{FORGERIES, Forger};
use rig::*;
use wayferry_net::endpoint::{
    Admission, ClientTls, Config, Failure, ServerTls, ServerTrust, Target, connect,
};
use wayferry_net::{Fingerprint, Identity};

/// It ended with the first forged packet.
#[test]
fn regression_a_forged_packet_ends_an_attempt_to_connect() {
    for (what, forgery) in FORGERIES {
        let tls = server_tls();
        let mut listener = listener(&tls, Config::default(), Admission::default());
        let forger = Forger::start(listener.local_address(), forgery, 0..1);
        let connected = wait(connect(engine(), target(forger.address), client_tls(&tls), Config::default()));
        assert!(connected.is_ok(), "{what}: {connected:?}");
        drop(connected);
        drop(accept(&mut listener));
    }
}

/// What is wrong with one address is told if no other was right.
#[test]
fn regression_a_wrong_certificate_at_one_address_ends_an_attempt_to_connect() {
    let tls = server_tls();
    let impostor = ServerTls { identity: std::sync::Arc::new(Identity::ephemeral().unwrap()), ..tls.clone() };
    let right = listener(&tls, Config::default(), Admission::default());
    let wrong = listener(&impostor, Config::default(), Admission::default());
    let dead = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let (right, wrong) = (right.local_address(), wrong.local_address());
    let connect = |addresses: &[_]| {
        let target = Target { addresses: addresses.to_vec(), ..target(right) };
        wait(connect(engine(), target, client_tls(&tls), Config::default()))
    };
    for addresses in [[wrong, right], [right, wrong]] {
        assert!(connect(&addresses).is_ok());
    }
    for addresses in [&[wrong][..], &[wrong, dead], &[dead, wrong]] {
        let failure = connect(addresses).unwrap_err();
        assert!(matches!(&failure, Failure::Tls { text, .. } if text.contains("pinned")), "{failure:?}");
    }
    let pins = ServerTrust::Pins(vec![Fingerprint([7; 32])]);
    let neither = ClientTls { trust: pins, ..client_tls(&tls) };
    let failure = wait(wayferry_net::endpoint::connect(engine(), target(right), neither, Config::default()));
    assert!(matches!(failure, Err(Failure::Tls { .. })));
}
