//! A peer that does what it must not: refusals, limits, garbage.

use proptest::prelude::*;

use super::*;
use crate::{Note, Resume, TrayItem};

fn violation(alone: &mut Alone) -> String {
    match alone.closed() {
        CloseReason::ProtocolViolation(text) => text,
        other => panic!("closed for another reason: {other}"),
    }
}

fn too_much(alone: &mut Alone) -> String {
    match alone.closed() {
        CloseReason::TooMuch(limit) => limit,
        other => panic!("closed for another reason: {other}"),
    }
}

/// The stream was refused: stopped, told, warned about; and the session goes on.
fn refused(alone: &mut Alone, stream: u64, kind: u64) {
    assert!(matches!(alone.events()[..], [Event::Warning(_)]));
    let told = Bytes::from(control_frame(&Control::Refused { kind }));
    assert_eq!(
        alone.transmits(),
        [
            Transmit::Stop { stream: StreamId(stream), code: STREAM_REFUSED },
            Transmit::Data { stream: StreamId(0), bytes: told, finish: false },
        ]
    );
    alone.data(stream, 2, &[0; 5000]);
    alone.finished(stream, 9000);
    let next = super::stream(wayland(77), |writer| {
        writer.bytes(b"message");
    });
    alone.data(stream + 1000, 0, &next);
    alone.finished(stream + 1000, next.len());
    assert!(matches!(
        alone.events()[..],
        [Event::Opened { .. }, Event::Message { .. }, Event::Finished { .. }]
    ));
    assert_eq!(alone.transmits(), []);
}

#[test]
fn unknown_kinds_and_oversized_headers_are_refused_alone() {
    let mut alone = Alone::ready(Side::Display);
    alone.data(3, 0, &[3, 0x40, 77, 9]);
    refused(&mut alone, 3, 77);
    alone.data(4, 0, &[0x41, 0x01]);
    refused(&mut alone, 4, 0);
    // The fields of a known kind are wrong.
    alone.data(5, 0, &[3, 4, 1, 2]);
    refused(&mut alone, 5, 4);
    // It ends too early.
    alone.data(6, 0, &[9, 2]);
    alone.finished(6, 2);
    refused(&mut alone, 6, 0);
}

#[test]
fn split_headers_are_put_together() {
    let header = stream(Header::Update(update(4, 1)), |writer| {
        writer.varint(0);
    });
    for order in [false, true] {
        let mut alone = Alone::ready(Side::Display);
        let mut offsets: Vec<_> = (0..header.len()).collect();
        if order {
            offsets.reverse();
        }
        for at in offsets {
            alone.data(1, at as u64, &header[at..=at]);
        }
        assert_eq!(alone.events(), [Event::Update { header: update(4, 1), chunks: vec![] }]);
    }
}

#[test]
fn a_kind_that_was_not_offered_a_stream_is_refused() {
    let config = Config { streams: Kinds::EMPTY, ..Config::new(Side::Display) };
    let mut alone = Alone::new(config);
    alone.data(0, 0, &hello_stream(&hello_of(Side::App)));
    alone.events();
    alone.transmits();
    let pipe = stream(pipe(1), |_| {});
    alone.data(1, 0, &pipe);
    assert!(matches!(alone.events()[..], [Event::Warning(_)]));
    assert!(matches!(alone.transmits()[..], [Transmit::Stop { .. }, Transmit::Data { .. }]));
    assert!(!alone.session.is_closed());
}

#[test]
fn refusals_are_not_echoed_for_ever() {
    let mut alone = Alone::ready(Side::Display);
    for stream in 1..=1000 {
        alone.data(stream, 0, &[1, 63]);
    }
    assert_eq!(alone.events().len(), MAX_WARNINGS as usize);
    let told = alone.transmits().into_iter().map(|transmit| match transmit {
        Transmit::Data { bytes, .. } => bytes.len(),
        _ => 0,
    });
    let frame = control_frame(&Control::Refused { kind: 63 });
    assert_eq!(told.sum::<usize>(), MAX_REFUSALS as usize * frame.len());
    assert_eq!(alone.session.footprint(), Alone::ready(Side::Display).session.footprint());
}

