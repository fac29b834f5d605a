//! Blobs: contents too large for a message, sent once and named by hash.

use std::os::fd::AsFd;

use rustix::io::{Errno, pread};
use wayferry_proto::MAX_BLOB;
use xxhash_rust::xxh3::xxh3_128;

/// The name of a content. Not cryptographic: a peer that makes two contents collide confuses only its own session.
pub fn hash(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

/// Why a file cannot become a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// It is announced as this large, more than [`MAX_BLOB`].
    TooLarge { length: u32 },
    /// It ends at `end`, before the announced length.
    Short { end: usize, length: u32 },
    /// The system refused.
    Io(Errno),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { length } => write!(f, "a file of {length} bytes, expected at most {MAX_BLOB}"),
            Self::Short { end, length } => write!(f, "the file ends at byte {end}, expected {length} bytes"),
            Self::Io(errno) => write!(f, "cannot read the file: {errno}"),
        }
    }
}

/// The first `length` bytes of a file. It is read, never mapped: whoever owns it may shrink it meanwhile.
pub(crate) fn read(fd: impl AsFd, length: u32) -> Result<Vec<u8>, ReadError> {
    if length > MAX_BLOB {
        return Err(ReadError::TooLarge { length });
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
