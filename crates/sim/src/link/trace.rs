//! Recorded service: at which times the link could carry a packet.
//!
//! A trace is a list of opportunities, each for [`Trace::BYTES`] bytes, and repeats for ever. Invariant: times do not
//! go back, and a round takes longer than nothing.

use std::time::Duration;

use wayferry_proto::Time;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Since the beginning of the round.
    opportunities: Vec<Duration>,
    round: Duration,
}

impl Trace {
    /// What one opportunity carries, headers counted.
    pub const BYTES: u64 = 1500;

    /// Opportunities since the start of the recording, in order; the last one ends the round. `None` when there are
    /// none, they are out of order, or all at the start.
    pub fn new(opportunities: Vec<Duration>) -> Option<Self> {
        let round = *opportunities.last()?;
        let ordered = opportunities.is_sorted();
        (ordered && !round.is_zero()).then_some(Self { opportunities, round })
    }

    /// The first opportunity numbered `from` or later that is not before `time`: its number and its time.
    pub(super) fn next(&self, from: u64, time: Time) -> (u64, Time) {
        let count = self.opportunities.len() as u64;
        let rounds = (time.since_start().as_nanos() / self.round.as_nanos()) as u64;
        // The round before also counts: its last opportunity is at this one's beginning.
        let mut number = from.max(rounds.saturating_sub(1) * count);
        while self.at(number) < time {
            number += 1;
        }
        (number, self.at(number))
    }

    fn at(&self, number: u64) -> Time {
        let count = self.opportunities.len() as u64;
        let rounds = u32::try_from(number / count).unwrap_or(u32::MAX);
        Time::new(self.round * rounds + self.opportunities[(number % count) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(times: &[u64]) -> Option<Trace> {
        Trace::new(times.iter().map(|time| Duration::from_millis(*time)).collect())
    }

    #[test]
    fn opportunities_repeat() {
        let trace = millis(&[10, 20, 30]).unwrap();
        assert_eq!(trace.next(0, Time::ZERO), (0, Time::from_millis(10)));
        assert_eq!(trace.next(1, Time::from_millis(20)), (1, Time::from_millis(20)));
        assert_eq!(trace.next(2, Time::from_millis(31)), (3, Time::from_millis(40)));
        assert_eq!(trace.next(0, Time::from_millis(3_000_001)), (300_000, Time::from_millis(3_000_010)));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(millis(&[]), None);
        assert_eq!(millis(&[0, 0]), None);
        assert_eq!(millis(&[5, 3]), None);
    }
}
