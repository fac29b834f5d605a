//! Repair in datagrams, for a display that reads streams in order and cannot tell which is which.

use proptest::prelude::*;

use super::delivery::everything_is_heard;
use super::repair::{chunks, link};
use super::*;
use crate::MAX_ROW_DATAGRAM;

/// Both sides, and what their carriers tell of a link that loses packets one by one.
fn configs() -> [Config; 2] {
    [Side::App, Side::Display]
        .map(|side| Config { capabilities: Capabilities::DATAGRAM_REPAIR, ..Config::new(side) })
}

fn lossy() -> LinkState {
    LinkState {
        datagram: 1200,
        in_order: true,
        lost_packets: 20,
        lost_runs: 20,
        acked_packets: 980,
        sent_packets: 1000,
        ..link()
    }
}

/// An app side that is ready, and the page that is told what the test likes.
struct Sides {
    app: Alone,
    page: Alone,
    now: Time,
    lengths: BTreeMap<StreamId, u64>,
}

/// What left: bytes of streams, as they would arrive, and datagrams.
#[derive(Default)]
struct Left {
    streams: Vec<Arrival>,
    datagrams: Vec<Arrival>,
}

impl Sides {
    fn new() -> Self {
        let [app, display] = configs();
        let hellos = [&app, &display].map(|config| hello_stream(&config.hello(0, 0)));
        let [mut app, mut page] = [app, display].map(Alone::new);
        app.data(0, 0, &hellos[1]);
        page.data(0, 0, &hellos[0]);
        app.session.set_link(Time::ZERO, &lossy());
        let mut sides = Self { app, page, now: Time::ZERO, lengths: BTreeMap::new() };
        sides.left();
        sides.app.events();
        sides.page.events();
        sides.page.transmits();
        sides
    }

    /// All that leaves within the next 50 ms, in parts of a packet.
    fn left(&mut self) -> Left {
        let mut left = Left::default();
        for _ in 0..50 {
            while let Some(transmit) = self.app.session.poll_transmit(self.now) {
                match transmit {
                    Transmit::Data { stream, mut bytes, finish } => {
                        let offset = self.lengths.entry(stream).or_default();
                        while !bytes.is_empty() {
                            let part = bytes.split_to(bytes.len().min(1000));
                            let length = part.len() as u64;
                            left.streams.push(Arrival::Data { stream, offset: *offset, bytes: part });
                            *offset += length;
                        }
                        if finish {
                            left.streams.push(Arrival::Finished { stream, length: *offset });
                        }
                    }
                    Transmit::Datagram { bytes } => {
                        assert!(bytes.len() <= MAX_ROW_DATAGRAM, "{} bytes", bytes.len());
                        left.datagrams.push(Arrival::Datagram { bytes });
                    }
                    _ => {}
                }
            }
            self.now += Duration::from_millis(1);
            self.app.session.on_timeout(self.now);
        }
        left
    }

    fn tell<'a>(&mut self, arrivals: impl IntoIterator<Item = &'a Arrival>) {
        arrivals.into_iter().for_each(|arrival| self.page.session.receive(self.now, arrival.clone()));
    }

    /// Updates that came since the last call, and messages.
    fn heard(&mut self) -> (Vec<Vec<Bytes>>, Vec<Bytes>) {
        let (mut updates, mut messages) = (vec![], vec![]);
        for event in self.page.events() {
            match event {
                Event::Update { chunks, .. } => updates.push(chunks),
                Event::Message { bytes, .. } => messages.push(bytes),
                Event::Closed { .. } | Event::Warning(_) => panic!("{event:?}"),
                _ => {}
            }
        }
        (updates, messages)
    }
}

#[test]
fn an_update_of_which_nothing_came_is_rebuilt_and_its_stream_stopped() {
    let mut sides = Sides::new();
    sides.app.session.send_update(update(1, 1), chunks(1, &[700, 2500])).unwrap();
    let left = sides.left();
    sides.tell(&left.datagrams[1..]);
    assert_eq!(sides.heard().0.len(), 1, "one of {} may be lost", left.datagrams.len());
    sides.tell(&left.streams);
    assert_eq!(sides.heard(), (vec![], vec![]), "it came once");
    assert!(matches!(sides.page.transmits()[..], [Transmit::Stop { code: STREAM_CANCELLED, .. }]));
    sides.tell(&left.datagrams);
    assert_eq!((sides.heard(), sides.page.session.incoming.buffered()), ((vec![], vec![]), 0));
}

