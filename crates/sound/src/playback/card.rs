//! A sound card as what the desk plays to, where no sound server is: how much it wants, and when that is heard.
//!
//! `alsa` opens the card and moves samples from the ring to it. Nothing here does, or reads a clock: the times are
//! those of the turns, in which the card's callbacks have just been seen.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use wayferry_audio::CHANNELS;
use wayferry_proto::Time;

use super::ring::{Level, Ring, time_of};

/// See the module.
#[derive(Debug)]
pub(super) struct Card {
    ring: Arc<Ring>,
    level: Level,
    /// When the card took samples last, or its opening began, and how long its own queue was then.
    asked: Time,
    behind: Duration,
}

impl Card {
    /// One that is being opened.
    pub(super) fn new(now: Time) -> io::Result<Self> {
        let ring = Arc::new(Ring::new()?);
        Ok(Self { ring, level: Level::default(), asked: now, behind: Duration::ZERO })
    }

    pub(super) fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Sees what happened; the reason, if the card failed.
    pub(super) fn look(&mut self, now: Time) -> Result<(), String> {
        self.level = self.ring.look()?;
        if let Some(behind) = self.level.behind {
            (self.asked, self.behind) = (now, behind);
        }
        Ok(())
    }

    /// Whether it is open.
    pub(super) fn is_ready(&self) -> bool {
        self.level.is_open
    }

    /// When it is given up, if it is not open.
    pub(super) fn opens_by(&self) -> Option<Time> {
        (!self.is_ready()).then_some(self.asked + OPENED_LATEST)
    }

    /// Frames for which there is room.
    pub(super) fn wanted(&self) -> usize {
        self.level.room
    }

    /// When it is overdue to take more.
    pub(super) fn asks_by(&self) -> Time {
        self.asked + self.behind + PATIENCE
    }

    pub(super) fn give(&mut self, samples: &[f32]) {
        let frames = samples.len() / CHANNELS;
        self.level.room = self.level.room.saturating_sub(frames);
        self.level.queued += frames;
        self.ring.put(samples);
    }

    /// How long it takes until what is given next is heard.
    pub(super) fn queue(&self, now: Time) -> Duration {
        time_of(self.level.queued) + self.behind.saturating_sub(now.since(self.asked)).min(LONGEST_QUEUE)
    }
}

/// ALSA may be a client of a server that stands still, and gives up by itself after half a minute.
const OPENED_LATEST: Duration = Duration::from_secs(40);

/// No card has a longer queue.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);

/// A card that has taken nothing for so long beyond its queue plays nothing.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::STEP_FRAMES;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn the_queue_is_what_is_in_the_ring_and_what_the_card_has_left() {
        let mut card = Card::new(at(0)).unwrap();
        card.look(at(1)).unwrap();
        assert!(!card.is_ready() && card.wanted() == 0);
        card.ring().open(STEP_FRAMES);
        card.look(at(100)).unwrap();
        assert!(card.is_ready());
        assert_eq!((card.wanted(), card.queue(at(100))), (2 * STEP_FRAMES, Duration::from_millis(20)));
        card.give(&[0.5; STEP_FRAMES * CHANNELS]);
        assert_eq!((card.wanted(), card.queue(at(100))), (STEP_FRAMES, Duration::from_millis(30)));
        card.ring().take(&mut [0; STEP_FRAMES * CHANNELS], Duration::from_millis(7), |sample| sample);
        card.look(at(200)).unwrap();
        assert_eq!((card.wanted(), card.queue(at(205))), (2 * STEP_FRAMES, Duration::from_millis(12)));
        assert_eq!(card.queue(at(300)), Duration::ZERO, "it ran dry");
        assert_eq!(card.asks_by(), at(1217));
    }
}
