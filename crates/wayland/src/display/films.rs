//! The films of one surface as the display side shows them: a decoder for each.
//!
//! It knows nothing of what is beside them. Invariant: films share no pixel and are few, so their memory is bounded by
//! that of the surface and some MiB for each; and a film is shown only if all its frames have been, in their order.

use std::collections::BTreeMap;

use wayferry_pixels::film::Frame;
use wayferry_pixels::{Content, Format, Rect};

use crate::codec::{self, Decoder, Shown};

/// Updates after which a film without a frame is over.
const MAX_AGE: u64 = 64;

/// Memory that a decoder may take: in bytes per pixel of its pictures, which are larger than the film by so many pixels in
/// each direction, and in bytes for any size.
const MEMORY: usize = 16;
const MARGIN: u32 = 80;
const LEAST_MEMORY: usize = 4 << 20;

/// The films of one surface.
#[derive(Debug, Default)]
pub(super) struct Films {
    films: BTreeMap<u8, Film>,
    updates: u64,
}

#[derive(Debug)]
struct Film {
    rect: Rect,
    decoder: Decoder,
    /// The update that brought its last frame.
    last: u64,
}

/// A frame that waits to be painted.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    pub(super) rect: Rect,
    fourth: u8,
    shown: Shown<'a>,
}

impl Films {
    /// Takes the frames of the next update, whose content has this format.
    ///
    /// # Errors
    /// What is wrong with one. No film can be shown then before it begins anew.
    pub(super) fn decode(&mut self, frames: &[Frame], format: Format) -> Result<Vec<Decoded<'_>>, String> {
        self.updates += 1;
        let Self { films, updates } = self;
        films.retain(|_, film| film.last + MAX_AGE >= *updates);
        if !frames.is_empty() && !codec::shows(format) {
            return Err(format!("a film in pixel format {}", format.code()));
        }
        for frame in frames {
            let (stream, rect) = (frame.film.stream, frame.film.rect);
            if frame.film.key {
                films.retain(|_, film| !film.rect.intersects(rect));
                films.insert(stream, Film { rect, decoder: Decoder::new(rect)?, last: *updates });
            }
            if films.get(&stream).is_none_or(|film| film.rect != rect) {
                return Err(format!("a frame of film {stream}, which has not begun there"));
            }
        }
        let mut decoded = Vec::with_capacity(frames.len());
        for (stream, film) in films {
            let Some(frame) = frames.iter().find(|frame| frame.film.stream == *stream) else { continue };
            film.last = *updates;
            let shown = film.decoder.decode(&frame.data)?;
            decoded.push(Decoded { rect: film.rect, fourth: frame.fourth, shown });
        }
        Ok(decoded)
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.films.clear();
    }

    /// Bytes that they may take.
    pub(super) fn bytes(&self) -> usize {
        self.films.values().map(|film| memory(film.rect)).sum()
    }
}

fn memory(film: Rect) -> usize {
    // Sides are at most 2¹⁴.
    LEAST_MEMORY + ((film.width + MARGIN) * (film.height + MARGIN)) as usize * MEMORY
}

impl Decoded<'_> {
    /// Paints it into the content that it was decoded for.
    pub(super) fn paint(&self, content: &mut Content) {
        self.shown.paint(content, self.rect, self.fourth);
    }
}
