//! Lossy pictures: JPEG in full size, or of a quarter of the size.
//!
//! For formats of four bytes, one for each of three colours, on a link that is slower than the program. The fourth
//! channel is not in the picture. Images from the peer are refused unless they are what [`Compressor::picture`] makes:
//! one baseline scan of three components with halved colours, of the size expected; so reading one costs [`effort`],
//! and no more.
//!
//! The images themselves are made and read by others' codecs; each that reads them is a [`Codec`].
//!
//! The one invariant: no image makes the decoder write more than [`side`] by [`side`] pixels.

#[cfg(feature = "encode")]
mod compress;
#[cfg(feature = "turbojpeg")]
mod turbo;
#[cfg(any(test, not(feature = "turbojpeg")))]
mod zune;

#[cfg(feature = "encode")]
pub(crate) use compress::Compressor;
#[cfg(feature = "turbojpeg")]
use turbo::Turbo as Chosen;
#[cfg(not(feature = "turbojpeg"))]
use zune::Zune as Chosen;

use crate::content::Content;
use crate::fidelity::Grade;
use crate::format::Format;
use crate::geometry::Rect;

/// By what the sides of a preview are divided.
const SCALE: u32 = 4;

/// Pixels of a picture for a side of `length` pixels on the screen.
pub(crate) fn side(length: u32, grade: Grade) -> u32 {
    match grade {
        Grade::Detail => length,
        Grade::Preview => length.div_ceil(SCALE),
    }
}

/// What an image costs to read: its pixels in blocks of 16 × 16, and as much as a small picture for being one.
pub(crate) fn effort(rect: Rect, grade: Grade) -> u64 {
    let blocks = |length| u64::from(side(length, grade).next_multiple_of(16));
    blocks(rect.width) * blocks(rect.height) + 1024
}

/// How colours lie in the four bytes of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Blue, green, red, and a fourth channel.
    Bgr,
    /// Red, green, blue, and a fourth channel.
    Rgb,
}

/// How a format's pixels lie in memory; `None` if there are no lossy pictures of it.
pub(crate) fn order(format: Format) -> Option<Order> {
    match format {
        Format::Argb8888 | Format::Xrgb8888 => Some(Order::Bgr),
        Format::Abgr8888 | Format::Xbgr8888 => Some(Order::Rgb),
        _ => None,
    }
}

/// The value of a rectangle's fourth channel, if a lossy picture may stand for it: transparency is never lossy, but
/// where there is none the unused bits are.
pub(crate) fn fourth(content: &Content, rect: Rect) -> Option<u8> {
    let first = content.row(rect.y, rect.x, 1).get(3).copied()?;
    let rows = || (rect.y..rect.bottom()).map(|y| content.row(y, rect.x, rect.width));
    let constant = || rows().all(|row| row.as_chunks::<4>().0.iter().all(|pixel| pixel[3] == first));
    (!content.format().has_alpha() || constant()).then_some(first)
}

/// What reads images.
trait Codec: Default {
    /// Reads an image that [is plain](is_plain) and has this size into as many pixels of this order, row by row; the
    /// fourth channel may become anything. Whether it could be read.
    fn read(&mut self, jpeg: &[u8], size: (usize, usize), order: Order, pixels: &mut [u8]) -> bool;
}

/// Reads pictures; keeps memory only.
#[derive(Default)]
pub(crate) struct Decompressor {
    codec: Chosen,
}

impl Decompressor {
    /// The pixels of a picture for `rect`, row by row, with this fourth channel; `None` when it is not such a picture.
    pub(crate) fn pixels(
        &mut self,
        jpeg: &[u8],
        rect: Rect,
        grade: Grade,
        format: Format,
        fourth: u8,
    ) -> Option<Vec<u8>> {
        let size = (side(rect.width, grade) as usize, side(rect.height, grade) as usize);
        let mut pixels = read(&mut self.codec, jpeg, size, order(format)?)?;
        pixels.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel[3] = fourth);
        Some(pixels)
    }
}

/// The pixels of an image, if it is one that is let through.
fn read(codec: &mut impl Codec, jpeg: &[u8], size: (usize, usize), order: Order) -> Option<Vec<u8>> {
    if !is_plain(jpeg, size) {
        return None;
    }
    let mut pixels = vec![0; size.0 * size.1 * 4];
    codec.read(jpeg, size, order, &mut pixels).then_some(pixels)
}

/// Whether an image has one baseline scan of three components and this size, as its markers say (ITU-T T.81, annex B).
fn is_plain(jpeg: &[u8], (width, height): (usize, usize)) -> bool {
    let Some(mut rest) = jpeg.strip_prefix(&[0xff, SOI]) else { return false };
    let mut frames = 0;
    loop {
        let [0xff, marker, high, low, ..] = *rest else { return false };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(segment) = rest.get(4..2 + length) else { return false };
        rest = &rest[2 + length..];
        match marker {
            APP0 | DQT | DHT => {}
            SOF0 => {
                // Components of half the sides beside the first one.
                let [8, h1, h0, w1, w0, 3, _, 0x22, _, _, 0x11, _, _, 0x11, _] = *segment else {
                    return false;
                };
                let size = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
                if (usize::from(size.0), usize::from(size.1)) != (width, height) {
                    return false;
                }
                frames += 1;
            }
            SOS => return frames == 1 && segment.first() == Some(&3) && is_scan(rest),
            _ => return false,
        }
    }
}

