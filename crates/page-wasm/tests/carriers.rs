//! A display whose links follow each other, of either kind, and an app side at their other end.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_mux::{Mux, Output};
use wayferry_page::{Level, Role};
use wayferry_page_wasm::socket::Next;
use wayferry_page_wasm::viewer::{Notice, Ticket, Viewer};
use wayferry_proto::{
    Arrival, Candidate, Capabilities, CloseReason, Config, ConnectionId, Event, Header, HostTime, Secret,
    Session, SessionId, Side, StreamId, SurfaceId, Time, Transmit, UpdateHeader, UpdateSeq,
};

const SURFACE: WireId = WireId(8);
const KEYBOARD: WireId = WireId(22);
const SECRET: [u8; 32] = [7; 32];
const INCARNATION: [u8; 32] = [9; 32];
/// Two rows of four red pixels.
const RED: [u8; 13] = [0, 11, 0, 1, 0, 0, 0, 3, 1, 0, 0, 255, 7];

/// What carries both.
enum Link {
    /// Streams, and how long each is, of both sides.
    Streams([BTreeMap<StreamId, u64>; 2]),
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
            Self::Streams([lengths, _]) => viewer.poll_transmit(Time::ZERO).map(|it| arrivals(lengths, it)),
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
            Self::Streams([_, lengths]) => {
                let any = !said.is_empty();
                let arrivals = said.into_iter().flat_map(|transmit| arrivals(lengths, transmit));
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

/// What becomes of this on a stream of the browser's.
fn arrivals(lengths: &mut BTreeMap<StreamId, u64>, transmit: Transmit) -> Vec<Arrival> {
    match transmit {
        Transmit::Data { stream, bytes, finish } => {
            let offset = lengths.entry(stream).or_default();
            let data = Arrival::Data { stream, offset: *offset, bytes: bytes.clone() };
            *offset += bytes.len() as u64;
            let end = finish.then_some(Arrival::Finished { stream, length: *offset });
            [data].into_iter().chain(end).collect()
        }
        Transmit::Reset { stream, code } => vec![Arrival::Reset { stream, code }],
        Transmit::Stop { stream, code } => vec![Arrival::Stopped { stream, code }],
        Transmit::Datagram { bytes } => vec![Arrival::Datagram { bytes }],
        Transmit::Close { .. } => panic!("nobody leaves"),
        Transmit::Open { .. } | Transmit::Prioritise { .. } => Vec::new(),
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
        let channel = pair.host.open(Header::Wayland { connection: ConnectionId(1) });
        for message in window() {
            pair.host.send(channel, &message.encode()).expect("it is short");
        }
        pair.host.send_update(update(), vec![RED.to_vec()]).expect("it is small");
        pair.settle();
        pair.viewer.act(Time::ZERO, |page| page.focus(Some((ConnectionId(1), SURFACE))));
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
            self.viewer.act(Time::ZERO, |page| page.key(Time::ZERO, code, Level::Plain, None, pressed));
        }
    }

    /// The keys that the program was told, and whether each was pressed.
    fn keys(&self) -> Vec<(u32, bool)> {
        let keys = self.heard.iter().filter_map(|event| {
            let Event::Message { header: Header::Events { .. }, bytes, .. } = event else { return None };
            match ToApp::decode(bytes).expect("a page says what it should") {
                ToApp::Event(Request { object: KEYBOARD, opcode: 3, args }) => match args[..] {
                    [_, _, WireArg::Uint(code), WireArg::Uint(state)] => Some((code, state == 1)),
                    _ => None,
                },
                _ => None,
            }
        });
        keys.collect()
    }
}

fn update() -> UpdateHeader {
    UpdateHeader {
        connection: ConnectionId(1),
        surface: SurfaceId(SURFACE.0),
        seq: UpdateSeq(1),
        size: (4, 2),
        format: 1,
        fresh: true,
        covers: 0,
        unit: None,
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
        ToDisplay::Unit(Unit {
            surface: SURFACE,
            number: 1,
            state: Vec::new(),
            content: UnitContent::Update(UpdateSeq(1)),
            offset: (0, 0),
            feedback: false,
            answered: None,
            children: Vec::new(),
        }),
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
        assert!(pair.keys().len() < all.len(), "they wait for a link");
        pair.come_again(link);
        assert_eq!(pair.notices.last(), Some(&Notice::Back));
        assert_eq!(pair.keys(), all);
        let all = typed(&mut pair, code + 2);
        pair.settle();
        assert_eq!(pair.keys(), all, "it is good for what is typed on it, too");
    }
}
