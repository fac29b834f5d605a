//! One direction of a link. Time in, packets out.
//!
//! A packet passes the policer, waits in the queue, takes its time on the line, is lost or flies for its delay.
//! Invariants: at most the queue's bytes wait (but one packet always may); what leaves the queue in any span is at most
//! what the service allows in it, and one packet; the same seed and packets give the same arrivals.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use wayferry_proto::Time;

use super::codel::Codel;
use super::config::{Change, Jitter, LaneConfig, Service};
use super::loss::Losses;
use super::trace::Trace;
use crate::random::Random;

/// IPv4 and UDP headers of one packet.
pub const HEADERS: u64 = 28;

/// See the module.
#[derive(Debug)]
pub struct Lane<T> {
    config: LaneConfig,
    /// How many of the steps have been taken.
    stepped: usize,
    random: Random,
    losses: Losses,
    codel: Codel,
    wander: Wander,
    tokens: Tokens,
    down: bool,
    waiting: VecDeque<Waiting<T>>,
    waiting_bytes: u64,
    /// When the head's last bit leaves, once it has begun.
    head_leaves: Option<Time>,
    /// When the packet before the head had left.
    line_free: Time,
    opportunity: Opportunity,
    flying: BTreeMap<(Time, u64), T>,
    flights: u64,
    last_arrival: Time,
    stats: LaneStats,
    waits: Option<Vec<Wait>>,
    records: Option<Vec<(Time, bool, T)>>,
}

/// What a lane has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Packets that came in.
    pub offered: u64,
    /// Their payload in bytes.
    pub offered_bytes: u64,
    /// Packets that exceeded the policer's rate.
    pub policed: u64,
    /// Packets that found no room in the queue, or that CoDel dropped.
    pub overflowed: u64,
    /// Packets lost after the queue, outages included.
    pub lost: u64,
    /// Packets that came out, duplicates included.
    pub delivered: u64,
    /// Their payload in bytes.
    pub delivered_bytes: u64,
    /// The most bytes that ever waited, headers counted.
    pub queued_max: u64,
}

/// How long one packet waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it began to leave.
    pub at: Time,
    /// Since it came.
    pub time: Duration,
}

#[derive(Debug)]
struct Waiting<T> {
    packet: T,
    arrived: Time,
    payload: u64,
    late: f64,
    reorder: f64,
    twice: f64,
}

/// A wandering delay, as the line between two points.
#[derive(Debug)]
struct Wander {
    random: Random,
    from: (Time, f64),
    to: (Time, f64),
}

/// The policer's bucket.
#[derive(Debug, Default)]
struct Tokens {
    /// Bits missing from a full bucket, times 10⁹ to keep the fractions of nanoseconds.
    missing: u128,
    at: Time,
}

/// The last opportunity of a trace that was used.
#[derive(Debug, Default)]
struct Opportunity {
    next: u64,
    at: Time,
    left: u64,
}

impl<T: Clone> Lane<T> {
    /// A lane at time zero.
    pub fn new(config: LaneConfig, seed: u64) -> Self {
        let random = Random::new(seed);
        Self {
            config,
            stepped: 0,
            losses: Losses::new(&random),
            codel: Codel::default(),
            wander: Wander { random: random.fork(3), from: (Time::ZERO, 0.0), to: (Time::ZERO, 0.0) },
            random: random.fork(4),
            tokens: Tokens::default(),
            down: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            head_leaves: None,
            line_free: Time::ZERO,
            opportunity: Opportunity::default(),
            flying: BTreeMap::new(),
            flights: 0,
            last_arrival: Time::ZERO,
            stats: LaneStats::default(),
            waits: None,
            records: None,
        }
    }

    /// Remembers from now on how long each packet waits.
    pub fn record_waits(&mut self) {
        self.waits.get_or_insert_default();
    }

    /// How long packets waited, in their order.
    pub fn waits(&self) -> &[Wait] {
        self.waits.as_deref().unwrap_or_default()
    }

    /// Remembers from now on every packet that leaves the queue.
    pub fn record_packets(&mut self) {
        self.records.get_or_insert_default();
    }

    /// When each packet left the queue, whether it was lost then, and it.
    pub fn records(&self) -> &[(Time, bool, T)] {
        self.records.as_deref().unwrap_or_default()
    }

    /// A packet with `payload` bytes comes in. Times must not go back.
    pub fn push(&mut self, now: Time, payload: usize, packet: T) {
        self.advance(now);
        let payload = payload as u64;
        self.stats.offered += 1;
        self.stats.offered_bytes += payload;
        let (late, reorder, twice) = (self.random.unit(), self.random.unit(), self.random.unit());
        let bytes = payload + HEADERS;
        if let Some(policer) = self.config.policer
            && !self.tokens.take(now, bytes, policer.rate.as_bps(), policer.burst)
        {
            self.stats.policed += 1;
            return;
        }
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > self.config.queue.bytes {
            self.stats.overflowed += 1;
            return;
        }
        self.waiting_bytes += bytes;
        self.stats.queued_max = self.stats.queued_max.max(self.waiting_bytes);
        self.waiting.push_back(Waiting { packet, arrived: now, payload, late, reorder, twice });
        self.advance(now);
    }

    /// The next packet that is through by now.
    pub fn pop(&mut self, now: Time) -> Option<T> {
        self.advance(now);
        let first = self.flying.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        Some(first.remove())
    }

