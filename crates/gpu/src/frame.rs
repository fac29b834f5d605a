//! Pixels that were read of a buffer, in memory that this process owns.
//!
//! Invariant: rows lie one behind the other from the first byte on, in any layout of the buffer.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::{Errno, pread};
use wayferry_pixels::{Format, Layout, Size};

/// See the module. Only what was asked for is there.
#[derive(Debug, Clone)]
pub struct Frame {
    memory: Rc<OwnedFd>,
    took: Duration,
}

impl Frame {
    /// Pixels in a memory file, which it took so long to read.
    #[must_use]
    pub fn new(memory: Rc<OwnedFd>, took: Duration) -> Self {
        Self { memory, took }
    }

    /// How long that took, from asking to the answer.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// How the pixels of a buffer of this size lie in it, read as this format.
    #[must_use]
    pub fn layout(size: Size, format: Format) -> Option<Layout> {
        Layout::new(0, u64::from(size.width()) * format.bytes_per_pixel() as u64, size, format).ok()
    }

    /// Fills `into` from byte `offset` on.
    ///
    /// # Errors
    /// As pread(2); [`Errno::NODATA`] behind its end.
    pub fn read(&self, mut offset: u64, mut into: &mut [u8]) -> Result<(), Errno> {
        while !into.is_empty() {
            match pread(&*self.memory, &mut *into, offset) {
                Ok(0) => return Err(Errno::NODATA),
                Ok(count) => {
                    offset += count as u64;
                    into = &mut into[count..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}
