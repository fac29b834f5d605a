//! `wl_shm`: the program's pixel memory. Nothing of it crosses the link.
//!
//! Memory that cannot become shorter is read where it lies (`mapping`), once much of it is read at a time; all other
//! with `pread`: a program that shrinks its file gets an error of its own instead of taking the process down.
//! A worker reads it either way, too. Invariant: every read is inside the pool's size as last announced.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use rustix::io::{Errno, pread};

use crate::mapping::{Mapped, Mapping};
use crate::workers::Workers;

/// Pools that one program may have open, with those of which only buffers are left: a descriptor each.
pub(crate) const MAX_POOLS: usize = 8192;

/// A `wl_shm_pool`; its descriptor is closed when it and its buffers are gone: by a worker if it is large, as the
/// kernel may have to free all of it then.
#[derive(Debug)]
pub(crate) struct Pool {
    /// There until it is dropped.
    fd: Option<Arc<OwnedFd>>,
    size: Cell<u64>,
    mapping: RefCell<Option<Arc<Mapping>>>,
    mapped: Mapped,
    workers: Workers,
    /// Counts it among the program's.
    _counted: Rc<()>,
}

/// How many pools of a program are open, and how much of them is mapped.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    open: Rc<()>,
    mapped: Mapped,
    workers: Workers,
}

impl Pools {
    /// None so far.
    pub(super) fn new(workers: &Workers) -> Self {
        Self { workers: workers.clone(), ..Self::default() }
    }

    /// Another one, unless there are too many.
    pub(crate) fn open(&self, fd: OwnedFd, size: u64) -> Option<Rc<Pool>> {
        let open = Rc::strong_count(&self.open) - 1;
        let pool = || Pool {
            fd: Some(Arc::new(fd)),
            size: Cell::new(size),
            mapping: RefCell::default(),
            mapped: self.mapped.clone(),
            workers: self.workers.clone(),
            _counted: Rc::clone(&self.open),
        };
        (open < MAX_POOLS).then(|| Rc::new(pool()))
    }
}

impl Pool {
    fn fd(&self) -> &Arc<OwnedFd> {
        self.fd.as_ref().expect("it is not dropped")
    }

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
        Ok(self.fd().try_clone()?.into())
    }

    /// Its first `end` bytes, where they lie, if `bytes` of them are to be read; `None` if [`Self::read`] must do.
    pub(super) fn mapped(&self, end: u64, bytes: u64) -> Option<Arc<Mapping>> {
        let mut mapping = self.mapping.borrow_mut();
        let reaches = |mapping: &&Arc<Mapping>| end <= mapping.bytes().len() as u64;
        if let Some(mapping) = mapping.as_ref().filter(reaches) {
            return Some(Arc::clone(mapping));
        }
        if bytes < LEAST_MAPPED {
            return None;
        }
        // One that is too short makes room for it.
        *mapping = None;
        *mapping = Mapping::new(self.fd(), self.size(), &self.mapped).map(Arc::new);
        mapping.clone()
    }

    /// The same for a worker, which reads it where it lies or by calls.
    pub(super) fn memory(&self, end: u64, bytes: u64) -> Memory {
        match self.mapped(end, bytes) {
            Some(mapping) => Memory::Mapped(mapping),
            None => Memory::File(Arc::clone(self.fd())),
        }
    }

    /// Fills `into` from the file.
    ///
    /// # Errors
    /// When the file is shorter than the program said, or cannot be read.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ReadError> {
        read(self.fd(), offset, into)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.size() >= WORTH_A_WORKER {
            self.workers.free((self.mapping.take(), self.fd.take()));
        }
    }
}

/// The memory of a pool, for a worker.
#[derive(Debug)]
pub(super) enum Memory {
    Mapped(Arc<Mapping>),
    File(Arc<OwnedFd>),
}

/// As [`Pool::read`].
pub(super) fn read(file: &impl AsFd, mut offset: u64, mut into: &mut [u8]) -> Result<(), ReadError> {
    while !into.is_empty() {
        match pread(file, &mut *into, offset) {
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

/// Bytes that are worth a worker: to free fewer takes a fifth of a millisecond at most.
const WORTH_A_WORKER: u64 = 1 << 20;
/// Bytes read at a time from which on a mapping pays.
const LEAST_MAPPED: u64 = 256 << 10;

/// `wl_shm.error.invalid_fd`.
pub(super) const INVALID_FD: u32 = 2;
