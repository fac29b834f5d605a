//! Encoded frames on their way from a thread that captures to the run loop, and how they are wanted.
//!
//! Invariants: no call waits for the thread; what is not taken is bounded, and the newest stays.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_audio::{FrameSize, Position};

use crate::Codec;

/// How sound is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The codec.
    pub codec: Codec,
    /// Bits in a second, where the codec has a choice.
    pub rate: u32,
    /// How much sound a frame has.
    pub frame: FrameSize,
}

/// What was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The codec that was wanted.
    pub codec: Codec,
    /// When it was captured, by the sound clock, which begins with the session.
    pub capture: Position,
    /// Sound, or none.
    pub content: Content,
}

/// Sound that was captured, or silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A frame of sound.
    Frame {
        /// Sound begins with it, after silence.
        start: bool,
        /// In the codec.
        payload: Vec<u8>,
    },
    /// Silence begins, and nothing follows until it ends.
    Idle,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Readable while there is something for the run loop.
    captured: OwnedFd,
    /// Readable while there are orders for the thread.
    orders: OwnedFd,
}

#[derive(Debug, Default)]
struct State {
    captured: VecDeque<Captured>,
    wanted: Option<Wanted>,
    over: bool,
    /// Whether each descriptor is readable, or will be at once.
    woken: bool,
    ordered: bool,
}

impl Outbox {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { state: Mutex::default(), captured: fd()?, orders: fd()? })
    }

    /// How sound is wanted from now on. What was captured before is dropped when that changes to or from `None`, or to
    /// another codec.
    pub(crate) fn want(&self, wanted: Option<Wanted>) {
        let mut state = self.lock();
        if state.wanted == wanted {
            return;
        }
        if state.wanted.map(|wanted| wanted.codec) != wanted.map(|wanted| wanted.codec) {
            state.captured.clear();
        }
        state.wanted = wanted;
        self.raise_orders(state);
    }

    /// Wakes the thread.
    pub(crate) fn order(&self) {
        self.raise_orders(self.lock());
    }

    /// The thread is to end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.over = true;
        self.raise_orders(state);
    }

    /// For the thread: what is wanted; `None` if it is to end.
    pub(crate) fn take_orders(&self) -> Option<Option<Wanted>> {
        let mut state = self.lock();
        state.ordered = state.ordered && !lower(&self.orders);
        (!state.over).then_some(state.wanted)
    }

    /// For the thread: readable while there are orders.
    pub(crate) fn orders(&self) -> BorrowedFd<'_> {
        self.orders.as_fd()
    }

    /// Hands something to the run loop, if it is still wanted so. One that takes nothing loses the oldest.
    pub(crate) fn give(&self, captured: Captured) {
        let mut state = self.lock();
        if state.wanted.is_none_or(|wanted| wanted.codec != captured.codec) {
            return;
        }
        if state.captured.len() >= MAX_CAPTURED {
            state.captured.pop_front();
        }
        state.captured.push_back(captured);
        self.raise_captured(state);
    }

    /// Wakes the run loop.
    pub(crate) fn wake(&self) {
        self.raise_captured(self.lock());
    }

    /// The next that was captured.
    pub(crate) fn poll_captured(&self) -> Option<Captured> {
        let mut state = self.lock();
        let captured = state.captured.pop_front();
        if captured.is_none() {
            state.woken = state.woken && !lower(&self.captured);
        }
        captured
    }

    /// Tells the run loop, if it was not told before. Without the lock: it would wake up only to wait for it.
    fn raise_captured(&self, mut state: MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.woken, true) {
            drop(state);
            raise(&self.captured);
        }
    }

    /// The same for the thread.
    fn raise_orders(&self, mut state: MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.ordered, true) {
            drop(state);
            raise(&self.orders);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Outbox {
    /// Readable while there may be something for the run loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.captured.as_fd()
    }
}

/// Makes an event descriptor readable.
fn raise(fd: &OwnedFd) {
    // Fails only when it is readable already, and its counter full.
    let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
}

/// Makes it unreadable; says whether it was readable.
fn lower(fd: &OwnedFd) -> bool {
    rustix::io::read(fd, &mut [0; 8]).is_ok()
}

/// Frames that wait for the run loop: a second or two.
const MAX_CAPTURED: usize = 100;

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn what_is_not_taken_is_bounded_and_the_newest_stays() {
        let outbox = Outbox::new().unwrap();
        let frame = |at| Captured { codec: Codec::Pcm, capture: Position(at), content: Content::Idle };
        outbox.give(frame(0));
        assert_eq!(outbox.lock().captured.len(), 0, "it was not wanted");
        outbox.want(Some(Wanted { codec: Codec::Pcm, rate: 0, frame: FrameSize::Ms10 }));
        (0..1000).for_each(|at| outbox.give(frame(at)));
        let state = outbox.lock();
        assert_eq!((state.captured.len(), state.captured.back()), (MAX_CAPTURED, Some(&frame(999))));
    }

    #[test]
    fn descriptors_are_readable_while_there_is_something() {
        let outbox = Outbox::new().unwrap();
        let is_readable = |fd: BorrowedFd<'_>| {
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&at_once)).unwrap() > 0
        };
        for _ in 0..2 {
            assert!(!is_readable(outbox.orders()) && !is_readable(outbox.as_fd()));
            outbox.order();
            outbox.wake();
            outbox.order();
            outbox.wake();
            assert!(is_readable(outbox.orders()) && is_readable(outbox.as_fd()));
            assert_eq!((outbox.take_orders(), outbox.poll_captured()), (Some(None), None));
        }
        outbox.close();
        assert!(is_readable(outbox.orders()));
    }
}
