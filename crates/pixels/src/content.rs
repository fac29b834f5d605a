//! The last content of a surface, and how new buffers get into it.
//!
//! A [`Content`] is what both halves agree a surface looks like. It holds rows without padding; it
//! does not know which buffer they came from, which update carries them or who shows them.
//!
//! The one invariant: after [`Content::absorb`] returns a region, content and buffer are equal inside
//! the damage, and the content is as before outside the region.

use std::ops::Range;
use std::sync::atomic::AtomicU8;

use crate::error::Error;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::in_place::InPlace;
use crate::region::Region;
use crate::shared;
use crate::tighten::Tightener;
use crate::tiles::{TILE, Tiles};

/// The pixels of a surface: tightly packed rows, top to bottom.
#[derive(Clone)]
pub struct Content {
    size: Size,
    format: Format,
    pixels: Vec<u8>,
}

impl Content {
    /// Content of zeros. Pages that are never touched cost no memory.
    pub fn new(size: Size, format: Format) -> Self {
        let length = size.width as usize * size.height as usize * format.bytes_per_pixel();
        Self { size, format, pixels: vec![0; length] }
    }

    /// Size in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Format of the pixels.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Bytes from one row to the next: width × bytes per pixel.
    pub fn stride(&self) -> usize {
        self.size.width as usize * self.format.bytes_per_pixel()
    }

    /// All rows, without padding.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// `width` pixels of row `y` from column `x`.
    ///
    /// # Panics
    /// When they do not lie inside the surface.
    pub fn row(&self, y: u32, x: u32, width: u32) -> &[u8] {
        &self.pixels[self.span(y, x, width)]
    }

    /// Paints everything in one colour, given as the bytes of one pixel in this content's format.
    ///
    /// # Panics
    /// When `pixel` is not [`Format::bytes_per_pixel`] long.
    pub fn fill(&mut self, pixel: &[u8]) {
        assert_eq!(pixel.len(), self.format.bytes_per_pixel(), "a pixel of this format");
        for target in self.pixels.chunks_exact_mut(pixel.len()) {
            target.copy_from_slice(pixel);
        }
    }

    /// Overwrites pixels of row `y` from column `x`.
    ///
    /// # Panics
    /// When they do not lie inside the surface, or `pixels` are not whole ones.
    pub fn write_row(&mut self, y: u32, x: u32, pixels: &[u8]) {
        let width = (pixels.len() / self.format.bytes_per_pixel()) as u32;
        self.row_mut(y, x, width).copy_from_slice(pixels);
    }

