//! Runs of changed words: the damaged part is compared with a copy of the buffer, 32 bits at a time.
//!
//! A message is a list of runs, each the index of its first pixel, their number, and the pixels; runs with fewer than
//! [`GAP`] unchanged pixels between them are one. The whole list is compressed. What is equal is passed over in blocks
//! that plain slice comparison is fast at.

use super::method::Packer;
use super::{Codec, CodecError, Method, put_number, take_number};
use crate::canvas::Rect;
use crate::scene::Frame;

/// See the module.
#[derive(Debug)]
pub struct Diff {
    name: &'static str,
    method: Method,
    width: u32,
    packer: Packer,
    /// The buffer as it was last.
    mirror: Vec<[u8; 4]>,
    runs: Runs,
    shown: Vec<u8>,
}

impl Diff {
    /// A codec for surfaces of this size, black at first.
    pub fn new(name: &'static str, method: Method, width: u32, height: u32) -> Self {
        let pixels = width as usize * height as usize;
        let (mirror, shown) = (vec![[0; 4]; pixels], vec![0; pixels * 4]);
        Self { name, method, width, packer: Packer::default(), mirror, runs: Runs::default(), shown }
    }
}

impl Codec for Diff {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&mut self, frame: &Frame<'_>) -> Vec<Vec<u8>> {
        self.runs.clear();
        let width = frame.width as usize;
        for rect in frame.damage {
            for y in rect.y..rect.bottom() {
                let start = y as usize * width + rect.x as usize;
                let span = start..start + rect.width as usize;
                self.runs.compare(&mut self.mirror, frame.pixels, span);
            }
        }
        self.runs.end();
        if self.runs.bytes.is_empty() {
            Vec::new()
        } else {
            vec![self.packer.pack(self.method, &self.runs.bytes)]
        }
    }

    fn decode(&mut self, message: &[u8]) -> Result<Vec<Rect>, CodecError> {
        // Every pixel once, each in a run of its own at worst.
        let most = self.shown.len() * 3;
        let mut bytes = self.packer.unpack(self.method, message, most)?;
        let mut touched: Option<(usize, usize)> = None;
        while !bytes.is_empty() {
            let (start, pixels) = (take_number(&mut bytes)? as usize, take_number(&mut bytes)? as usize);
            let (run, rest) = bytes.split_at_checked(pixels.saturating_mul(4)).ok_or(CodecError::Damaged)?;
            let from = start.saturating_mul(4);
            let target =
                self.shown.get_mut(from..from.saturating_add(run.len())).ok_or(CodecError::Outside)?;
            target.copy_from_slice(run);
            let (first, end) = touched.unwrap_or((start, start));
            touched = Some((first.min(start), end.max(start + pixels)));
            bytes = rest;
        }
        // The rows from the first to the last.
        let rows = |(first, end): (usize, usize)| {
            let top = first as u32 / self.width;
            Rect::new(0, top, self.width, (end as u32).div_ceil(self.width) - top)
        };
        Ok(touched.into_iter().map(rows).collect())
    }

    fn shown(&self) -> &[u8] {
        &self.shown
    }
}

/// A list of runs that is being made.
#[derive(Debug, Default)]
struct Runs {
    bytes: Vec<u8>,
    /// Where the length of the last run stands, and the pixels of the surface from its first to beyond its last one.
    last: Option<(usize, usize, usize)>,
}

impl Runs {
    fn clear(&mut self) {
        self.bytes.clear();
        self.last = None;
    }

    /// Adds what differs inside `span`, and makes the mirror equal there.
    fn compare(&mut self, mirror: &mut [[u8; 4]], pixels: &[[u8; 4]], span: std::ops::Range<usize>) {
        if mirror[span.clone()] == pixels[span.clone()] {
            return;
        }
        let mut at = span.start;
        while at < span.end {
            let block = at..(at + BLOCK).min(span.end);
            if mirror[block.clone()] != pixels[block.clone()] {
                for index in block.clone() {
                    if mirror[index] != pixels[index] {
                        self.add(pixels, index);
                    }
                }
                mirror[block.clone()].copy_from_slice(&pixels[block.clone()]);
            }
            at = block.end;
        }
    }

    fn add(&mut self, pixels: &[[u8; 4]], index: usize) {
        match &mut self.last {
            Some((_, _, end)) if index >= *end && index - *end < GAP => {
                self.bytes.extend_from_slice(pixels[*end..=index].as_flattened());
                *end = index + 1;
            }
            _ => {
                self.end();
                put_number(&mut self.bytes, index);
                self.last = Some((self.bytes.len(), index, index + 1));
                put_number(&mut self.bytes, 0);
                self.bytes.extend_from_slice(&pixels[index]);
            }
        }
    }

    /// Writes the length of the last run.
    fn end(&mut self) {
        if let Some((place, start, end)) = self.last.take() {
            self.bytes[place..place + 4].copy_from_slice(&((end - start) as u32).to_le_bytes());
        }
    }
}

/// A header costs as much as two pixels; a little more, because runs compress better than their headers.
const GAP: usize = 8;

/// Pixels that are compared at once.
const BLOCK: usize = 16;
