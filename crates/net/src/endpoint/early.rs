//! Whether the peer took the early data.
//!
//! Known when the handshake is over, and from then on for good. Invariant: a caller that asks before that is woken.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The question, and its answer.
#[derive(Debug)]
pub(super) struct Early(Mutex<State>);

#[derive(Debug)]
enum State {
    Open(Vec<Waker>),
    Known(Verdict),
}

/// What became of early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The peer took it.
    Taken,
    /// The peer did not take it, or there was none.
    Refused,
    /// The handshake failed.
    Failed,
}

impl Early {
    /// There is none.
    pub(super) fn none() -> Self {
        Self(Mutex::new(State::Known(Verdict::Refused)))
    }

    /// It was sent, or may be on its way.
    pub(super) fn open() -> Self {
        Self(Mutex::new(State::Open(Vec::new())))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(*self.lock(), State::Open(_))
    }

    pub(super) fn is_taken(&self) -> bool {
        matches!(*self.lock(), State::Known(Verdict::Taken))
    }

    pub(super) fn settle(&self, verdict: Verdict) {
        let before = std::mem::replace(&mut *self.lock(), State::Known(verdict));
        if let State::Open(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Verdict> {
        match &mut *self.lock() {
            State::Known(verdict) => Poll::Ready(*verdict),
            State::Open(wakers) => {
                if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
