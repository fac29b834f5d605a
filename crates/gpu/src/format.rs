//! Formats and modifiers as the kernel names them, and as what pixels of them are read.

use std::fmt;

use wayferry_pixels::{Format, Rect, Size};

use super::convert;

/// A pixel format by the four characters of its `DRM_FORMAT_` code, the first in the lowest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fourcc(pub u32);

impl Fourcc {
    /// The code of four characters.
    #[must_use]
    pub const fn new(characters: [u8; 4]) -> Self {
        Self(u32::from_le_bytes(characters))
    }

    /// That of a format of ours.
    #[must_use]
    pub fn of(format: Format) -> Self {
        match format {
            // The only two whose values in `wl_shm` are others.
            Format::Argb8888 => Self::new(*b"AR24"),
            Format::Xrgb8888 => Self::new(*b"XR24"),
            other => Self(other.to_wl_shm()),
        }
    }

    /// How buffers of it hold their pixels; `None` for formats that are not known here.
    #[must_use]
    pub fn stored(self) -> Option<Stored> {
        match self {
            Self::NV12 => Some(Stored::Nv12),
            Self::AB4H => Some(Stored::Halves(Format::Abgr8888)),
            Self::XB4H => Some(Stored::Halves(Format::Xbgr8888)),
            _ => Format::ALL.into_iter().find(|format| Self::of(*format) == self).map(Stored::Plain),
        }
    }

    /// Luma, and chroma at half of the size: `DRM_FORMAT_NV12`.
    pub const NV12: Self = Self::new(*b"NV12");
    /// The planes of that, each by itself: `DRM_FORMAT_R8` and `DRM_FORMAT_GR88`.
    pub const R8: Self = Self::new(*b"R8  ");
    /// See [`Self::R8`].
    pub const GR88: Self = Self::new(*b"GR88");
    /// Floats of 16 bits for red, green, blue and alpha: `DRM_FORMAT_ABGR16161616F`.
    pub const AB4H: Self = Self::new(*b"AB4H");
    /// The same without alpha: `DRM_FORMAT_XBGR16161616F`.
    pub const XB4H: Self = Self::new(*b"XB4H");
}

/// How a buffer holds its pixels, and so as what they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As a format of ours, as which they are read.
    Plain(Format),
    /// As floats of 16 bits for red, green, blue and alpha, read as this format of eight bits a channel.
    Halves(Format),
    /// As NV12, read as [`Format::Xrgb8888`].
    Nv12,
}

/// What a plane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Samples {
    /// Bytes of one.
    pub(crate) bytes: u32,
    /// Pixels that share one, in each direction.
    pub(crate) step: u32,
}

impl Stored {
    /// As what pixels are read.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Self::Plain(format) | Self::Halves(format) => format,
            Self::Nv12 => Format::Xrgb8888,
        }
    }

    /// The planes of a buffer, without those that a modifier adds.
    pub(crate) fn planes(self) -> Vec<Samples> {
        let one = |bytes: u32| Samples { bytes, step: 1 };
        match self {
            // At most four.
            Self::Plain(format) => vec![one(format.bytes_per_pixel() as u32)],
            Self::Halves(_) => vec![one(8)],
            Self::Nv12 => vec![one(1), Samples { bytes: 2, step: 2 }],
        }
    }
}

impl Stored {
    /// A rectangle made larger, so that it begins and ends with samples of every plane.
    pub(crate) fn whole(self, rect: Rect, size: Size) -> Rect {
        let step = self.planes().iter().map(|samples| samples.step).max().unwrap_or(1);
        let (x, y) = (rect.x / step * step, rect.y / step * step);
        let right = (rect.x + rect.width).next_multiple_of(step).min(size.width());
        let bottom = rect.bottom().next_multiple_of(step).min(size.height());
        Rect { x, y, width: right - x, height: bottom - y }
    }

    /// The pixels of a row, from that of each plane; in `room` if they are others.
    pub(crate) fn pixels<'a>(
        self,
        size: Size,
        [first, second]: [&'a [u8]; 2],
        room: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match self {
            Self::Plain(_) => return first,
            Self::Halves(_) => convert::halves(first, room),
            Self::Nv12 => convert::nv12(first, second, size.height(), room),
        }
        room
    }
}

impl Samples {
    /// Bytes that so many pixels of a row take, the first of which begins a sample.
    pub(crate) fn row(self, width: u32) -> usize {
        width.div_ceil(self.step) as usize * self.bytes as usize
    }
}

impl fmt::Display for Fourcc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = self.0.to_le_bytes();
        if characters.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
            characters.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
        } else {
            write!(f, "{:#010x}", self.0)
        }
    }
}

/// How pixels lie in memory: a `DRM_FORMAT_MOD_` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Modifier(pub u64);

impl Modifier {
    /// Row by row.
    pub const LINEAR: Self = Self(0);
    /// As the driver that made the buffer knows.
    pub const INVALID: Self = Self(0x00ff_ffff_ffff_ffff);

    /// From its halves, as they cross in Wayland.
    #[must_use]
    pub fn from_halves(high: u32, low: u32) -> Self {
        Self(u64::from(high) << 32 | u64::from(low))
    }

    /// Its high and its low half.
    #[must_use]
    pub fn halves(self) -> (u32, u32) {
        ((self.0 >> 32) as u32, self.0 as u32)
    }
}

impl fmt::Display for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LINEAR => f.write_str("linear"),
            Self::INVALID => f.write_str("implicit"),
            Self(other) => write!(f, "{other:#018x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_round_trip_and_are_the_kernels() {
        for format in Format::ALL {
            assert_eq!(Fourcc::of(format).stored(), Some(Stored::Plain(format)));
        }
        assert_eq!(Fourcc::of(Format::Xrgb8888), Fourcc(0x3432_5258));
        assert_eq!(Fourcc::of(Format::Abgr2101010).to_string(), "AB30");
        assert_eq!((Fourcc(0).stored(), Fourcc(1).stored()), (None, None), "those are values of wl_shm");
        assert_eq!(Fourcc(1).to_string(), "0x00000001");
    }

    #[test]
    fn modifiers_are_two_halves() {
        assert_eq!(Modifier::INVALID.halves(), (0x00ff_ffff, 0xffff_ffff));
        let modifier = Modifier(0x0100_0000_0000_0002);
        assert_eq!(modifier.halves(), (0x0100_0000, 2));
        assert_eq!(Modifier::from_halves(0x0100_0000, 2), modifier);
    }
}
