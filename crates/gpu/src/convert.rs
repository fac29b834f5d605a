//! Pixels of formats that no display has, as pixels with eight bits a channel: once, and by these rules.
//!
//! Floats are the values that eight bits would hold, 0 to 1: what is below or above is cut, and what is between is
//! rounded to the nearest. NV12 has luma from 16 to 235 and chroma around 128, without a word about its colours: they
//! are those of ITU-R BT.709 in pictures of more than 576 rows, and those of BT.601 in others, as of films; each pair
//! of chroma is that of four pixels.

use std::sync::OnceLock;

/// Pixels of 16-bit floats, eight bytes each, as four bytes each in the same order.
pub(crate) fn halves(floats: &[u8], out: &mut Vec<u8>) {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (0..=u16::MAX).map(|half| eight(single(half))).collect());
    let (floats, _) = floats.as_chunks::<2>();
    out.clear();
    out.extend(floats.iter().map(|half| table[usize::from(u16::from_le_bytes(*half))]));
}

/// The same of 32-bit floats, sixteen bytes each.
#[cfg(any(feature = "egl", test))]
pub(crate) fn singles(floats: &[u8], out: &mut Vec<u8>) {
    let (floats, _) = floats.as_chunks::<4>();
    out.clear();
    out.extend(floats.iter().map(|single| eight(f32::from_le_bytes(*single))));
}

/// A row of NV12 in a picture of so many rows: luma of pixels, chroma of every two of them.
pub(crate) fn nv12(luma: &[u8], chroma: &[u8], height: u32, out: &mut Vec<u8>) {
    let [red_v, green_u, green_v, blue_u] = if height > SD_ROWS { BT709 } else { BT601 };
    let (pairs, _) = chroma.as_chunks::<2>();
    out.clear();
    for (two, [u, v]) in luma.chunks(2).zip(pairs) {
        let (u, v) = (i32::from(*u) - 128, i32::from(*v) - 128);
        let (red, green, blue) = (red_v * v, green_u * u + green_v * v, blue_u * u);
        for y in two {
            let y = LUMA * (i32::from(*y) - 16) + HALF;
            // Within eight bits by then.
            let byte = |value: i32| (value >> 16).clamp(0, 255) as u8;
            out.extend([byte(y + blue), byte(y + green), byte(y + red), 0xff]);
        }
    }
}

/// The value of a 16-bit float (IEEE 754 binary16).
fn single(half: u16) -> f32 {
    let (exponent, fraction) = (half >> 10 & 0x1f, f32::from(half & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(i32::from(exponent) - 25),
    };
    if half >> 15 == 0 { magnitude } else { -magnitude }
}

/// A float from 0 to 1 as eight bits; what is no number is 0.
fn eight(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}

/// Pictures of more rows than this are in high definition.
const SD_ROWS: u32 = 576;

/// In 65536ths: of luma, 255 / 219; of red from V, of green from U and from V, of blue from U.
const LUMA: i32 = 76_309;
const BT601: [i32; 4] = [104_597, -25_675, -53_279, 132_201];
const BT709: [i32; 4] = [117_489, -13_975, -34_925, 138_438];
const HALF: i32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_cut_and_rounded_once() {
        let of = |bits: u16| {
            let mut out = Vec::new();
            halves(&bits.to_le_bytes(), &mut out);
            out[0]
        };
        let (one, half, minus_one, two, infinite, no_number) =
            (0x3c00, 0x3800, 0xbc00, 0x4000, 0x7c00, 0x7e00);
        assert_eq!(
            [0, one, half, minus_one, two, infinite, no_number].map(of),
            [0, 255, 128, 0, 255, 255, 0]
        );
        assert_eq!((of(0xfc00), of(0x0001), of(0x8001)), (0, 0, 0), "below zero, and next to it");
        // Each of the 256 values comes back, from the float that is nearest to it.
        for value in 0..=255u8 {
            let exact = f32::from(value) / 255.0;
            let near = (0..=0x3c00u16)
                .min_by(|a, b| (single(*a) - exact).abs().total_cmp(&(single(*b) - exact).abs()));
            assert_eq!(near.map(of), Some(value));
        }
        for bits in 0..=u16::MAX {
            let mut out = Vec::new();
            singles(&single(bits).to_le_bytes(), &mut out);
            assert_eq!(out, [of(bits)], "{bits:#x}");
        }
    }

    #[test]
    fn colours_of_films_are_those_of_the_standards() {
        for (height, [kr, kb]) in [(576, [0.299, 0.114]), (577, [0.2126, 0.0722])] {
            let kg = 1.0 - kr - kb;
            for y in (0..=255u8).step_by(3) {
                for u in (0..=255u8).step_by(5) {
                    for v in (0..=255u8).step_by(5) {
                        let mut out = Vec::new();
                        nv12(&[y, y, y], &[u, v, u, v], height, &mut out);
                        let luma = (f64::from(y) - 16.0) / 219.0;
                        let (pb, pr) = ((f64::from(u) - 128.0) / 224.0, (f64::from(v) - 128.0) / 224.0);
                        let (red, blue) = (luma + 2.0 * (1.0 - kr) * pr, luma + 2.0 * (1.0 - kb) * pb);
                        let green = (luma - kr * red - kb * blue) / kg;
                        for (is, should) in out.iter().zip([blue, green, red, 1.0].iter().cycle()) {
                            let should = (should.clamp(0.0, 1.0) * 255.0).round();
                            assert!((f64::from(*is) - should).abs() <= 1.0, "{y} {u} {v}: {out:?}, {should}");
                        }
                        assert_eq!(out.len(), 12);
                    }
                }
            }
        }
    }
}
