//! Pixels as a canvas takes them: red, green, blue, alpha, and colour that is not multiplied by it.
//!
//! Invariant: a pixel without transparency keeps each of its 8 bits per channel.

use wayferry_pixels::{Content, Rect, convert};

/// The pixels of a part of a content, row by row, four bytes each, as `ImageData` has them.
///
/// What lies outside the content is left out.
pub fn rgba(content: &Content, part: Rect) -> Vec<u8> {
    let Some(part) = part.intersection(content.size().rect()) else { return Vec::new() };
    let row = part.width as usize * 4;
    let mut out = vec![0; row * part.height as usize];
    for (y, target) in (part.y..part.bottom()).zip(out.chunks_exact_mut(row)) {
        convert::row(content.format(), content.row(y, part.x, part.width), target);
        if !convert::exchange(target) {
            target.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| *pixel = straight(*pixel));
        }
    }
    out
}

/// One pixel, red first, whose colour is multiplied by its alpha.
fn straight([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    let apart = |channel: u8| match alpha {
        0 => 0,
        255 => channel,
        _ => ((u32::from(channel) * 255 + u32::from(alpha) / 2) / u32::from(alpha)).min(255) as u8,
    };
    [apart(red), apart(green), apart(blue), alpha]
}

#[cfg(test)]
mod tests {
    use wayferry_pixels::{Format, Size};

    use super::*;

    fn content(format: Format, pixels: &[u8]) -> Content {
        let mut content = Content::new(Size::new(2, 1).unwrap(), format);
        content.write_row(0, 0, pixels);
        content
    }

    #[test]
    fn channels_land_where_a_canvas_wants_them() {
        let all = Rect::new(0, 0, 2, 1);
        let xrgb = content(Format::Xrgb8888, &[3, 2, 1, 9, 6, 5, 4, 0]);
        assert_eq!(rgba(&xrgb, all), [1, 2, 3, 255, 4, 5, 6, 255]);
        let argb = content(Format::Argb8888, &[0, 64, 128, 128, 9, 9, 9, 0]);
        assert_eq!(rgba(&argb, all), [255, 128, 0, 128, 0, 0, 0, 0]);
        let mixed = content(Format::Argb8888, &[3, 2, 1, 255, 0, 64, 128, 128]);
        assert_eq!(rgba(&mixed, all), [1, 2, 3, 255, 255, 128, 0, 128]);
        let rgb = content(Format::Rgb565, &[0, 0xf8, 0xe0, 7]);
        assert_eq!(rgba(&rgb, all), [255, 0, 0, 255, 0, 255, 0, 255]);
        // No program should say so: colour above its alpha.
        let bright = content(Format::Argb8888, &[255, 255, 255, 1, 0, 0, 0, 1]);
        assert_eq!(rgba(&bright, all), [255, 255, 255, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn what_lies_outside_is_left_out() {
        let xrgb = content(Format::Xrgb8888, &[3, 2, 1, 9, 6, 5, 4, 0]);
        assert_eq!(rgba(&xrgb, Rect::new(1, 0, 9, 9)), [4, 5, 6, 255]);
        assert_eq!(rgba(&xrgb, Rect::new(2, 0, 1, 1)), []);
        assert_eq!(rgba(&xrgb, Rect::new(0, 7, u32::MAX, 1)), []);
    }
}
