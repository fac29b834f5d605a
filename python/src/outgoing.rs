//! What a program has written and QUIC has not taken yet, small pieces joined to large ones.
//!
//! It knows no stream: its owner moves [`Outgoing::chunks`] on. [`LIMIT`] is where it says that it has no room;
//! a write is taken whole, so it may hold up to one write more. The invariant: the bytes leave in the order in which
//! they came.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The bytes from which on there is no room.
pub(crate) const LIMIT: usize = 64 * 1024;

/// A queue of bytes.
#[derive(Default)]
pub(crate) struct Outgoing {
    sealed: VecDeque<Bytes>,
    sealed_len: usize,
    tail: BytesMut,
    /// The size of the last block of memory: it doubles, so that a stream of few bytes does not cost much.
    block: usize,
}

impl Outgoing {
    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.sealed_len + self.tail.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len() < LIMIT
    }

    /// Puts `data` at the end: large data as its own chunk, small data behind other small data.
    pub(crate) fn push(&mut self, data: Cow<'_, [u8]>) {
        if data.len() >= LIMIT {
            return self.push_alone(data);
        }
        if self.tail.len() + data.len() > self.tail.capacity() {
            self.seal();
            self.block = (self.block * 2).clamp(FIRST_BLOCK, LIMIT).max(data.len());
            self.tail.reserve(self.block);
        }
        self.tail.extend_from_slice(&data);
    }

    /// Puts `data` at the end as its own chunk, in no more memory than it needs.
    pub(crate) fn push_alone(&mut self, data: Cow<'_, [u8]>) {
        if data.is_empty() {
            return;
        }
        self.seal();
        self.sealed_len += data.len();
        self.sealed.push_back(owned(data));
    }

    /// Everything, as chunks in order; the caller takes from the front and then calls [`Self::taken`].
    pub(crate) fn chunks(&mut self) -> &mut VecDeque<Bytes> {
        self.seal();
        &mut self.sealed
    }

    /// Says that `len` bytes of [`Self::chunks`] are gone.
    pub(crate) fn taken(&mut self, len: usize) {
        self.sealed_len -= len;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.sealed_len += self.tail.len();
            self.sealed.push_back(self.tail.split().freeze());
        }
    }
}

/// As [`Bytes`]: one copy, for any kind of object.
pub(crate) fn owned(data: Cow<'_, [u8]>) -> Bytes {
    match data {
        Cow::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

const FIRST_BLOCK: usize = 4 * 1024;
