//! A set of byte positions, kept as sorted runs that neither overlap nor touch.
//!
//! It does not limit itself: a caller that inserts asks [`Runs::count`] first.

use std::ops::Range;

/// A set of byte positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    runs: Vec<Range<usize>>,
}

impl Runs {
    /// Adds a range, and tells `fresh` the parts of it that were not there, ascending.
    pub(crate) fn insert(&mut self, range: Range<usize>, mut fresh: impl FnMut(Range<usize>)) {
        if range.is_empty() {
            return;
        }
        let touched = self.touched(&range);
        let mut merged = range.clone();
        let mut at = range.start;
        for run in &self.runs[touched.clone()] {
            if at < run.start {
                fresh(at..run.start);
            }
            at = at.max(run.end);
            merged = merged.start.min(run.start)..merged.end.max(run.end);
        }
        if at < range.end {
            fresh(at..range.end);
        }
        self.runs.splice(touched, [merged]);
    }

    /// Whether the range would be a run of its own.
    pub(crate) fn is_apart(&self, range: &Range<usize>) -> bool {
        self.touched(range).is_empty()
    }

    /// The runs, by index, that the range overlaps or touches.
    fn touched(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.runs.partition_point(|run| run.end < range.start);
        first..first + self.runs[first..].partition_point(|run| run.start <= range.end)
    }

    /// Whether the position is in the set.
    pub(crate) fn contains(&self, at: usize) -> bool {
        let after = self.runs.partition_point(|run| run.end <= at);
        self.runs.get(after).is_some_and(|run| run.start <= at)
    }

    /// Whether all of `0..end` is in the set.
    pub(crate) fn is_full(&self, end: usize) -> bool {
        self.runs.first().is_some_and(|run| run.start == 0 && run.end >= end)
    }

    /// How many runs there are.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    /// The runs, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Range<usize>> {
        self.runs.iter()
    }

    /// What of `0..end` is not in the set, ascending.
    pub(crate) fn gaps(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let starts = [0].into_iter().chain(self.runs.iter().map(|run| run.end));
        let ends = self.runs.iter().map(|run| run.start).chain([end]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_positions(ranges in prop::collection::vec((0usize..60, 0usize..12), 0..20)) {
            let mut runs = Runs::default();
            let mut truth = [false; 72];
            for (start, length) in ranges {
                let range = start..start + length;
                let apart = !truth[start.saturating_sub(1)..=range.end].contains(&true);
                prop_assert!(runs.is_apart(&range) == apart || range.is_empty());
                let mut expected: Vec<usize> = range.clone().filter(|&at| !truth[at]).collect();
                runs.insert(range.clone(), |fresh| {
                    let told: Vec<usize> = fresh.collect();
                    assert_eq!(expected.drain(..told.len()).collect::<Vec<_>>(), told);
                });
                prop_assert!(expected.is_empty());
                truth[range].fill(true);
            }
            prop_assert!((0..72).all(|at| runs.contains(at) == truth[at]));
            let gaps: Vec<usize> = runs.gaps(72).flatten().collect();
            prop_assert_eq!(gaps, (0..72).filter(|&at| !truth[at]).collect::<Vec<_>>());
            let edges = (0..71).filter(|&at| !truth[at] && truth[at + 1]).count() + usize::from(truth[0]);
            prop_assert_eq!(runs.count(), edges);
            prop_assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), truth.iter().filter(|&&is| is).count());
            prop_assert_eq!(runs.is_full(30), truth[..30].iter().all(|&is| is));
        }
    }
}
