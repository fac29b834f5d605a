//! Sessions that outlive their carriers: nothing is lost, nothing comes twice.

use super::*;

const LOST: Duration = Duration::from_secs(5);

fn messages(pair: &Pair, at: usize, header: Header) -> Vec<u8> {
    let messages = pair.ends[at].messages().remove(&header).unwrap_or_default();
    messages.iter().map(|message| message[0]).collect()
}

fn count(end: &End, wanted: impl Fn(&Event) -> bool) -> usize {
    end.events.iter().filter(|event| wanted(event)).count()
}

fn opened(pair: &Pair, at: usize) -> RemoteChannelId {
    let opened = pair.ends[at].events.iter().find_map(|event| match event {
        Event::Opened { channel, .. } => Some(*channel),
        _ => None,
    });
    opened.expect("a channel")
}

/// The display comes back to an app side that knows nothing of it, and says so.
fn come_to_a_stranger(pair: &mut Pair) {
    pair.reconnect();
    pair.ends[APP].waiting = None;
    pair.run(Duration::from_millis(60));
    let now = pair.now;
    pair.app().decline(now);
}

#[test]
fn channels_go_on_over_another_carrier() {
    let mut pair = Pair::resumable();
    let down = pair.app().open(wayland(1));
    let up = pair.display().open(events(1));
    let (mut sent, length) = (Vec::new(), 3000);
    for n in 0..90 {
        pair.app().send(down, &vec![n; length]).unwrap();
        pair.display().send(up, &[n]).unwrap();
        sent.push(n);
        pair.run(Duration::from_millis(12));
        if n % 20 == 19 {
            pair.lose();
            pair.run(LOST);
        }
        if n % 20 == 5 && n > 20 {
            pair.reconnect();
        }
    }
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), sent);
    assert_eq!(messages(&pair, APP, events(1)), sent);
    for end in &pair.ends {
        assert_eq!(count(end, |event| matches!(event, Event::Opened { .. })), 1);
        assert_eq!(count(end, |event| matches!(event, Event::Suspended { .. })), 4);
        assert_eq!(count(end, |event| *event == Event::Resumed), 4);
        assert_eq!((end.closed(), end.warnings(), end.session.retained()), (vec![], 0, 0));
    }
    // Half a message was there when the link went: it was not sent again.
    let sizes = pair.ends[APP].transmits.iter().map(|transmit| match transmit {
        Transmit::Data { bytes, .. } => bytes.len(),
        _ => 0,
    });
    assert!(sizes.sum::<usize>() < 2 * 90 * length);
}

#[test]
fn a_suspended_session_is_silent_and_takes_everything() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(wayland(1));
    pair.app().send(channel, &[1]).unwrap();
    pair.settle();
    let (heard, now) = (pair.now, pair.now + Duration::from_secs(9));
    pair.now = now;
    pair.lose();
    assert!(pair.app().contact_age(now) >= now - heard, "the end of a link is not heard of the peer");
    let reason = CloseReason::LinkLost("cable".into());
    assert_eq!(pair.ends[APP].events, [Event::Suspended { reason }]);
    pair.forget();
    let app = pair.app();
    assert!(app.is_suspended() && !app.is_closed());
    assert_eq!(app.next_timeout(), None);
    let before = app.retained();
    app.send(channel, &[2; 99]).unwrap();
    let other = app.open(pipe(4));
    app.write(other, Bytes::from_static(b"bytes"));
    app.finish(other);
    app.send_update(update(1, 1), vec![vec![3; 500]]).unwrap();
    app.send_blob(9, Bytes::from_static(b"blob")).unwrap();
    app.control(&Control::AppClosed { connection: ConnectionId(7), error: None }).unwrap();
    assert!(app.retained() > before + 99 + 5 + 500 + 4);
    app.on_timeout(Time::from_millis(1 << 40));
    // What comes late from the carrier is nothing.
    app.receive(Time::ZERO, Arrival::Stopped { stream: StreamId(1), code: 9 });
    pair.settle();
    assert!(pair.ends[APP].events.is_empty() && pair.ends[APP].transmits.is_empty());
    assert!(pair.app().contact_age(now) >= now - heard, "what is said meanwhile asks the peer for nothing");
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), [1, 2]);
    let end = &pair.ends[DISPLAY];
    assert_eq!((end.pipes()[&pipe(4)].len(), end.updates().len()), (5, 1));
    assert_eq!(count(end, |event| matches!(event, Event::Blob { hash: 9, .. } | Event::Control(_))), 2);
    assert_eq!(pair.app().retained(), 0);
}

