//! The queue between a carrier's thread and the run loop: arrivals in, arrivals out, bounded in bytes.
//!
//! It never drops or reorders. Its one invariant: a producer that asks [`Inbox::is_full`] before it takes bytes
//! off the link keeps the queue below [`INBOX_LIMIT`] plus one read, for any input of the peer. One that can only ask
//! the peer to be quiet does so then, and stops taking at [`Inbox::is_overfull`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wayferry_proto::Arrival;

use crate::wake::Wake;

/// Arrivals waiting for the run loop, and how the producer learns that there is room again.
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: Arc<Wake>,
    drain: Drain,
    consumed: AtomicU64,
}

/// How the producer hears of the consumer.
pub(crate) struct Drain {
    /// Called after so many bytes of payload were taken, and when there is room again after the inbox was full.
    pub(crate) step: u64,
    /// Called also when payload was taken and nothing is left.
    pub(crate) when_empty: bool,
    /// What to call, on the consumer's thread.
    pub(crate) call: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arrival>,
    cost: usize,
    payload: u64,
    payload_since_drain: u64,
    was_full: bool,
}

impl Inbox {
    pub(crate) fn new(wake: Arc<Wake>, drain: Drain) -> Self {
        Self { state: Mutex::default(), wake, drain, consumed: AtomicU64::new(0) }
    }

    /// Queues an arrival and wakes the run loop. Gives the bytes of payload that are queued now.
    pub(crate) fn push(&self, arrival: Arrival) -> u64 {
        let (was_empty, queued) = {
            let mut state = self.lock();
            state.cost += cost(&arrival);
            state.payload += payload(&arrival);
            state.queue.push_back(arrival);
            (state.queue.len() == 1, state.payload)
        };
        if was_empty {
            self.wake.raise();
        }
        queued
    }

    /// The oldest arrival.
    pub(crate) fn pop(&self) -> Option<Arrival> {
        let (arrival, notify) = {
            let mut state = self.lock();
            let arrival = state.queue.pop_front()?;
            state.cost -= cost(&arrival);
            let payload = payload(&arrival);
            state.payload -= payload;
            self.consumed.fetch_add(payload, Ordering::Relaxed);
            state.payload_since_drain += payload;
            let drained = state.payload_since_drain > 0
                && (self.drain.when_empty && state.queue.is_empty()
                    || state.payload_since_drain >= self.drain.step);
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
            (self.drain.call)();
        }
        Some(arrival)
    }

    /// Whether the producer must stop reading. A `true` is followed by one call of the [`Drain`].
    pub(crate) fn is_full(&self) -> bool {
        let mut state = self.lock();
        if state.was_full {
            return true;
        }
        state.was_full = state.cost >= INBOX_LIMIT;
        state.was_full
    }

    /// Whether the producer must stop reading even if it would rather not; followed by a call likewise.
    pub(crate) fn is_overfull(&self) -> bool {
        let mut state = self.lock();
        let overfull = state.cost >= OVERFULL;
        state.was_full |= overfull;
        overfull
    }

    /// Bytes of payload that wait.
    pub(crate) fn queued(&self) -> u64 {
        self.lock().payload
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
    let datagram = if let Arrival::Datagram { bytes } = arrival { bytes.len() } else { 0 };
    ARRIVAL_COST + payload(arrival) as usize + datagram
}

/// Queued bytes, with [`ARRIVAL_COST`] for each arrival, from which on the link is no longer read.
pub(crate) const INBOX_LIMIT: usize = 16 << 20;

/// Room for what a well-behaved peer still sends when it is asked to be quiet: one QUIC connection window, with the
/// cost of its arrivals.
const OVERFULL: usize = 4 * INBOX_LIMIT;

/// What one arrival costs beside its payload, so that many empty ones are bounded too.
const ARRIVAL_COST: usize = 128;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use bytes::Bytes;
    use wayferry_proto::StreamId;

    use super::*;

    fn inbox() -> (Inbox, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let call = Box::new({
            let calls = Arc::clone(&calls);
            move || {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        let drain = Drain { step: 16 << 10, when_empty: true, call };
        (Inbox::new(Arc::new(Wake::new().unwrap()), drain), calls)
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
        let (inbox, calls) = inbox();
        let mut count = 0;
        while !inbox.is_overfull() {
            inbox.push(Arrival::Finished { stream: StreamId(count), length: 0 });
            count += 1;
        }
        assert!(count <= (OVERFULL / ARRIVAL_COST) as u64);
        while inbox.pop().is_some() {}
        assert_eq!((calls.load(Ordering::Relaxed), inbox.queued()), (1, 0));
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
