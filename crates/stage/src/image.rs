//! Pictures: what a screenshot is, how two are compared, how one becomes a PNG.
//!
//! A pixel is a `u32` of `0xAARRGGBB` with premultiplied alpha, as in `wl_shm`'s ARGB8888; every other format
//! is converted before it gets here. No colour management, no scaling.
//!
//! Invariant: `pixels.len() == width * height`.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// A picture of premultiplied `0xAARRGGBB` pixels, rows from top to bottom.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    width: u32,
    height: u32,
    pixels: Vec<u32>,
}

impl Image {
    /// A picture of `width` × `height` pixels, all of them `pixel`.
    pub fn new(width: u32, height: u32, pixel: u32) -> Image {
        Image { width, height, pixels: vec![pixel; width as usize * height as usize] }
    }

    /// The width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// All pixels, row after row.
    pub fn pixels(&self) -> &[u32] {
        &self.pixels
    }

    /// The pixel at (x, y), or `None` outside of the picture.
    pub fn pixel(&self, x: u32, y: u32) -> Option<u32> {
        if x >= self.width {
            return None;
        }
        self.pixels.get(y as usize * self.width as usize + x as usize).copied()
    }

    /// Sets one pixel; outside of the picture nothing happens.
    pub fn set(&mut self, x: u32, y: u32, pixel: u32) {
        if x < self.width && y < self.height {
            self.pixels[y as usize * self.width as usize + x as usize] = pixel;
        }
    }

    /// Row `y`, which must be inside the picture.
    pub fn row(&self, y: u32) -> &[u32] {
        let start = y as usize * self.width as usize;
        &self.pixels[start..start + self.width as usize]
    }

    /// Row `y` to write into; it must be inside the picture.
    pub fn row_mut(&mut self, y: u32) -> &mut [u32] {
        let start = y as usize * self.width as usize;
        &mut self.pixels[start..start + self.width as usize]
    }

    /// Fills a rectangle, clipped to the picture.
    pub fn fill_rect(&mut self, x: i32, y: i32, width: i32, height: i32, pixel: u32) {
        let left = x.clamp(0, self.width as i32) as usize;
        let right = x.saturating_add(width).clamp(0, self.width as i32) as usize;
        let top = y.clamp(0, self.height as i32) as u32;
        let bottom = y.saturating_add(height).clamp(0, self.height as i32) as u32;
        for row in top..bottom {
            if left < right {
                self.row_mut(row)[left..right].fill(pixel);
            }
        }
    }

    /// The part at (x, y) of the given size; what lies outside of the picture is transparent.
    pub fn crop(&self, x: i32, y: i32, width: u32, height: u32) -> Image {
        let mut part = Image::new(width, height, 0);
        part.blend(self, x.saturating_neg(), y.saturating_neg());
        part
    }

    /// Draws `over` with its top-left corner at (x, y), by its premultiplied alpha.
    pub fn blend(&mut self, over: &Image, x: i32, y: i32) {
        let left = x.clamp(0, self.width as i32);
        let right = x.saturating_add(over.width as i32).clamp(left, self.width as i32);
        let top = y.clamp(0, self.height as i32);
        let bottom = y.saturating_add(over.height as i32).clamp(top, self.height as i32);
        for row in top..bottom {
            let from = &over.row((row - y) as u32)[(left - x) as usize..(right - x) as usize];
            let to = &mut self.row_mut(row as u32)[left as usize..right as usize];
            for (below, above) in to.iter_mut().zip(from) {
                *below = blend_pixel(*below, *above);
            }
        }
    }

    /// The first pixel, in reading order, in which the two pictures differ.
    pub fn difference(&self, other: &Image) -> Option<Difference> {
        if (self.width, self.height) != (other.width, other.height) {
            return Some(Difference::Size {
                left: (self.width, self.height),
                right: (other.width, other.height),
            });
        }
        let index = self.pixels.iter().zip(&other.pixels).position(|(a, b)| a != b)?;
        let count = self.pixels.iter().zip(&other.pixels).filter(|(a, b)| a != b).count();
        Some(Difference::Pixel {
            x: (index % self.width as usize) as u32,
            y: (index / self.width as usize) as u32,
            left: self.pixels[index],
            right: other.pixels[index],
            count,
        })
    }

    /// A number that two different pictures share only by accident.
    pub fn checksum(&self) -> u64 {
        combine(self.width, (0..self.height).map(|y| row_checksum(self.row(y))))
    }

    /// The picture as a PNG file, 8 bits a channel with (straight) alpha.
    ///
    /// # Errors
    /// An empty picture cannot be a PNG.
    pub fn to_png(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Rgba);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(io::Error::other)?;
        let rgba: Vec<u8> = self.pixels.iter().flat_map(|pixel| straight_rgba(*pixel)).collect();
        writer.write_image_data(&rgba).map_err(io::Error::other)?;
        writer.finish().map_err(io::Error::other)?;
        Ok(bytes)
    }

    /// Writes [`Image::to_png`] to a file.
    ///
    /// # Errors
    /// As `to_png`, or when the file cannot be written.
    pub fn write_png(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.to_png()?)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} × {}, {:#018x})", self.width, self.height, self.checksum())
    }
}

