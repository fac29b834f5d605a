//! Shared memory for the compositor: the few buffers of each surface, and what each of them lacks.
//!
//! Knows files, rows and regions; Wayland objects are the caller's. A buffer may be filled by a worker, who owns it
//! until it is put back. Invariant: a buffer that [`Pool::take`] hands out equals the content byte for byte (converted,
//! if the compositor lacks the format), and is not handed out again before it was released.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};
use wayferry_pixels::{Content, Format, Rect, Region, Size, convert};

use super::shm::Part;

/// Buffers of one surface that the compositor may hold at once. Two suffice for most; four are for a compositor
/// that keeps frames for several outputs.
pub(crate) const MAX_BUSY: usize = 4;

/// Memory that a compositor may map: it cannot shrink under the compositor's feet.
#[derive(Debug)]
pub(crate) struct Memory(OwnedFd);

impl Memory {
    /// `length` zero bytes.
    pub(crate) fn new(length: usize) -> std::io::Result<Self> {
        let fd = rustix::fs::memfd_create("wayferry", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&fd, length as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(Self(fd))
    }

    /// Another descriptor of the same memory.
    pub(crate) fn share(&self) -> std::io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// Writes all of `bytes` at `offset`.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> std::io::Result<()> {
        write_all(&self.0, offset, bytes)
    }
}

/// Writes all of `bytes` into a file, at `offset`.
pub(super) fn write_all(file: &OwnedFd, mut offset: usize, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, offset as u64) {
            Ok(0) => return Err(rustix::io::Errno::IO.into()),
            Ok(written) => {
                offset += written;
                bytes = &bytes[written..];
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What a new buffer is to look like.
#[derive(Debug)]
pub(crate) struct Spec {
    /// Pixels.
    pub(crate) size: Size,
    /// Pixel format.
    pub(crate) format: Format,
    /// Bytes of the whole buffer.
    pub(crate) length: usize,
    /// Bytes from row to row.
    pub(crate) stride: usize,
}

/// One buffer of a surface.
#[derive(Debug)]
pub(super) struct Buffer {
    id: u32,
    memory: Part,
    size: Size,
    format: Format,
    /// Where it differs from the content.
    missing: Region,
    busy: bool,
}

/// The buffers of one surface.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Buffer>,
}

/// What a buffer is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) size: Size,
    /// Of the content.
    pub(super) format: Format,
    /// Of the buffer: the same, or its [`Format::fallback`].
    pub(super) shown: Format,
}

impl Pool {
    /// The content has changed here.
    pub(crate) fn changed(&mut self, region: &Region) {
        for buffer in &mut self.buffers {
            buffer.missing.union(region);
        }
    }

    /// The content begins anew: what the buffers hold is void.
    pub(crate) fn reset(&mut self) {
        for buffer in &mut self.buffers {
            buffer.missing = Region::full(buffer.size);
        }
    }

    /// Whether [`Self::take`] may be called: the compositor does not hold too many.
    pub(crate) fn is_ready(&self) -> bool {
        self.buffers.iter().filter(|buffer| buffer.busy).count() < MAX_BUSY
    }

    /// Whether [`Self::take`] makes no new buffer of them.
    pub(crate) fn has_free(&self) -> bool {
        self.buffers.iter().any(|buffer| !buffer.busy)
    }

    /// About how many bytes [`Self::take`] writes, beside what has still to change.
    pub(super) fn lacks(&self, kind: Kind) -> usize {
        let free = self.buffers.iter().filter(|buffer| !buffer.busy && buffer.fits(kind));
        let least = free.map(|buffer| buffer.missing.area()).min();
        least.unwrap_or(kind.size.rect().area()) as usize * kind.shown.bytes_per_pixel()
    }

    /// Fills a free buffer with the content and hands it out; `make` makes a new one. `format` is the
    /// content's or its [`Format::fallback`]. Returns the id and those of free buffers that are of no use any
    /// more, which the caller destroys.
    pub(crate) fn take<E: From<std::io::Error>>(
        &mut self,
        content: &Content,
        format: Format,
        make: impl FnOnce(Spec) -> Result<(u32, Part), E>,
    ) -> Result<(u32, Vec<u32>), E> {
        let kind = Kind { size: content.size(), format: content.format(), shown: format };
        let (mut buffer, useless) = self.lend(kind, make)?;
        buffer.fill(content)?;
        buffer.busy = true;
        let id = buffer.id;
        self.buffers.push(buffer);
        Ok((id, useless))
    }

