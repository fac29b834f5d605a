//! How the player follows the target, and thereby the clocks of both sound cards.
//!
//! Within 20 ms of the target nothing is done. Outside, until the target is met again, silence is left out or put in as
//! needed, and sound is played at most 2.5 % faster or slower, one splice at a time. More than 200 ms too late for 1 s:
//! one cut. Invariant: in any second of output, the lags of all splices together are at most 25 ms.

use std::collections::VecDeque;

use wayferry_proto::Time;

use super::Player;
use crate::conceal::Decoder;
use crate::sample::{CHANNELS, MS, RATE, frames_at};
use crate::splice::{LONGEST, SHORTEST, SPAN, find, lengthen, shorten};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Steering {
    /// Whether the target was left, and has not been met again.
    correcting: bool,
    /// Splices of the last second: after how many frames of output, and how many frames were gained.
    splices: VecDeque<(u64, i64)>,
    played: u64,
    /// Since when the player has been far too late.
    late_since: Option<i64>,
    /// Splices that were put off because sound nowhere resembled itself.
    tries: u32,
    /// What the device usually has queued, times [`SMOOTH`].
    queue: Option<i64>,
}

impl Steering {
    pub(super) fn on_pull(&mut self, queue: i64) {
        let queue = queue.min(RATE.into());
        let mean = self.queue.get_or_insert(queue * SMOOTH);
        *mean += queue - *mean / SMOOTH;
    }

    pub(super) fn on_played(&mut self, frames: u64) {
        self.played += frames;
        while self.splices.front().is_some_and(|(at, _)| self.played - at > u64::from(RATE)) {
            self.splices.pop_front();
        }
    }

    pub(super) fn restart(&mut self) {
        (self.correcting, self.late_since, self.tries) = (false, None, 0);
    }

    /// Sound was missing: correct until the target is met again, however near it is.
    pub(super) fn correct(&mut self) {
        self.correcting = true;
    }

    /// Frames that the last second took of the capture, less those that it played.
    pub(super) fn gained(&self) -> i64 {
        self.splices.iter().map(|(_, gained)| gained).sum()
    }

    /// How much more than usual the device has queued: it pulls in bursts.
    fn beyond_usual(&self, queue: i64) -> i64 {
        queue.min(RATE.into()) - self.queue.unwrap_or(0) / SMOOTH
    }

    /// Whether to act on being so many frames too late (or, below 0, too early).
    fn decide(&mut self, late: i64) -> bool {
        let met = if self.correcting { late.abs() < MET } else { late.abs() <= TOLERANCE };
        self.correcting = !met;
        self.correcting
    }

    /// The longest lag that this second still allows.
    fn room(&self) -> usize {
        let used: i64 = self.splices.iter().map(|(_, gained)| gained.abs()).sum();
        usize::try_from(LAG_PER_SECOND - used).unwrap_or(0)
    }

    /// Whether a splice with this difference is good enough; each refusal makes the next try less strict.
    fn accepts(&mut self, difference: f32) -> bool {
        self.tries += 1;
        let good = difference <= GOOD * self.tries as f32;
        if good {
            self.tries = 0;
        }
        good
    }
}

impl<D: Decoder> Player<D> {
    /// Corrects what is to be played next.
    pub(super) fn steer(&mut self, now: Time, queue: i64) {
        let Some(arrived) = self.jitter.arrived(now) else { return };
        let level = arrived - self.tape.position() + self.steering.beyond_usual(queue);
        let late = level - self.jitter.target_frames();
        if self.is_cut_due(frames_at(now), late) {
            self.cut(arrived);
            self.steering.restart();
            return;
        }
        // What would have been captured a second from now was captured by another clock: it is played to its end, and
        // then it begins anew. To wait for that clock could take years.
        if late < -i64::from(RATE) || !self.steering.decide(late) || self.concealment.is_running() {
            return;
        }
        while self.tape.frames() < SPAN && self.decode_next() {}
        if !self.shift_silence(late) {
            self.splice(late);
        }
    }

    fn is_cut_due(&mut self, now: i64, late: i64) -> bool {
        if late <= CUT {
            self.steering.late_since = None;
            return false;
        }
        let since = *self.steering.late_since.get_or_insert(now);
        late > CUT_AT_ONCE || now - since >= CUT_AFTER
    }

    /// Leaves silence out, or puts some in, if there is any next.
    fn shift_silence(&mut self, late: i64) -> bool {
        let most = late.unsigned_abs().min(SILENCE as u64) as usize * CHANNELS;
        let next = &self.tape.rest()[..self.tape.rest().len().min(SILENCE * CHANNELS)];
        if next.len() < SILENCE * CHANNELS || next.iter().any(|sample| sample.abs() > INAUDIBLE) {
            return false;
        }
        self.tape.edit(|samples| {
            if late > 0 {
                samples.drain(..most);
            } else {
                samples.splice(..0, std::iter::repeat_n(0.0, most));
            }
        });
        true
    }

    /// One splice, if the second has room for it and sound resembles itself.
    fn splice(&mut self, late: i64) {
        let longest = self.steering.room().min(late.unsigned_abs().max(SHORTEST as u64) as usize);
        let Some(splice) = find(self.tape.rest(), longest.min(LONGEST)) else { return };
        if !self.steering.accepts(splice.difference) {
            return;
        }
        let gained = if late > 0 { splice.lag as i64 } else { -(splice.lag as i64) };
        self.tape.edit(
            |samples| if late > 0 { shorten(samples, splice.lag) } else { lengthen(samples, splice.lag) },
        );
        self.steering.splices.push_back((self.steering.played, gained));
    }
}

/// Nothing is done while playout is this near the target.
const TOLERANCE: i64 = 20 * MS;

/// Once left, the target counts as met when playout is this near.
const MET: i64 = 4 * MS;

/// All lags of a second together: 2.5 %.
const LAG_PER_SECOND: i64 = 25 * MS;

/// Being this much too late for [`CUT_AFTER`] is no jitter but a queue, and would take long to play away.
const CUT: i64 = 200 * MS;
const CUT_AFTER: i64 = 1000 * MS;

/// Being this much too late is no queue either: the device or the machine slept.
const CUT_AT_ONCE: i64 = 600 * MS;

/// Silence is shifted in steps of this many frames.
const SILENCE: usize = 480;

/// −72 dB: not to be heard, and neither is where it ends.
const INAUDIBLE: f32 = 1.0 / 4096.0;

/// A difference that is not heard; each failed try allows as much more.
const GOOD: f32 = 0.02;

/// The device's usual queue is the mean over about this many pulls.
const SMOOTH: i64 = 128;
