//! The videos of one surface, by the frames of its updates: when one begins, where it is, and when it is over.
//!
//! It knows no codec: who has one keeps a decoder for each stream here. Invariant: streams share no pixel, and each has
//! had a frame among the last [`MAX_AGE`] updates.

use std::collections::BTreeMap;

use crate::geometry::Rect;
use crate::video::Frame;

/// Updates after which a video without a frame is over.
const MAX_AGE: u64 = 64;

/// See the module.
#[derive(Debug)]
pub struct Streams<D> {
    streams: BTreeMap<u8, Stream<D>>,
    updates: u64,
}

#[derive(Debug)]
struct Stream<D> {
    rect: Rect,
    decoder: D,
    /// The update that brought its last frame.
    last: u64,
}

impl<D> Streams<D> {
    /// The frames of the next update come; streams begin with a decoder for pictures of that size, and end.
    ///
    /// # Errors
    /// A frame belongs to no stream, or there is no decoder for one.
    pub fn advance(
        &mut self,
        frames: &[Frame],
        mut begin: impl FnMut(Rect) -> Result<D, String>,
    ) -> Result<(), String> {
        self.updates += 1;
        let Self { streams, updates } = self;
        streams.retain(|_, stream| stream.last + MAX_AGE >= *updates);
        for frame in frames {
            let (number, rect) = (frame.video.stream, frame.video.rect);
            if frame.video.key {
                streams.retain(|other, stream| *other != number && !stream.rect.intersects(rect));
                streams.insert(number, Stream { rect, decoder: begin(rect)?, last: *updates });
            }
            match streams.get_mut(&number).filter(|stream| stream.rect == rect) {
                Some(stream) => stream.last = *updates,
                None => return Err(format!("a frame of video {number}, which has not begun there")),
            }
        }
        Ok(())
    }

    /// The decoders of all, by the numbers of their streams.
    pub fn decoders(&mut self) -> impl Iterator<Item = (u8, &mut D)> {
        self.streams.iter_mut().map(|(number, stream)| (*number, &mut stream.decoder))
    }

    /// The decoder of a stream.
    pub fn decoder(&mut self, stream: u8) -> Option<&mut D> {
        self.streams.get_mut(&stream).map(|stream| &mut stream.decoder)
    }

    /// Where they are.
    pub fn rects(&self) -> impl Iterator<Item = Rect> {
        self.streams.values().map(|stream| stream.rect)
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.streams.is_empty()
    }

    /// All are over.
    pub fn clear(&mut self) {
        self.streams.clear();
    }
}

impl<D> Default for Streams<D> {
    fn default() -> Self {
        Self { streams: BTreeMap::new(), updates: 0 }
    }
}
