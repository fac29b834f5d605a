//! The pooled runs of one cell.

use std::time::Duration;

use super::cell::Cell;
use super::run::{Reference, Run};
use crate::session::Measures;
use crate::stats::Samples;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Of what.
    pub cell: Cell,
    /// How many runs.
    pub seeds: u64,
    /// Updates delivered in all of them.
    pub updates: u64,
    /// While congestion control learned the link.
    pub first: Measures,
    /// From then on.
    pub rest: Measures,
    /// Each run's duration.
    pub completion: Samples,
    /// How long packets in the direction of the updates waited for the link.
    pub queue: Samples,
    /// The session's UDP payload in the direction of the updates, in bytes, of all runs.
    pub wire_bytes: u64,
    /// The same of as many reference runs.
    pub reference_bytes: u64,
    /// Bytes of the updates themselves.
    pub content_bytes: u64,
    /// The response time that the link allows.
    pub floor: Duration,
    /// Runs that failed, which hold nothing.
    pub failures: u64,
}

impl Row {
    /// A row without runs.
    pub fn new(cell: Cell) -> Self {
        Self {
            cell,
            seeds: 0,
            updates: 0,
            first: Measures::default(),
            rest: Measures::default(),
            completion: Samples::default(),
            queue: Samples::default(),
            wire_bytes: 0,
            reference_bytes: 0,
            content_bytes: 0,
            floor: Duration::ZERO,
            failures: 0,
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: &Run, reference: Reference) {
        self.merge(&Self {
            cell: self.cell,
            seeds: 1,
            updates: run.updates,
            first: run.first.clone(),
            rest: run.rest.clone(),
            completion: Samples::from_iter([run.completion]),
            queue: run.queue.clone(),
            wire_bytes: run.wire_bytes,
            reference_bytes: reference.wire_bytes,
            content_bytes: run.content_bytes,
            floor: reference.floor,
            failures: 0,
        });
    }

    /// Adds the runs of another row of the same cell.
    pub fn merge(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.updates += other.updates;
        self.first.merge(&other.first);
        self.rest.merge(&other.rest);
        self.completion.merge(&other.completion);
        self.queue.merge(&other.queue);
        self.wire_bytes += other.wire_bytes;
        self.reference_bytes += other.reference_bytes;
        self.content_bytes += other.content_bytes;
        self.floor = self.floor.max(other.floor);
        self.failures += other.failures;
    }

    /// How much more went over the wire than without loss and repair, in percent.
    pub fn overhead_percent(&self) -> f64 {
        (ratio(self.wire_bytes, self.reference_bytes) - 1.0) * 100.0
    }

    /// UDP payload for each byte of content.
    pub fn wire_ratio(&self) -> f64 {
        ratio(self.wire_bytes, self.content_bytes)
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { f64::NAN } else { a as f64 / b as f64 }
}
