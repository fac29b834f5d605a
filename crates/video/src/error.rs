//! What can be wrong with a size, a picture or a frame, and who is to blame for it.

use std::fmt;

use crate::size::{MAX_PIXELS, MAX_SIDE};

/// A refused size, picture or frame.
///
/// `Size` and `Row` are the fault of the caller, `Codec` that of the codec or of too little memory. The others are the
/// fault of the peer that made the frame, or of the way it came; after them a decoder waits for a key frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A side is zero or too long, or the whole is too large.
    Size {
        /// The width given, in pixels.
        width: u32,
        /// The height given, in pixels.
        height: u32,
    },
    /// A row of pixels is shorter than the region is wide.
    Row {
        /// Its length, in bytes.
        length: usize,
        /// The least length, in bytes.
        least: usize,
    },
    /// The codec cannot be made, or refuses a picture.
    Codec {
        /// What it says.
        code: i64,
    },
    /// The decoder has missed a frame, or one was broken: it needs a key frame.
    NeedKey,
    /// A frame is not newer than the one before.
    Stale {
        /// Its number.
        number: u64,
        /// That of the one before.
        last: u64,
    },
    /// A frame is longer than any of this size can be.
    FrameTooLong {
        /// Its length, in bytes.
        length: usize,
        /// The most, in bytes.
        most: usize,
    },
    /// A frame does not consist of what an encoder of this kind writes, or ends too early.
    FrameShape,
    /// A frame is one of a stream of another size.
    FrameSize {
        /// Columns of the stream, in blocks of 16 pixels.
        across: u32,
        /// Rows of the stream, in blocks of 16 pixels.
        down: u32,
    },
    /// A frame cannot be decoded.
    FrameBroken {
        /// What the codec says: a set of flags.
        state: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { width, height } => {
                write!(
                    f,
                    "size {width}x{height} is not within 1x1 to {MAX_SIDE}x{MAX_SIDE} and {MAX_PIXELS} pixels"
                )
            }
            Self::Row { length, least } => write!(f, "row of {length} bytes where {least} are needed"),
            Self::Codec { code } => write!(f, "video codec failed with code {code}"),
            Self::NeedKey => write!(f, "video needs a key frame"),
            Self::Stale { number, last } => write!(f, "video frame {number} comes after frame {last}"),
            Self::FrameTooLong { length, most } => {
                write!(f, "video frame of {length} bytes where {most} are allowed")
            }
            Self::FrameShape => write!(f, "video frame is not of the kind that is spoken here"),
            Self::FrameSize { across, down } => {
                write!(f, "video frame of {across}x{down} blocks is for another region")
            }
            Self::FrameBroken { state } => write!(f, "video frame cannot be decoded (state {state:#x})"),
        }
    }
}

impl std::error::Error for Error {}
