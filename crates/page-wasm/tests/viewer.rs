//! A viewer and an app side's session, with nothing between them.

mod rig;

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use wayferry_audio::{Codec, Packet, Position, datagram};
use wayferry_message::snapshot::Snapshot;
use wayferry_message::{Request, ToApp, ToDisplay, WireArg, WireId};
use wayferry_page::{Area, Clip, Level, MAX_COPIED_TEXT, Page, Role, Wheel};
use wayferry_page_wasm::acts::{Act, MAX_KEPT, MAX_PASTED};
use wayferry_page_wasm::drawing::Drawing;
use wayferry_page_wasm::viewer::{MAX_HANDED, MAX_UNSENT, Notice, Over, Ticket, Viewer};
use wayferry_proto::{
    Arrival, Candidate, Capabilities, CloseReason, Config, ConnectionId, Control, Event, Header, HostTime,
    Secret, Session, SessionId, Side, StreamId, Time, Transmit, UpdateHeader,
};

use rig::*;

fn secret() -> Secret {
    Secret::from([7; 32])
}

fn as_role(role: Role, secret: Secret) -> Viewer {
    let ticket = Ticket { session: SessionId([1; 16]), secret, incarnation: incarnation() };
    Viewer::new(role, ticket, Time::ZERO, HostTime(0))
}

fn incarnation() -> Secret {
    Secret::from([9; 32])
}

fn viewer() -> Viewer {
    as_role(Role::View, secret())
}

fn display() -> Viewer {
    as_role(Role::Control, secret())
}

fn host() -> Session {
    Session::new(Config {
        session: SessionId([1; 16]),
        accepted_secrets: vec![secret()],
        capabilities: Capabilities::VIEW,
        ..Config::new(Side::App)
    })
}

/// One with sound, and this.
fn sounding_host(more: Capabilities) -> Session {
    Session::new(Config {
        session: SessionId([1; 16]),
        accepted_secrets: vec![secret()],
        capabilities: Capabilities::VIEW.with(Capabilities::SOUND).with(more),
        ..Config::new(Side::App)
    })
}

/// One whose display may come again, by its incarnation alone if it has been there.
fn lasting_host(knows: bool) -> Session {
    Session::new(Config {
        session: SessionId([1; 16]),
        accepted_secrets: if knows { vec![Secret::from([3; 32])] } else { vec![secret()] },
        accepted_incarnations: if knows { vec![incarnation()] } else { vec![] },
        capabilities: Capabilities::VIEW
            .with(Capabilities::SOUND)
            .with(Capabilities::RESUME)
            .with(Capabilities::DATAGRAM_REPAIR),
        ..Config::new(Side::App)
    })
}

/// Both, and what they have said.
struct Pair {
    viewer: Viewer,
    host: Session,
    ways: [Way; 2],
    heard: Vec<Event>,
    notices: Vec<Notice>,
}

impl Pair {
    fn new(viewer: Viewer, host: Session) -> Self {
        let mut pair = Self { viewer, host, ways: Default::default(), heard: vec![], notices: vec![] };
        pair.settle();
        pair
    }

    fn settle(&mut self) {
        loop {
            let mut idle = true;
            while let Some(transmit) = self.viewer.poll_transmit(Time::ZERO) {
                idle = false;
                for arrival in self.ways[0].carry(transmit).into_iter().flatten() {
                    self.host.receive(Time::ZERO, arrival);
                }
            }
            while let Some(event) = self.host.poll_event() {
                self.heard.push(event);
            }
            while let Some(transmit) = self.host.poll_transmit(Time::ZERO) {
                idle = false;
                for arrival in self.ways[1].carry(transmit).into_iter().flatten() {
                    self.viewer.receive(Time::ZERO, arrival);
                }
            }
            self.notices.extend(std::iter::from_fn(|| self.viewer.poll_notice()));
            if idle {
                return;
            }
        }
    }

    /// The link is lost, and both sides hear of it.
    fn cut(&mut self) {
        let reason = CloseReason::LinkLost("it is gone".to_owned());
        self.host.receive(Time::ZERO, Arrival::Closed { reason: reason.clone() });
        self.viewer.receive(Time::ZERO, Arrival::Closed { reason });
        self.settle();
    }

    /// The page comes on another carrier, and the host goes on with what it had or knows of nothing.
    fn come_again(&mut self, is_known: bool) {
        self.viewer.resume(Time::ZERO);
        self.ways = Default::default();
        let mut candidate = lasting_host(true);
        while let Some(transmit) = self.viewer.poll_transmit(Time::ZERO) {
            for arrival in self.ways[0].carry(transmit).into_iter().flatten() {
                candidate.receive(Time::ZERO, arrival);
            }
        }
        while candidate.poll_event().is_some_and(|event| !matches!(event, Event::Ready { .. })) {}
        let old = std::mem::replace(&mut self.host, host());
        let candidate = Candidate::new(candidate).expect("its hello came");
        self.host = match is_known {
            true => candidate.succeed(Time::ZERO, old).expect("it is the same"),
            false => candidate.begin(Time::ZERO),
        };
        self.settle();
    }

    /// A program with a window of eight red pixels.
    fn show(&mut self) {
        let channel = self.host.open(Header::Wayland { connection: PROGRAM });
        for message in window() {
            self.host.send(channel, &message.encode()).expect("it is short");
        }
        self.host.send_update(header(), vec![RED.to_vec()]).expect("it is small");
        self.settle();
    }
}

