//! Sound: short channels that nothing keeps, datagrams, and who listens.

use super::*;
use crate::{Listen, MAX_SOUND};

const LISTEN: Listen = Listen { track: 1, rate: 96_000, target: 80, delay: 120 };

/// Two sides that can resume and understand sound, past their hellos.
fn pair() -> Pair {
    let configs = resumable_configs().map(|config| {
        let capabilities = config.capabilities.with(Capabilities::SOUND);
        Config { capabilities, ..config }
    });
    let [app, display] = configs;
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 0);
    pair.run(Duration::from_millis(200));
    pair.forget();
    pair
}

/// The packets on channels that came, by their first bytes.
fn packets(end: &End) -> Vec<u8> {
    let packets = end.events.iter().filter_map(|event| match event {
        Event::Sound { bytes } => bytes.first().copied(),
        _ => None,
    });
    packets.collect()
}

fn datagrams(end: &End) -> Vec<Bytes> {
    let datagrams = end.events.iter().filter_map(|event| match event {
        Event::Datagram { bytes } => Some(bytes.clone()),
        _ => None,
    });
    datagrams.collect()
}

#[test]
fn packets_come_in_order_and_each_channel_may_be_given_up() {
    let mut pair = pair();
    let groups: Vec<ChannelId> = (0..3).map(|_| pair.app().open(Header::Sound)).collect();
    for n in 0..9 {
        pair.app().send_sound(groups[n / 3], &[n as u8; 240]).unwrap();
        if n % 3 == 2 {
            pair.app().finish(groups[n / 3]);
        }
        pair.run(Duration::from_millis(20));
    }
    pair.run(Duration::from_millis(200));
    assert_eq!(packets(&pair.ends[DISPLAY]), (0..9).collect::<Vec<_>>());
    pair.app().reset(groups[1], STREAM_CANCELLED);
    pair.settle();
    let resets = |transmit: &&Transmit| matches!(transmit, Transmit::Reset { .. });
    assert_eq!(pair.ends[APP].transmits.iter().filter(resets).count(), 1, "although it was finished");
    pair.run(Duration::from_millis(200));
    assert!(pair.ends.iter().all(|end| end.closed().is_empty() && end.warnings() == 0));
    assert!(pair.app().send_sound(groups[0], &[0; MAX_SOUND + 1]).is_err());
}

#[test]
fn a_channel_that_waits_is_not_waited_for_by_the_next() {
    let mut pair = pair();
    let (first, second) = (pair.app().open(Header::Sound), pair.app().open(Header::Sound));
    pair.app().send_sound(first, &[1; 10]).unwrap();
    pair.app().send_sound(second, &[2; 10]).unwrap();
    pair.settle();
    let streams = pair.ends[APP].transmits.iter().filter_map(|transmit| match transmit {
        Transmit::Open { stream, priority } => Some((*stream, priority.class())),
        _ => None,
    });
    let streams: Vec<_> = streams.collect();
    assert_eq!(streams.len(), 2);
    assert!(streams.iter().all(|(_, class)| *class == Class::Audio));
}

#[test]
fn nothing_of_sound_goes_on_over_another_carrier() {
    let mut pair = pair();
    let (open, finished) = (pair.app().open(Header::Sound), pair.app().open(Header::Sound));
    pair.app().send_sound(open, &[1; 10]).unwrap();
    pair.app().send_sound(finished, &[2; 10]).unwrap();
    pair.app().finish(finished);
    pair.cut();
    pair.lose();
    let past = pair.app().open(Header::Sound);
    pair.app().send_sound(past, &[3; 10]).unwrap();
    pair.app().send_datagram(b"past");
    assert!(!pair.app().listen(LISTEN), "there is no peer to tell");
    pair.app().reset(past, STREAM_CANCELLED);
    pair.reconnect();
    pair.run(Duration::from_secs(1));
    assert_eq!(packets(&pair.ends[DISPLAY]), [0; 0]);
    assert!(datagrams(&pair.ends[DISPLAY]).is_empty());
    // What was opened before means nothing, and what is opened now does.
    pair.app().send_sound(open, &[4; 10]).unwrap();
    let channel = pair.app().open(Header::Sound);
    pair.app().send_sound(channel, &[5; 10]).unwrap();
    pair.run(Duration::from_millis(200));
    assert_eq!(packets(&pair.ends[DISPLAY]), [5]);
    assert!(pair.ends.iter().all(|end| end.closed().is_empty() && end.session.retained() == 0));
}

#[test]
fn datagrams_and_listening_need_both_sides() {
    let mut pair = pair();
    pair.app().send_datagram(b"copies");
    assert!(pair.display().listen(LISTEN));
    pair.run(Duration::from_millis(200));
    assert_eq!(datagrams(&pair.ends[DISPLAY]), [Bytes::from_static(b"copies")]);
    assert!(pair.ends[APP].events.contains(&Event::Control(Control::Listen(LISTEN))));

    let mut deaf = Pair::resumable();
    deaf.app().send_datagram(b"copies");
    assert!(!deaf.display().listen(LISTEN));
    assert!(deaf.app().control(&Control::Listen(LISTEN)).is_err(), "it has a call of its own");
    deaf.run(Duration::from_millis(200));
    assert!(deaf.ends[APP].transmits.iter().all(|transmit| !matches!(transmit, Transmit::Datagram { .. })));
    // A peer that does so all the same is not heard, and not punished.
    let now = deaf.now;
    for bytes in [&[7, 1][..], &[2, 1], &[99], &[]] {
        deaf.display().receive(now, Arrival::Datagram { bytes: Bytes::copy_from_slice(bytes) });
    }
    deaf.run(Duration::from_millis(200));
    assert!(datagrams(&deaf.ends[DISPLAY]).is_empty());
    assert!(deaf.ends.iter().all(|end| end.closed().is_empty()));
}

#[test]
fn finished_channels_that_are_not_given_up_are_forgotten() {
    let mut pair = pair();
    let before = pair.ends[APP].session.outgoing.entries();
    for n in 0..500 {
        let channel = pair.app().open(Header::Sound);
        pair.app().send_sound(channel, &[n as u8; 100]).unwrap();
        pair.app().finish(channel);
        pair.run(Duration::from_millis(10));
    }
    assert!(pair.ends[APP].session.outgoing.entries() <= before + 64);
    pair.run(Duration::from_millis(200));
    assert_eq!(packets(&pair.ends[DISPLAY]).len(), 500);
}
