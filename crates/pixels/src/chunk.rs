//! The byte layout of a chunk.
//!
//! ```text
//! u8      compression: 0 none, 1 lz4 block, 2 zstd frame
//! number  rectangles − 1
//! 4 ×     per rectangle: number x, number y, number width − 1, number height − 1
//! rest    the rectangles' rows without padding, one rectangle after the other, compressed
//! ```
//! A number is one byte below 64, else two bytes, the first with its upper bits `01` (the short forms
//! of RFC 9000 §16). This module knows the header only; it neither compresses nor paints.
//!
//! The one invariant: a header that parses holds between 1 and [`MAX_CHUNK_RECTS`] rectangles inside
//! the surface, which need at most [`MAX_CHUNK_PIXELS`] bytes.

use crate::error::Error;
use crate::geometry::{Rect, Size};

/// Longest chunk, in bytes.
pub const MAX_CHUNK: usize = 64 << 10;

/// Most bytes of pixels a chunk may decompress to.
pub const MAX_CHUNK_PIXELS: usize = 256 << 10;

/// Most rectangles in a chunk.
pub const MAX_CHUNK_RECTS: usize = 256;

/// How the pixels of a chunk are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    Lz4,
    Zstd,
}

/// A parsed header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) codec: Codec,
    /// Bytes the rectangles need.
    pub(crate) bytes: usize,
    /// Where the payload starts in the chunk.
    pub(crate) payload: usize,
}

impl Header {
    /// Parses the header of `chunk`; its rectangles go to `rects`.
    pub(crate) fn parse(
        chunk: &[u8],
        size: Size,
        pixel: usize,
        rects: &mut Vec<Rect>,
    ) -> Result<Self, Error> {
        rects.clear();
        if chunk.len() > MAX_CHUNK {
            return Err(Error::ChunkTooLong { length: chunk.len() });
        }
        let mut reader = Reader { bytes: chunk, at: 0 };
        let codec = match reader.byte()? {
            0 => Codec::Raw,
            1 => Codec::Lz4,
            2 => Codec::Zstd,
            code => return Err(Error::ChunkCodec { code }),
        };
        let count = reader.number()? as usize + 1;
        if count > MAX_CHUNK_RECTS {
            return Err(Error::ChunkRects { count });
        }
        let mut bytes = 0;
        for _ in 0..count {
            let rect = Rect {
                x: reader.number()?,
                y: reader.number()?,
                width: reader.number()? + 1,
                height: reader.number()? + 1,
            };
            if !size.rect().contains(rect) {
                return Err(Error::ChunkOutside { rect, size });
            }
            bytes += rect.area() as usize * pixel;
            if bytes > MAX_CHUNK_PIXELS {
                return Err(Error::ChunkPixels { bytes });
            }
            rects.push(rect);
        }
        Ok(Self { codec, bytes, payload: reader.at })
    }
}

/// Writes a header to the end of `target`.
pub(crate) fn write_header(target: &mut Vec<u8>, codec: Codec, rects: &[Rect]) {
    target.push(match codec {
        Codec::Raw => 0,
        Codec::Lz4 => 1,
        Codec::Zstd => 2,
    });
    write_number(target, rects.len() as u32 - 1);
    for rect in rects {
        for value in [rect.x, rect.y, rect.width - 1, rect.height - 1] {
            write_number(target, value);
        }
    }
}

fn write_number(target: &mut Vec<u8>, value: u32) {
    debug_assert!(value < 1 << 14, "sides are at most {}", crate::MAX_SIDE);
    if value < 64 {
        target.push(value as u8);
    } else {
        target.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes());
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.bytes.get(self.at).ok_or(Error::ChunkTruncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u32, Error> {
        let first = self.byte()?;
        match first >> 6 {
            0 => Ok(u32::from(first)),
            1 => Ok(u32::from(first & 0x3f) << 8 | u32::from(self.byte()?)),
            _ => Err(Error::ChunkField),
        }
    }
}
