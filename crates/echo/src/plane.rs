//! Pixels of a part of a surface: what strips, glyphs and pictures are made of.
//!
//! A plane knows neither where it lies nor what it shows. Pixels are ARGB of eight bits each.
//!
//! The one invariant: what a plane held is overwritten when it is dropped.

use std::ops::Range;

use wayferry_pixels::{Content, Format, Rect};
use zeroize::Zeroizing;

/// Rows of pixels, top to bottom.
#[derive(Clone)]
pub(crate) struct Plane {
    width: usize,
    pixels: Zeroizing<Vec<u32>>,
}

impl Plane {
    /// Everything in one colour; a plane without columns has no pixels.
    pub(crate) fn filled(width: usize, height: usize, pixel: u32) -> Self {
        Self { width, pixels: Zeroizing::new(vec![pixel; width * height]) }
    }

    /// Rows that are there already.
    pub(crate) fn new(width: usize, pixels: Zeroizing<Vec<u32>>) -> Self {
        Self { width, pixels }
    }

    /// What `content` has there; `None` outside of it, in formats of other depths, and where it is translucent.
    pub(crate) fn read(content: &Content, rect: Rect) -> Option<Self> {
        let (swapped, has_alpha) = match content.format() {
            Format::Argb8888 => (false, true),
            Format::Xrgb8888 => (false, false),
            Format::Abgr8888 => (true, true),
            Format::Xbgr8888 => (true, false),
            _ => return None,
        };
        if rect.is_empty() || !content.size().rect().contains(rect) {
            return None;
        }
        // The whole capacity at once: growing would leave copies behind that are not overwritten.
        let mut pixels = Zeroizing::new(Vec::with_capacity(rect.area() as usize));
        let mut opaque = u32::MAX;
        for y in rect.y..rect.bottom() {
            let row = content.row(y, rect.x, rect.width);
            pixels.extend(row.chunks_exact(4).map(|bytes| {
                let pixel = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                opaque &= pixel;
                let pixel = if swapped { pixel.swap_bytes() >> 8 } else { pixel };
                pixel | OPAQUE
            }));
        }
        let shown = !has_alpha || opaque & OPAQUE == OPAQUE;
        shown.then(|| Self { width: rect.width as usize, pixels })
    }

