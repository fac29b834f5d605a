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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::Video;

    const HERE: Rect = Rect::new(0, 0, 20, 20);
    const THERE: Rect = Rect::new(20, 0, 20, 20);

    fn frame(stream: u8, rect: Rect, key: bool) -> Frame {
        Frame { video: Video { stream, rect, key }, fourth: 0, data: Vec::new() }
    }

    /// Streams whose decoders are where they have begun.
    fn advance(streams: &mut Streams<Rect>, frames: &[Frame]) -> bool {
        streams.advance(frames, Ok).is_ok()
    }

    fn numbers(streams: &mut Streams<Rect>) -> Vec<u8> {
        streams.decoders().map(|(number, _)| number).collect()
    }

    #[test]
    fn a_stream_has_frames_where_it_has_begun_alone() {
        let mut streams = Streams::default();
        assert!(!advance(&mut streams, &[frame(1, HERE, false)]));
        assert!(advance(&mut streams, &[frame(1, HERE, true), frame(3, THERE, true)]));
        assert!(advance(&mut streams, &[frame(3, THERE, false)]));
        assert!(!advance(&mut streams, &[frame(1, THERE, false)]));
        assert!(!advance(&mut streams, &[frame(2, HERE, false)]));
        assert_eq!((streams.decoder(1).copied(), streams.rects().count()), (Some(HERE), 2));
        streams.clear();
        assert!(streams.are_none() && !advance(&mut streams, &[frame(1, HERE, false)]));
    }

    #[test]
    fn a_stream_that_begins_ends_what_is_in_its_way_and_itself() {
        let mut streams = Streams::default();
        assert!(advance(&mut streams, &[frame(0, HERE, true), frame(1, THERE, true)]));
        assert!(advance(&mut streams, &[frame(2, Rect::new(10, 10, 4, 4), true)]));
        assert_eq!(numbers(&mut streams), [1, 2]);
        assert!(advance(&mut streams, &[frame(1, Rect::new(30, 30, 4, 4), true)]));
        assert!(!advance(&mut streams, &[frame(1, THERE, false)]));
        assert!(advance(&mut streams, &[frame(1, Rect::new(12, 0, 4, 12), true)]));
        assert_eq!(numbers(&mut streams), [1]);
    }

    #[test]
    fn a_stream_without_a_frame_for_so_long_is_over() {
        for (pause, goes_on) in [(MAX_AGE - 1, true), (MAX_AGE, false)] {
            let mut streams = Streams::default();
            assert!(advance(&mut streams, &[frame(0, HERE, true)]));
            (0..pause).for_each(|_| assert!(advance(&mut streams, &[])));
            assert_eq!(advance(&mut streams, &[frame(0, HERE, false)]), goes_on, "{pause}");
        }
    }

    #[test]
    fn a_stream_without_a_decoder_does_not_begin() {
        let mut streams: Streams<()> = Streams::default();
        assert!(streams.advance(&[frame(0, HERE, true)], |_| Err("none".to_owned())).is_err());
        assert!(streams.are_none());
    }
}
