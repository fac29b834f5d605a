//! Protected blocks: what is lost is rebuilt from its repair, without being sent again.

use proptest::prelude::*;

use super::*;
use crate::MAX_HEADER;
use crate::wire::Reader;

/// What the carrier tells of a link that lost something before.
pub(super) fn link() -> LinkState {
    LinkState {
        payload: Some(PAYLOAD as u16),
        rate: Some(10_000_000),
        rtt: Duration::from_millis(100),
        base_rtt: Duration::from_millis(100),
        ..LinkState::default()
    }
}

pub(super) const PAYLOAD: usize = 1000;

/// A sender and a receiver, and packets between them that the test drops.
pub(super) struct Wire {
    pub(super) sender: Alone,
    pub(super) receiver: Alone,
    pub(super) sent: BTreeMap<StreamId, u64>,
    pub(super) now: Time,
    pub(super) link: LinkState,
}

type Packet = Vec<Arrival>;

impl Wire {
    pub(super) fn new(side: Side, repair: Repair) -> Self {
        Self::between(
            Config { repair, ..Config::new(side) },
            Config::new(side.peer()),
            &hello_of(side.peer()),
        )
    }

    /// From the display to the app side, where both can resume.
    fn resumable() -> Self {
        let [app, display] = resumable_configs();
        let hello = Hello { capabilities: Capabilities::RESUME, ..hello_of(Side::App) };
        Self::between(Config { repair: Repair::Fixed(2.0), ..display }, app, &hello)
    }

    pub(super) fn between(sender: Config, receiver: Config, hello: &Hello) -> Self {
        let mut sender = Alone::new(sender);
        sender.data(0, 0, &hello_stream(hello));
        sender.session.set_link(Time::ZERO, &link());
        let mut wire = Self {
            sender,
            receiver: Alone::new(Config { repair: Repair::Off, ..receiver }),
            sent: BTreeMap::new(),
            now: Time::ZERO,
            link: link(),
        };
        let packets = wire.packets();
        wire.deliver(packets.iter().flatten());
        wire.sender.events();
        wire.receiver.events();
        wire.receiver.transmits();
        wire
    }

    /// What the sender hands over next; the link takes everything at once.
    pub(super) fn transmit(&mut self) -> Option<Transmit> {
        let session = &mut self.sender.session;
        session.poll_transmit(self.now).or_else(|| {
            session.set_link(self.now, &self.link);
            session.poll_transmit(self.now)
        })
    }

    /// What the sender has to send within the next milliseconds, repair included, in packets as QUIC fills them.
    fn packets(&mut self) -> Vec<Packet> {
        let mut packets = vec![];
        let mut room = 0;
        for after in [0, 2, 10] {
            self.now += Duration::from_millis(after);
            self.sender.session.on_timeout(self.now);
            while let Some(transmit) = self.transmit() {
                let Transmit::Data { stream, mut bytes, finish } = transmit else { continue };
                loop {
                    if room == 0 {
                        packets.push(vec![]);
                        room = PAYLOAD;
                    }
                    let packet = packets.last_mut().expect("a packet");
                    let part = bytes.split_to(bytes.len().min(room));
                    room -= part.len();
                    let offset = self.sent.entry(stream).or_default();
                    packet.push(Arrival::Data { stream, offset: *offset, bytes: part.clone() });
                    *offset += part.len() as u64;
                    if bytes.is_empty() {
                        if finish {
                            packet.push(Arrival::Finished { stream, length: *offset });
                        }
                        break;
                    }
                }
            }
            room = 0; // what was held back does not share a packet
        }
        packets
    }

    pub(super) fn deliver<'a>(&mut self, arrivals: impl IntoIterator<Item = &'a Arrival>) {
        for arrival in arrivals {
            self.receiver.session.receive(self.now, arrival.clone());
        }
    }

    /// Delivers all packets but those.
    fn deliver_but(&mut self, packets: &[Packet], dropped: &[usize]) {
        for (n, packet) in packets.iter().enumerate() {
            if !dropped.contains(&n) {
                self.deliver(packet);
            }
        }
    }

    fn updates(&mut self) -> Vec<Vec<Bytes>> {
        let updates = self.receiver.events().into_iter().filter_map(|event| match event {
            Event::Update { chunks, .. } => Some(chunks),
            Event::Chunk { .. } => None,
            other => panic!("only updates were sent: {other:?}"),
        });
        updates.collect()
    }

    pub(super) fn messages(&mut self) -> Vec<Bytes> {
        let messages = self.receiver.events().into_iter().filter_map(|event| match event {
            Event::Message { bytes, .. } => Some(bytes),
            _ => None,
        });
        messages.collect()
    }
}

