//! Formats and modifiers as the kernel names them, and as what pixels of them are read.

use std::fmt;

use wayferry_pixels::Format;

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

    /// The format of ours that has exactly its pixels, if there is one.
    #[must_use]
    pub fn format(self) -> Option<Format> {
        Format::ALL.into_iter().find(|format| Self::of(*format) == self)
    }

    /// Planes that a buffer of it has without a modifier; `None` for formats that are not known here.
    #[must_use]
    pub fn planes(self) -> Option<usize> {
        self.format().map(|_| 1)
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
            assert_eq!(Fourcc::of(format).format(), Some(format));
        }
        assert_eq!(Fourcc::of(Format::Xrgb8888), Fourcc(0x3432_5258));
        assert_eq!(Fourcc::of(Format::Abgr2101010).to_string(), "AB30");
        assert_eq!((Fourcc(0).format(), Fourcc(1).format()), (None, None), "those are values of wl_shm");
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
