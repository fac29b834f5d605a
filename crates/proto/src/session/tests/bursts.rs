//! What is sent besides rows where losses come in bursts: copies of events, late rows of answers, and what is sent once
//! more without an acknowledgement.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::repair::{PAYLOAD, Wire, chunks, link};
use super::*;
use crate::MAX_HEADER;
use crate::wire::Reader;

/// A link that loses one packet of fifty, so many at a time.
fn losing(burst: u64) -> LinkState {
    LinkState { acked_packets: 4000, lost_packets: 80, lost_runs: 80 / burst, ..link() }
}

/// Adaptive repair over this link.
fn wire(side: Side, link: LinkState) -> Wire {
    let mut wire = Wire::new(side, Repair::default());
    wire.link = link;
    wire.sender.session.set_link(wire.now, &link);
    wire
}

/// Everything that is to be sent now, as arrivals stream by stream, with the header of what is repair.
fn sent(wire: &mut Wire) -> Vec<(Option<RepairHeader>, Arrival)> {
    let mut all = Vec::new();
    while let Some(transmit) = wire.transmit() {
        let Transmit::Data { stream, bytes, .. } = transmit else { continue };
        let offset = wire.sent.entry(stream).or_default();
        let header = Reader::new(&bytes).bytes(MAX_HEADER, "header").and_then(Header::decode).ok();
        let repair = header.and_then(|header| match header {
            Header::Repair(header) if *offset == 0 => Some(header),
            _ => None,
        });
        all.push((repair, Arrival::Data { stream, offset: *offset, bytes: bytes.clone() }));
        *offset += bytes.len() as u64;
    }
    all
}

/// When rows leave within a second, in milliseconds after now, and their headers.
fn rows(wire: &mut Wire) -> Vec<(u64, RepairHeader)> {
    let begin = wire.now;
    let mut rows = Vec::new();
    for millis in 0..1000 {
        wire.now = begin + Duration::from_millis(millis);
        wire.sender.session.on_timeout(wire.now);
        rows.extend(sent(wire).into_iter().filter_map(|(header, _)| Some((millis, header?))));
    }
    rows
}

fn times(rows: &[(u64, RepairHeader)]) -> Vec<u64> {
    rows.iter().map(|(millis, _)| *millis).collect()
}

fn key(wire: &mut Wire) {
    let channel = wire.sender.session.open(events(1));
    wire.sender.session.send(channel, b"key").unwrap();
}

/// The app side answers an event with an update of so many packets.
fn answer(wire: &mut Wire, packets: usize) -> StreamId {
    let content = chunks(1, &vec![PAYLOAD - 50; packets]);
    wire.sender.session.send_content(update(1, 1), content, Worth::Answer).unwrap();
    let sent = sent(wire);
    let Some((None, Arrival::Data { stream, .. })) = sent.last() else { panic!("{sent:?}") };
    *stream
}

#[test]
fn a_key_is_copied_until_it_should_have_been_acknowledged() {
    let mut lossy = wire(Side::Display, losing(1));
    key(&mut lossy);
    assert_eq!(times(&rows(&mut lossy)), [2, 8, 16, 30, 55, 108]);
    let mut clean = wire(Side::Display, LinkState { acked_packets: 20_000, ..link() });
    key(&mut clean);
    assert_eq!(times(&rows(&mut clean)), [8]);
    let near = Duration::from_millis(5);
    let mut near = wire(Side::Display, LinkState { rtt: near, base_rtt: near, ..losing(1) });
    key(&mut near);
    assert_eq!(times(&rows(&mut near)), [2, 8, 14], "acknowledged after 13 ms at the latest");
}

/// The end of a channel has no bytes; a copy of none was refused.
#[test]
fn the_end_of_a_channel_is_not_copied() {
    let mut wire = wire(Side::Display, losing(1));
    let channel = wire.sender.session.open(events(1));
    sent(&mut wire);
    wire.now += Duration::from_millis(500);
    wire.sender.session.on_timeout(wire.now);
    sent(&mut wire);
    wire.sender.session.finish(channel);
    sent(&mut wire);
    wire.now += Duration::from_millis(20);
    wire.sender.session.on_timeout(wire.now);
    assert_eq!(sent(&mut wire), []);
}