pub(super) fn chunks(seed: u64, lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut dice = Dice(seed);
    lengths.iter().map(|length| dice.bytes(*length)).collect()
}

/// An update of nine packets and its three or more of repair, from which these are dropped.
fn update_without(dropped: &[usize]) -> (usize, bool) {
    let mut wire = Wire::new(Side::App, Repair::Fixed(1.3));
    let sent = chunks(1, &[3000, 2500, 500, 2800]);
    wire.sender.session.send_update(update(1, 1), sent.clone()).unwrap();
    let packets = wire.packets();
    wire.deliver_but(&packets, dropped);
    let updates = wire.updates();
    assert!(updates.iter().all(|chunks| *chunks == sent), "a wrong update");
    assert!(updates.len() <= 1);
    // What QUIC sends again changes nothing, or helps where repair did not.
    let rebuilt = updates.len() == 1;
    wire.deliver(packets.iter().flatten());
    assert_eq!(wire.updates().len(), usize::from(!rebuilt));
    assert_eq!(wire.receiver.session.incoming.buffered(), 0);
    (packets.len(), rebuilt)
}

#[test]
fn any_packet_may_be_lost_and_any_two() {
    let (count, whole) = update_without(&[]);
    assert!(whole && count >= 12, "{count} packets");
    for first in 0..count {
        for second in first..count {
            assert_eq!(update_without(&[first, second]), (count, true), "without {first} and {second}");
        }
    }
}

#[test]
fn without_enough_repair_the_update_waits() {
    assert!(!update_without(&[0, 2, 4, 6]).1);
    // All of the repair and something of the source.
    assert!(!update_without(&[3, 9, 10, 11, 12, 13]).1);
}

#[test]
fn what_was_rebuilt_is_stopped_and_then_reset() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(1.1));
    wire.sender.session.send_update(update(1, 1), chunks(1, &[5000])).unwrap();
    let packets = wire.packets();
    wire.deliver_but(&packets, &[2]);
    assert_eq!(wire.updates().len(), 1);
    let stops = wire.receiver.transmits();
    let [Transmit::Stop { stream, code: STREAM_CANCELLED }] = stops[..] else { panic!("{stops:?}") };
    wire.sender.session.receive(wire.now, Arrival::Stopped { stream, code: STREAM_CANCELLED });
    assert_eq!(wire.sender.transmits(), [Transmit::Reset { stream, code: STREAM_CANCELLED }]);
    assert_eq!(wire.sender.events(), []);
    wire.deliver(&[Arrival::Reset { stream, code: STREAM_CANCELLED }]);
    assert_eq!(wire.receiver.events(), []);
    let counts = wire.receiver.session.repair();
    assert!(counts.rebuilt == 1 && (900..=1100).contains(&counts.rebuilt_bytes), "{counts:?}");
}

#[test]
fn chunks_are_told_as_they_come() {
    let mut wire = Wire::new(Side::App, Repair::Off);
    wire.sender.session.send_update(update(1, 1), chunks(1, &[900, 1000, 1000, 1000])).unwrap();
    let packets = wire.packets();
    assert_eq!(packets.len(), 4);
    let indices = |wire: &mut Wire, n: usize| -> Vec<usize> {
        wire.deliver(&packets[n]);
        let events = wire.receiver.events();
        let chunks = events.iter().filter_map(|event| match event {
            Event::Chunk { index, .. } => Some(*index),
            _ => None,
        });
        chunks.collect()
    };
    assert_eq!(indices(&mut wire, 3), []);
    assert_eq!(indices(&mut wire, 2), []);
    assert_eq!(indices(&mut wire, 0), [0, 3]);
    assert_eq!(indices(&mut wire, 1), [1, 2]);
}

