//! The frames of a surface's videos: one encoder for each, and what a frame may cost.
//!
//! What is a video is the draft's affair. Invariant: the encoder of a stream has made every frame of it since it began.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_pixels::video::{self, Coming};
use wayferry_pixels::{Content, Draft, Video};
use wayferry_proto::Time;

use crate::codec::{self, Encoder};

/// What makes the frames of one surface's videos.
#[derive(Debug, Default)]
pub(super) struct Videos {
    encoders: BTreeMap<u8, (Encoder, Time)>,
    /// Until when none begins: what moves there cannot be made small.
    unfit: Time,
}

/// What the frames of one update are made by.
#[derive(Debug)]
pub(super) struct Maker<'a> {
    pub(super) videos: &'a mut Videos,
    pub(super) codec: &'a mut codec::Maker,
    /// How many share the link.
    pub(super) count: usize,
    /// How many more may begin.
    pub(super) room: usize,
    pub(super) quality: u8,
    /// The link's rate, in bytes per second.
    pub(super) rate: u64,
    pub(super) now: Time,
}

impl Videos {
    /// Forgets those that are over.
    pub(super) fn keep(&mut self, draft: &Draft) {
        self.encoders.retain(|stream, _| draft.has_video(*stream));
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.encoders.len()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.encoders.clear();
    }
}

impl video::Videos for Maker<'_> {
    fn frame(&mut self, content: &Content, video: Video) -> Option<Coming> {
        let Video { stream, rect, key } = video;
        let Videos { encoders, unfit } = &mut *self.videos;
        if !key && encoders.get(&stream).is_some_and(|(encoder, _)| encoder.fails()) {
            *unfit = self.now + UNFIT;
        }
        if self.now < *unfit {
            return None;
        }
        if key {
            self.room = self.room.checked_sub(1)?;
            encoders.insert(stream, (Encoder::new(rect, self.quality)?, Time::ZERO));
        }
        let count = self.count.max(encoders.len());
        let (encoder, last) = encoders.get_mut(&stream)?;
        let interval = if key { FIRST_INTERVAL } else { self.now.since(*last) };
        let interval = interval.clamp(LEAST_INTERVAL, MOST_INTERVAL);
        *last = self.now;
        encoder.frame(self.codec, content, rect, bitrate(rect.area(), self.rate, count), interval)
    }
}

/// Bits per second of a video of so many pixels, over a link of so many bytes per second that it shares with others.
fn bitrate(pixels: u64, rate: u64, count: usize) -> u64 {
    let good = (GOOD_RATE * pixels / GOOD_PIXELS).clamp(LEAST_RATE, GOOD_RATE);
    let share = rate.saturating_mul(8) / 10 * LINK_TENTHS / count.max(1) as u64;
    good.min(share)
}

/// Bits per second that show so many pixels well, no larger video takes more, and no smaller one less than the least.
const GOOD_RATE: u64 = 3_800_000;
const GOOD_PIXELS: u64 = 1280 * 720;
const LEAST_RATE: u64 = 300_000;

/// What videos may take of the link; the rest is for what happens beside them.
const LINK_TENTHS: u64 = 7;

/// For how long none begins after a video that could not be made small.
const UNFIT: Duration = Duration::from_secs(30);

/// Bounds of what is taken for the time until the next frame, and what it is taken for at first. Where the link cannot
/// take a frame in the longest, frames get worse, not rarer and rarer.
const LEAST_INTERVAL: Duration = Duration::from_millis(8);
const MOST_INTERVAL: Duration = Duration::from_millis(66);
const FIRST_INTERVAL: Duration = Duration::from_millis(33);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn videos_take_what_they_need_and_the_link_has() {
        let fast = 10_000_000;
        assert_eq!(bitrate(1280 * 720, fast, 1), 3_800_000);
        assert_eq!(bitrate(1280 * 720 / 4, fast, 1), 950_000);
        assert_eq!(bitrate(128 * 128, fast, 1), 300_000);
        assert_eq!(bitrate(3840 * 2160, fast, 1), 3_800_000);
        assert_eq!(bitrate(1280 * 720, 125_000, 1), 700_000);
        assert_eq!(bitrate(1280 * 720, 125_000, 2), 350_000);
        assert_eq!(bitrate(u64::from(u32::MAX), u64::MAX, 0), 3_800_000);
    }
}