    /// As [`Self::take`], but the buffer is for another to fill, and is not one of these until it is
    /// [put back](Self::put_back).
    pub(super) fn lend<E>(
        &mut self,
        kind: Kind,
        make: impl FnOnce(Spec) -> Result<(u32, Part), E>,
    ) -> Result<(Buffer, Vec<u32>), E> {
        let useless = self.buffers.extract_if(.., |buffer| !buffer.busy && !buffer.fits(kind));
        let useless = useless.map(|buffer| buffer.id).collect();
        let free = self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.busy);
        let best = free.min_by_key(|(_, buffer)| buffer.missing.area()).map(|(index, _)| index);
        if let Some(best) = best {
            return Ok((self.buffers.swap_remove(best), useless));
        }
        let Kind { size, shown: format, .. } = kind;
        let stride = size.width() as usize * format.bytes_per_pixel();
        let length = stride * size.height() as usize;
        let (id, memory) = make(Spec { size, format, length, stride })?;
        Ok((Buffer { id, memory, size, format, missing: Region::full(size), busy: false }, useless))
    }

    /// A buffer that was lent is back: what it lacks of the content it knows.
    pub(super) fn put_back(&mut self, buffer: Buffer) {
        self.buffers.push(buffer);
    }

    /// The compositor has released this buffer.
    pub(crate) fn released(&mut self, id: u32) {
        if let Some(buffer) = self.buffers.iter_mut().find(|buffer| buffer.id == id) {
            buffer.busy = false;
        }
    }

    /// Forgets the buffers that the compositor does not hold; returns their ids, which the caller destroys.
    pub(crate) fn clear_free(&mut self) -> Vec<u32> {
        let (busy, free) = std::mem::take(&mut self.buffers).into_iter().partition(|buffer| buffer.busy);
        self.buffers = busy;
        free.into_iter().map(|buffer: Buffer| buffer.id).collect()
    }

    /// Forgets all buffers; returns their ids, which the caller destroys, and whether the compositor holds them.
    pub(crate) fn clear(&mut self) -> Vec<(u32, bool)> {
        self.buffers.drain(..).map(|buffer| (buffer.id, buffer.busy)).collect()
    }
}

impl Buffer {
    /// What it is known by.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    fn fits(&self, kind: Kind) -> bool {
        (self.size, self.format) == (kind.size, kind.shown)
    }

    /// The content is another one here than when it was lent, or everywhere.
    pub(super) fn changed(&mut self, region: &Region, is_new: bool) {
        match is_new {
            true => self.missing = Region::full(self.size),
            false => self.missing.union(region),
        }
    }

    /// Brings it up to the content.
    pub(super) fn fill(&mut self, content: &Content) -> std::io::Result<()> {
        for rect in self.missing.clip(content.size()).rects() {
            write_rect(&mut self.memory, self.format, content, *rect)?;
        }
        self.missing.clear();
        Ok(())
    }
}

fn write_rect(memory: &mut Part, format: Format, content: &Content, rect: Rect) -> std::io::Result<()> {
    let width = content.size().width();
    // A row more to copy is cheaper than a call more: wide rectangles are written as whole rows.
    let (x, columns) = if rect.width * 4 >= width { (0, width) } else { (rect.x, rect.width) };
    let pixel = format.bytes_per_pixel();
    let stride = width as usize * pixel;
    if columns == width && format == content.format() {
        let rows = rect.y as usize * stride..rect.bottom() as usize * stride;
        return memory.write(rows.start, &content.pixels()[rows]);
    }
    let mut scratch = Vec::new();
    for y in rect.y..rect.bottom() {
        let row = content.row(y, x, columns);
        let at = y as usize * stride + x as usize * pixel;
        if format == content.format() {
            memory.write(at, row)?;
        } else {
            scratch.resize(columns as usize * pixel, 0);
            convert::row(content.format(), row, &mut scratch);
            memory.write(at, &scratch)?;
        }
    }
    Ok(())
}
