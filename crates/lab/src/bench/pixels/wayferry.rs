//! Our codec as one of those that are compared: both ends for one surface, no network, one thread. The program's memory
//! is read as if it were mapped.

use std::sync::atomic::{AtomicU8, Ordering};

use wayferry_pixels::{
    Compression, Content, Decoder, Draft, Encoder, Format, Layout, Opened, Rect, Region, Size,
};
use wayferry_scenes::codec::{Codec, CodecError};
use wayferry_scenes::{Frame, Rect as SceneRect};

use crate::error::Error;
use wayferry_host::settings::Compress;

/// See the module.
#[derive(Debug)]
pub(crate) struct Wayferry {
    encoder: Encoder,
    decoder: Decoder,
    layout: Layout,
    /// What the program draws into.
    memory: Vec<AtomicU8>,
    /// What the app side keeps.
    ours: Draft,
    /// What the display side shows, and what has come of the next update.
    theirs: Content,
    opened: Vec<Opened>,
}

impl Wayferry {
    /// For surfaces of this size, black at first.
    pub(crate) fn new(compress: Compress, width: u32, height: u32) -> Result<Self, Error> {
        let wrong = |error: wayferry_pixels::Error| Error::Usage(error.to_string());
        let size = Size::new(width, height).map_err(wrong)?;
        let layout = Layout::new(0, u64::from(width) * 4, size, Format::Xrgb8888).map_err(wrong)?;
        let compression = match compress {
            Compress::None => Compression::None,
            Compress::Lz4 => Compression::Lz4,
            Compress::Zstd(level) => Compression::Zstd(level),
        };
        let encoder = Encoder::new(compression);
        let (ours, theirs) = (Draft::new(size, Format::Xrgb8888), Content::new(size, Format::Xrgb8888));
        let memory = std::iter::repeat_with(AtomicU8::default).take(layout.end() as usize).collect();
        Ok(Self { encoder, decoder: Decoder::new(), layout, memory, ours, theirs, opened: Vec::new() })
    }
}

impl Codec for Wayferry {
    fn name(&self) -> &'static str {
        "wayferry"
    }

    fn draw(&mut self, frame: &Frame<'_>) {
        let bytes = frame.pixels.as_flattened();
        for rect in frame.damage {
            for y in rect.y..rect.y + rect.height {
                let start = (y * frame.width + rect.x) as usize * 4;
                let row = start..start + rect.width as usize * 4;
                let drawn = bytes[row.clone()].iter().zip(&self.memory[row]);
                drawn.for_each(|(byte, memory)| memory.store(*byte, Ordering::Relaxed));
            }
        }
    }

    fn encode(&mut self, frame: &Frame<'_>) -> Vec<Vec<u8>> {
        let rect = |rect: &SceneRect| Rect::new(rect.x, rect.y, rect.width, rect.height);
        let damage: Region = frame.damage.iter().map(rect).collect();
        self.ours.absorb_shared(&self.layout, &damage, &self.memory, 1);
        self.encoder.encode(&mut self.ours)
    }

    fn decode(&mut self, message: &[u8]) -> Result<Vec<SceneRect>, CodecError> {
        let opened = self.decoder.open(self.theirs.size(), self.theirs.format(), message);
        let opened = opened.map_err(|error| CodecError::Other(error.into()))?;
        let rect = |rect: &Rect| SceneRect::new(rect.x, rect.y, rect.width, rect.height);
        let painted = opened.region().rects().iter().map(rect).collect();
        self.opened.push(opened);
        Ok(painted)
    }

    fn finish(&mut self) -> Result<(), CodecError> {
        let opened = std::mem::take(&mut self.opened);
        let painted = self.decoder.paint(&mut self.theirs, &opened);
        painted.map(|_| ()).map_err(|error| CodecError::Other(error.into()))
    }

    fn shown(&self) -> &[u8] {
        self.theirs.pixels()
    }
}
