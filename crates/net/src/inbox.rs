//! The queue between a carrier's thread and the run loop: arrivals in, arrivals out, bounded in bytes.
//!
//! It never drops or reorders. Its one invariant: a producer that asks [`Inbox::is_full`] before it takes bytes
//! off the link keeps the queue below [`INBOX_LIMIT`] plus one read, whatever the peer sends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wayferry_proto::Arrival;

use crate::wake::Wake;

/// Arrivals waiting for the run loop, and how the producer learns that there is room again.
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Arc<Wake>,
    on_drain: Box<dyn Fn() + Send + Sync>,
    consumed: AtomicU64,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arrival>,
    cost: usize,
    payload_since_drain: u64,
    was_full: bool,
}

impl Inbox {
    /// `on_drain` is called by the consumer when the queue has room again after it was full, and after each
    /// [`DRAIN_STEP`] bytes of payload and whenever the queue runs empty.
    pub(crate) fn new(wake: Arc<Wake>, on_drain: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { state: Mutex::default(), wake, on_drain, consumed: AtomicU64::new(0) }
    }

    /// Queues an arrival and wakes the run loop.
    pub(crate) fn push(&self, arrival: Arrival) {
        let was_empty = {
            let mut state = self.lock();
            state.cost += cost(&arrival);
            state.queue.push_back(arrival);
            state.queue.len() == 1
        };
        if was_empty {
            self.wake.raise();
        }
    }

    /// The oldest arrival.
    pub(crate) fn pop(&self) -> Option<Arrival> {
        let (arrival, notify) = {
            let mut state = self.lock();
            let arrival = state.queue.pop_front()?;
            state.cost -= cost(&arrival);
            let payload = payload(&arrival);
            self.consumed.fetch_add(payload, Ordering::Relaxed);
            state.payload_since_drain += payload;
            let drained = state.payload_since_drain > 0
                && (state.queue.is_empty() || state.payload_since_drain >= DRAIN_STEP);
            let roomy = state.was_full && state.cost <= INBOX_LIMIT / 2;
            if drained {
                state.payload_since_drain = 0;
            }
            if roomy {
                state.was_full = false;
            }
            (arrival, drained || roomy)
        };
        if notify {
            (self.on_drain)();
        }
        Some(arrival)
    }

    /// Whether the producer must stop reading. A `true` is followed by one call of `on_drain`.
    pub(crate) fn is_full(&self) -> bool {
        let mut state = self.lock();
        if state.was_full {
            return true;
        }
        state.was_full = state.cost >= INBOX_LIMIT;
        state.was_full
    }

    /// Bytes of payload that the run loop has taken so far.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn payload(arrival: &Arrival) -> u64 {
    match arrival {
        Arrival::Data { bytes, .. } => bytes.len() as u64,
        _ => 0,
    }
}

fn cost(arrival: &Arrival) -> usize {
    ARRIVAL_COST + payload(arrival) as usize
}

/// Queued bytes, with [`ARRIVAL_COST`] for each arrival, from which on the link is no longer read.
pub(crate) const INBOX_LIMIT: usize = 16 << 20;

/// What one arrival costs beside its payload, so that many empty ones are bounded too.
const ARRIVAL_COST: usize = 128;

/// Payload that the consumer takes between two calls of `on_drain` while more is queued.
const DRAIN_STEP: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use bytes::Bytes;
    use wayferry_proto::StreamId;

    use super::*;

    fn inbox() -> (Inbox, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let on_drain = Box::new({
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        (Inbox::new(Arc::new(Wake::new().unwrap()), on_drain), calls)
    }

    fn push(inbox: &Inbox, length: usize) {
        inbox.push(Arrival::Data { stream: StreamId(0), offset: 0, bytes: Bytes::from(vec![0; length]) });
    }

    #[test]
    fn a_full_inbox_says_so_until_half_is_taken() {
        let (inbox, calls) = inbox();
        let count = INBOX_LIMIT / (1 << 20);
        (0..count).for_each(|_| push(&inbox, 1 << 20));
        assert!(inbox.is_full());
        for taken in 1..=count / 2 {
            assert!(inbox.is_full(), "after {taken}");
            inbox.pop().unwrap();
        }
        inbox.pop().unwrap();
        assert!(!inbox.is_full());
        assert!(calls.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn empty_arrivals_are_bounded_too() {
        let (inbox, _) = inbox();
        let mut count = 0;
        while !inbox.is_full() {
            inbox.push(Arrival::Finished { stream: StreamId(count), length: 0 });
            count += 1;
        }
        assert!(count <= (INBOX_LIMIT / ARRIVAL_COST) as u64);
    }

    #[test]
    fn the_producer_hears_of_payload_that_was_taken() {
        let (inbox, calls) = inbox();
        (0..4).for_each(|_| push(&inbox, 8 << 10));
        inbox.pop();
        assert_eq!(calls.load(Ordering::Relaxed), 0);
        inbox.pop();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        while inbox.pop().is_some() {}
        assert_eq!((calls.load(Ordering::Relaxed), inbox.consumed()), (2, 32 << 10));
    }
}
