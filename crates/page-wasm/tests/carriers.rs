//! A display whose links follow each other, of either kind, and an app side at their other end.

mod rig;

use std::time::Duration;

use wayferry_message::{Request, ToDisplay, WireArg, WireId};
use wayferry_mux::{Mux, Output};
use wayferry_page::{Level, Role};
use wayferry_page_wasm::acts::Act;
use wayferry_page_wasm::socket::Next;
use wayferry_page_wasm::viewer::{Notice, Ticket, Viewer};
use wayferry_proto::{
    Arrival, Candidate, Capabilities, CloseReason, Config, Event, Header, HostTime, Secret, Session,
    SessionId, Side, Time,
};

use rig::*;

const SECRET: [u8; 32] = [7; 32];
const INCARNATION: [u8; 32] = [9; 32];

/// What carries both.
enum Link {
    /// Streams of both sides.
    Streams([Way; 2]),
    /// One stream of bytes, and how many of it the app side has taken.
    Socket(Box<Mux>, u64),
}

impl Link {
    fn streams() -> Self {
        Self::Streams(Default::default())
    }

    fn socket(viewer: &mut Viewer) -> Self {
        viewer.begin_socket(Time::ZERO);
        Self::Socket(Box::default(), 0)
    }

    /// What the viewer says next.
    fn heard(&mut self, viewer: &mut Viewer) -> Option<Vec<Arrival>> {
        match self {
            Self::Streams([way, _]) => {
                viewer.poll_transmit(Time::ZERO).map(|it| way.carry(it).unwrap_or_default())
            }
            Self::Socket(mux, consumed) => {
                let (Next::Bytes(bytes) | Next::Last(bytes)) = viewer.send_bytes(Time::ZERO, 0) else {
                    return None;
                };
                let mut arrivals = Vec::new();
                let taken = mux.receive(Duration::ZERO, &bytes, |output| match output {
                    Output::Arrival(arrival) => arrivals.push(arrival),
                    Output::Close { .. } => panic!("it does not leave"),
                });
                taken.expect("it keeps the rules");
                *consumed += arrivals
                    .iter()
                    .map(
                        |arrival| {
                            if let Arrival::Data { bytes, .. } = arrival { bytes.len() as u64 } else { 0 }
                        },
                    )
                    .sum::<u64>();
                Some(arrivals)
            }
        }
    }

    /// Tells the viewer what the host says, if anything.
    fn tell(&mut self, host: &mut Session, viewer: &mut Viewer) -> bool {
        let mut said = Vec::new();
        while let Some(transmit) = host.poll_transmit(Time::ZERO) {
            said.push(transmit);
        }
        match self {
            Self::Streams([_, way]) => {
                let any = !said.is_empty();
                let arrivals = said.into_iter().filter_map(|transmit| way.carry(transmit)).flatten();
                arrivals.for_each(|arrival| viewer.receive(Time::ZERO, arrival));
                any
            }
            Self::Socket(mux, consumed) => {
                said.into_iter().for_each(|transmit| mux.transmit(transmit));
                mux.acknowledge(*consumed);
                let mut bytes = Vec::new();
                mux.produce(Duration::ZERO, &mut bytes);
                viewer.receive_bytes(Time::ZERO, &bytes);
                !bytes.is_empty()
            }
        }
    }
}

/// One whose display may come again, by its incarnation alone if it has been there.
fn host(knows: bool) -> Session {
    Session::new(Config {
        session: SessionId([1; 16]),
        accepted_secrets: if knows { vec![] } else { vec![Secret::from(SECRET)] },
        accepted_incarnations: if knows { vec![Secret::from(INCARNATION)] } else { vec![] },
        capabilities: Capabilities::VIEW.with(Capabilities::RESUME).with(Capabilities::DATAGRAM_REPAIR),
        ..Config::new(Side::App)
    })
}

struct Pair {
    viewer: Viewer,
    host: Session,
    link: Link,
    heard: Vec<Event>,
    notices: Vec<Notice>,
}

impl Pair {
    /// On streams, with a window in which keys arrive.
    fn typing() -> Self {
        let (secret, incarnation) = (Secret::from(SECRET), Secret::from(INCARNATION));
        let ticket = Ticket { session: SessionId([1; 16]), secret, incarnation };
        let viewer = Viewer::new(Role::Control, ticket, Time::ZERO, HostTime(0));
        let (heard, notices) = Default::default();
        let mut pair = Self { viewer, host: host(false), link: Link::streams(), heard, notices };
        pair.settle();
        let channel = pair.host.open(Header::Wayland { connection: PROGRAM });
        for message in window() {
            pair.host.send(channel, &message.encode()).expect("it is short");
        }
        pair.host.send_update(header(), vec![RED.to_vec()]).expect("it is small");
        pair.settle();
        pair.viewer.act(Time::ZERO, Act::Focus(PROGRAM, SURFACE));
        pair.settle();
        pair
    }