#[test]
fn who_closes_means_it() {
    let mut pair = Pair::resumable();
    pair.app().close(CloseReason::Done);
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].closed(), [(CloseReason::Done, ClosedBy::Peer)]);
    let mut pair = Pair::resumable();
    pair.lose();
    pair.forget();
    pair.app().close(CloseReason::Gone);
    pair.settle();
    assert_eq!(pair.ends[APP].events, [Event::Closed { reason: CloseReason::Gone, by: ClosedBy::Us }]);
    assert!(pair.ends[APP].transmits.is_empty(), "there is no peer to tell");
    assert_eq!(pair.ends[APP].session.footprint(), 0);
}

#[test]
fn silence_suspends_and_eight_hours_later_it_goes_on() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(wayland(1));
    pair.run(Duration::from_millis(60));
    pair.cut();
    pair.app().send(channel, &[1]).unwrap();
    pair.run(Duration::from_secs(59));
    assert!(!pair.app().is_suspended() && !pair.display().is_suspended());
    pair.run(Duration::from_secs(2));
    for end in &pair.ends {
        assert_eq!(end.events.last(), Some(&Event::Suspended { reason: CloseReason::Timeout }));
        assert_eq!(end.session.next_timeout(), None);
    }
    pair.run(Duration::from_secs(8 * 3600));
    let now = pair.now;
    assert!(pair.display().contact_age(now) > Duration::from_secs(8 * 3600));
    pair.reconnect();
    pair.run(Duration::from_millis(220));
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), [1], "in two round trips");
    let now = pair.now;
    assert!(pair.display().contact_age(now) < Duration::from_secs(1));
}

/// The hello and what follows it may come apart; what was heard on the old carrier is no measure for the new one.
#[test]
fn a_session_that_was_at_rest_for_long_is_not_silent_at_once() {
    let mut pair = Pair::resumable();
    pair.lose();
    let (now, [app, display]) = (pair.now + Duration::from_secs(3600), resumable_configs());
    let mut candidate = Session::new(Config { start: now, ..app });
    let hello = hello_stream(&display.hello(1, 0));
    let length = hello.len() as u64;
    candidate.receive(now, Arrival::Data { stream: StreamId(0), offset: 0, bytes: hello.into() });
    let old = std::mem::replace(pair.app(), Session::new(Config::new(Side::App)));
    candidate.succeed(now, old).unwrap();
    candidate.on_timeout(now + Duration::from_secs(59));
    assert!(!candidate.is_suspended());
    let resume = control_frame(&Control::Resume(crate::Resume::default()));
    let now = now + Duration::from_secs(59);
    candidate.receive(now, Arrival::Data { stream: StreamId(0), offset: length, bytes: resume.into() });
    let events: Vec<Event> = std::iter::from_fn(|| candidate.poll_event()).collect();
    assert_eq!(events.last(), Some(&Event::Resumed));
}

#[test]
fn regression_a_link_lost_before_the_answer_is_not_the_end() {
    let [app, display] = resumable_configs();
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 0);
    pair.display().control(&Control::Snapshot(Bytes::from_static(b"screen"))).unwrap();
    pair.settle();
    pair.flying.retain(|_, (to, _)| *to == APP);
    pair.run(Duration::from_millis(60));
    assert_eq!(pair.ends[DISPLAY].events, []);
    let down = pair.app().open(wayland(1));
    pair.app().send(down, &[1]).unwrap();
    pair.lose();
    assert!(matches!(pair.ends[DISPLAY].events[..], [Event::Suspended { .. }]));
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), [1]);
    assert_eq!(count(&pair.ends[APP], |event| matches!(event, Event::Control(Control::Snapshot(_)))), 1);
    assert_eq!(count(&pair.ends[DISPLAY], |event| *event == Event::Resumed), 1);
    pair.ends.iter().for_each(|end| assert_eq!((end.closed(), end.session.retained()), (vec![], 0)));
}

