//! When a processor may look at a buffer (`DMA_BUF_IOCTL_SYNC` of the kernel's `dma-buf.h`).
#![expect(unsafe_code, reason = "ioctl(2) has no safe form")]

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl, opcode};

/// A buffer that a processor looks at now and then.
#[derive(Debug)]
pub(crate) struct CpuAccess(OwnedFd);

/// It is looking: caches are in step until this is dropped.
#[derive(Debug)]
pub(crate) struct Looking<'a>(&'a CpuAccess);

impl CpuAccess {
    pub(crate) fn of(fd: &OwnedFd) -> Result<Self, Errno> {
        fd.try_clone().map(Self).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
    }

    /// Begins to look; waits for a device that is writing.
    pub(crate) fn begin(&self) -> Result<Looking<'_>, Errno> {
        sync(&self.0, READ | START)?;
        Ok(Looking(self))
    }
}

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        let _ = sync(&self.0.0, READ | END);
    }
}

fn sync(fd: &impl AsFd, flags: u64) -> Result<(), Errno> {
    loop {
        // SAFETY: the request takes a pointer to 64 bits of flags.
        let outcome = unsafe { ioctl(fd, Setter::<{ opcode::write::<u64>(b'b', 0) }, u64>::new(flags)) };
        match outcome {
            Err(Errno::INTR | Errno::AGAIN) => {}
            outcome => return outcome,
        }
    }
}

/// `DMA_BUF_SYNC_READ`, `_START` and `_END`.
const READ: u64 = 1;
const START: u64 = 0;
const END: u64 = 4;
