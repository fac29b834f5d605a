//! The display side's host: one connection at a time, and another one when that is silent.
//!
//! Each connection has an endpoint, and an address, of its own. Invariant: there is always a session, and it has been
//! tried to bring it to the app side not long ago.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use noq_proto::{ClientConfig, ConnectionId, DatagramEvent, Endpoint, FourTuple};
use wayferry_proto::{CloseReason, ClosedBy, Config, Event, Secret, Session, Side, Time};

use super::leg::{Leg, Outgoing};
use super::server::{LOST, endpoint};
use super::talk::Talk;
use crate::clock::Clock;
use crate::crypto::Plain;
use crate::host::Quic;
use crate::meter::Meter;
use crate::random::Random;
use crate::session::Port;

/// See the module.
pub(super) struct Viewer {
    random: Random,
    server: SocketAddr,
    endpoint: Endpoint,
    leg: Leg,
    port: Port,
    incarnation: Secret,
    /// Where it is.
    pub(super) address: SocketAddr,
    addresses: u32,
    /// How many connections there were, in all lives.
    lives: u64,
    /// When it last began a connection.
    tried: Time,
    /// When it last heard of the app side.
    heard: Time,
    patience: Duration,
    pub(super) talk: Talk,
    pub(super) out: Vec<Outgoing>,
    /// How often it went on, and how often it began anew.
    pub(super) resumed: u32,
    pub(super) fault: Option<String>,
}

impl Viewer {
    /// The first one.
    pub(super) fn new(clock: Clock, random: &Random, server: SocketAddr, talk: Talk) -> Option<Self> {
        let incarnation = incarnation(1);
        let session = Session::new(config(Time::ZERO, incarnation));
        let (endpoint, leg) = connect(clock, Time::ZERO, random, 1, server)?;
        Some(Self {
            random: random.clone(),
            server,
            endpoint,
            leg,
            port: Port::with(session),
            incarnation,
            address: address(1),
            addresses: 1,
            lives: 1,
            tried: Time::ZERO,
            heard: Time::ZERO,
            patience: PATIENCE,
            talk,
            out: Vec::new(),
            resumed: 0,
            fault: None,
        })
    }

    pub(super) fn session(&mut self) -> &mut Session {
        &mut self.port.session
    }

    /// Ends what it has said.
    pub(super) fn finish(&mut self) {
        self.talk.finish(&mut self.port.session);
    }

    pub(super) fn waiting(&self) -> usize {
        self.port.waiting()
    }

    /// It is somewhere else from now on.
    pub(super) fn roam(&mut self, clock: Clock, now: Time, notices: bool) {
        self.addresses += 1;
        self.address = address(self.addresses);
        if notices {
            self.leg.network_changed(clock, now);
        }
    }

    /// It ends without a word, and another one comes.
    pub(super) fn crash(&mut self, clock: Clock, now: Time) {
        self.incarnation = incarnation(self.lives + 1);
        self.patience = PATIENCE;
        self.talk.restart();
        let session = Session::new(config(now, self.incarnation));
        self.begin(clock, now, session);
    }

    /// It comes over another connection.
    pub(super) fn attach(&mut self, clock: Clock, now: Time) {
        self.leg.close(clock, now, LOST);
        if !self.port.session.is_resumable() {
            // It has not met the app side.
            return self.crash(clock, now);
        }
        let config = config(now, self.incarnation);
        let old = std::mem::replace(&mut self.port.session, Session::new(config.clone()));
        let session = Session::resuming(config, old);
        self.begin(clock, now, session);
    }

    fn begin(&mut self, clock: Clock, now: Time, session: Session) {
        self.lives += 1;
        self.tried = now;
        // The socket is another one.
        self.roam(clock, now, false);
        self.port = Port::with(session);
        match connect(clock, now, &self.random, self.lives, self.server) {
            Some((endpoint, leg)) => (self.endpoint, self.leg) = (endpoint, leg),
            None => self.fault = Some("no connection could be begun".to_owned()),
        }
    }

    pub(super) fn receive(&mut self, clock: Clock, now: Time, from: SocketAddr, packet: &[u8]) {
        let path = FourTuple::from_remote(from);
        let mut answer = Vec::new();
        let event = self.endpoint.handle(clock.instant(now), path, None, BytesMut::from(packet), &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.leg.receive(event);
        }
        if !answer.is_empty() {
            self.out.push((from, answer));
        }
    }

    /// Does everything that is to be done at `now`.
    pub(super) fn advance(&mut self, clock: Clock, now: Time) {
        self.leg.advance(clock, now, &mut self.endpoint, Some(&mut self.port));
        self.take_events(now);
        if self.attempt_due() <= now {
            self.patience = (self.patience * 2).min(MOST_PATIENCE);
            self.attach(clock, now);
        }
        self.talk.say(now, &mut self.port.session);
        self.leg.transmit(clock, now, &mut self.out, Some(&mut self.port));
    }

    pub(super) fn next_timeout(&self, clock: Clock, now: Time) -> Option<Time> {
        let leg = self.leg.next_timeout(clock, now, Some(&self.port));
        leg.into_iter().chain(self.talk.next_timeout()).chain([self.attempt_due()]).min()
    }

    fn attempt_due(&self) -> Time {
        self.tried.max(self.heard) + self.patience
    }

    fn take_events(&mut self, now: Time) {
        let session = &mut self.port.session;
        self.heard = now - session.contact_age(now);
        while let Some(event) = session.poll_event() {
            match event {
                Event::Resumed => {
                    self.resumed += 1;
                    self.patience = PATIENCE;
                }
                Event::Declined => {
                    self.talk.restart();
                    self.patience = PATIENCE;
                }
                // It had not met the app side: tried again soon.
                Event::Closed { by: ClosedBy::Link, .. }
                | Event::Closed { reason: CloseReason::Timeout, .. } => {}
                Event::Closed { reason, .. } => {
                    self.fault = Some(format!("the display's session ended at {now:?}: {reason}"));
                }
                event => self.talk.hear(session, &event),
            }
        }
    }
}

fn config(now: Time, incarnation: Secret) -> Config {
    Config { resume: Some(incarnation), start: now, ..Config::new(Side::Display) }
}

/// Names the display that began with this connection.
fn incarnation(life: u64) -> Secret {
    let mut bytes = [0x5a; 32];
    bytes[..8].copy_from_slice(&life.to_le_bytes());
    bytes.into()
}

fn address(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(Ipv4Addr::new(10, 1, 0, 0).to_bits() + number), 5000))
}

fn connect(
    clock: Clock,
    now: Time,
    random: &Random,
    life: u64,
    server: SocketAddr,
) -> Option<(Endpoint, Leg)> {
    let meter = Meter::default();
    let mut endpoint = endpoint(random, life, None);
    let mut config = ClientConfig::new(Arc::new(Plain));
    config.transport_config(Quic::product().transport(&meter));
    config.initial_dst_cid_provider(Arc::new(move || {
        let mut id = [0x5a; 16];
        id[..8].copy_from_slice(&life.to_be_bytes());
        ConnectionId::new(&id)
    }));
    let connected = endpoint.connect(clock.instant(now), config, server, "sim").ok()?;
    Some((endpoint, Leg::new(connected, meter)))
}

/// How long nothing may be heard before another connection is tried.
const PATIENCE: Duration = Duration::from_secs(3);

/// What it grows to while that is in vain.
const MOST_PATIENCE: Duration = Duration::from_secs(30);
