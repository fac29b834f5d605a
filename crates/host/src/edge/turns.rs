//! How long the turns of a run loop took: what waits for a turn, such as a key, waits that much at most.
//!
//! Counts by length, in steps of an eighth, so however many turns there are they take the same memory. Invariant: a
//! share is never told shorter than it was.

use std::time::Duration;

/// How long one turn took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// From its beginning to its end.
    pub time: Duration,
    /// How much of that its thread had a processor.
    pub processor: Duration,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Turns {
    /// Of each step of microseconds.
    counts: [u64; STEPS],
    longest: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { counts: [0; STEPS], longest: Duration::ZERO }
    }
}

impl Turns {
    /// A turn took so long.
    pub fn add(&mut self, took: Duration) {
        self.counts[step(took)] += 1;
        self.longest = self.longest.max(took);
    }

    /// As if these had been added too.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, count)| *own += count);
        self.longest = self.longest.max(other.longest);
    }

    /// No more than this share of all turns took longer; zero of none.
    pub fn share(&self, share: f64) -> Duration {
        let count: u64 = self.counts.iter().sum();
        let rank = (share * count as f64).ceil() as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank.max(1)
        });
        found.map_or(Duration::ZERO, end_of).min(self.longest)
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

/// Which step a length is in: eight to each doubling.
fn step(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(LONGEST);
    if micros < EIGHTHS {
        return micros as usize;
    }
    let doublings = micros.ilog2() - EIGHTHS.ilog2();
    (u64::from(doublings) * EIGHTHS + (micros >> doublings)) as usize
}

/// Where a step ends.
fn end_of(step: usize) -> Duration {
    let step = step as u64 + 1;
    let doublings = (step / EIGHTHS).saturating_sub(1);
    Duration::from_micros((step - doublings * EIGHTHS) << doublings)
}

/// Steps to a doubling.
const EIGHTHS: u64 = 8;
/// Microseconds of a turn that is told from longer ones: half a minute.
const LONGEST: u64 = (1 << 25) - 1;
/// All of them.
const STEPS: usize = 184;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_a_step_that_ends_an_eighth_later_at_most() {
        for micros in (0..5000).chain([1 << 20, LONGEST - 1, LONGEST]) {
            let took = Duration::from_micros(micros);
            let end = end_of(step(took));
            assert!(end > took && end <= took + took / 8 + Duration::from_micros(1), "{took:?} {end:?}");
        }
        assert_eq!((step(Duration::from_micros(LONGEST)), step(Duration::MAX)), (STEPS - 1, STEPS - 1));
    }

    #[test]
    fn shares_are_never_told_shorter_and_the_longest_is_exact() {
        let (mut turns, mut more) = (Turns::default(), Turns::default());
        assert_eq!(turns.share(0.99), Duration::ZERO);
        (1..=99).for_each(|_| turns.add(Duration::from_micros(100)));
        more.add(Duration::from_micros(70_001));
        turns.merge(&more);
        let p99 = turns.share(0.99);
        assert!((Duration::from_micros(100)..Duration::from_micros(113)).contains(&p99), "{p99:?}");
        assert_eq!((turns.share(1.0), turns.longest()), (turns.longest(), Duration::from_micros(70_001)));
    }
}
