//! Datagrams that are here and not with noq any more, and what has become of all.
//!
//! noq drops the oldest when it has no room, and does not count them. Invariant: one that noq has given out is given
//! out here, waits here, or is counted as dropped.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// The datagrams of one connection that were taken from noq before a caller asked for them.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    waiting: VecDeque<Bytes>,
    /// What `waiting` costs, as noq counts it.
    size: usize,
    /// Those that noq has given out.
    taken: u64,
    /// Those of `taken` that had no room here.
    without_room: u64,
    /// Those that noq had no room for, as far as is known.
    lost: u64,
}

impl Arrived {
    /// With what came before the connection was given out.
    pub(super) fn new(early: VecDeque<Bytes>) -> Self {
        let size = early.iter().map(cost).sum();
        Self { taken: early.len() as u64, waiting: early, size, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let data = self.waiting.pop_front()?;
        self.size -= cost(&data);
        Some(data)
    }

    /// A caller got one from noq itself.
    pub(super) fn note_taken(&mut self) {
        self.taken += 1;
    }

    /// Takes from noq what it has, at most `most`, and keeps what `unframed` makes of it; whether that was all.
    pub(super) fn take(
        &mut self,
        noq: &noq::Connection,
        most: usize,
        unframed: impl Fn(Bytes) -> Option<Bytes>,
    ) -> bool {
        let mut batch = [const { Bytes::new() }; BATCH];
        let mut left = most;
        while left > 0 {
            let room = left.min(BATCH);
            let polled = pin!(noq.read_many_datagrams(&mut batch[..room]))
                .poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(Ok(count)) = polled else { return true };
            self.taken += count as u64;
            for data in batch[..count].iter_mut().filter_map(|data| unframed(std::mem::take(data))) {
                self.size += cost(&data);
                self.waiting.push_back(data);
            }
            left -= count;
        }
        false
    }

    /// Finds out how many noq had no room for, of `came` that came to it: what is missing once it has none left.
    pub(super) fn count(
        &mut self,
        noq: &noq::Connection,
        came: u64,
        unframed: impl Fn(Bytes) -> Option<Bytes>,
    ) {
        // What comes meanwhile is no reason to stay.
        let missing = usize::try_from(came.saturating_sub(self.taken)).unwrap_or(usize::MAX);
        if self.take(noq, missing, unframed) {
            self.lost = self.lost.max(came.saturating_sub(self.taken));
        }
    }

    /// Makes room as noq does: the oldest go.
    pub(super) fn bound(&mut self, limit: usize) {
        while self.size > limit && self.pop().is_some() {
            self.without_room += 1;
        }
    }

    /// Those that no caller was given.
    pub(super) fn dropped(&self) -> u64 {
        self.lost + self.without_room
    }
}

/// As noq counts it: a datagram that is short takes some memory, too.
fn cost(data: &Bytes) -> usize {
    data.len() + size_of::<Bytes>()
}

/// Datagrams that are asked of noq at once.
const BATCH: usize = 64;
