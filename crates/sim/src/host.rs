//! One end of one connection: an endpoint of noq-proto, its connection and an application.
//!
//! It takes packets and the time, and gives packets. Invariant: when [`Host::advance`] returns, nothing is left to do
//! at that time.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Endpoint,
    EndpointConfig, Event, FourTuple, ServerConfig, TransportConfig, ValidationTokenConfig,
};
use wayferry_proto::Time;

use crate::app::{App, Io};
use crate::clock::Clock;
use crate::controller::Controller;
use crate::crypto::Plain;
use crate::error::Error;
use crate::meter::Meter;
use crate::random::Random;
use crate::transport::{PacketSize, Windows, transport};

/// See the module.
pub(crate) struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    app: Box<dyn App>,
    meter: Meter,
    connected: bool,
    /// The application has begun.
    running: bool,
    out: Vec<Vec<u8>>,
    /// Room for the next packet.
    spare: Vec<u8>,
    wakes: Option<Time>,
}

/// How a host speaks QUIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quic {
    pub(crate) controller: Controller,
    pub(crate) size: PacketSize,
    pub(crate) windows: Windows,
}

impl Quic {
    /// As in the product.
    pub(crate) fn product() -> Self {
        Self { controller: Controller::Copa, size: PacketSize::Discovered, windows: Windows::Product }
    }

    pub(crate) fn transport(self, meter: &Meter) -> Arc<TransportConfig> {
        transport(meter.controllers(self.controller), self.size, self.windows)
    }
}

/// Where a host is on the virtual network.
pub(crate) fn address(number: usize) -> SocketAddr {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    SocketAddr::from((Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number), 443))
}

impl Host {
    /// A host that waits for its peer, host number `peer`.
    pub(crate) fn server(peer: usize, link: Quic, random: &Random, app: Box<dyn App>) -> Self {
        let meter = Meter::default();
        let mut config = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        config.transport_config(link.transport(&meter));
        let mut tokens = ValidationTokenConfig::default();
        // A token holds the real time.
        tokens.sent(0);
        config.validation_token_config(tokens);
        Self::new(peer, Some(Arc::new(config)), random, app, meter)
    }

    /// A host that connects to its peer, host number `peer`, at time zero.
    pub(crate) fn client(
        peer: usize,
        link: Quic,
        random: &Random,
        app: Box<dyn App>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let meter = Meter::default();
        let mut config = ClientConfig::new(Arc::new(Plain));
        config.transport_config(link.transport(&meter));
        let mut host = Self::new(peer, None, random, app, meter);
        config.initial_dst_cid_provider(Arc::new(|| ConnectionId::new(&[0x5a; 16])));
        let connected = host.endpoint.connect(clock.instant(Time::ZERO), config, address(peer), "sim");
        host.connection = Some(connected.map_err(|_| Error::NoHandshake)?);
        host.wakes = Some(Time::ZERO);
        Ok(host)
    }

    fn new(
        peer: usize,
        server: Option<Arc<ServerConfig>>,
        random: &Random,
        app: Box<dyn App>,
        meter: Meter,
    ) -> Self {
        let mut random = random.fork(11);
        let mut seed = [0; 32];
        for part in seed.chunks_mut(8) {
            part.copy_from_slice(&random.bits().to_le_bytes());
        }
        let mut config = EndpointConfig::new(Arc::new(Plain));
        config.rng_seed(Some(seed));
        config.cid_generator(Arc::new(|| Box::new(Counted::default())));
        Self {
            endpoint: Endpoint::new(Arc::new(config), server, true),
            connection: None,
            peer: address(peer),
            app,
            meter,
            connected: false,
            running: false,
            out: Vec::new(),
            spare: Vec::new(),
            wakes: None,
        }
    }

    /// Whether the handshake is over.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Lets the application begin, at what its clock will call zero.
    pub(crate) fn run(&mut self) {
        self.running = true;
        self.wakes = Some(Time::ZERO);
    }

    pub(crate) fn app(&self) -> &dyn App {
        &*self.app
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// When [`Host::advance`] is to be called.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.wakes
    }

    /// Takes a packet. [`Host::advance`] must follow.
    pub(crate) fn receive(&mut self, clock: Clock, now: Time, packet: Vec<u8>) -> Result<(), Error> {
        let instant = clock.instant(now);
        let path = FourTuple::from_remote(self.peer);
        let mut answer = Vec::new();
        match self.endpoint.handle(instant, path, None, BytesMut::from(Bytes::from(packet)), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, instant, &mut answer, None);
                self.connection = Some(accepted.map_err(|_| Error::NoHandshake)?);
            }
            Some(DatagramEvent::Response(_)) => self.out.push(answer),
            None => {}
        }
        Ok(())
    }

    /// Does everything that is to be done at `now`; the packets are then in [`Host::take_packets`].
    pub(crate) fn advance(&mut self, clock: Clock, now: Time) -> Result<(), Error> {
        let instant = clock.instant(now);
        let Some((handle, connection)) = &mut self.connection else { return Ok(()) };
        for _ in 0..MAX_ROUNDS {
            if connection.poll_timeout().is_some_and(|due| due <= instant) {
                connection.handle_timeout(instant);
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected => self.connected = true,
                    Event::ConnectionLost { reason } => return Err(Error::Lost { at: now, reason }),
                    Event::Stream(event) => {
                        self.app.on_stream(now, event, Io { connection, meter: &self.meter })
                    }
                    _ => {}
                }
            }
            if self.running {
                self.app.drive(now, Io { connection, meter: &self.meter });
            }
            let before = self.out.len();
            self.spare.reserve(PACKET);
            while connection.poll_transmit(instant, NonZeroUsize::MIN, &mut self.spare).is_some() {
                self.out.push(std::mem::replace(&mut self.spare, Vec::with_capacity(PACKET)));
            }
            let due = connection.poll_timeout().map(|due| clock.time(due).max(now));
            let app = if self.running { self.app.next_timeout() } else { None };
            self.wakes = due.into_iter().chain(app).min();
            if self.out.len() == before && self.wakes.is_none_or(|wakes| wakes > now) {
                return Ok(());
            }
        }
        Err(Error::Stuck { at: now })
    }

    /// The packets that go to the peer now.
    pub(crate) fn take_packets(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.out)
    }
}

/// Connection ids that are counted.
#[derive(Debug, Default)]
pub(crate) struct Counted(u64);

impl Counted {
    /// From the one after this number on.
    pub(crate) fn from(number: u64) -> Self {
        Self(number)
    }
}

impl ConnectionIdGenerator for Counted {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// More than any packet.
const PACKET: usize = 1500;

/// How often a host may find something more to do at one moment.
const MAX_ROUNDS: u32 = 100_000;