/// Without the table in the first packet, chunks that were there waited for the end of the update.
#[test]
fn chunks_need_not_wait_for_the_first_packet() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(1.1));
    wire.sender.session.send_update(update(1, 1), chunks(1, &[900, 1000, 1000, 1000, 1000])).unwrap();
    let packets = wire.packets();
    let is_head = |arrival: &Arrival| matches!(arrival, Arrival::Data { bytes, .. } if bytes.len() < 100);
    let head = packets.iter().flatten().find(|arrival| is_head(arrival)).expect("the head once more");
    wire.deliver(&packets[1]);
    wire.deliver(&packets[2]);
    assert_eq!(wire.receiver.events(), []);
    wire.deliver([head]);
    let events = wire.receiver.events();
    assert!(matches!(events[..], [Event::Chunk { index: 2, .. }]));
}

/// A key's packet is lost; the key comes all the same, once, and in order.
#[test]
fn a_flush_of_one_packet_may_be_lost_whole() {
    let mut wire = Wire::new(Side::Display, Repair::Fixed(2.0));
    let channel = wire.sender.session.open(events(1));
    let mut late = vec![];
    for key in 0..30_u8 {
        wire.sender.session.send(channel, &[key; 40]).unwrap();
        let packets = wire.packets();
        assert_eq!(packets.len(), 2, "source and repair");
        let lost = usize::from(key % 3 == 1);
        wire.deliver(&packets[1 - lost]);
        assert_eq!(wire.messages(), [vec![key; 40]], "the first of the two is enough");
        late.extend(packets.into_iter().nth(lost));
    }
    wire.deliver(late.iter().flatten());
    assert_eq!(wire.messages(), [] as [Bytes; 0]);
    assert!(!wire.receiver.session.is_closed());
}

#[test]
fn a_lost_flush_does_not_hold_back_those_after_it_for_long() {
    let mut wire = Wire::new(Side::Display, Repair::Fixed(2.0));
    let channel = wire.sender.session.open(events(1));
    let mut packets = vec![];
    for key in 0..3_u8 {
        wire.sender.session.send(channel, &[key; 40]).unwrap();
        packets.push(wire.packets());
    }
    wire.deliver(&packets[0][0]);
    wire.deliver(&packets[2][0]);
    assert_eq!(wire.messages().len(), 1, "the second is missing");
    wire.deliver(&packets[1][1]);
    assert_eq!(wire.messages(), [vec![1; 40], vec![2; 40]]);
}

/// As a sender would have said it that calls the sources of repair differently.
fn renamed(packet: &Packet, name: impl Fn(&mut RepairHeader)) -> Packet {
    let mut longer = BTreeMap::new();
    let change = |arrival: &Arrival| match arrival.clone() {
        Arrival::Data { stream, offset: 0, bytes } => {
            let mut reader = Reader::new(&bytes);
            let Ok(Header::Repair(mut header)) = Header::decode(reader.bytes(MAX_HEADER, "header").unwrap())
            else {
                return Arrival::Data { stream, offset: 0, bytes };
            };
            name(&mut header);
            let mut writer = Writer::new();
            Header::Repair(header).encode(&mut writer);
            writer.raw(reader.rest());
            longer.insert(stream, writer.len() as u64);
            Arrival::Data { stream, offset: 0, bytes: writer.into_vec().into() }
        }
        Arrival::Finished { stream, length } => {
            Arrival::Finished { stream, length: longer.get(&stream).copied().unwrap_or(length) }
        }
        other => other,
    };
    packet.iter().map(change).collect()
}

/// A receiver that does not count streams as the sender does, as a browser, still knows whose repair it is.
#[test]
fn repair_finds_its_source_by_the_channels_number() {
    let mut wire = Wire::resumable();
    for connection in 1..=3 {
        let channel = wire.sender.session.open(events(connection));
        let packets = wire.packets();
        wire.deliver(packets.iter().flatten());
        wire.receiver.events();
        for key in 0..9_u8 {
            wire.sender.session.send(channel, &[key; 40]).unwrap();
            let packets = wire.packets();
            wire.deliver(&renamed(&packets[1], |header| {
                assert_eq!(header.channel, connection.into());
                header.stream = StreamId(if key % 2 == 0 { 0 } else { 999 });
            }));
            assert_eq!(wire.messages(), [vec![key; 40]]);
        }
    }
    assert!(!wire.receiver.session.is_closed());
}

