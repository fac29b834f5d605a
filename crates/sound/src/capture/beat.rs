//! The sound clock: blocks of 10 ms, one after the other, as the run loop's time passes.
//!
//! It reads no clock. Invariant: block *n* begins at *n* times 10 ms of the session's time, whenever it is mixed.

use std::time::Duration;

use wayferry_audio::{FrameSize, Position};
use wayferry_proto::Time;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beat {
    /// The next block; `None` at rest.
    next: Option<u64>,
}

impl Beat {
    /// Begins with the block that it is time for, unless it is under way.
    pub(super) fn start(&mut self, now: Time) {
        self.next.get_or_insert(block_at(now));
    }

    /// Rests.
    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    /// The next block whose time has come. After a pause of the thread or of the machine, those that are long past are
    /// left out.
    pub(super) fn due(&mut self, now: Time) -> Option<Position> {
        let (next, current) = (self.next.as_mut()?, block_at(now));
        if *next > current {
            return None;
        }
        if current - *next > MAX_BEHIND {
            *next = current;
        }
        let position = Position(*next * FrameSize::Ms10.frames() as u64);
        *next += 1;
        Some(position)
    }

    /// When [`due`](Self::due) gives the next one.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.next.map(|next| Time::ZERO + BLOCK * u32::try_from(next).unwrap_or(u32::MAX))
    }
}

fn block_at(now: Time) -> u64 {
    (now.since_start().as_nanos() / BLOCK.as_nanos()) as u64
}

/// The length of a block. A session would have to live for 16 months to have more of them than a `u32` counts.
const BLOCK: Duration = FrameSize::Ms10.duration();

/// Blocks that are mixed late: 200 ms.
const MAX_BEHIND: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn due(beat: &mut Beat, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| beat.due(Time::from_millis(now))).map(|position| position.0 / 480).collect()
    }

    #[test]
    fn blocks_come_when_it_is_time_for_them_and_once() {
        let mut beat = Beat::default();
        assert_eq!((due(&mut beat, 5), beat.next_timeout()), (vec![], None));
        beat.start(Time::from_millis(1005));
        assert_eq!(due(&mut beat, 1005), [100]);
        assert_eq!(beat.next_timeout(), Some(Time::from_millis(1010)));
        assert_eq!(due(&mut beat, 1009), [0; 0]);
        beat.start(Time::from_millis(1009));
        assert_eq!(due(&mut beat, 1031), [101, 102, 103]);
        beat.stop();
        assert_eq!(due(&mut beat, 2000), [0; 0]);
        beat.start(Time::from_millis(2000));
        assert_eq!(due(&mut beat, 2000), [200]);
    }

    #[test]
    fn a_pause_is_made_up_for_if_it_was_short() {
        let mut beat = Beat::default();
        beat.start(Time::ZERO);
        assert_eq!(due(&mut beat, 0), [0]);
        assert_eq!(due(&mut beat, 210).len(), 21);
        assert_eq!(due(&mut beat, 60_000), [6000], "a machine that slept");
    }
}