#[test]
fn the_last_copy_alone_heals_everything_of_a_round_trip() {
    let mut wire = wire(Side::Display, losing(4));
    let channel = wire.sender.session.open(events(1));
    for number in 0..10_u8 {
        wire.sender.session.send(channel, &[number; 20]).unwrap();
        sent(&mut wire);
        wire.now += Duration::from_millis(10);
        wire.sender.session.on_timeout(wire.now);
    }
    let copies: Vec<_> = sent(&mut wire).into_iter().filter(|(header, _)| header.is_some()).collect();
    let (_, last) = copies.last().expect("a copy");
    wire.deliver([last]);
    assert_eq!(wire.messages(), (0..10).map(|number| vec![number; 20]).collect::<Vec<_>>());
}

#[test]
fn an_answer_has_late_rows_where_losses_come_in_bursts_and_goes_again_once() {
    let mut single = wire(Side::App, losing(1));
    answer(&mut single, 3);
    let rows_of_single = rows(&mut single);
    assert_eq!(times(&rows_of_single)[..2], [2, 2], "as the controller plans");
    assert!(times(&rows_of_single)[2..].iter().all(|millis| *millis == 108));
    let mut bursts = wire(Side::App, losing(4));
    answer(&mut bursts, 3);
    let rows_of_bursts = rows(&mut bursts);
    assert_eq!(times(&rows_of_bursts), [12, 12, 12, 108, 108, 108]);
    let indices: Vec<u8> = rows_of_bursts.iter().map(|(_, header)| header.index).collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5], "fresh ones");
}

/// With as many rows as packets, more than one answer in a hundred came a round trip later.
#[test]
fn a_long_answer_has_a_row_more_where_bursts_are_frequent() {
    let frequent = losing(4);
    let rare = LinkState { acked_packets: 8000, ..frequent };
    for (link, packets, late) in [(frequent, 6, 7), (frequent, 3, 3), (rare, 6, 6)] {
        let mut wire = wire(Side::App, link);
        answer(&mut wire, packets);
        let rows = rows(&mut wire);
        assert_eq!(rows.iter().filter(|(millis, _)| *millis == 12).count(), late, "{packets} packets");
        let fresh: Vec<u8> = rows.iter().skip(late).map(|(_, header)| header.index).collect();
        assert_eq!(fresh, (late as u8..).take(packets).collect::<Vec<_>>(), "no row goes twice");
    }
}

/// The first of its rows left with the burst, which is of use to none, and it had two for one packet.
#[test]
fn a_small_update_has_late_rows_where_losses_come_in_bursts() {
    for (packets, times_of_rows) in [(1, vec![12]), (3, vec![12; 3])] {
        let mut wire = wire(Side::App, losing(4));
        let content = chunks(1, &vec![PAYLOAD - 50; packets]);
        wire.sender.session.send_update(update(1, 1), content).unwrap();
        sent(&mut wire);
        assert_eq!(times(&rows(&mut wire)), times_of_rows, "{packets} packets");
    }
}

/// They waited for 12 ms over any link, which is more than half of a round trip of 20.
#[test]
fn late_rows_wait_for_a_fifth_of_a_round_trip_at_most() {
    for (rtt, first) in [(5, 2), (20, 4), (50, 10), (200, 12)] {
        let rtt = Duration::from_millis(rtt);
        let mut wire = wire(Side::App, LinkState { rtt, base_rtt: rtt, ..losing(4) });
        answer(&mut wire, 1);
        assert_eq!(times(&rows(&mut wire))[0], first, "{rtt:?}");
    }
}

#[test]
fn what_is_acknowledged_is_not_insisted_on() {
    let mut wire = wire(Side::App, losing(4));
    let stream = answer(&mut wire, 3);
    wire.now += Duration::from_millis(105);
    wire.sender.session.on_timeout(wire.now);
    sent(&mut wire);
    wire.sender.session.receive(wire.now, Arrival::Acknowledged { stream });
    assert_eq!(times(&rows(&mut wire)), []);
}

#[test]
fn jitter_makes_insisting_patient() {
    let jitter = LinkState { rtt_deviation: Duration::from_millis(10), ..losing(4) };
    let mut wire = wire(Side::App, jitter);
    answer(&mut wire, 1);
    assert_eq!(times(&rows(&mut wire)), [12, 140]);
}