fn window() -> Vec<ToDisplay> {
    let bind = |global, interface: &str, id| ToDisplay::Bind {
        global,
        interface: interface.to_owned(),
        version: 1,
        id: WireId(id),
    };
    let ask = |object, opcode, args| ToDisplay::Request(Request { object: WireId(object), opcode, args });
    let (new, object) = (WireArg::NewId, WireArg::Object);
    vec![
        bind(1, "wl_compositor", 4),
        bind(3, "xdg_wm_base", 6),
        ask(4, 0, vec![new(SURFACE)]),
        ask(6, 2, vec![new(WireId(10)), object(SURFACE)]),
        ask(10, 1, vec![new(WireId(12))]),
        ask(12, 2, vec![WireArg::Str(Some(b"red".to_vec()))]),
        unit(),
    ]
}

#[test]
fn videos_are_asked_for_where_there_are_decoders_alone() {
    let ticket = Ticket { session: SessionId([1; 16]), secret: secret(), incarnation: incarnation() };
    let decoding = |role| Viewer::with_decoders(role, ticket, Time::ZERO, HostTime(0));
    let viewers = [(viewer(), false), (display(), false)];
    let decoding = [Role::View, Role::Control].map(|role| (decoding(role), true));
    for (viewer, expected) in viewers.into_iter().chain(decoding) {
        let host = sounding_host(Capabilities::VIDEO);
        let pair = Pair::new(viewer, host);
        assert_eq!(pair.host.capabilities().has(Capabilities::VIDEO), expected);
    }
}

#[test]
fn a_viewer_is_let_in_shows_a_window_and_answers() {
    let mut pair = Pair::new(viewer(), host());
    assert!(pair.notices.is_empty(), "the host has said nothing after its hello");
    let told = pair.heard.iter().find_map(|event| match event {
        Event::Control(Control::Snapshot(bytes)) => Some(Snapshot::decode(bytes)),
        _ => None,
    });
    assert_eq!(told, Some(Ok(Page::new(Role::View).snapshot())));
    pair.show();
    assert_eq!(pair.notices, [Notice::Welcome]);
    let drawing = Drawing::of(pair.viewer.page());
    let words = [1, 1, 8, 0, 0, 0, 0, 0, 4, 2, 0, 3, 3, 1, 8, 0, 0, 0, 4, 2, 4, 2, 0, 0, 0, 0, 0, 0];
    assert_eq!((&drawing.words[..], &drawing.text[..]), (&words[..], "red"));
    assert_eq!(rig::told(&pair.heard), [ToApp::Applied { surface: SURFACE, unit: 1 }]);
    pair.host.control(&Control::Exit { code: 0 }).expect("it is the host's to say");
    pair.settle();
    assert_eq!(pair.notices.last(), Some(&Notice::Over(Over::Done)));
    assert_eq!(Drawing::of(pair.viewer.page()).words, [0]);
    assert!(pair.host.is_closed());
}

#[test]
fn a_program_that_breaks_a_rule_is_not_shown_and_the_others_are() {
    let mut pair = Pair::new(viewer(), host());
    pair.show();
    let other = pair.host.open(Header::Wayland { connection: ConnectionId(2) });
    pair.host.send(other, b"nonsense").expect("it is short");
    pair.settle();
    assert!(matches!(&pair.notices[..], [Notice::Welcome, Notice::NotShown(_)]), "{:?}", pair.notices);
    assert!(pair.heard.iter().any(|event| matches!(
        event,
        Event::Stopped { header: Header::Wayland { connection: ConnectionId(2) }, .. }
    )));
    assert_eq!(Drawing::of(pair.viewer.page()).words[0], 1);
}

#[test]
fn how_it_ends_is_told_once() {
    let stranger = as_role(Role::View, Secret::from([8; 32]));
    assert_eq!(Pair::new(stranger, host()).notices, [Notice::Over(Over::Refused)]);
    for (reason, over) in [
        (CloseReason::Done, Over::Done),
        (CloseReason::TooMuch("viewers".to_owned()), Over::Full),
        (CloseReason::ProtocolViolation("this".to_owned()), Over::Broken),
    ] {
        let mut pair = Pair::new(viewer(), host());
        pair.host.close(reason);
        pair.settle();
        assert_eq!(pair.notices, [Notice::Over(over)]);
    }
    let mut pair = Pair::new(viewer(), host());
    let lost = CloseReason::LinkLost("it is gone".to_owned());
    pair.viewer.receive(Time::ZERO, Arrival::Closed { reason: lost });
    pair.settle();
    assert_eq!(pair.notices, [Notice::Over(Over::Lost)]);
}

#[test]
fn a_display_is_no_view_tells_its_keymap_and_hears_when_another_one_takes_the_session() {
    let mut pair = Pair::new(display(), host());
    let told = pair.heard.iter().find_map(|event| match event {
        Event::Control(Control::Snapshot(bytes)) => Snapshot::decode(bytes).ok(),
        _ => None,
    });
    let keymap = told.and_then(|snapshot| snapshot.seats[0].keymap).map(|keymap| keymap.hash);
    let blobs = pair.heard.iter().filter_map(|event| match event {
        Event::Blob { hash, .. } => Some(*hash),
        _ => None,
    });
    assert_eq!(blobs.collect::<Vec<_>>(), keymap.into_iter().collect::<Vec<_>>());
    assert!(keymap.is_some() && !pair.host.capabilities().has(Capabilities::VIEW));
    pair.show();
    pair.viewer.act(Time::ZERO, Act::Area(Area::new(300, 200, 120)));
    pair.settle();
    let snapshots = pair.heard.iter().filter(|event| matches!(event, Event::Control(Control::Snapshot(_))));
    assert_eq!(snapshots.count(), 2);
    pair.host.close(CloseReason::Gone);
    pair.settle();
    assert_eq!(pair.notices, [Notice::Welcome, Notice::Over(Over::Taken)]);
    // Before it was let in, there is no such session.
    let mut pair = Pair::new(display(), host());
    pair.host.close(CloseReason::Gone);
    pair.settle();
    assert_eq!(pair.notices, [Notice::Over(Over::Refused)]);
}

