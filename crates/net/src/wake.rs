//! A wake-up that poll(2) understands: one eventfd.
//!
//! Any thread may raise it, one thread polls and lowers it. It carries no count and no reason: the thread that is woken
//! looks at everything that could have happened.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd, non-blocking and close-on-exec.
#[derive(Debug)]
pub(crate) struct Wake(OwnedFd);

impl Wake {
    /// Fails only when the process has no file descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the fd readable. A full counter (EAGAIN) means that it already is.
    pub(crate) fn raise(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes the fd unreadable until the next [`Wake::raise`]. EAGAIN means that it already is.
    pub(crate) fn lower(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
