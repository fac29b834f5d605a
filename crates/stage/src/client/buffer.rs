//! Buffers of shared memory that a client draws into: written with pwrite(2), never mapped.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use wayland_client::QueueHandle;
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_shm::{Format, WlShm};

use super::error::ClientError;
use super::inner::{Inner, Pane};
use crate::compositor::Rect;
use crate::image::Image;

/// One buffer and the file behind it.
pub(crate) struct Slot {
    pub(crate) buffer: WlBuffer,
    file: OwnedFd,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) busy: bool,
    /// What has changed in the picture since this buffer was written.
    pub(crate) stale: Vec<Rect>,
}

/// Names a buffer to the handler of its events, by its pane.
pub(crate) struct SlotOf(pub(crate) Pane);

impl Slot {
    pub(crate) fn new(
        shm: &WlShm,
        queue: &QueueHandle<Inner>,
        (width, height): (u32, u32),
        alpha: bool,
        pane: Pane,
    ) -> Result<Slot, ClientError> {
        let stride = width * 4;
        let size = stride * height;
        let file = memfd_create("pixels", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, u64::from(size))?;
        // As foot, Qt and GTK do.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)?;
        let pool = shm.create_pool(file.as_fd(), size as i32, queue, ());
        let format = if alpha { Format::Argb8888 } else { Format::Xrgb8888 };
        let buffer =
            pool.create_buffer(0, width as i32, height as i32, stride as i32, format, queue, SlotOf(pane));
        pool.destroy();
        let stale = vec![Rect::new(0, 0, width as i32, height as i32)];
        Ok(Slot { buffer, file, width, height, busy: false, stale })
    }

    /// Copies these parts of a picture of the same size into the buffer.
    pub(crate) fn write(&self, image: &Image, parts: &[Rect]) -> Result<(), ClientError> {
        let whole = Rect::new(0, 0, self.width as i32, self.height as i32);
        let mut scratch = Vec::new();
        for part in parts.iter().map(|part| part.intersect(&whole)).filter(|part| !part.is_empty()) {
            let full_rows = part.width == whole.width;
            // Whole rows lie one after the other: many of them go in one call.
            let band = if full_rows { (BAND / part.width).max(1) } else { 1 };
            let mut y = part.y;
            while y < part.y + part.height {
                let rows = band.min(part.y + part.height - y);
                let row_bytes = part.width as usize * 4;
                scratch.resize(rows as usize * row_bytes, 0);
                for (row, bytes) in (y as u32..).zip(scratch.chunks_exact_mut(row_bytes)) {
                    let pixels = &image.row(row)[part.x as usize..(part.x + part.width) as usize];
                    for (bytes, pixel) in bytes.as_chunks_mut().0.iter_mut().zip(pixels) {
                        *bytes = pixel.to_le_bytes();
                    }
                }
                let offset = (y as u64 * u64::from(self.width) + part.x as u64) * 4;
                write_all(&self.file, &scratch, offset)?;
                y += rows;
            }
        }
        Ok(())
    }
}

/// Writes all of it, or says why not.
pub(crate) fn write_all(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> Result<(), ClientError> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, bytes, offset))?;
        bytes = &bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

/// Pixels written in one call.
const BAND: i32 = 16_384;