/// How many of updates of so many bytes, one after the other, come by datagrams alone.
fn covered(rate: Option<u64>, bytes: usize, updates: u64) -> u64 {
    let mut sides = Sides::new();
    let whole = (1..=updates).filter(|seq| {
        sides.app.session.set_link(sides.now, &LinkState { rate, ..lossy() });
        sides.app.session.send_update(update(1, *seq), chunks(*seq, &[bytes])).unwrap();
        let datagrams = sides.left().datagrams;
        sides.tell(&datagrams);
        sides.heard().0.len() == 1
    });
    whole.count() as u64
}

#[test]
fn regression_each_loss_in_what_scrolls_held_up_all_that_built_on_it() {
    assert_eq!(covered(Some(10_000_000), 30_000, 40), 40);
    assert_eq!(covered(None, 30_000, 40), 0, "how much room there is is not known");
    assert_eq!(covered(Some(100_000_000), 60_000, 1), 0, "more rows than a page has room for");
    // 20 updates a second, of 10 kB each, where a third of the link is half of that.
    let some = covered(Some(300_000), 10_000, 40);
    assert!((20..=32).contains(&some), "{some} of 40");
}

#[test]
fn rows_make_up_for_what_follows_on_a_loss() {
    for lost in 0..4 {
        let mut sides = Sides::new();
        let sent = chunks(1, &[700, 2500]);
        sides.app.session.send_update(update(1, 1), sent.clone()).unwrap();
        let left = sides.left();
        // Some of the rows come before the stream does.
        let needed = 4 - lost;
        sides.tell(&left.datagrams[..needed / 2]);
        sides.tell(&left.streams[..lost]);
        sides.tell(&left.datagrams[needed / 2..needed - 1]);
        assert_eq!(sides.heard().0.len(), 0, "{lost}");
        sides.tell(&left.datagrams[needed - 1..needed]);
        let whole = sent.into_iter().map(Bytes::from).collect::<Vec<_>>();
        assert_eq!(sides.heard().0, [whole], "{lost}");
        sides.tell(&left.streams[lost..]);
        assert_eq!((sides.heard().0.len(), sides.page.session.incoming.buffered()), (0, 0));
    }
}

#[test]
fn a_stuck_channel_of_messages_goes_on_by_copies() {
    let mut sides = Sides::new();
    let channel = sides.app.session.open(wayland(1));
    let mut stuck = Vec::new();
    for n in 0..21_u8 {
        sides.app.session.send(channel, &[n; 40]).unwrap();
        let left = sides.left();
        stuck.extend(left.streams);
        // Each third copy is lost, too; the next one carries what it did.
        if n % 3 != 1 {
            sides.tell(&left.datagrams);
            let first = n - u8::from(n % 3 == 2);
            let told = (first..=n).map(|n| Bytes::from(vec![n; 40])).collect::<Vec<_>>();
            assert_eq!(sides.heard().1, told, "{n}");
        }
    }
    sides.tell(&stuck);
    assert!(sides.heard().1.is_empty());
    assert_eq!(sides.page.transmits(), [], "the stream goes on");
    sides.app.session.send(channel, b"last").unwrap();
    let left = sides.left();
    sides.tell(&left.streams);
    assert_eq!(sides.heard().1, [&b"last"[..]]);
}

#[test]
fn no_rows_leave_for_a_peer_that_does_not_take_them_or_a_link_that_loses_nothing() {
    let datagrams = |ours, theirs, link: LinkState| {
        let config = Config { capabilities: ours, ..Config::new(Side::App) };
        let mut app = Alone::new(config);
        let hello = Hello { capabilities: theirs, ..hello_of(Side::Display) };
        app.data(0, 0, &hello_stream(&hello));
        app.session.set_link(Time::ZERO, &link);
        app.session.send_update(update(1, 1), chunks(1, &[100])).unwrap();
        let mut sent = app.transmits();
        app.session.on_timeout(Time::from_millis(50));
        sent.extend(app.transmits());
        let is_datagram = |transmit: &&Transmit| matches!(transmit, Transmit::Datagram { .. });
        (sent.iter().filter(is_datagram).count(), app.session.repair().rows)
    };
    let rows = Capabilities::DATAGRAM_REPAIR;
    let (sent, counted) = datagrams(rows, rows, lossy());
    assert!(sent > 0 && sent as u64 == counted, "{sent}");
    assert_eq!(datagrams(rows, Capabilities::NONE, lossy()), (0, 0));
    assert_eq!(datagrams(Capabilities::NONE, rows, lossy()), (0, 0));
    assert_eq!(datagrams(rows, rows, LinkState { datagram: 0, ..lossy() }), (0, 0));
    let clean = LinkState { lost_packets: 0, lost_runs: 0, acked_packets: 5000, ..lossy() };
    assert_eq!(datagrams(rows, rows, clean), (0, 0));
}