/// Nothing says whose it is: QUIC sends it again.
#[test]
fn repair_of_a_channel_that_is_not_known_is_left_alone() {
    let mut wire = Wire::resumable();
    let channel = wire.sender.session.open(events(1));
    wire.sender.session.send(channel, &[1; 40]).unwrap();
    let packets = wire.packets();
    wire.deliver(&renamed(&packets[1], |header| header.stream = StreamId(0)));
    assert_eq!(wire.receiver.events(), []);
    wire.deliver(&packets[0]);
    assert_eq!(wire.messages(), [vec![1; 40]]);
    let again = renamed(&packets[1], |header| header.stream = StreamId(0));
    wire.deliver(&again);
    assert_eq!(wire.messages(), [] as [Bytes; 0]);
}

/// Whether the header comes before the repair or is rebuilt from it.
#[test]
fn repair_that_names_another_channel_than_its_stream_carries_is_a_violation() {
    for (before, channel) in [(true, 9), (true, 0), (false, 9)] {
        let mut wire = Wire::new(Side::Display, Repair::Fixed(2.0));
        let events = wire.sender.session.open(events(1));
        wire.sender.session.send(events, &[1; 40]).unwrap();
        let packets = wire.packets();
        if before {
            wire.deliver(&packets[0]);
            wire.messages();
        }
        wire.deliver(&renamed(&packets[1], |header| {
            header.channel = channel;
            header.stream = if channel == 0 { StreamId(0) } else { header.stream };
        }));
        let events = wire.receiver.events();
        let violation =
            |event: &Event| matches!(event, Event::Closed { reason: CloseReason::ProtocolViolation(_), .. });
        assert_eq!(events.iter().any(violation), channel != 0, "{before} {channel}: {events:?}");
    }
}

/// The part of a block that was given out is needed to rebuild the rest.
#[test]
fn a_long_flush_is_rebuilt_with_what_was_given_out() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(1.1));
    let channel = wire.sender.session.open(wayland(1));
    for round in 0..20_u8 {
        let sent: Vec<Vec<u8>> = (0..8).map(|n| vec![round * 8 + n; 1000]).collect();
        for message in &sent {
            wire.sender.session.send(channel, message).unwrap();
        }
        let packets = wire.packets();
        wire.deliver_but(&packets, &[usize::from(round) % 8]);
        assert_eq!(wire.messages(), sent, "round {round}");
    }
}

#[test]
fn the_main_channel_is_protected_too() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    wire.sender.session.control(&Control::Exit { code: 3 }).unwrap();
    let packets = wire.packets();
    wire.deliver(&packets[1]);
    assert_eq!(wire.receiver.events(), [Event::Control(Control::Exit { code: 3 })]);
}

#[test]
fn repair_is_held_back() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    wire.sender.session.send_update(update(1, 1), chunks(1, &[100])).unwrap();
    let kinds =
        |transmits: &[Transmit]| transmits.iter().filter(|t| matches!(t, Transmit::Data { .. })).count();
    let mut at_once = vec![];
    while let Some(transmit) = wire.sender.session.poll_transmit(wire.now) {
        at_once.push(transmit);
    }
    assert_eq!(kinds(&at_once), 1);
    let due = wire.sender.session.next_timeout().unwrap();
    assert!((1..=3).contains(&due.since(wire.now).as_millis()), "{due:?}");
    wire.sender.session.on_timeout(due);
    assert_eq!(kinds(&wire.sender.transmits()), 1);
    assert_eq!(
        wire.sender.session.next_timeout().map(|at| at.since(due) > Duration::from_millis(100)),
        Some(true)
    );
}

