//! The videos of one surface as the display side shows them: a decoder for each.
//!
//! It knows nothing of what is beside them. Invariant: videos share no pixel and are few, so their memory is bounded by
//! that of the surface and some MiB for each; and a video is shown only if all its frames have been, in their order.

use wayferry_pixels::video::Frame;
use wayferry_pixels::{Content, Format, Rect, Streams};

use crate::codec::{self, DecodedFrame, Decoder};

/// Memory that a decoder may take: in bytes per pixel of its pictures, which are larger than the video by so many
/// pixels in each direction, and in bytes for any size.
const MEMORY: usize = 16;
const MARGIN: u32 = 80;
const LEAST_MEMORY: usize = 4 << 20;

/// The videos of one surface.
#[derive(Debug, Default)]
pub(super) struct Videos(Streams<Decoder>);

/// A frame that waits to be painted.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    pub(super) rect: Rect,
    fourth: u8,
    shown: DecodedFrame<'a>,
}

impl Videos {
    /// Takes the frames of the next update, whose content has this format.
    ///
    /// # Errors
    /// What is wrong with one. No video can be shown then before it begins anew.
    pub(super) fn decode(&mut self, frames: &[Frame], format: Format) -> Result<Vec<Decoded<'_>>, String> {
        if !frames.is_empty() && !codec::shows(format) {
            return Err(format!("a video in pixel format {}", format.code()));
        }
        self.0.advance(frames, Decoder::new)?;
        let mut decoded = Vec::with_capacity(frames.len());
        for (stream, decoder) in self.0.decoders() {
            let Some(frame) = frames.iter().find(|frame| frame.video.stream == stream) else { continue };
            let shown = decoder.decode(&frame.data)?;
            decoded.push(Decoded { rect: frame.video.rect, fourth: frame.fourth, shown });
        }
        Ok(decoded)
    }

    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        self.0.are_none()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes that they may take.
    pub(super) fn bytes(&self) -> usize {
        self.0.rects().map(memory).sum()
    }
}

fn memory(video: Rect) -> usize {
    // Sides are at most 2¹⁴.
    LEAST_MEMORY + ((video.width + MARGIN) * (video.height + MARGIN)) as usize * MEMORY
}

impl Decoded<'_> {
    /// Paints it into the content that it was decoded for.
    pub(super) fn paint(&self, content: &mut Content) {
        self.shown.paint(content, self.rect, self.fourth);
    }
}