/// Whether this is the data of one scan, up to the image's end.
fn is_scan(data: &[u8]) -> bool {
    let Some(data) = data.strip_suffix(&[0xff, EOI]) else { return false };
    let stuffed = |pair: &[u8]| pair[0] != 0xff || pair[1] == 0;
    data.last() != Some(&0xff) && data.windows(2).all(stuffed)
}

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const DQT: u8 = 0xdb;
const DHT: u8 = 0xc4;
const SOF0: u8 = 0xc0;
const APP0: u8 = 0xe0;

/// Paints a picture over its rectangle; `pixels` are what [`Decompressor::pixels`] gave for it.
pub(crate) fn paint(content: &mut Content, rect: Rect, grade: Grade, pixels: &[u8]) {
    match grade {
        Grade::Detail => content.write(rect, pixels),
        Grade::Preview => enlarge(content, rect, pixels),
    }
}

/// Paints a preview, with values between its pixels.
fn enlarge(content: &mut Content, rect: Rect, pixels: &[u8]) {
    let (width, height) = (rect.width.div_ceil(SCALE), rect.height.div_ceil(SCALE));
    let stride = width as usize * 4;
    let row = |y: u32| &pixels[y as usize * stride..][..stride];
    let mut between = vec![0u16; stride];
    for y in 0..rect.height {
        let (upper, lower, weight) = place(y, height);
        for ((target, upper), lower) in between.iter_mut().zip(row(upper)).zip(row(lower)) {
            *target = u16::from(*upper) * (WHOLE - weight) + u16::from(*lower) * weight;
        }
        widen(between.as_chunks::<4>().0, content.row_mut(rect.y + y, rect.x, rect.width));
    }
}

/// A row of a preview, its values times [`WHOLE`], as a row of pixels. Half a square lies before the first pixel's
/// middle, whole squares between two, the rest behind the last.
fn widen(row: &[[u16; 4]], target: &mut [u8]) {
    let (left, rest) = target.split_at_mut(target.len().min(4 * SCALE as usize / 2));
    let inner = (4 * SCALE as usize * (row.len() - 1)).min(rest.len());
    let (between, right) = rest.split_at_mut(inner);
    let plain = |pixel: [u16; 4]| pixel.map(|value| (value / WHOLE) as u8);
    left.as_chunks_mut::<4>().0.fill(plain(row[0]));
    right.as_chunks_mut::<4>().0.fill(plain(row[row.len() - 1]));
    for (square, pair) in between.chunks_mut(4 * SCALE as usize).zip(row.windows(2)) {
        for (target, weight) in square.as_chunks_mut::<4>().0.iter_mut().zip([1, 3, 5, 7]) {
            for ((target, left), right) in target.iter_mut().zip(pair[0]).zip(pair[1]) {
                *target = ((left * (WHOLE - weight) + right * weight) / (WHOLE * WHOLE)) as u8;
            }
        }
    }
}

/// Between which of `count` pixels of a preview a pixel lies, and how near the second, in parts of [`WHOLE`].
fn place(at: u32, count: u32) -> (u32, u32, u16) {
    // Its middle, and theirs, in half pixels of the screen.
    let beyond = (2 * at + 1).saturating_sub(SCALE);
    let lower = (beyond / (2 * SCALE)).min(count - 1);
    (lower, (lower + 1).min(count - 1), (beyond % (2 * SCALE)) as u16)
}

/// Parts of the distance between two pixels of a preview.
const WHOLE: u16 = 2 * SCALE as u16;

#[cfg(all(test, feature = "encode"))]
mod tests {
    use super::*;
    use crate::geometry::Size;

    fn slope(width: u32, height: u32) -> Content {
        let mut content = Content::new(Size::new(width, height).expect("a size"), Format::Xrgb8888);
        for y in 0..height {
            for (x, pixel) in (0..width).zip(content.row_mut(y, 0, width).as_chunks_mut::<4>().0) {
                *pixel = [(x * 255 / width) as u8, (y * 255 / height) as u8, 128, 7];
            }
        }
        content
    }

