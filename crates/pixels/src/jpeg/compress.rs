//! Making lossy pictures.
//!
//! What they are is said in [`super`]. Invariant: what is made here is [plain](super::is_plain).

use turbojpeg::{Image, PixelFormat, Subsamp};

use super::{Order, SCALE, order, side};
use crate::content::Content;
use crate::fidelity::Grade;
use crate::geometry::Rect;

/// Quality of previews: they are there for a moment, and the first to arrive.
const PREVIEW_QUALITY: u8 = 40;

/// Makes pictures; keeps memory only.
#[derive(Default)]
pub(crate) struct Compressor {
    jpeg: Option<turbojpeg::Compressor>,
    small: Vec<u8>,
}

impl Compressor {
    /// A rectangle as a picture, at a quality from 1 to 100. `None` when there is none of this format.
    pub(crate) fn picture(
        &mut self,
        content: &Content,
        rect: Rect,
        grade: Grade,
        quality: u8,
    ) -> Option<Vec<u8>> {
        let format = match order(content.format())? {
            Order::Bgr => PixelFormat::BGRX,
            Order::Rgb => PixelFormat::RGBX,
        };
        let (width, height) = (side(rect.width, grade) as usize, side(rect.height, grade) as usize);
        let quality = match grade {
            Grade::Detail => quality,
            Grade::Preview => quality.min(PREVIEW_QUALITY),
        };
        let image = match grade {
            Grade::Detail => {
                let pixels = &content.pixels()[content.stride() * rect.y as usize + rect.x as usize * 4..];
                Image { pixels, width, pitch: content.stride(), height, format }
            }
            Grade::Preview => {
                shrink(content, rect, &mut self.small);
                Image { pixels: &self.small[..], width, pitch: width * 4, height, format }
            }
        };
        let jpeg = match &mut self.jpeg {
            Some(jpeg) => jpeg,
            none => none.insert(turbojpeg::Compressor::new().ok()?),
        };
        jpeg.set_subsamp(Subsamp::Sub2x2).ok()?;
        jpeg.set_quality(i32::from(quality.clamp(1, 100))).ok()?;
        jpeg.compress_to_vec(image).ok()
    }
}

/// The means of squares of [`SCALE`] pixels a side; at the right and lower edges, of what there is of them.
fn shrink(content: &Content, rect: Rect, target: &mut Vec<u8>) {
    target.clear();
    let width = rect.width.div_ceil(SCALE) as usize;
    let mut sums = vec![[0u32; 4]; width];
    for top in (rect.y..rect.bottom()).step_by(SCALE as usize) {
        sums.fill([0; 4]);
        let bottom = (top + SCALE).min(rect.bottom());
        for y in top..bottom {
            let row = content.row(y, rect.x, rect.width).as_chunks::<4>().0;
            for (sum, square) in sums.iter_mut().zip(row.chunks(SCALE as usize)) {
                for pixel in square {
                    for (sum, value) in sum.iter_mut().zip(pixel) {
                        *sum += u32::from(*value);
                    }
                }
            }
        }
        for (index, sum) in sums.iter().enumerate() {
            let across = (rect.width - index as u32 * SCALE).min(SCALE);
            let count = across * (bottom - top);
            target.extend(sum.map(|sum| ((sum + count / 2) / count) as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::geometry::Size;

    #[test]
    fn means_are_of_the_pixels_that_there_are() {
        let mut content = Content::new(Size::new(5, 5).expect("a size"), Format::Xrgb8888);
        content.write(Rect::new(4, 0, 1, 5), &[80; 20]);
        let mut small = Vec::new();
        shrink(&content, content.size().rect(), &mut small);
        assert_eq!(small, [[0; 4], [80; 4], [0; 4], [80; 4]].concat());
    }
}
