//! One direction of a link: queue, rate or trace, loss, delay. Time in, packets out; no sockets, no clock.
//!
//! A packet waits in the queue, leaves it at the rate or with the trace, is then lost or flies for its delay.
//!
//! Invariants: at most `queue_bytes` wait (but one packet may always); what left the queue in any span of time is
//! at most what the rate or the trace allows in it, and one packet.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::config::LinkConfig;
use super::loss::Losses;
use super::trace::Trace;
use crate::random::Random;

/// See the module. Times are since the lane's start and must not go back.
#[derive(Debug)]
pub struct Lane<T> {
    config: LinkConfig,
    random: Random,
    losses: Losses,
    down: bool,
    waiting: VecDeque<Waiting<T>>,
    waiting_bytes: u64,
    /// When the packet before the head had left.
    line_free: Duration,
    next_opportunity: u64,
    flying: BinaryHeap<Flight<T>>,
    flights: u64,
    last_due: Duration,
    stats: LaneStats,
}

/// What a lane has done so far, in datagrams and in bytes of their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Datagrams that came in.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Datagrams that found no room in the queue.
    pub overflowed: u64,
    /// Datagrams lost at random.
    pub lost: u64,
    /// Datagrams lost in an outage.
    pub cut: u64,
    /// Datagrams that came out, duplicates too.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Bytes that wait now, headers included.
    pub queued_bytes: u64,
    /// The most that ever waited.
    pub queued_max: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    packet: T,
    arrived: Duration,
    payload: u64,
    /// Bytes with headers that are still to be sent.
    left: u64,
    fate: Fate,
}

/// What was drawn for a packet when it came.
#[derive(Clone, Copy, Debug)]
struct Fate {
    lost: bool,
    twice: bool,
    extra: Duration,
    late: bool,
}

#[derive(Debug)]
struct Flight<T> {
    due: Duration,
    number: u64,
    payload: u64,
    packet: T,
}

impl<T: Clone> Lane<T> {
    /// A lane at time zero.
    pub fn new(config: LinkConfig) -> Lane<T> {
        Lane {
            random: Random::new(config.seed),
            config,
            losses: Losses::default(),
            down: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            line_free: Duration::ZERO,
            next_opportunity: 0,
            flying: BinaryHeap::new(),
            flights: 0,
            last_due: Duration::ZERO,
            stats: LaneStats::default(),
        }
    }

    /// Changes everything but the seed and what already waits or flies.
    pub fn set_config(&mut self, now: Duration, config: LinkConfig) {
        self.advance(now);
        if self.config.trace != config.trace {
            self.next_opportunity = 0;
        }
        self.line_free = self.line_free.max(now);
        self.config = config;
        self.last_due = Duration::ZERO;
    }

    /// Cuts the lane, or mends it: while it is down, what leaves the queue is lost.
    pub fn set_down(&mut self, now: Duration, down: bool) {
        self.advance(now);
        self.down = down;
    }

    /// A packet with `payload` bytes comes in.
    pub fn push(&mut self, now: Duration, payload: usize, packet: T) {
        self.advance(now);
        let payload = payload as u64;
        self.stats.offered += 1;
        self.stats.offered_bytes += payload;
        let fate = self.draw();
        let bytes = payload + HEADERS;
        if !self.waiting.is_empty() && self.waiting_bytes + bytes > self.config.queue_bytes {
            self.stats.overflowed += 1;
            return;
        }
        self.waiting_bytes += bytes;
        self.stats.queued_max = self.stats.queued_max.max(self.waiting_bytes);
        self.waiting.push_back(Waiting { packet, arrived: now, payload, left: bytes, fate });
        self.advance(now);
    }

    /// The next packet that is through by now.
    pub fn pop(&mut self, now: Duration) -> Option<T> {
        self.advance(now);
        if self.flying.peek()?.due > now {
            return None;
        }
        let flight = self.flying.pop()?;
        self.stats.delivered += 1;
        self.stats.delivered_bytes += flight.payload;
        Some(flight.packet)
    }