#[test]
fn who_was_let_in_hears_that_the_link_was_taken_back_and_nobody_else() {
    let mut pair = Pair::new(viewer(), host());
    pair.show();
    pair.host.close(CloseReason::BadSecret);
    pair.settle();
    assert_eq!(pair.notices, [Notice::Welcome, Notice::Over(Over::Revoked)]);
    let mut pair = Pair::new(viewer(), host());
    pair.host.close(CloseReason::BadSecret);
    pair.settle();
    assert_eq!(pair.notices, [Notice::Over(Over::Refused)]);
}

#[test]
fn sound_is_asked_for_while_the_page_listens_and_comes_on_streams_and_in_datagrams() {
    let listens = |pair: &mut Pair| {
        let heard = std::mem::take(&mut pair.heard);
        let tracks = heard.into_iter().filter_map(|event| match event {
            Event::Control(Control::Listen(listen)) => Some(listen.track),
            _ => None,
        });
        tracks.collect::<Vec<_>>()
    };
    let mut pair = Pair::new(viewer(), sounding_host(Capabilities::SHARED_SOUND));
    assert!(pair.viewer.may_sound());
    assert_eq!(listens(&mut pair), [0; 0], "the page does not listen yet");
    let packet = |sequence: u32| Packet {
        track: 1,
        sequence,
        capture: Position(u64::from(sequence) * 480),
        payload: vec![sequence as u8; 4],
        ..Packet::default()
    };
    let send = |pair: &mut Pair, sequence| {
        let channel = pair.host.open(Header::Sound);
        pair.host.send_sound(channel, &packet(sequence).to_vec()).expect("it is short");
        pair.host.send_datagram(&datagram(&[packet(sequence), packet(sequence + 1)]));
        pair.settle();
    };
    send(&mut pair, 0);
    assert_eq!(pair.viewer.sound().poll_encoded(), None, "it was not asked for");
    pair.viewer.listen(Time::ZERO, Some(Codec::Opus));
    pair.settle();
    assert_eq!(listens(&mut pair), [1]);
    send(&mut pair, 2);
    let payloads: Vec<_> = std::iter::from_fn(|| pair.viewer.sound().poll_encoded()).collect();
    assert_eq!(payloads, [(1, vec![2; 4]), (2, vec![3; 4])]);
    assert!(!pair.heard.iter().any(|event| matches!(event, Event::Stopped { .. })), "no stream is refused");
    pair.viewer.listen(Time::ZERO, None);
    pair.settle();
    pair.viewer.listen(Time::ZERO, Some(Codec::Pcm));
    pair.settle();
    assert_eq!(listens(&mut pair), [0, 2]);
}

#[test]
fn regression_a_view_of_a_session_whose_sound_is_not_shared_was_offered_it() {
    let may_sound = |viewer, session| Pair::new(viewer, session).viewer.may_sound();
    assert!(!may_sound(viewer(), host()), "it has none");
    assert!(!may_sound(viewer(), sounding_host(Capabilities::NONE)));
    assert!(may_sound(viewer(), sounding_host(Capabilities::SHARED_SOUND)));
    assert!(may_sound(display(), sounding_host(Capabilities::NONE)));
}

/// A display in whose window keys arrive.
fn typing() -> Pair {
    let mut pair = Pair::new(display(), lasting_host(false));
    pair.show();
    let channel = pair.host.open(Header::Wayland { connection: ConnectionId(2) });
    let ask = |object, opcode, args| ToDisplay::Request(Request { object: WireId(object), opcode, args });
    let seat = ToDisplay::Bind { global: 5, interface: "wl_seat".to_owned(), version: 7, id: WireId(20) };
    let devices = [(1, 22), (0, 24)].map(|(opcode, id)| ask(20, opcode, vec![WireArg::NewId(WireId(id))]));
    let shown = window().into_iter().take(5).chain([seat]).chain(devices);
    for message in shown {
        pair.host.send(channel, &message.encode()).expect("it is short");
    }
    pair.host.send(channel, &unit().encode()).expect("it is short");
    let update = UpdateHeader { connection: ConnectionId(2), ..header() };
    pair.host.send_update(update, vec![RED.to_vec()]).expect("it is small");
    pair.settle();
    pair.viewer.act(Time::ZERO, Act::Focus(ConnectionId(2), SURFACE));
    pair.settle();
    pair.heard.clear();
    pair
}

fn type_key(pair: &mut Pair, code: u32, pressed: bool) {
    pair.viewer.act(Time::ZERO, Act::Key { code, level: Level::Plain, character: None, pressed });
}

#[test]
fn keys_that_are_typed_while_there_is_no_link_arrive_once_and_in_order_when_there_is_another() {
    let mut pair = typing();
    type_key(&mut pair, 30, true);
    pair.settle();
    pair.cut();
    type_key(&mut pair, 30, false);
    type_key(&mut pair, 31, true);
    // The next attempt fails as well.
    pair.viewer.resume(Time::ZERO);
    type_key(&mut pair, 31, false);
    let reason = CloseReason::LinkLost("once more".to_owned());
    pair.viewer.receive(Time::ZERO, Arrival::Closed { reason });
    assert_eq!(keys(&pair.heard), [(30, true)]);
    pair.come_again(true);
    assert_eq!(pair.notices, [Notice::Welcome, Notice::Away, Notice::Away, Notice::Back]);
    assert_eq!(keys(&pair.heard), [(30, true), (30, false), (31, true), (31, false)]);
    type_key(&mut pair, 32, true);
    pair.settle();
    assert_eq!(keys(&pair.heard).last(), Some(&(32, true)));
    assert_eq!(Drawing::of(pair.viewer.page()).words[0], 2, "both windows are there still");
}

