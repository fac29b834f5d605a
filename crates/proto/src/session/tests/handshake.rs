//! Hellos, clocks, silence, and the end.

use super::*;
use crate::{Secret, SessionId, Versions};

fn pair(app: Config, display: Config) -> Pair {
    let mut pair = Pair::new(app, display, LinkPlan::CLEAN, 1);
    pair.run(Duration::from_millis(500));
    pair
}

fn app() -> Config {
    Config::new(Side::App)
}

fn display() -> Config {
    Config::new(Side::Display)
}

#[test]
fn two_defaults_agree() {
    let config = Config { compression: vec![Compression::Lz4, Compression::None], ..display() };
    let pair = pair(app(), config);
    for end in &pair.ends {
        assert!(matches!(&end.events[..], [Event::Ready { peer }] if peer.software.starts_with("wayferry ")));
        assert_eq!(end.session.version(), Some(1));
        assert_eq!(end.session.compression(), Compression::Lz4);
    }
}

#[test]
fn messages_of_the_main_channel_need_not_wait_for_the_hello() {
    let mut pair = Pair::new(app(), display(), LinkPlan::CLEAN, 1);
    let snapshot = Control::Snapshot(Bytes::from(vec![3; MAX_SNAPSHOT]));
    pair.display().control(&snapshot).unwrap();
    pair.run(Duration::from_millis(50));
    let [Event::Ready { .. }, Event::Control(got)] = &pair.ends[APP].events[..] else {
        panic!("half a round trip is enough: {:?}", pair.ends[APP].events);
    };
    assert_eq!(*got, snapshot);
    let too_long = Control::Snapshot(Bytes::from(vec![3; MAX_SNAPSHOT + 1]));
    assert!(matches!(pair.app().control(&too_long), Err(Error::Misuse { .. })));
    assert!(matches!(pair.app().control(&Control::Refused { kind: 1 }), Err(Error::Misuse { .. })));
}

#[test]
fn patience_with_a_peer_that_could_not_be_heard_begins_when_it_can() {
    let mut session = Session::new(display());
    session.await_peer(Time::from_millis(15_000));
    session.on_timeout(Time::from_millis(24_999));
    assert!(!session.is_closed());
    session.on_timeout(Time::from_millis(25_000));
    assert!(session.is_closed());
}

#[test]
fn versions_without_overlap_are_named_to_both() {
    let (ours, theirs) = (Versions::CURRENT, Versions { min: 2, max: 3 });
    let pair = pair(app(), Config { versions: theirs, ..display() });
    // The side that hears the other's hello first closes; both do here, at the same moment.
    let at_app = CloseReason::Incompatible { ours, theirs };
    assert_eq!(pair.ends[APP].closed(), [(at_app, ClosedBy::Us)]);
    let at_display = CloseReason::Incompatible { ours: theirs, theirs: ours };
    assert_eq!(pair.ends[DISPLAY].closed(), [(at_display, ClosedBy::Us)]);
}

#[test]
fn a_wrong_or_missing_secret_is_refused() {
    for secret in [None, Some(Secret::from([2; 32]))] {
        let app = Config { accepted_secrets: vec![[1; 32].into()], ..app() };
        let pair = pair(app, Config { secret, ..display() });
        assert_eq!(
            pair.ends[APP].events,
            [Event::Closed { reason: CloseReason::BadSecret, by: ClosedBy::Us }]
        );
        assert_eq!(pair.ends[DISPLAY].closed(), [(CloseReason::BadSecret, ClosedBy::Peer)]);
        let display = &pair.ends[DISPLAY].session;
        assert!(display.peer().is_some() && !display.is_welcome(), "a hello promises nothing");
    }
}

/// What an app side says that has no place at the moment is no verdict: the display may come again.
#[test]
fn regression_a_display_that_is_refused_a_place_ends() {
    let refuse = |display: &mut Session| {
        let reason = CloseReason::TooMuch("displays wait for admission".into());
        display.receive(Time::ZERO, Arrival::Closed { reason });
    };
    let resume = Some(Secret::from([9; 32]));
    let mut early = Session::new(Config { resume, ..display() });
    refuse(&mut early);
    assert!(early.is_suspended(), "before the other side's hello");
    let mut unwelcome = Session::new(Config { resume, ..display() });
    let mut app = Session::new(Config { capabilities: Capabilities::RESUME, ..app() });
    while let Some(transmit) = app.poll_transmit(Time::ZERO) {
        if let Transmit::Data { stream, bytes, .. } = transmit {
            unwelcome.receive(Time::ZERO, Arrival::Data { stream, offset: 0, bytes });
        }
    }
    assert!(unwelcome.peer().is_some());
    refuse(&mut unwelcome);
    assert!(unwelcome.is_suspended(), "after it");
    let mut simple = Session::new(display());
    refuse(&mut simple);
    assert!(simple.is_closed(), "one that cannot come again");
}

