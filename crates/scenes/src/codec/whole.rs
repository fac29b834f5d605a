//! The damaged rectangles, all of them and whole, compressed; nothing is compared.
//!
//! A message is the number of rectangles, four numbers for each, then their rows.

use super::method::Packer;
use super::{Codec, CodecError, Method, put_number, take_number};
use crate::canvas::Rect;
use crate::scene::Frame;

/// See the module.
#[derive(Debug)]
pub struct Whole {
    name: &'static str,
    method: Method,
    size: (u32, u32),
    packer: Packer,
    raw: Vec<u8>,
    shown: Vec<u8>,
}

impl Whole {
    /// A codec for surfaces of this size, black at first.
    pub fn new(name: &'static str, method: Method, width: u32, height: u32) -> Self {
        let shown = vec![0; width as usize * height as usize * 4];
        Self { name, method, size: (width, height), packer: Packer::default(), raw: Vec::new(), shown }
    }

    fn paint(
        shown: &mut [u8],
        (width, height): (u32, u32),
        mut bytes: &[u8],
    ) -> Result<Vec<Rect>, CodecError> {
        let count = take_number(&mut bytes)? as usize;
        let mut rects = Vec::new();
        for _ in 0..count.min(bytes.len() / 16) {
            let mut side = || take_number(&mut bytes);
            let rect = Rect::new(side()?, side()?, side()?, side()?);
            if rect.right() > width || rect.bottom() > height {
                return Err(CodecError::Outside);
            }
            rects.push(rect);
        }
        for rect in &rects {
            let length = rect.width as usize * 4;
            for y in rect.y..rect.bottom() {
                let (row, rest) = bytes.split_at_checked(length).ok_or(CodecError::Damaged)?;
                let start = (y as usize * width as usize + rect.x as usize) * 4;
                shown[start..start + length].copy_from_slice(row);
                bytes = rest;
            }
        }
        Ok(rects)
    }
}

impl Codec for Whole {
    fn name(&self) -> &'static str {
        self.name
    }

    fn encode(&mut self, frame: &Frame<'_>) -> Vec<Vec<u8>> {
        if frame.damage.is_empty() {
            return Vec::new();
        }
        self.raw.clear();
        put_number(&mut self.raw, frame.damage.len());
        for rect in frame.damage {
            for side in [rect.x, rect.y, rect.width, rect.height] {
                put_number(&mut self.raw, side as usize);
            }
        }
        for rect in frame.damage {
            for y in rect.y..rect.bottom() {
                let start = y as usize * frame.width as usize + rect.x as usize;
                self.raw.extend_from_slice(frame.pixels[start..start + rect.width as usize].as_flattened());
            }
        }
        vec![self.packer.pack(self.method, &self.raw)]
    }

    fn decode(&mut self, message: &[u8]) -> Result<Vec<Rect>, CodecError> {
        let most = self.shown.len() + 4 + 16 * MAX_RECTS;
        let bytes = self.packer.unpack(self.method, message, most)?;
        Self::paint(&mut self.shown, self.size, bytes)
    }

    fn shown(&self) -> &[u8] {
        &self.shown
    }
}

/// Most rectangles of a message that is as large as the surface.
const MAX_RECTS: usize = 1024;