#[test]
fn updates_that_were_on_their_way_arrive_over_the_next_link() {
    let mut pair = Pair::new(viewer(), lasting_host(false));
    pair.show();
    pair.cut();
    let channel = pair.host.open(Header::Wayland { connection: ConnectionId(2) });
    for message in window() {
        pair.host.send(channel, &message.encode()).expect("it is short");
    }
    let update = UpdateHeader { connection: ConnectionId(2), ..header() };
    pair.host.send_update(update, vec![RED.to_vec()]).expect("it is small");
    pair.come_again(true);
    assert_eq!(pair.notices.last(), Some(&Notice::Back));
    assert_eq!(Drawing::of(pair.viewer.page()).words[0], 2);
}

#[test]
fn a_page_that_is_known_no_more_begins_anew() {
    let mut pair = typing();
    pair.cut();
    pair.heard.clear();
    pair.come_again(false);
    assert_eq!(pair.notices.last(), Some(&Notice::Anew));
    assert_eq!(Drawing::of(pair.viewer.page()).words, [0], "what it showed is told anew");
    assert!(pair.heard.iter().any(|event| matches!(event, Event::Control(Control::Snapshot(_)))));
    assert!(pair.heard.iter().any(|event| matches!(event, Event::Blob { .. })), "its keymap is told anew");
    pair.show();
    assert_eq!(Drawing::of(pair.viewer.page()).words[0], 1);
}

#[test]
fn regression_the_sound_of_a_session_that_began_anew_was_taken_for_old() {
    let mut pair = Pair::new(display(), lasting_host(false));
    pair.viewer.listen(Time::ZERO, Some(Codec::Opus));
    pair.settle();
    let heard = |pair: &mut Pair, sequence| {
        let packet = Packet { track: 1, sequence, payload: vec![7; 4], ..Packet::default() };
        let channel = pair.host.open(Header::Sound);
        pair.host.send_sound(channel, &packet.to_vec()).expect("it is short");
        pair.settle();
        pair.viewer.sound().poll_encoded().is_some()
    };
    assert!(heard(&mut pair, 5000));
    pair.cut();
    pair.heard.clear();
    pair.come_again(false);
    assert!(pair.heard.iter().any(|event| matches!(event, Event::Control(Control::Listen(_)))));
    assert!(heard(&mut pair, 0));
}

#[test]
fn a_page_that_comes_again_shows_no_secret_and_hears_that_it_came_too_late() {
    let mut pair = Pair::new(viewer(), lasting_host(false));
    pair.show();
    pair.cut();
    pair.viewer.resume(Time::ZERO);
    pair.ways = Default::default();
    // One that does not know it takes it neither by the secret that it had.
    pair.host = lasting_host(false);
    pair.settle();
    assert_eq!(pair.host.peer().and_then(|peer| peer.secret), None);
    assert_eq!(pair.notices.last(), Some(&Notice::Over(Over::Forgotten)));
}

/// Before it is welcomed a page is turned away because many ask at once; one that is too many is welcomed first.
#[test]
fn regression_a_page_that_was_turned_away_by_a_crowd_said_that_all_places_are_taken() {
    let mut pair = Pair::new(viewer(), lasting_host(false));
    pair.host.close(CloseReason::TooMuch("try again".to_owned()));
    pair.settle();
    assert_eq!(pair.notices, [Notice::Away]);
    pair.come_again(false);
    assert!(pair.notices.contains(&Notice::Welcome), "{:?}", pair.notices);
}

#[test]
fn a_user_who_types_on_without_a_link_is_passed_over_beyond_a_limit_and_hears_of_it() {
    let mut pair = typing();
    type_key(&mut pair, 30, true);
    pair.settle();
    pair.cut();
    let before = pair.viewer.kept_for_later();
    // More than there is room for.
    let presses = MAX_KEPT / 20;
    for _ in 0..presses {
        type_key(&mut pair, 31, true);
        type_key(&mut pair, 31, false);
    }
    assert!((MAX_KEPT..MAX_KEPT + 4096).contains(&(pair.viewer.kept_for_later() - before + 1024)));
    type_key(&mut pair, 32, true);
    type_key(&mut pair, 30, false);
    pair.come_again(true);
    assert_eq!(pair.notices, [Notice::Welcome, Notice::Away, Notice::Missed, Notice::Back]);
    let keys = keys(&pair.heard);
    let downs = |of| keys.iter().filter(|&&(code, pressed)| code == of && pressed).count();
    let ups = |of| keys.iter().filter(|&&(code, pressed)| code == of && !pressed).count();
    assert!((1000..presses).contains(&downs(31)), "{} of {presses}", downs(31));
    assert_eq!((downs(30), ups(30), ups(31), downs(32)), (1, 1, downs(31), 0), "what is down goes up");
}

#[test]
fn regression_what_was_on_its_way_when_the_link_was_lost_left_no_room_for_keys() {
    let mut pair = typing();
    // A picture that a program pastes.
    let pipe = Header::Pipe { connection: ConnectionId(2), pipe: 7 };
    let channel = pair.host.open(pipe);
    pair.settle();
    let pixels = vec![7; 3 << 20];
    pair.viewer.act(Time::ZERO, Act::Offer(Clip::Picture(pixels.into()), true));
    pair.host.finish(channel);
    pair.cut();
    type_key(&mut pair, 31, true);
    type_key(&mut pair, 31, false);
    pair.come_again(true);
    assert_eq!(keys(&pair.heard), [(31, true), (31, false)]);
}