#[test]
fn a_display_whose_incarnation_is_accepted_needs_no_secret() {
    let [known, other, ticket] = [1, 2, 3].map(|byte| Secret::from([byte; 32]));
    let app = Config { accepted_secrets: vec![ticket], accepted_incarnations: vec![known], ..app() };
    let matched = |resume, secret| {
        let display = Config { resume: Some(resume), secret, ..display() };
        let pair = pair(app.clone(), display);
        let app = &pair.ends[APP].session;
        (app.is_closed(), app.matched_secret())
    };
    assert_eq!(matched(known, Some(other)), (false, None), "the ticket was used");
    assert_eq!(matched(known, Some(ticket)), (false, Some(0)));
    assert_eq!(matched(known, None), (false, None));
    assert_eq!(matched(other, Some(ticket)), (false, Some(0)));
    assert_eq!(matched(other, Some(other)), (true, None));
    assert_eq!(matched(ticket, None), (true, None), "a secret is no incarnation");
}

#[test]
fn regression_the_incarnation_of_one_display_lets_another_in() {
    let [known, other] = [1, 2].map(|byte| Secret::from([byte; 32]));
    let app = Config { accepted_incarnations: vec![known], ..app() };
    let pair = pair(app, Config { resume: Some(other), secret: Some(known), ..display() });
    assert_eq!(pair.ends[DISPLAY].closed(), [(CloseReason::BadSecret, ClosedBy::Peer)]);
}

#[test]
fn the_right_secret_opens_and_is_forgotten() {
    let secret = Some(Secret::from([1; 32]));
    let accepted_secrets = [3, 1, 4].map(|byte| Secret::from([byte; 32])).to_vec();
    let pair = pair(Config { accepted_secrets, ..app() }, Config { secret, ..display() });
    assert_eq!(pair.ends[APP].session.matched_secret(), Some(1));
    assert_eq!(pair.ends[APP].session.peer().map(|peer| peer.secret), Some(None));
    assert!(pair.ends.iter().all(|end| end.closed().is_empty()));
}

#[test]
fn another_session_is_gone() {
    let [one, two] = [SessionId([1; 16]), SessionId([2; 16])];
    let refused = pair(Config { session: one, ..app() }, Config { session: two, ..display() });
    assert_eq!(refused.ends[APP].closed(), [(CloseReason::Gone, ClosedBy::Us)]);
    let any = pair(Config { session: one, ..app() }, display());
    assert!(any.ends.iter().all(|end| end.closed().is_empty()));
    assert_eq!(any.ends.map(|end| end.session.id()), [one, one]);
    assert_eq!(pair(app(), display()).ends.map(|end| end.session.id()), [SessionId::ANY; 2]);
}

#[test]
fn two_sides_of_the_same_kind_are_a_violation() {
    let pair = pair(app(), app());
    assert!(matches!(pair.ends[APP].closed()[..], [(CloseReason::ProtocolViolation(_), ClosedBy::Us)]));
}

#[test]
fn without_a_hello_patience_ends() {
    let mut alone = Alone::new(Config { start: Time::from_millis(700), ..app() });
    let deadline = Time::from_millis(10_700);
    assert_eq!(alone.session.next_timeout(), Some(deadline));
    alone.session.on_timeout(deadline - Duration::from_millis(1));
    assert!(!alone.session.is_closed());
    alone.session.on_timeout(deadline);
    assert_eq!(alone.closed(), CloseReason::Timeout);
}

#[test]
fn silence_ends_the_session_after_sixty_seconds() {
    let mut pair = Pair::ready();
    pair.run(Duration::from_secs(100));
    assert!(pair.ends.iter().all(|end| end.events.is_empty()));
    let channel = pair.display().open(events(7));
    pair.display().send(channel, b"a key").unwrap();
    pair.run(Duration::from_secs(2));
    pair.forget();
    let now = pair.now;
    assert!(pair.app().contact_age(now) < Duration::from_millis(1_100));
    pair.cut();
    pair.ends[DISPLAY].transmits.clear();
    pair.run(Duration::from_secs(40));
    let now = pair.now;
    assert!(pair.app().contact_age(now) > Duration::from_secs(30));
    assert!(pair.ends[DISPLAY].transmits.len() <= 2, "an outage queues no pings");
    pair.run(Duration::from_secs(22));
    for end in &pair.ends {
        assert_eq!(end.closed(), [(CloseReason::Timeout, ClosedBy::Us)]);
        assert_eq!(end.session.next_timeout(), None);
    }
}