    /// When to call [`Lane::pop`] next; `None` while nothing is on its way.
    pub fn next_timeout(&self) -> Option<Time> {
        let arrives = self.flying.first_key_value().map(|((at, _), _)| *at);
        self.head_leaves.into_iter().chain(arrives).min()
    }

    /// What it has done so far.
    pub fn stats(&self) -> LaneStats {
        self.stats
    }

    /// Moves what has left the queue by now on its way, and takes the steps that are due.
    fn advance(&mut self, now: Time) {
        loop {
            if self.head_leaves.is_none() {
                self.begin();
            }
            let leaves = self.head_leaves.filter(|leaves| *leaves <= now);
            match (self.next_step().filter(|at| *at <= now), leaves) {
                (Some(step), leaves) if leaves.is_none_or(|leaves| step <= leaves) => self.step(),
                (_, Some(leaves)) => self.leave(leaves),
                _ => return,
            }
        }
    }

    fn next_step(&self) -> Option<Time> {
        self.config.steps.get(self.stepped).map(|step| step.at)
    }

    fn step(&mut self) {
        let step = self.config.steps[self.stepped].clone();
        self.stepped += 1;
        match step.change {
            Change::Service(service) => self.config.service = service,
            Change::Delay(delay) => {
                self.config.delay = delay;
                // What was sent by the old route does not hold these back.
                self.last_arrival = Time::ZERO;
            }
            Change::Loss(loss) => {
                self.config.loss = loss;
                self.losses.restart();
            }
            Change::Down(down) => self.down = down,
        }
    }

    /// The head gets the line, if there is one.
    fn begin(&mut self) {
        while let Some(head) = self.waiting.front() {
            let (begins, bytes) = (head.arrived.max(self.line_free), head.payload + HEADERS);
            let wait = begins.since(head.arrived);
            if self.config.queue.codel && self.codel.drops(begins, wait, self.waiting_bytes - bytes) {
                self.stats.overflowed += 1;
                self.waiting_bytes -= bytes;
                self.waiting.pop_front();
                continue;
            }
            if let Some(waits) = &mut self.waits {
                waits.push(Wait { at: begins, time: wait });
            }
            self.head_leaves = Some(match &self.config.service {
                Service::Unlimited => begins,
                Service::Rate(rate) => begins + rate.time(bytes),
                Service::Trace(trace) => self.opportunity.take(trace, begins, bytes),
            });
            return;
        }
    }

    /// The head leaves the queue.
    fn leave(&mut self, at: Time) {
        self.head_leaves = None;
        self.line_free = at;
        let Some(head) = self.waiting.pop_front() else { return };
        self.waiting_bytes -= head.payload + HEADERS;
        let lost = self.losses.next(self.config.loss, at) || self.down;
        if let Some(records) = &mut self.records {
            records.push((at, lost, head.packet.clone()));
        }
        if lost {
            self.stats.lost += 1;
            return;
        }
        let mut arrival = at + self.config.delay + self.jitter(at, head.late);
        if !matches!(self.config.jitter, Jitter::Apart { .. }) {
            arrival = arrival.max(self.last_arrival);
        }
        match self.config.reorder {
            Some(reorder) if head.reorder < reorder.share => arrival += reorder.by,
            _ => self.last_arrival = arrival,
        }
        if head.twice < self.config.duplication {
            self.fly(arrival, head.payload, head.packet.clone());
        }
        self.fly(arrival, head.payload, head.packet);
    }

    fn jitter(&mut self, at: Time, late: f64) -> Duration {
        match self.config.jitter {
            Jitter::None => Duration::ZERO,
            Jitter::Apart { span } | Jitter::Clumps { span } => span.mul_f64(late),
            Jitter::Wander { span, period } => span.mul_f64(self.wander.at(at, period)),
        }
    }

    fn fly(&mut self, arrival: Time, payload: u64, packet: T) {
        self.stats.delivered += 1;
        self.stats.delivered_bytes += payload;
        self.flights += 1;
        self.flying.insert((arrival, self.flights), packet);
    }
}

impl Wander {
    /// Between 0 and 1.
    fn at(&mut self, time: Time, period: Duration) -> f64 {
        let period = period.max(Duration::from_micros(1));
        while self.to.0 <= time {
            self.from = self.to;
            self.to = (self.from.0 + period, self.random.unit());
        }
        let way = time.since(self.from.0).as_secs_f64() / period.as_secs_f64();
        self.from.1 + (self.to.1 - self.from.1) * way
    }
}

impl Tokens {
    fn take(&mut self, now: Time, bytes: u64, rate: u64, burst: u64) -> bool {
        let came = now.since(self.at).as_nanos() * u128::from(rate);
        self.at = now;
        self.missing = self.missing.saturating_sub(came);
        let wanted = self.missing + u128::from(bytes) * 8 * NANOS;
        let fits = wanted <= u128::from(burst) * 8 * NANOS;
        if fits {
            self.missing = wanted;
        }
        fits
    }
}

impl Opportunity {
    /// When the last of `bytes` goes through that may begin at `begins`.
    fn take(&mut self, trace: &Trace, begins: Time, bytes: u64) -> Time {
        let mut wanted = bytes;
        // What is left of the last one, for those who waited when it came.
        if begins <= self.at {
            let used = wanted.min(self.left);
            self.left -= used;
            wanted -= used;
        }
        while wanted > 0 {
            let (number, at) = trace.next(self.next, begins);
            let used = wanted.min(Trace::BYTES);
            *self = Self { next: number + 1, at, left: Trace::BYTES - used };
            wanted -= used;
        }
        self.at
    }
}

/// Nanoseconds of a second.
const NANOS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests;