/// The buttons that programs were told, and whether each was pressed.
fn buttons(pair: &Pair) -> Vec<(u32, bool)> {
    let buttons = told(&pair.heard).into_iter().filter_map(|message| match message {
        ToApp::Event(Request { object: WireId(24), opcode: 3, args }) => match args[..] {
            [_, _, WireArg::Uint(code), WireArg::Uint(state)] => Some((code, state == 1)),
            _ => None,
        },
        _ => None,
    });
    buttons.collect()
}

#[test]
fn regression_a_button_that_went_up_without_a_link_stayed_down_and_clicks_came_late() {
    let mut pair = typing();
    let point = |pair: &mut Pair| {
        pair.viewer.act(Time::ZERO, Act::Point(ConnectionId(2), SURFACE, [1.0; 2]));
    };
    let click = |pair: &mut Pair, pressed| {
        pair.viewer.act(Time::ZERO, Act::Button(272, pressed));
    };
    point(&mut pair);
    click(&mut pair, true);
    pair.settle();
    pair.cut();
    click(&mut pair, false);
    // While it is asked for, what is under the pointer is not known.
    pair.viewer.resume(Time::ZERO);
    point(&mut pair);
    click(&mut pair, true);
    click(&mut pair, false);
    let reason = CloseReason::LinkLost("once more".to_owned());
    pair.viewer.receive(Time::ZERO, Arrival::Closed { reason });
    pair.come_again(true);
    assert_eq!(buttons(&pair), [(272, true), (272, false)]);
    point(&mut pair);
    click(&mut pair, true);
    pair.settle();
    assert_eq!(buttons(&pair).last(), Some(&(272, true)));
}

#[test]
fn regression_a_key_that_is_held_without_a_link_was_told_for_ever() {
    let mut pair = typing();
    type_key(&mut pair, 30, true);
    pair.settle();
    pair.cut();
    let kept = pair.viewer.kept_for_later();
    for _ in 0..100 {
        let due = pair.viewer.next_timeout().unwrap_or_default();
        pair.viewer.on_timeout(due);
    }
    assert!(pair.viewer.kept_for_later() <= kept + 256);
}

#[test]
fn regression_a_silent_link_is_given_up_after_five_seconds() {
    let mut pair = Pair::new(viewer(), lasting_host(false));
    pair.show();
    while pair.notices.last() != Some(&Notice::Away) {
        let due = pair.viewer.next_timeout().expect("it waits for a word");
        assert!(due <= Time::from_millis(5_000), "{due:?}");
        pair.viewer.on_timeout(due);
        pair.notices.extend(std::iter::from_fn(|| pair.viewer.poll_notice()));
    }
}

#[test]
fn an_app_side_that_does_not_read_is_given_up() {
    let mut viewer = viewer();
    viewer.set_unsent(Time::ZERO, MAX_UNSENT);
    assert_eq!(viewer.poll_notice(), None);
    viewer.set_unsent(Time::ZERO, MAX_UNSENT + 1);
    assert_eq!(viewer.poll_notice(), Some(Notice::Over(Over::Broken)));
}

proptest! {
    #[test]
    fn any_bytes_of_a_host_are_borne(
        pieces in proptest::collection::vec((0u64..6, proptest::collection::vec(any::<u8>(), 0..60), 0u8..9), 1..40),
        greets: bool,
    ) {
        let mut viewer = viewer();
        let mut host = host();
        let mut way = Way::default();
        if greets {
            while let Some(transmit) = host.poll_transmit(Time::ZERO) {
                for arrival in way.carry(transmit).into_iter().flatten() {
                    viewer.receive(Time::ZERO, arrival);
                }
            }
        }
        for (stream, bytes, how) in pieces {
            if how == 8 {
                viewer.resume(Time::ZERO);
                way = Way::default();
                continue;
            }
            let stream = StreamId(stream);
            let offset = way.lengths.entry(stream).or_default();
            let arrival = match how {
                0 => Arrival::Finished { stream, length: *offset },
                1 => Arrival::Reset { stream, code: 3 },
                2 => Arrival::Stopped { stream, code: 3 },
                3 => Arrival::Datagram { bytes: Bytes::from(bytes) },
                _ => {
                    let data = Arrival::Data { stream, offset: *offset, bytes: Bytes::from(bytes.clone()) };
                    *offset += bytes.len() as u64;
                    data
                }
            };
            viewer.receive(Time::ZERO, arrival);
            while viewer.poll_transmit(Time::ZERO).is_some() {}
            Drawing::of(viewer.page());
        }
    }
}

/// A display whose program has its window's focus and has selected a source, 26.
fn copied() -> (Pair, wayferry_proto::ChannelId) {
    let mut pair = Pair::new(display(), host());
    let channel = pair.host.open(Header::Wayland { connection: PROGRAM });
    pair.host.send_update(header(), vec![RED.to_vec()]).expect("it is small");
    let bind = |global, interface: &str, id| ToDisplay::Bind {
        global,
        interface: interface.to_owned(),
        version: 3,
        id: WireId(id),
    };
    let ask = |object, opcode, args| ToDisplay::Request(Request { object: WireId(object), opcode, args });
    let (new, object) = (|id| WireArg::NewId(WireId(id)), |id| WireArg::Object(WireId(id)));
    let listens = [
        bind(5, "wl_seat", 20),
        bind(10, "wl_data_device_manager", 22),
        ask(22, 1, vec![new(24), object(20)]),
        ask(22, 0, vec![new(26)]),
        ask(26, 0, vec![WireArg::Str(Some(b"text/plain".to_vec()))]),
    ];
    for message in window().into_iter().chain(listens) {
        pair.host.send(channel, &message.encode()).expect("it is short");
    }
    pair.settle();
    pair.viewer.act(Time::ZERO, Act::Focus(PROGRAM, SURFACE));
    let select = ask(24, 1, vec![object(26), WireArg::Uint(1)]);
    pair.host.send(channel, &select.encode()).expect("it is short");
    pair.settle();
    (pair, channel)
}

