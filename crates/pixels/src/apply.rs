//! From chunks to content.
//!
//! Chunks come from the peer and are not trusted: everything is checked, and decompressed into memory
//! of bounded size, before the first pixel is painted. Chunks may come in any order and any number of
//! times; this module does not know which of them belong together.
//!
//! The one invariant: a chunk that is refused has changed nothing.

use zstd_safe::DCtx;

use crate::chunk::{Codec, Header};
use crate::content::Content;
use crate::error::Error;
use crate::geometry::Rect;
use crate::region::Region;

/// Applies chunks. Keeps memory from call to call but no state: one serves any number of surfaces.
#[derive(Default)]
pub struct Decoder {
    zstd: Option<DCtx<'static>>,
    pixels: Vec<u8>,
    rects: Vec<Rect>,
}

impl Decoder {
    /// A decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Paints a chunk into `content` and says where.
    ///
    /// # Errors
    /// What is wrong with the chunk; the content is then as before.
    pub fn apply(&mut self, content: &mut Content, chunk: &[u8]) -> Result<Region, Error> {
        let pixel = content.format().bytes_per_pixel();
        let header = Header::parse(chunk, content.size(), pixel, &mut self.rects)?;
        let payload = &chunk[header.payload..];
        let mut pixels = unpack(&mut self.zstd, &mut self.pixels, &header, payload)?;
        for rect in &self.rects {
            let (own, rest) = pixels.split_at(rect.area() as usize * pixel);
            content.write(*rect, own);
            pixels = rest;
        }
        Ok(self.rects.iter().copied().collect())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

/// The pixels of a chunk: exactly as many bytes as its header needs.
fn unpack<'a>(
    zstd: &mut Option<DCtx<'static>>,
    target: &'a mut Vec<u8>,
    header: &Header,
    payload: &'a [u8],
) -> Result<&'a [u8], Error> {
    let expected = header.bytes;
    if header.codec == Codec::Raw {
        return right_length(payload, expected);
    }
    if target.len() < expected {
        target.resize(expected, 0);
    }
    let target = &mut target[..expected];
    let got = match header.codec {
        Codec::Lz4 => lz4_flex::block::decompress_into(payload, target).ok(),
        _ => zstd.get_or_insert_with(DCtx::create).decompress(target, payload).ok(),
    };
    let got = got.ok_or(Error::ChunkPayload { expected, got: None })?;
    right_length(&target[..got], expected)
}

fn right_length(pixels: &[u8], expected: usize) -> Result<&[u8], Error> {
    if pixels.len() == expected {
        Ok(pixels)
    } else {
        Err(Error::ChunkPayload { expected, got: Some(pixels.len()) })
    }
}