/// The app side has not heard of the display when it comes again.
#[test]
fn regression_a_link_lost_before_the_hello_came_is_not_the_end() {
    let [app, display] = resumable_configs();
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 0);
    pair.run(Duration::from_millis(20));
    pair.lose();
    come_to_a_stranger(&mut pair);
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].events.last(), Some(&Event::Declined));
    let up = pair.display().open(events(1));
    pair.display().send(up, &[4]).unwrap();
    pair.run(LOST);
    assert_eq!(messages(&pair, APP, events(1)), [4]);
    assert_eq!(pair.ends[DISPLAY].closed(), []);
}

#[test]
fn without_both_sides_a_lost_link_is_the_end() {
    let [app, display] = resumable_configs();
    for (app, display) in [(app, Config::new(Side::Display)), (Config::new(Side::App), display)] {
        let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 1);
        let channel = pair.app().open(wayland(1));
        pair.app().send(channel, &[1]).unwrap();
        pair.run(LOST);
        assert_eq!(messages(&pair, DISPLAY, wayland(1)), [1]);
        assert_eq!((pair.app().retained(), pair.display().retained()), (0, 0));
        pair.lose();
        let reason = CloseReason::LinkLost("cable".into());
        pair.ends.iter().for_each(|end| assert_eq!(end.closed(), [(reason.clone(), ClosedBy::Link)]));
    }
    let mut early =
        Pair::new(resumable_configs()[0].clone(), resumable_configs()[1].clone(), LinkPlan::CLEAN, 1);
    early.lose();
    assert_eq!(early.ends[APP].closed().len(), 1, "there was nothing yet");
    assert!(early.display().is_suspended(), "the app side may have begun");
}

#[test]
fn what_is_received_is_not_kept() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(wayland(1));
    for n in 0..100 {
        pair.app().send(channel, &[n; 20_000]).unwrap();
        pair.app().send_update(update(1, u64::from(n) + 1), vec![vec![n; 9_000]; 5]).unwrap();
        pair.run(Duration::from_millis(10));
    }
    // What was sent in the last round trip, and 64 KiB of which the peer need not tell yet.
    assert!(pair.app().retained() < 11 * 65_000 + 70_000, "{}", pair.app().retained());
    pair.run(Duration::from_millis(250));
    assert_eq!(pair.app().retained(), 0);
    let receipts = pair.ends[DISPLAY].transmits.iter().map(|transmit| match transmit {
        Transmit::Data { bytes, .. } => bytes.len(),
        _ => 0,
    });
    let receipts: Vec<usize> = receipts.collect();
    assert!(receipts.len() < 200 && receipts.iter().sum::<usize>() < 3000, "{receipts:?}");
}

#[test]
fn what_ends_while_the_link_is_gone_ends_on_both_sides_with_its_reason() {
    let mut pair = Pair::resumable();
    let ours: Vec<ChannelId> = (1..=4).map(|n| pair.app().open(pipe(n))).collect();
    for channel in &ours {
        pair.app().write(*channel, Bytes::from_static(b"some"));
    }
    pair.run(Duration::from_millis(300));
    let remote: BTreeMap<Header, RemoteChannelId> = pair.ends[DISPLAY]
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Opened { channel, header } => Some((*header, *channel)),
            _ => None,
        })
        .collect();
    pair.forget();
    // One while the link is there and one after, on each side; of the first two nothing arrives.
    pair.app().reset(ours[0], 5);
    pair.display().stop(remote[&pipe(2)], 6);
    pair.lose();
    pair.app().reset(ours[2], 7);
    pair.display().stop(remote[&pipe(4)], 8);
    pair.reconnect();
    pair.run(LOST);
    let expected = |at: usize| -> Vec<Event> {
        let reason = CloseReason::LinkLost("cable".into());
        let begin = [Event::Suspended { reason }];
        let ready = pair.ends[at].events.iter().find(|event| matches!(event, Event::Ready { .. }));
        let middle = [ready.expect("a hello").clone(), Event::Resumed];
        let reset = |n, code| Event::Reset { channel: remote[&pipe(n)], header: pipe(n), code };
        let stopped = |n: u64, code| Event::Stopped { channel: ours[n as usize - 1], header: pipe(n), code };
        let end = if at == DISPLAY { [reset(1, 5), reset(3, 7)] } else { [stopped(2, 6), stopped(4, 8)] };
        begin.into_iter().chain(middle).chain(end).collect()
    };
    assert_eq!(pair.ends[DISPLAY].events, expected(DISPLAY));
    assert_eq!(pair.ends[APP].events, expected(APP));
    pair.forget();
    pair.run(LOST);
    let idle = Pair::resumable();
    for at in [APP, DISPLAY] {
        assert_eq!(pair.ends[at].session.footprint(), idle.ends[at].session.footprint());
    }
}

