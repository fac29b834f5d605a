//! The scenarios, each a link, what goes over it, and what of it is measured.

use std::time::Duration;

use wayferry_proto::Time;

use crate::app::{Bulk, Messages, Sink, Traffic};
use crate::controller::Controller;
use crate::error::Error;
use crate::link::{LaneConfig, Loss, Queue, Service};
use crate::stats::Samples;
use crate::transport::PacketSize;
use crate::unit::Bitrate;
use crate::world::{Flow, HostId, LinkConfig, World};

/// One experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// 100-byte messages at high priority beside a bulk flow: 10 Mbit/s, 20 ms each way, 250 ms of queue.
    A,
    /// 20 kB, 30 times a second, with 20 % repair: 30 Mbit/s, 40 ms each way, 2 % loss.
    B,
    /// The same without repair.
    BWithoutRepair,
    /// B on 8 Mbit/s.
    B8,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How long messages took.
    pub latency: Samples,
    /// Share of messages that arrived at all.
    pub delivered: Option<f64>,
    /// Bulk bytes that arrived, of what the link could carry.
    pub goodput: Option<f64>,
    /// How long packets waited in the bottleneck's queue.
    pub queue: Samples,
    /// Packets that found no room in it.
    pub overflowed: u64,
}

impl Scenario {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 4] = [Self::A, Self::B, Self::BWithoutRepair, Self::B8];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::BWithoutRepair => "B-without-repair",
            Self::B8 => "B-8mbit",
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The connection broke.
    pub fn run(self, controller: Controller, seed: u64) -> Result<Outcome, Error> {
        match self {
            Self::A => beside_bulk(controller, seed),
            Self::B => frames(Bitrate::mbps(30), 0.2, controller, seed),
            Self::BWithoutRepair => frames(Bitrate::mbps(30), 0.0, controller, seed),
            Self::B8 => frames(Bitrate::mbps(8), 0.2, controller, seed),
        }
    }
}

/// A link with the same delay both ways and a limit on the way forward.
fn dumbbell(rate: Bitrate, one_way: Duration, queue: Duration, loss: f64) -> LinkConfig {
    let loss = if loss > 0.0 { Loss::Independent(loss) } else { Loss::None };
    let forward = LaneConfig {
        service: Service::Rate(rate),
        delay: one_way,
        queue: Queue::of(rate, queue),
        loss,
        ..LaneConfig::default()
    };
    let back = LaneConfig { queue: Queue::default(), service: Service::Rate(rate), ..forward.clone() };
    LinkConfig { forward, back }
}

fn beside_bulk(controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let rate = Bitrate::mbps(10);
    let link = dumbbell(rate, Duration::from_millis(20), Duration::from_millis(250), 0.0);
    let start = Time::from_millis(2000);
    let messages =
        Messages { size: 100, interval: Duration::from_millis(50), start, count: 400, repair: 0.0 };
    traffic(link, rate, Some(Bulk::ALWAYS), Some(messages), controller, seed)
}

fn frames(rate: Bitrate, repair: f64, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let link = dumbbell(rate, Duration::from_millis(40), Duration::from_millis(250), 0.02);
    let interval = Duration::from_secs(1) / 30;
    let messages = Messages { size: 20_000, interval, start: Time::ZERO, count: 600, repair };
    traffic(link, rate, None, Some(messages), controller, seed)
}

/// One flow, from its first message until a while after the last.
fn traffic(
    link: LinkConfig,
    rate: Bitrate,
    bulk: Option<Bulk>,
    messages: Option<Messages>,
    controller: Controller,
    seed: u64,
) -> Result<Outcome, Error> {
    let flow = Flow {
        controller,
        size: PacketSize::Discovered,
        sender: Box::new(Traffic::new(bulk, messages)),
        receiver: Box::new(Sink::new(bulk.is_some(), messages)),
    };
    let mut world = World::new(link, vec![flow], seed)?;
    world.record_waits();
    let (start, end) = messages.map_or((Time::ZERO, Time::ZERO), |it| (it.start, it.time(it.count) + TAIL));
    world.run_until(end)?;
    let Some(sink) = world.app::<Sink>(HostId::receiver(0)) else { return Err(Error::NoHandshake) };
    let latency: Samples = sink.deliveries().iter().map(|it| it.arrived.since(it.sent)).collect();
    let sent = messages.map(|messages| messages.count as f64);
    Ok(Outcome {
        delivered: sent.map(|sent| latency.len() as f64 / sent),
        latency,
        goodput: bulk.map(|_| sink.bulk_bytes(start, end) as f64 / rate.bytes(end.since(start)) as f64),
        queue: world.waits().iter().filter(|wait| wait.at >= start).map(|wait| wait.time).collect(),
        overflowed: world.lane_stats()[0].overflowed,
    })
}

/// How long the last messages have.
const TAIL: Duration = Duration::from_secs(2);