#[test]
fn streams_of_the_wrong_side_are_violations() {
    let mut alone = Alone::ready(Side::Display);
    alone.data(1, 0, &stream(events(1), |_| {}));
    assert!(violation(&mut alone).contains("Events"));
    let mut alone = Alone::ready(Side::App);
    alone.data(1, 0, &stream(wayland(1), |_| {}));
    assert!(violation(&mut alone).contains("Wayland"));
    let mut alone = Alone::ready(Side::App);
    alone.data(1, 0, &stream(Header::Update(update(1, 1)), |_| {}));
    assert!(violation(&mut alone).contains("Update"));
}

#[test]
fn there_is_one_of_each_long_lived_channel() {
    for header in [Header::Control, wayland(1), pipe(3)] {
        let mut alone = Alone::ready(Side::Display);
        alone.data(1, 0, &stream(header, |_| {}));
        alone.data(2, 0, &stream(header, |_| {}));
        assert!(violation(&mut alone).contains("again"));
    }
}

#[test]
fn hellos_come_first_and_once() {
    let mut alone = Alone::ready(Side::Display);
    let hello = hello_stream(&hello_of(Side::App));
    alone.data(0, hello.len() as u64, &hello[2..]);
    assert!(violation(&mut alone).contains("hello"));
    let mut alone = Alone::new(Config::new(Side::Display));
    alone.data(
        0,
        0,
        &stream(Header::Control, |writer| {
            writer.raw(&control_frame(&Control::Exit { code: 0 }));
        }),
    );
    assert!(violation(&mut alone).contains("hello"));
}

#[test]
fn the_control_channel_lasts() {
    let length = hello_stream(&hello_of(Side::App)).len();
    let mut alone = Alone::ready(Side::Display);
    alone.finished(0, length);
    violation(&mut alone);
    let mut alone = Alone::ready(Side::Display);
    alone.session.receive(Time::ZERO, Arrival::Reset { stream: StreamId(0), code: 0 });
    violation(&mut alone);
}

#[test]
fn a_channel_cannot_carry_the_main_one() {
    let mut alone = Alone::ready(Side::Display);
    let bytes = stream(Header::Control, |_| {}).into();
    let frame = control_frame(&Control::Embedded { stream: 1, offset: 0, finish: false, bytes });
    alone.data(0, hello_stream(&hello_of(Side::App)).len() as u64, &frame);
    assert!(violation(&mut alone).contains("one inside another"));
}

#[test]
fn messages_and_streams_must_end_whole() {
    let cases = [
        stream(wayland(1), |writer| {
            writer.varint(5).raw(b"four");
        }),
        stream(Header::Update(update(1, 1)), |writer| {
            writer.varint(1).varint(10).raw(b"nine bits");
        }),
        stream(Header::Blob { hash: 1, length: 9 }, |_| {}),
    ];
    for bytes in cases {
        let mut alone = Alone::ready(Side::Display);
        alone.data(1, 0, &bytes);
        assert!(!alone.session.is_closed());
        alone.finished(1, bytes.len());
        assert!(violation(&mut alone).contains("the end"));
    }
    let mut alone = Alone::ready(Side::Display);
    alone.data(
        1,
        0,
        &stream(Header::Blob { hash: 1, length: 2 }, |writer| {
            writer.raw(b"three");
        }),
    );
    assert!(violation(&mut alone).contains("after a blob"));
}

#[test]
fn messages_that_are_too_long_end_the_session() {
    let mut alone = Alone::ready(Side::Display);
    let long = stream(wayland(1), |writer| {
        writer.varint(MAX_MESSAGE as u64 + 1);
    });
    alone.data(1, 0, &long);
    assert!(violation(&mut alone).contains(&(MAX_MESSAGE + 1).to_string()));
    let channel = alone.session.open(Header::Events { connection: ConnectionId(1) });
    assert!(alone.session.send(channel, &[0; MAX_MESSAGE + 1]).is_err());
}