/// The display stops a channel after it has said that it has it, and before the app answers.
#[test]
fn a_stop_on_the_way_back_is_heard() {
    let mut pair = Pair::resumable();
    let ours = pair.app().open(pipe(1));
    pair.app().write(ours, Bytes::from_static(b"some"));
    pair.run(Duration::from_millis(200));
    let remote = opened(&pair, DISPLAY);
    pair.lose();
    pair.reconnect();
    pair.settle();
    pair.display().stop(remote, 6);
    pair.run(LOST);
    let stopped = Event::Stopped { channel: ours, header: pipe(1), code: 6 };
    assert_eq!(pair.ends[APP].events.last(), Some(&stopped));
    assert_eq!(pair.app().retained(), 0);
}

/// A reader stops a pipe, the packet that says so is lost, and the carrier delivers the rest of the pipe before it is
/// sent again: QUIC tells no stop of a stream of which everything has been acknowledged (RFC 9000 §3.1).
#[test]
fn a_pipe_whose_stop_is_not_told_is_forgotten() {
    let mut pair = Pair::resumable();
    let ours = pair.app().open(pipe(1));
    pair.app().write(ours, Bytes::from_static(b"some"));
    pair.run(Duration::from_secs(1));
    let remote = opened(&pair, DISPLAY);
    pair.display().stop(remote, 6);
    pair.settle();
    let before = pair.flying.len();
    pair.flying.retain(|_, (_, arrival)| !matches!(arrival, Arrival::Stopped { .. }));
    assert_eq!(pair.flying.len(), before - 1);
    pair.run(Duration::from_secs(1));
    pair.app().write(ours, Bytes::from_static(b"more"));
    pair.app().finish(ours);
    pair.run(LOST);
    assert_eq!(pair.app().retained(), 0);
    pair.lose();
    pair.reconnect();
    pair.run(LOST);
    pair.forget();
    for at in [APP, DISPLAY] {
        assert_eq!(pair.ends[at].session.footprint(), Pair::resumable().ends[at].session.footprint());
    }
}

#[test]
fn an_update_can_be_taken_back_until_it_leaves_again() {
    let mut pair = Pair::resumable();
    let (connection, surface) = (ConnectionId(1), SurfaceId(1));
    for seq in 1..=3 {
        pair.app().send_update(update(1, seq), vec![vec![seq as u8; 50_000]]).unwrap();
    }
    pair.lose();
    assert_eq!(pair.app().take_back(connection, surface, UpdateSeq(3)), None, "it may have arrived");
    pair.reconnect();
    // The hello of the display, and its list of what it has.
    pair.run(Duration::from_millis(49));
    let room = LinkState { rate: Some(25 * 20_000), window: 1 << 20, ..LinkState::default() };
    let now = pair.now;
    let arrived: Vec<_> = std::mem::take(&mut pair.flying).into_iter().collect();
    for (_, (to, arrival)) in arrived {
        pair.ends[to].session.receive(now, arrival);
    }
    while let Some(event) = pair.ends[APP].session.poll_event() {
        pair.admit(&event);
    }
    pair.app().set_link(now, &room);
    assert!(pair.app().take_back(connection, surface, UpdateSeq(3)).is_some());
    pair.app().send_update(update(1, 4), vec![vec![4; 50_000]]).unwrap();
    pair.settle();
    assert_eq!(pair.app().take_back(connection, surface, UpdateSeq(1)), None, "its beginning has left");
    pair.app().set_link(now, &LinkState { window: 1 << 30, ..LinkState::default() });
    pair.run(LOST);
    let updates: Vec<u64> = pair.ends[DISPLAY].updates().keys().map(|header| header.seq.0).collect();
    assert_eq!(updates, [1, 2, 4]);
    pair.forget();
    let idle = Pair::resumable();
    assert_eq!(pair.ends[DISPLAY].session.footprint(), idle.ends[DISPLAY].session.footprint());
    assert_eq!((pair.app().retained(), pair.app().content_budget(&LinkState::default())), (0, 64 << 10));
}

