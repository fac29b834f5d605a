//! What the frames of a sequence are like, in figures.
//!
//! Counts only: nothing is compressed here. Invariant: the same frames give the same figures and the same digest.

use crate::canvas::Rect;
use crate::scene::Frame;

/// The pixels that differ between two pictures of the same size, inside `rect`.
pub fn changed(width: u32, old: &[[u8; 4]], new: &[[u8; 4]], rect: Rect) -> u64 {
    let row = |y: u32| {
        let start = y as usize * width as usize + rect.x as usize;
        start..start + rect.width as usize
    };
    let differ = |y: u32| old[row(y)].iter().zip(&new[row(y)]).filter(|(old, new)| old != new).count() as u64;
    (rect.y..rect.bottom()).map(differ).sum()
}

/// How one frame differs from the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rectangles of damage.
    pub rects: usize,
    /// Pixels inside the damage.
    pub damaged: u64,
    /// Pixels that differ.
    pub changed: u64,
    /// Pixels that still differ when what scrolled has been copied.
    pub residual: u64,
    /// Pixels from the first to the last such one of each row: what rectangles have to hold.
    pub residual_area: u64,
}

impl Statistics {
    /// Of the frame that follows the picture `old`.
    pub fn new(old: &[[u8; 4]], frame: &Frame<'_>) -> Self {
        let whole = Rect::new(0, 0, frame.width, frame.height);
        let mut statistics = Self {
            rects: frame.damage.len(),
            damaged: frame.damage.iter().map(|rect| rect.area()).sum(),
            changed: changed(frame.width, old, frame.pixels, whole),
            ..Self::default()
        };
        let predicted = predict(old, frame);
        let width = frame.width as usize;
        for (old, new) in predicted.chunks_exact(width).zip(frame.pixels.chunks_exact(width)) {
            let mut differ =
                old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new).map(|(x, _)| x);
            if let Some(first) = differ.next() {
                let (mut last, mut count) = (first, 1);
                differ.for_each(|x| (last, count) = (x, count + 1));
                statistics.residual += count;
                statistics.residual_area += (last - first + 1) as u64;
            }
        }
        statistics
    }
}

/// The old picture with what scrolled at its new place.
fn predict(old: &[[u8; 4]], frame: &Frame<'_>) -> Vec<[u8; 4]> {
    let mut picture = old.to_vec();
    if let Some(scroll) = frame.scroll {
        let width = frame.width as usize;
        for y in scroll.rect.y..scroll.rect.bottom().saturating_sub(scroll.rows) {
            let to = y as usize * width + scroll.rect.x as usize;
            let from = to + scroll.rows as usize * width;
            picture.copy_within(from..from + scroll.rect.width as usize, to);
        }
    }
    picture
}

/// A short name for many pictures: different for different ones, as good as certainly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a frame's pixels and damage.
    pub fn add(&mut self, frame: &Frame<'_>) {
        for pixel in frame.pixels {
            self.word(u64::from(u32::from_le_bytes(*pixel)));
        }
        for rect in frame.damage {
            for side in [rect.x, rect.y, rect.width, rect.height] {
                self.word(u64::from(side));
            }
        }
    }

    /// The number.
    pub fn value(self) -> u64 {
        self.0
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }
}
