//! Fds and threads stay flat over many connections. One test in a process of its own, because it counts both.

mod common;

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::*;
use wayferry_net::quic::{Listener, Options, Reconnect, connect};
use wayferry_net::{ByteStream, Identity, Peers};
use wayferry_proto::{Class, CloseReason, Priority, StreamId, Transmit};

const PATIENCE: Duration = Duration::from_secs(20);

fn over_a_socket() {
    let (one, two) = UnixStream::pair().unwrap();
    let app = ByteStream::spawn_on_socket(one.into()).unwrap();
    let mut display = ByteStream::spawn_on_socket(two.into()).unwrap();
    drop(app);
    assert!(matches!(closed(&mut *display), CloseReason::LinkLost(_)));
}

fn over_quic(listener: &mut Listener) {
    let (address, fingerprint) = (listener.local_addr(), listener.fingerprint());
    let display = Identity::ephemeral().unwrap();
    let (mut connected, _) =
        connect(&[address], &display, fingerprint, PATIENCE, &Options::default()).unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    send_all(&mut *connected.carrier, 0, Class::Events, &b"hello"[..]);
    assert_eq!(Streams::receive(&mut *accepted.carrier, 1).whole[&0], b"hello");
    close(&mut *connected.carrier, &CloseReason::Done);
    assert_eq!(closed(&mut *accepted.carrier), CloseReason::Done);
}

/// With a ticket, where there is one.
fn back_over_quic(listener: &mut Listener, reconnect: &Reconnect) {
    let (stream, priority) = (StreamId(0), Priority::new(Class::Control, 0));
    let data = Transmit::Data { stream, bytes: (&b"back"[..]).into(), finish: true };
    let early = vec![Transmit::Open { stream, priority }, data];
    let (mut connected, _) = reconnect.connect(early, PATIENCE).unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    assert_eq!(Streams::receive(&mut *accepted.carrier, 1).whole[&0], b"back");
    close(&mut *accepted.carrier, &CloseReason::Done);
    assert_eq!(closed(&mut *connected.carrier), CloseReason::Done);
}

/// Fds and threads once no more than `threads` of the latter are left, or after long waiting. The kernel lists a thread
/// for a moment after it was joined.
fn settled(threads: usize) -> (usize, usize) {
    let start = Instant::now();
    while resources().1 > threads && start.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    resources()
}

#[test]
fn a_hundred_connections_of_each_kind_leave_nothing_behind() {
    let (_, threads) = resources();
    let app = Identity::ephemeral().unwrap();
    let bind = || {
        Listener::bind(([127, 0, 0, 1], 0).into(), None, &app, Peers::Secret, &Options::default()).unwrap()
    };
    // What the first use of anything keeps for the whole process is not a leak.
    over_quic(&mut bind());
    over_a_socket();
    let before = settled(threads);
    (0..100).for_each(|_| over_a_socket());
    assert_eq!(settled(threads), before);
    let mut listener = bind();
    (0..100).for_each(|_| over_quic(&mut listener));
    let (address, display) = (listener.local_addr(), Identity::ephemeral().unwrap());
    let options = Options::default();
    let reconnect = Reconnect::new(&[address], &display, listener.fingerprint(), &options).unwrap();
    (0..100).for_each(|_| back_over_quic(&mut listener, &reconnect));
    drop(listener);
    assert_eq!(settled(threads), before);
    // No peer answers any more; no caller waits for that, nor for what it leaves.
    for _ in 0..10 {
        let mut attempt = reconnect.attempt(Vec::new(), Duration::from_millis(1)).unwrap();
        wait_readable(attempt.wake_fd());
        assert!(attempt.poll().unwrap().is_err());
    }
    (0..100).for_each(|_| drop(reconnect.persist(Vec::new()).unwrap()));
    assert_eq!(settled(threads), before);
}
