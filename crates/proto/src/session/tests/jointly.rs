//! Updates of a surface that changes all the time: one repair row for several of them.

use wayferry_fec::sliding;

use super::repair::{Wire, chunks, link};
use super::*;
use crate::wire::Reader;
use crate::{Kind, MAX_HEADER};

/// A window that draws every 17 ms, over a link that loses one packet in a hundred.
struct Window {
    wire: Wire,
    drawn: u64,
}

/// A piece of a stream, and what that stream is.
type Piece = (Kind, Arrival);

impl Window {
    fn new() -> Self {
        let link = LinkState { acked_packets: 4000, lost_packets: 40, lost_runs: 40, ..link() };
        let mut wire = Wire::new(Side::App, Repair::default());
        wire.link = link;
        wire.sender.session.set_link(wire.now, &link);
        Self { wire, drawn: 0 }
    }

    /// The next frame, and all that leaves until the one after it.
    fn draw(&mut self, length: usize) -> Vec<Piece> {
        self.drawn += 1;
        let content = chunks(self.drawn, &[length]);
        self.wire.sender.session.send_update(update(1, self.drawn), content).unwrap();
        self.pass(17)
    }

    /// What leaves within so many milliseconds.
    fn pass(&mut self, millis: u64) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for _ in 0..millis {
            self.wire.sender.session.on_timeout(self.wire.now);
            while let Some(transmit) = self.wire.transmit() {
                let Transmit::Data { stream, bytes, finish } = transmit else { continue };
                let kind = Reader::new(&bytes).bytes(MAX_HEADER, "a header").and_then(Header::decode);
                let kind = kind.map_or(Kind::Control, |header| header.kind());
                let length = bytes.len() as u64;
                pieces.push((kind, Arrival::Data { stream, offset: 0, bytes }));
                if finish {
                    pieces.push((kind, Arrival::Finished { stream, length }));
                }
            }
            self.wire.now += Duration::from_millis(1);
        }
        pieces
    }

    fn deliver(&mut self, pieces: &[Piece]) {
        self.wire.deliver(pieces.iter().map(|(_, arrival)| arrival));
    }

    /// The numbers of the updates that came since.
    fn came(&mut self) -> Vec<u64> {
        let updates = self.wire.receiver.events().into_iter().filter_map(|event| match event {
            Event::Update { header, chunks: came } => {
                assert_eq!(came, chunks(header.seq.0, &[came[0].len()]), "a wrong update");
                Some(header.seq.0)
            }
            _ => None,
        });
        updates.collect()
    }
}

fn count(pieces: &[Piece], of: Kind) -> usize {
    pieces.iter().filter(|(kind, arrival)| *kind == of && matches!(arrival, Arrival::Data { .. })).count()
}

#[test]
fn a_busy_surface_has_a_row_for_every_three_updates() {
    let mut window = Window::new();
    let first = [window.draw(500), window.draw(500)].concat();
    assert_eq!(
        (count(&first, Kind::Repair), count(&first, Kind::Joint)),
        (2, 0),
        "each has its own at first"
    );
    let then: Vec<Piece> = (0..30).flat_map(|_| window.draw(500)).collect();
    assert_eq!((count(&then, Kind::Repair), count(&then, Kind::Joint)), (0, 10));
    assert_eq!(count(&window.pass(100), Kind::Joint), 0);
    let last = [window.draw(500), window.draw(500), window.draw(500), window.pass(100)].concat();
    assert_eq!((count(&last, Kind::Repair), count(&last, Kind::Joint)), (2, 1), "no more follow");
}

#[test]
fn what_is_lost_of_a_busy_surface_is_there_with_the_next_row() {
    for lost in 4..=9 {
        let mut window = Window::new();
        for number in 1..=12 {
            let length = 300 + number as usize * 150;
            let pieces = window.draw(length);
            let kept = |(kind, _): &&Piece| *kind != Kind::Update || number != lost;
            window.deliver(&pieces.iter().filter(kept).cloned().collect::<Vec<_>>());
        }
        let mut came = window.came();
        came.sort_unstable();
        assert_eq!(came, (1..=12).collect::<Vec<_>>(), "without {lost}");
        assert_eq!(window.wire.receiver.session.repair().rebuilt, 1);
        assert!(!window.wire.receiver.session.is_closed());
        // What QUIC sends again is not needed any more.
        let stops = window.wire.receiver.transmits();
        assert!(stops.iter().any(|transmit| matches!(transmit, Transmit::Stop { .. })), "{stops:?}");
    }
}