#[test]
fn what_is_given_up_is_not_sent_again() {
    let mut pair = Pair::resumable();
    let (connection, surface) = (ConnectionId(1), SurfaceId(1));
    pair.app().send_update(update(1, 1), vec![vec![1; 50_000]]).unwrap();
    pair.run(LOST);
    assert_eq!(pair.app().give_up(connection, surface), None, "it is there");
    for seq in 2..=4 {
        pair.app().send_update(update(1, seq), vec![vec![seq as u8; 50_000]]).unwrap();
    }
    pair.settle();
    let payload = Some(1200);
    let room = LinkState { rate: Some(25 * 20_000), window: 1 << 20, payload, ..LinkState::default() };
    let now = pair.now;
    pair.app().set_link(now, &room);
    pair.app().send_update(update(1, 5), vec![vec![5; 45_000]; 2]).unwrap();
    pair.settle();
    let is_of_content =
        |arrival: &Arrival| matches!(arrival, Arrival::Data { bytes, .. } if bytes.len() > 1000);
    pair.flying.retain(|_, (to, arrival)| *to != DISPLAY || !is_of_content(arrival));
    let (first, bytes) = pair.app().give_up(connection, surface).expect("they have not arrived");
    assert_eq!(first, UpdateSeq(2));
    assert!((240_000..241_000).contains(&bytes), "{bytes}");
    assert_eq!(pair.app().give_up(connection, surface), None, "they are gone");
    pair.app().send_update(update(1, 6), vec![vec![6; 50_000]]).unwrap();
    pair.app().set_link(now, &LinkState { window: 1 << 30, payload, ..LinkState::default() });
    pair.run(LOST);
    pair.lose();
    pair.reconnect();
    pair.run(LOST);
    let updates: Vec<u64> = pair.ends[DISPLAY].updates().keys().map(|header| header.seq.0).collect();
    assert_eq!(updates, [1, 6]);
    pair.forget();
    let idle = Pair::resumable();
    assert_eq!(pair.ends[DISPLAY].session.footprint(), idle.ends[DISPLAY].session.footprint());
    assert_eq!((pair.app().retained(), pair.app().content_budget(&LinkState::default())), (0, 64 << 10));
}

#[test]
fn messages_of_the_main_channel_come_once_each() {
    let mut pair = Pair::resumable();
    let closed = |n| Control::AppClosed { connection: ConnectionId(n), error: None };
    for n in 0..40 {
        pair.app().control(&closed(n)).unwrap();
        pair.display().control(&Control::Snapshot(vec![n as u8].into())).unwrap();
        pair.run(Duration::from_millis(35));
        match n % 8 {
            2 => pair.lose(),
            3 => pair.reconnect(),
            6 => {
                pair.lose();
                pair.reconnect();
            }
            _ => {}
        }
    }
    pair.run(LOST);
    let controls = |at: usize| -> Vec<Control> {
        let control = |event: &Event| match event {
            Event::Control(message) => Some(message.clone()),
            _ => None,
        };
        pair.ends[at].events.iter().filter_map(control).collect()
    };
    assert_eq!(controls(DISPLAY), (0..40).map(closed).collect::<Vec<_>>());
    assert_eq!(controls(APP).len(), 40);
    assert!(pair.ends.iter().all(|end| end.session.retained() == 0));
}

