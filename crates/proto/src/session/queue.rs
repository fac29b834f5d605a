//! Bytes that wait to leave, in order.
//!
//! Knows no channels. Invariant: what comes out is what went in, each byte once.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::wire::Writer;

/// Parts of this length and more are handed on as they are, not copied into a batch.
const LARGE: usize = 16 << 10;

/// Bytes in order. Small parts are put together, large ones kept as they are.
#[derive(Debug, Default)]
pub(super) struct Queue {
    parts: VecDeque<Bytes>,
    /// After all `parts`.
    tail: Writer,
    len: usize,
}

impl Queue {
    /// Bytes in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn append(&mut self, write: impl FnOnce(&mut Writer)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.len += self.tail.len() - before;
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.len() < LARGE {
            return self.append(|writer| {
                writer.raw(&bytes);
            });
        }
        self.len += bytes.len();
        self.seal();
        self.parts.push_back(bytes);
    }

    /// Takes between 1 and `max` bytes, if there are any.
    pub(super) fn take(&mut self, max: usize) -> Bytes {
        self.seal();
        let Some(first) = self.parts.front_mut() else { return Bytes::new() };
        let bytes = first.split_to(first.len().min(max));
        if first.is_empty() {
            self.parts.pop_front();
        }
        self.len -= bytes.len();
        bytes
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.parts.push_back(std::mem::take(&mut self.tail).into_vec().into());
        }
    }
}
