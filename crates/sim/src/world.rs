//! Hosts, the link between them, and the time.
//!
//! A dumbbell: every flow has a sender on one side and a receiver on the other, and all share one link. The handshakes
//! take place first, over a link that only has the delay; then the clock starts again at zero and the applications and
//! the link's own laws begin. Invariant: what happens is a function of the configuration and the seed (and of BBR3).

use std::any::Any;
use std::time::Duration;

use noq_proto::{Connection, ConnectionStats, UdpStats};
use wayferry_proto::Time;

use crate::app::App;
use crate::clock::Clock;
use crate::controller::Controller;
use crate::error::Error;
use crate::host::{Host, Quic};
use crate::link::{HEADERS, Lane, LaneConfig, LaneStats, Wait};
use crate::random::Random;
use crate::transport::{PacketSize, Windows};
use crate::unit::Bitrate;

/// Both directions of the link.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// From senders to receivers.
    pub forward: LaneConfig,
    /// The way back.
    pub back: LaneConfig,
}

/// One sender and its receiver.
pub struct Flow {
    /// The sender's congestion controller; the receiver has the same.
    pub controller: Controller,
    /// How large packets are.
    pub size: PacketSize,
    /// How much may be on the way.
    pub windows: Windows,
    /// What the sender does; in the product, the app side.
    pub sender: Box<dyn App>,
    /// What the receiver does; in the product, the display side.
    pub receiver: Box<dyn App>,
}

/// Packets at a fixed pace towards the receivers' side, without any control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constant {
    /// How fast, headers counted.
    pub rate: Bitrate,
    /// From when on.
    pub start: Time,
    /// Until when.
    pub end: Time,
}

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostId(usize);

impl HostId {
    /// The sender of the flow that was given as number `flow`.
    pub fn sender(flow: usize) -> Self {
        Self(flow * 2)
    }

    /// Its receiver.
    pub fn receiver(flow: usize) -> Self {
        Self(flow * 2 + 1)
    }
}

/// See the module.
pub struct World {
    clock: Clock,
    now: Time,
    hosts: Vec<Host>,
    lanes: [Lane<Packet>; 2],
    constants: Vec<(Constant, Time)>,
}

/// A packet on the link.
#[derive(Clone, Debug)]
struct Packet {
    /// `None` for those of constant flows.
    to: Option<usize>,
    bytes: Vec<u8>,
}

impl World {
    /// Makes the hosts, lets them connect, and stops the clock at zero.
    ///
    /// # Errors
    /// A handshake failed, which is a fault of this crate.
    pub fn new(link: LinkConfig, flows: Vec<Flow>, seed: u64) -> Result<Self, Error> {
        let random = Random::new(seed);
        let clock = Clock::new();
        let mut hosts = Vec::new();
        for flow in flows {
            let number = hosts.len();
            let quic = Quic { controller: flow.controller, size: flow.size, windows: flow.windows };
            hosts.push(Host::server(number + 1, quic, &random.fork(number as u64), flow.sender));
            let random = random.fork(number as u64 + 1);
            hosts.push(Host::client(number, quic, &random, flow.receiver, clock)?);
        }
        let ideal =
            |lane: &LaneConfig| Lane::new(LaneConfig { delay: lane.delay, ..LaneConfig::default() }, 0);
        let lanes = [ideal(&link.forward), ideal(&link.back)];
        let mut world = Self { clock, now: Time::ZERO, hosts, lanes, constants: Vec::new() };
        world.connect()?;
        let seeds = [random.fork(101).bits(), random.fork(102).bits()];
        world.lanes = [Lane::new(link.forward, seeds[0]), Lane::new(link.back, seeds[1])];
        Ok(world)
    }

    /// Adds packets without control.
    pub fn add_constant(&mut self, constant: Constant) {
        self.constants.push((constant, constant.start));
    }

    /// Remembers from now on how long packets wait on the way forward.
    pub fn record_waits(&mut self) {
        self.lanes[0].record_waits();
    }

    /// See [`World::record_waits`].
    pub fn waits(&self) -> &[Wait] {
        self.lanes[0].waits()
    }

    /// Remembers every packet from now on.
    pub(crate) fn record_packets(&mut self) {
        self.lanes.iter_mut().for_each(Lane::record_packets);
    }

    /// When each packet of the first flow left the queue forward and back, whether it was lost, and its bytes.
    pub(crate) fn records(&self) -> [Vec<(Time, bool, Vec<u8>)>; 2] {
        [0, 1].map(|lane: usize| {
            let records = self.lanes[lane].records().iter();
            let records = records.filter(|(_, _, packet)| packet.to.is_some_and(|to| to < 2));
            records.map(|(at, lost, packet)| (*at, *lost, packet.bytes.clone())).collect()
        })
    }

