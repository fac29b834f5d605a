//! Which columns of a block can be solved, and from which rows.
//!
//! A range of missing bytes that is not made of whole rows erases different rows in different columns, so the columns
//! fall into segments. This finds them from the edges of the runs alone, without looking at bytes.

use std::ops::Range;

use crate::layout::Layout;
use crate::runs::Runs;

/// Neighbouring columns in which the same source rows are missing and the same repair rows are there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The columns.
    pub(crate) columns: Range<usize>,
    /// The source rows missing there, ascending; at least one.
    pub(crate) erased: Vec<usize>,
    /// As many repair rows that are known there, as indices of the list given; the first ones.
    pub(crate) repair: Vec<usize>,
}

/// The segments that can be solved, ascending, given what is known of the source and of each repair row.
pub(crate) fn solvable(layout: Layout, source: &Runs, repair: &[&Runs]) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for columns in countable(layout, source, repair) {
        let erased = erased(layout, source, columns.start);
        let known = (0..repair.len()).filter(|&index| repair[index].contains(columns.start));
        let repair: Vec<usize> = known.take(erased.len()).collect();
        match segments.last_mut() {
            Some(last)
                if last.columns.end == columns.start && last.erased == erased && last.repair == repair =>
            {
                last.columns.end = columns.end;
            }
            _ => segments.push(Segment { columns, erased, repair }),
        }
    }
    segments
}

/// The stretches of columns between edges that miss something, but no more than their repair can give.
fn countable(layout: Layout, source: &Runs, repair: &[&Runs]) -> Vec<Range<usize>> {
    let (mut missing, mut edges) = missing_edges(layout, source);
    for run in repair.iter().flat_map(|known| known.iter()) {
        edges.push(Edge { column: run.start, missing: 0, repair: 1 });
        edges.push(Edge { column: run.end, missing: 0, repair: -1 });
    }
    edges.push(Edge { column: layout.row(), missing: 0, repair: 0 });
    edges.sort_unstable_by_key(|edge| edge.column);
    let mut found = Vec::new();
    let (mut at, mut known) = (0, 0);
    for edge in edges {
        if edge.column > at && 0 < missing && missing <= known {
            found.push(at..edge.column);
        }
        at = edge.column;
        missing += edge.missing;
        known += edge.repair;
    }
    found
}

/// How the number of missing rows, or of repair rows, changes at a column.
struct Edge {
    column: usize,
    missing: isize,
    repair: isize,
}

/// How many rows are missing in every column, and where that number, or only the rows, change.
fn missing_edges(layout: Layout, source: &Runs) -> (isize, Vec<Edge>) {
    let row = layout.row();
    let mut everywhere = 0;
    let mut edges = Vec::new();
    for gap in source.gaps(layout.length()) {
        everywhere += (gap.len() / row) as isize;
        let (start, end) = (gap.start % row, gap.end % row);
        let some = isize::from(gap.len() % row > 0);
        everywhere += isize::from(start > end);
        edges.push(Edge { column: start, missing: some, repair: 0 });
        edges.push(Edge { column: end, missing: -some, repair: 0 });
    }
    (everywhere, edges)
}

/// The source rows that are missing in a column.
fn erased(layout: Layout, source: &Runs, column: usize) -> Vec<usize> {
    let first = |edge: usize| edge.saturating_sub(column).div_ceil(layout.row());
    source.gaps(layout.length()).flat_map(|gap| first(gap.start)..first(gap.end)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs(ranges: &[(usize, usize)], end: usize) -> Runs {
        let mut runs = Runs::default();
        for &(start, length) in ranges {
            runs.insert(start.min(end)..(start + length).min(end), |_| ());
        }
        runs
    }

    proptest! {
        #[test]
        fn agrees_with_counting_every_column(
            length in 1usize..80,
            row in 1usize..20,
            source in prop::collection::vec((0usize..80, 0usize..30), 0..6),
            repair in prop::collection::vec(prop::collection::vec((0usize..20, 0usize..20), 0..3), 0..5),
        ) {
            let layout = Layout::new(length, row).unwrap();
            let source = runs(&source, length);
            let repair: Vec<Runs> = repair.iter().map(|ranges| runs(ranges, layout.row())).collect();
            let repair: Vec<&Runs> = repair.iter().collect();
            let mut found = vec![None; layout.row()];
            for segment in solvable(layout, &source, &repair) {
                for column in segment.columns {
                    found[column] = Some((segment.erased.clone(), segment.repair.clone()));
                }
            }
            for (column, found) in found.into_iter().enumerate() {
                let position = |row: usize| row * layout.row() + column;
                let missing: Vec<usize> = (0..layout.rows())
                    .filter(|&row| position(row) < length && !source.contains(position(row)))
                    .collect();
                let mut known: Vec<usize> = (0..repair.len()).filter(|&index| repair[index].contains(column)).collect();
                let solvable = !missing.is_empty() && missing.len() <= known.len();
                known.truncate(missing.len());
                prop_assert_eq!(found, solvable.then_some((missing, known)));
            }
        }
    }
}