#[test]
fn repair_needs_a_carrier_and_a_peer_that_can_use_it() {
    let rows = |link: LinkState, accepted: Kinds| {
        let mut sender = Alone::new(Config { repair: Repair::Fixed(2.0), ..Config::new(Side::App) });
        sender.data(0, 0, &hello_stream(&Hello { streams: accepted, ..hello_of(Side::Display) }));
        sender.session.set_link(Time::ZERO, &link);
        sender.session.send_update(update(1, 1), chunks(1, &[100])).unwrap();
        sender.transmits();
        sender.session.on_timeout(Time::from_millis(100));
        sender.session.repair().rows
    };
    assert!(rows(link(), Kinds::ALL) > 0);
    assert_eq!(rows(LinkState { payload: None, ..link() }, Kinds::ALL), 0);
    assert_eq!(rows(link(), Kinds::ALL.without(Kind::Repair)), 0);
}

/// A stream that was given up costs no more repair.
#[test]
fn repair_of_a_stopped_update_is_not_sent() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    wire.sender.session.send_update(update(1, 1), chunks(1, &[5000])).unwrap();
    let opened = wire.sender.transmits();
    let Some(Transmit::Open { stream, .. }) = opened.first() else { panic!("{opened:?}") };
    wire.sender.session.receive(wire.now, Arrival::Stopped { stream: *stream, code: 0 });
    wire.sender.transmits();
    wire.sender.session.on_timeout(Time::from_millis(1000));
    assert!(!wire.sender.transmits().iter().any(|transmit| matches!(transmit, Transmit::Open { .. })));
}

/// How many rows leave within so many milliseconds, one by one.
fn rows_within(wire: &mut Wire, millis: u64) -> u64 {
    let before = wire.sender.session.repair().rows;
    for _ in 0..millis {
        wire.now += Duration::from_millis(1);
        wire.sender.session.on_timeout(wire.now);
        while wire.sender.session.poll_transmit(wire.now).is_some() {}
    }
    wire.sender.session.repair().rows - before
}

/// What is about to be covered costs no repair, unless what covers it does not come.
#[test]
fn only_the_last_of_updates_that_cover_each_other_is_repaired() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    for seq in 2..=9 {
        let header = UpdateHeader { covers: u8::from(seq > 2), ..update(1, seq) };
        wire.sender.session.send_content(header, chunks(1, &[300]), Worth::Passing).unwrap();
        assert_eq!(rows_within(&mut wire, 17), 0, "update {seq}");
    }
    assert_eq!(rows_within(&mut wire, 5), 0);
    assert_eq!(rows_within(&mut wire, 3), 1, "no newer one came");
}

/// One that covers makes up for those of its surface that it counts, and for no others.
#[test]
fn rows_of_what_is_not_covered_leave() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    for header in [update(1, 5), update(2, 6), update(1, 6)] {
        wire.sender.session.send_content(header, chunks(1, &[300]), Worth::Passing).unwrap();
    }
    let covering = UpdateHeader { covers: 1, ..update(1, 7) };
    wire.sender.session.send_content(covering, chunks(1, &[300]), Worth::Passing).unwrap();
    assert_eq!(rows_within(&mut wire, 30), 3, "5 and 7 of surface 1, and that of surface 2");
    wire.sender.session.send_update(update(1, 8), chunks(1, &[300])).unwrap();
    assert_eq!(rows_within(&mut wire, 5), 1, "as ever");
}

#[test]
fn a_large_update_is_several_blocks() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(1.05));
    let sent = chunks(7, &[60_000; 10]);
    wire.sender.session.send_update(update(1, 1), sent.clone()).unwrap();
    let packets = wire.packets();
    let lost: Vec<usize> = (0..20).map(|n| n * 30).collect();
    wire.deliver_but(&packets, &lost);
    assert_eq!(wire.updates(), [sent]);
    assert!(wire.sender.session.repair().blocks >= 3);
}

/// Where losses come in bursts, a unit's second row waits until most of them are over.
#[test]
fn bursts_put_the_second_row_off() {
    let mut wire = Wire::new(Side::App, Repair::default());
    let bursts = LinkState { acked_packets: 4000, lost_packets: 80, lost_runs: 20, ..link() };
    wire.link = bursts;
    wire.sender.session.set_link(wire.now, &bursts);
    let channel = wire.sender.session.open(wayland(1));
    wire.sender.session.send(channel, b"unit").unwrap();
    while wire.sender.session.poll_transmit(wire.now).is_some() {}
    let mut rows = vec![];
    for millis in 1..20 {
        wire.sender.session.on_timeout(wire.now + Duration::from_millis(millis));
        let transmits = wire.sender.transmits();
        rows.extend(transmits.iter().filter(|it| matches!(it, Transmit::Open { .. })).map(|_| millis));
    }
    assert_eq!(rows, [2, 12]);
}

