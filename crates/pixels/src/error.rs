//! What can be wrong with sizes, buffer layouts and chunks, and who is to blame for it.

use std::fmt;

use crate::geometry::{MAX_PIXELS, MAX_SIDE, Rect, Size};

/// A refused size, layout or chunk.
///
/// `Size` and `Layout` are the fault of the program, which described the buffer, `ChunkShape` that of the
/// caller; the others are the fault of the peer, which made the chunk.
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
    /// A chunk ends before what it announces.
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
    /// A field has a value that it cannot have.
    ChunkField,
    /// A chunk announces more than [`MAX_CHUNK_BODY`](crate::MAX_CHUNK_BODY).
    ChunkBody {
        /// The length it announces, in bytes.
        length: usize,
    },
    /// A chunk lists more copies than [`MAX_CHUNK_COPIES`](crate::MAX_CHUNK_COPIES).
    ChunkCopies {
        /// How many it lists.
        count: usize,
    },
    /// A pixel has a number that its palette does not have.
    ChunkNumber {
        /// The number.
        number: u8,
        /// Colours of the palette.
        count: usize,
    },
    /// A chunk goes on behind what it announces.
    ChunkRest {
        /// By how many bytes.
        bytes: usize,
    },
    /// A chunk was opened for a surface of another size or format.
    ChunkShape,
    /// The chunks of an update paint, or copy, more pixels than the surface has.
    UpdateArea {
        /// The pixels, as far as counted.
        pixels: u64,
        /// The surface's size.
        size: Size,
    },
    /// The chunks of an update need more memory than any for this surface may.
    UpdateMemory {
        /// Bytes needed, as far as counted.
        bytes: usize,
        /// Most bytes allowed.
        most: usize,
    },
    /// The images of a chunk have more pixels than any chunk's may.
    ChunkImages {
        /// The pixels, as far as counted.
        pixels: u64,
    },
    /// The image for a rectangle is not one that may be there.
    ChunkImage {
        /// The rectangle.
        rect: Rect,
    },
    /// A chunk lists more rectangles than [`MAX_CHUNK_RECTS`](crate::MAX_CHUNK_RECTS).
    ChunkRects {
        /// How many it lists.
        count: usize,
    },
    /// A rectangle of a chunk, or the source of a copy, does not lie inside the surface.
    ChunkOutside {
        /// The rectangle.
        rect: Rect,
        /// The surface's size.
        size: Size,
    },
    /// Two videos of an update share a pixel, or are one.
    VideoOverlap {
        /// The rectangle of the second.
        rect: Rect,
    },
    /// A chunk does not decompress to the length that it announces.
    ChunkPayload {
        /// The length it announces, in bytes.
        expected: usize,
        /// Bytes it gave; `None` if it is not valid compressed data or gives too many.
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
            Self::ChunkTruncated => write!(f, "chunk ends before what it announces"),
            Self::ChunkTooLong { length } => write!(f, "chunk of {length} bytes is too long"),
            Self::ChunkCodec { code } => write!(f, "chunk has unknown compression {code}"),
            Self::ChunkField => write!(f, "chunk has a field out of range"),
            Self::ChunkRects { count } => write!(f, "chunk lists {count} rectangles"),
            Self::ChunkOutside { rect, size } => write!(
                f,
                "chunk rectangle {}x{} at {},{} is outside a surface of {}x{}",
                rect.width, rect.height, rect.x, rect.y, size.width, size.height
            ),
            Self::ChunkImages { pixels } => write!(f, "chunk has images of {pixels} pixels or more"),
            Self::ChunkImage { rect } => write!(
                f,
                "chunk has a wrong image for {}x{} at {},{}",
                rect.width, rect.height, rect.x, rect.y
            ),
            Self::VideoOverlap { rect } => write!(
                f,
                "video of {}x{} at {},{} is where another one is",
                rect.width, rect.height, rect.x, rect.y
            ),
            Self::ChunkBody { length } => write!(f, "chunk announces {length} bytes"),
            Self::ChunkCopies { count } => write!(f, "chunk lists {count} copies"),
            Self::ChunkNumber { number, count } => {
                write!(f, "chunk has a pixel of colour {number} in a palette of {count}")
            }
            Self::ChunkRest { bytes } => write!(f, "chunk goes on for {bytes} bytes behind its end"),
            Self::ChunkShape => write!(f, "chunk was opened for another size or format"),
            Self::UpdateArea { pixels, size } => write!(
                f,
                "update paints {pixels} pixels or more of a surface of {}x{}",
                size.width, size.height
            ),
            Self::UpdateMemory { bytes, most } => {
                write!(f, "update needs {bytes} bytes or more where {most} are allowed")
            }
            Self::ChunkPayload { expected, got: Some(got) } => {
                write!(f, "chunk gives {got} bytes where it announces {expected}")
            }
            Self::ChunkPayload { expected, got: None } => {
                write!(f, "chunk does not decompress to {expected} bytes")
            }
        }
    }
}

impl std::error::Error for Error {}
