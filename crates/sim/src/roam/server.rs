//! The app side's host: a QUIC endpoint that displays come to, and the one session.
//!
//! As the product's app side it keeps one session, with a leg or at rest; each connection begins as a candidate with a session
//! of its own. Invariant: a display that resumes gets the session that it had, or hears that there is none.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple, Incoming, ServerConfig,
    ValidationTokenConfig,
};
use wayferry_proto::{Capabilities, CloseReason, Config, Event, Hello, Session, Side, Time};

use super::leg::{Leg, Outgoing};
use super::talk::Talk;
use crate::clock::Clock;
use crate::crypto::Plain;
use crate::host::{Counted, Quic};
use crate::meter::Meter;
use crate::random::Random;

/// See the module.
pub(super) struct Server {
    endpoint: Endpoint,
    legs: BTreeMap<ConnectionHandle, Leg>,
    /// The leg that the session has.
    current: Option<ConnectionHandle>,
    /// The session, while it has none.
    resting: Option<Session>,
    pub(super) talk: Talk,
    pub(super) out: Vec<Outgoing>,
    /// How often it began anew.
    pub(super) anew: u32,
    /// What is wrong.
    pub(super) fault: Option<String>,
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
            current: None,
            resting: None,
            talk,
            out: Vec::new(),
            anew: 0,
            fault: None,
        }
    }

    /// The session, with or without a leg.
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match self.current {
            Some(current) => self.legs.get_mut(&current)?.session(),
            None => self.resting.as_mut(),
        }
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
        (self.legs.len(), self.legs.values().map(Leg::waiting).sum())
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
            let leg = Leg::new(accepted, meter, Session::new(self::config(now)));
            self.legs.insert(leg.handle, leg);
        }
    }

    /// Does everything that is to be done at `now`.
    pub(super) fn advance(&mut self, clock: Clock, now: Time) {
        for leg in self.legs.values_mut() {
            leg.advance(clock, now, &mut self.endpoint);
        }
        let handles: Vec<_> = self.legs.keys().copied().collect();
        for handle in handles {
            if self.current != Some(handle) {
                self.look_at(clock, now, handle);
            }
        }
        self.take_events(clock, now);
        self.with_talk(|talk, session| talk.say(now, session));
        for leg in self.legs.values_mut() {
            leg.transmit(clock, now, &mut self.out);
        }
        self.legs.retain(|_, leg| !leg.is_over());
    }

    pub(super) fn next_timeout(&self, clock: Clock, now: Time) -> Option<Time> {
        let legs = self.legs.values().filter_map(|leg| leg.next_timeout(clock, now));
        let talks = self.current.is_some() || self.resting.is_some();
        legs.chain(self.talk.next_timeout().filter(|_| talks)).min()
    }

    /// What has become of a candidate.
    fn look_at(&mut self, clock: Clock, now: Time, handle: ConnectionHandle) {
        let Some(leg) = self.legs.get_mut(&handle) else { return };
        let Some(session) = leg.session() else { return };
        match session.poll_event() {
            Some(Event::Ready { peer }) => self.admit(clock, now, handle, &peer),
            Some(Event::Closed { .. }) => {
                leg.close(clock, now, 0);
            }
            _ => {}
        }
    }

    /// A display is here.
    fn admit(&mut self, clock: Clock, now: Time, handle: ConnectionHandle, peer: &Hello) {
        let known = self.session().is_some_and(|session| session.is_of(peer));
        if self.session().is_some_and(|session| session.is_late(peer)) {
            // It has gone on over another connection meanwhile.
            self.legs.get_mut(&handle).and_then(|leg| leg.close(clock, now, LOST));
            return;
        }
        // The carrier that it had is nobody's. A display that is still there comes again; another one is told to go.
        let code = if known { LOST } else { GONE };
        let before = self.current.take().and_then(|current| self.legs.get_mut(&current));
        let old = before.and_then(|leg| leg.close(clock, now, code)).or_else(|| self.resting.take());
        let Some(candidate) = self.legs.get_mut(&handle).and_then(Leg::session) else { return };
        match old.filter(|_| known) {
            Some(old) => {
                if candidate.succeed(now, old).is_err() {
                    self.fault = Some("a candidate did not succeed the session".to_owned());
                }
            }
            None => {
                candidate.decline(now);
                self.talk.restart();
                self.anew += 1;
            }
        }
        self.current = Some(handle);
    }

    fn take_events(&mut self, clock: Clock, now: Time) {
        loop {
            let Some(session) = self.session() else { return };
            let Some(event) = session.poll_event() else { return };
            match event {
                Event::Suspended { .. } => self.rest(clock, now),
                Event::Closed { reason, .. } => {
                    self.end(clock, now);
                    if !matches!(reason, CloseReason::Done | CloseReason::Gone) {
                        self.fault = Some(format!("the app's session ended: {reason}"));
                    }
                    return;
                }
                event => self.with_talk(|talk, session| talk.hear(session, &event)),
            }
        }
    }

    /// The session has no leg any more.
    fn rest(&mut self, clock: Clock, now: Time) {
        let leg = self.current.take().and_then(|current| self.legs.get_mut(&current));
        if let Some(session) = leg.and_then(|leg| leg.close(clock, now, LOST)) {
            self.resting = Some(session);
        }
    }

    fn end(&mut self, clock: Clock, now: Time) {
        self.rest(clock, now);
        self.resting = None;
    }
}

/// Code of a close for a display in whose place another one came.
const GONE: u32 = 6;

/// Code of a close of a connection on which nothing was heard.
pub(super) const LOST: u32 = 7;
