//! `wl_buffer`: pixels of a program, and where they come from.
//!
//! Invariant: a buffer in a pool is inside the pool's size as last announced.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use wayferry_gpu::{Dmabuf, Frame};
use wayferry_pixels::{Content, Format, Layout, Region, Size};

use super::dmabuf::Imported;
use super::shm::{Memory, Pool, ReadError};
use crate::mapping::Mapping;

/// A `wl_buffer`.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) size: Size,
    pub(crate) format: Format,
    pub(crate) source: Source,
    layout: Layout,
    /// The surface that it was last committed to: damage alone is not trusted when it changes hands.
    pub(crate) last_surface: Cell<Option<u32>>,
}

/// Where a buffer's pixels come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A part of a pool.
    Pool(Rc<Pool>),
    /// One colour, as one pixel of [`Format::Argb8888`].
    Solid([u8; 4]),
    /// A GPU buffer: they are here once the reader has read them.
    Gpu(Imported),
}

impl Buffer {
    /// A buffer inside `pool`.
    ///
    /// # Errors
    /// What is wrong with the numbers, in words for the program's author.
    pub(crate) fn in_pool(pool: &Rc<Pool>, numbers: [i32; 4], format: u32) -> Result<Self, String> {
        let [offset, width, height, stride] = numbers;
        let format =
            Format::from_wl_shm(format).ok_or_else(|| format!("format {format:#x} was not offered"))?;
        let size = size(width, height)?;
        let (Ok(offset), Ok(stride)) = (u64::try_from(offset), u64::try_from(stride)) else {
            return Err(format!("offset {offset} or stride {stride} is negative"));
        };
        let layout = Layout::new(offset, stride, size, format).map_err(|error| error.to_string())?;
        if layout.end() > pool.size() {
            return Err(format!(
                "the buffer ends at byte {} of a pool of {} bytes",
                layout.end(),
                pool.size()
            ));
        }
        Ok(Self::new(size, format, layout, Source::Pool(Rc::clone(pool))))
    }

    /// A buffer of one pixel; channels are 0 to `u32::MAX`, premultiplied.
    pub(crate) fn solid([red, green, blue, alpha]: [u32; 4]) -> Option<Self> {
        let byte = |value: u32| (value >> 24) as u8;
        let pixel = [byte(blue), byte(green), byte(red), byte(alpha)];
        let size = Size::new(1, 1).ok()?;
        let layout = Layout::new(0, 4, size, Format::Argb8888).ok()?;
        Some(Self::new(size, Format::Argb8888, layout, Source::Solid(pixel)))
    }

    /// A GPU buffer.
    pub(super) fn on_gpu(dmabuf: &Dmabuf, imported: Imported) -> Option<Self> {
        let (size, format) = (dmabuf.described().size, dmabuf.format());
        let layout = Frame::layout(size, format)?;
        Some(Self::new(size, format, layout, Source::Gpu(imported)))
    }

    fn new(size: Size, format: Format, layout: Layout, source: Source) -> Self {
        Self { size, format, source, layout, last_surface: Cell::new(None) }
    }

    /// What the reader knows of it, if only that can read it.
    pub(super) fn imported(&self) -> Option<&Imported> {
        match &self.source {
            Source::Gpu(imported) => Some(imported),
            _ => None,
        }
    }

    /// Reads `into.len()` bytes at `offset` of the buffer's memory.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ReadError> {
        match &self.source {
            Source::Pool(pool) => pool.read(offset, into),
            Source::Solid(pixel) => {
                into.iter_mut().zip(pixel.iter().cycle()).for_each(|(to, from)| *to = *from);
                Ok(())
            }
            Source::Gpu(_) => Err(ReadError::Unread),
        }
    }

    /// The memory that [`Self::layout`] is about, where it lies, if these pixels are best read there.
    pub(super) fn mapped(&self, region: &Region) -> Option<Arc<Mapping>> {
        match &self.source {
            Source::Pool(pool) => pool.mapped(self.layout.end(), self.bytes(region)),
            Source::Solid(_) | Source::Gpu(_) => None,
        }
    }

    /// The same memory for a worker to read these pixels, if it can.
    pub(super) fn memory(&self, region: &Region) -> Option<Memory> {
        match &self.source {
            Source::Pool(pool) => Some(pool.memory(self.layout.end(), self.bytes(region))),
            Source::Solid(_) | Source::Gpu(_) => None,
        }
    }

    /// The file of the program's that it lies in, for a thread.
    pub(super) fn file(&self) -> std::io::Result<std::fs::File> {
        match &self.source {
            Source::Pool(pool) => pool.file(),
            Source::Solid(_) | Source::Gpu(_) => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }

    /// All its pixels.
    pub(super) fn content(&self) -> Result<Content, ReadError> {
        self.content_by(|offset, into| self.read(offset, into))
    }

    /// All its pixels, where they are read like this.
    pub(super) fn content_by(
        &self,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), ReadError>,
    ) -> Result<Content, ReadError> {
        let mut content = Content::new(self.size, self.format);
        content.absorb(&self.layout, &Region::full(self.size), read)?;
        Ok(content)
    }

    /// What a surface's content takes that is like it.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.bytes(&Region::full(self.size))
    }

    /// What pixels of it take.
    pub(super) fn bytes(&self, region: &Region) -> u64 {
        region.area() * self.format.bytes_per_pixel() as u64
    }

    /// How its rows lie in its memory, or in the [`Frame`] that is read of it.
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }
}

/// A size as programs give it.
///
/// # Errors
/// What is wrong with it, in words for the program's author.
pub(super) fn size(width: i32, height: i32) -> Result<Size, String> {
    let positive = |value: i32| u32::try_from(value).ok();
    let size =
        positive(width).zip(positive(height)).and_then(|(width, height)| Size::new(width, height).ok());
    size.ok_or_else(|| format!("size {width}x{height} is not within 1 to 16384"))
}
