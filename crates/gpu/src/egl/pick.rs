//! How OpenGL ES gives out the pixels of a plane, and what is to be done to be them as they are stored.
//!
//! What it must give out for a framebuffer is in its specification (OpenGL ES 3.0 §4.3.2); what it may is asked.
//! Invariant: no channel loses a bit on the way, but for floats that are converted once.
#![expect(unsafe_code, reason = "OpenGL has no safe form")]

use glow::HasContext;
use wayferry_pixels::Format;

use super::super::convert::{halves, singles};
use super::super::format::{Fourcc, Stored};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    /// `format` and `type` of `glReadPixels`.
    pub(super) order: u32,
    pub(super) kind: u32,
    /// Bytes of a pixel as it is given out.
    pub(super) bytes: u32,
    fix: Fix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fix {
    Nothing,
    /// Red and blue change places, eight bits each.
    SwapEights,
    /// The same with ten bits each.
    SwapTens,
    /// Of four bytes, only so many first.
    First(usize),
    /// Floats of 16 bits, or of 32, become bytes.
    Halves,
    Singles,
}

impl Pick {
    /// For the framebuffer that is bound, whose plane has such pixels; `None` if they are not known here.
    pub(super) fn of(gl: &glow::Context, fourcc: Fourcc, has_bgra: bool) -> Option<Self> {
        // SAFETY: the context is current.
        let asked = |name: u32| unsafe { gl.get_parameter_i32(name) }.cast_unsigned();
        let may = |order: u32, kind: u32| {
            (asked(glow::IMPLEMENTATION_COLOR_READ_FORMAT), asked(glow::IMPLEMENTATION_COLOR_READ_TYPE))
                == (order, kind)
        };
        let eights = |order: u32, fix: Fix| Self { order, kind: glow::UNSIGNED_BYTE, bytes: 4, fix };
        let tens =
            |fix: Fix| Self { order: glow::RGBA, kind: glow::UNSIGNED_INT_2_10_10_10_REV, bytes: 4, fix };
        let narrow = |order: u32, count: usize| match may(order, glow::UNSIGNED_BYTE) {
            // One or two.
            true => Self { order, kind: glow::UNSIGNED_BYTE, bytes: count as u32, fix: Fix::Nothing },
            false => eights(glow::RGBA, Fix::First(count)),
        };
        let floats = |kind: u32, bytes: u32, fix: Fix| Self { order: glow::RGBA, kind, bytes, fix };
        Some(match fourcc.stored() {
            Some(Stored::Plain(format)) => match format {
                Format::Argb8888 | Format::Xrgb8888 if has_bgra => eights(glow::BGRA, Fix::Nothing),
                Format::Argb8888 | Format::Xrgb8888 => eights(glow::RGBA, Fix::SwapEights),
                Format::Abgr8888 | Format::Xbgr8888 => eights(glow::RGBA, Fix::Nothing),
                Format::Abgr2101010 | Format::Xbgr2101010 => tens(Fix::Nothing),
                Format::Argb2101010 | Format::Xrgb2101010 => tens(Fix::SwapTens),
                Format::Rgb565 => return None,
            },
            Some(Stored::Halves(_)) => {
                let kind = [glow::HALF_FLOAT, HALF_FLOAT_OES].into_iter().find(|kind| may(glow::RGBA, *kind));
                let singles = floats(glow::FLOAT, 16, Fix::Singles);
                kind.map_or(singles, |kind| floats(kind, 8, Fix::Halves))
            }
            Some(Stored::Nv12) => return None,
            None if fourcc == Fourcc::R8 => narrow(glow::RED, 1),
            None if fourcc == Fourcc::GR88 => narrow(glow::RG, 2),
            None => return None,
        })
    }

    /// A row as it is stored, but for floats; in `room` if it is another than was given out.
    pub(super) fn fix<'a>(self, row: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
        let (pixels, _) = row.as_chunks::<4>();
        match self.fix {
            Fix::Nothing => return row,
            Fix::Halves => halves(row, room),
            Fix::Singles => singles(row, room),
            Fix::SwapEights => {
                room.clear();
                room.extend(
                    pixels.iter().flat_map(|[first, second, third, last]| [*third, *second, *first, *last]),
                );
            }
            Fix::SwapTens => {
                room.clear();
                room.extend(
                    pixels.iter().flat_map(|pixel| swap_tens(u32::from_le_bytes(*pixel)).to_le_bytes()),
                );
            }
            Fix::First(count) => {
                room.clear();
                room.extend(pixels.iter().flat_map(|pixel| &pixel[..count]));
            }
        }
        room
    }

    /// Whether a row is as it is to be read already.
    pub(super) fn converts(self) -> bool {
        matches!(self.fix, Fix::Halves | Fix::Singles)
    }
}

/// The lowest ten bits and the third ten change places.
fn swap_tens(pixel: u32) -> u32 {
    pixel & 0xc00f_fc00 | pixel << 20 & 0x3ff0_0000 | pixel >> 20 & 0x3ff
}

/// Of GL_OES_texture_half_float, before OpenGL ES 3.
const HALF_FLOAT_OES: u32 = 0x8D61;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_what_is_stored() {
        let of = |fix: Fix, row: &[u8]| {
            let pick = Pick { order: glow::RGBA, kind: glow::UNSIGNED_BYTE, bytes: 4, fix };
            pick.fix(row, &mut Vec::new()).to_vec()
        };
        assert_eq!(of(Fix::Nothing, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(of(Fix::SwapEights, &[1, 2, 3, 4, 5, 6, 7, 8]), [3, 2, 1, 4, 7, 6, 5, 8]);
        assert_eq!(of(Fix::First(1), &[1, 2, 3, 4, 5, 6, 7, 8]), [1, 5]);
        assert_eq!(of(Fix::First(2), &[1, 2, 3, 4, 5, 6, 7, 8]), [1, 2, 5, 6]);
        let pixel =
            |alpha: u32, blue: u32, green: u32, red: u32| alpha << 30 | blue << 20 | green << 10 | red;
        let (given, stored) = (pixel(2, 0x155, 0x2aa, 0x3fe), pixel(2, 0x3fe, 0x2aa, 0x155));
        assert_eq!(of(Fix::SwapTens, &given.to_le_bytes()), stored.to_le_bytes());
        assert_eq!(of(Fix::Singles, &1f32.to_le_bytes()), [255]);
        assert_eq!(of(Fix::Halves, &[0, 0x3c, 0, 0]), [255, 0]);
    }
}
