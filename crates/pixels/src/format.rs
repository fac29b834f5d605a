//! Pixel formats that cross between the halves.
//!
//! All are little-endian packed formats of `wl_shm`; planar and dmabuf-only formats are not here.

/// A pixel format. Names list the channels from the highest bit to the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// 8 bits each of alpha, red, green, blue.
    Argb8888,
    /// 8 unused bits, then red, green, blue.
    Xrgb8888,
    /// 8 bits each of alpha, blue, green, red.
    Abgr8888,
    /// 8 unused bits, then blue, green, red.
    Xbgr8888,
    /// 5 bits red, 6 green, 5 blue.
    Rgb565,
    /// 2 bits alpha, 10 each of red, green, blue.
    Argb2101010,
    /// 2 unused bits, 10 each of red, green, blue.
    Xrgb2101010,
    /// 2 bits alpha, 10 each of blue, green, red.
    Abgr2101010,
    /// 2 unused bits, 10 each of blue, green, red.
    Xbgr2101010,
}

impl Format {
    /// Every format, in the order of their codes.
    pub const ALL: [Self; 9] = [
        Self::Argb8888,
        Self::Xrgb8888,
        Self::Abgr8888,
        Self::Xbgr8888,
        Self::Rgb565,
        Self::Argb2101010,
        Self::Xrgb2101010,
        Self::Abgr2101010,
        Self::Xbgr2101010,
    ];

    /// The code that stands for this format between the halves.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The format with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The format with this `wl_shm.format` value, if it is one of ours.
    pub fn from_wl_shm(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.to_wl_shm() == value)
    }

    /// The `wl_shm.format` value: 0 and 1 for the two mandatory formats, DRM codes for the others.
    pub fn to_wl_shm(self) -> u32 {
        match self {
            Self::Argb8888 => 0,
            Self::Xrgb8888 => 1,
            Self::Abgr8888 => u32::from_le_bytes(*b"AB24"),
            Self::Xbgr8888 => u32::from_le_bytes(*b"XB24"),
            Self::Rgb565 => u32::from_le_bytes(*b"RG16"),
            Self::Argb2101010 => u32::from_le_bytes(*b"AR30"),
            Self::Xrgb2101010 => u32::from_le_bytes(*b"XR30"),
            Self::Abgr2101010 => u32::from_le_bytes(*b"AB30"),
            Self::Xbgr2101010 => u32::from_le_bytes(*b"XB30"),
        }
    }

    /// Bytes that one pixel occupies: 2 or 4.
    pub fn bytes_per_pixel(self) -> usize {
        match self {
            Self::Rgb565 => 2,
            _ => 4,
        }
    }

    /// Whether pixels carry (premultiplied) alpha.
    pub fn has_alpha(self) -> bool {
        matches!(self, Self::Argb8888 | Self::Abgr8888 | Self::Argb2101010 | Self::Abgr2101010)
    }

    /// The mandatory `wl_shm` format that every compositor has and that keeps this one's alpha.
    pub fn fallback(self) -> Self {
        if self.has_alpha() { Self::Argb8888 } else { Self::Xrgb8888 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_shm_values_round_trip() {
        for format in Format::ALL {
            assert_eq!(Format::from_code(format.code()), Some(format));
            assert_eq!(Format::from_wl_shm(format.to_wl_shm()), Some(format));
        }
        assert_eq!(Format::from_code(9), None);
        assert_eq!(Format::from_wl_shm(2), None);
    }

    #[test]
    fn shm_values_are_the_drm_codes() {
        assert_eq!(Format::Abgr8888.to_wl_shm(), 0x3432_4241);
        assert_eq!(Format::Rgb565.to_wl_shm(), 0x3631_4752);
        assert_eq!(Format::Xrgb2101010.to_wl_shm(), 0x3033_5258);
    }
}