    /// Takes over the damaged part of a buffer of the same size and format, and says what changed.
    ///
    /// `read(offset, target)` fills `target` with the buffer's bytes from `offset`; it is called for
    /// ranges inside [`Layout::end`] only, in bands that stay in the cache while they are compared.
    /// Damage outside the surface is ignored. The region returned lies inside the damage and holds
    /// every pixel that changed; it may hold few others, where a rectangle more would cost more.
    ///
    /// # Panics
    /// When the layout was made for another size or format.
    ///
    /// # Errors
    /// What `read` returns, at once. The content is then unspecified inside the damage.
    pub fn absorb<E>(
        &mut self,
        layout: &Layout,
        damage: &Region,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Region, E> {
        self.absorb_keeping(layout, damage, None, read)
    }

    /// As [`Self::absorb`]; rows of tiles are kept before they change.
    pub(crate) fn absorb_keeping<E>(
        &mut self,
        layout: &Layout,
        damage: &Region,
        before: Option<&mut Tiles>,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Region, E> {
        let mut scratch = Scratch::default();
        let mut notes = self.notes(layout, before);
        for rect in damage.clip(self.size).rects() {
            notes.tightener.begin(*rect);
            self.absorb_rect(layout, *rect, &mut scratch, &mut notes, &mut read)?;
            notes.tightener.end();
        }
        Ok(notes.tightener.into_region())
    }

    /// As [`Self::absorb_keeping`], from memory that the program may write meanwhile. What is equal is never copied; up
    /// to `threads` threads, the caller's among them, look where that is.
    pub(crate) fn absorb_shared_keeping(
        &mut self,
        layout: &Layout,
        damage: &Region,
        before: Option<&mut Tiles>,
        memory: &[AtomicU8],
        threads: usize,
    ) -> Region {
        let pixel = self.format.bytes_per_pixel();
        let mut scratch = Scratch::default();
        let mut notes = self.notes(layout, before);
        for rect in damage.clip(self.size).rects() {
            let new = InPlace { layout, memory, rect: *rect, pixel };
            notes.tightener.begin(*rect);
            self.absorb_in_place(&new, threads, &mut scratch, &mut notes);
            notes.tightener.end();
        }
        notes.tightener.into_region()
    }

    fn absorb_in_place(
        &mut self,
        new: &InPlace<'_>,
        threads: usize,
        scratch: &mut Scratch,
        notes: &mut Notes<'_>,
    ) {
        let mut found = new.differing_by_threads(self, threads).into_iter();
        // Below a row of which most is new, the next one is taken to be like it: it is not compared twice.
        let mut dense = false;
        for y in new.rect.y..new.rect.bottom() {
            let span = match found.next() {
                Some(span) => span,
                None if dense => Some(0..new.row(y).len()),
                None => new.differing(self, y),
            };
            let Some(span) = span else { continue };
            let (x, width) = (new.rect.x + (span.start / new.pixel) as u32, (span.len() / new.pixel) as u32);
            let copied = scratch.for_read((new.start(y) + span.start) as u64, span.len());
            shared::copy(&new.row(y)[span], copied);
            let changed = self.absorb_row(y, Rect::new(x, y, width, 1), copied, notes);
            dense = changed > new.row(y).len() / 2;
        }
    }

    /// Nothing is noted.
    fn notes<'a>(&self, layout: &Layout, before: Option<&'a mut Tiles>) -> Notes<'a> {
        let same = (layout.size, layout.format) == (self.size, self.format);
        assert!(same, "a layout of this size and format");
        Notes { tightener: Tightener::new(self.size.width, self.format.bytes_per_pixel()), before }
    }

    fn absorb_rect<E>(
        &mut self,
        layout: &Layout,
        rect: Rect,
        scratch: &mut Scratch,
        notes: &mut Notes<'_>,
        read: &mut impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let pixel = self.format.bytes_per_pixel();
        let length = rect.width as usize * pixel;
        let rows_at_once = layout.rows_at_once(length);
        let step = layout.stride as usize;
        let left = layout.offset + u64::from(rect.x) * pixel as u64;
        let mut y = rect.y;
        while y < rect.bottom() {
            let rows = rows_at_once.min(rect.bottom() - y);
            let band = (rows as usize - 1) * step + length;
            let offset = left + u64::from(y) * layout.stride;
            let bytes = scratch.for_read(offset, band);
            read(offset, bytes)?;
            for row in 0..rows {
                let start = row as usize * step;
                self.absorb_row(y + row, rect, &bytes[start..start + length], notes);
            }
            y += rows;
        }
        Ok(())
    }

    /// Takes over a row of a rectangle; gives the bytes in its tiles that are not all as they were.
    fn absorb_row(&mut self, y: u32, rect: Rect, new: &[u8], notes: &mut Notes<'_>) -> usize {
        if self.row(y, rect.x, rect.width) == new {
            return 0;
        }
        let pixel = self.format.bytes_per_pixel();
        let (mut x, mut changed) = (rect.x, 0);
        while x < rect.right() {
            let end = ((x / TILE + 1) * TILE).min(rect.right());
            let new = &new[(x - rect.x) as usize * pixel..(end - rect.x) as usize * pixel];
            let span = self.span(y, x, end - x);
            if notes.tightener.row(y, x, &self.pixels[span.clone()], new) {
                if let Some(before) = &mut notes.before {
                    before.keep(self, x / TILE, y);
                }
                self.pixels[span].copy_from_slice(new);
                changed += new.len();
            }
            x = end;
        }
        changed
    }