/// In what two pictures differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// They are not of one size.
    Size {
        /// Width and height of the first.
        left: (u32, u32),
        /// Width and height of the second.
        right: (u32, u32),
    },
    /// Some pixels differ; this is the first of `count`.
    Pixel {
        /// Column of the pixel.
        x: u32,
        /// Row of the pixel.
        y: u32,
        /// Its value in the first picture.
        left: u32,
        /// Its value in the second picture.
        right: u32,
        /// How many pixels differ.
        count: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Size { left, right } => {
                write!(f, "sizes differ: {} × {} and {} × {}", left.0, left.1, right.0, right.1)
            }
            Difference::Pixel { x, y, left, right, count } => {
                write!(f, "{count} pixels differ, first at ({x}, {y}): {left:#010x} and {right:#010x}")
            }
        }
    }
}

/// The checksum of one row; [`combine`] makes a picture's checksum of them, so that a change of a few rows
/// costs only those rows.
pub(crate) fn row_checksum(row: &[u32]) -> u64 {
    let mut lanes =
        [0x9e37_79b9_7f4a_7c15u64, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, row.len() as u64];
    let step = |lane: u64, low: u32, high: u32| {
        (lane ^ (u64::from(low) | u64::from(high) << 32)).wrapping_mul(PRIME).rotate_left(29)
    };
    let (blocks, rest) = row.as_chunks::<8>();
    for block in blocks {
        lanes[0] = step(lanes[0], block[0], block[1]);
        lanes[1] = step(lanes[1], block[2], block[3]);
        lanes[2] = step(lanes[2], block[4], block[5]);
        lanes[3] = step(lanes[3], block[6], block[7]);
    }
    for pixel in rest {
        lanes[3] = step(lanes[3], *pixel, 0);
    }
    lanes.iter().fold(0, |sum, lane| (sum ^ lane).wrapping_mul(PRIME).rotate_left(27))
}

/// See [`row_checksum`].
pub(crate) fn combine(width: u32, rows: impl Iterator<Item = u64>) -> u64 {
    let sum = rows.fold(u64::from(width), |sum, row| (sum ^ row).wrapping_mul(PRIME).rotate_left(31));
    sum ^ (sum >> 32)
}

fn blend_pixel(below: u32, above: u32) -> u32 {
    let keep = 255 - (above >> 24);
    match keep {
        0 => above,
        255 if above == 0 => below,
        _ => {
            let channel = |shift: u32| {
                let under = (((below >> shift) & 255) * keep + 127) / 255;
                (((above >> shift) & 255) + under).min(255) << shift
            };
            channel(0) | channel(8) | channel(16) | channel(24)
        }
    }
}

fn straight_rgba(pixel: u32) -> [u8; 4] {
    let alpha = pixel >> 24;
    let channel = |shift: u32| match alpha {
        0 => 0,
        255 => (pixel >> shift) as u8,
        _ => (((pixel >> shift) & 255) * 255 / alpha).min(255) as u8,
    };
    [channel(16), channel(8), channel(0), alpha as u8]
}

const PRIME: u64 = 0x9fb2_1c65_1e98_df25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_the_first_pixel() {
        let left = Image::new(4, 3, 0xff00_0000);
        let mut right = left.clone();
        assert_eq!(left.difference(&right), None);
        right.set(2, 1, 0xffff_ffff);
        right.set(0, 2, 0xffff_ffff);
        assert_eq!(
            left.difference(&right),
            Some(Difference::Pixel { x: 2, y: 1, left: 0xff00_0000, right: 0xffff_ffff, count: 2 })
        );
        assert_ne!(left.checksum(), right.checksum());
    }

    #[test]
    fn blend_clips_and_mixes() {
        let mut below = Image::new(4, 4, 0xff00_0000);
        below.blend(&Image::new(4, 4, 0x8080_8080), -2, 3);
        assert_eq!(below.pixel(0, 3), Some(0xff80_8080));
        assert_eq!(below.pixel(2, 3), Some(0xff00_0000));
        assert_eq!(below.pixel(0, 2), Some(0xff00_0000));
    }

    #[test]
    fn crop_beyond_the_edge_is_transparent() {
        let part = Image::new(2, 2, 0xff12_3456).crop(1, 1, 2, 2);
        assert_eq!(part.pixels(), &[0xff12_3456, 0, 0, 0]);
    }

    #[test]
    fn png_reads_back() {
        let mut image = Image::new(3, 2, 0xff10_2030);
        image.set(1, 1, 0);
        let bytes = image.to_png().unwrap();
        let mut reader = png::Decoder::new(bytes.as_slice()).read_info().unwrap();
        let mut rgba = vec![0; reader.output_buffer_size()];
        reader.next_frame(&mut rgba).unwrap();
        assert_eq!(&rgba[..4], &[0x10, 0x20, 0x30, 0xff]);
        assert_eq!(&rgba[16..20], &[0, 0, 0, 0]);
    }
}