    /// When to call [`Lane::pop`] next; `None` while nothing is on its way.
    pub fn next_timeout(&self) -> Option<Duration> {
        let leaves = self.waiting.front().map(|head| self.departure(head));
        let arrives = self.flying.peek().map(|flight| flight.due);
        leaves.into_iter().chain(arrives).min()
    }

    /// What it has done so far.
    pub fn stats(&self) -> LaneStats {
        LaneStats { queued_bytes: self.waiting_bytes, ..self.stats }
    }

    fn draw(&mut self) -> Fate {
        let lost = self.losses.next(self.config.loss, &mut self.random);
        let (twice, extra, late) = (self.random.unit(), self.random.unit(), self.random.unit());
        Fate {
            lost,
            twice: twice < self.config.duplication,
            extra: self.config.jitter.mul_f64(extra),
            late: self.config.reorder.is_some_and(|reorder| late < reorder.probability),
        }
    }

    /// When the head of the queue could next send something.
    fn departure(&self, head: &Waiting<T>) -> Duration {
        if let Some(trace) = &self.config.trace {
            return trace.time(trace.first_at(self.next_opportunity, head.arrived));
        }
        let start = head.arrived.max(self.line_free);
        let Some(rate) = self.config.rate else { return start };
        start + Duration::from_nanos((head.left * 8).saturating_mul(1_000_000_000) / rate.max(1))
    }

    /// Moves what has left the queue by now on its way.
    fn advance(&mut self, now: Duration) {
        while let Some(head) = self.waiting.front() {
            let at = self.departure(head);
            if at > now {
                return;
            }
            match self.config.trace.clone() {
                Some(trace) => self.use_opportunity(&trace, at),
                None => self.depart(at),
            }
        }
    }

    /// Sends up to 1500 bytes of what waited at that time.
    fn use_opportunity(&mut self, trace: &Trace, at: Duration) {
        let head = self.waiting.front().expect("the caller saw it");
        self.next_opportunity = trace.first_at(self.next_opportunity, head.arrived) + 1;
        let mut budget = Trace::BYTES;
        while let Some(head) = self.waiting.front_mut().filter(|head| head.arrived <= at) {
            let sent = head.left.min(budget);
            head.left -= sent;
            budget -= sent;
            if head.left > 0 {
                return;
            }
            self.depart(at);
        }
    }

    /// The head of the queue leaves it.
    fn depart(&mut self, at: Duration) {
        let Some(Waiting { packet, payload, fate, .. }) = self.waiting.pop_front() else { return };
        self.waiting_bytes -= payload + HEADERS;
        self.line_free = at;
        if self.down || self.config.outages.iter().any(|outage| outage.covers(at)) {
            self.stats.cut += 1;
            return;
        }
        if fate.lost {
            self.stats.lost += 1;
            return;
        }
        let mut due = (at + self.config.one_way_delay + fate.extra).max(self.last_due);
        match self.config.reorder {
            Some(reorder) if fate.late => due += reorder.by,
            _ => self.last_due = due,
        }
        if fate.twice {
            self.fly(due, payload, packet.clone());
        }
        self.fly(due, payload, packet);
    }

    fn fly(&mut self, due: Duration, payload: u64, packet: T) {
        self.flights += 1;
        self.flying.push(Flight { due, number: self.flights, payload, packet });
    }
}