/// Eight milliseconds after it left, an answer went again over any link.
#[test]
fn before_a_round_trip_is_known_nothing_is_insisted_on() {
    let mut wire = wire(Side::App, LinkState { rtt: Duration::ZERO, ..losing(4) });
    answer(&mut wire, 1);
    assert_eq!(times(&rows(&mut wire)), [2, 12]);
}

#[test]
fn what_waits_in_the_carrier_is_not_insisted_on_before_it_has_left() {
    let mut wire = wire(Side::App, losing(4));
    answer(&mut wire, 1);
    wire.link.unsent = 1 << 20;
    let begin = wire.now;
    wire.now += Duration::from_millis(100);
    assert_eq!(sent(&mut wire), []);
    wire.sender.session.on_timeout(wire.now);
    wire.now = begin + Duration::from_millis(110);
    wire.sender.session.on_timeout(wire.now);
    assert_eq!(times_of(&sent(&mut wire)), 1, "the late row alone");
    wire.link.unsent = 0;
    assert_eq!(times(&rows(&mut wire)), [108]);
}

fn times_of(sent: &[(Option<RepairHeader>, Arrival)]) -> usize {
    sent.iter().filter(|(header, _)| header.is_some()).count()
}

/// What came within 300 ms of any event was taken for an answer, and the display tells of each picture that it shows.
#[test]
fn what_answers_nothing_is_not_insisted_on() {
    let mut wire = wire(Side::App, losing(4));
    let shown = stream(events(1), |writer| {
        writer.bytes(b"shown");
    });
    wire.sender
        .session
        .receive(wire.now, Arrival::Data { stream: StreamId(1), offset: 0, bytes: shown.into() });
    wire.sender.events();
    sent(&mut wire);
    wire.sender.session.send_update(update(1, 1), chunks(1, &[500])).unwrap();
    assert_eq!(times(&rows(&mut wire)), [12]);
}

#[test]
fn the_end_of_a_large_update_is_asked_for_while_nothing_else_leaves() {
    let large = |quiet: bool| {
        let mut wire =
            wire(Side::App, LinkState { acked_packets: 20_000, rate: Some(100_000_000), ..link() });
        wire.sender.session.send_update(update(1, 1), chunks(1, &[50_000; 4])).unwrap();
        let mut left = Vec::new();
        for millis in 0..100 {
            wire.link.sent_packets += u64::from(!quiet);
            wire.sender.session.set_link(wire.now, &wire.link);
            wire.sender.session.on_timeout(wire.now);
            let probes = sent(&mut wire).into_iter().filter_map(|(header, _)| header);
            left.extend(probes.filter(|header| header.length < 100).map(|_| millis));
            wire.now += Duration::from_millis(1);
        }
        left
    };
    assert_eq!(large(true), [7, 11, 15, 28, 53], "it takes two milliseconds itself");
    assert_eq!(large(false), []);
}

/// As little as ever: the head again, and a row and one more for a burst.
#[test]
fn under_congestions_own_loss_there_is_none_of_it() {
    let congested = || {
        let mut wire = wire(Side::App, losing(4));
        let full = LinkState { queue_delay: Duration::from_millis(90), ..losing(4) };
        wire.link = LinkState { acked_packets: 6000, lost_packets: 480, lost_runs: 50, ..full };
        wire.sender.session.set_link(wire.now, &wire.link);
        wire
    };
    let mut updates = congested();
    answer(&mut updates, 3);
    assert_eq!(times(&rows(&mut updates)), [2, 2, 12]);
    let mut large = congested();
    large.sender.session.send_update(update(1, 1), chunks(1, &[50_000; 4])).unwrap();
    assert!(rows(&mut large).iter().all(|(millis, _)| *millis == 2));
    // The same without a queue, so that it is the queue that decides.
    let mut free = congested();
    free.link.queue_delay = Duration::ZERO;
    free.link.lost_packets += 1;
    free.sender.session.set_link(free.now, &free.link);
    answer(&mut free, 3);
    assert_eq!(times(&rows(&mut free)), [12, 12, 12, 108, 108, 108]);
}

