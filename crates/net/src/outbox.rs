//! The queue between the run loop and a carrier's thread: transmits, with the content bytes among them counted.
//!
//! Its one invariant: every content byte that was handed over and neither sent nor dropped is in
//! [`Outbox::unsent`]. It may count a byte twice for a moment while the thread takes it, never miss one.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wayferry_proto::{Arrival, StreamId, Transmit};

use crate::carrier::is_content;
use crate::wake::Wake;

/// What both threads see.
pub(crate) struct Outbox {
    queue: Mutex<Vec<Transmit>>,
    /// Content bytes in `queue` or being taken from it.
    waiting: AtomicU64,
    /// Content bytes that the thread has taken and not sent.
    taken: AtomicU64,
    wake: Arc<Wake>,
}

impl Outbox {
    pub(crate) fn new(wake: Arc<Wake>) -> Self {
        Self { queue: Mutex::default(), waiting: AtomicU64::new(0), taken: AtomicU64::new(0), wake }
    }

    /// Content bytes handed over and not sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.waiting.load(Ordering::Acquire) + self.taken.load(Ordering::Acquire)
    }

    /// Thread: all that waits. Pass the number to [`Outbox::publish`] once the transmits are counted elsewhere.
    pub(crate) fn take(&self) -> (Vec<Transmit>, u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *queue), self.waiting.load(Ordering::Acquire))
    }

    /// Thread: `unsent` of what it took is still unsent. Wakes the run loop when that made room.
    pub(crate) fn publish(&self, level: &mut Level, counted: u64, unsent: u64, window: u64) {
        level.peak = level.peak.max(self.taken.load(Ordering::Acquire) + counted);
        self.taken.store(unsent, Ordering::Release);
        self.waiting.fetch_sub(counted, Ordering::AcqRel);
        let mark = window / 2;
        if level.peak > unsent && (unsent == 0 || (unsent < mark && level.peak >= mark)) {
            self.wake.raise();
        }
        level.peak = unsent;
    }
}

/// The highest number of unsent bytes since the last [`Outbox::publish`]; the thread's own.
#[derive(Default)]
pub(crate) struct Level {
    peak: u64,
}

/// The run loop's end: knows which of its streams carry content.
pub(crate) struct Feeder {
    outbox: Arc<Outbox>,
    content: HashSet<StreamId>,
}

impl Feeder {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, content: HashSet::new() }
    }

    /// Queues a transmit. Whether the queue was empty, so that the thread has to be told.
    pub(crate) fn feed(&mut self, transmit: Transmit) -> bool {
        let bytes = self.count(&transmit);
        let mut queue = self.outbox.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.outbox.waiting.fetch_add(bytes, Ordering::AcqRel);
        queue.push(transmit);
        queue.len() == 1
    }

    /// The session sees this arrival: a stopped stream carries nothing any more.
    pub(crate) fn observe(&mut self, arrival: &Arrival) {
        if let Arrival::Stopped { stream, .. } = arrival {
            self.content.remove(stream);
        }
    }

    fn count(&mut self, transmit: &Transmit) -> u64 {
        match transmit {
            Transmit::Open { stream, priority } if is_content(*priority) => {
                self.content.insert(*stream);
                0
            }
            Transmit::Prioritise { stream, priority } => {
                // A finished stream is counted already, and not written to any more.
                if !is_content(*priority) {
                    self.content.remove(stream);
                }
                0
            }
            Transmit::Data { stream, bytes, finish } if self.content.contains(stream) => {
                if *finish {
                    self.content.remove(stream);
                }
                bytes.len() as u64
            }
            Transmit::Reset { stream, .. } => {
                self.content.remove(stream);
                0
            }
            _ => 0,
        }
    }
}
