//! One GPU buffer of a program, checked as far as the kernel can tell without importing it.
//!
//! Invariant: its planes are files of the kernel's that are as long as the program said.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{SeekFrom, seek};
use wayferry_pixels::{Format, Size};

use super::format::{Fourcc, Modifier, Stored};

/// Planes of one buffer: what the kernel's `drm_mode_fb_cmd2` has room for.
pub const MAX_PLANES: usize = 4;

/// What a program says of a buffer beside its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// Of the whole.
    pub size: Size,
    /// Its pixels.
    pub fourcc: Fourcc,
    /// Of all planes.
    pub modifier: Modifier,
    /// The first row is the lowest.
    pub flipped: bool,
}

/// A plane of a buffer.
#[derive(Debug)]
pub struct Plane {
    /// Where it lies.
    pub fd: OwnedFd,
    /// Its first byte there.
    pub offset: u32,
    /// Bytes from row to row.
    pub stride: u32,
}

/// A GPU buffer.
#[derive(Debug)]
pub struct Dmabuf {
    described: Described,
    stored: Stored,
    planes: Vec<Plane>,
}

/// What is wrong with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Its format is not known.
    Format,
    /// There are too few or too many planes for the format.
    Planes,
    /// A plane ends behind its file, or its rows overlap.
    Bounds {
        /// Which.
        plane: usize,
    },
    /// A plane is no dmabuf.
    NoDmabuf {
        /// Which.
        plane: usize,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => f.write_str("the format was not offered"),
            Self::Planes => f.write_str("too few or too many planes for the format"),
            Self::Bounds { plane } => write!(f, "plane {plane} is not inside its file, or its rows overlap"),
            Self::NoDmabuf { plane } => write!(f, "plane {plane} is no dmabuf"),
        }
    }
}

impl Dmabuf {
    /// A buffer of these planes, in their order; `is_dmabuf` says of a file whether it is the kernel's.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(
        described: Described,
        planes: Vec<Plane>,
        is_dmabuf: impl Fn(&OwnedFd) -> bool,
    ) -> Result<Self, Wrong> {
        let stored = described.fourcc.stored().ok_or(Wrong::Format)?;
        let samples = stored.planes();
        // A modifier may add planes of its own: what compression needs.
        let exact = matches!(described.modifier, Modifier::LINEAR | Modifier::INVALID);
        let count = planes.len();
        if count < samples.len() || count > MAX_PLANES || exact && count != samples.len() {
            return Err(Wrong::Planes);
        }
        for (index, plane) in planes.iter().enumerate() {
            // A question about the length of another file may be answered by the program that serves it.
            if !is_dmabuf(&plane.fd) {
                return Err(Wrong::NoDmabuf { plane: index });
            }
            // What planes hold that a modifier adds is its own.
            let (row, rows) = samples.get(index).map_or((0, 1), |samples| {
                (samples.row(described.size.width()), described.size.height().div_ceil(samples.step))
            });
            if !plane.is_inside(row as u64, rows) {
                return Err(Wrong::Bounds { plane: index });
            }
        }
        Ok(Self { described, stored, planes })
    }

    /// One of this process's own; `None` if its format is not known.
    #[cfg(feature = "egl")]
    pub(crate) fn unchecked(described: Described, planes: Vec<Plane>) -> Option<Self> {
        let stored = described.fourcc.stored()?;
        Some(Self { described, stored, planes })
    }

    /// What the program said of it.
    #[must_use]
    pub fn described(&self) -> Described {
        self.described
    }

    /// How it holds its pixels.
    #[must_use]
    pub fn stored(&self) -> Stored {
        self.stored
    }

    /// As what they are read.
    #[must_use]
    pub fn format(&self) -> Format {
        self.stored.format()
    }

    /// Its planes.
    #[must_use]
    pub fn planes(&self) -> &[Plane] {
        &self.planes
    }
}

impl Plane {
    /// Whether so many rows, of so many bytes at least, are inside the file.
    fn is_inside(&self, row: u64, rows: u32) -> bool {
        let stride = u64::from(self.stride);
        let end = u64::from(self.offset) + stride * u64::from(rows);
        stride >= row && stride > 0 && length(&self.fd).is_none_or(|length| end <= length)
    }
}

