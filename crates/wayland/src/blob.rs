//! Blobs: contents too large for a message, sent aside and named by hash.
//!
//! The sender need not send again what the receiver surely still has. Invariant: what [`Sent`] relies on, a
//! [`Kept`] that took in the same blobs in the same order holds.

use std::collections::{HashMap, VecDeque};
use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::io::{Errno, pread};
use wayferry_proto::MAX_BLOB;
use xxhash_rust::xxh3::xxh3_128;

use crate::fuse;

/// The name of a content. Not cryptographic: a peer that makes two contents collide confuses only its own session.
pub fn hash(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Bytes of blobs that a receiver keeps; then the oldest go.
const MAX_KEPT: usize = 16 << 20;

/// Bytes of blobs after which a sender sends one anew. With the longest blob on top it is far below [`MAX_KEPT`].
const MAX_RELIED_ON: usize = 4 << 20;

/// The blobs that a receiver has.
#[derive(Debug, Default)]
pub struct Kept {
    by_hash: HashMap<u128, Rc<[u8]>>,
    /// Oldest first.
    order: VecDeque<u128>,
    bytes: usize,
}

impl Kept {
    /// Takes in a blob; one that is here already counts as new again.
    pub fn add(&mut self, hash: u128, blob: Rc<[u8]>) {
        self.bytes += blob.len();
        if let Some(old) = self.by_hash.insert(hash, blob) {
            self.bytes -= old.len();
            self.order.retain(|other| *other != hash);
        }
        self.order.push_back(hash);
        while self.bytes > MAX_KEPT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.by_hash.remove(&oldest).map_or(0, |blob| blob.len());
        }
    }

    /// The blob of that name.
    pub fn of(&self, hash: u128) -> Option<&Rc<[u8]>> {
        self.by_hash.get(&hash)
    }

    /// Every blob, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u128, &Rc<[u8]>)> {
        self.order.iter().filter_map(|hash| Some((*hash, self.by_hash.get(hash)?)))
    }
}

/// What a sender has sent lately.
#[derive(Debug, Default)]
pub struct Sent {
    /// Names and lengths, oldest first.
    recent: VecDeque<(u128, usize)>,
    bytes: usize,
}

impl Sent {
    /// Whether a blob that is about to be named must be sent first; it then counts as sent.
    pub fn must_send(&mut self, hash: u128, length: usize) -> bool {
        if self.recent.iter().any(|(sent, _)| *sent == hash) {
            return false;
        }
        self.recent.push_back((hash, length));
        self.bytes += length;
        while self.bytes > MAX_RELIED_ON {
            let Some((_, oldest)) = self.recent.pop_front() else { break };
            self.bytes -= oldest;
        }
        true
    }
}

/// Why a file cannot become a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// It is announced as this large, more than [`MAX_BLOB`].
    TooLarge { length: u32 },
    /// It ends at `end`, before the announced length.
    Short { end: usize, length: u32 },
    /// Another program serves it, and might not answer.
    Fuse,
    /// The system refused.
    Io(Errno),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { length } => write!(f, "a file of {length} bytes, expected at most {MAX_BLOB}"),
            Self::Short { end, length } => write!(f, "the file ends at byte {end}, expected {length} bytes"),
            Self::Fuse => f.write_str("a file that a program serves"),
            Self::Io(errno) => write!(f, "cannot read the file: {errno}"),
        }
    }
}

/// The first `length` bytes of a file. It is read, never mapped: its owner may shrink it meanwhile.
pub(crate) fn read(fd: impl AsFd, length: u32) -> Result<Vec<u8>, ReadError> {
    if length > MAX_BLOB {
        return Err(ReadError::TooLarge { length });
    }
    if fuse::may_wait(&fd) {
        return Err(ReadError::Fuse);
    }
    let mut bytes = vec![0; length as usize];
    let mut end = 0;
    while end < bytes.len() {
        match pread(&fd, &mut bytes[end..], end as u64) {
            Ok(0) => return Err(ReadError::Short { end, length }),
            Ok(count) => end += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ReadError::Io(errno)),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Each case moves up to 160 MiB.
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Blobs used over and over, in any order: none is named that the receiver does not have.
        #[test]
        fn what_is_not_sent_again_is_still_kept(uses in proptest::collection::vec(0u128..40, 60..80)) {
            let (mut sent, mut kept) = (Sent::default(), Kept::default());
            for hash in uses {
                // The length belongs to the content, so to the name.
                let length = (hash as usize % 8 + 1) * (512 << 10);
                if sent.must_send(hash, length) {
                    kept.add(hash, vec![0; length].into());
                }
                prop_assert!(kept.of(hash).is_some());
                prop_assert!(kept.iter().map(|(_, blob)| blob.len()).sum::<usize>() <= MAX_KEPT);
            }
        }
    }
}