#[test]
fn hostile_repair_is_bounded() {
    let mut alone = Alone::ready(Side::Display);
    for n in 0..200_000_u64 {
        let header = Header::Repair(RepairHeader {
            channel: 1 + n % 1000,
            stream: StreamId(3 + n % 1000),
            offset: n,
            length: 254 * 4096,
            row: 4096,
            index: 0,
        });
        alone.data(
            5_000_000 + n,
            0,
            &stream(header, |writer| {
                writer.raw(&[1; 100]);
            }),
        );
        if alone.session.is_closed() {
            break;
        }
    }
    let limit = too_much(&mut alone);
    assert!(limit.contains("buffered bytes") || limit.contains("open streams"), "{limit}");
}

/// A table of bytes in one piece: each chunk cost a copy of all that followed.
#[test]
fn tiny_chunks_in_one_piece_are_cheap() {
    let mut alone = Alone::ready(Side::Display);
    let bytes = stream(Header::Update(update(1, 1)), |writer| {
        writer.varint(MAX_CHUNKS as u64);
        for _ in 0..MAX_CHUNKS {
            writer.varint(1);
        }
        writer.raw(&vec![7; MAX_CHUNKS]);
    });
    alone.data(1, 0, &bytes);
    let whole = |event: &Event| matches!(event, Event::Update { chunks, .. } if chunks.len() == MAX_CHUNKS);
    assert!(alone.events().iter().any(whole));
}

/// The carrier gives up the row's stream; nothing of it goes into the main channel.
#[test]
fn returned_repair_goes_nowhere() {
    let mut wire = Wire::new(Side::App, Repair::Fixed(2.0));
    wire.sender.session.send_update(update(1, 1), chunks(1, &[100])).unwrap();
    wire.sender.transmits();
    wire.now += Duration::from_millis(5);
    wire.sender.session.on_timeout(wire.now);
    let row = wire.sender.transmits().into_iter().find_map(|transmit| match transmit {
        Transmit::Data { stream, bytes, finish } => Some(Arrival::OpenFailed { stream, bytes, finish }),
        _ => None,
    });
    wire.sender.session.receive(wire.now, row.expect("a row"));
    assert_eq!(wire.sender.transmits(), []);
}

fn too_much(alone: &mut Alone) -> String {
    match alone.closed() {
        CloseReason::TooMuch(limit) => limit,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn any_order_with_repeats_and_gaps_gives_each_update_once(
        seed: u64,
        ratio in prop::sample::select(vec![1.0_f64, 1.03, 1.1, 1.5, 2.0]),
        loss in 0_usize..300,
    ) {
        let mut dice = Dice(seed);
        let mut wire = Wire::new(Side::App, Repair::Fixed(ratio));
        let mut said = BTreeMap::new();
        for number in 1..=4 {
            let lengths: Vec<usize> = (0..dice.below(5)).map(|_| 1 + dice.below(9000)).collect();
            let chunks = chunks(seed ^ number, &lengths);
            wire.sender.session.send_update(update(1, number), chunks.clone()).unwrap();
            said.insert(update(1, number), chunks.into_iter().map(Bytes::from).collect::<Vec<_>>());
        }
        let mut packets = wire.packets();
        for n in (1..packets.len()).rev() {
            packets.swap(n, dice.below(n + 1));
        }
        let mut heard = BTreeMap::new();
        let mut late = vec![];
        for packet in packets {
            if dice.below(1000) < loss {
                late.push(packet.clone());
                continue;
            }
            for _ in 0..1 + dice.below(6) / 5 {
                wire.deliver(&packet);
            }
        }
        wire.deliver(late.iter().flatten());
        for event in wire.receiver.events() {
            if let Event::Update { header, chunks } = event {
                prop_assert_eq!(heard.insert(header, chunks), None, "twice");
            }
        }
        prop_assert_eq!(heard, said);
    }
}
