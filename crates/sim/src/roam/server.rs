//! The app side's host: a QUIC endpoint that displays come to, and the one session.
//!
//! Each connection begins as a candidate with a session of its own. What becomes of it, and of the display that was
//! there, the product's [`Succession`] says; this performs it. Invariant: a display that resumes gets the session that
//! it had, or hears that there is none.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple, Incoming, ServerConfig,
    ValidationTokenConfig,
};
use wayferry_proto::succession::{Around, Output, Report, Rules, Succession};
use wayferry_proto::{Candidate, Capabilities, CloseReason, Config, Event, Session, Side, Time};

use super::leg::{Leg, Outgoing};
use super::talk::Talk;
use crate::clock::Clock;
use crate::crypto::Plain;
use crate::host::{Counted, Quic};
use crate::meter::Meter;
use crate::random::Random;
use crate::session::Port;

/// See the module.
pub(super) struct Server {
    endpoint: Endpoint,
    legs: BTreeMap<ConnectionHandle, Leg>,
    candidates: BTreeMap<ConnectionHandle, Port>,
    succession: Succession<Display>,
    pub(super) talk: Talk,
    pub(super) out: Vec<Outgoing>,
    /// How often it began anew.
    pub(super) anew: u32,
    /// What is wrong.
    pub(super) fault: Option<String>,
}

/// A display that was let in.
struct Display {
    /// Its leg, until that is given up: handles are used again.
    leg: Option<ConnectionHandle>,
    port: Port,
}

impl AsRef<Session> for Display {
    fn as_ref(&self) -> &Session {
        &self.port.session
    }
}

impl AsMut<Session> for Display {
    fn as_mut(&mut self) -> &mut Session {
        &mut self.port.session
    }
}

fn config(now: Time) -> Config {
    Config { capabilities: Capabilities::RESUME, start: now, ..Config::new(Side::App) }
}

/// An endpoint; `life` makes its connection ids those of no other one.
pub(super) fn endpoint(random: &Random, life: u64, server: Option<Arc<ServerConfig>>) -> Endpoint {
    let mut random = random.fork(life);
    let mut seed = [0; 32];
    for part in seed.chunks_mut(8) {
        part.copy_from_slice(&random.bits().to_le_bytes());
    }
    let mut config = EndpointConfig::new(Arc::new(Plain));
    config.rng_seed(Some(seed));
    config.cid_generator(Arc::new(move || Box::new(Counted::from(life << 32))));
    Endpoint::new(Arc::new(config), server, true)
}

fn server_config(meter: &Meter) -> Arc<ServerConfig> {
    let mut config = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
    config.transport_config(Quic::product().transport(meter));
    let mut tokens = ValidationTokenConfig::default();
    // A token holds the real time.
    tokens.sent(0);
    config.validation_token_config(tokens);
    Arc::new(config)
}

impl Server {
    /// Process number `life`; its talk goes on after that of the one before.
    pub(super) fn new(random: &Random, life: u64, talk: Talk) -> Self {
        Self {
            endpoint: endpoint(random, life, Some(server_config(&Meter::default()))),
            legs: BTreeMap::new(),
            candidates: BTreeMap::new(),
            succession: Succession::new(Rules { followed: true, linger: None }, Time::ZERO, None),
            talk,
            out: Vec::new(),
            anew: 0,
            fault: None,
        }
    }

