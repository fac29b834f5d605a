//! The queue between the run loop and a carrier's thread: transmits, with the content bytes among them counted.
//!
//! Its one invariant: every content byte that was handed over and neither sent nor dropped is in
//! [`Outbox::unsent`]. It may count a byte twice for a moment while the thread takes it, never miss one. Likewise
//! [`Outbox::is_idle`] may be told late, never early.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use wayferry_mux::{Backlog, is_content};
use wayferry_proto::{Arrival, StreamId, Transmit};

use crate::wake::Wake;

/// What both threads see.
pub(crate) struct Outbox {
    queue: Mutex<Vec<Transmit>>,
    /// Content bytes in `queue` or being taken from it.
    waiting: AtomicU64,
    /// Content bytes that the thread has taken and not sent.
    taken: AtomicU64,
    /// Something of any class may wait to be sent.
    busy: AtomicBool,
    wake: Arc<Wake>,
}

impl Outbox {
    pub(crate) fn new(wake: Arc<Wake>) -> Self {
        let (waiting, taken, busy) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        Self { queue: Mutex::default(), waiting, taken, busy, wake }
    }

    /// Content bytes handed over and not sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.waiting.load(Ordering::Acquire) + self.taken.load(Ordering::Acquire)
    }

    /// Whether all that was handed over, of every class, is sent or dropped.
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Thread: all that waits. Pass the number to [`Outbox::publish`] once the transmits are counted elsewhere.
    pub(crate) fn take(&self) -> (Vec<Transmit>, u64) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut *queue), self.waiting.load(Ordering::Acquire))
    }

    /// Thread: wakes the run loop, for which something is new.
    pub(crate) fn rouse(&self) {
        self.wake.raise();
    }

    /// Thread: `rest` of what it took is still unsent. Wakes the run loop when that made room; it hands over up to
    /// `ahead`, see [`LinkState::ahead`](wayferry_proto::LinkState::ahead).
    pub(crate) fn publish(&self, level: &mut Level, counted: u64, rest: Backlog, ahead: u64) {
        let before = self.taken.load(Ordering::Acquire) + counted;
        self.taken.store(rest.content, Ordering::Release);
        self.waiting.fetch_sub(counted, Ordering::AcqRel);
        if rest.total == 0 && !self.is_idle() {
            let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            self.busy.store(!queue.is_empty(), Ordering::Release);
        }
        if level.makes_room(before, rest.content, ahead / 2) {
            self.wake.raise();
        }
    }
}

/// Remembers whether the run loop may be waiting for room; the thread's own.
#[derive(Default)]
pub(crate) struct Level {
    /// Since the last wake-up there was more than the mark.
    high: bool,
}

impl Level {
    /// The run loop hands over until a window is full; it is told once when half of that is gone, and once more when
    /// all is. The mark may move in between, because the window does.
    fn makes_room(&mut self, before: u64, now: u64, mark: u64) -> bool {
        self.high |= before.max(now) >= mark;
        let emptied = now == 0 && before > 0;
        let fell = self.high && now < mark;
        self.high &= !fell;
        emptied || fell
    }
}

/// The run loop's end: knows which of its streams carry content.
pub(crate) struct Feeder {
    outbox: Arc<Outbox>,
    content: HashSet<StreamId>,
    over: bool,
}

