//! Encoded messages that wait for a socket.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Arg, Error, HEADER_LEN, MAX_FDS_PER_SEND, MAX_MESSAGE_LEN, padded};

/// Messages to be written, with their descriptors in step.
///
/// Invariant: a descriptor is written with or before the first byte of its message, never more than
/// [`MAX_FDS_PER_SEND`] at once.
#[derive(Debug)]
pub struct OutBuffer {
    bytes: VecDeque<u8>,
    /// Bytes that have left the front of `bytes` since the beginning.
    written: u64,
    /// Each descriptor with the stream offset at which its message starts.
    fds: VecDeque<(u64, OwnedFd)>,
    limit: usize,
}

impl OutBuffer {
    /// An empty queue for at most `limit` bytes (at least one message) that the peer has not taken yet. A
    /// larger limit tolerates a longer pause of the peer and costs that much memory.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limit = limit.max(MAX_MESSAGE_LEN);
        Self { bytes: VecDeque::new(), written: 0, fds: VecDeque::new(), limit }
    }

    /// Appends one message.
    ///
    /// # Errors
    /// [`Error::Length`] if it exceeds [`MAX_MESSAGE_LEN`], [`Error::TooManyFds`] if it alone holds more than
    /// [`MAX_FDS_PER_SEND`], [`Error::InteriorNul`], and [`Error::QueueFull`]. Nothing is queued then, and
    /// the descriptors are closed.
    pub fn encode(&mut self, object: u32, opcode: u16, args: Vec<Arg>) -> Result<(), Error> {
        let length = HEADER_LEN + args.iter().map(encoded_len).sum::<usize>();
        if length > MAX_MESSAGE_LEN {
            return Err(Error::Length { length, object, opcode });
        }
        if args.iter().filter(|arg| matches!(arg, Arg::Fd(_))).count() > MAX_FDS_PER_SEND {
            return Err(Error::TooManyFds { limit: MAX_FDS_PER_SEND });
        }
        if args.iter().any(has_nul) {
            return Err(Error::InteriorNul);
        }
        if length > self.limit - self.bytes.len() {
            return Err(Error::QueueFull { limit: self.limit });
        }
        let start = self.end();
        self.word(object);
        // Fits: `length` is at most `MAX_MESSAGE_LEN`.
        self.word((length as u32) << 16 | u32::from(opcode));
        for arg in args {
            self.argument(arg, start);
        }
        Ok(())
    }

    /// Takes out everything that waits, for a caller that moves it by other means than a [`Socket`](super::Socket).
    pub fn take(&mut self) -> (Vec<u8>, Vec<OwnedFd>) {
        self.written += self.bytes.len() as u64;
        (self.bytes.drain(..).collect(), self.fds.drain(..).map(|(_, fd)| fd).collect())
    }

    /// Bytes that have been written since the beginning.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// As [`Self::written`], with those that wait.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.written + self.bytes.len() as u64
    }

    /// Bytes that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn argument(&mut self, arg: Arg, start: u64) {
        match arg {
            Arg::Int(value) | Arg::Fixed(value) => self.word(value.cast_unsigned()),
            Arg::Uint(value) | Arg::Object(value) | Arg::NewId(value) => self.word(value),
            Arg::Str(None) => self.word(0),
            Arg::Str(Some(string)) => self.string(&string),
            Arg::Array(array) => {
                self.word(array.len() as u32);
                self.padded(&array, 0);
            }
            Arg::Fd(fd) => self.fds.push_back((start, fd)),
        }
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_ne_bytes());
    }

    fn string(&mut self, string: &[u8]) {
        self.word(string.len() as u32 + 1);
        self.padded(string, 1);
    }

    /// Appends `bytes`, `zeros` zero bytes, and padding to a whole word.
    fn padded(&mut self, bytes: &[u8], zeros: usize) {
        self.bytes.extend(bytes);
        let padding = padded(bytes.len() + zeros) - bytes.len();
        self.bytes.extend(std::iter::repeat_n(0, padding));
    }

    /// What the next `sendmsg` may carry: bytes, and the descriptors that go with them.
    pub(super) fn front(&self) -> (Vec<u8>, Vec<BorrowedFd<'_>>) {
        let fds: Vec<_> = self.fds.iter().take(MAX_FDS_PER_SEND).map(|(_, fd)| fd.as_fd()).collect();
        // The message of the first descriptor that does not fit must wait for the next turn.
        let end = self
            .fds
            .get(MAX_FDS_PER_SEND)
            .map_or(self.bytes.len(), |(start, _)| (start - self.written) as usize);
        (self.bytes.range(..end.min(MAX_SEND)).copied().collect(), fds)
    }

    /// Drops what was written: `bytes` bytes and the first `fds` descriptors.
    pub(super) fn advance(&mut self, bytes: usize, fds: usize) {
        self.bytes.drain(..bytes);
        self.written += bytes as u64;
        self.fds.drain(..fds);
    }
}

/// Most bytes in one `sendmsg`: enough to empty a burst in few calls, small enough to copy from the ring.
const MAX_SEND: usize = 32 * 1024;

fn encoded_len(arg: &Arg) -> usize {
    match arg {
        Arg::Int(_) | Arg::Uint(_) | Arg::Fixed(_) | Arg::Object(_) | Arg::NewId(_) | Arg::Str(None) => 4,
        Arg::Str(Some(string)) => 4 + padded(string.len() + 1),
        Arg::Array(array) => 4 + padded(array.len()),
        Arg::Fd(_) => 0,
    }
}

fn has_nul(arg: &Arg) -> bool {
    match arg {
        Arg::Str(Some(string)) => string.contains(&0),
        _ => false,
    }
}
