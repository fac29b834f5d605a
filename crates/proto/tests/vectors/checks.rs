//! Bytes of headers as docs/wire.md has them, and two sessions that meet.

use std::collections::BTreeMap;

use bytes::Bytes;
use wayferry_proto::wire::{Reader, Writer};
use wayferry_proto::{
    Arrival, Config, ConnectionId, Event, Header, Label, MAX_HEADER, RepairHeader, Session, Side, StreamId,
    SurfaceId, Time, Transmit, UpdateHeader, UpdateSeq,
};

/// Names, and what is checked.
pub(crate) const CHECKS: &[(&str, fn())] = &[
    ("headers are the documented bytes", headers),
    ("numbers are the documented bytes", numbers),
    ("two sides meet, and an update crosses", an_update_crosses),
];

fn headers() {
    let connection = ConnectionId(3);
    let update = UpdateHeader {
        connection: ConnectionId(1),
        surface: SurfaceId(8),
        seq: UpdateSeq(5),
        size: (1280, 720),
        format: 1,
        fresh: false,
        covers: 0,
        unit: None,
    };
    let (channel, stream) = (7, StreamId(9));
    let repair = RepairHeader { channel, stream, offset: 256, length: 5000, row: 1424, index: 1 };
    let label = |number, from| Some(Label { number, from });
    for (header, label, hex) in [
        (Header::Wayland { connection }, label(1, None), "03 02 03 01"),
        (Header::Update(update), label(1, None), "0b 04 01 08 05 45 00 42 d0 01 00 01"),
        (Header::Wayland { connection }, label(7, Some(5)), "04 02 03 07 05"),
        (Header::Repair(repair), None, "0a 08 07 09 41 00 53 88 45 90 01"),
    ] {
        let mut writer = Writer::new();
        header.encode_labelled(label, &mut writer);
        let shown: Vec<String> = writer.as_slice().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown.join(" "), hex);
        let fields = Reader::new(writer.as_slice()).bytes(MAX_HEADER, "a header").expect("a length").to_vec();
        assert_eq!(Header::decode_labelled(&fields), Ok((header, label)));
    }
}

fn numbers() {
    let mut writer = Writer::new();
    writer.varint(37).varint(15_293).varint(494_878_333).varint(151_288_809_941_952_652);
    // RFC 9000 §A.1
    let expected = [
        &[0x25][..],
        &[0x7b, 0xbd],
        &[0x9d, 0x7f, 0x3e, 0x7d],
        &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
    ];
    assert_eq!(writer.as_slice(), expected.concat());
}

fn an_update_crosses() {
    let (mut app, mut display) =
        (Session::new(Config::new(Side::App)), Session::new(Config::new(Side::Display)));
    let header = UpdateHeader {
        connection: ConnectionId(1),
        surface: SurfaceId(2),
        seq: UpdateSeq(1),
        size: (100, 100),
        format: 0,
        fresh: true,
        covers: 0,
        unit: None,
    };
    let chunks: Vec<Vec<u8>> = (1..5).map(|n: u8| vec![n; 20_000]).collect();
    app.send_update(header, chunks.clone()).expect("an update");
    let (mut lengths, mut back) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..8 {
        carry(&mut app, &mut display, &mut lengths);
        carry(&mut display, &mut app, &mut back);
    }
    let events: Vec<Event> = std::iter::from_fn(|| display.poll_event()).collect();
    let whole = events.iter().find_map(|event| match event {
        Event::Update { header, chunks } => Some((*header, chunks.clone())),
        _ => None,
    });
    let chunks = chunks.into_iter().map(Bytes::from).collect();
    assert_eq!(whole, Some((header, chunks)));
}

/// Brings what one side has to say to the other; `lengths` are those of its streams.
fn carry(from: &mut Session, to: &mut Session, lengths: &mut BTreeMap<StreamId, u64>) {
    while let Some(transmit) = from.poll_transmit(Time::ZERO) {
        let Transmit::Data { stream, bytes, finish } = transmit else { continue };
        let length = lengths.entry(stream).or_default();
        let offset = *length;
        *length += bytes.len() as u64;
        to.receive(Time::ZERO, Arrival::Data { stream, offset, bytes });
        if finish {
            to.receive(Time::ZERO, Arrival::Finished { stream, length: *length });
        }
    }
}