#[test]
fn a_pipe_has_a_window() {
    let mut alone = Alone::ready(Side::Display);
    let header = stream(pipe(1), |_| {});
    alone.data(1, 0, &header);
    alone.data(1, header.len() as u64, &vec![0; PIPE_WINDOW]);
    let events = alone.events();
    assert!(matches!(events[..], [Event::Opened { .. }, Event::Data { .. }]));
    alone.data(1, (header.len() + PIPE_WINDOW) as u64, &[0]);
    assert!(too_much(&mut alone).contains("pipe"));
    // A hole does not widen it.
    let mut alone = Alone::ready(Side::Display);
    alone.data(1, 0, &header);
    alone.data(1, (header.len() + PIPE_WINDOW) as u64, &[0]);
    assert!(too_much(&mut alone).contains("pipe"));
}

#[test]
fn credit_for_what_was_never_sent_is_a_violation() {
    let mut alone = Alone::ready(Side::Display);
    let channel = alone.session.open(pipe(1));
    alone.session.write(channel, Bytes::from_static(b"ten bytes!"));
    alone.transmits();
    let at = hello_stream(&hello_of(Side::App)).len() as u64;
    let credit = |consumed| Control::PipeCredit { connection: ConnectionId(1), pipe: 1, consumed };
    let frame = control_frame(&credit(10));
    alone.data(0, at, &frame);
    assert!(!alone.session.is_closed());
    alone.data(0, at + frame.len() as u64, &control_frame(&credit(11)));
    assert!(violation(&mut alone).contains("pipe"));
}

#[test]
fn buffered_bytes_are_limited() {
    let limits = Limits { buffered: 100_000, buffered_per_channel: 50_000, ..Limits::default() };
    let alone = || {
        let mut alone = Alone::new(Config { limits, ..Config::new(Side::Display) });
        alone.data(0, 0, &hello_stream(&hello_of(Side::App)));
        alone.events();
        alone
    };
    let mut one = alone();
    let header = stream(wayland(1), |_| {});
    one.data(1, 0, &header);
    one.data(1, 500, &vec![0; 49_000]);
    assert!(!one.session.is_closed());
    one.data(1, 60_000, &[0; 2_000]);
    assert!(too_much(&mut one).contains("channel"));
    // An update alone may have more; all together may not.
    let mut several = alone();
    for surface in 1..=2 {
        let header = stream(Header::Update(update(surface, 1)), |writer| {
            writer.varint(2).varint(60_000).varint(1);
        });
        several.data(surface, 0, &header);
        several.data(surface, header.len() as u64, &[0; 49_000]);
        assert!(!several.session.is_closed());
    }
    several.data(1, 49_020, &[0; 9_000]);
    assert_eq!(too_much(&mut several), "buffered bytes");
}

#[test]
fn single_bytes_are_counted_at_what_they_cost() {
    let hello = hello_stream(&hello_of(Side::App));
    // The main channel keeps what it has given out, as one range.
    let limits = Limits { buffered: 65_000 + hello.len() + 64, ..Limits::default() };
    let mut alone = Alone::new(Config { limits, ..Config::new(Side::Display) });
    alone.data(0, 0, &hello);
    for n in 1..=1_000 {
        alone.data(n % 7 + 1, n * 2, &[1]);
    }
    assert!(!alone.session.is_closed());
    alone.data(1, 1 << 20, &[1]);
    assert_eq!(too_much(&mut alone), "buffered bytes");
}

#[test]
fn open_streams_are_limited() {
    let limits = Limits { streams: 10, ..Limits::default() };
    let mut alone = Alone::new(Config { limits, ..Config::new(Side::Display) });
    alone.data(0, 0, &hello_stream(&hello_of(Side::App)));
    for n in 1..10 {
        alone.data(n, 0, &stream(wayland(n as u32), |_| {}));
    }
    alone.events();
    assert!(!alone.session.is_closed());
    alone.data(10, 0, &[1]);
    assert_eq!(too_much(&mut alone), "open streams");
}

#[test]
fn little_is_kept_before_the_hello() {
    let limits = Limits { buffered_before_hello: 10_000, ..Limits::default() };
    let mut alone = Alone::new(Config { limits, ..Config::new(Side::Display) });
    let bytes = stream(wayland(1), |writer| {
        writer.bytes(&[1; 8_000]);
    });
    alone.data(1, 0, &bytes);
    assert!(alone.events().is_empty());
    alone.data(
        2,
        0,
        &stream(pipe(1), |writer| {
            writer.raw(&[1; 3_000]);
        }),
    );
    assert_eq!(too_much(&mut alone), "bytes before the hello");
}