    fn settle(&mut self) {
        loop {
            let mut idle = true;
            while let Some(arrivals) = self.link.heard(&mut self.viewer) {
                idle = false;
                arrivals.into_iter().for_each(|arrival| self.host.receive(Time::ZERO, arrival));
            }
            self.heard.extend(std::iter::from_fn(|| self.host.poll_event()));
            idle &= !self.link.tell(&mut self.host, &mut self.viewer);
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

    /// The page comes on another link.
    fn come_again(&mut self, link: fn(&mut Viewer) -> Link) {
        self.viewer.resume(Time::ZERO);
        self.link = link(&mut self.viewer);
        let mut candidate = host(true);
        while let Some(arrivals) = self.link.heard(&mut self.viewer) {
            arrivals.into_iter().for_each(|arrival| candidate.receive(Time::ZERO, arrival));
        }
        while candidate.poll_event().is_some_and(|event| !matches!(event, Event::Ready { .. })) {}
        let candidate = Candidate::new(candidate).expect("its hello came");
        let old = std::mem::replace(&mut self.host, host(true));
        self.host = candidate.succeed(Time::ZERO, old).expect("it is the same");
        self.settle();
    }

    /// A key goes down and up.
    fn tap(&mut self, code: u32) {
        for pressed in [true, false] {
            self.viewer.act(Time::ZERO, Act::Key { code, level: Level::Plain, character: None, pressed });
        }
    }
}

fn window() -> Vec<ToDisplay> {
    let bind = |global, interface: &str, version, id| {
        let interface = interface.to_owned();
        ToDisplay::Bind { global, interface, version, id: WireId(id) }
    };
    let ask = |object, opcode, args| ToDisplay::Request(Request { object: WireId(object), opcode, args });
    let (new, object) = (WireArg::NewId, WireArg::Object);
    vec![
        bind(1, "wl_compositor", 1, 4),
        bind(3, "xdg_wm_base", 1, 6),
        ask(4, 0, vec![new(SURFACE)]),
        ask(6, 2, vec![new(WireId(10)), object(SURFACE)]),
        ask(10, 1, vec![new(WireId(12))]),
        bind(5, "wl_seat", 7, 20),
        ask(20, 1, vec![new(KEYBOARD)]),
        unit(),
    ]
}

#[test]
fn links_of_both_kinds_follow_each_other_and_what_is_typed_between_them_arrives_once() {
    let mut pair = Pair::typing();
    let mut expected = Vec::new();
    let mut typed = |pair: &mut Pair, code| {
        pair.tap(code);
        expected.extend([(code, true), (code, false)]);
        expected.clone()
    };
    typed(&mut pair, 30);
    pair.settle();
    let kinds: [fn(&mut Viewer) -> Link; 4] =
        [Link::socket, |_| Link::streams(), |_| Link::streams(), Link::socket];
    for (link, code) in kinds.into_iter().zip([31, 41, 51, 61]) {
        // Some of it is under way when the link is lost.
        typed(&mut pair, code);
        let _ = pair.link.heard(&mut pair.viewer);
        pair.cut();
        let all = typed(&mut pair, code + 1);
        assert!(keys(&pair.heard).len() < all.len(), "they wait for a link");
        pair.come_again(link);
        assert_eq!(pair.notices.last(), Some(&Notice::Back));
        assert_eq!(keys(&pair.heard), all);
        let all = typed(&mut pair, code + 2);
        pair.settle();
        assert_eq!(keys(&pair.heard), all, "it is good for what is typed on it, too");
    }
}

#[test]
fn regression_a_long_text_of_an_input_method_ended_the_session_on_a_socket() {
    let mut pair = Pair::typing();
    pair.cut();
    // Some of it while there is no link.
    let text: Vec<char> = ('\u{4e00}'..='\u{9fa5}').take(20_000).collect();
    let mut pieces = text.chunks(1000).map(|piece| Act::Text(piece.iter().collect()));
    pieces.by_ref().take(5).for_each(|piece| pair.viewer.act(Time::ZERO, piece));
    pair.come_again(Link::socket);
    pieces.for_each(|piece| pair.viewer.act(Time::ZERO, piece));
    pair.tap(30);
    pair.settle();
    assert_eq!(pair.notices.last(), Some(&Notice::Back));
    let keys = keys(&pair.heard);
    assert_eq!(keys.len(), 2 * 20_001);
    assert_eq!(keys[2 * 20_000..], [(30, true), (30, false)]);
}
