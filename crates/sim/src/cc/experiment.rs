//! What the scenarios have in common: the link, the flows, and how they are measured.

use std::sync::Arc;
use std::time::Duration;

use wayferry_proto::Time;

use super::outcome::{Metric, Outcome};
use crate::app::{Bulk, Messages, Sink, Traffic};
use crate::controller::Controller;
use crate::error::Error;
use crate::grid::Workload;
use crate::link::{Change, Jitter, LaneConfig, Loss, Policer, Queue, Reorder, Service, Step};
use crate::session::{Amount, AppSide, Delivery, DisplaySide};
use crate::transport::{PacketSize, Windows};
use crate::unit::Bitrate;
use crate::world::{Constant, Flow, HostId, LinkConfig, World};

/// A link with one bottleneck, on the way forward.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) rate: Bitrate,
    pub(super) one_way: Duration,
    /// What the queue holds, as time at the rate.
    pub(super) queue: Duration,
    pub(super) codel: bool,
    pub(super) loss: Loss,
    pub(super) back_loss: Loss,
    pub(super) jitter: Jitter,
    pub(super) back_jitter: Jitter,
    pub(super) reorder: Option<Reorder>,
    pub(super) policer: Option<Policer>,
    /// Packets without control beside the flows.
    pub(super) constant: Option<Bitrate>,
}

impl Path {
    pub(super) fn new(rate: Bitrate, one_way_ms: u64, queue_ms: u64) -> Self {
        Self {
            rate,
            one_way: Duration::from_millis(one_way_ms),
            queue: Duration::from_millis(queue_ms),
            codel: false,
            loss: Loss::None,
            back_loss: Loss::None,
            jitter: Jitter::None,
            back_jitter: Jitter::None,
            reorder: None,
            policer: None,
            constant: None,
        }
    }

    fn link(self) -> LinkConfig {
        let back = LaneConfig {
            service: Service::Rate(self.rate),
            delay: self.one_way,
            loss: self.back_loss,
            jitter: self.back_jitter,
            ..LaneConfig::default()
        };
        let forward = LaneConfig {
            queue: Queue { codel: self.codel, ..Queue::of(self.rate, self.queue) },
            loss: self.loss,
            jitter: self.jitter,
            reorder: self.reorder,
            policer: self.policer,
            ..back.clone()
        };
        LinkConfig { forward, back }
    }

    fn rtt(self) -> Duration {
        self.one_way * 2
    }
}

/// What one flow of an experiment sends.
#[derive(Clone, Copy, Debug)]
struct Load {
    controller: Controller,
    bulk: Option<Bulk>,
    messages: Option<Messages>,
}

impl Load {
    fn bulk(controller: Controller, start: Time) -> Self {
        Self { controller, bulk: Some(Bulk { start, end: None }), messages: None }
    }
}

/// A world under observation.
struct Lab {
    world: World,
    flows: usize,
}

impl Lab {
    fn new(link: LinkConfig, loads: &[Load], seed: u64) -> Result<Self, Error> {
        let flows = loads.iter().map(|load| Flow {
            controller: load.controller,
            size: PacketSize::Discovered,
            windows: Windows::Product,
            sender: Box::new(Traffic::new(load.bulk, load.messages)),
            receiver: Box::new(Sink::new(load.bulk.is_some(), load.messages)),
        });
        let mut world = World::new(link, flows.collect(), seed)?;
        world.record_waits();
        Ok(Self { world, flows: loads.len() })
    }

    fn sink(&self, flow: usize) -> Option<&Sink> {
        self.world.app(HostId::receiver(flow))
    }

    /// Bulk bytes of a flow between two times, of what `rate` carries in it.
    fn used(&self, flow: usize, rate: Bitrate, from: Time, to: Time) -> f64 {
        let bytes = self.sink(flow).map_or(0, |sink| sink.bulk_bytes(from, to));
        bytes as f64 / (rate.bytes(to.since(from)) as f64 * PAYLOAD)
    }

    /// What holds for every experiment, from `start` on: messages that were sent before do not count.
    fn outcome(&self, start: Time) -> Outcome {
        let waits = self.world.waits().iter().filter(|wait| wait.at >= start);
        let latencies = (0..self.flows).filter_map(|flow| self.sink(flow)).flat_map(Sink::deliveries);
        let mut outcome = Outcome {
            latency: latencies.filter(|it| it.sent >= start).map(|it| it.arrived.since(it.sent)).collect(),
            queue: waits.map(|wait| wait.time).collect(),
            values: Vec::new(),
        };
        outcome.set(Metric::Drops, self.world.lane_stats()[0].overflowed as f64);
        outcome
    }
}

