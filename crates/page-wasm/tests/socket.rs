//! A viewer on one stream of bytes, and an app side at its other end.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use wayferry_message::snapshot::Snapshot;
use wayferry_mux::{Mux, Output};
use wayferry_page::Role;
use wayferry_page_wasm::socket::{MAX_BUFFERED, Next, Socket};
use wayferry_page_wasm::viewer::{Notice, Over, Ticket, Viewer};
use wayferry_proto::{
    Arrival, Capabilities, Class, CloseReason, Config, ConnectionId, Control, Event, Header, HostTime,
    Priority, Secret, Session, SessionId, Side, StreamId, Time, Transmit,
};

fn secret() -> Secret {
    Secret::from([7; 32])
}

fn viewer_as(role: Role) -> Viewer {
    let incarnation = Secret::from([9; 32]);
    let ticket = Ticket { session: SessionId([1; 16]), secret: secret(), incarnation };
    Viewer::new(role, ticket, Time::ZERO, HostTime(0))
}

/// Both ends.
struct Pair {
    viewer: Viewer,
    host: Session,
    mux: Mux,
    consumed: u64,
    /// The viewer has said its last word.
    is_closed: bool,
    heard: Vec<Event>,
    notices: Vec<Notice>,
}

impl Pair {
    fn new() -> Self {
        let mut viewer = viewer_as(Role::View);
        viewer.begin_socket(Time::ZERO);
        let host = Session::new(Config {
            session: SessionId([1; 16]),
            accepted_secrets: vec![secret()],
            capabilities: Capabilities::VIEW.with(Capabilities::DATAGRAM_REPAIR),
            ..Config::new(Side::App)
        });
        let (mux, consumed, is_closed) = (Mux::new(), 0, false);
        let mut pair = Self { viewer, host, mux, consumed, is_closed, heard: vec![], notices: vec![] };
        pair.settle();
        let channel = pair.host.open(Header::Wayland { connection: ConnectionId(1) });
        pair.host.send(channel, b"nothing that a page knows").expect("it is short");
        pair.settle();
        pair
    }

    fn settle(&mut self) {
        loop {
            let said = self.viewer_says() | self.host_says();
            self.heard.extend(std::iter::from_fn(|| self.host.poll_event()));
            self.notices.extend(std::iter::from_fn(|| self.viewer.poll_notice()));
            if !said {
                return;
            }
        }
    }

    fn viewer_says(&mut self) -> bool {
        let bytes = match self.viewer.send_bytes(Time::ZERO, 0) {
            Next::Nothing | Next::Wait => return false,
            Next::Bytes(bytes) => bytes,
            Next::Last(bytes) => {
                self.is_closed = true;
                bytes
            }
        };
        let mut arrivals = Vec::new();
        let heard = self.mux.receive(Duration::ZERO, &bytes, |output| arrivals.push(output));
        heard.expect("it keeps the rules");
        for output in arrivals {
            let arrival = match output {
                Output::Arrival(arrival) => arrival,
                Output::Close { code, reason } => {
                    Arrival::Closed { reason: CloseReason::from_wire(code, &reason) }
                }
            };
            if let Arrival::Data { bytes, .. } = &arrival {
                self.consumed += bytes.len() as u64;
            }
            self.host.receive(Time::ZERO, arrival);
        }
        true
    }

    fn host_says(&mut self) -> bool {
        while let Some(transmit) = self.host.poll_transmit(Time::ZERO) {
            self.mux.transmit(transmit);
        }
        self.mux.acknowledge(self.consumed);
        let mut bytes = Vec::new();
        self.mux.produce(Duration::ZERO, &mut bytes);
        // However they are cut.
        bytes.chunks(7).for_each(|piece| self.viewer.receive_bytes(Time::ZERO, piece));
        !bytes.is_empty()
    }
}

#[test]
fn a_session_goes_over_one_stream_of_bytes() {
    let pair = Pair::new();
    assert_eq!(pair.notices.first(), Some(&Notice::Welcome));
    let said = pair.heard.iter().find_map(|event| match event {
        Event::Control(Control::Snapshot(bytes)) => Some(bytes.clone()),
        _ => None,
    });
    assert!(Snapshot::decode(&said.expect("a snapshot")).is_ok());
    let opened = |event: &Event| matches!(event, Event::Opened { header: Header::Events { .. }, .. });
    assert!(pair.heard.iter().any(opened), "the page listens to the program");
}

