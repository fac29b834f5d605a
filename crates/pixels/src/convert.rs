//! Rewrites rows for compositors that lack a format.
//!
//! Every compositor has `argb8888` and `xrgb8888` of `wl_shm`; a content in another format is shown
//! in [`Format::fallback`]. 10-bit channels are rounded to 8, 5- and 6-bit ones are widened; nothing
//! is dithered, and content itself is never converted.
//!
//! The one invariant: premultiplied colour stays at or below its alpha.

use crate::format::Format;

/// Converts a row of `format` to its [`Format::fallback`], 4 bytes per pixel. Converts as many pixels
/// as both slices hold; the unused byte of an `xrgb8888` pixel becomes 255.
pub fn row(format: Format, source: &[u8], target: &mut [u8]) {
    match format {
        Format::Argb8888 => {
            let length = source.len().min(target.len()) & !3;
            target[..length].copy_from_slice(&source[..length]);
        }
        Format::Xrgb8888 => each(source, target, |pixel| pixel | OPAQUE),
        Format::Abgr8888 => each(source, target, swap_red_and_blue),
        Format::Xbgr8888 => each(source, target, |pixel| swap_red_and_blue(pixel) | OPAQUE),
        Format::Rgb565 => widen_565(source, target),
        Format::Argb2101010 => each(source, target, narrow_10),
        Format::Xrgb2101010 => each(source, target, |pixel| narrow_10(pixel) | OPAQUE),
        Format::Abgr2101010 => each(source, target, |pixel| swap_red_and_blue(narrow_10(pixel))),
        Format::Xbgr2101010 => each(source, target, |pixel| swap_red_and_blue(narrow_10(pixel)) | OPAQUE),
    }
}

/// Exchanges the first and the third byte of each pixel of 4 bytes, red and blue; says whether the fourth, its alpha,
/// is 255 everywhere.
pub fn exchange(row: &mut [u8]) -> bool {
    let mut alpha = OPAQUE;
    for pixel in row.as_chunks_mut::<4>().0 {
        let word = u32::from_le_bytes(*pixel);
        alpha &= word;
        *pixel = swap_red_and_blue(word).to_le_bytes();
    }
    alpha == OPAQUE
}

fn each(source: &[u8], target: &mut [u8], convert: impl Fn(u32) -> u32) {
    for (from, to) in source.as_chunks::<4>().0.iter().zip(target.as_chunks_mut::<4>().0) {
        *to = convert(u32::from_le_bytes(*from)).to_le_bytes();
    }
}

fn widen_565(source: &[u8], target: &mut [u8]) {
    for (from, to) in source.as_chunks::<2>().0.iter().zip(target.as_chunks_mut::<4>().0) {
        let pixel = u32::from(u16::from_le_bytes(*from));
        let (red, green, blue) = (pixel >> 11, pixel >> 5 & 0x3f, pixel & 0x1f);
        // repeating the upper bits below maps the largest value to 255
        let (red, green, blue) = (red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2);
        *to = (OPAQUE | red << 16 | green << 8 | blue).to_le_bytes();
    }
}

fn swap_red_and_blue(pixel: u32) -> u32 {
    pixel & 0xff00_ff00 | pixel >> 16 & 0xff | (pixel & 0xff) << 16
}

fn narrow_10(pixel: u32) -> u32 {
    let narrow = |channel: u32| ((channel & 0x3ff) * 255 + 511) / 1023;
    let alpha = (pixel >> 30) * 85;
    alpha << 24 | narrow(pixel >> 20) << 16 | narrow(pixel >> 10) << 8 | narrow(pixel)
}

const OPAQUE: u32 = 0xff00_0000;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: Format, pixel: u32) -> u32 {
        let mut target = [0; 4];
        row(format, &pixel.to_le_bytes()[..format.bytes_per_pixel()], &mut target);
        u32::from_le_bytes(target)
    }

    #[test]
    fn channels_land_where_they_belong() {
        assert_eq!(one(Format::Argb8888, 0x1122_3344), 0x1122_3344);
        assert_eq!(one(Format::Xrgb8888, 0x1122_3344), 0xff22_3344);
        assert_eq!(one(Format::Abgr8888, 0x1122_3344), 0x1144_3322);
        assert_eq!(one(Format::Xbgr8888, 0x1122_3344), 0xff44_3322);
        assert_eq!(one(Format::Rgb565, 0xf800), 0xffff_0000);
        assert_eq!(one(Format::Rgb565, 0x07e0), 0xff00_ff00);
        assert_eq!(one(Format::Rgb565, 0x0010), 0xff00_0084);
        assert_eq!(one(Format::Argb2101010, 0x7ff0_0000), 0x55ff_0000);
        assert_eq!(one(Format::Xrgb2101010, 0x000f_fc00), 0xff00_ff00);
        assert_eq!(one(Format::Abgr2101010, 0xbff0_0000), 0xaa00_00ff);
        assert_eq!(one(Format::Xbgr2101010, 0x0000_03ff), 0xffff_0000);
    }

    #[test]
    fn red_and_blue_change_places_and_transparency_is_told() {
        let mut pixels = [1, 2, 3, 255, 4, 5, 6, 255];
        assert!(exchange(&mut pixels));
        assert_eq!(pixels, [3, 2, 1, 255, 6, 5, 4, 255]);
        assert!(!exchange(&mut [1, 2, 3, 254, 4, 5, 6, 255]) && exchange(&mut []));
    }

    #[test]
    fn premultiplied_stays_premultiplied() {
        for alpha in 0..4 {
            // colour ≤ alpha on the source's own scale
            let colour = 1023 * alpha / 3;
            let pixel = one(Format::Argb2101010, alpha << 30 | colour << 20 | colour << 10 | colour);
            assert!((pixel & 0xff) <= pixel >> 24, "{pixel:08x}");
            assert!((pixel >> 16 & 0xff) <= pixel >> 24, "{pixel:08x}");
        }
    }

    #[test]
    fn short_slices_are_not_overrun() {
        let mut target = [7; 6];
        row(Format::Argb8888, &[1; 16], &mut target);
        assert_eq!(target, [1, 1, 1, 1, 7, 7]);
        row(Format::Rgb565, &[0xff; 3], &mut target);
        assert_eq!(target, [255, 255, 255, 255, 7, 7]);
    }
}
