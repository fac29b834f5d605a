//! How long sound must wait so that nearly all packets arrive in time.
//!
//! A packet's delay is its arrival by our clock less its capture by the sender's: the clocks differ by some constant,
//! so only differences mean anything. The delay minus the least delay of the last 2 s, a window that follows clock
//! drift, is the packet's lateness. The target is the highest 0.995 quantile of the lateness in the last 30 s, so it
//! stays up between the stalls of a link that stalls every few seconds.
//!
//! It keeps no packets. Invariants: the target is within its bounds for any input; a delay that no target could cover,
//! and a capture time far from all others, do not change the target.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::Time;

use crate::sample::{MS, Position, frames_at, time_of};

/// See the module. All numbers are frames.
#[derive(Clone, Debug)]
pub struct Jitter {
    /// The least delays of the last [`WINDOW`], by their parts: when each began, and its least.
    least: VecDeque<(i64, i64)>,
    /// The least delay, as last known.
    minimum: Option<i64>,
    bins: [f32; BINS],
    weight: f32,
    /// The highest quantile of each of the last seconds.
    peaks: VecDeque<(i64, i64)>,
    /// When the last packet came.
    last: Option<i64>,
    /// Capture time at the end of the last outage or suspend, when no packet arrived for longer than any target.
    /// Packets captured before it waited meanwhile, and say nothing about jitter.
    paused: Option<i64>,
    /// Since when all packets have been implausibly late.
    doubt: Option<i64>,
    /// When the first packet came.
    began: Option<i64>,
}

impl Default for Jitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Jitter {
    /// An estimator for a link of which nothing is known.
    pub fn new() -> Self {
        Self {
            least: VecDeque::new(),
            minimum: None,
            bins: [0.0; BINS],
            weight: 0.0,
            peaks: VecDeque::new(),
            last: None,
            paused: None,
            doubt: None,
            began: None,
        }
    }

    /// The first copy of a packet arrived at `now`.
    pub fn on_packet(&mut self, now: Time, capture: Position) {
        let now = frames_at(now);
        self.began.get_or_insert(now);
        let delay = now - capture.frames();
        let last = self.last.replace(now).unwrap_or(now);
        if now - last > TARGET_MAX_FRAMES {
            self.paused = Some(self.minimum.map_or(capture.frames(), |minimum| now - minimum));
        }
        while self.least.front().is_some_and(|(began, _)| *began <= now - WINDOW) {
            self.least.pop_front();
        }
        let believed = self.least.iter().map(|(_, least)| *least).min();
        if believed.is_some_and(|minimum| (delay - minimum).abs() > FAR) || self.is_doubtful(now, delay) {
            return;
        }
        match self.least.back_mut() {
            Some((began, least)) if now - *began < PART => *least = delay.min(*least),
            _ => self.least.push_back((now, delay)),
        }
        let minimum = believed.map_or(delay, |minimum| minimum.min(delay));
        self.minimum = self.least.iter().map(|(_, least)| *least).min();
        if self.paused.is_none_or(|paused| capture.frames() >= paused) {
            self.learn(now, delay - minimum);
        }
    }

    /// Sequence numbers and capture times begin anew: forgets the least delay, but keeps the target; the link is the
    /// same.
    pub fn restart(&mut self) {
        self.least.clear();
        (self.minimum, self.paused) = (None, None);
    }

    /// How far behind capture the player should be, compared with a packet that arrives without any jitter.
    pub fn target(&self) -> Duration {
        time_of(self.target_frames())
    }

    pub(crate) fn target_frames(&self) -> i64 {
        let held = self.peaks.iter().map(|(_, peak)| *peak).max().unwrap_or(TARGET_FIRST);
        let young = self.peaks.back().map_or(0, |(now, _)| *now) - self.began.unwrap_or(0) < YOUNG;
        held.clamp(if young { TARGET_FIRST } else { TARGET_MIN }, TARGET_MAX_FRAMES)
    }

    /// The capture time of a packet that would arrive at `now` without any jitter; `None` before the first packet.
    pub(crate) fn arrived(&self, now: Time) -> Option<i64> {
        Some(frames_at(now) - self.minimum?)
    }

    /// Whether to ignore a far later delay than before: after a pause, such a packet may have waited, and punctual ones
    /// follow at once. If none follows for [`DOUBT`], a clock has jumped, and the new delay counts.
    fn is_doubtful(&mut self, now: i64, delay: i64) -> bool {
        if self.minimum.is_none_or(|minimum| delay - minimum <= TARGET_MAX_FRAMES) {
            self.doubt = None;
            return false;
        }
        now - *self.doubt.get_or_insert(now) < DOUBT
    }

    fn learn(&mut self, now: i64, late: i64) {
        if late > TARGET_MAX_FRAMES {
            return;
        }
        self.bins.iter_mut().for_each(|bin| *bin *= KEEP);
        self.weight = self.weight * KEEP + 1.0;
        self.bins[usize::try_from(late / BIN).unwrap_or(0).min(BINS - 1)] += 1.0;
        let quantile = self.quantile();
        match self.peaks.back_mut() {
            Some((second, peak)) if now - *second < SECOND && now >= *second => *peak = quantile.max(*peak),
            _ => self.peaks.push_back((now, quantile)),
        }
        while self.peaks.front().is_some_and(|(second, _)| (now - *second).abs() > HOLD) {
            self.peaks.pop_front();
        }
    }

