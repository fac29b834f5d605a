//! `wl_shm`: the program's pixel memory. Nothing of it crosses the link.
//!
//! Pixels are read with `pread`, never mapped: a program that shrinks its file gets an error of its own instead of
//! taking the process down. Invariant: every read is inside the pool's size as last announced.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::io::{Errno, pread};
use wayferry_pixels::{Content, Format, Layout, Region, Size};

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
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short { offset } => {
                write!(f, "the shared memory file ends at byte {offset}, inside the buffer")
            }
            Self::Io(errno) => write!(f, "cannot read the shared memory file: {errno}"),
        }
    }
}

/// A `wl_buffer`.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) size: Size,
    pub(crate) format: Format,
    pub(crate) source: Source,
    /// The surface that it was last committed to: damage alone is not trusted when it changes hands.
    pub(crate) last_surface: Cell<Option<u32>>,
}

/// Where a buffer's pixels come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A part of a pool.
    Pool { pool: Rc<Pool>, layout: Layout },
    /// One colour, as one pixel of [`Format::Argb8888`].
    Solid { pixel: [u8; 4], layout: Layout },
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
        let positive = |value: i32| u32::try_from(value).ok();
        let size =
            positive(width).zip(positive(height)).and_then(|(width, height)| Size::new(width, height).ok());
        let size = size.ok_or_else(|| format!("size {width}x{height} is not within 1 to 16384"))?;
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
        let source = Source::Pool { pool: Rc::clone(pool), layout };
        Ok(Self { size, format, source, last_surface: Cell::new(None) })
    }

    /// A buffer of one pixel; channels are 0 to `u32::MAX`, premultiplied.
    pub(crate) fn solid([red, green, blue, alpha]: [u32; 4]) -> Option<Self> {
        let byte = |value: u32| (value >> 24) as u8;
        let pixel = [byte(blue), byte(green), byte(red), byte(alpha)];
        let size = Size::new(1, 1).ok()?;
        let layout = Layout::new(0, 4, size, Format::Argb8888).ok()?;
        let source = Source::Solid { pixel, layout };
        Some(Self { size, format: Format::Argb8888, source, last_surface: Cell::new(None) })
    }

    /// Reads `into.len()` bytes at `offset` of the buffer's memory.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), ReadError> {
        match &self.source {
            Source::Pool { pool, .. } => pool.read(offset, into),
            Source::Solid { pixel, .. } => {
                into.iter_mut().zip(pixel.iter().cycle()).for_each(|(to, from)| *to = *from);
                Ok(())
            }
        }
    }

    /// All its pixels.
    pub(crate) fn content(&self) -> Result<Content, ReadError> {
        let mut content = Content::new(self.size, self.format);
        content.absorb(&self.layout(), &Region::full(self.size), |offset, into| self.read(offset, into))?;
        Ok(content)
    }

    /// What a surface's content takes that is like it.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.size.rect().area() * self.format.bytes_per_pixel() as u64
    }

    pub(crate) fn layout(&self) -> Layout {
        match &self.source {
            Source::Pool { layout, .. } | Source::Solid { layout, .. } => *layout,
        }
    }
}

/// `wl_shm.error.invalid_fd`.
pub(super) const INVALID_FD: u32 = 2;