#[test]
fn rows_of_channels_that_never_come_are_bounded() {
    let mut sides = Sides::new();
    let idle = sides.page.session.footprint();
    for channel in 1..10_000 {
        let header =
            RepairHeader { channel, stream: StreamId(0), offset: 0, length: 3000, row: 900, index: 7 };
        sides.tell(&[Arrival::Datagram { bytes: header.datagram(&[7; 900]) }]);
    }
    assert_eq!(sides.heard(), (vec![], vec![]));
    let held = sides.page.session.footprint() - idle;
    assert!(held < 64 * 6000, "{held}");
    // What is sent in earnest then comes all the same.
    sides.app.session.send_update(update(1, 1), chunks(1, &[700])).unwrap();
    let left = sides.left();
    sides.tell(&left.datagrams);
    assert_eq!(sides.heard().0.len(), 1);
}

#[test]
fn what_cannot_be_read_is_as_good_as_lost() {
    let mut sides = Sides::new();
    let header = RepairHeader { channel: 1, stream: StreamId(0), offset: 0, length: 100, row: 50, index: 0 };
    let row = header.datagram(&[1; 50]);
    let idle = sides.page.session.footprint();
    for bytes in [row.slice(..row.len() - 1), row.slice(..4), [&row[..], b"x"].concat().into()] {
        sides.tell(&[Arrival::Datagram { bytes }]);
    }
    assert_eq!((sides.heard(), sides.page.session.footprint()), ((vec![], vec![]), idle));
}

/// A datagram that is all of a block: the first row of a block of one is the block.
fn whole(channel: u64, offset: u64, bytes: &[u8]) -> Arrival {
    let (length, row) = (bytes.len() as u32, bytes.len() as u16);
    let header = RepairHeader { channel, stream: StreamId(0), offset, length, row, index: 0 };
    Arrival::Datagram { bytes: header.datagram(bytes) }
}

#[test]
fn rows_before_the_hello_take_no_place() {
    let mut page = Alone::new(configs()[1].clone());
    let idle = page.session.footprint();
    let row = whole(1, 0, &labelled(wayland(1), 1));
    page.session.receive(Time::ZERO, row);
    let header = RepairHeader { channel: 2, stream: StreamId(0), offset: 0, length: 9, row: 9, index: 0 };
    page.session.incoming.row(&header, &[1; 9]).unwrap();
    assert_eq!(page.session.footprint(), idle);
    // A place without bytes would swallow the stream.
    page.data(0, 0, &hello_stream(&configs()[0].hello(0, 0)));
    page.data(1, 0, &labelled(wayland(1), 2));
    assert!(page.events().iter().any(|event| matches!(event, Event::Opened { .. })));
}

#[test]
fn a_stream_that_contradicts_what_rows_made_whole_is_stopped() {
    let mut sides = Sides::new();
    sides.app.session.send_update(update(1, 1), chunks(1, &[700])).unwrap();
    let left = sides.left();
    sides.tell(&left.datagrams);
    assert_eq!(sides.heard().0.len(), 1);
    let number = first_number(&left.datagrams[0]);
    sides.page.data(90, 0, &labelled(wayland(3), number));
    sides.page.data(90, 40, b"more of it");
    assert!(matches!(sides.page.transmits()[..], [Transmit::Stop { stream: StreamId(90), .. }]));
    assert_eq!(sides.heard(), (vec![], vec![]));
    assert_eq!(sides.page.session.incoming.buffered(), 0);
}