    /// The upper edge of the bin that has the quantile, plus one pull of the device.
    fn quantile(&self) -> i64 {
        let mut beyond = self.weight * (1.0 - QUANTILE);
        for (index, bin) in self.bins.iter().enumerate().rev() {
            beyond -= bin;
            if beyond < 0.0 {
                return (index as i64 + 1) * BIN + PULL;
            }
        }
        TARGET_MIN
    }
}

/// The longest target: beyond, a stall is heard rather than waited for.
pub const TARGET_MAX: Duration = Duration::from_millis(500);

/// The same in frames.
const TARGET_MAX_FRAMES: i64 = 500 * MS;

/// The shortest: a packet of 20 ms, and what devices and threads are late by.
const TARGET_MIN: i64 = 40 * MS;

/// The target of an unknown link, and its least one while it is [`YOUNG`].
const TARGET_FIRST: i64 = 80 * MS;

/// How long a link has to be known before the target falls below the first.
const YOUNG: i64 = 5 * SECOND;

const SECOND: i64 = 1000 * MS;

/// How long a delay counts for the least one.
const WINDOW: i64 = 2 * SECOND;

/// The window moves in these steps.
const PART: i64 = SECOND / 4;

/// A delay this far from the least is no jitter: a clock jumped, or the packet lies.
const FAR: i64 = 2 * SECOND;

/// How long all packets must be that late before a clock is taken to have jumped.
const DOUBT: i64 = SECOND / 2;

/// Width of a bin of the histogram.
const BIN: i64 = 20 * MS;
const BINS: usize = (TARGET_MAX_FRAMES / BIN) as usize;

/// What a device takes at once: its last frame must be there when it takes the first.
const PULL: i64 = 10 * MS;

/// What the target covers.
const QUANTILE: f32 = 0.995;

/// Decay of the older packets' weight with each new one: about the last 200 count.
const KEEP: f32 = 1.0 - 1.0 / 200.0;

/// How long a peak is held.
const HOLD: i64 = 30 * SECOND;

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(jitter: &mut Jitter, packets: std::ops::Range<u64>, late: impl Fn(u64) -> u64) {
        for index in packets {
            let capture = Position(index * 960);
            jitter.on_packet(Time::from_millis(index * 20 + 1000 + late(index)), capture);
        }
    }

    #[test]
    fn it_starts_at_80_ms_and_falls_to_40_on_a_calm_link() {
        let mut jitter = Jitter::new();
        assert_eq!(jitter.target(), Duration::from_millis(80));
        feed(&mut jitter, 0..200, |_| 0);
        assert_eq!(jitter.target(), Duration::from_millis(80), "too young to believe");
        feed(&mut jitter, 200..300, |_| 0);
        assert_eq!(jitter.target(), Duration::from_millis(40));
    }

    #[test]
    fn a_stall_raises_it_at_once_and_for_30_s() {
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        // Ten packets come together.
        feed(&mut jitter, 300..310, |index| (309 - index) * 20);
        let raised = jitter.target();
        assert!(raised >= Duration::from_millis(180) && raised <= Duration::from_millis(220), "{raised:?}");
        feed(&mut jitter, 310..1700, |_| 0);
        assert_eq!(jitter.target(), raised);
        feed(&mut jitter, 1700..2400, |_| 0);
        assert_eq!(jitter.target(), Duration::from_millis(40));
    }

    #[test]
    fn times_that_make_no_sense_change_nothing() {
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        let (target, arrived) = (jitter.target(), jitter.arrived(Time::from_millis(7000)));
        for lie in [0, 1 << 40, u64::MAX, 1 << 61, 300 * 960 + 3 * 48_000] {
            jitter.on_packet(Time::from_millis(7000), Position(lie));
        }
        assert_eq!((jitter.target(), jitter.arrived(Time::from_millis(7000))), (target, arrived));
        jitter.on_packet(Time::new(Duration::MAX), Position(u64::MAX));
        assert!(jitter.target() <= TARGET_MAX);
    }

    #[test]
    fn a_clock_that_jumped_is_believed_after_half_a_second() {
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        feed(&mut jitter, 300..327, |_| 3_600_000);
        let now = Time::from_millis(326 * 20 + 1000 + 3_600_000);
        assert_eq!(jitter.arrived(now), Some(326 * 960));
        assert_eq!(jitter.target(), Duration::from_millis(40));
    }

    /// The second of sound that came before the sender missed the receiver, which stood still for 2.6 s: the first
    /// packets are too late to be believed, but the last are not, and they were taken for the delay of the way.
    #[test]
    fn regression_what_waited_for_a_receiver_that_stood_still_is_played() {
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        let now = Time::from_millis(9600);
        let arrived = jitter.arrived(now);
        feed(&mut jitter, 300..350, |index| 2600 - (index - 300) * 20);
        assert_eq!(jitter.arrived(now), arrived);
        // What is sent now comes as before.
        feed(&mut jitter, 432..500, |_| 0);
        assert_eq!((jitter.arrived(now), jitter.target()), (arrived, Duration::from_millis(40)));
    }

    #[test]
    fn a_long_stall_is_not_learned() {
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        feed(&mut jitter, 300..350, |index| (349 - index) * 20);
        assert_eq!(jitter.target(), Duration::from_millis(40), "a second in which nothing came");
        let mut jitter = Jitter::new();
        feed(&mut jitter, 0..300, |_| 0);
        feed(&mut jitter, 300..301, |_| 900);
        assert_eq!(jitter.target(), Duration::from_millis(40));
    }
}