    fn worst(one: &Content, other: &Content) -> u8 {
        let pairs = one.pixels().iter().zip(other.pixels());
        pairs.map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0)
    }

    fn through(content: &Content, rect: Rect, grade: Grade) -> Content {
        let jpeg = Compressor::default().picture(content, rect, grade, 90).expect("a picture");
        let pixels = Decompressor::default().pixels(&jpeg, rect, grade, content.format(), 7).expect("pixels");
        let mut painted = content.clone();
        for y in rect.y..rect.bottom() {
            painted.row_mut(y, rect.x, rect.width).fill(0);
        }
        paint(&mut painted, rect, grade, &pixels);
        painted
    }

    #[test]
    fn pictures_look_alike_at_any_size() {
        for (width, height) in [(1, 1), (5, 3), (17, 64), (130, 67)] {
            let content = slope(width, height);
            let detail = through(&content, content.size().rect(), Grade::Detail);
            assert!(worst(&content, &detail) < 50, "{width}x{height}");
        }
        let content = slope(300, 200);
        let rect = Rect::new(31, 17, 201, 103);
        assert!(worst(&content, &through(&content, rect, Grade::Detail)) < 12);
        assert!(worst(&content, &through(&content, rect, Grade::Preview)) < 16);
    }

    #[test]
    fn a_preview_of_one_colour_is_that_colour() {
        let mut content = slope(9, 6);
        content.fill(&[200, 100, 50, 7]);
        assert!(worst(&content, &through(&content, content.size().rect(), Grade::Preview)) < 4);
    }

    #[test]
    fn previews_are_enlarged_across_as_they_are_down() {
        for (width, height) in [(1, 1), (2, 9), (3, 5), (4, 4), (7, 13), (33, 18)] {
            let (small, other) = (Rect::new(0, 0, width, height), Rect::new(0, 0, height, width));
            let side = |length| side(length, Grade::Preview) as usize;
            let (across, down) = (side(width), side(height));
            let value = |x: usize, y: usize| ((x * 97 + y * 31) % 256) as u8;
            let pixels = |across, down, value: &dyn Fn(usize, usize) -> u8| -> Vec<u8> {
                (0..across * down).flat_map(|at| [value(at % across, at / across); 4]).collect()
            };
            let paint = |rect: Rect, pixels: Vec<u8>| {
                let mut content =
                    Content::new(Size::new(rect.width, rect.height).expect("a size"), Format::Xrgb8888);
                enlarge(&mut content, rect, &pixels);
                content
            };
            let one = paint(small, pixels(across, down, &value));
            let turned = paint(other, pixels(down, across, &|x, y| value(y, x)));
            for y in 0..height {
                for x in 0..width {
                    assert_eq!(one.row(y, x, 1), turned.row(x, y, 1), "{x},{y} of {width}x{height}");
                }
            }
        }
    }

    #[test]
    fn only_plain_images_of_the_right_size_are_read() {
        let content = slope(40, 30);
        let rect = content.size().rect();
        let jpeg = Compressor::default().picture(&content, rect, Grade::Detail, 50).expect("a picture");
        let mut reader = Decompressor::default();
        let mut read = |jpeg: &[u8]| reader.pixels(jpeg, rect, Grade::Detail, Format::Xrgb8888, 0).is_some();
        assert!(read(&jpeg));
        assert!(!read(&jpeg[..jpeg.len() - 1]), "no end");
        let frame = jpeg.windows(2).position(|pair| pair == [0xff, SOF0]).expect("a frame");
        let scan = jpeg.windows(2).position(|pair| pair == [0xff, SOS]).expect("a scan");
        for (at, value) in
            [(frame + 1, 0xc2), (frame + 6, 31), (frame + 9, 1), (frame + 11, 0x44), (scan + 4, 1)]
        {
            let mut wrong = jpeg.clone();
            wrong[at] = value;
            assert!(!read(&wrong), "byte {at}");
        }
        let mut twice = jpeg.clone();
        twice.truncate(jpeg.len() - 2);
        twice.extend_from_slice(&jpeg[2..]);
        assert!(!read(&twice), "two scans");
    }

    #[test]
    fn both_readers_see_nearly_the_same() {
        let content = slope(131, 77);
        for (rect, grade) in [
            (content.size().rect(), Grade::Detail),
            (content.size().rect(), Grade::Preview),
            (Rect::new(3, 9, 1, 1), Grade::Detail),
            (Rect::new(40, 2, 17, 65), Grade::Detail),
        ] {
            for quality in [40, 90] {
                let jpeg = Compressor::default().picture(&content, rect, grade, quality).expect("a picture");
                let size = (side(rect.width, grade) as usize, side(rect.height, grade) as usize);
                for order in [Order::Bgr, Order::Rgb] {
                    let one = read(&mut turbo::Turbo::default(), &jpeg, size, order).expect("pixels");
                    let other = read(&mut zune::Zune, &jpeg, size, order).expect("pixels");
                    let colours = |pixels: &[u8]| -> Vec<u8> {
                        pixels
                            .as_chunks::<4>()
                            .0
                            .iter()
                            .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]])
                            .collect()
                    };
                    let pairs = colours(&one).into_iter().zip(colours(&other));
                    let worst = pairs.map(|(one, other)| one.abs_diff(other)).max();
                    assert!(worst < Some(8), "{worst:?} in {rect:?} at {quality}");
                }
            }
        }
    }

    #[test]
    fn transparency_is_not_lossy() {
        let mut content = Content::new(Size::new(8, 8).expect("a size"), Format::Argb8888);
        content.fill(&[1, 2, 3, 255]);
        assert_eq!(fourth(&content, content.size().rect()), Some(255));
        content.write(Rect::new(3, 3, 1, 1), &[0; 4]);
        assert_eq!(fourth(&content, content.size().rect()), None);
        assert_eq!(fourth(&content, Rect::new(4, 4, 4, 4)), Some(255));
    }
}
