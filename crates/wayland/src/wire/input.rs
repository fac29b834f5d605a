//! Received bytes and descriptors, cut into messages.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use crate::fuse;

use super::{
    Error, HEADER_LEN, MAX_FDS_PER_SEND, MAX_MESSAGE_LEN, MAX_QUEUED_FDS, MAX_QUEUED_IN, RawMessage,
};

/// What arrived from a socket and is not consumed yet.
///
/// Take every message ([`InBuffer::next_message`]) before adding more: then fewer than [`MAX_MESSAGE_LEN`]
/// bytes stay here, and the limits are met by no honest peer.
#[derive(Debug, Default)]
pub struct InBuffer {
    bytes: Vec<u8>,
    /// Bytes at the front of `bytes` that were handed out; removed when more are added.
    taken: usize,
    /// Bytes that were handed out and removed.
    removed: u64,
    fds: VecDeque<OwnedFd>,
}

impl InBuffer {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what one read returned: bytes in any splitting, and the descriptors that came with them.
    ///
    /// # Errors
    /// [`Error::TooManyFds`] beyond [`MAX_QUEUED_FDS`], and [`Error::QueueFull`] beyond [`MAX_QUEUED_IN`];
    /// the buffer is then of no further use.
    pub fn push(&mut self, bytes: &[u8], fds: impl IntoIterator<Item = OwnedFd>) -> Result<(), Error> {
        self.bytes.drain(..self.taken);
        self.removed += self.taken as u64;
        self.taken = 0;
        self.fds.extend(fds);
        if self.fds.len() > MAX_QUEUED_FDS {
            return Err(Error::TooManyFds { limit: MAX_QUEUED_FDS });
        }
        if bytes.len() > MAX_QUEUED_IN - self.bytes.len() {
            return Err(Error::QueueFull { limit: MAX_QUEUED_IN });
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole message, if one is here.
    ///
    /// # Errors
    /// [`Error::Length`] if its header is impossible. Message borders are lost then: close the connection.
    pub fn next_message(&mut self) -> Result<Option<RawMessage>, Error> {
        let rest = &self.bytes[self.taken..];
        let Some((header, _)) = rest.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let [a, b, c, d, e, f, g, h] = *header;
        let object = u32::from_ne_bytes([a, b, c, d]);
        let word = u32::from_ne_bytes([e, f, g, h]);
        let (length, opcode) = ((word >> 16) as usize, (word & 0xFFFF) as u16);
        if !(HEADER_LEN..=MAX_MESSAGE_LEN).contains(&length) || !length.is_multiple_of(4) {
            return Err(Error::Length { length, object, opcode });
        }
        let Some(body) = rest.get(HEADER_LEN..length) else { return Ok(None) };
        let message = RawMessage { object, opcode, body: body.to_vec() };
        self.taken += length;
        Ok(Some(message))
    }

    /// Bytes that have come since the beginning.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.removed + self.bytes.len() as u64
    }

    /// Bytes of messages that have been taken since the beginning.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.removed + self.taken as u64
    }

    /// The descriptors that no message has used yet, oldest first: for [`super::decode`].
    pub fn fds_mut(&mut self) -> &mut VecDeque<OwnedFd> {
        &mut self.fds
    }

    /// Whether another read fits: room for one whole message and for the descriptors of one read.
    #[must_use]
    pub fn has_room(&self) -> bool {
        MAX_QUEUED_IN - (self.bytes.len() - self.taken) >= MAX_MESSAGE_LEN
            && MAX_QUEUED_FDS - self.fds.len() >= MAX_FDS_PER_SEND
    }

    /// Bytes that are not part of a message taken so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Whether neither bytes nor descriptors are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.fds.is_empty()
    }
}

impl Drop for InBuffer {
    fn drop(&mut self) {
        self.fds.drain(..).for_each(fuse::discard);
    }
}
