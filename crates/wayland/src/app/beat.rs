//! The clock that programs draw by: ticks at equal distances.
//!
//! A tick answers frame callbacks, and begins an interval in which one commit of a surface may leave, as soon as it is
//! there. A program that draws at each callback thus finds its interval free, and its commit waits for nothing. What
//! happened is noted as the tick in whose interval it did, so being late does not delay what follows. The beat follows
//! the display's by small steps ([`Beat::leaning_to`]): the rate of frames stays what it is. Knows no surfaces and no
//! display. Invariant: two ticks that follow one another by [`Beat::after`] are at least half a period apart, however
//! the beat changes between them.

use std::time::Duration;

use wayferry_proto::Time;

/// Ticks at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beat {
    /// One of the ticks.
    origin: Time,
    period: Duration,
}

impl Beat {
    /// With ticks at `origin` and every `period` before and after it; the least period is a nanosecond.
    pub(super) fn new(origin: Time, period: Duration) -> Self {
        Self { origin, period: period.max(Duration::from_nanos(1)) }
    }

    /// One of the ticks.
    pub(super) fn origin(self) -> Time {
        self.origin
    }

    /// The tick in whose interval `at` is: the last one that is not after it. The start of time counts as one.
    pub(super) fn tick(self, at: Time) -> Time {
        at - self.into_interval(at)
    }

    /// The tick for what is to follow `last`, which was a tick, about `apart` later: the first one for which less than
    /// half a period is missing. The one after `last` if `apart` is a period or less.
    pub(super) fn after(self, last: Time, apart: Duration) -> Time {
        let earliest = last + apart.max(self.period) - self.period / 2;
        let into = self.into_interval(earliest);
        if into.is_zero() { earliest } else { earliest + (self.period - into) }
    }

    /// The same, a little nearer to having a tick at `at`. A stray does no harm, and most that are told decide.
    pub(super) fn leaning_to(self, at: Time) -> Self {
        let late = self.into_interval(at);
        let early = self.period - late;
        let step = |distance: Duration| (distance / SMOOTHING).min(self.period / SLOWNESS);
        let tick = at - late;
        let origin = if late <= early { tick + step(late) } else { tick - step(early) };
        Self { origin, ..self }
    }

    /// How long before `at` the last tick was.
    fn into_interval(self, at: Time) -> Duration {
        let period = self.period.as_nanos();
        let into = match at >= self.origin {
            true => (at - self.origin).as_nanos() % period,
            false => (period - (self.origin - at).as_nanos() % period) % period,
        };
        Duration::from_nanos(u64::try_from(into).unwrap_or(u64::MAX))
    }
}

/// By what part of its distance a tick moves: what is told of the display comes later by this and that, now and then.
const SMOOTHING: u32 = 8;
/// By what part of a period at most. It keeps the rate of frames within a thousandth of the display's, also where that
/// answers each commit at once and has no beat of its own; half a period takes some seconds.
const SLOWNESS: u32 = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_nanos(16_666_667);

    fn nanos(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
        range.prop_map(Duration::from_nanos)
    }

    /// How far `at` is from the nearest tick.
    fn distance(beat: Beat, at: Time) -> Duration {
        let late = at - beat.tick(at);
        late.min(beat.period - late)
    }

    proptest! {
        #[test]
        fn a_tick_is_the_last_one_and_the_next_comes_when_little_is_missing(
            origin in nanos(0..100_000_000_000),
            period in nanos(0..100_000_000),
            at in nanos(0..100_000_000_000),
            apart in nanos(0..2_000_000_000),
        ) {
            let beat = Beat::new(Time::new(origin), period);
            let (period, at) = (beat.period, Time::new(at));
            let tick = beat.tick(at);
            prop_assert!(tick <= at && at - tick < period);
            prop_assert_eq!(beat.tick(tick), tick);
            let next = beat.after(tick, apart);
            prop_assert_eq!(beat.tick(next), next);
            let missing = (tick + apart.max(period)) - next;
            prop_assert!(missing <= period / 2);
            prop_assert!(next - tick < apart.max(period) + period / 2 + Duration::from_nanos(1));
            if apart <= period && tick > Time::ZERO {
                prop_assert_eq!(next, tick + period);
            }
        }

        /// Each tick is handled late by up to most of a period: none is lost, and the last comes when it should.
        #[test]
        fn being_late_does_not_add_up(lateness in prop::collection::vec(0_u64..16_000_000, 1..600)) {
            let beat = Beat::new(Time::from_millis(7), PERIOD);
            let mut last = Time::from_millis(7);
            for late in &lateness {
                let now = beat.after(last, Duration::ZERO) + Duration::from_nanos(*late);
                last = beat.tick(now);
            }
            prop_assert_eq!(last, Time::from_millis(7) + PERIOD * lateness.len() as u32);
        }

        /// However the display's beat is: ours gets there, though some frames are told late and some have none of it.
        #[test]
        fn it_gets_into_phase_and_stays(
            phase in nanos(0..16_666_667),
            noise in prop::collection::vec((0_u64..600_000, 0_u32..20, 0_u64..16_666_667), 1400),
        ) {
            let mut beat = Beat::new(Time::ZERO, PERIOD);
            let mut last = beat.tick(Time::from_millis(1000));
            for (frame, (late, stray, anywhere)) in (60..).zip(noise) {
                let late = if stray == 0 { anywhere } else { late };
                let next = beat.after(last, Duration::ZERO);
                prop_assert!(next - last >= PERIOD * 998 / 1000 && next - last <= PERIOD * 1002 / 1000);
                last = next;
                let shown = Time::ZERO + phase + PERIOD * frame;
                beat = beat.leaning_to(shown + Duration::from_nanos(late));
                if frame > 1100 {
                    prop_assert!(distance(beat, shown) < Duration::from_millis(1));
                }
            }
        }

        /// For any times that are told, and any change of the period.
        #[test]
        fn two_ticks_are_never_closer_than_half_a_period(
            steps in prop::collection::vec((any::<u64>(), nanos(2_000_000..100_000_000), nanos(0..50_000_000)), 1..60)
        ) {
            let mut beat = Beat::new(Time::ZERO, PERIOD);
            let mut last = Time::from_millis(1000);
            for (told, period, late) in steps {
                beat = Beat::new(beat.leaning_to(Time::from_nanos(told)).origin, period);
                let next = beat.after(last, Duration::ZERO);
                prop_assert!(next - last >= period / 2);
                prop_assert!(next - last < period * 2);
                last = beat.tick(next + late);
                prop_assert!(last >= next);
            }
        }
    }
}
