//! When requests were sent and chunks came, and what follows from that.
//!
//! A chunk is *there* when all its bytes were received or rebuilt, *shown* when the session hands it over, and
//! *delivered* when the order allows it: with one ordered stream, when all chunks before it were; with a fence per
//! update, when all updates before its own are whole. Invariant: nothing is delivered before it is there.

use std::time::Duration;

use wayferry_proto::Time;

use super::plan::{Pace, Plan};
use crate::stats::Samples;

/// What one run noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    requests: Vec<Time>,
    updates: Vec<Vec<Noted>>,
}

/// Of one chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Noted {
    first: Option<Time>,
    there: Option<Time>,
    shown: Option<Time>,
}

/// When an update was asked for, or handed over where there is no request for each, and delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// See above.
    pub asked: Time,
    /// Its last chunk.
    pub delivered: Time,
}

/// In which order chunks may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each after all before it.
    Total,
    /// Each after all updates before its own.
    Partial,
}

/// What a log says, as distributions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Delivered, since it was there.
    pub blocking: Samples,
    /// Delivered, since its first byte.
    pub first_byte: Samples,
    /// Since the delivery before; within an update, but for back-to-back updates.
    pub inter_delivery: Samples,
    /// From the request, or the app's commit where there is no request for each, to the update's last chunk.
    pub response: Samples,
}

impl Measures {
    /// Adds those of another run.
    pub fn merge(&mut self, other: &Self) {
        self.blocking.merge(&other.blocking);
        self.first_byte.merge(&other.first_byte);
        self.inter_delivery.merge(&other.inter_delivery);
        self.response.merge(&other.response);
    }
}

impl Log {
    pub(super) fn new(plan: &Plan) -> Self {
        let updates = plan.updates.iter().map(|chunks| vec![Noted::default(); chunks.len()]);
        Self { requests: Vec::new(), updates: updates.collect() }
    }

    pub(super) fn request(&mut self, number: usize, now: Time) {
        debug_assert_eq!(number, self.requests.len(), "requests are sent in order");
        self.requests.push(now);
    }

    pub(super) fn first(&mut self, update: usize, chunk: usize, now: Time) {
        if let Some(noted) = self.noted(update, chunk) {
            noted.first.get_or_insert(now);
        }
    }

    /// All bytes of a chunk are there; of several reports the first counts.
    pub(super) fn there(&mut self, update: usize, chunk: usize, now: Time) {
        if let Some(noted) = self.noted(update, chunk) {
            noted.first.get_or_insert(now);
            noted.there.get_or_insert(now);
        }
    }

    /// The session handed a chunk over; of several reports the first counts.
    pub(super) fn shown(&mut self, update: usize, chunk: usize, now: Time) {
        self.there(update, chunk, now);
        if let Some(noted) = self.noted(update, chunk) {
            noted.shown.get_or_insert(now);
        }
    }

    fn noted(&mut self, update: usize, chunk: usize) -> Option<&mut Noted> {
        self.updates.get_mut(update)?.get_mut(chunk)
    }

    /// When the first request was sent.
    pub fn start(&self) -> Option<Time> {
        self.requests.first().copied()
    }

    /// When each chunk was delivered; `None` when something is missing.
    fn deliveries(&self, order: Order) -> Option<Vec<Vec<Time>>> {
        let mut before = Time::ZERO;
        let mut all = Vec::with_capacity(self.updates.len());
        for chunks in &self.updates {
            let fence = before;
            let mut times = Vec::with_capacity(chunks.len());
            for chunk in chunks {
                let shown = chunk.shown?;
                let time = match order {
                    Order::Total => shown.max(before),
                    Order::Partial => shown.max(fence),
                };
                before = before.max(time);
                times.push(time);
            }
            all.push(times);
        }
        Some(all)
    }

    /// Of each update; `None` when something is missing.
    pub fn answers(&self, plan: &Plan, order: Order, sent: &[Time]) -> Option<Vec<Answer>> {
        let asked = if plan.has_requests() { &self.requests } else { sent };
        let delivered = self.deliveries(order)?.into_iter().map(|times| times.into_iter().max());
        asked
            .iter()
            .zip(delivered)
            .map(|(asked, delivered)| Some(Answer { asked: *asked, delivered: delivered? }))
            .collect()
    }