/// Messages of that size, so far apart, beside a bulk flow, for 20 s.
pub(super) fn message_beside_bulk(
    path: Path,
    (size, interval): (u64, Duration),
    controller: Controller,
    seed: u64,
) -> Result<Outcome, Error> {
    let start = Time::from_millis(2000);
    let count = (Duration::from_secs(20).as_micros() / interval.as_micros()) as u64;
    let messages = Messages { size, interval, start, count, repair: 0.0 };
    let load = Load { messages: Some(messages), ..Load::bulk(controller, Time::ZERO) };
    let mut lab = Lab::new(path.link(), &[load], seed)?;
    let end = messages.time(messages.count);
    lab.world.run_until(end + TAIL)?;
    let mut outcome = lab.outcome(start);
    outcome.set(Metric::Delivered, outcome.latency.len() as f64 / messages.count as f64 * 100.0);
    outcome.set(Metric::Goodput, lab.used(0, path.rate, start, end) * 100.0);
    Ok(outcome)
}

pub(super) fn frames(
    rate: Bitrate,
    repair: f64,
    controller: Controller,
    seed: u64,
) -> Result<Outcome, Error> {
    let path = Path { loss: Loss::Independent(0.02), ..Path::new(rate, 40, 250) };
    let path = Path { back_loss: path.loss, ..path };
    let interval = Duration::from_secs(1) / 30;
    let messages = Messages { size: 20_000, interval, start: Time::ZERO, count: 600, repair };
    let mut lab = Lab::new(path.link(), &[Load { controller, bulk: None, messages: Some(messages) }], seed)?;
    lab.world.run_until(messages.time(messages.count) + TAIL)?;
    let mut outcome = lab.outcome(LEARNED);
    let delivered = lab.sink(0).map_or(0, |sink| sink.deliveries().len());
    outcome.set(Metric::Delivered, delivered as f64 / messages.count as f64 * 100.0);
    Ok(outcome)
}

pub(super) fn start_up(rate: Bitrate, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let path = Path::new(rate, 25, 50);
    let mut lab = Lab::new(path.link(), &[Load::bulk(controller, Time::ZERO)], seed)?;
    let trips = 60;
    lab.world.run_until(Time::ZERO + path.rtt() * trips)?;
    let mut outcome = lab.outcome(Time::ZERO);
    let full = (0..trips * 5).find(|step| {
        // Bytes that come in this round trip were sent one trip before.
        let from = Time::ZERO + path.one_way + path.rtt() / 5 * *step;
        lab.used(0, rate, from, from + path.rtt()) >= 0.9
    });
    outcome.set(Metric::StartUp, full.map_or(f64::from(trips), |step| f64::from(step) / 5.0 + 1.0));
    let (from, to) = (Time::ZERO + path.rtt() * 30, Time::ZERO + path.rtt() * trips);
    outcome.set(Metric::Goodput, lab.used(0, rate, from, to) * 100.0);
    Ok(outcome)
}

pub(super) fn route_change(path: Path, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let mut link = path.link();
    let longer = path.one_way + Duration::from_millis(50);
    for lane in [&mut link.forward, &mut link.back] {
        lane.steps = vec![Step { at: CHANGE, change: Change::Delay(longer) }];
    }
    let mut lab = Lab::new(link, &[Load::bulk(controller, Time::ZERO)], seed)?;
    let (from, to) = (CHANGE + Duration::from_secs(1), CHANGE + Duration::from_secs(20));
    lab.world.run_until(to)?;
    let mut outcome = lab.outcome(from);
    outcome.set(Metric::Goodput, lab.used(0, path.rate, from, to) * 100.0);
    Ok(outcome)
}

pub(super) fn rate_drop(path: Path, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let slow = Bitrate::bps(path.rate.as_bps() / 10);
    let mut link = path.link();
    let change = Change::Service(Service::Rate(slow));
    link.forward.steps = vec![Step { at: CHANGE, change }];
    let mut lab = Lab::new(link, &[Load::bulk(controller, Time::ZERO)], seed)?;
    let (from, to) = (CHANGE + Duration::from_secs(2), CHANGE + Duration::from_secs(12));
    lab.world.run_until(to)?;
    let mut outcome = lab.outcome(from);
    let late = lab.world.waits().iter().rfind(|wait| wait.at >= CHANGE && wait.time >= SETTLED);
    outcome.set(Metric::Settling, late.map_or(0.0, |wait| wait.at.since(CHANGE).as_secs_f64()));
    outcome.set(Metric::Goodput, lab.used(0, slow, from, to) * 100.0);
    Ok(outcome)
}