#[test]
fn two_rows_give_two_updates_also_where_one_row_is_lost() {
    let mut window = Window::new();
    let mut rows = 0;
    for number in 1..=18 {
        let pieces = window.draw(700);
        let mut kept = Vec::new();
        for piece in pieces {
            let first = matches!(piece.1, Arrival::Data { .. });
            rows += usize::from(piece.0 == Kind::Joint && first);
            let lost =
                piece.0 == Kind::Update && (6..8).contains(&number) || piece.0 == Kind::Joint && rows == 2;
            kept.extend((!lost).then_some(piece));
        }
        window.deliver(&kept);
    }
    let mut came = window.came();
    came.sort_unstable();
    assert_eq!(came, (1..=18).collect::<Vec<_>>());
}

#[test]
fn a_peer_that_does_not_take_it_gets_rows_for_each() {
    let mut window = Window::new();
    window.wire = Wire::between(
        Config { repair: Repair::default(), ..Config::new(Side::App) },
        Config::new(Side::Display),
        &Hello { streams: Kinds::ALL.without(Kind::Joint), ..hello_of(Side::Display) },
    );
    let pieces: Vec<Piece> = (0..10).flat_map(|_| window.draw(500)).collect();
    assert_eq!((count(&pieces, Kind::Repair), count(&pieces, Kind::Joint)), (10, 0));
}

#[test]
fn updates_that_come_by_sums_alone_leave_nothing_behind() {
    let mut window = Window::new();
    for n in 0..500 {
        let pieces = window.draw(300);
        let lost = pieces.iter().find_map(|(kind, arrival)| match arrival {
            Arrival::Data { stream, bytes, .. } if *kind == Kind::Update => Some((*stream, bytes.clone())),
            _ => None,
        });
        let (stream, bytes) = lost.expect("an update");
        let fields = Reader::new(&bytes).bytes(MAX_HEADER, "a header").unwrap();
        let number = Header::decode_labelled(fields).unwrap().1.expect("a label").number;
        let header = Header::Joint(JointHeader { number: n, first: n, row: 1000, updates: 1 });
        let sum = super::stream(header, |writer| {
            writer.varint(number).varint(stream.0).varint(bytes.len() as u64);
            writer.raw(&sliding::mix(n, &[(n, &bytes)]));
        });
        let (stream, length) = (StreamId(5_000_000 + n), sum.len() as u64);
        let arrivals =
            [Arrival::Data { stream, offset: 0, bytes: sum.into() }, Arrival::Finished { stream, length }];
        window.wire.deliver(&arrivals);
    }
    assert_eq!(window.came(), (1..=500).collect::<Vec<_>>());
    let incoming = &window.wire.receiver.session.incoming;
    assert!(incoming.entries() < 100 && incoming.buffered() == 0, "{} entries", incoming.entries());
}

#[test]
fn hostile_joint_repair_is_bounded() {
    let mut alone = Alone::ready(Side::Display);
    for n in 0..2000_u64 {
        let header = Header::Joint(JointHeader { number: n, first: n * 7, row: 100, updates: 8 });
        let body = |writer: &mut Writer| {
            writer.varint(1 + n).varint(3 + n).varint(1900);
            (0..7).for_each(|_| {
                writer.varint(n % 3).varint(n % 5).varint(1900);
            });
            writer.raw(&[n as u8; 100]);
        };
        let bytes = stream(header, body);
        alone.data(5_000_000 + n, 0, &bytes);
        let length = bytes.len() as u64;
        alone.session.receive(Time::ZERO, Arrival::Finished { stream: StreamId(5_000_000 + n), length });
        assert!(!alone.session.is_closed(), "{:?}", alone.events());
    }
    assert!(alone.session.incoming.entries() < 100 && alone.session.incoming.buffered() == 0);
}

#[test]
fn joint_repair_that_is_none_is_a_violation() {
    let mut alone = Alone::ready(Side::Display);
    let header = Header::Joint(JointHeader { number: 1, first: 1, row: 100, updates: 1 });
    let bytes = stream(header, |writer| {
        writer.varint(1).varint(3).varint(1900).raw(&[1; 99]);
    });
    alone.data(5, 0, &bytes);
    let length = bytes.len() as u64;
    alone.session.receive(Time::ZERO, Arrival::Finished { stream: StreamId(5), length });
    assert!(alone.session.is_closed());
}