impl Feeder {
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self { outbox, content: HashSet::new(), over: false }
    }

    /// Queues a transmit. Whether the queue was empty, so that the thread has to be told. After the last arrival
    /// no thread takes anything, so nothing is queued.
    pub(crate) fn feed(&mut self, transmit: Transmit) -> bool {
        if self.over {
            return false;
        }
        let bytes = self.count(&transmit);
        let mut queue = self.outbox.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.outbox.waiting.fetch_add(bytes, Ordering::AcqRel);
        self.outbox.busy.store(true, Ordering::Release);
        queue.push(transmit);
        queue.len() == 1
    }

    /// The session sees this arrival: a stopped stream carries nothing any more, and a closed connection no stream.
    pub(crate) fn observe(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Stopped { stream, .. } => {
                self.content.remove(stream);
            }
            Arrival::Closed { .. } => self.over = true,
            _ => {}
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wayferry_proto::{Class, CloseReason, Priority};

    use super::*;

    fn outbox() -> Arc<Outbox> {
        Arc::new(Outbox::new(Arc::new(Wake::new().unwrap())))
    }

    fn open(feeder: &mut Feeder, stream: u64, class: Class) {
        feeder.feed(Transmit::Open { stream: StreamId(stream), priority: Priority::new(class, 0) });
    }

    fn data(feeder: &mut Feeder, stream: u64, length: usize, finish: bool) {
        let bytes = Bytes::from(vec![0; length]);
        feeder.feed(Transmit::Data { stream: StreamId(stream), bytes, finish });
    }

    #[test]
    fn only_content_counts_and_moves_with_the_thread() {
        let (outbox, mut level) = (outbox(), Level::default());
        let mut feeder = Feeder::new(Arc::clone(&outbox));
        open(&mut feeder, 0, Class::Content);
        open(&mut feeder, 1, Class::Wayland);
        data(&mut feeder, 0, 100, false);
        data(&mut feeder, 1, 1000, false);
        assert_eq!(outbox.unsent(), 100);
        let (transmits, counted) = outbox.take();
        assert_eq!((transmits.len(), counted), (4, 100));
        data(&mut feeder, 0, 10, true);
        outbox.publish(&mut level, counted, Backlog { total: 60, content: 60 }, 1000);
        assert_eq!(outbox.unsent(), 70);
        // After its end a stream carries nothing.
        data(&mut feeder, 0, 10, false);
        assert_eq!(outbox.unsent(), 70);
    }

    #[test]
    fn it_is_idle_once_all_that_was_handed_over_is_sent() {
        let (outbox, mut level) = (outbox(), Level::default());
        let mut feeder = Feeder::new(Arc::clone(&outbox));
        assert!(outbox.is_idle());
        open(&mut feeder, 1, Class::Wayland);
        data(&mut feeder, 1, 1000, false);
        assert!(!outbox.is_idle() && outbox.unsent() == 0);
        let (_, counted) = outbox.take();
        outbox.publish(&mut level, counted, Backlog { total: 400, content: 0 }, 1000);
        assert!(!outbox.is_idle(), "the link has not taken all of it");
        data(&mut feeder, 1, 10, false);
        outbox.publish(&mut level, 0, Backlog::default(), 1000);
        assert!(!outbox.is_idle(), "more has come since");
        let (_, counted) = outbox.take();
        outbox.publish(&mut level, counted, Backlog::default(), 1000);
        assert!(outbox.is_idle());
    }

    #[test]
    fn room_is_told_once_at_half_and_once_at_nothing() {
        let mut level = Level::default();
        assert!(!level.makes_room(0, 90, 50));
        assert!(!level.makes_room(90, 50, 50));
        assert!(level.makes_room(50, 49, 50));
        assert!(!level.makes_room(49, 20, 50));
        assert!(level.makes_room(20, 0, 50));
        assert!(!level.makes_room(0, 0, 50));
        assert!(level.makes_room(10, 0, 50), "handed over and sent in one step");
    }

    #[test]
    fn a_window_that_grows_makes_room_too() {
        let mut level = Level::default();
        assert!(!level.makes_room(0, 90, 50));
        assert!(level.makes_room(90, 80, 200));
    }

    #[test]
    fn nothing_is_queued_after_the_end() {
        let outbox = outbox();
        let mut feeder = Feeder::new(Arc::clone(&outbox));
        feeder.observe(&Arrival::Closed { reason: CloseReason::Done });
        open(&mut feeder, 0, Class::Content);
        data(&mut feeder, 0, 100, false);
        assert_eq!((outbox.take().0.len(), outbox.unsent()), (0, 0));
    }
}