/// What an untouched session sends, and how soon it sees that the link is gone once it is touched.
#[test]
fn a_session_at_rest_asks_each_ten_seconds_and_at_once_when_it_is_needed() {
    let mut pair = Pair::ready();
    pair.run(Duration::from_secs(30));
    pair.forget();
    pair.run(Duration::from_secs(60));
    let sent = pair.ends.each_ref().map(|end| end.transmits.len());
    assert_eq!(sent, [6, 6], "the display asks, and is answered");
    let now = pair.now;
    let rests = |pair: &mut Pair| (pair.app().owed_since(now), pair.display().owed_since(now));
    assert_eq!(rests(&mut pair), (None, None));
    pair.cut();
    let channel = pair.display().open(events(7));
    pair.display().send(channel, b"a key").unwrap();
    pair.run(Duration::from_secs(3));
    let later = pair.now;
    assert_eq!(pair.display().owed_since(later), Some(now));
    // Who waits asks before long.
    pair.run(Duration::from_secs(15));
    let now = pair.now;
    let age = pair.app().contact_age(now);
    assert!((3..15).contains(&age.as_secs()), "{age:?}");
}

#[test]
fn the_clocks_of_the_hosts_are_compared() {
    let app = Config { clock_origin: HostTime(1_000_000_000), ..app() };
    let display = Config { clock_origin: HostTime(900_000_000_000), ..display() };
    let mut pair = Pair::new(app, display, LinkPlan::ROUGH, 4);
    pair.run(Duration::from_secs(20));
    let clock = pair.ends[APP].session.clock();
    let error = clock.offset_nanos() - 899_000_000_000;
    let doubt = clock.uncertainty().unwrap();
    assert!(doubt < Duration::from_millis(70), "{doubt:?}");
    assert!(error.unsigned_abs() <= doubt.as_nanos() as u64, "{error} ns");
    let back = pair.ends[DISPLAY].session.clock().offset_nanos() + 899_000_000_000;
    assert!(back.unsigned_abs() < 70_000_000);
}

#[test]
fn a_close_frees_everything_and_is_told_once() {
    let mut pair = Pair::ready();
    let channel = pair.app().open(wayland(1));
    pair.app().send(channel, b"heard").unwrap();
    pair.run(Duration::from_millis(60));
    pair.app().send_update(update(1, 1), vec![vec![0; 9_000]]).unwrap();
    pair.app().close(CloseReason::Done);
    pair.app().close(CloseReason::Timeout);
    // Any call afterwards does nothing.
    let late = pair.app().open(wayland(2));
    pair.app().send(late, b"unheard").unwrap();
    pair.app().write(late, Bytes::from_static(b"unheard"));
    pair.app().finish(late);
    pair.app().reset(channel, 1);
    assert_eq!(pair.app().send_update(update(1, 2), vec![vec![1]]), Ok(0));
    pair.app().control(&Control::Exit { code: 3 }).unwrap();
    assert_eq!(pair.ends[APP].session.footprint(), 2, "the close and its event");
    pair.run(Duration::from_secs(200));
    assert_eq!(pair.ends[APP].closed(), [(CloseReason::Done, ClosedBy::Us)]);
    assert_eq!(pair.ends[DISPLAY].closed(), [(CloseReason::Done, ClosedBy::Peer)]);
    assert_eq!(pair.ends[DISPLAY].messages()[&wayland(1)], [&b"heard"[..]]);
    let closes = |end: &End| end.transmits.iter().filter(|t| matches!(t, Transmit::Close { .. })).count();
    assert_eq!((closes(&pair.ends[APP]), closes(&pair.ends[DISPLAY])), (1, 0));
    assert!(pair.ends.iter().all(|end| end.session.footprint() == 0));
}

#[test]
fn a_lost_link_is_told_once() {
    let mut pair = Pair::ready();
    let reason = CloseReason::LinkLost("cable".into());
    for _ in 0..2 {
        pair.ends[APP].session.receive(pair.now, Arrival::Closed { reason: reason.clone() });
    }
    pair.settle();
    assert_eq!(pair.ends[APP].closed(), [(reason, ClosedBy::Link)]);
    assert_eq!(pair.ends[APP].session.footprint(), 0);
    assert!(!pair.ends[APP].transmits.iter().any(|transmit| matches!(transmit, Transmit::Close { .. })));
}