    /// Overwrites a rectangle with tightly packed rows; it must lie inside and `source` must fill it.
    pub(crate) fn write(&mut self, rect: Rect, source: &[u8]) {
        let length = rect.width as usize * self.format.bytes_per_pixel();
        for (y, row) in (rect.y..rect.bottom()).zip(source.chunks_exact(length)) {
            self.row_mut(y, rect.x, rect.width).copy_from_slice(row);
        }
    }

    /// `width` pixels of row `y` from column `x`, to be painted.
    pub(crate) fn row_mut(&mut self, y: u32, x: u32, width: u32) -> &mut [u8] {
        let span = self.span(y, x, width);
        &mut self.pixels[span]
    }

    /// Moves `width` pixels inside the content, from one row and column to another.
    pub(crate) fn move_row(&mut self, from: (u32, u32), to: (u32, u32), width: u32) {
        let source = self.span(from.1, from.0, width);
        let target = self.span(to.1, to.0, width).start;
        self.pixels.copy_within(source, target);
    }

    fn span(&self, y: u32, x: u32, width: u32) -> Range<usize> {
        assert!(x.saturating_add(width) <= self.size.width, "columns inside the surface");
        let pixel = self.format.bytes_per_pixel();
        let start = y as usize * self.stride() + x as usize * pixel;
        start..start + width as usize * pixel
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content")
            .field("size", &self.size)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Where the rows of a program's buffer lie in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    offset: u64,
    stride: u64,
    end: u64,
    size: Size,
    format: Format,
}

impl Layout {
    /// A buffer that starts at byte `offset` and has `stride` bytes from row to row.
    ///
    /// # Errors
    /// [`Error::Layout`] when a row does not fit the stride or an offset overflows.
    pub fn new(offset: u64, stride: u64, size: Size, format: Format) -> Result<Self, Error> {
        let row = u64::from(size.width) * format.bytes_per_pixel() as u64;
        let wrong = Error::Layout { stride, row };
        if stride < row || usize::try_from(stride).is_err() {
            return Err(wrong);
        }
        let end = stride
            .checked_mul(u64::from(size.height - 1))
            .and_then(|last| last.checked_add(row))
            .and_then(|length| length.checked_add(offset))
            .ok_or(wrong)?;
        Ok(Self { offset, stride, end, size, format })
    }

    /// Bytes from row to row.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// The first byte of a row.
    pub fn row(&self, y: u32) -> u64 {
        self.offset + u64::from(y) * self.stride
    }

    /// First byte beyond the last row's last pixel: what the memory must at least hold.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many rows of `length` bytes are best read in one call.
    fn rows_at_once(&self, length: usize) -> u32 {
        if self.stride - (length as u64).min(self.stride) > MAX_GAP {
            return 1;
        }
        (BAND as u64 / self.stride).clamp(1, 1 << 16) as u32
    }
}

/// What is noted while a buffer is compared: what changes, and what was there before.
struct Notes<'a> {
    tightener: Tightener,
    before: Option<&'a mut Tiles>,
}

/// Memory that buffers are read into.
#[derive(Default)]
struct Scratch {
    bytes: Vec<u8>,
}

impl Scratch {
    /// Room for `length` bytes that will be read from `offset`.
    ///
    /// The block copy of recent AMD processors (`rep movsb`, in the kernel and in libc) takes three
    /// times as long when the target lies less than 32 bytes beyond the source modulo the page size.
    /// Sources lie in mapped pages, so their place in a page is known from the offset.
    fn for_read(&mut self, offset: u64, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + PAGE {
            self.bytes.resize(length + PAGE, 0);
        }
        let wanted = (offset as usize % PAGE) + PAGE / 8;
        let start = wanted.wrapping_sub(self.bytes.as_ptr().addr()) % PAGE;
        &mut self.bytes[start..start + length]
    }
}

const PAGE: usize = 4096;

/// Bytes compared while they are in the cache; half of a small second-level cache.
const BAND: usize = 128 << 10;

/// Bytes between two row segments that are read along rather than cost another call.
const MAX_GAP: u64 = 4 << 10;
