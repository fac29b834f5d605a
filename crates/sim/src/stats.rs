//! Samples and their percentiles.
//!
//! A bag holds how often each value came, to 10 µs below 40 ms and to a tenth of a percent above, so that millions fit,
//! and so that machines that ran parts of one grid agree to the bit when the parts are put together. Invariant: the
//! order in which samples come does not matter.

use std::collections::BTreeMap;
use std::time::Duration;

/// A bag of durations; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Microseconds → how many.
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: Duration) {
        self.add_many(u64::try_from(sample.as_micros()).unwrap_or(u64::MAX), 1);
    }

    /// Adds `count` samples of this many microseconds.
    pub fn add_many(&mut self, micros: u64, count: u64) {
        *self.counts.entry(round(micros)).or_default() += count;
        self.total += count;
    }

    /// Adds all of another bag.
    pub fn merge(&mut self, other: &Self) {
        for (micros, count) in &other.counts {
            self.add_many(*micros, *count);
        }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Each value in microseconds with its count, in order.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(micros, count)| (*micros, *count))
    }

    /// The smallest sample that at least `share` of all do not exceed, in milliseconds; `None` without samples.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        self.ranked((self.total as f64 * share).ceil() as u64)
    }

    /// Between which values the percentile of what the samples were drawn from lies with 95 % confidence, in
    /// milliseconds, if they are independent of each other; `None` without samples.
    pub fn interval(&self, share: f64) -> Option<(f64, f64)> {
        // The number of samples below it is binomial, here taken as normal.
        let (count, half) = (self.total as f64, 1.96 * (self.total as f64 * share * (1.0 - share)).sqrt());
        let low = self.ranked((count * share - half).floor().max(1.0) as u64)?;
        Some((low, self.ranked((count * share + half).ceil() as u64 + 1)?))
    }

    fn ranked(&self, rank: u64) -> Option<f64> {
        let rank = rank.clamp(1, self.total.max(1));
        let mut seen = 0;
        for (micros, count) in &self.counts {
            seen += count;
            if seen >= rank {
                return Some(*micros as f64 / 1e3);
            }
        }
        None
    }

    /// The mean in milliseconds; `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.counts.iter().map(|(micros, count)| *micros as f64 * *count as f64).sum();
        (self.total > 0).then(|| sum / self.total as f64 / 1e3)
    }

    /// How many exceed this.
    pub fn above(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        self.counts.range(limit.saturating_add(1)..).map(|(_, count)| count).sum()
    }
}

/// To the nearest value that is kept.
fn round(micros: u64) -> u64 {
    let mut step = 10;
    while micros / step > STEPS {
        step *= 5;
    }
    micros.saturating_add(step / 2) / step * step
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        let mut all = Self::default();
        for sample in samples {
            all.add(sample);
        }
        all
    }
}

/// How many values share one precision.
const STEPS: u64 = 4000;

#[cfg(test)]
mod tests {
    use super::*;

    fn one_to(last: u64) -> Samples {
        (1..=last).map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_of_the_samples() {
        let samples = one_to(100);
        assert_eq!(samples.percentile(0.5), Some(50.0));
        assert_eq!(samples.percentile(0.99), Some(99.0));
        assert_eq!(samples.percentile(1.0), Some(100.0));
        assert_eq!(Samples::default().percentile(0.5), None);
        assert_eq!(samples.mean(), Some(50.5));
        assert_eq!(samples.above(Duration::from_millis(98)), 2);
    }

    #[test]
    fn more_samples_know_a_percentile_better() {
        let width = |count| {
            let samples: Samples =
                (0..count).map(|index| Duration::from_micros(index * 10_000_000 / count)).collect();
            let (low, high) = samples.interval(0.9).unwrap();
            assert!(low <= 9_000.0 && 9_000.0 <= high, "{low} {high}");
            high - low
        };
        assert!(width(10_000) < width(100) / 5.0);
        assert_eq!(Samples::default().interval(0.5), None);
    }

    #[test]
    fn a_value_is_kept_to_a_tenth_of_a_percent() {
        for micros in [0, 3, 9_995, 12_345, 110_512, 3_000_123, 70_000_456, u64::MAX] {
            let kept = round(micros);
            assert!(
                kept.abs_diff(micros) <= 5 || (kept as f64 / micros as f64 - 1.0).abs() < 0.001,
                "{micros} {kept}"
            );
            assert_eq!(round(kept), kept);
        }
    }

    #[test]
    fn parts_make_the_whole() {
        let mut parts = one_to(40);
        parts.merge(&(41..=100).map(Duration::from_millis).collect());
        assert_eq!(parts, one_to(100));
    }
}
