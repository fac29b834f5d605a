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
        drop(state);
        self.order();
    }

    /// Wakes the thread.
    pub(crate) fn order(&self) {
        raise(&self.orders);
    }

    /// The thread is to end.
    pub(crate) fn close(&self) {
        self.lock().over = true;
        self.order();
    }

    /// For the thread: what is wanted; `None` if it is to end.
    pub(crate) fn take_orders(&self) -> Option<Option<Wanted>> {
        lower(&self.orders);
        let state = self.lock();
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
        drop(state);
        self.wake();
    }

    /// Wakes the run loop.
    pub(crate) fn wake(&self) {
        raise(&self.captured);
    }

    /// The next that was captured.
    pub(crate) fn poll_captured(&self) -> Option<Captured> {
        let captured = self.lock().captured.pop_front();
        if captured.is_none() {
            lower(&self.captured);
        }
        // What came between the two is not to be slept over.
        captured.or_else(|| {
            let captured = self.lock().captured.pop_front();
            captured.inspect(|_| self.wake())
        })
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

/// Makes it unreadable.
fn lower(fd: &OwnedFd) {
    let _ = rustix::io::read(fd, &mut [0; 8]);
}

/// Frames that wait for the run loop: a second or two.
const MAX_CAPTURED: usize = 100;

#[cfg(test)]
mod tests {
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
}