/// A bulk flow alone, compared with `rate`.
pub(super) fn limited_bulk(
    path: Path,
    rate: Bitrate,
    controller: Controller,
    seed: u64,
) -> Result<Outcome, Error> {
    let mut lab = Lab::new(path.link(), &[Load::bulk(controller, Time::ZERO)], seed)?;
    let (from, to) = (Time::from_millis(5000), Time::from_millis(35_000));
    if let Some(rate) = path.constant {
        lab.world.add_constant(Constant { rate, start: Time::ZERO, end: to });
    }
    lab.world.run_until(to)?;
    let mut outcome = lab.outcome(from);
    outcome.set(Metric::Goodput, lab.used(0, rate, from, to) * 100.0);
    Ok(outcome)
}

/// Beside a flow of another controller; both begin together.
pub(super) fn competition(
    path: Path,
    other: Controller,
    controller: Controller,
    seed: u64,
) -> Result<Outcome, Error> {
    let loads = [controller, other].map(|controller| Load::bulk(controller, Time::ZERO));
    let mut lab = Lab::new(path.link(), &loads, seed)?;
    let (begin, from, to) = (Time::ZERO, Time::from_millis(10_000), Time::from_millis(60_000));
    lab.world.run_until(to)?;
    let mut outcome = lab.outcome(from);
    let share = |from, to| {
        let used = [0, 1].map(|flow| lab.used(flow, path.rate, from, to));
        (used[0] / (used[0] + used[1]) * 100.0, (used[0] + used[1]) * 100.0)
    };
    let (share_late, together) = share(from, to);
    outcome.set(Metric::Share, share_late);
    outcome.set(Metric::EarlyShare, share(begin, from).0);
    outcome.set(Metric::Goodput, together);
    Ok(outcome)
}

pub(super) fn two_flows(path: Path, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let loads = [0, 5000].map(|start| Load::bulk(controller, Time::from_millis(start)));
    let mut lab = Lab::new(path.link(), &loads, seed)?;
    let (from, to) = (Time::from_millis(15_000), Time::from_millis(60_000));
    lab.world.run_until(to)?;
    let mut outcome = lab.outcome(from);
    let used = [0, 1].map(|flow| lab.used(flow, path.rate, from, to));
    let (sum, squares) = (used[0] + used[1], used[0] * used[0] + used[1] * used[1]);
    outcome.set(Metric::Goodput, sum * 100.0);
    outcome.set(Metric::Jain, sum * sum / (2.0 * squares));
    Ok(outcome)
}

pub(super) fn congestion_loss(path: Path, controller: Controller, seed: u64) -> Result<Outcome, Error> {
    let plan = Arc::new(Workload::Streaming10Hz.plan());
    let delivery = Delivery::Repaired(Amount::Adaptive);
    let size = PacketSize::Discovered;
    let session = Flow {
        controller,
        size,
        windows: Windows::Product,
        sender: Box::new(AppSide::new(Arc::clone(&plan), delivery)),
        receiver: Box::new(DisplaySide::new(Arc::clone(&plan), delivery)),
    };
    let bulk = Flow {
        controller: Controller::Cubic,
        size,
        windows: Windows::Product,
        sender: Box::new(Traffic::new(Some(Bulk::ALWAYS), None)),
        receiver: Box::new(Sink::new(true, None)),
    };
    let mut world = World::new(path.link(), vec![session, bulk], seed)?;
    world.record_waits();
    world.run_until(Time::from_millis(40_000))?;
    let lab = Lab { world, flows: 0 };
    let mut outcome = lab.outcome(Time::ZERO);
    let repair = lab.world.app::<AppSide>(HostId::sender(0)).map_or(0, AppSide::repair_bytes);
    outcome.set(Metric::Repair, repair as f64 / plan.bytes() as f64 * 100.0);
    let missing = lab.world.app::<DisplaySide>(HostId::receiver(0)).map_or(0, DisplaySide::missing);
    outcome.set(Metric::Delivered, 100.0 - missing as f64 / plan.updates.len() as f64 * 100.0);
    Ok(outcome)
}

/// Stream data of a packet of 1452 bytes, of the 1480 that it takes on the line.
const PAYLOAD: f64 = 1419.0 / 1480.0;

/// When a controller knows the link: what frames wait for before that is asked by the start-up scenarios.
const LEARNED: Time = Time::from_millis(1000);

/// When the link changes.
const CHANGE: Time = Time::from_millis(10_000);

/// A queue that users do not curse.
const SETTLED: Duration = Duration::from_millis(100);

/// How long the last messages have.
const TAIL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_count_once_the_controller_knows_the_link() {
        let outcome = frames(Bitrate::mbps(8), 0.2, Controller::Copa, 1).unwrap();
        assert_eq!(outcome.value(Metric::Delivered), Some(100.0));
        // 65.1 ms are the way and all packets of a frame and its repair; the first five take up to 98.
        assert!(outcome.latency.percentile(0.99).unwrap() < 70.0, "{:?}", outcome.latency.percentile(0.99));
    }
}