#[test]
fn answers_to_pings_are_limited() {
    let mut alone = Alone::ready(Side::Display);
    let mut at = hello_stream(&hello_of(Side::App)).len() as u64;
    for token in 0..30 {
        let frame = control_frame(&Control::Ping { token, sent: HostTime(0) });
        alone.data(0, at, &frame);
        at += frame.len() as u64;
    }
    assert!(too_much(&mut alone).contains("pings"));
}

#[test]
fn unknown_control_messages_are_ignored() {
    let mut alone = Alone::ready(Side::Display);
    let at = hello_stream(&hello_of(Side::App)).len() as u64;
    alone.data(0, at, &[3, 0x3f, 1, 2]);
    assert!(matches!(alone.events()[..], [Event::Warning(_)]));
    alone.data(0, at + 4, &[3, 6, 0, 0]);
    assert!(violation(&mut alone).contains("exit status"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Bytes that are nearly right, damaged, in any order: never a panic, never more memory than came, one end.
    #[test]
    fn garbage_is_survived(seed: u64, damage in 0_usize..20, side in 0_usize..2) {
        let mut rng = Dice(seed);
        let side = [Side::App, Side::Display][side];
        let mut alone = match rng.below(4) {
            0 => Alone::new(Config::new(side)),
            1 => Alone::ready(side),
            _ => Alone::resumable(side, rng.below(2) == 0),
        };
        let mut received = 0;
        for _ in 0..200 {
            let mut bytes = specimen(&mut rng);
            for _ in 0..rng.below(damage + 1) {
                let at = rng.below(bytes.len());
                bytes[at] = rng.next() as u8;
            }
            let stream = StreamId(rng.below(12) as u64);
            received += bytes.len() + 1000;
            let arrival = match rng.below(40) {
                0 => Arrival::Finished { stream, length: rng.next() >> rng.below(64) },
                1 => Arrival::Reset { stream, code: rng.next() as u32 },
                2 => Arrival::Stopped { stream, code: rng.next() as u32 },
                3 => Arrival::Data { stream, offset: rng.next() >> rng.below(64), bytes: bytes.into() },
                _ => Arrival::Data { stream, offset: rng.below(40) as u64 / 9 * 13, bytes: bytes.into() },
            };
            alone.session.receive(Time::from_millis(rng.below(3000) as u64), arrival);
            prop_assert!(alone.session.incoming.buffered() <= received);
            while alone.session.poll_transmit(Time::ZERO).is_some() {}
        }
        let closed = alone.events().iter().filter(|event| matches!(event, Event::Closed { .. })).count();
        prop_assert_eq!(closed, usize::from(alone.session.is_closed()));
    }
}

/// Some bytes as a peer might send them.
fn specimen(rng: &mut Dice) -> Vec<u8> {
    let length = rng.below(60);
    let payload = rng.bytes(length);
    match rng.below(12) {
        0 => hello_stream(&hello_of([Side::App, Side::Display][rng.below(2)])),
        1 => stream(wayland(rng.below(3) as u32), |writer| {
            writer.bytes(&payload);
        }),
        2 => stream(events(rng.below(3) as u32), |writer| {
            writer.bytes(&payload);
        }),
        3 => stream(pipe(rng.below(3) as u64), |writer| {
            writer.raw(&payload);
        }),
        4 => stream(Header::Blob { hash: 1, length: length as u32 }, |writer| {
            writer.raw(&payload);
        }),
        5 => stream(Header::Update(update(1, 1 + rng.below(3) as u64)), |writer| {
            writer.varint(2).varint(length as u64 + 1).varint(1).raw(&payload).raw(&[1, 2]);
        }),
        6 => control_frame(&Control::Embedded {
            stream: rng.below(3) as u64,
            offset: 0,
            finish: rng.below(2) == 0,
            bytes: stream(pipe(9), |_| {}).into(),
        }),
        7 => control_frame(&Control::Ping { token: 1, sent: HostTime(3) }),
        8 => {
            let label = Label { number: 1 + rng.below(4) as u64, from: [None, Some(0)][rng.below(2)] };
            let mut writer = Writer::new();
            pipe(rng.below(3) as u64).encode_labelled(Some(label), &mut writer);
            writer.raw(&payload);
            writer.into_vec()
        }
        9 => {
            let number = 1 + rng.below(3) as u64;
            let open = vec![Delivered { number: number + 2, offset: rng.below(3) as u64 }];
            let receipt = Receipt { lasting: rng.below(2) as u64, done: vec![1..=number], open };
            control_frame(&match rng.below(2) {
                0 => Control::Received(receipt),
                _ => Control::Resume(Resume { receipt, stopped: vec![(1, 1)] }),
            })
        }
        10 => control_frame(&Control::GivenUp { number: 1 + rng.below(4) as u64, code: 1 }),
        _ => [&[1][..], &payload].concat(),
    }
}

#[test]
fn what_is_given_up_is_freed_and_stays_over() {
    let limits = Limits { buffered: 100_000, streams: 3, ..Limits::default() };
    let mut alone = Alone::new(Config { limits, ..Config::new(Side::Display) });
    alone.data(0, 0, &hello_stream(&hello_of(Side::App)));
    alone.events();
    alone.transmits();
    let idle = alone.session.footprint();
    for n in 1..100 {
        let half = stream(Header::Update(update(1, n)), |writer| {
            writer.varint(1).varint(60_000).raw(&[1; 50_000]);
        });
        alone.data(n, 0, &half);
        alone.data(n, 55_000, &[1; 100]);
        assert!(alone.session.incoming.buffered() > 50_000);
        alone.session.receive(Time::ZERO, Arrival::Reset { stream: StreamId(n), code: 0 });
        // Bytes that the reset overtook.
        alone.data(n, 0, &half);
        alone.finished(n, half.len());
        assert_eq!(alone.session.incoming.buffered(), 0);
    }
    assert_eq!(alone.events(), []);
    alone.transmits();
    assert_eq!(alone.session.footprint(), idle);
}

#[test]
fn a_stopped_update_is_no_event() {
    let mut alone = Alone::ready(Side::App);
    alone.session.send_update(update(1, 1), vec![vec![1; 50_000]; 3]).unwrap();
    let Some(Transmit::Open { stream, .. }) = alone.session.poll_transmit(Time::ZERO) else {
        panic!("no stream")
    };
    alone.session.receive(Time::ZERO, Arrival::Stopped { stream, code: 0 });
    assert_eq!(alone.events(), []);
    assert_eq!(
        alone.session.content_budget(&LinkState::default()),
        crate::carrier::MIN_WINDOW,
        "nothing is queued any more"
    );
    // A stream that was never opened cannot be stopped.
    alone.transmits();
    alone.session.receive(Time::ZERO, Arrival::Stopped { stream: StreamId(99), code: 0 });
    assert_eq!((alone.transmits(), alone.events()), (vec![], vec![]));
}

/// Whether a display that is able to do this hears the message of a host that is able to do all.
fn is_heard(message: &Control, wanted: Capabilities) -> bool {
    let config = Config { capabilities: wanted, ..Config::new(Side::Display) };
    let mut alone = Alone::new(config);
    let capabilities = Capabilities::NOTIFY.with(Capabilities::TRAY);
    let said = hello_stream(&Hello { capabilities, ..hello_of(Side::App) });
    alone.data(0, 0, &[said, control_frame(message)].concat());
    let events = alone.events();
    assert!(!events.iter().any(|event| matches!(event, Event::Closed { .. })), "{events:?}");
    events.contains(&Event::Control(message.clone()))
}

#[test]
fn a_host_that_notifies_unasked_is_not_heard() {
    let note = Control::Notify(Note { id: 1, summary: "hello".into(), ..Note::default() });
    assert!(is_heard(&note, Capabilities::NOTIFY));
    assert!(!is_heard(&note, Capabilities::TRAY));
}

#[test]
fn a_host_that_shows_icons_unasked_is_not_heard() {
    let item = Control::TrayItem(TrayItem { id: 1, title: "hello".into(), ..TrayItem::default() });
    assert!(is_heard(&item, Capabilities::TRAY));
    assert!(!is_heard(&item, Capabilities::NOTIFY));
}