    /// What the way forward and the way back have done.
    pub fn lane_stats(&self) -> [LaneStats; 2] {
        [self.lanes[0].stats(), self.lanes[1].stats()]
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A host's application, if it is a `T`.
    pub fn app<T: App>(&self, host: HostId) -> Option<&T> {
        (self.hosts.get(host.0)?.app() as &dyn Any).downcast_ref()
    }

    /// What a host's connection has counted.
    pub fn stats(&mut self, host: HostId) -> Option<ConnectionStats> {
        self.hosts.get_mut(host.0)?.connection().map(Connection::stats)
    }

    /// What a host has sent.
    pub(crate) fn sent(&mut self, host: HostId) -> UdpStats {
        self.stats(host).map(|stats| stats.udp_tx).unwrap_or_default()
    }

    /// Goes on until `end`.
    ///
    /// # Errors
    /// A connection broke, or time did not go on.
    pub fn run_until(&mut self, end: Time) -> Result<(), Error> {
        self.run_while(end, |_| true)
    }

    /// Goes on while `goes_on` says so, but no longer than until `end`. It is asked after each moment at which
    /// something happened.
    ///
    /// # Errors
    /// A connection broke, or time did not go on.
    pub fn run_while(&mut self, end: Time, mut goes_on: impl FnMut(&Self) -> bool) -> Result<(), Error> {
        let mut steps = 0;
        while goes_on(self) {
            let Some(next) = self.next_timeout().filter(|next| *next <= end) else {
                self.now = self.now.max(end);
                return Ok(());
            };
            steps = if next > self.now { 0 } else { steps + 1 };
            if steps > MAX_STEPS {
                return Err(Error::Stuck { at: self.now });
            }
            self.now = self.now.max(next);
            self.step()?;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<(), Error> {
        for _ in 0..HANDSHAKE_STEPS {
            let Some(next) = self.next_timeout() else { break };
            let quiet = self.lanes.iter().all(|lane| lane.next_timeout().is_none());
            let connected = self.hosts.iter().all(Host::is_connected);
            // Acknowledgements and spare ids have been exchanged when nothing is to be done for a second.
            if quiet && connected && next.since(self.now) > Duration::from_secs(1) {
                self.clock.restart(self.now + Duration::from_secs(1));
                self.now = Time::ZERO;
                self.hosts.iter_mut().for_each(Host::run);
                return Ok(());
            }
            self.now = next;
            self.step()?;
        }
        Err(Error::NoHandshake)
    }

    fn next_timeout(&self) -> Option<Time> {
        let lanes = self.lanes.iter().filter_map(Lane::next_timeout);
        let hosts = self.hosts.iter().filter_map(Host::next_timeout);
        let constants = self.constants.iter().filter(|(constant, next)| *next < constant.end);
        lanes.chain(hosts).chain(constants.map(|(_, next)| *next)).min()
    }

    /// Does what is due now.
    fn step(&mut self) -> Result<(), Error> {
        let now = self.now;
        let mut woken: Vec<bool> =
            self.hosts.iter().map(|host| host.next_timeout().is_some_and(|at| at <= now)).collect();
        for lane in &mut self.lanes {
            while let Some(packet) = lane.pop(now) {
                let Some(to) = packet.to else { continue };
                self.hosts[to].receive(self.clock, now, packet.bytes)?;
                woken[to] = true;
            }
        }
        self.send_constants();
        for (number, host) in self.hosts.iter_mut().enumerate().filter(|(number, _)| woken[*number]) {
            host.advance(self.clock, now)?;
            // Senders have even numbers.
            let (lane, to) = (number % 2, number ^ 1);
            for bytes in host.take_packets() {
                self.lanes[lane].push(now, bytes.len(), Packet { to: Some(to), bytes });
            }
        }
        Ok(())
    }

    fn send_constants(&mut self) {
        for (constant, next) in &mut self.constants {
            while *next <= self.now && *next < constant.end {
                self.lanes[0].push(self.now, CONSTANT_PACKET, Packet { to: None, bytes: Vec::new() });
                *next += constant.rate.time(CONSTANT_PACKET as u64 + HEADERS);
            }
        }
    }
}

/// Payload of a constant flow's packets.
const CONSTANT_PACKET: usize = 1200;

/// How often something may happen at one moment.
const MAX_STEPS: u32 = 100_000;

/// Far more than handshakes take.
const HANDSHAKE_STEPS: u32 = 100_000;