#[test]
fn a_pipe_keeps_its_window() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(pipe(2));
    let bytes = Dice(5).bytes(1_500_000);
    pair.app().write(channel, bytes.clone().into());
    pair.app().finish(channel);
    for _ in 0..12 {
        pair.run(Duration::from_millis(120));
        pair.lose();
        pair.reconnect();
    }
    pair.run(LOST);
    assert!(pair.ends[DISPLAY].pipes()[&pipe(2)] == bytes);
    assert_eq!(count(&pair.ends[DISPLAY], |event| matches!(event, Event::Finished { .. })), 1);
    // A reader that takes its bytes while the link is gone has its word repeated.
    let mut pair = Pair::resumable();
    pair.ends[DISPLAY].consume = false;
    let channel = pair.app().open(pipe(2));
    pair.app().write(channel, bytes.into());
    pair.run(LOST);
    let remote = opened(&pair, DISPLAY);
    pair.lose();
    pair.display().consumed(remote, 64 << 10);
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].pipes()[&pipe(2)].len(), (64 << 10) + PIPE_WINDOW);
}

#[test]
fn an_unknown_display_begins_anew() {
    let mut pair = Pair::resumable();
    let up = pair.display().open(events(1));
    let down = pair.app().open(wayland(1));
    pair.display().send(up, &[1]).unwrap();
    pair.app().send(down, &[1]).unwrap();
    pair.run(LOST);
    pair.lose();
    pair.display().send(up, &[2]).unwrap();
    pair.display().control(&Control::Snapshot(Bytes::from_static(b"old"))).unwrap();
    pair.reconnect();
    pair.ends[APP].waiting = None; // another process
    pair.forget();
    pair.run(Duration::from_millis(60));
    assert!(matches!(pair.ends[APP].events[..], [Event::Ready { .. }]));
    let now = pair.now;
    pair.app().decline(now);
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].events.last(), Some(&Event::Declined));
    assert_eq!(pair.display().retained(), 0);
    assert_eq!(pair.display().footprint(), Pair::resumable().display().footprint());
    pair.display().send(up, &[3]).unwrap();
    let up = pair.display().open(events(1));
    let down = pair.app().open(wayland(1));
    pair.display().send(up, &[4]).unwrap();
    pair.app().send(down, &[5]).unwrap();
    pair.run(LOST);
    assert_eq!((messages(&pair, APP, events(1)), messages(&pair, DISPLAY, wayland(1))), (vec![4], vec![5]));
    // And it can be resumed itself.
    pair.lose();
    pair.display().send(up, &[6]).unwrap();
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, APP, events(1)), [4, 6]);
    pair.ends.iter().for_each(|end| assert_eq!(end.closed(), []));
}

/// What the display wants to go on with is not what the app side has begun with it meanwhile.
#[test]
fn a_refusal_that_got_lost_is_repeated() {
    let mut pair = Pair::resumable();
    let up = pair.display().open(events(1));
    pair.display().send(up, &[1]).unwrap();
    pair.run(LOST);
    pair.lose();
    come_to_a_stranger(&mut pair);
    let down = pair.app().open(wayland(1));
    pair.app().send(down, &[5]).unwrap();
    pair.lose();
    pair.reconnect();
    let old = pair.ends[APP].waiting.take().expect("what began");
    pair.run(Duration::from_millis(60));
    let hello = pair.app().peer().cloned().expect("a hello");
    assert!(!old.is_of(&hello) && !old.is_late(&hello));
    let now = pair.now;
    pair.app().decline(now);
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].events.last(), Some(&Event::Declined));
    // From here on both mean the same.
    pair.lose();
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(pair.ends[DISPLAY].events.last(), Some(&Event::Resumed));
}