    /// The session, with or without a leg.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        self.succession.display_mut().map(|display| &mut display.port.session)
    }

    /// Ends what it has said.
    pub(super) fn finish(&mut self) {
        self.with_talk(|talk, session| talk.finish(session));
    }

    fn with_talk(&mut self, work: impl FnOnce(&mut Talk, &mut Session)) {
        let mut talk = std::mem::take(&mut self.talk);
        if let Some(session) = self.session() {
            work(&mut talk, session);
        }
        self.talk = talk;
    }

    /// Connections that are not forgotten, and streams of them that wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let display = self.succession.display().map(|display| &display.port);
        (self.legs.len(), self.candidates.values().chain(display).map(Port::waiting).sum())
    }

    pub(super) fn receive(&mut self, clock: Clock, now: Time, from: SocketAddr, packet: &[u8]) {
        let instant = clock.instant(now);
        let mut answer = Vec::new();
        let path = FourTuple::from_remote(from);
        match self.endpoint.handle(instant, path, None, BytesMut::from(packet), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(leg) = self.legs.get_mut(&handle) {
                    leg.receive(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(clock, now, incoming, &mut answer),
            Some(DatagramEvent::Response(_)) | None => {}
        }
        if !answer.is_empty() {
            self.out.push((from, answer));
        }
    }

    fn accept(&mut self, clock: Clock, now: Time, incoming: Incoming, answer: &mut Vec<u8>) {
        let meter = Meter::default();
        let config = Some(server_config(&meter));
        // One that cannot be accepted is answered so.
        if let Ok(accepted) = self.endpoint.accept(incoming, clock.instant(now), answer, config) {
            let leg = Leg::new(accepted, meter);
            self.candidates.insert(leg.handle, Port::with(Session::new(self::config(now))));
            self.legs.insert(leg.handle, leg);
        }
    }

    /// Does everything that is to be done at `now`.
    pub(super) fn advance(&mut self, clock: Clock, now: Time) {
        for leg in self.legs.values_mut() {
            let port = port_of(leg.handle, &mut self.candidates, &mut self.succession);
            leg.advance(clock, now, &mut self.endpoint, port);
        }
        self.take_events(clock, now);
        let handles: Vec<_> = self.candidates.keys().copied().collect();
        for handle in handles {
            self.look_at(clock, now, handle);
        }
        self.take_events(clock, now);
        self.succession.look(now);
        self.perform(clock, now);
        self.with_talk(|talk, session| talk.say(now, session));
        for leg in self.legs.values_mut() {
            let port = port_of(leg.handle, &mut self.candidates, &mut self.succession);
            leg.transmit(clock, now, &mut self.out, port);
        }
        let Self { legs, candidates, succession, .. } = self;
        legs.retain(|handle, leg| !leg.is_over() || port_of(*handle, candidates, succession).is_some());
    }

    pub(super) fn next_timeout(&self, clock: Clock, now: Time) -> Option<Time> {
        let display = self.succession.display();
        let port = |handle: &ConnectionHandle| {
            let display = display.filter(|display| display.leg == Some(*handle)).map(|display| &display.port);
            self.candidates.get(handle).or(display)
        };
        let legs = self.legs.iter().filter_map(|(handle, leg)| leg.next_timeout(clock, now, port(handle)));
        let talk = self.talk.next_timeout().filter(|_| display.is_some());
        legs.chain(talk).chain(self.succession.next_timeout()).min()
    }

    /// What has become of a candidate.
    fn look_at(&mut self, clock: Clock, now: Time, handle: ConnectionHandle) {
        match self.candidates.get_mut(&handle).and_then(|port| port.session.poll_event()) {
            Some(Event::Ready { peer }) => {
                let Some(port) = self.candidates.remove(&handle) else { return };
                let known = self.session().is_some_and(|session| session.is_of(&peer));
                let anew = self.anew;
                let Ok(candidate) = Candidate::new(Display { leg: Some(handle), port }) else { return };
                self.succession.enter(now, candidate);
                self.perform(clock, now);
                if known && self.anew != anew {
                    self.fault = Some("a candidate did not succeed the session".to_owned());
                }
            }
            Some(Event::Closed { .. }) => {
                self.candidates.remove(&handle);
                self.close(clock, now, Some(handle), 0);
            }
            _ => {}
        }
    }

    fn take_events(&mut self, clock: Clock, now: Time) {
        while let Some(event) = self.session().and_then(Session::poll_event) {
            match event {
                Event::Suspended { reason } => self.succession.lose_carrier(now, reason),
                Event::Closed { reason, by } => self.succession.close(now, reason, by, Around::default()),
                event => self.with_talk(|talk, session| talk.hear(session, &event)),
            }
            self.perform(clock, now);
        }
    }

    /// Does what the succession says.
    fn perform(&mut self, clock: Clock, now: Time) {
        while let Some(output) = self.succession.poll_output() {
            match output {
                // The carrier that it had is dead. A display that is still there comes again.
                Output::Drop(display) => self.close(clock, now, display.leg, LOST),
                Output::Dismiss(display) => self.close(clock, now, display.leg, GONE),
                Output::GiveUpCarrier => {
                    let leg = self.succession.display_mut().and_then(|display| display.leg.take());
                    self.close(clock, now, leg, LOST);
                }
                Output::Report(Report::Attached) => {
                    self.talk.restart();
                    self.anew += 1;
                }
                Output::Report(Report::Lost(reason, _)) if reason != CloseReason::Gone => {
                    self.fault = Some(format!("the app's session ended: {reason}"));
                }
                Output::Over(end) => self.fault = Some(format!("the session is over: {end:?}")),
                Output::Detach | Output::Forget | Output::Report(_) => {}
            }
        }
    }

    fn close(&mut self, clock: Clock, now: Time, handle: Option<ConnectionHandle>, code: u32) {
        if let Some(leg) = handle.and_then(|handle| self.legs.get_mut(&handle)) {
            leg.close(clock, now, code);
        }
    }
}

/// What a leg carries: a candidate's, or that of the display that is there.
fn port_of<'a>(
    handle: ConnectionHandle,
    candidates: &'a mut BTreeMap<ConnectionHandle, Port>,
    succession: &'a mut Succession<Display>,
) -> Option<&'a mut Port> {
    let display = succession.display_mut().filter(|display| display.leg == Some(handle));
    candidates.get_mut(&handle).or(display.map(|display| &mut display.port))
}

/// Code of a close for a display in whose place another one came.
const GONE: u32 = 6;

/// Code of a close of a connection on which nothing was heard.
pub(super) const LOST: u32 = 7;