/// A program writes through a pipe of the page's.
fn write(pair: &mut Pair, pipe: u64, bytes: Vec<u8>) {
    let channel = pair.host.open(Header::Pipe { connection: PROGRAM, pipe });
    pair.host.write(channel, bytes.into());
    pair.host.finish(channel);
    pair.settle();
}

#[test]
fn what_a_program_copies_comes_through_a_pipe_unless_it_is_too_much() {
    let (mut pair, _) = copied();
    write(&mut pair, 5, b"not asked for".to_vec());
    assert_eq!(pair.viewer.page().poll_copied(), None);
    write(&mut pair, 1, b"copied".to_vec());
    assert_eq!(pair.viewer.page().poll_copied(), Some(Clip::Text(Bytes::from_static(b"copied"))));
    for (length, is_taken) in [(MAX_COPIED_TEXT, true), (MAX_COPIED_TEXT + 1, false)] {
        let (mut pair, _) = copied();
        write(&mut pair, 1, vec![b'a'; length]);
        assert_eq!(pair.viewer.page().poll_copied().is_some(), is_taken, "{length}");
    }
}

#[test]
fn what_a_program_writes_goes_to_the_one_that_pastes_no_faster_than_that_reads() {
    let (mut pair, channel) = copied();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|at| at as u8 ^ (at >> 11) as u8).collect();
    let args = vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(2)];
    let receive = ToDisplay::Request(Request { object: WireId(1), opcode: 1, args });
    pair.host.send(channel, &receive.encode()).expect("it is short");
    pair.settle();
    write(&mut pair, 3, bytes.clone());
    let (mut came, mut finished) = (Vec::new(), false);
    let mut is_first = true;
    loop {
        let heard = std::mem::take(&mut pair.heard);
        let before = came.len();
        for event in heard {
            match event {
                Event::Data { channel, header: Header::Pipe { pipe: 2, .. }, bytes } => {
                    came.extend_from_slice(&bytes);
                    pair.host.consumed(channel, bytes.len());
                }
                Event::Finished { header: Header::Pipe { pipe: 2, .. }, .. } => finished = true,
                _ => {}
            }
        }
        assert!(!std::mem::take(&mut is_first) || came.len() <= wayferry_proto::PIPE_WINDOW);
        if finished || came.len() == before {
            break;
        }
        // What was handed to the carrier has left.
        pair.viewer.set_unsent(Time::ZERO, 0);
        pair.settle();
    }
    assert!(finished && came == bytes, "{} of {}", came.len(), bytes.len());
    // Another one of that number was not asked for.
    write(&mut pair, 3, b"once more".to_vec());
    assert!(!pair.heard.iter().any(|event| matches!(event, Event::Data { .. })));
}

/// Where the link takes nothing before the page has said all that it will.
impl Pair {
    /// What the page says at once, as its script has it sent; gives how many bytes.
    fn flight(&mut self) -> usize {
        let (mut unsent, mut said) = (0, Vec::new());
        while let Some(transmit) = self.viewer.poll_transmit(Time::ZERO) {
            if let Transmit::Data { bytes, .. } = &transmit {
                unsent += bytes.len();
                self.viewer.set_unsent(Time::ZERO, unsent);
            }
            said.push(transmit);
        }
        let arrivals = said.into_iter().filter_map(|transmit| self.ways[0].carry(transmit)).flatten();
        arrivals.for_each(|arrival| self.host.receive(Time::ZERO, arrival));
        self.viewer.set_unsent(Time::ZERO, 0);
        self.heard.extend(std::iter::from_fn(|| self.host.poll_event()));
        unsent
    }

    /// What the host has to say arrives.
    fn hear(&mut self) {
        while let Some(transmit) = self.host.poll_transmit(Time::ZERO) {
            for arrival in self.ways[1].carry(transmit).into_iter().flatten() {
                self.viewer.receive(Time::ZERO, arrival);
            }
        }
        self.notices.extend(std::iter::from_fn(|| self.viewer.poll_notice()));
    }
}

/// Asks for what was offered last, through so many pipes, in one flight.
fn ask_often(pair: &mut Pair, channel: wayferry_proto::ChannelId, kind: &[u8], pipes: std::ops::Range<u64>) {
    for pipe in pipes {
        let args = vec![WireArg::Str(Some(kind.to_vec())), WireArg::Pipe(2 * pipe)];
        let offer = last_offer(&pair.heard);
        let receive = ToDisplay::Request(Request { object: offer, opcode: 1, args });
        pair.host.send(channel, &receive.encode()).expect("it is short");
    }
    pair.hear();
}

/// The offer that a program was told of last.
fn last_offer(heard: &[Event]) -> WireId {
    let mut offers = told(heard).into_iter().filter_map(|message| match message {
        ToApp::Event(Request { object: WireId(24), opcode: 0, args }) => match args[..] {
            [WireArg::NewId(offer)] => Some(offer),
            _ => None,
        },
        _ => None,
    });
    offers.next_back().expect("it was told of one")
}

