//! The memory of the buffers: one file, which both compositors know.
//!
//! One of them writes what the other reads; this process maps nothing. The file cannot become shorter, so either may
//! map it without fear. Invariant: a buffer's objects at both ends name the same bytes.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use wayland_client::WEnum;
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_shm::{Format, WlShm};

use crate::error::Error;
use crate::frames::BUFFERS;
use crate::inbox::{BufferId, Owner, Queue};
use crate::size::MAX_LENGTH;

/// What a buffer must be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// Bytes of a row.
    pub(crate) stride: i32,
}

/// The buffers.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) layout: Layout,
    /// Which of all pools of this run it is.
    number: u32,
    /// At the compositor there, and at the session.
    buffers: [(WlBuffer, WlBuffer); BUFFERS],
}

impl Layout {
    /// What the compositor there says.
    ///
    /// # Errors
    /// No screen has such frames.
    pub(crate) fn new(format: WEnum<Format>, width: u32, height: u32, stride: u32) -> Result<Self, Error> {
        let format = match format {
            WEnum::Value(format) => format,
            WEnum::Unknown(format) => return Err(Error::Format(format)),
        };
        let length =
            |length: u32| i32::try_from(length).ok().filter(|length| (1..=MAX_LENGTH).contains(length));
        let layout = || {
            let (width, height) = (length(width)?, length(height)?);
            // At most 8 bytes for a pixel, and at least 2, with some room for alignment.
            let stride = i32::try_from(stride).ok().filter(|&stride| {
                stride >= width.saturating_mul(2) && stride <= width.saturating_mul(8).saturating_add(1024)
            })?;
            Some(Self { format, width, height, stride })
        };
        layout().filter(|layout| layout.bytes() <= MAX_FRAME).ok_or(Error::Frame { width, height, stride })
    }

    fn bytes(self) -> usize {
        usize::try_from(self.stride).unwrap_or(0).saturating_mul(usize::try_from(self.height).unwrap_or(0))
    }
}

impl Pool {
    /// Makes the memory, and the objects at both ends.
    ///
    /// # Errors
    /// The system has no memory or descriptor left.
    pub(crate) fn new(layout: Layout, ends: [(&WlShm, &Queue); 2]) -> Result<Self, Error> {
        let system = |doing| move |errno: rustix::io::Errno| Error::system(doing)(errno.into());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("wayferry-screen", flags).map_err(system("making memory"))?;
        let length = layout.bytes() * BUFFERS;
        rustix::fs::ftruncate(&file, length as u64).map_err(system("making memory"))?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(system("sealing memory"))?;
        // Within `i32`, as `MAX_FRAME` is a third of it at most.
        let (length, frame) = (length as i32, layout.bytes() as i32);
        let [there, session] =
            ends.map(|(shm, queue)| (shm.create_pool(file.as_fd(), length, queue, ()), queue));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let buffers = std::array::from_fn(|index| {
            let offset = frame * index as i32;
            let Layout { format, width, height, stride } = layout;
            let id = |owner| BufferId { owner, pool: number, index };
            (
                there.0.create_buffer(offset, width, height, stride, format, there.1, id(Owner::There)),
                session.0.create_buffer(offset, width, height, stride, format, session.1, id(Owner::Session)),
            )
        });
        there.0.destroy();
        session.0.destroy();
        Ok(Self { layout, number, buffers })
    }

    /// Which of its buffers this is, if the session is done with it. The compositor that copies into one has said so by
    /// the frame.
    pub(crate) fn given_back(&self, id: BufferId) -> Option<usize> {
        (id.owner == Owner::Session && id.pool == self.number).then_some(id.index)
    }

    /// A buffer at the compositor there.
    pub(crate) fn there(&self, buffer: usize) -> &WlBuffer {
        &self.buffers[buffer].0
    }

    /// The same at the session.
    pub(crate) fn session(&self, buffer: usize) -> &WlBuffer {
        &self.buffers[buffer].1
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // What a surface shows stays until it shows something else.
        for (there, session) in &self.buffers {
            there.destroy();
            session.destroy();
        }
    }
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Bytes of a frame, at most: 16384 x 10240 pixels of four.
const MAX_FRAME: usize = 640 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_no_screen_has_is_refused() {
        let layout =
            |width, height, stride| Layout::new(WEnum::Value(Format::Xrgb8888), width, height, stride);
        assert!(layout(1920, 1080, 7680).is_ok());
        assert!(layout(16_384, 10_240, 65_536).is_ok());
        for (width, height, stride) in [
            (0, 1080, 7680),
            (1920, 0, 7680),
            (1920, 1080, 1919),
            (1920, 1080, u32::MAX),
            (u32::MAX, 1, 4),
            (16_384, 16_384, 65_536),
            (1, 16_385, 4),
        ] {
            assert!(matches!(layout(width, height, stride), Err(Error::Frame { .. })), "{width}x{height}");
        }
        assert!(matches!(Layout::new(WEnum::Unknown(7), 1, 1, 4), Err(Error::Format(7))));
    }
}