/// An app side that was started anew without resumption.
#[test]
fn an_app_side_that_cannot_resume_declines_by_its_hello() {
    let mut pair = Pair::resumable();
    pair.lose();
    let end = &mut pair.ends[DISPLAY];
    let old = std::mem::replace(&mut end.session, Session::new(end.config.clone()));
    let mut display = Session::resuming(Config { start: pair.now, ..end.config.clone() }, old);
    let hello = hello_stream(&hello_of(Side::App));
    let arrival = Arrival::Data { stream: StreamId(0), offset: 0, bytes: hello.into() };
    display.receive(pair.now, arrival);
    let events: Vec<_> = std::iter::from_fn(|| display.poll_event()).collect();
    assert!(matches!(events[..], [Event::Ready { .. }, Event::Declined]));
}

/// The display has never heard what the app side can do.
#[test]
fn regression_an_app_side_that_cannot_resume_takes_a_display_that_wants_to() {
    let mut pair = Pair::new(Config::new(Side::App), resumable_configs()[1].clone(), LinkPlan::CLEAN, 0);
    pair.run(Duration::from_millis(20));
    pair.lose();
    pair.reconnect();
    pair.ends[APP].waiting = None;
    pair.forget();
    let up = pair.display().open(events(1));
    pair.run(LOST);
    assert!(matches!(pair.ends[DISPLAY].events[..], [Event::Ready { .. }, Event::Declined]));
    let again = pair.display().open(events(1));
    pair.display().send(up, &[3]).unwrap();
    pair.display().send(again, &[4]).unwrap();
    pair.run(LOST);
    assert_eq!(messages(&pair, APP, events(1)), [4]);
    pair.ends.iter().for_each(|end| assert_eq!(end.closed(), []));
}

#[test]
fn it_can_be_tried_again_and_again() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(wayland(1));
    pair.app().send(channel, &[1]).unwrap();
    pair.run(Duration::from_millis(300));
    pair.app().send(channel, &[2]).unwrap();
    // Lost before the hello arrives, before the answer does, and right behind it.
    for after in [20, 60, 101, 160] {
        pair.lose();
        pair.reconnect();
        pair.run(Duration::from_millis(after));
    }
    // The peer does not answer at all.
    pair.lose();
    pair.reconnect();
    pair.cut();
    pair.run(Duration::from_secs(11));
    assert!(pair.display().is_suspended(), "after ten seconds");
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), [1, 2]);
    assert_eq!(count(&pair.ends[DISPLAY], |event| *event == Event::Resumed), 3);
    assert_eq!(pair.ends[DISPLAY].closed(), []);
    pair.ends.iter().for_each(|end| assert!(!end.session.is_closed() && end.session.retained() == 0));
}

#[test]
fn a_candidate_gives_back_what_it_cannot_go_on_with() {
    let mut pair = Pair::resumable();
    let old = std::mem::replace(pair.app(), Session::new(resumable_configs()[0].clone()));
    let mut fresh = Alone::ready(Side::App);
    let old = fresh.session.succeed(Time::ZERO, old).expect_err("its peer does not resume");
    assert!(!old.is_closed() && old.peer().is_some());
    fresh.session.decline(Time::ZERO);
    assert_eq!(fresh.transmits(), []);
    // An end before the decision is an end.
    let mut candidate = Alone::new(resumable_configs()[0].clone());
    let hello = resumable_configs()[1].hello(1, 0);
    candidate.data(0, 0, &hello_stream(&hello));
    let closed = Arrival::Closed { reason: CloseReason::LinkLost("cable".into()) };
    candidate.session.receive(Time::ZERO, closed);
    assert!(candidate.session.succeed(Time::ZERO, *old).is_err());
    assert!(candidate.session.is_closed());
}

