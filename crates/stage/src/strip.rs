//! A strip of pixels that a program draws and the stage reads: which frame this is and when it was drawn.
//!
//! The strip is 16 pixels high and 232 wide: black and white blocks of 4 × 4 pixels, one bit each, four rows of
//! 58. A magic number and a checksum keep noise from passing as a strip. It survives any lossless path and nothing
//!     else. A large one, four times as wide and high, survives lossy ones, pictures of a quarter of the size too; but
//!     whether anything else is whole it does not tell.

use std::time::Duration;

use crate::image::Image;

/// What a strip says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// Number of the frame, from 1.
    pub frame: u64,
    /// When the program drew it, on [`crate::now`]'s clock.
    pub drawn: Duration,
    /// A value of the program's own, such as the number of key presses it has seen.
    pub value: u64,
}

impl Strip {
    /// Width of a strip in pixels.
    pub const WIDTH: u32 = COLUMNS * BLOCK;
    /// Height of a strip in pixels.
    pub const HEIGHT: u32 = ROWS * BLOCK;

    /// Draws the strip into the top-left corner; false when the picture is too small for it.
    pub fn draw(&self, image: &mut Image) -> bool {
        self.draw_blocks(image, BLOCK)
    }

    /// Draws a large strip there.
    pub fn draw_large(&self, image: &mut Image) -> bool {
        self.draw_blocks(image, LARGE_BLOCK)
    }

    fn draw_blocks(&self, image: &mut Image, block: u32) -> bool {
        if image.width() < COLUMNS * block || image.height() < ROWS * block {
            return false;
        }
        let words = self.words();
        for y in 0..ROWS * block {
            let row = image.row_mut(y);
            for column in 0..COLUMNS {
                let bit = (y / block * COLUMNS + column) as usize;
                let white = words[bit / 8] >> (bit % 8) & 1 == 1;
                let start = (column * block) as usize;
                row[start..start + block as usize].fill(if white { WHITE } else { BLACK });
            }
        }
        true
    }

    /// Reads the large strip in the top-left corner, if there is one.
    pub fn read_large(image: &Image) -> Option<Strip> {
        if image.width() < COLUMNS * LARGE_BLOCK || image.height() < ROWS * LARGE_BLOCK {
            return None;
        }
        let mut bytes = [0u8; BYTES];
        for bit in 0..COLUMNS * ROWS {
            let middle = |block: u32| block * LARGE_BLOCK + LARGE_BLOCK / 2;
            let green = image.row(middle(bit / COLUMNS))[middle(bit % COLUMNS) as usize] >> 8 & 0xff;
            bytes[bit as usize / 8] |= u8::from(green > 127) << (bit % 8);
        }
        Self::from_words(bytes)
    }

    /// Reads the strip in the top-left corner, if there is a whole and untorn one.
    pub fn read(image: &Image) -> Option<Strip> {
        if image.width() < Strip::WIDTH || image.height() < Strip::HEIGHT {
            return None;
        }
        let mut bytes = [0u8; BYTES];
        for y in 0..Strip::HEIGHT {
            let row = image.row(y);
            for column in 0..COLUMNS {
                let block = &row[(column * BLOCK) as usize..][..BLOCK as usize];
                let first = block[0] & 0x00ff_ffff;
                let white = first == WHITE & 0x00ff_ffff;
                let plain = white || first == 0;
                if !plain || block.iter().any(|pixel| pixel & 0x00ff_ffff != first) {
                    return None;
                }
                let bit = (y / BLOCK * COLUMNS + column) as usize;
                let seen = bytes[bit / 8] >> (bit % 8) & 1 == 1;
                if y % BLOCK != 0 && seen != white {
                    return None;
                }
                bytes[bit / 8] |= u8::from(white) << (bit % 8);
            }
        }
        Self::from_words(bytes)
    }

    fn from_words(bytes: [u8; BYTES]) -> Option<Strip> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let strip = Strip { frame: word(2), drawn: Duration::from_nanos(word(10)), value: word(18) };
        (strip.words() == bytes).then_some(strip)
    }

    fn words(&self) -> [u8; BYTES] {
        let mut bytes = [0u8; BYTES];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2..10].copy_from_slice(&self.frame.to_le_bytes());
        bytes[10..18].copy_from_slice(&(self.drawn.as_nanos() as u64).to_le_bytes());
        bytes[18..26].copy_from_slice(&self.value.to_le_bytes());
        let sum = bytes[..26]
            .iter()
            .fold(0x811c_9dc5u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        bytes[26..29].copy_from_slice(&sum.to_le_bytes()[..3]);
        bytes
    }
}

const BLOCK: u32 = 4;
const LARGE_BLOCK: u32 = 16;
const COLUMNS: u32 = 58;
const ROWS: u32 = 4;
const BYTES: usize = (COLUMNS * ROWS / 8) as usize;
const MAGIC: [u8; 2] = [0xa7, 0x3c];
const WHITE: u32 = 0xffff_ffff;
const BLACK: u32 = 0xff00_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_drawn() {
        let strip = Strip { frame: 77, drawn: Duration::from_nanos(123_456_789_012), value: u64::MAX };
        let mut image = Image::new(300, 40, 0xff55_5555);
        assert!(strip.draw(&mut image));
        assert_eq!(Strip::read(&image), Some(strip));
    }

    #[test]
    fn a_large_strip_survives_blur() {
        let strip = Strip { frame: 77, drawn: Duration::from_nanos(123_456_789_012), value: u64::MAX };
        let mut image = Image::new(1000, 80, 0xff55_5555);
        assert_eq!(Strip::read_large(&image), None);
        assert!(strip.draw_large(&mut image));
        let sharp = image.clone();
        for y in 0..64 {
            for (x, pixel) in image.row_mut(y).iter_mut().enumerate() {
                let mean = sharp.row(y)[x.saturating_sub(3)..(x + 4).min(1000)]
                    .iter()
                    .map(|near| near & 0xff)
                    .sum::<u32>()
                    / 7;
                *pixel = 0xff00_0000 | mean << 16 | mean << 8 | mean;
            }
        }
        assert_eq!(Strip::read(&image), None);
        assert_eq!(Strip::read_large(&image), Some(strip));
    }

    #[test]
    fn a_torn_strip_is_none() {
        let strip = Strip { frame: 1, drawn: Duration::from_nanos(1), value: 0 };
        let next = Strip { frame: 2, drawn: Duration::from_nanos(99_999), value: 5 };
        let mut image = Image::new(232, 16, 0);
        strip.draw(&mut image);
        let mut other = image.clone();
        next.draw(&mut other);
        for y in 8..16 {
            image.row_mut(y).copy_from_slice(other.row(y));
        }
        assert_eq!(Strip::read(&image), None);
        assert_eq!(Strip::read(&Image::new(300, 40, 0xff55_5555)), None);
    }
}
