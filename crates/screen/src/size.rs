//! Which size the screen is given as its window gets another one. Sans-IO.
//!
//! While the user drags an edge the window has a hundred sizes, and each change of a mode repaints all of a screen, so
//! only the one that stays for [`SETTLED`] is asked for. Invariant: one change is under way at a time, and the last
//! size that was wanted is asked for in the end, once.

use std::time::{Duration, Instant};

/// A size of a screen, in its pixels, and how many of them make a length of one, in 120ths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) scale: u32,
}

/// The size of a screen.
#[derive(Debug, Default)]
pub(crate) struct Size {
    /// What is wanted, and since when.
    wanted: Option<(Mode, Instant)>,
    /// What was asked for last.
    asked: Option<Mode>,
    /// Until when the compositor's answer is waited for.
    under_way: Option<Instant>,
    /// Nothing was asked for yet: the first size need not settle.
    is_known: bool,
}

impl Size {
    /// The window is so large.
    pub(crate) fn want(&mut self, now: Instant, mode: Mode) {
        let mode = mode.within_limits();
        if self.wanted.is_none_or(|(wanted, _)| wanted != mode) {
            let since = if self.is_known { now } else { now - SETTLED };
            self.wanted = Some((mode, since));
        }
    }

    /// What to ask the compositor for now.
    pub(crate) fn step(&mut self, now: Instant) -> Option<Mode> {
        self.under_way = self.under_way.filter(|until| now < *until);
        let (mode, since) = self.wanted.filter(|_| !self.is_under_way(now))?;
        if self.asked == Some(mode) || now < since + SETTLED {
            return None;
        }
        (self.asked, self.under_way, self.is_known) = (Some(mode), Some(now + PATIENCE), true);
        Some(mode)
    }

    /// Whether the compositor has yet to answer.
    pub(crate) fn is_under_way(&self, now: Instant) -> bool {
        self.under_way.is_some_and(|until| now < until)
    }

    /// The compositor has answered; `again`: what it knew of its screens was old.
    pub(crate) fn answered(&mut self, again: bool) {
        self.under_way = None;
        if again {
            self.asked = None;
        }
    }

    /// When [`Size::step`] or [`Size::is_under_way`] has something to do without being told anything.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let (mode, since) = self.wanted?;
        let due = (self.asked != Some(mode)).then_some(since + SETTLED);
        // Then pictures go on, and the next size may be asked for.
        self.under_way.or(due)
    }
}

impl Mode {
    fn within_limits(self) -> Self {
        let within = |length: i32| length.clamp(MIN_LENGTH, MAX_LENGTH);
        Self { width: within(self.width), height: within(self.height), ..self }
    }
}

/// How long a size must stay.
const SETTLED: Duration = Duration::from_millis(100);

/// How long the compositor may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A screen is at least so many pixels wide and high.
const MIN_LENGTH: i32 = 64;

/// And at most.
pub(crate) const MAX_LENGTH: i32 = 16_384;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mode(width: i32) -> Mode {
        Mode { width, height: 480, scale: 120 }
    }

    #[test]
    fn the_first_size_is_asked_for_at_once_and_later_ones_when_they_have_settled() {
        let (mut size, now) = (Size::default(), Instant::now());
        size.want(now, mode(800));
        assert_eq!(size.step(now), Some(mode(800)));
        size.answered(false);
        for moment in 0..10 {
            size.want(now + Duration::from_millis(10 * moment), mode(801 + moment as i32));
            assert_eq!(size.step(now + Duration::from_millis(10 * moment)), None);
        }
        assert_eq!(size.timeout(), Some(now + Duration::from_millis(190)));
        assert_eq!(size.step(now + Duration::from_millis(190)), Some(mode(810)));
    }

    #[test]
    fn a_compositor_that_never_answers_is_not_waited_for_without_end() {
        let (mut size, now) = (Size::default(), Instant::now());
        size.want(now, mode(800));
        assert_eq!(size.step(now), Some(mode(800)));
        assert!(size.is_under_way(now) && size.timeout() == Some(now + PATIENCE));
        let later = now + PATIENCE;
        assert_eq!((size.step(later), size.is_under_way(later), size.timeout()), (None, false, None));
    }

    proptest! {
        #[test]
        fn the_last_size_is_what_the_screen_gets(
            inputs in prop::collection::vec((64..5000, 0_u64..150, any::<bool>()), 1..60),
        ) {
            let (mut size, mut now) = (Size::default(), Instant::now());
            let (mut has, mut under_way) = (None, None);
            let mut last = mode(0);
            for (width, wait, answer) in inputs {
                now += Duration::from_millis(wait);
                last = mode(width);
                size.want(now, last);
                if answer && under_way.is_some() {
                    has = under_way.take();
                    size.answered(false);
                }
                if let Some(mode) = size.step(now) {
                    prop_assert!(under_way.is_none());
                    under_way = Some(mode);
                }
            }
            for _ in 0..4 {
                now += SETTLED;
                if under_way.is_some() {
                    has = under_way.take();
                    size.answered(false);
                }
                under_way = size.step(now).or(under_way);
            }
            prop_assert_eq!(has, Some(last));
            prop_assert_eq!(size.timeout(), None);
        }
    }
}