#[test]
fn each_side_hears_why_the_other_has_ended_it() {
    let mut pair = Pair::new();
    pair.viewer.leave(Time::ZERO);
    pair.settle();
    let closed = |event: &Event| matches!(event, Event::Closed { reason: CloseReason::Done, .. });
    assert!(pair.is_closed && pair.heard.iter().any(closed));
    assert_eq!(pair.viewer.send_bytes(Time::ZERO, 0), Next::Nothing, "it has had its last word");

    for (reason, over) in [
        (CloseReason::Done, Over::Done),
        (CloseReason::BadSecret, Over::Revoked),
        (CloseReason::TooMuch("viewers".into()), Over::Full),
    ] {
        let mut pair = Pair::new();
        pair.notices.clear();
        pair.host.close(reason);
        pair.settle();
        assert_eq!(pair.notices, [Notice::Over(over)]);
        // The browser says so as well, later.
        let lost = CloseReason::LinkLost("the browser lost it".into());
        pair.viewer.receive(Time::ZERO, Arrival::Closed { reason: lost });
        assert_eq!(pair.viewer.poll_notice(), None);
    }
}

#[test]
fn what_breaks_the_rules_ends_it_and_is_told() {
    let mut pair = Pair::new();
    pair.viewer.receive_bytes(Time::ZERO, &[0x77]);
    pair.viewer.receive_bytes(Time::ZERO, b"and more");
    assert_eq!(pair.viewer.poll_notice(), Some(Notice::Over(Over::Broken)));
    let Next::Last(bytes) = pair.viewer.send_bytes(Time::ZERO, 0) else { panic!("a last word") };
    let mut closed = Vec::new();
    pair.mux.receive(Duration::ZERO, &bytes, |output| closed.push(output)).expect("it keeps the rules");
    assert!(matches!(closed[..], [Output::Close { .. }]), "{closed:?}");
}

#[test]
fn what_is_urgent_overtakes_what_the_browser_was_not_given() {
    let mut socket = Socket::default();
    let [large, small] = [(0, Class::Pipe), (1, Class::Events)].map(|(stream, class)| {
        let stream = StreamId(stream);
        socket.transmit(Transmit::Open { stream, priority: Priority::new(class, 0) });
        stream
    });
    socket.transmit(Transmit::Data { stream: large, bytes: vec![1; 1 << 20].into(), finish: false });
    let Next::Bytes(first) = socket.send(Time::ZERO, 0) else { panic!("there is much") };
    assert!(first.len() < MAX_BUFFERED && socket.unsent() > 900 << 10);
    assert!(!socket.link(None).idle && socket.link(None).unsent > 0);
    socket.transmit(Transmit::Data { stream: small, bytes: vec![2; 8].into(), finish: false });
    assert_eq!(socket.send(Time::ZERO, MAX_BUFFERED), Next::Wait, "the browser has enough");
    assert!(socket.unsent() > (900 << 10) + MAX_BUFFERED);
    let Next::Bytes(second) = socket.send(Time::ZERO, MAX_BUFFERED - 1) else { panic!("it goes on") };
    assert_eq!(second[3..11], [2; 8], "the key first");
}

#[test]
fn streams_of_the_browsers_are_as_before() {
    let mut viewer = viewer_as(Role::View);
    assert_eq!(viewer.send_bytes(Time::ZERO, 0), Next::Nothing);
    viewer.receive_bytes(Time::ZERO, b"nothing");
    assert!(matches!(viewer.poll_transmit(Time::ZERO), Some(Transmit::Open { .. })));
    assert_eq!(viewer.poll_notice(), None);
}

proptest! {
    #[test]
    fn any_bytes_are_borne(
        greeted in any::<bool>(),
        pieces in prop::collection::vec(prop::collection::vec(prop_oneof![0..6u8, any::<u8>()], 0..200), 0..20),
    ) {
        let mut viewer = viewer_as(Role::Control);
        viewer.begin_socket(Time::ZERO);
        if greeted {
            viewer.receive_bytes(Time::ZERO, b"WFMUX1\r\n");
        }
        for piece in pieces {
            viewer.receive_bytes(Time::ZERO, &piece);
            while let Next::Bytes(_) | Next::Last(_) = viewer.send_bytes(Time::ZERO, 0) {}
        }
        let overs = std::iter::from_fn(|| viewer.poll_notice()).filter(|notice| matches!(notice, Notice::Over(_)));
        prop_assert!(overs.count() <= 1);
    }
}

#[test]
fn regression_a_host_could_have_a_page_keep_stops_for_it_without_end() {
    let mut pair = Pair::new();
    pair.notices.clear();
    for pipe in 0..1 << 22 {
        // No program has such a pipe: the page stops it.
        let channel = pair.host.open(Header::Pipe { connection: ConnectionId(9), pipe });
        pair.host.write(channel, Bytes::from_static(b"x"));
        pair.host_says();
        pair.host.reset(channel, 0);
        while pair.host.poll_event().is_some() {}
        // The browser has not sent what it has.
        let _ = pair.viewer.send_bytes(Time::ZERO, MAX_BUFFERED);
        if let Some(notice) = pair.viewer.poll_notice() {
            return assert_eq!(notice, Notice::Over(Over::Broken));
        }
    }
    panic!("it is read on");
}