/// Each queue that had stood gave the budget of 16 KiB anew.
#[test]
fn queues_that_come_and_go_leave_no_more_to_insist_on() {
    let slow = LinkState { rate: Some(20_000), ..losing(4) };
    let full = LinkState { queue_delay: Duration::from_millis(90), ..slow };
    let mut wire = wire(Side::App, slow);
    let (began, mut insisted) = (wire.now, BTreeSet::new());
    for round in 1..40 {
        for link in [full, slow] {
            let LinkState { acked_packets, lost_packets, lost_runs, .. } = wire.link;
            let (acked_packets, lost_packets) = (acked_packets + 200, lost_packets + 4);
            wire.link = LinkState { acked_packets, lost_packets, lost_runs: lost_runs + 1, ..link };
            wire.sender.session.set_link(wire.now, &wire.link);
            wire.sender.session.on_timeout(wire.now);
            sent(&mut wire);
        }
        let content = chunks(1, &[5000]);
        wire.sender.session.send_content(update(1, round), content, Worth::Answer).unwrap();
        for millis in 0..150 {
            wire.sender.session.on_timeout(wire.now);
            let rows = sent(&mut wire).into_iter().filter_map(|(header, _)| header);
            insisted.extend(rows.filter(|_| millis > 100).map(|header| header.stream));
            wire.now += Duration::from_millis(1);
        }
    }
    // What may be saved up, and what comes: 8 KiB a second.
    let most = (16 << 10) + (8 << 10) * wire.now.since(began).as_millis() / 1000;
    let bytes = 5000 * insisted.len() as u128;
    assert!(bytes > most / 2 && bytes <= most, "{bytes} of {most}");
}

#[test]
fn receipts_and_pings_have_no_rows() {
    let mut wire = wire(Side::Display, losing(1));
    let before = hello_stream(&hello_of(Side::App)).len() as u64;
    let ping = Control::Ping { token: 1, sent: HostTime(5) };
    wire.sender.data(0, before, &control_frame(&ping));
    let pong = sent(&mut wire);
    assert!(matches!(pong[..], [(None, Arrival::Data { stream: StreamId(0), .. })]), "{pong:?}");
    assert_eq!(times(&rows(&mut wire)), []);
    // The same of what is waited for.
    wire.sender.session.outgoing.control(&Control::Refused { kind: 99 });
    assert!(!rows(&mut wire).is_empty());
}

proptest! {
    /// Packets are lost, repeated and overtaken, and sent again at the end, as QUIC does.
    #[test]
    fn events_come_exactly_once_and_in_order(
        seed: u64,
        loss in 0_usize..900,
        burst in prop::sample::select(vec![1_u64, 4]),
    ) {
        let mut dice = Dice(seed);
        let mut wire = wire(Side::Display, losing(burst));
        let channels = [1, 2].map(|connection| wire.sender.session.open(events(connection)));
        let (mut said, mut heard) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        let (mut flying, mut late) = (Vec::new(), Vec::new());
        for number in 0..60_u16 {
            if dice.below(3) > 0 {
                let which = dice.below(2);
                // Some are too long to be copied.
                let length = if dice.below(8) == 0 { 300 } else { 2 + dice.below(30) };
                let mut message = dice.bytes(length);
                message[..2].copy_from_slice(&number.to_le_bytes());
                wire.sender.session.send(channels[which], &message).unwrap();
                said[which].push(Bytes::from(message));
            }
            wire.sender.session.on_timeout(wire.now);
            flying.extend(sent(&mut wire).into_iter().map(|(_, arrival)| arrival));
            wire.now += Duration::from_millis(dice.below(20) as u64);
            while flying.len() > dice.below(6) {
                let arrival = flying.swap_remove(dice.below(flying.len()));
                match dice.below(1000) < loss {
                    true => late.push(arrival),
                    false => (0..1 + dice.below(4) / 3).for_each(|_| wire.deliver([&arrival])),
                }
            }
            hear(&mut wire, &mut heard);
            for (heard, said) in heard.iter().zip(&said) {
                prop_assert!(said.starts_with(heard), "{heard:?}, and not the first of {said:?}");
            }
        }
        flying.extend(late);
        wire.deliver(&flying);
        hear(&mut wire, &mut heard);
        prop_assert_eq!(heard, said);
        prop_assert!(!wire.receiver.session.is_closed());
    }
}

fn hear(wire: &mut Wire, heard: &mut [Vec<Bytes>; 2]) {
    for event in wire.receiver.events() {
        if let Event::Message { header: Header::Events { connection }, bytes, .. } = event {
            heard[if connection == ConnectionId(1) { 0 } else { 1 }].push(bytes);
        }
    }
}