/// Bytes that came through each pipe, and whether it has ended.
fn pasted(heard: &[Event]) -> BTreeMap<u64, (usize, bool)> {
    let mut pasted: BTreeMap<u64, (usize, bool)> = BTreeMap::new();
    for event in heard {
        match event {
            Event::Data { header: Header::Pipe { pipe, .. }, bytes, .. } => {
                pasted.entry(*pipe).or_default().0 += bytes.len();
            }
            Event::Finished { header: Header::Pipe { pipe, .. }, .. } => {
                pasted.entry(*pipe).or_default().1 = true
            }
            _ => {}
        }
    }
    pasted
}

#[test]
fn regression_a_program_that_pasted_often_at_once_ended_the_session() {
    const LENGTH: usize = 64 << 10;
    let (mut pair, channel) = copied();
    pair.viewer.act(Time::ZERO, Act::Offer(Clip::Text(vec![b'a'; LENGTH].into()), true));
    pair.settle();
    ask_often(&mut pair, channel, b"text/plain", 1..101);
    pair.hear();
    let mut flights = 0;
    loop {
        let bytes = pair.flight();
        assert!(bytes <= MAX_HANDED / 2 + 2 * LENGTH, "{bytes} at once");
        pair.hear();
        if bytes == 0 {
            break;
        }
        flights += 1;
    }
    assert!(flights > 5 && pair.notices == [Notice::Welcome], "{:?}", pair.notices);
    let expected: BTreeMap<u64, _> = (1..101).map(|pipe| (2 * pipe, (LENGTH, true))).collect();
    assert_eq!(pasted(&pair.heard), expected);
}

#[test]
fn who_pastes_more_than_may_wait_sees_the_end_and_so_does_who_is_gone() {
    let (mut pair, channel) = copied();
    let bytes = vec![7; 1 << 20];
    pair.viewer.act(Time::ZERO, Act::Offer(Clip::Picture(bytes.into()), true));
    pair.settle();
    // The link has no room at all.
    pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
    ask_often(&mut pair, channel, b"image/png", 1..300);
    pair.hear();
    pair.settle();
    let ended = |pair: &Pair| pasted(&pair.heard).into_values().filter(|it| *it == (0, true)).count();
    assert_eq!(ended(&pair), 299 - 256);
    pair.host.finish(channel);
    pair.hear();
    pair.settle();
    assert_eq!(ended(&pair), 299);
}

#[test]
fn regression_what_programs_copied_from_each_other_left_at_once() {
    let (mut pair, channel) = copied();
    // Each is asked to write, does so and ends.
    for number in 1..81 {
        let args = vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(2 * number)];
        let receive = ToDisplay::Request(Request { object: last_offer(&pair.heard), opcode: 1, args });
        pair.host.send(channel, &receive.encode()).expect("it is short");
        pair.hear();
        pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
        let pipe = Header::Pipe { connection: PROGRAM, pipe: 2 * number + 1 };
        let written = pair.host.open(pipe);
        pair.host.write(written, vec![7; 64 << 10].into());
        pair.host.finish(written);
        pair.hear();
    }
    pair.viewer.set_unsent(Time::ZERO, 0);
    loop {
        let bytes = pair.flight();
        assert!(bytes <= MAX_HANDED / 2 + (256 << 10), "{bytes} at once");
        pair.hear();
        if bytes == 0 {
            break;
        }
    }
    assert_eq!(pair.notices, [Notice::Welcome]);
}

/// Text of so many characters, of which none is twice in a keymap.
fn foreign(count: usize) -> String {
    ('\u{4e00}'..='\u{9fa5}').cycle().take(count).collect()
}

#[test]
fn regression_a_long_text_of_an_input_method_ended_the_session() {
    let mut pair = typing();
    for piece in foreign(13_000).chars().collect::<Vec<_>>().chunks(1024) {
        pair.viewer.act(Time::ZERO, Act::Text(piece.iter().collect()));
    }
    // What is done behind it is told behind it.
    type_key(&mut pair, 30, true);
    type_key(&mut pair, 30, false);
    loop {
        let bytes = pair.flight();
        assert!(bytes <= MAX_HANDED + (512 << 10), "{bytes} at once");
        pair.hear();
        if bytes == 0 {
            break;
        }
    }
    assert_eq!(pair.notices, [Notice::Welcome]);
    let keys = keys(&pair.heard);
    assert_eq!(keys.len(), 2 * 13_001);
    assert_eq!(keys[2 * 13_000..], [(30, true), (30, false)]);
}

/// What the keyboard of the second program was told: opcodes, with arguments.
fn keyboard_heard(heard: &[Event]) -> Vec<(u16, Vec<WireArg>)> {
    let events = told(heard).into_iter().filter_map(|message| match message {
        ToApp::Event(Request { object: KEYBOARD, opcode, args }) => Some((opcode, args)),
        _ => None,
    });
    events.collect()
}

#[test]
fn regression_a_window_that_was_chosen_when_no_more_keys_could_wait_was_forgotten() {
    const LEAVE: u16 = 2;
    const MODIFIERS: u16 = 4;
    let mut pair = typing();
    pair.cut();
    pair.heard.clear();
    for _ in 0..MAX_KEPT / 64 {
        type_key(&mut pair, 31, true);
        type_key(&mut pair, 31, false);
    }
    let full = pair.viewer.kept_for_later();
    for modifiers in [4, 16].repeat(1000) {
        pair.viewer.act(Time::ZERO, Act::Focus(PROGRAM, SURFACE));
        pair.viewer.act(Time::ZERO, Act::Modifiers(modifiers));
        pair.viewer.act(Time::ZERO, Act::Area(Area::new(300, 200, 120)));
        type_key(&mut pair, 32, true);
    }
    assert_eq!(pair.viewer.kept_for_later(), full);
    pair.come_again(true);
    assert_eq!(keyboard_heard(&pair.heard).last().map(|(opcode, _)| *opcode), Some(LEAVE), "behind all keys");
    type_key(&mut pair, 32, true);
    pair.settle();
    assert!(keys(&pair.heard).iter().all(|(code, _)| *code == 31), "the other window has the keyboard");
    let snapshots = pair.heard.iter().filter(|event| matches!(event, Event::Control(Control::Snapshot(_))));
    assert_eq!(snapshots.count(), 1, "the area is told, too");
    pair.viewer.act(Time::ZERO, Act::Focus(ConnectionId(2), SURFACE));
    pair.settle();
    let (opcode, args) = keyboard_heard(&pair.heard).pop().expect("it has entered");
    assert_eq!((opcode, &args[3]), (MODIFIERS, &WireArg::Uint(16)), "the last ones");
}

