//! `wl_shm`: the program's pixel memory. Nothing of it crosses the link.
//!
//! Pixels are read with `pread`, never mapped: a program that shrinks its file gets an error of its own instead of
//! taking the process down. Invariant: every read is inside the pool's size as last announced.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::io::{Errno, pread};

/// Pools that one program may have open, with those of which only buffers are left: a descriptor each.
pub(crate) const MAX_POOLS: usize = 8192;

/// A `wl_shm_pool`; its descriptor is closed when it and its buffers are gone.
#[derive(Debug)]
pub(crate) struct Pool {
    fd: OwnedFd,
    size: Cell<u64>,
    /// Counts it among the program's.
    _counted: Rc<()>,
}

/// How many pools of a program are open.
#[derive(Debug, Default)]
pub(crate) struct Pools(Rc<()>);

impl Pools {
    /// Another one, unless there are too many.
    pub(crate) fn open(&self, fd: OwnedFd, size: u64) -> Option<Rc<Pool>> {
        let open = Rc::strong_count(&self.0) - 1;
        let pool = || Pool { fd, size: Cell::new(size), _counted: Rc::clone(&self.0) };
        (open < MAX_POOLS).then(|| Rc::new(pool()))
    }
}

impl Pool {
    pub(crate) fn size(&self) -> u64 {
        self.size.get()
    }

    /// Takes a larger size; pools never shrink.
    pub(crate) fn resize(&self, size: u64) -> Result<(), &'static str> {
        if size < self.size.get() {
            return Err("a pool may not shrink");
        }
        self.size.set(size);
        Ok(())
    }

    /// Its file, for a thread.
    pub(crate) fn file(&self) -> std::io::Result<std::fs::File> {
        Ok(self.fd.try_clone()?.into())
    }

    /// Fills `into` from the file.
    ///
    /// # Errors
    /// When the file is shorter than the program said, or cannot be read.
    pub(crate) fn read(&self, mut offset: u64, mut into: &mut [u8]) -> Result<(), ReadError> {
        while !into.is_empty() {
            match pread(self.fd.as_fd(), &mut *into, offset) {
                Ok(0) => return Err(ReadError::Short { offset }),
                Ok(count) => {
                    offset += count as u64;
                    into = &mut into[count..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ReadError::Io(errno)),
            }
        }
        Ok(())
    }
}

/// Why pixels could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The file ends at this offset, before the buffer does.
    Short { offset: u64 },
    /// The system refused.
    Io(Errno),
    /// They are in a GPU buffer, and have not been read.
    Unread,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short { offset } => {
                write!(f, "the shared memory file ends at byte {offset}, inside the buffer")
            }
            Self::Io(errno) => write!(f, "cannot read the shared memory file: {errno}"),
            Self::Unread => f.write_str("the pixels of a GPU buffer have not been read"),
        }
    }
}

/// `wl_shm.error.invalid_fd`.
pub(super) const INVALID_FD: u32 = 2;
