//! Writes the seeds that are made by the code itself: `cargo run --example seeds`. Run it after a change of a
//! format, and commit what changed: the test below fails until then. Seeds with other names than these are finds, or
//! recorded; leave them.
//!
//! Invariant: the same code makes the same bytes. `web/request` and `web/settings` are recorded, because the library
//! that writes them puts their fields into another order in each run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, Command, CorkStreamParams, LatencyParams, PlaybackStreamParams,
    RecordStreamParams, SampleFormat, SampleSpec, SetStreamVolumeParams, SubscriptionMask,
};
use wayferry_audio::{Flags, Packet, Position};
use wayferry_fuzz::erasure::SOURCE;
use wayferry_fuzz::http3::{fields, frame};
use wayferry_fuzz::video::SIDES;
use wayferry_fuzz::wayland_message::object_of;
use wayferry_fuzz::wire_parser::{ALONE, DISPLAY, GREETED, RESUMABLE, ROWS};
use wayferry_gpu::wire::{FromReader, Means, ToReader};
use wayferry_gpu::{Described, Fourcc, Modifier, Route};
use wayferry_pixels::{Allowance, Compression, Draft, Encoder, Format, Layout, Rect, Region, Size};
use wayferry_proto::wire::Writer;
use wayferry_proto::{
    Capabilities, Config, ConnectionId, Control, Header, HostTime, JointHeader, Label, Listen, RepairHeader,
    Session, Side, StreamId, SurfaceId, Time, Transmit, UnitHead, UpdateHeader, UpdateSeq,
};
use wayferry_video::{Order, Quality, Rate};
use wayferry_wayland::message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_wayland::snapshot::{Global, Mode, Output, Seat, Snapshot};
use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, OutBuffer};
use web_transport_proto::{Capsule, ConnectResponse};

fn main() -> std::io::Result<()> {
    for (target, seeds) in all() {
        let directory = directory(target);
        std::fs::create_dir_all(&directory)?;
        for (name, bytes) in seeds {
            std::fs::write(directory.join(name), bytes)?;
        }
    }
    Ok(())
}