#[test]
fn regression_what_an_input_method_wrote_without_a_link_was_kept_with_a_keymap_each() {
    let mut pair = typing();
    pair.cut();
    let before = pair.viewer.kept_for_later();
    let text: Vec<char> = foreign(1000).chars().collect();
    for word in text.chunks(2) {
        pair.viewer.act(Time::ZERO, Act::Text(word.iter().collect()));
    }
    let kept = pair.viewer.kept_for_later() - before;
    assert!(kept <= 500 * 70, "{kept}");
    pair.come_again(true);
    assert_eq!(pair.notices, [Notice::Welcome, Notice::Away, Notice::Back]);
    assert_eq!(keys(&pair.heard).len(), 2000);
}

#[test]
fn regression_a_key_that_went_down_without_a_link_was_told_for_ever() {
    let mut pair = typing();
    pair.cut();
    type_key(&mut pair, 30, true);
    let kept = pair.viewer.kept_for_later();
    for _ in 0..100 {
        let due = pair.viewer.next_timeout().unwrap_or_default();
        pair.viewer.on_timeout(due);
    }
    assert!(pair.viewer.kept_for_later() <= kept + 256);
    pair.come_again(true);
    assert_eq!(keys(&pair.heard), [(30, true)]);
    assert!(pair.viewer.next_timeout().is_some_and(|due| due <= Time::from_millis(100)), "it is held now");
}

#[test]
fn regression_a_paste_that_was_passed_over_was_never_offered_again() {
    let (mut pair, _) = copied();
    pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
    for _ in 0..MAX_KEPT / 64 {
        type_key(&mut pair, 31, true);
    }
    let picture = |is_new| Act::Offer(Clip::Picture(Bytes::from_static(b"png")), is_new);
    pair.viewer.act(Time::ZERO, picture(true));
    type_key(&mut pair, 31, true);
    // The script knows it by now.
    pair.viewer.act(Time::ZERO, picture(false));
    pair.heard.clear();
    pair.viewer.set_unsent(Time::ZERO, 0);
    pair.settle();
    let is_offered = told(&pair.heard).into_iter().any(|message| match message {
        ToApp::Event(Request { opcode: 0, args, .. }) => args == [WireArg::Str(Some(b"image/png".to_vec()))],
        _ => false,
    });
    assert!(is_offered, "{:?}", told(&pair.heard));
}

#[test]
fn regression_a_shortcut_that_waited_when_the_link_was_lost_arrived_without_its_modifiers() {
    const KEY: u16 = 3;
    const MODIFIERS: u16 = 4;
    let mut pair = typing();
    pair.viewer.act(Time::ZERO, Act::Modifiers(4));
    pair.settle();
    pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
    type_key(&mut pair, 46, true);
    pair.cut();
    pair.heard.clear();
    pair.come_again(true);
    let heard = keyboard_heard(&pair.heard);
    let key = heard.iter().position(|(opcode, args)| *opcode == KEY && args[2] == WireArg::Uint(46));
    let before = heard[..key.expect("it arrives")].iter().rfind(|(opcode, _)| *opcode == MODIFIERS);
    assert_eq!(before.map(|(_, args)| &args[1]), Some(&WireArg::Uint(4)), "{heard:?}");
}

#[test]
fn regression_wheels_that_were_dropped_with_the_link_left_no_room_for_keys() {
    let mut pair = typing();
    pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
    for _ in 0..MAX_KEPT / 64 {
        pair.viewer.act(Time::ZERO, Act::Wheel(Wheel { distance: [0.0, 1.0], steps: [0, 0] }));
    }
    pair.cut();
    type_key(&mut pair, 30, true);
    pair.come_again(true);
    assert_eq!(keys(&pair.heard), [(30, true)]);
}

#[test]
fn of_what_is_pasted_without_a_link_the_oldest_brings_nothing_if_it_is_too_much() {
    let (mut pair, channel) = copied();
    let picture = |byte: u8| Act::Offer(Clip::Picture(vec![byte; MAX_PASTED - 10].into()), true);
    // As little goes on while the link has no room.
    pair.viewer.set_unsent(Time::ZERO, MAX_HANDED);
    for offer in [picture(1), Act::Offer(Clip::Text(Bytes::from_static(b"short")), true), picture(2)] {
        pair.viewer.act(Time::ZERO, offer);
        pair.viewer.act(Time::ZERO, Act::Release);
    }
    pair.viewer.set_unsent(Time::ZERO, 0);
    pair.settle();
    let mut offered = told(&pair.heard).into_iter().filter_map(|message| match message {
        ToApp::Event(Request { opcode: 0, args, .. }) => match &args[..] {
            [WireArg::Str(Some(kind))] => Some(String::from_utf8_lossy(kind).into_owned()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(offered.next_back().as_deref(), Some("image/png"));
    ask_often(&mut pair, channel, b"image/png", 1..2);
    pair.settle();
    assert_eq!(pasted(&pair.heard)[&2].0, 64 << 10, "its head, for nothing of it was read");
}
