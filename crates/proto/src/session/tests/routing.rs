//! Which channel takes which way, and what happens when a way is closed.

use super::*;

/// Sends one of everything; gives how many streams each side opened.
fn one_of_everything(app: Config, display: Config) -> (usize, usize) {
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 1);
    let channel = pair.app().open(wayland(1));
    pair.app().send(channel, b"request").unwrap();
    pair.app().send_update(update(1, 1), vec![vec![1; 90_000 / 2]; 2]).unwrap();
    let channel = pair.app().open(pipe(2));
    pair.app().write(channel, Bytes::from(vec![5; 200_000]));
    pair.app().finish(channel);
    let channel = pair.display().open(events(1));
    pair.display().send(channel, b"key").unwrap();
    pair.display().send_blob(9, Bytes::from_static(b"keymap")).unwrap();
    pair.run(Duration::from_secs(3));
    let [app, display] = &pair.ends;
    assert_eq!(display.messages()[&wayland(1)], [&b"request"[..]]);
    assert_eq!(display.updates()[&update(1, 1)].len(), 2);
    assert_eq!(display.pipes()[&pipe(2)].len(), 200_000);
    assert!(matches!(display.events.last(), Some(Event::Finished { header, .. }) if *header == pipe(2)));
    assert_eq!(app.messages()[&events(1)], [&b"key"[..]]);
    assert!(app.events.iter().any(|event| matches!(event, Event::Blob { hash: 9, .. })));
    assert_eq!((app.warnings(), display.warnings(), app.closed(), display.closed()), (0, 0, vec![], vec![]));
    (app.opens(), display.opens())
}

#[test]
fn four_combinations_of_old_and_new_work() {
    let new = |side| Config::new(side);
    let old = |side| Config { streams: Kinds::EMPTY, ..Config::new(side) };
    assert_eq!(one_of_everything(new(Side::App), new(Side::Display)), (4, 3));
    assert_eq!(one_of_everything(old(Side::App), new(Side::Display)), (1, 1));
    assert_eq!(one_of_everything(new(Side::App), old(Side::Display)), (1, 1));
    assert_eq!(one_of_everything(old(Side::App), old(Side::Display)), (1, 1));
}

#[test]
fn a_kind_can_be_sent_over_the_main_channel() {
    let app = Config { main_only: Kinds::EMPTY.with(Kind::Pipe), ..Config::new(Side::App) };
    assert_eq!(one_of_everything(app, Config::new(Side::Display)), (3, 3));
}

#[test]
fn the_table_knows_every_kind() {
    let peer = hello_of(Side::Display);
    for kind in Kind::ALL {
        assert_eq!(route(kind, Kinds::ALL, Kinds::EMPTY, &peer), Route::Own);
        let elsewhere = if kind == Kind::Control { Route::Own } else { Route::Main };
        assert_eq!(route(kind, Kinds::EMPTY, Kinds::EMPTY, &peer), elsewhere);
        assert_eq!(route(kind, Kinds::ALL, Kinds::ALL, &peer), elsewhere);
        let peer = Hello { streams: Kinds::EMPTY, ..peer.clone() };
        assert_eq!(route(kind, Kinds::ALL, Kinds::EMPTY, &peer), elsewhere);
    }
}

#[test]
fn large_channels_let_others_into_the_main_one() {
    let app = Config { streams: Kinds::EMPTY, ..Config::new(Side::App) };
    let mut pair = Pair::new(app, Config::new(Side::Display), LinkPlan::CLEAN, 1);
    pair.run(Duration::from_millis(200));
    let channel = pair.app().open(wayland(1));
    pair.settle();
    pair.forget();
    pair.app().send_update(update(1, 1), vec![vec![1; 60_000]; 10]).unwrap();
    assert!(pair.app().poll_transmit(Time::ZERO).is_some());
    pair.app().send(channel, b"urgent").unwrap();
    let Some(Transmit::Data { bytes, .. }) = pair.app().poll_transmit(Time::ZERO) else {
        panic!("nothing left")
    };
    assert!(bytes.len() < 30, "the urgent message is next, not the rest of the update");
    while let Some(Transmit::Data { bytes, .. }) = pair.app().poll_transmit(Time::ZERO) {
        assert!(bytes.len() <= (16 << 10) + 32);
    }
}

#[test]
fn a_stream_that_cannot_be_opened_goes_through_the_main_channel() {
    let plan = LinkPlan { open_failures: 1, ..LinkPlan::CLEAN };
    let mut pair = Pair::new(Config::new(Side::App), Config::new(Side::Display), plan, 1);
    let channel = pair.app().open(wayland(1));
    for n in 0..200_u8 {
        pair.app().send(channel, &[n; 100]).unwrap();
        pair.run(Duration::from_millis(3));
    }
    pair.app().send_update(update(1, 1), vec![vec![1; 60_000]; 3]).unwrap();
    pair.run(Duration::from_secs(1));
    let messages = &pair.ends[DISPLAY].messages()[&wayland(1)];
    assert!(messages.len() == 200 && messages.iter().enumerate().all(|(n, message)| message[0] == n as u8));
    assert_eq!(pair.ends[DISPLAY].updates().len(), 1);
    assert_eq!((pair.ends[APP].warnings(), pair.ends[DISPLAY].warnings()), (1, 0));
    // The channel goes on there, and can be ended and given up there.
    pair.app().reset(channel, 4);
    pair.run(Duration::from_secs(1));
    let reset = |event: &Event| matches!(event, Event::Reset { code: 4, .. });
    assert!(pair.ends[DISPLAY].events.iter().any(reset));
    assert_eq!(pair.ends[APP].closed(), []);
}

#[test]
fn without_a_main_channel_there_is_no_session() {
    let mut alone = Alone::new(Config::new(Side::App));
    let failed = Arrival::OpenFailed { stream: StreamId(0), bytes: Bytes::new(), finish: false };
    alone.session.receive(Time::ZERO, failed);
    assert!(matches!(alone.closed(), CloseReason::LinkLost(_)));
}

#[test]
fn a_stop_inside_the_main_channel_works_as_outside() {
    let app = Config { streams: Kinds::EMPTY, ..Config::new(Side::App) };
    let mut pair = Pair::new(app, Config::new(Side::Display), LinkPlan::CLEAN, 1);
    let ours = pair.app().open(pipe(2));
    pair.app().write(ours, Bytes::from(vec![7; 300_000]));
    pair.run(Duration::from_millis(200));
    let opened = pair.ends[DISPLAY].events.iter().find_map(|event| match event {
        Event::Opened { channel, .. } => Some(*channel),
        _ => None,
    });
    pair.display().stop(opened.unwrap(), 9);
    pair.run(Duration::from_secs(1));
    let stopped = Event::Stopped { channel: ours, header: pipe(2), code: 9 };
    assert_eq!(pair.ends[APP].events.last(), Some(&stopped));
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint());
}