/// The channel that a datagram repairs.
fn first_number(datagram: &Arrival) -> u64 {
    let Arrival::Datagram { bytes } = datagram else { panic!("{datagram:?}") };
    let mut reader = Reader::new(bytes);
    reader.varint("a kind").unwrap();
    RepairHeader::from_datagram(&mut reader).unwrap().channel
}

#[test]
fn what_rows_said_first_stays_and_the_stream_only_goes_on_behind_it() {
    let mut sides = Sides::new();
    let mut begins = labelled(wayland(1), 7);
    begins.extend([3, b'o', b'n', b'e']);
    sides.tell(&[whole(7, 0, &begins)]);
    assert_eq!(sides.heard().1, [&b"one"[..]]);
    // As long, of another program and with another message.
    let mut contradicts = labelled(wayland(2), 7);
    contradicts.extend([3, b't', b'w', b'o']);
    sides.page.data(9, 0, &contradicts);
    assert!(sides.heard().1.is_empty());
    sides.page.data(9, begins.len() as u64, &[5, b't', b'h', b'r', b'e', b'e']);
    assert_eq!(sides.heard().1, [&b"three"[..]]);
    assert_eq!(sides.page.transmits(), []);
}

#[test]
fn rows_bring_nothing_that_a_stream_may_not() {
    let repair = Header::Repair(RepairHeader {
        channel: 1,
        stream: StreamId(5),
        offset: 0,
        length: 9,
        row: 9,
        index: 0,
    });
    let bytes_of = |header: Header| {
        let mut writer = Writer::new();
        header.encode(&mut writer);
        writer.into_vec()
    };
    // A channel named otherwise, another side's kind, a main channel.
    let events = Header::Events { connection: ConnectionId(1) };
    for bytes in [labelled(wayland(1), 8), labelled(events, 7), bytes_of(Header::Control)] {
        let mut sides = Sides::new();
        sides.tell(&[whole(7, 0, &bytes)]);
        assert!(matches!(sides.page.closed(), CloseReason::ProtocolViolation(_)), "{bytes:?}");
    }
    // Repair of repair is refused, however often, and takes no place.
    let mut sides = Sides::new();
    let idle = sides.page.session.footprint();
    for channel in 1..200 {
        sides.tell(&[whole(channel, 0, &bytes_of(repair))]);
        sides.page.events();
        sides.page.transmits();
    }
    assert_eq!(sides.page.session.footprint(), idle);
}

#[test]
fn memory_of_rows_alone_has_the_limit_of_all() {
    let [app, page] = configs();
    let limits = Limits { buffered: 1 << 20, buffered_per_channel: 256 << 10, ..Limits::default() };
    let mut page = Alone::new(Config { limits, ..page });
    page.data(0, 0, &hello_stream(&app.hello(0, 0)));
    for n in 0..20_000_u64 {
        let header = RepairHeader {
            channel: 1 + n % 64,
            stream: StreamId(0),
            offset: (n / 64) << 20,
            length: 200 * 900,
            row: 900,
            index: (n % 7) as u8,
        };
        page.session.receive(Time::ZERO, Arrival::Datagram { bytes: header.datagram(&[7; 900]) });
        assert!(page.session.footprint() <= 3 << 19, "{n}");
    }
}

#[test]
fn two_streams_of_one_channel_are_a_violation() {
    let mut sides = Sides::new();
    for stream in [5, 6] {
        sides.page.data(stream, 0, &labelled(wayland(stream as u32), 1));
    }
    assert!(matches!(sides.page.closed(), CloseReason::ProtocolViolation(_)));
}

/// What both carriers tell of such a link: a script knows no losses.
pub(super) fn links() -> [LinkState; 2] {
    [lossy(), LinkState { datagram: 1000, in_order: true, ..link() }]
}

/// All that both say over such a link, with repair of what each knows of it.
fn over(loss: usize, repeats: usize, seed: u64) {
    let plan = LinkPlan { loss, repeats, script: true, payload: 1000, ..LinkPlan::ROUGH };
    let mut pair = Pair::new(configs()[0].clone(), configs()[1].clone(), plan, seed);
    pair.links = links().map(Some);
    everything_is_heard(&mut pair, seed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn everything_arrives_once(loss in 0_usize..300, repeats in 0_usize..200, seed: u64) {
        over(loss, repeats, seed);
    }
}
