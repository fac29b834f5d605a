//! How large a region may be, and how large it is in the stream.
//!
//! A stream is made of blocks of 16 × 16 pixels. The picture lies at the top left of them; what is beyond its right and
//! lower edge is made up by the encoder and cut off by the decoder.

use crate::error::Error;

/// Longest side of a region, in pixels. OpenH264 promises no more than 3840 × 2160, upright or lying.
pub const MAX_SIDE: u32 = 3840;

/// Most pixels of a region.
pub const MAX_PIXELS: u32 = 3840 * 2160;

/// The size of a region in pixels: at least 1 × 1, at most [`MAX_SIDE`] and [`MAX_PIXELS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    width: u32,
    height: u32,
}

impl Size {
    /// A size.
    ///
    /// # Errors
    /// [`Error::Size`] when a side is zero or too long, or the whole too large.
    pub fn new(width: u32, height: u32) -> Result<Self, Error> {
        let inside = |side| (1..=MAX_SIDE).contains(&side);
        if inside(width) && inside(height) && width * height <= MAX_PIXELS {
            Ok(Self { width, height })
        } else {
            Err(Error::Size { width, height })
        }
    }

    /// Columns.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(self) -> u32 {
        self.height
    }

    /// Bytes of a row of pixels.
    pub(crate) fn row(self) -> usize {
        self.width as usize * 4
    }

    /// Columns and rows of blocks.
    pub(crate) fn blocks(self) -> (u32, u32) {
        (self.width.div_ceil(BLOCK), self.height.div_ceil(BLOCK))
    }

    /// Columns and rows of pixels in the stream.
    pub(crate) fn coded(self) -> (usize, usize) {
        let (across, down) = self.blocks();
        ((across * BLOCK) as usize, (down * BLOCK) as usize)
    }
}

const BLOCK: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold() {
        for (width, height) in [(1, 1), (3840, 2160), (2160, 3840), (2880, 2880), (17, 3)] {
            assert!(Size::new(width, height).is_ok(), "{width}x{height}");
        }
        for (width, height) in [(0, 1), (1, 0), (3841, 1), (1, 3841), (3840, 2161), (u32::MAX, u32::MAX)] {
            assert_eq!(Size::new(width, height), Err(Error::Size { width, height }));
        }
    }

    #[test]
    fn blocks_cover_the_picture() {
        let size = Size::new(1281, 720).unwrap();
        assert_eq!(size.blocks(), (81, 45));
        assert_eq!(size.coded(), (1296, 720));
    }
}