    /// One pixel of `content`, in any of the formats that can be read; `None` outside of it.
    pub(crate) fn pixel_of(content: &Content, x: u32, y: u32) -> Option<u32> {
        let size = content.size();
        if x >= size.width() || y >= size.height() {
            return None;
        }
        let bytes = content.row(y, x, 1);
        let pixel = u32::from_le_bytes(bytes.try_into().ok()?);
        let swapped = matches!(content.format(), Format::Abgr8888 | Format::Xbgr8888);
        Some(if swapped { pixel.swap_bytes() >> 8 } else { pixel } | OPAQUE)
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn height(&self) -> usize {
        self.pixels.len().checked_div(self.width).unwrap_or(0)
    }

    pub(crate) fn into_pixels(self) -> Zeroizing<Vec<u32>> {
        self.pixels
    }

    pub(crate) fn pixels(&self) -> &[u32] {
        &self.pixels
    }

    pub(crate) fn pixel(&self, x: usize, y: usize) -> u32 {
        self.pixels[y * self.width + x]
    }

    /// Some columns of row `y`.
    pub(crate) fn row(&self, y: usize, columns: Range<usize>) -> &[u32] {
        &self.pixels[y * self.width..][columns]
    }

    pub(crate) fn row_mut(&mut self, y: usize, columns: Range<usize>) -> &mut [u32] {
        &mut self.pixels[y * self.width..][columns]
    }

    /// Some columns of all rows, one row after the other.
    pub(crate) fn rows(&self, columns: Range<usize>) -> impl Iterator<Item = &[u32]> {
        self.pixels.chunks_exact(self.width.max(1)).map(move |row| &row[columns.clone()])
    }

    /// A copy of some columns.
    pub(crate) fn cut(&self, columns: Range<usize>) -> Self {
        let mut pixels = Zeroizing::new(Vec::with_capacity(columns.len() * self.height()));
        self.rows(columns.clone()).for_each(|row| pixels.extend_from_slice(row));
        Self { width: columns.len(), pixels }
    }

    /// Lays `patch`, which has as many rows, over this from column `x`.
    pub(crate) fn paste(&mut self, x: usize, patch: &Self) {
        let width = patch.width.min(self.width.saturating_sub(x));
        for y in 0..self.height().min(patch.height()) {
            self.row_mut(y, x..x + width).copy_from_slice(patch.row(y, 0..width));
        }
    }

    /// Paints columns of some rows in one colour.
    pub(crate) fn fill(&mut self, columns: Range<usize>, rows: Range<usize>, pixel: u32) {
        rows.for_each(|y| self.row_mut(y, columns.clone()).fill(pixel));
    }

    /// Moves columns to where the first of them is to be; what they cover is lost.
    pub(crate) fn shift(&mut self, columns: Range<usize>, to: usize) {
        for y in 0..self.height() {
            let width = self.width;
            self.row_mut(y, 0..width).copy_within(columns.clone(), to);
        }
    }

    /// The same so far to the right, less than a column or two: what is drawn between two columns is in both.
    pub(crate) fn shifted(&self, by: f32, paper: u32) -> Self {
        let (whole, part) = (by.floor(), by - by.floor());
        let mut shifted = Self::filled(self.width, self.height(), paper);
        for y in 0..self.height() {
            let at = |x: isize| {
                usize::try_from(x).ok().filter(|x| *x < self.width).map_or(paper, |x| self.pixel(x, y))
            };
            for (x, pixel) in (0..).zip(shifted.row_mut(y, 0..self.width)) {
                let from = x - whole as isize;
                let (own, left) = (channels(at(from)), channels(at(from - 1)));
                let mix = |channel: usize| own[channel] as f32 * (1.0 - part) + left[channel] as f32 * part;
                *pixel = mixed([0, 1, 2].map(|channel| mix(channel).round() as i32));
            }
        }
        shifted
    }

    /// The colour that most pixels of these columns have, of the first few that are met.
    pub(crate) fn paper(&self, columns: Range<usize>) -> u32 {
        most(self.rows(columns).flatten().copied()).map_or(OPAQUE, |(pixel, _)| pixel)
    }

    /// Whether some columns of two planes, which are as wide, are equal.
    pub(crate) fn equal(&self, other: &Self, columns: Range<usize>) -> bool {
        self.rows(columns.clone()).eq(other.rows(columns))
    }

    /// The greatest difference of a channel of two planes.
    pub(crate) fn difference(&self, other: &Self) -> u32 {
        let pixels = self.pixels.iter().zip(other.pixels.iter());
        pixels.map(|(a, b)| if a == b { 0 } else { widest(*a, *b) }).max().unwrap_or(0)
    }

    /// Whether some columns hold anything but `paper`.
    pub(crate) fn has_ink(&self, columns: Range<usize>, paper: u32) -> bool {
        self.rows(columns).flatten().any(|pixel| *pixel != paper)
    }
}

/// The most frequent of these pixels, of the first few that are met, and how many there are.
pub(crate) fn most(pixels: impl Iterator<Item = u32>) -> Option<(u32, usize)> {
    let mut counts: [(u32, usize); MAX_COLOURS] = [(0, 0); MAX_COLOURS];
    let (mut met, mut last) = (0, 0);
    for pixel in pixels {
        if met > 0 && counts[last].0 == pixel {
            counts[last].1 += 1;
        } else if let Some(at) = counts[..met].iter().position(|(known, _)| *known == pixel) {
            counts[at].1 += 1;
            last = at;
        } else if met < MAX_COLOURS {
            counts[met] = (pixel, 1);
            (last, met) = (met, met + 1);
        }
    }
    counts[..met].iter().copied().max_by_key(|(_, count)| *count)
}

/// Red, green and blue of a pixel.
pub(crate) fn channels(pixel: u32) -> [i32; 3] {
    [(pixel >> 16 & 255) as i32, (pixel >> 8 & 255) as i32, (pixel & 255) as i32]
}

/// A pixel of these channels, each brought into what a channel can be.
pub(crate) fn mixed(channels: [i32; 3]) -> u32 {
    channels.iter().fold(255, |pixel, channel| pixel << 8 | (*channel).clamp(0, 255) as u32)
}

/// How far two colours are from each other: the sum of their channels' differences.
pub(crate) fn distance(a: u32, b: u32) -> u32 {
    let (a, b) = (channels(a), channels(b));
    (0..3).map(|at| a[at].abs_diff(b[at])).sum()
}

fn widest(a: u32, b: u32) -> u32 {
    let (a, b) = (channels(a), channels(b));
    (0..3).map(|at| a[at].abs_diff(b[at])).max().unwrap_or(0)
}

/// An opaque pixel's alpha.
const OPAQUE: u32 = 0xff00_0000;

/// Colours among which the most frequent one is looked for.
const MAX_COLOURS: usize = 24;