/// How long a dmabuf is; kernels before 3.13 do not say.
fn length(fd: &impl AsFd) -> Option<u64> {
    seek(fd, SeekFrom::End(0)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn plane(length: u64, offset: u32, stride: u32) -> Plane {
        let fd = memfd_create("test", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&fd, length).expect("room");
        Plane { fd, offset, stride }
    }

    fn described(width: u32, height: u32, modifier: Modifier) -> Described {
        let size = Size::new(width, height).expect("a size");
        Described { size, fourcc: Fourcc::new(*b"XR24"), modifier, flipped: false }
    }

    fn of(described: Described, planes: Vec<Plane>) -> Result<(), Wrong> {
        Dmabuf::new(described, planes, |_| true).map(drop)
    }

    #[test]
    fn a_buffer_is_as_long_as_its_program_says() {
        let of = |length, offset, stride| {
            of(described(10, 4, Modifier::LINEAR), vec![plane(length, offset, stride)])
        };
        assert_eq!(of(160, 0, 40), Ok(()));
        assert_eq!(of(256, 16, 60), Ok(()), "odd strides and offsets are fine");
        let outside = Err(Wrong::Bounds { plane: 0 });
        assert_eq!((of(159, 0, 40), of(160, 1, 40), of(160, 0, 41)), (outside, outside, outside));
        assert_eq!((of(4096, 0, 39), of(4096, 0, 0)), (outside, outside), "rows overlap");
        assert_eq!(of(4096, u32::MAX, u32::MAX), outside);
    }

    #[test]
    fn what_is_no_dmabuf_is_refused_before_it_is_looked_at() {
        let (pipe, _other) = std::io::pipe().expect("a pipe");
        let planes = vec![Plane { fd: pipe.into(), offset: 0, stride: 40 }];
        let refused = Dmabuf::new(described(10, 4, Modifier::LINEAR), planes, |_| false).map(drop);
        assert_eq!(refused, Err(Wrong::NoDmabuf { plane: 0 }));
    }

    #[test]
    fn only_a_modifier_of_a_driver_adds_planes() {
        let two = || vec![plane(160, 0, 40), plane(160, 0, 1)];
        assert_eq!(of(described(10, 4, Modifier::LINEAR), two()), Err(Wrong::Planes));
        assert_eq!(of(described(10, 4, Modifier::INVALID), two()), Err(Wrong::Planes));
        let tiled = described(10, 4, Modifier(0x0100_0000_0000_0004));
        assert_eq!(of(tiled, two()), Ok(()));
        assert_eq!(of(tiled, Vec::new()), Err(Wrong::Planes));
        let behind = vec![plane(160, 0, 40), plane(160, 160, 1)];
        assert_eq!(of(tiled, behind), Err(Wrong::Bounds { plane: 1 }));
    }

    /// Chroma has half as many rows, and pairs of samples.
    #[test]
    fn both_planes_of_a_film_are_inside() {
        let nv12 = |width: u32, height: u32| Described {
            fourcc: Fourcc::NV12,
            ..described(width, height, Modifier::LINEAR)
        };
        let film = |luma: u64, chroma: u64| of(nv12(5, 3), vec![plane(luma, 0, 5), plane(chroma, 0, 6)]);
        assert_eq!(film(15, 12), Ok(()));
        assert_eq!(
            (film(14, 12), film(15, 11)),
            (Err(Wrong::Bounds { plane: 0 }), Err(Wrong::Bounds { plane: 1 }))
        );
        let narrow = of(nv12(5, 3), vec![plane(99, 0, 5), plane(99, 0, 5)]);
        assert_eq!(narrow, Err(Wrong::Bounds { plane: 1 }), "rows overlap");
        assert_eq!(of(nv12(5, 3), vec![plane(99, 0, 5)]), Err(Wrong::Planes));
    }

    proptest! {
        /// With any numbers: what is accepted can be read row by row.
        #[test]
        fn what_is_accepted_is_inside(
            (width, height) in (1u32..=4096, 1u32..=4096),
            (length, offset, stride) in (0u64..1 << 33, any::<u32>(), any::<u32>()),
        ) {
            let planes = vec![plane(length, offset, stride)];
            if of(described(width, height, Modifier::LINEAR), planes).is_ok() {
                let last = u128::from(offset) + u128::from(stride) * u128::from(height - 1) + u128::from(width) * 4;
                prop_assert!(last <= u128::from(length) && stride >= width * 4);
            }
        }
    }
}