fn directory(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

fn all() -> [(&'static str, Seeds); 18] {
    [
        ("audio_packet", audio_packet()),
        ("candidates", candidates()),
        ("wire_parser", wire_parser()),
        ("wayland_message", wayland_message()),
        ("half_message", half_message()),
        ("chunk", chunk()),
        ("page", page()),
        ("pair", pair()),
        ("programs", programs()),
        ("pulse_commands", pulse_commands()),
        ("reader_packets", reader_packets()),
        ("echo", echo()),
        ("erasure", erasure()),
        ("trunk", trunk()),
        ("video", video()),
        ("web", web()),
        ("http3", http3()),
        ("site_request", site_request()),
    ]
}

type Seeds = Vec<(&'static str, Vec<u8>)>;

const CONNECTION: ConnectionId = ConnectionId(3);
const UPDATE: UpdateHeader = UpdateHeader {
    connection: CONNECTION,
    surface: SurfaceId(4),
    seq: UpdateSeq(1),
    size: (64, 32),
    format: 0,
    fresh: true,
    covers: 0,
    unit: None,
};
const COVERING: UpdateHeader = UpdateHeader {
    seq: UpdateSeq(9),
    fresh: false,
    covers: 2,
    unit: Some(UnitHead { number: 5, after: 17, feedback: true, answered: Some(70) }),
    ..UPDATE
};

/// Frames, as one end and the other hears them, and what is done between.
fn trunk() -> Seeds {
    let frame = |kind: u8, strand: u8, number: u8| [kind, 0, 0, 0, strand, 0, 0, 0, number];
    let comes = |bytes: &[u8]| [&[0, bytes.len() as u8], bytes].concat();
    let data = |strand| comes(&[&frame(0, strand, 4)[..], b"said"].concat());
    let mark = comes(b"Welcome\nWFSSH1\r\n");
    vec![
        ("near", [&[0][..], &mark, &data(1), &data(4), &[8, 3, 1, 255, 6, 4]].concat()),
        ("far", [&[3][..], &data(0), &data(4), &[7, 8, 6, 5, 3, 0, 2, 4, 0, 5, 4, 8]].concat()),
        (
            "meeting",
            [&[2][..], &comes(&frame(3, 5, 0)), &data(5), &comes(&frame(1, 5, 0)), &[5, 5, 8, 3, 5, 9, 8]]
                .concat(),
        ),
        ("room", [&[3][..], &[6, 4, 6, 4], &comes(&frame(2, 4, 99)), &[5, 4, 8, 9]].concat()),
    ]
}

/// Operations of the target.
fn candidates() -> Seeds {
    // A ticket is printed; a display comes from 3 with it, for the first time, and is heard.
    let ticket = [8, 60];
    let comes = [1, 3, 0, 7, 0, 3, 0, 255];
    let again = [1, 3, 9, 7, 0, 3, 0, 255];
    // It said more before it was let in, and says something after.
    let says = [2, 0, 0, 4, 0, 1, 2, 3, 4];
    let strangers: Vec<u8> = (0..40).flat_map(|from| [0, from]).collect();
    let display = [&ticket[..], &comes].concat();
    vec![
        ("display", display.clone()),
        ("flood", [&strangers[..], &display, &[7, 200, 7, 200], &strangers].concat()),
        ("receipts", [&display[..], &says, &says].concat()),
        ("refused", vec![8, 60, 1, 3, 0, 7, 0, 6, 0, 4, 5, 0, 0, 3, 0, 9, 9, 9]),
        ("returns", [&display[..], &again, &[1, 3, 9, 7, 1, 3, 0, 255, 12, 0], &again].concat()),
        ("views", [&[9, 60][..], &comes, &again, &[1, 3, 0, 8, 0, 3, 0, 255, 12, 1], &again].concat()),
        ("met", [&[10, 3, 1, 3, 0, 7, 2, 3, 0, 255, 11, 4][..], &[1, 4, 1, 8, 3, 3, 0, 255, 12, 3]].concat()),
    ]
}

fn wire_parser() -> Seeds {
    let control = |message: Control| alone(DISPLAY, |writer| message.encode(writer));
    let header = |header: Header| {
        let mut framed = Writer::new();
        header.encode(&mut framed);
        // Without its length, which is one byte.
        [&[ALONE], &framed.as_slice()[1..]].concat()
    };
    vec![
        ("app_talks", talk(Side::App)),
        ("display_talks", talk(Side::Display)),
        ("app_repairs_in_datagrams", [&[DISPLAY | GREETED | ROWS][..], &rows()].concat()),
        (
            "app_repairs_in_datagrams_and_resumes",
            [&[DISPLAY | GREETED | RESUMABLE | ROWS][..], &rows(), &[11, 1]].concat(),
        ),
        ("app_repairs_two_updates", [talk(Side::App), joint()].concat()),
        ("hello", [&[DISPLAY][..], &operations(Session::new(Config::new(Side::App)))].concat()),
        ("header_update", header(Header::Update(UPDATE))),
        ("header_update_covering", header(Header::Update(COVERING))),
        ("header_pipe", header(Header::Pipe { connection: CONNECTION, pipe: 2 })),
        ("header_blob", header(Header::Blob { hash: 7, length: 9 })),
        ("control_pong", control(Control::Pong { token: 5, received: HostTime(6) })),
        (
            "control_closed",
            control(Control::AppClosed { connection: CONNECTION, error: Some("no".to_owned()) }),
        ),
        (
            "control_embedded",
            control(Control::Embedded {
                stream: 1,
                offset: 0,
                finish: true,
                bytes: Bytes::from_static(b"ab"),
            }),
        ),
    ]
}

/// What a side that has been greeted says after its own hello, replayed to the other side.
fn talk(side: Side) -> Vec<u8> {
    let config = |side| Config { capabilities: Capabilities::SOUND, ..Config::new(side) };
    let mut session = Session::new(config(side));
    let mut peer = Session::new(config(side.peer()));
    shuttle(&mut session, &mut peer);
    shuttle(&mut peer, &mut session);
    let header = match side {
        Side::App => Header::Wayland { connection: CONNECTION },
        Side::Display => Header::Events { connection: CONNECTION },
    };
    let channel = session.open(header);
    session.send(channel, b"a message").expect("short");
    session.send(channel, &[7; 300]).expect("short");
    let pipe = session.open(Header::Pipe { connection: CONNECTION, pipe: 2 });
    session.write(pipe, Bytes::from_static(b"pasted"));
    session.finish(pipe);
    let sound = session.open(Header::Sound);
    session.send_sound(sound, &[17; 40]).expect("short");
    session.finish(sound);
    session.send_datagram(&[5, 17, 0, 0, 0, 0]);
    session.listen(Listen { track: 1, rate: 96_000, target: 80, delay: 90 });
    session.send_blob(77, Bytes::from_static(b"xkb_keymap {};")).expect("small");
    if side == Side::App {
        session.send_update(UPDATE, vec![vec![1; 20], vec![2; 30]]).expect("small");
        session.control(&Control::Exit { code: 3 }).expect("small");
    } else {
        session.control(&Control::Snapshot(Bytes::from_static(b"outputs"))).expect("small");
    }
    let flag = if side == Side::App { DISPLAY } else { 0 };
    [&[flag | GREETED][..], &operations(session)].concat()
}

/// A sum of two updates on streams that say nothing, and then the first of them, but for its end.
fn joint() -> Vec<u8> {
    let mut body = Writer::new();
    Header::Joint(JointHeader { number: 3, first: 40, row: 100, updates: 2 }).encode(&mut body);
    body.varint(20).varint(70).varint(150).varint(0).varint(1).varint(90).raw(&[0x5A; 100]);
    let mut update = Writer::new();
    Header::Update(UPDATE).encode_labelled(Some(Label { number: 20, from: None }), &mut update);
    update.raw(&[0; 60]);
    let append =
        |stream: u8, bytes: &[u8]| [&[0, stream][..], &(bytes.len() as u16).to_le_bytes(), bytes].concat();
    [append(79, body.as_slice()), vec![5, 79], append(70, update.as_slice())].concat()
}

/// A channel of which rows bring the beginning, and then its stream all of it and more; a row of an update that never
/// comes, and one of the main channel.
fn rows() -> Vec<u8> {
    let mut channel = Writer::new();
    let label = Label { number: 7, from: None };
    Header::Wayland { connection: CONNECTION }.encode_labelled(Some(label), &mut channel);
    channel.raw(b"\x03one");
    let channel = channel.as_slice();
    let datagram = |channel: u64, length: u32, bytes: &[u8]| {
        let row = bytes.len() as u16;
        let header = RepairHeader { channel, stream: StreamId(0), offset: 0, length, row, index: 0 };
        let mut framed = Writer::new();
        Header::Repair(header).encode(&mut framed);
        // Without the length of its header, which is one byte.
        let datagram = [&framed.as_slice()[1..], bytes].concat();
        [&[12, 0][..], &(datagram.len() as u16).to_le_bytes(), &datagram].concat()
    };
    let stream = [channel, b"\x03two"].concat();
    let stream = [&[0, 9][..], &(stream.len() as u16).to_le_bytes(), &stream].concat();
    let whole = datagram(7, channel.len() as u32, channel);
    [whole, stream, datagram(8, 150, &[0x5A; 90]), datagram(0, 40, &[0x5A; 20])].concat()
}

fn shuttle(from: &mut Session, to: &mut Session) {
    let mut heads = std::collections::HashMap::new();
    while let Some(transmit) = from.poll_transmit(Time::ZERO) {
        if let Transmit::Data { stream, bytes, .. } = transmit {
            let head = heads.entry(stream).or_insert(0);
            let offset = *head;
            *head += bytes.len() as u64;
            let arrival = wayferry_proto::Arrival::Data { stream, offset, bytes };
            to.receive(wayferry_proto::Time::ZERO, arrival);
        }
    }
}

/// What a session transmits, as the operations of the target.
fn operations(mut session: Session) -> Vec<u8> {
    let mut operations = Vec::new();
    while let Some(transmit) = session.poll_transmit(Time::ZERO) {
        match transmit {
            Transmit::Data { stream, bytes, finish } => {
                let (stream, length) = (stream.0 as u8, bytes.len() as u16);
                operations.extend([0, stream]);
                operations.extend(length.to_le_bytes());
                operations.extend(bytes);
                if finish {
                    operations.extend([5, stream]);
                }
            }
            Transmit::Datagram { bytes } => {
                operations.extend([12, 0]);
                operations.extend((bytes.len() as u16).to_le_bytes());
                operations.extend(bytes);
            }
            Transmit::Reset { stream, code } => operations.extend([7, stream.0 as u8, code as u8]),
            _ => {}
        }
    }
    operations
}

fn alone(flag: u8, encode: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    encode(&mut writer);
    [&[ALONE | flag], writer.as_slice()].concat()
}

fn wayland_message() -> Seeds {
    let text = |text: &str| Arg::Str(Some(text.as_bytes().to_vec()));
    let bind = vec![Arg::Uint(1), text("wl_compositor"), Arg::Uint(4), Arg::NewId(5)];
    let pool = || {
        vec![Arg::NewId(9), Arg::Fd(std::fs::File::open("/dev/null").expect("exists").into()), Arg::Int(4096)]
    };
    vec![
        ("bind", socket(0, &mut [request("wl_registry", "bind", bind)])),
        (
            "window",
            socket(
                0,
                &mut [
                    request("wl_compositor", "create_surface", vec![Arg::NewId(7)]),
                    request("xdg_toplevel", "set_title", vec![text("a title")]),
                    request("wl_surface", "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(-1)]),
                    request("wl_surface", "commit", vec![]),
                ],
            ),
        ),
        ("pool", socket(1, &mut [request("wl_shm", "create_pool", pool())])),
        ("pool_without_file", socket(0, &mut [request("wl_shm", "create_pool", pool())])),
        (
            "keys",
            socket(
                0,
                &mut [event(
                    "wl_keyboard",
                    "enter",
                    vec![Arg::Uint(3), Arg::Object(7), Arg::Array(vec![1, 0, 0, 0])],
                )],
            ),
        ),
        ("null_string", socket(0, &mut [event("wl_data_source", "target", vec![Arg::Str(None)])])),
    ]
}

type Message = (u32, u16, Vec<Arg>);

fn request(interface: &str, name: &str, args: Vec<Arg>) -> Message {
    let table = tables::interface(interface).expect("an interface");
    let object = object_of(interface).expect("an interface");
    (object, tables::request_opcode(table, name).expect("a request"), args)
}

fn event(interface: &str, name: &str, args: Vec<Arg>) -> Message {
    let table = tables::interface(interface).expect("an interface");
    let all = tables::interfaces().count() as u32;
    let object = object_of(interface).expect("an interface") + all;
    (object, tables::event_opcode(table, name).expect("an event"), args)
}

fn socket(fds: u8, messages: &mut [Message]) -> Vec<u8> {
    let mut out = OutBuffer::new(1 << 16);
    for (object, opcode, args) in messages {
        out.encode(*object, *opcode, std::mem::take(args)).expect("a sound message");
    }
    let bytes = out.take().0;
    [&[fds][..], &(bytes.len() as u16).to_le_bytes(), &bytes].concat()
}

fn half_message() -> Seeds {
    let request = |args| Request { object: WireId(4), opcode: 2, args };
    let unit = Unit {
        surface: WireId(6),
        number: 3,
        state: vec![request(vec![WireArg::Int(-5), WireArg::Region(Vec::new())])],
        content: UnitContent::Update(UpdateSeq(9)),
        offset: (1, -2),
        feedback: true,
        answered: Some(70),
        children: Vec::new(),
    };
    let parent = Unit { children: vec![unit.clone()], content: UnitContent::Keep, ..unit.clone() };
    let bind = ToDisplay::Bind { global: 4, interface: "wl_seat".to_owned(), version: 7, id: WireId(8) };
    let args = vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(2), WireArg::NewId(WireId(10))];
    let to_display = |message: ToDisplay| [&[0][..], &message.encode()].concat();
    let to_app = |message: ToApp| [&[1][..], &message.encode()].concat();
    let snapshot = Snapshot {
        globals: vec![Global { name: 1, interface: "wl_compositor".to_owned(), version: 4 }],
        outputs: vec![Output {
            modes: vec![Mode { flags: 3, width: 1280, height: 720, refresh: 60_000 }],
            name: "HEADLESS-1".to_owned(),
            ..Output::default()
        }],
        seats: vec![Seat { name: "seat0".to_owned(), capabilities: 3, ..Seat::default() }],
        ..Snapshot::default()
    };
    vec![
        ("bind", to_display(bind)),
        ("request", to_display(ToDisplay::Request(request(args.clone())))),
        ("unit", to_display(ToDisplay::Unit(parent))),
        ("late", to_display(ToDisplay::Late { key: 70 })),
        ("event", to_app(ToApp::Event(request(args)))),
        (
            "fatal",
            to_app(ToApp::Fatal { object: WireId::DISPLAY, code: 2, message: "out of memory".to_owned() }),
        ),
        ("snapshot", [&[2][..], &snapshot.encode()].concat()),
    ]
}

/// Windows as a view tells of them, with a child, and what becomes of them.
fn page() -> Seeds {
    let message = |message: ToDisplay| {
        let bytes = message.encode();
        [&[0][..], &(bytes.len() as u16).to_le_bytes(), &bytes].concat()
    };
    let bind = |(global, interface): (u32, &str)| {
        let (interface, id) = (interface.to_owned(), WireId(2 + 2 * u64::from(global)));
        message(ToDisplay::Bind { global, interface, version: 1, id })
    };
    let globals = ["wl_compositor", "wl_subcompositor", "xdg_wm_base", "wp_viewporter"];
    let globals: Vec<u8> = (1..).zip(globals).flat_map(bind).collect();
    let globals_again = globals.clone();
    let request = |object, opcode, args| Request { object: WireId(object), opcode, args };
    let ask = |object, opcode, args| message(ToDisplay::Request(request(object, opcode, args)));
    let new = |id| WireArg::NewId(WireId(id));
    let object = |id| WireArg::Object(WireId(id));
    let unit = |surface, number, content| {
        let (state, children) = (Vec::new(), Vec::new());
        let (offset, feedback, answered) = ((0, 0), false, None);
        Unit { surface: WireId(surface), number, state, content, offset, feedback, answered, children }
    };
    let shows = |surface, number| unit(surface, number, UnitContent::Update(UpdateSeq(number)));
    // Eight pixels in two rows, in one colour.
    let solid = [0, 11, 0, 1, 0, 0, 0, 3, 1, 0, 0, 255, 7];
    let update = |surface: u8, seq: u8| [&[1, surface, seq, 3, 1, 1, 1, 13][..], &solid].concat();
    let window = [
        globals,
        ask(4, 0, vec![new(12)]),
        ask(8, 2, vec![new(14), object(12)]),
        ask(14, 1, vec![new(16)]),
        ask(16, 2, vec![WireArg::Str(Some(b"a window".to_vec()))]),
        message(ToDisplay::Unit(unit(12, 1, UnitContent::Keep))),
    ]
    .concat();
    let geometry = request(14, 3, [0, 0, 4, 2].map(WireArg::Int).into());
    let first = Unit { state: vec![geometry], ..shows(12, 2) };
    let first = [update(12, 1), update(12, 2), message(ToDisplay::Unit(first)), vec![2]].concat();
    let child = [
        ask(4, 0, vec![new(18)]),
        ask(6, 1, vec![new(20), object(18), object(12)]),
        ask(10, 1, vec![new(22), object(18)]),
    ]
    .concat();
    let state =
        vec![request(20, 1, vec![WireArg::Int(2), WireArg::Int(1)]), request(20, 3, vec![object(12)])];
    let shape = vec![
        request(22, 1, [0, 0, 512, 256].map(WireArg::Fixed).into()),
        request(22, 2, vec![WireArg::Int(8), WireArg::Int(4)]),
        request(18, 8, vec![WireArg::Int(2)]),
    ];
    let inside = Unit { state: shape, ..shows(18, 1) };
    let both = message(ToDisplay::Unit(Unit { state, children: vec![inside], ..shows(12, 3) }));
    let ends =
        [ask(20, 0, vec![]), ask(18, 0, vec![]), message(ToDisplay::Unit(unit(12, 4, UnitContent::None)))];
    let sound = |track: u8| {
        let packet = |number: u32| Packet {
            track,
            sequence: number,
            capture: Position(u64::from(number) * 480),
            flags: Flags { start: number == 0, idle: number == 30, ..Flags::default() },
            payload: if number == 30 { vec![] } else { vec![number as u8; 480 * 4] },
        };
        let comes = |number: u32| {
            let (which, bytes) = match number {
                // One is lost, and comes again with the next.
                5 => (16, wayferry_audio::datagram(&[])),
                6 => (16, wayferry_audio::datagram(&[packet(6), packet(5)])),
                _ => (15, packet(number).to_vec()),
            };
            let length = (bytes.len() as u16).to_le_bytes();
            // It is decoded, the loudspeaker asks, and 20 ms pass.
            [
                &[which][..],
                &length,
                &bytes,
                &[17, number as u8 + 1, 60, 19, 8, 8, u8::from(number == 9), 3, 1],
            ]
            .concat()
        };
        [vec![14, track], (0..31).flat_map(comes).collect(), vec![18, 14, 0]].concat()
    };
    // A display whose program copies and pastes: it asks for what it has, and for what the browser has.
    let plain = || WireArg::Str(Some(b"text/plain".to_vec()));
    let clipboard = [
        vec![5],
        globals_again,
        bind((5, "wl_seat")),
        bind((10, "wl_data_device_manager")),
        ask(22, 1, vec![new(24), object(12)]),
        ask(4, 0, vec![new(30)]),
        ask(8, 2, vec![new(32), object(30)]),
        ask(32, 1, vec![new(34)]),
        update(30, 1),
        message(ToDisplay::Unit(shows(30, 1))),
        vec![6, 30, 0, 0],
        ask(22, 0, vec![new(36)]),
        ask(36, 0, vec![plain()]),
        ask(24, 1, vec![object(36), WireArg::Uint(1)]),
        ask(1, 1, vec![plain(), WireArg::Pipe(2)]),
        vec![21, 1, 1, 20, 2, 65],
        ask(3, 1, vec![plain(), WireArg::Pipe(4)]),
        ask(1, 2, vec![]),
        ask(36, 1, vec![]),
        ask(24, 2, vec![]),
    ]
    .concat();
    // A video beside it is decoded, once with a frame under way when the next one comes.
    let frames = frames_of_a_corner();
    let moves = |seq: u8, chunk: &[u8]| {
        let update = [&[1, 12, seq, 15, 15, 1, u8::from(seq == 1), chunk.len() as u8][..], chunk].concat();
        [update, message(ToDisplay::Unit(Unit { number: u64::from(seq) + 1, ..shows(12, seq.into()) }))]
            .concat()
    };
    let solid = [0, 11, 0, 1, 0, 0, 0, 15, 15, 0, 0, 255, 7];
    let video = [
        moves(1, &solid),
        moves(2, &frames[0]),
        vec![22, 0, 1],
        moves(3, &frames[1]),
        moves(4, &frames[2]),
        vec![22, 1, 2, 22, 0, 3, 2],
        moves(5, &frames[3]),
        vec![22, 2, 4, 3, 60],
    ];
    vec![
        ("clipboard", clipboard),
        ("video", [window.clone(), video.concat()].concat()),
        ("opus", sound(1)),
        ("samples", sound(2)),
        ("window", [&window[..], &first].concat()),
        ("child", [&window, &first, &child, &both, &update(18, 1), &update(12, 3), &[2][..]].concat()),
        ("waits", [&window[..], &child, &both, &ends.concat(), &[3, 60], &update(12, 3)[..]].concat()),
        ("hidden", [&window[..], &first[..first.len() - 1], &[3, 60, 2]].concat()),
        ("rotten", [&window[..], &[1, 12, 2, 3, 1, 1, 1, 2, 9, 9], &update(12, 1), &first[..]].concat()),
    ]
}

fn chunk() -> Seeds {
    // Text with a picture in it, one colour below.
    let row = |format: Format, side: usize, y: usize| {
        let bytes = format.bytes_per_pixel();
        (0..side * bytes).map(move |x| match (x / bytes, y) {
            (_, 200..) => 9,
            (..20, 40..60) => (x * 31 + y * 17 + x * y % 13) as u8,
            (column, _) => {
                [0, 7, 255][(((column / 5 + y * 60) as u32).wrapping_mul(0x9e37_79b1) >> 28) as usize % 3]
            }
        })
    };
    // An update, and the next one, for which the picture has moved up.
    let two = |compression, format: Format, side: usize| {
        let size = Size::new(side as u32, side as u32).expect("a size");
        let layout = Layout::new(0, (side * format.bytes_per_pixel()) as u64, size, format).expect("rows");
        let (mut draft, mut encoder) = (Draft::new(size, format), Encoder::new(compression));
        [0, 30].map(|moved| {
            let picture: Vec<u8> = (moved..moved + side).flat_map(|y| row(format, side, y)).collect();
            let read = |offset: u64, target: &mut [u8]| {
                target.copy_from_slice(&picture[offset as usize..][..target.len()]);
                Ok::<(), std::convert::Infallible>(())
            };
            draft.absorb(&layout, &Region::full(size), read).expect("memory");
            [&[(side - 1) as u8, (side - 1) as u8, format.code()], &framed(&encoder.encode(&mut draft))[..]]
                .concat()
        })
    };
    // What is lossy when so few bytes are allowed.
    let lossy = |bytes| {
        let (side, format) = (200, Format::Xrgb8888);
        let size = Size::new(side as u32, side as u32).expect("a size");
        let layout = Layout::new(0, side as u64 * 4, size, format).expect("rows");
        let (mut draft, mut encoder) = (Draft::new(size, format), Encoder::new(Compression::None));
        let read = |offset: u64, target: &mut [u8]| {
            for (at, byte) in (offset as usize..).zip(target) {
                *byte = (at / 7 + at % 4 * 50 + (at * at >> 5) % 9) as u8;
            }
            Ok::<(), std::convert::Infallible>(())
        };
        draft.absorb(&layout, &Region::full(size), read).expect("memory");
        let allowance = Allowance { bytes, quality: 40, now: Duration::ZERO };
        let chunks = encoder.encode_within(&mut draft, &allowance, None, None);
        [&[(side - 1) as u8, (side - 1) as u8, format.code()], &framed(&chunks)[..]].concat()
    };
    let [plain, plain_next] = two(Compression::None, Format::Rgb565, 50);
    let [lz4, lz4_moved] = two(Compression::Lz4, Format::Xrgb8888, 256);
    let [zstd, zstd_moved] = two(Compression::Zstd(1), Format::Argb2101010, 256);
    vec![
        ("plain", plain),
        ("plain_next", plain_next),
        ("lz4", lz4),
        ("lz4_moved", lz4_moved),
        ("zstd", zstd),
        ("zstd_moved", zstd_moved),
        ("lossy", lossy(20_000)),
        ("preview", lossy(1000)),
        ("empty", vec![0, 0, 0]),
    ]
}

/// The chunks of an update as the target takes them.
fn framed(chunks: &[Vec<u8>]) -> Vec<u8> {
    chunks.iter().flat_map(|chunk| [&(chunk.len() as u16).to_le_bytes()[..], chunk].concat()).collect()
}

/// Programs of the differential test's kind.
fn programs() -> Seeds {
    let names = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    names.into_iter().zip(0..).map(|(name, seed)| (name, wayferry_fuzz::programs::seed(seed, 200))).collect()
}

/// Programs that keep the protocol, as operations of the target; recorded ones lie beside them.
fn pair() -> Seeds {
    // Everything arrives after 20 ms.
    let turn: &[u8] = &[1, 20, 0];
    // A commit whose pixels come late: the message first, the update behind the answer to a frame.
    let late: &[u8] = &[12, 20, 0, 13, 0xff, 0xff, 4, 20, 8, 10, 5, 20, 6, 0, 9, 4];
    let child = [commit(12), commit(7)].concat();
    let desync = [says("wl_subsurface", "set_desync", 13, vec![]), commit(12)].concat();
    vec![
        ("window", [&window(), turn, &commit(7), late, &commit(7), turn].concat()),
        ("subsurface", [&window(), turn, &subsurface(), &child, late, &desync, late, &child, turn].concat()),
        (
            "destroyed",
            [&window(), turn, &commit(7), &says("wl_surface", "destroy", 7, vec![]), late].concat(),
        ),
        ("compositor_gone", [&window(), turn, &commit(7), &[15, 1]].concat()),
        ("input", [&window(), turn, &[11, 0, 0, 0, 11, 3, 0, 0, 11, 4, 1, 0, 11, 7, 0, 0], turn].concat()),
    ]
}

fn window() -> Vec<u8> {
    let text = |text: &str| Arg::Str(Some(text.as_bytes().to_vec()));
    let mut operations = says("wl_display", "get_registry", 1, vec![Arg::NewId(2)]);
    for (interface, id) in [("wl_compositor", 3), ("wl_shm", 4), ("xdg_wm_base", 5), ("wl_subcompositor", 6)]
    {
        let name = tables::GLOBALS.iter().position(|global| global.name() == interface).expect("offered") + 1;
        let version = Arg::Uint(tables::version_cap(interface));
        let args = vec![Arg::Uint(name as u32), text(interface), version, Arg::NewId(id)];
        operations.extend(says("wl_registry", "bind", 2, args));
    }
    let file = || std::fs::File::open("/dev/null").expect("exists").into();
    let numbers = [0, 32, 16, 128].map(Arg::Int);
    for message in [
        says("wl_compositor", "create_surface", 3, vec![Arg::NewId(7)]),
        says("xdg_wm_base", "get_xdg_surface", 5, vec![Arg::NewId(8), Arg::Object(7)]),
        says("xdg_surface", "get_toplevel", 8, vec![Arg::NewId(9)]),
        says("wl_surface", "commit", 7, vec![]),
        says("wl_shm", "create_pool", 4, vec![Arg::NewId(10), Arg::Fd(file()), Arg::Int(2048)]),
        says(
            "wl_shm_pool",
            "create_buffer",
            10,
            std::iter::once(Arg::NewId(11)).chain(numbers).chain([Arg::Uint(0)]).collect(),
        ),
    ] {
        operations.extend(message);
    }
    operations
}

fn subsurface() -> Vec<u8> {
    [
        says("wl_compositor", "create_surface", 3, vec![Arg::NewId(12)]),
        says("wl_subcompositor", "get_subsurface", 6, vec![Arg::NewId(13), Arg::Object(12), Arg::Object(7)]),
    ]
    .concat()
}

/// The program paints a little and commits.
fn commit(surface: u32) -> Vec<u8> {
    [
        vec![14, 0, 1, 0, surface as u8],
        says("wl_surface", "attach", surface, vec![Arg::Object(11), Arg::Int(0), Arg::Int(0)]),
        says("wl_surface", "damage_buffer", surface, [0, 0, 32, 16].map(Arg::Int).into()),
        says("wl_surface", "commit", surface, vec![]),
    ]
    .concat()
}

/// One message of the program; its files have the size of the pool in [`window`].
fn says(interface: &str, name: &str, object: u32, args: Vec<Arg>) -> Vec<u8> {
    let table = tables::interface(interface).expect("an interface");
    let mut out = OutBuffer::new(1 << 16);
    let opcode = tables::request_opcode(table, name).expect("a request");
    out.encode(object, opcode, args).expect("a sound message");
    let (bytes, fds) = out.take();
    let mut operation = vec![0];
    operation.extend((bytes.len() as u16).to_le_bytes());
    operation.push(fds.len() as u8);
    fds.iter().for_each(|_| operation.extend(2048u32.to_le_bytes()));
    operation.extend(bytes);
    operation
}

fn audio_packet() -> Seeds {
    let packet = |sequence: u32| Packet {
        track: 1,
        sequence,
        capture: Position(u64::from(sequence) * 40),
        flags: Flags { start: sequence == 7, ..Flags::default() },
        payload: (0..160).map(|at| (at * sequence % 251) as u8).collect(),
    };
    let idle = Packet { flags: Flags { idle: true, ..Flags::default() }, payload: vec![], ..packet(12) };
    let met = |packets: &[Packet], wait: u8| {
        let each = packets.iter().flat_map(|packet| {
            let bytes = packet.to_vec();
            [&[wait, bytes.len() as u8][..], &bytes].concat()
        });
        [1].into_iter().chain(each).collect::<Vec<u8>>()
    };
    let flow: Vec<Packet> = (7..40).map(packet).chain([idle.clone()]).collect();
    let mut gaps = flow.clone();
    gaps.retain(|packet| packet.sequence % 5 != 0);
    gaps.swap(3, 5);
    let jumps: Vec<Packet> = (0..9).map(|index| packet(7 + (index / 4) * 1_000_000 + index)).collect();
    let times = |at: usize| match at % 4 {
        0 => Position(0),
        1 => Position(1 << 61),
        _ => packet(8 + at as u32).capture,
    };
    let lies: Vec<Packet> =
        (0..24).map(|at| Packet { capture: times(at), ..packet(8 + at as u32) }).collect();
    vec![
        ("datagram", [vec![0], wayferry_audio::datagram([&packet(9), &packet(8), &packet(7)])].concat()),
        ("idle", [vec![0], wayferry_audio::datagram([&idle])].concat()),
        ("flow", met(&flow, 1)),
        ("gaps", met(&gaps, 1)),
        ("jumps", met(&jumps, 20)),
        ("times", met(&lies, 10)),
        ("asleep", met(&flow, 200)),
    ]
}

/// Steps of the target: streams of the first two programs have the numbers 0 and 1.
fn reader_packets() -> Seeds {
    let (image, size) = (1, Size::new(640, 480).expect("a size"));
    let described =
        Described { size, fourcc: Fourcc::new(*b"AR24"), modifier: Modifier::INVALID, flipped: true };
    let import = ToReader::Import { image, described, planes: vec![(64, 2560), (1 << 20, 128)] };
    let region = Region::full(size);
    let read = ToReader::Read { job: 2, image, slot: 0, region };
    let pairs = vec![(Fourcc::new(*b"XR24"), Modifier::LINEAR), (Fourcc::new(*b"AR24"), Modifier(1 << 56))];
    let ready = FromReader::Ready(Means {
        name: "a reader".to_owned(),
        device: Some(0xe280),
        lacks_fences: false,
        pairs,
    });
    let imported = |outcome| FromReader::Imported { image, outcome };
    let was_read = |job, outcome| FromReader::Read { job, outcome };
    let packet = |bytes: Vec<u8>| [vec![0], bytes].concat();
    let said = |said: &[FromReader]| {
        let each = said.iter().flat_map(|message| {
            let bytes = message.encode();
            [&[3, bytes.len() as u8][..], &bytes].concat()
        });
        [1].into_iter().chain(each).collect::<Vec<u8>>()
    };
    let no = || Err("it is of another device".to_owned());
    vec![
        ("import", packet(import.encode())),
        ("read", packet(read.encode())),
        ("lend", packet(ToReader::Lend { slot: 7, bytes: 1 << 20 }.encode())),
        ("forget", packet(ToReader::Forget { image }.encode())),
        ("ready", packet(ready.encode())),
        ("refused", packet(imported(no()).encode())),
        (
            "three",
            said(&[
                ready.clone(),
                imported(Ok(Route::Gpu)),
                was_read(2, Ok(())),
                was_read(3, Err("it is of another device".to_owned())),
                was_read(4, Ok(())),
            ]),
        ),
        ("lies", said(&[ready.clone(), was_read(4, Ok(())), ready, imported(no())])),
    ]
}

fn pulse_commands() -> Seeds {
    let does = |client: u8, what: u8| what * 4 + client;
    let asks = |client: u8, command: Command| {
        let mut bytes = Vec::new();
        command.write_tag_prefixed(9, &mut bytes, 35).expect("a command");
        [&[does(client, 1), bytes.len() as u8], &bytes[..]].concat()
    };
    let writes = |client: u8, channel: u8, from: u8, offset: u16, length: u16| {
        let [[a, b], [c, d]] = [offset.to_le_bytes(), length.to_le_bytes()];
        vec![does(client, 3), channel, from, a, b, c, d]
    };
    let (reads, passes) = (|client: u8| vec![does(client, 5), 255], |turns: u8| vec![does(0, 7), turns]);
    let stream = |format, channels, sample_rate, target_length| {
        Command::CreatePlaybackStream(PlaybackStreamParams {
            sample_spec: SampleSpec { format, channels, sample_rate },
            buffer_attr: BufferAttr { target_length, ..BufferAttr::default() },
            channel_map: ChannelMap::empty(),
            ..PlaybackStreamParams::default()
        })
    };
    let record = |format, channels, sample_rate| {
        Command::CreateRecordStream(RecordStreamParams {
            sample_spec: SampleSpec { format, channels, sample_rate },
            buffer_attr: BufferAttr { fragment_size: 1920, ..BufferAttr::default() },
            channel_map: ChannelMap::empty(),
            ..RecordStreamParams::default()
        })
    };
    let cork = |cork| Command::CorkPlaybackStream(CorkStreamParams { channel: 0, cork });
    let volume = SetStreamVolumeParams { index: 0, volume: ChannelVolume::muted(1) };
    let latency = Command::GetPlaybackLatency(LatencyParams { channel: 0, now: std::time::UNIX_EPOCH });
    let plain = stream(SampleFormat::S16Le, 2, 48_000, 3840);
    let rates = stream(SampleFormat::S24Be, 6, 44_100, u32::MAX);
    vec![
        (
            "play",
            [
                asks(0, plain.clone()),
                writes(0, 0, 0, 0, 4000),
                passes(1),
                asks(0, latency.clone()),
                writes(0, 0, 0, 0, 2000),
                passes(3),
                reads(0),
                asks(0, Command::DrainPlaybackStream(0)),
                passes(2),
                asks(0, Command::DeletePlaybackStream(0)),
            ]
            .concat(),
        ),
        (
            "two",
            [
                asks(0, plain.clone()),
                asks(1, rates),
                asks(2, Command::Subscribe(SubscriptionMask::ALL)),
                writes(0, 0, 0, 0, 60_000),
                writes(1, 1, 0, 0, 60_000),
                asks(1, Command::TriggerPlaybackStream(1)),
                passes(7),
                asks(2, Command::SetSinkInputVolume(volume)),
                asks(2, Command::GetSinkInputInfoList),
                asks(0, cork(true)),
                passes(7),
                asks(0, cork(false)),
                vec![does(1, 6)],
                passes(7),
            ]
            .concat(),
        ),
        (
            "record",
            [
                asks(0, Command::GetSourceInfoList),
                asks(0, record(SampleFormat::S16Le, 2, 48_000)),
                asks(1, record(SampleFormat::Float32Be, 1, 16_000)),
                passes(7),
                reads(0),
                asks(1, Command::GetSourceOutputInfoList),
                asks(0, Command::FlushRecordStream(0)),
                passes(3),
                asks(0, Command::DeleteRecordStream(0)),
                passes(255),
            ]
            .concat(),
        ),
        (
            "seek",
            [
                asks(0, plain),
                writes(0, 0, 1, 400, 4000),
                writes(0, 0, 2, 4, 8000),
                writes(0, 0, 3, 40, 8000),
                writes(0, 0, 60, 7, 8000),
                asks(0, Command::FlushPlaybackStream(0)),
                asks(0, Command::PrebufPlaybackStream(0)),
                writes(0, 0, 2, 0, 8000),
                asks(0, latency),
                passes(5),
            ]
            .concat(),
        ),
        (
            "ask",
            [
                asks(0, Command::GetServerInfo),
                asks(0, Command::GetSinkInfoList),
                asks(0, Command::GetSourceInfoList),
                asks(0, Command::GetClientInfoList),
                asks(0, Command::LookupSink(c"wayferry".to_owned())),
                asks(0, Command::Stat),
                asks(0, Command::Exit),
                reads(0),
            ]
            .concat(),
        ),
        ("header", [vec![does(0, 0), 20, 0x80, 0, 0, 0], vec![255; 4], vec![0; 12]].concat()),
    ]
}

/// Operations of the target: keys, each with its letter.
fn echo() -> Seeds {
    let typed = |answered: bool, codes: &[u8]| -> Vec<u8> {
        let letter = |code: &u8| if answered { vec![0, *code, 0, 1, *code, 0] } else { vec![0, *code, 0] };
        codes.iter().flat_map(letter).collect()
    };
    // Three words, the letters of the last one known, on a fresh line each.
    let words = [16, 17, 18, 30, 31, 16, 17, 18];
    let line = [vec![0, 28, 0, 8, 0, 0], typed(true, &words)].concat();
    let learned = [vec![1], line.clone(), line.clone(), line].concat();
    let ahead = [learned.clone(), typed(false, &[16, 17, 14, 105, 18, 30])].concat();
    let painted = [2, 10, 10, 60, 20, 255, 0, 3, 5, 5, 200, 0, 200, 0, 3];
    vec![
        ("typed", learned.clone()),
        ("ahead", ahead.clone()),
        ("late", [ahead.clone(), vec![4, 3, 4, 0, 7, 9]].concat()),
        ("painted", [ahead.clone(), painted.to_vec(), painted.to_vec()].concat()),
        (
            "hinted",
            [vec![1, 5, 0, 16, 8, 16, 0], ahead.clone(), vec![5, 24, 16, 8, 16, 0, 5, 0, 0, 1, 1, 7]]
                .concat(),
        ),
        ("another", [ahead, vec![9, 1, 6, 0, 9, 0], typed(true, &words)].concat()),
        ("other_depth", [vec![5], typed(true, &words)].concat()),
    ]
}

fn erasure() -> Seeds {
    let block = |length: u16, row: u16, lies: bool, pieces: &[(u8, u16, u8)]| {
        let mut bytes = [(length - 1).to_le_bytes(), (row - 1).to_le_bytes()].concat();
        bytes.push(u8::from(lies));
        for &(kind, offset, length) in pieces {
            bytes.push(kind);
            bytes.extend(offset.to_le_bytes());
            bytes.push(length);
        }
        bytes
    };
    let across = [(SOURCE, 0, 70), (SOURCE, 170, 255), (0, 0, 100), (SOURCE, 425, 75)];
    let two = [(SOURCE, 0, 50), (SOURCE, 250, 250), (0, 0, 100), (1, 0, 60), (1, 40, 60)];
    vec![
        ("across_rows", block(500, 100, false, &across)),
        ("two_rows", block(500, 100, false, &two)),
        ("repair_alone", block(40, 100, false, &[(3, 0, 40)])),
        ("past_the_end", block(500, 100, false, &[(SOURCE, 490, 20), (0, 90, 20), (9, 0, 1)])),
        (
            "lies",
            block(
                500,
                100,
                true,
                &[(SOURCE, 0, 250), (200, 0, 100), (7, 0, 90), (8, 5, 95), (SOURCE, 300, 3)],
            ),
        ),
    ]
}

/// Two pictures of a video, a new key frame, one more picture; and two of which the first is missing.
/// Chunks with the frames of a video of 16 × 16 pixels.
fn frames_of_a_corner() -> Vec<Vec<u8>> {
    let size = wayferry_video::Size::new(16, 16).expect("a size");
    let mut encoder = wayferry_video::Encoder::new(size, Quality::new(60));
    let rate = Rate { bits_per_second: 300_000, interval: Duration::from_millis(33) };
    let mut chunks = Vec::new();
    for at in 0..4 {
        let picture = [at * 9; 16 * 16 * 4];
        let data = encoder.encode(Order::Bgrx, |y| &picture[y as usize * 64..], rate, false);
        let data = data.expect("sound").expect("not left out").data;
        let video = wayferry_pixels::Video { stream: 0, rect: Rect::new(0, 0, 16, 16), key: at == 0 };
        wayferry_pixels::video::Frame { video, fourth: 9, data }.write(&mut chunks);
    }
    chunks
}

fn video() -> Seeds {
    let size = wayferry_video::Size::new(SIDES.0, SIDES.1).expect("a size");
    let mut encoder = wayferry_video::Encoder::new(size, Quality::new(60));
    let rate = Rate { bits_per_second: 300_000, interval: Duration::from_millis(33) };
    let mut frame = |at: u32| {
        let row = |y: u32| (0..SIDES.0).flat_map(move |x| (x * 3 * (at + 1) ^ y * 5).to_le_bytes());
        let picture: Vec<u8> = (0..SIDES.1).flat_map(row).collect();
        let rows = |y: u32| &picture[(y * SIDES.0 * 4) as usize..];
        let data =
            encoder.encode(Order::Bgrx, rows, rate, at == 2).expect("sound").expect("not left out").data;
        [&[0][..], &(data.len() as u16).to_le_bytes(), &data].concat()
    };
    let frames: Vec<Vec<u8>> = (0..4).map(&mut frame).collect();
    vec![("whole", frames.concat()), ("gap", [&frames[0][..], &[1], &frames[1][1..]].concat())]
}

fn web() -> Seeds {
    let (mut answer, mut capsule) = (vec![6], Vec::new());
    ConnectResponse::OK.encode(&mut answer).expect("an answer");
    Capsule::CloseWebTransportSession { code: 7, reason: "enough".into() }.encode(&mut capsule);
    vec![
        ("uni", vec![0, 0x40, 0x54, 0x80, 0, 0, 4, b'x']),
        ("control", vec![0, 0]),
        ("bi", vec![1, 0x40, 0x41, 4, b'x']),
        ("request_stream", vec![1, 1, 3]),
        ("datagram", vec![2, 1, 0x40, 1, b'x']),
        ("close", [&[3], "enough: ä".as_bytes()].concat()),
        ("answer", answer),
        ("capsule", [&[7, 2], &capsule[..]].concat()),
        ("capsule_framed", [&[7, 2, 0x21, 1, 9, 0, capsule.len() as u8], &capsule[..]].concat()),
        ("capsule_too_short", vec![7, 0, 0, 3, 0x68, 0x43, 0, 0, 4, 1, 2, 3, 4]),
        ("capsule_too_long", vec![7, 4, 0, 0xc0, 0, 1, 0, 0, 0, 0, 0, 0x68, 0x43, 0x80, 0, 4, 5, 0]),
    ]
}

fn site_request() -> Seeds {
    let head = b"GET /page.js?a=b HTTP/1.1\r\nUser-Agent: a browser\r\nhOsT:\tlocalhost:8000 \r\n\r\n";
    let long = format!("X: {}", "x".repeat(8 << 10));
    vec![
        ("request", [&[0, 0], &head[..]].concat()),
        ("head", [&[0, 7], &b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n"[..]].concat()),
        ("line", [&[2, 3], &b"Cookie: a=b; \xc3\xa4\r\n\r\nmore"[..]].concat()),
        ("end", [&[3, 200], &b"\r\n"[..]].concat()),
        ("two_hosts", [&[2, 1], &b"Host: b\r\n\r\n"[..]].concat()),
        ("old", [&[0, 1], &b"GET / HTTP/1.0\r\nHost: a\r\n\r\n"[..]].concat()),
        ("too_long", [&[2, 255], long.as_bytes()].concat()),
    ]
}

fn http3() -> Seeds {
    let get = fields(&[(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/")]);
    let ok = fields(&[(":status", "200"), ("content-length", "4"), ("x-other", "Ω")]);
    let trailers = fields(&[("x-sum", "0")]);
    let request = [frame(0x21, b"grease"), frame(1, &get), frame(0, b"da"), frame(0, b"ta")].concat();
    let response = [frame(1, &ok), frame(0, b"data"), frame(1, &trailers)].concat();
    let settings = frame(4, &[6, 0x80, 1, 0, 0, 8, 1, 0x33, 1]);
    let client = [&settings[..], &frame(0xd, &[8]), &frame(0xf0700, b"\x04u=1")].concat();
    // The path in Huffman's code, and a line with a name of its own.
    let coded = b"\0\0\xd1\xd7\x50\x8b\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\x2aab\x01c";
    vec![
        ("request", [&[0, 2], &request[..]].concat()),
        ("response", [&[1, 6], &response[..]].concat()),
        ("client_control", [&[2, 0], &client[..]].concat()),
        ("server_control", [&[3, 9], &settings[..], &frame(7, &[4])].concat()),
        ("session_stream", vec![0, 9, 0x40, 0x41, 4, b'x']),
        ("cut_off", vec![1, 0, 1, 9, 0, 0]),
        ("section", [&[4, 200, 0], &get[..]].concat()),
        ("section_of_answer", [&[5, 200, 0], &ok[..]].concat()),
        ("section_of_trailers", [&[6, 33, 0], &trailers[..]].concat()),
        ("section_coded", [&[4, 0, 1], &coded[..]].concat()),
        ("section_bomb", [&[6, 0, 4, 0, 0], &[0xdd; 40][..]].concat()),
        ("text", b"\x07\x64\x00\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff".to_vec()),
        ("text_padded_wrong", b"\x07\x64\x00\x18".to_vec()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of interfaces move when one is added: those of `pair` had bound other globals than they named.
    #[test]
    fn regression_seeds_stay_behind_the_code_that_makes_them() {
        for (target, seeds) in all() {
            for (name, bytes) in seeds {
                let written = std::fs::read(directory(target).join(name)).ok();
                assert!(written == Some(bytes), "{target}/{name} is another: `cargo run --example seeds`");
            }
        }
    }
}