    /// From the first request to the last delivery; `None` when something is missing.
    pub fn completion(&self, order: Order) -> Option<Duration> {
        let last = self.deliveries(order)?.into_iter().flatten().max()?;
        Some(last.since(self.start()?))
    }

    /// The distributions of the first updates and of the rest: those count as first that are among the first
    /// [`Log::FIRST`], and of back-to-back updates also what was delivered in the first second, but no more than half
    /// of all. `sent` says when the app side handed each update over. `None` when something is missing.
    pub fn measures(&self, plan: &Plan, order: Order, sent: &[Time]) -> Option<(Measures, Measures)> {
        let (mut first, mut rest) = (Measures::default(), Measures::default());
        let back_to_back = plan.pace == Pace::BackToBack;
        let early = if back_to_back { self.start()? + EARLY } else { Time::ZERO };
        let mut previous = None;
        for (update, times) in self.deliveries(order)?.into_iter().enumerate() {
            let last = times.iter().copied().max()?;
            let is_early = last < early && update < self.updates.len() / 2;
            let measures = if update < Self::FIRST || is_early { &mut first } else { &mut rest };
            for (time, noted) in times.iter().zip(&self.updates[update]) {
                measures.blocking.add(time.since(noted.there?));
                measures.first_byte.add(time.since(noted.first?));
            }
            let mut ordered = times;
            ordered.sort_unstable();
            previous = previous.filter(|_| back_to_back);
            for time in ordered {
                if let Some(previous) = previous {
                    measures.inter_delivery.add(time.since(previous));
                }
                previous = Some(time);
            }
            let asked = if plan.has_requests() { self.requests.get(update) } else { sent.get(update) };
            measures.response.add(last.since(*asked?));
        }
        Some((first, rest))
    }

    /// How many updates are reported apart: while they pass, congestion control learns the link.
    pub const FIRST: usize = 10;
}

/// For how long congestion control learns when updates come back to back.
const EARLY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Two updates of two chunks: the first one's second chunk is last of all.
    fn log(plan: &Plan) -> Log {
        let mut log = Log::new(plan);
        log.request(0, Time::from_millis(0));
        for (update, chunk, time) in [(0, 0, 100), (1, 1, 110), (1, 0, 120), (0, 1, 150)] {
            log.first(update, chunk, Time::from_millis(time - 5));
            log.shown(update, chunk, Time::from_millis(time));
        }
        log
    }

    #[test]
    fn order_decides_what_blocks() {
        let plan = Plan::uniform(2, 2, 100, Pace::BackToBack);
        let log = log(&plan);
        let millis = |order| -> Vec<Vec<u128>> {
            let all = log.deliveries(order).unwrap();
            all.iter()
                .map(|update| update.iter().map(|time| time.since_start().as_millis()).collect())
                .collect()
        };
        assert_eq!(millis(Order::Total), [[100, 150], [150, 150]]);
        assert_eq!(millis(Order::Partial), [[100, 150], [150, 150]]);
        assert_eq!(log.completion(Order::Partial), Some(Duration::from_millis(150)));
    }

    #[test]
    fn a_fence_lets_chunks_of_one_update_pass_each_other() {
        let plan = Plan::uniform(1, 2, 100, Pace::BackToBack);
        let mut log = Log::new(&plan);
        log.request(0, Time::ZERO);
        log.shown(0, 1, Time::from_millis(100));
        log.shown(0, 0, Time::from_millis(130));
        let blocking = |order| {
            let (first, rest) = log.measures(&plan, order, &[Time::ZERO]).unwrap();
            assert!(rest.blocking.is_empty());
            (
                first.blocking.percentile(1.0),
                first.inter_delivery.percentile(1.0),
                first.response.percentile(1.0),
            )
        };
        assert_eq!(blocking(Order::Partial), (Some(0.0), Some(30.0), Some(130.0)));
        assert_eq!(blocking(Order::Total), (Some(30.0), Some(0.0), Some(130.0)));
    }

    #[test]
    fn what_is_missing_is_not_measured() {
        let plan = Plan::uniform(1, 2, 100, Pace::BackToBack);
        let log = Log::new(&plan);
        assert_eq!(log.measures(&plan, Order::Total, &[]), None);
        assert_eq!(log.completion(Order::Total), None);
    }
}
