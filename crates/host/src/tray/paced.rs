//! How often an icon may change, and how much all of them may say.
//!
//! The first change passes at once, a later one half a second after it; of those that come meanwhile the newest is
//! left. It decides nothing about what they are. Invariant: at most one waits.

use std::time::Duration;

use wayferry_proto::Time;

/// The state of something that changes, of which the newest passes.
#[derive(Debug, Clone)]
pub(crate) struct Paced<T> {
    waiting: Option<T>,
    opens: Time,
}

impl<T> Default for Paced<T> {
    fn default() -> Self {
        Self { waiting: None, opens: Time::default() }
    }
}

impl<T> Paced<T> {
    /// It is so now.
    pub(crate) fn set(&mut self, state: T) {
        self.waiting = Some(state);
    }

    /// What waits is not wanted any more; the next one waits as long as before.
    pub(crate) fn clear(&mut self) {
        self.waiting = None;
    }

    /// The newest state, if it may pass at `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<T> {
        let state = self.waiting.take_if(|_| now >= self.opens)?;
        self.opens = now + STEP;
        Some(state)
    }

    /// When it may pass; `None` if nothing waits.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.waiting.is_some().then_some(self.opens)
    }
}

/// How many bytes may pass: a second's at once, and then as time goes by.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// When all that passed has been paid for.
    paid: Time,
}

impl Budget {
    /// So many pass at `now`; later ones wait for them.
    pub(crate) fn spend(&mut self, now: Time, bytes: usize) {
        let micros = bytes as u64 * 1_000_000 / BYTES_A_SECOND;
        self.paid = self.paid.max(now) + Duration::from_micros(micros);
    }

    /// When anything may pass.
    pub(crate) fn opens(&self) -> Time {
        self.paid - Duration::from_secs(1)
    }
}

/// From one change of an icon or a menu to the next.
const STEP: Duration = Duration::from_millis(500);
/// Of all icons of a session.
const BYTES_A_SECOND: u64 = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(100_000 + millis)
    }

    #[test]
    fn the_newest_passes_twice_a_second() {
        let mut paced = Paced::default();
        assert_eq!((paced.poll(at(0)), paced.next_timeout()), (None, None));
        paced.set(1);
        assert_eq!(paced.poll(at(0)), Some(1));
        paced.set(2);
        paced.set(3);
        assert_eq!((paced.poll(at(499)), paced.next_timeout()), (None, Some(at(500))));
        assert_eq!((paced.poll(at(500)), paced.next_timeout()), (Some(3), None));
        paced.set(4);
        paced.clear();
        paced.set(5);
        assert_eq!((paced.poll(at(999)), paced.poll(at(1000))), (None, Some(5)), "the pace stays");
    }

    #[test]
    fn large_pictures_take_turns_with_the_rest_of_the_link() {
        let mut budget = Budget::default();
        assert!(budget.opens() <= at(0));
        budget.spend(at(0), 32 << 10);
        assert_eq!(budget.opens(), at(0));
        budget.spend(at(0), 16 << 10);
        assert_eq!(budget.opens(), at(500));
        budget.spend(at(10_000), 16 << 10);
        assert!(budget.opens() < at(10_000), "what was not used is not kept for ever");
    }
}
