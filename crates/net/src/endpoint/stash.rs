//! What came with early data before the connection was handed out.
//!
//! It had to be taken to know that there is any. Invariant: at most one of each kind, as the rest stays with noq.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use noq::{RecvStream, SendStream};

/// Until it is taken.
#[derive(Debug, Default)]
pub(super) struct Stash(Mutex<Option<Box<Stashed>>>);

#[derive(Debug, Default)]
pub(super) struct Stashed {
    pub(super) uni: VecDeque<RecvStream>,
    pub(super) bi: VecDeque<(SendStream, RecvStream)>,
    pub(super) datagrams: VecDeque<Bytes>,
}

impl Stash {
    pub(super) fn new(stashed: Stashed) -> Self {
        Self(Mutex::new(Some(Box::new(stashed))))
    }

    pub(super) fn uni(&self) -> Option<RecvStream> {
        self.lock().as_mut()?.uni.pop_front()
    }

    pub(super) fn bi(&self) -> Option<(SendStream, RecvStream)> {
        self.lock().as_mut()?.bi.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Stashed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
