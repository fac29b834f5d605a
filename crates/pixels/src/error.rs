//! What can be wrong with sizes, buffer layouts and chunks, and who is to blame for it.

use std::fmt;

use crate::geometry::{MAX_PIXELS, MAX_SIDE, Rect, Size};

/// A refused size, layout or chunk.
///
/// `Size` and `Layout` are the fault of whoever described the buffer (the program); the others are
/// the fault of whoever made the chunk (the peer).
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
    /// A buffer's rows are shorter than its width, or its last byte has no 64-bit offset.
    Layout {
        /// The stride given, in bytes.
        stride: u64,
        /// The smallest stride that holds a row, in bytes.
        row: u64,
    },
    /// A chunk ends inside its header.
    ChunkTruncated,
    /// A chunk is longer than [`MAX_CHUNK`](crate::MAX_CHUNK).
    ChunkTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A chunk names a compression this version does not know.
    ChunkCodec {
        /// The code found.
        code: u8,
    },
    /// A header field is larger than any valid one.
    ChunkField,
    /// A chunk lists more rectangles than [`MAX_CHUNK_RECTS`](crate::MAX_CHUNK_RECTS).
    ChunkRects {
        /// How many it lists.
        count: usize,
    },
    /// A rectangle of a chunk does not lie inside the surface.
    ChunkOutside {
        /// The rectangle.
        rect: Rect,
        /// The surface's size.
        size: Size,
    },
    /// The rectangles of a chunk hold more than [`MAX_CHUNK_PIXELS`](crate::MAX_CHUNK_PIXELS).
    ChunkPixels {
        /// How many bytes of pixels they hold, as far as counted.
        bytes: usize,
    },
    /// The pixels of a chunk do not decompress to what its rectangles need.
    ChunkPayload {
        /// Bytes the rectangles need.
        expected: usize,
        /// Bytes the payload gave; `None` if it is not valid compressed data or gives too many.
        got: Option<usize>,
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
            Self::Layout { stride, row } => {
                write!(f, "buffer stride {stride} does not fit rows of {row} bytes")
            }
            Self::ChunkTruncated => write!(f, "chunk ends inside its header"),
            Self::ChunkTooLong { length } => write!(f, "chunk of {length} bytes is too long"),
            Self::ChunkCodec { code } => write!(f, "chunk has unknown compression {code}"),
            Self::ChunkField => write!(f, "chunk has a header field out of range"),
            Self::ChunkRects { count } => write!(f, "chunk lists {count} rectangles"),
            Self::ChunkOutside { rect, size } => write!(
                f,
                "chunk rectangle {}x{} at {},{} is outside a surface of {}x{}",
                rect.width, rect.height, rect.x, rect.y, size.width, size.height
            ),
            Self::ChunkPixels { bytes } => write!(f, "chunk holds {bytes} bytes of pixels or more"),
            Self::ChunkPayload { expected, got: Some(got) } => {
                write!(f, "chunk gives {got} bytes of pixels where {expected} are needed")
            }
            Self::ChunkPayload { expected, got: None } => {
                write!(f, "chunk does not decompress to {expected} bytes of pixels")
            }
        }
    }
}

impl std::error::Error for Error {}