/// Packets of an earlier attempt are late: what they say is of an earlier time, and their display is there no more.
#[test]
fn a_display_that_comes_late_is_not_let_in() {
    let mut pair = Pair::resumable();
    pair.lose();
    pair.reconnect();
    pair.run(LOST);
    let display = &resumable_configs()[1];
    let app = pair.app();
    assert_eq!([0, 1, 2, 9].map(|attempt| app.is_of(&display.hello(attempt, 0))), [false, false, true, true]);
    let other = Config { resume: Some([8; 32].into()), ..display.clone() };
    assert_eq!([0, 1, 2].map(|attempt| app.is_late(&display.hello(attempt, 0))), [true, true, false]);
    assert!(!app.is_late(&other.hello(0, 0)) && !app.is_late(&Config::new(Side::Display).hello(0, 0)));
    assert!(!app.is_of(&other.hello(2, 0)) && !app.is_of(&Config::new(Side::Display).hello(2, 0)));
    let mut candidate = Alone::new(resumable_configs()[0].clone());
    candidate.data(0, 0, &hello_stream(&display.hello(1, 0)));
    let old = std::mem::replace(app, Session::new(resumable_configs()[0].clone()));
    let old = candidate.session.succeed(Time::ZERO, old).expect_err("a carrier of the same number was there");
    assert!(!old.is_suspended(), "it is as it was");
}

#[test]
fn the_callers_wish_suspends_too() {
    let mut pair = Pair::resumable();
    let channel = pair.app().open(wayland(1));
    pair.run(LOST);
    pair.app().suspend();
    pair.settle();
    assert!(matches!(pair.ends[APP].events.last(), Some(Event::Suspended { .. })));
    pair.cut();
    pair.app().send(channel, &[9]).unwrap();
    // The display has not noticed: its session goes on with another carrier all the same.
    pair.reconnect();
    pair.run(LOST);
    assert_eq!(messages(&pair, DISPLAY, wayland(1)), [9]);
    let mut plain = Pair::ready();
    plain.app().suspend();
    plain.settle();
    assert_eq!(plain.ends[APP].closed().len(), 1);
}

#[test]
fn ten_thousand_channels_that_are_resumed_now_and_then_leave_nothing_behind() {
    let mut pair = Pair::resumable();
    let idle = [pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint()];
    for n in 1..=1_200_u32 {
        let channel = pair.app().open(wayland(n));
        pair.app().send(channel, b"message").unwrap();
        pair.app().finish(channel);
        let channel = pair.display().open(events(n));
        pair.display().send(channel, b"message").unwrap();
        pair.display().reset(channel, STREAM_CANCELLED);
        let channel = pair.app().open(pipe(n.into()));
        pair.app().write(channel, Bytes::from_static(b"clipboard"));
        if n % 7 == 0 {
            pair.settle();
            pair.app().reset(channel, 3);
        } else {
            pair.app().finish(channel);
        }
        pair.app().send_update(update(1, n.into()), vec![vec![1; 900]]).unwrap();
        pair.display().send_blob(n.into(), Bytes::from_static(b"keymap")).unwrap();
        if n % 200 == 0 {
            pair.run(Duration::from_millis(u64::from(n / 20)));
            pair.lose();
            pair.reconnect();
        }
        if n % 50 == 0 {
            pair.run(Duration::from_millis(420));
            let now = [pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint()];
            assert_eq!(now, idle);
            assert!(pair.ends.iter().all(|end| end.session.retained() == 0));
            pair.ends.iter().for_each(|end| assert_eq!(end.closed(), []));
        }
    }
    assert_eq!(pair.ends[DISPLAY].updates().len(), 1_200);
}

#[test]
fn clocks_and_losses_are_remembered() {
    let [app, display] = resumable_configs();
    let display = Config { clock_origin: HostTime(900_000_000_000), ..display };
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 4);
    pair.run(LOST);
    let link = LinkState { lost_packets: 300, lost_runs: 300, acked_packets: 9_700, ..LinkState::default() };
    let now = pair.now;
    pair.app().set_link(now, &link);
    let (clock, loss) = (pair.app().clock().offset_nanos(), pair.app().loss());
    assert!(loss.is_some_and(|(share, _)| share > 0.02), "{loss:?}");
    pair.lose();
    pair.reconnect();
    pair.run(Duration::from_millis(120));
    assert_eq!(pair.app().clock().offset_nanos(), clock, "until a ping is answered");
    let after = pair.app().loss();
    assert!(after.is_some_and(|(share, _)| share > 0.015), "{after:?}");
    pair.run(LOST);
    assert!(pair.app().clock().uncertainty().is_some());
}
