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

    /// Whether what comes next is too large to be copied to something before it.
    pub(super) fn begins_large(&self) -> bool {
        self.parts.front().is_some_and(|part| part.len() >= LARGE)
    }

    /// Puts what was taken before everything else, in its order.
    pub(super) fn put_back(&mut self, parts: VecDeque<Bytes>) {
        for part in parts.into_iter().rev() {
            self.len += part.len();
            self.parts.push_front(part);
        }
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.parts.push_back(std::mem::take(&mut self.tail).into_vec().into());
        }
    }
}

/// Bytes that have left and may have to leave once more.
#[derive(Debug, Default)]
pub(super) struct Kept {
    parts: VecDeque<Bytes>,
    /// How many bytes were before them.
    begin: u64,
    len: usize,
}

impl Kept {
    /// Bytes in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where in all bytes that ever left they begin.
    pub(super) fn begin(&self) -> u64 {
        self.begin
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        self.len += bytes.len();
        if !bytes.is_empty() {
            self.parts.push_back(bytes);
        }
    }

    /// Drops what is before `offset`.
    pub(super) fn release(&mut self, offset: u64) {
        while self.begin < offset
            && let Some(first) = self.parts.front_mut()
        {
            let gone = first.len().min(usize::try_from(offset - self.begin).unwrap_or(usize::MAX));
            drop(first.split_to(gone));
            if first.is_empty() {
                self.parts.pop_front();
            }
            self.begin += gone as u64;
            self.len -= gone;
        }
    }

    /// Takes everything out.
    pub(super) fn take(&mut self) -> VecDeque<Bytes> {
        self.len = 0;
        std::mem::take(&mut self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_leaves_once_more() {
        let mut queue = Queue::default();
        let mut kept = Kept::default();
        queue.push(Bytes::from_static(b"abcdefgh"));
        for max in [3, 2] {
            kept.push(queue.take(max));
        }
        kept.release(1);
        kept.release(4);
        kept.release(2);
        assert_eq!((kept.begin(), kept.len()), (4, 1));
        queue.put_back(kept.take());
        assert_eq!((queue.len(), kept.len()), (4, 0));
        let left: Vec<u8> =
            std::iter::from_fn(|| (!queue.is_empty()).then(|| queue.take(9))).flatten().collect();
        assert_eq!(left, b"efgh");
    }
}