// The heap gives the greatest first: that is the one due first.
impl<T> Ord for Flight<T> {
    fn cmp(&self, other: &Flight<T>) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<T> PartialOrd for Flight<T> {
    fn partial_cmp(&self, other: &Flight<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flight<T> {
    fn eq(&self, other: &Flight<T>) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl<T> Eq for Flight<T> {}

/// IPv4 and UDP headers of one datagram.
const HEADERS: u64 = 28;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::config::{Loss, Outage, Reorder};
    use super::*;

    /// Pushes (time in µs, size) and gives (time of delivery, index) of all that comes out.
    fn deliveries(config: &LinkConfig, packets: &[(u64, usize)]) -> Vec<(Duration, usize)> {
        let mut lane = Lane::new(config.clone());
        let mut out = Vec::new();
        for (index, (micros, size)) in packets.iter().enumerate() {
            let now = Duration::from_micros(*micros);
            while let Some(due) = lane.next_timeout().filter(|due| *due <= now) {
                out.extend(std::iter::from_fn(|| lane.pop(due)).map(|it| (due, it)));
            }
            lane.push(now, *size, index);
        }
        while let Some(due) = lane.next_timeout() {
            out.extend(std::iter::from_fn(|| lane.pop(due)).map(|it| (due, it)));
        }
        out
    }

    fn packets() -> impl Strategy<Value = Vec<(u64, usize)>> {
        prop::collection::vec((0u64..2_000, 1usize..1453), 1..200).prop_map(|gaps| {
            let mut time = 0;
            gaps.into_iter()
                .map(|(gap, size)| {
                    time += gap;
                    (time, size)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn a_perfect_link_keeps_time_and_order(packets in packets(), delay in 0u64..100_000) {
            let one_way_delay = Duration::from_micros(delay);
            let out = deliveries(&LinkConfig { one_way_delay, ..LinkConfig::default() }, &packets);
            let expected: Vec<_> = packets
                .iter()
                .enumerate()
                .map(|(index, (micros, _))| (Duration::from_micros(*micros) + one_way_delay, index))
                .collect();
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn the_rate_is_respected_in_every_span(packets in packets(), rate in 100_000u64..50_000_000) {
            let config = LinkConfig { rate: Some(rate), queue_bytes: 20_000, ..LinkConfig::default() };
            let out = deliveries(&config, &packets);
            let bits = |index: usize| (packets[index].1 as u64 + HEADERS) as f64 * 8.0;
            for first in 0..out.len() {
                // The first packet's last bit opens the span, so its bits do not count.
                let mut sum = 0.0;
                for (time, index) in &out[first + 1..] {
                    sum += bits(*index);
                    let span = (*time - out[first].0).as_secs_f64();
                    prop_assert!(sum <= rate as f64 * span + 1.0 + rate as f64 * 1e-9 * (out.len() as f64));
                }
            }
        }

        #[test]
        fn the_queue_drops_its_tail(packets in packets(), queue_bytes in 1_500u64..10_000) {
            let config = LinkConfig { rate: Some(1_000_000), queue_bytes, ..LinkConfig::default() };
            let mut lane = Lane::new(config);
            for (index, (micros, size)) in packets.iter().enumerate() {
                let now = Duration::from_micros(*micros);
                let before = lane.stats();
                lane.push(now, *size, index);
                let after = lane.stats();
                prop_assert!(after.queued_bytes <= queue_bytes);
                if after.overflowed > before.overflowed {
                    prop_assert!(after.queued_bytes + *size as u64 + HEADERS > queue_bytes);
                }
            }
        }

        #[test]
        fn the_seed_decides_and_the_timing_does_not(packets in packets(), seed: u64) {
            let config = LinkConfig {
                loss: Loss::bursts(0.1, 2.0),
                jitter: Duration::from_millis(3),
                reorder: Some(Reorder { probability: 0.1, by: Duration::from_millis(5) }),
                duplication: 0.05,
                seed,
                ..LinkConfig::default()
            };
            let names = |out: Vec<(Duration, usize)>| {
                let mut names: Vec<_> = out.into_iter().map(|it| it.1).collect();
                names.sort_unstable();
                names
            };
            let stretched: Vec<_> = packets.iter().map(|(time, size)| (time * 3 + 17, *size)).collect();
            let first = deliveries(&config, &packets);
            prop_assert_eq!(&first, &deliveries(&config, &packets));
            prop_assert_eq!(names(first), names(deliveries(&config, &stretched)));
        }

        #[test]
        fn jitter_keeps_the_order(packets in packets(), seed: u64) {
            let config = LinkConfig { jitter: Duration::from_millis(20), seed, ..LinkConfig::default() };
            let order: Vec<_> = deliveries(&config, &packets).into_iter().map(|it| it.1).collect();
            prop_assert_eq!(order, (0..packets.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_late_packet_is_overtaken() {
        let reorder = Some(Reorder { probability: 0.2, by: Duration::from_millis(5) });
        let config = LinkConfig { reorder, seed: 4, ..LinkConfig::default() };
        let packets: Vec<_> = (0..50).map(|index| (index * 1000, 100)).collect();
        let order: Vec<_> = deliveries(&config, &packets).into_iter().map(|it| it.1).collect();
        assert_eq!(order.len(), 50);
        assert!(order.windows(2).any(|pair| pair[1] < pair[0]), "{order:?}");
    }

    #[test]
    fn an_outage_loses_what_leaves_in_it() {
        let outage = Outage { start: Duration::from_millis(10), length: Duration::from_millis(5) };
        let config = LinkConfig { outages: vec![outage], ..LinkConfig::default() };
        let packets: Vec<_> = (0..30).map(|index| (index * 1000, 100)).collect();
        let through: Vec<_> = deliveries(&config, &packets).into_iter().map(|it| it.1).collect();
        assert_eq!(through, (0..10).chain(15..30).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_lane_delivers_again_when_mended() {
        let mut lane = Lane::new(LinkConfig::default());
        lane.set_down(Duration::ZERO, true);
        lane.push(Duration::ZERO, 10, "lost");
        lane.set_down(Duration::from_millis(1), false);
        lane.push(Duration::from_millis(1), 10, "through");
        assert_eq!(lane.pop(Duration::from_millis(1)), Some("through"));
        assert_eq!(lane.stats().cut, 1);
    }

    #[test]
    fn a_trace_carries_1500_bytes_an_opportunity() {
        let trace = Some(Trace::new(vec![10, 20, 30]).unwrap());
        let config = LinkConfig { trace, ..LinkConfig::default() };
        // 736 + 28 bytes: two of them are a little more than one opportunity.
        let out = deliveries(&config, &[(0, 736), (0, 736), (0, 736), (25_000, 100)]);
        let times: Vec<_> = out.iter().map(|it| it.0.as_millis()).collect();
        assert_eq!(times, [10, 20, 20, 30]);
    }

    #[test]
    fn a_trace_has_the_rate_it_says() {
        let trace = Some(Trace::new((1..=100).collect()).unwrap());
        let config = LinkConfig { trace, queue_bytes: 1 << 30, ..LinkConfig::default() };
        let out = deliveries(&config, &vec![(0, 1472); 1000]);
        assert_eq!(out.last().map(|it| it.0), Some(Duration::from_millis(1000)));
    }

    #[test]
    fn a_new_rate_holds_from_its_time_on() {
        let slow = LinkConfig { rate: Some(8_000), ..LinkConfig::default() };
        let mut lane = Lane::new(slow.clone());
        for index in 0..3 {
            lane.push(Duration::ZERO, 972, index);
        }
        assert_eq!(lane.next_timeout(), Some(Duration::from_secs(1)));
        assert_eq!(lane.pop(Duration::from_secs(1)), Some(0));
        lane.set_config(Duration::from_secs(1), LinkConfig { rate: Some(8_000_000), ..slow });
        assert_eq!(lane.next_timeout(), Some(Duration::from_millis(1001)));
        assert_eq!(lane.pop(Duration::from_millis(1002)), Some(1));
        assert_eq!(lane.pop(Duration::from_millis(1002)), Some(2));
    }
}
