//! Repair over a window of rows that slides: rows of any lengths, of any blocks, by numbers that go on.
//!
//! A [`mix`] is a sum of the last rows, each times a factor that its number and the sum's own decide. So one sum stands
//! for any row of its window, and n of them for n rows that all contain. Where blocks are as short as a row, a sum for
//! every few of them costs a part of what a row for each does. [`solve`] takes what is known of rows and sums, and
//! gives what follows. Which bytes a row is, and which sums are worth keeping, is for others to know.
//!
//! The factor of row i in sum j is 1 / (x ⊕ y) with x = j mod [`SUMS`], y = [`SUMS`] + i mod [`SPAN`]: as long as
//! no window is longer than that, a Cauchy matrix, of which every square part has an inverse.
//!
//! The one invariant: what is found follows from what was given.

use std::iter::once;
use std::ops::Range;

use crate::{field, kernel};

/// A sum of rows.
#[derive(Clone, Debug)]
pub struct Sum<'a> {
    /// Its number.
    pub number: u64,
    /// As long as its longest row; those that are shorter count as filled up with zeros.
    pub bytes: &'a [u8],
    /// Its rows: where each is in the list of all, and its number.
    pub rows: Vec<(usize, u64)>,
}

/// What is known of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its bytes; where it is missing, they are of no account.
    pub bytes: Vec<u8>,
    /// What is missing, ascending.
    pub missing: Vec<Range<usize>>,
}

/// Missing bytes of a row that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where the row is in the list of all.
    pub row: usize,
    /// Where in the row they begin.
    pub at: usize,
    /// What they are.
    pub bytes: Vec<u8>,
}

/// The sum of that number over rows with their numbers; it is as long as the longest of them.
pub fn mix(number: u64, rows: &[(u64, &[u8])]) -> Vec<u8> {
    let length = rows.iter().map(|(_, row)| row.len()).max().unwrap_or_default();
    let padded: Vec<Vec<u8>> = rows.iter().map(|(_, row)| padded(row, length)).collect();
    let padded: Vec<&[u8]> = padded.iter().map(|row| &row[..]).collect();
    let factors: Vec<u8> = rows.iter().map(|(row, _)| factor(number, *row)).collect();
    combine(&padded, &factors, 1, length).pop().unwrap_or_default()
}

/// What of missing rows follows from sums: columns in which the same rows are missing are solved together. Nothing
/// where more than 64 rows have something missing, in more than 64 manners, and nothing of columns in which more than
/// 24 do: what it takes beside one look at all bytes has a bound.
pub fn solve(rows: &[Row], sums: &[Sum<'_>]) -> Vec<Found> {
    let lacking: Vec<usize> = (0..rows.len()).filter(|&row| !rows[row].missing.is_empty()).collect();
    let pieces: usize = lacking.iter().map(|&row| rows[row].missing.len()).sum();
    if lacking.len() > MAX_ROWS || pieces > 2 * MAX_ROWS {
        return Vec::new();
    }
    let edges = edges(rows, sums);
    if edges.len() > MAX_SEGMENTS + 1 {
        return Vec::new();
    }
    let rests: Vec<Rest> = sums.iter().map(|sum| Rest::of(rows, sum)).collect();
    let columns = edges.windows(2).map(|pair| pair[0]..pair[1]);
    columns.flat_map(|columns| solve_segment(rows, &lacking, &rests, columns)).collect()
}

/// Where columns begin and end in which the same rows are missing, and the same sums there.
fn edges(rows: &[Row], sums: &[Sum<'_>]) -> Vec<usize> {
    let missing = rows.iter().flat_map(|row| &row.missing);
    let mut edges: Vec<usize> = missing.flat_map(|range| [range.start, range.end]).collect();
    edges.extend(sums.iter().map(|sum| sum.bytes.len()));
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn solve_segment(rows: &[Row], lacking: &[usize], sums: &[Rest], columns: Range<usize>) -> Vec<Found> {
    let lacking: Vec<usize> = lacking.iter().copied().filter(|&row| rows[row].lacks(columns.start)).collect();
    if lacking.is_empty() || lacking.len() > MAX_LACKING {
        return Vec::new();
    }
    let lacks = |row: usize| lacking.binary_search(&row).ok();
    let helps = |sum: &&Rest| {
        sum.bytes.len() >= columns.end && sum.lacking.iter().any(|&(row, _)| lacks(row).is_some())
    };
    let sums: Vec<&Rest> = sums.iter().filter(helps).collect();
    let mut system = System::new(lacking.len(), sums.len());
    for (index, sum) in sums.iter().enumerate() {
        for &(row, factor) in &sum.lacking {
            if let Some(unknown) = lacks(row) {
                system.add(index, unknown, factor);
            }
        }
    }
    let solved = system.solve();
    if solved.is_empty() {
        return Vec::new();
    }
    let rests: Vec<&[u8]> = sums.iter().map(|sum| &sum.bytes[columns.clone()]).collect();
    let weights: Vec<u8> = solved.iter().flat_map(|(_, weights)| weights.iter().copied()).collect();
    let found = combine(&rests, &weights, solved.len(), columns.len());
    let found = solved.iter().zip(found);
    found.map(|(&(unknown, _), bytes)| Found { row: lacking[unknown], at: columns.start, bytes }).collect()
}

/// What the bytes that are there leave of a sum.
struct Rest {
    bytes: Vec<u8>,
    /// Rows of which something is missing, with their factors.
    lacking: Vec<(usize, u8)>,
}

impl Rest {
    fn of(rows: &[Row], sum: &Sum<'_>) -> Self {
        let length = sum.bytes.len();
        let there: Vec<Vec<u8>> = sum.rows.iter().map(|&(row, _)| rows[row].there(length)).collect();
        // The sum itself once, and each row that is there times its factor.
        let parts: Vec<&[u8]> = once(sum.bytes).chain(there.iter().map(|row| &row[..])).collect();
        let factors = sum.rows.iter().map(|&(_, number)| factor(sum.number, number));
        let factors: Vec<u8> = once(1).chain(factors).collect();
        let bytes = combine(&parts, &factors, 1, length).pop().unwrap_or_default();
        let lacking = sum.rows.iter().filter(|(row, _)| !rows[*row].missing.is_empty());
        let lacking = lacking.map(|&(row, number)| (row, factor(sum.number, number))).collect();
        Self { bytes, lacking }
    }
}

impl Row {
    /// Its first bytes, and zeros for those that are missing, or beyond its end.
    fn there(&self, length: usize) -> Vec<u8> {
        let mut there = padded(&self.bytes[..self.bytes.len().min(length)], length);
        for missing in &self.missing {
            there[missing.start.min(length)..missing.end.min(length)].fill(0);
        }
        there
    }

    fn lacks(&self, column: usize) -> bool {
        self.missing.iter().any(|range| range.contains(&column))
    }
}

/// Equations with their unknowns, and how each was made of those given.
struct System {
    unknowns: usize,
    equations: Vec<Vec<u8>>,
}

impl System {
    fn new(unknowns: usize, count: usize) -> Self {
        let equation = |index| {
            let mut equation = vec![0; unknowns + count];
            equation[unknowns + index] = 1;
            equation
        };
        Self { unknowns, equations: (0..count).map(equation).collect() }
    }

    fn add(&mut self, equation: usize, unknown: usize, factor: u8) {
        self.equations[equation][unknown] ^= factor;
    }

    /// The unknowns that are determined, each with how much of which right side it is.
    fn solve(mut self) -> Vec<(usize, Vec<u8>)> {
        let mut done = 0;
        for unknown in 0..self.unknowns {
            let pivot = (done..self.equations.len()).find(|&index| self.equations[index][unknown] != 0);
            let Some(pivot) = pivot else { continue };
            self.equations.swap(done, pivot);
            let scale = field::reciprocal(self.equations[done][unknown]);
            self.equations[done].iter_mut().for_each(|entry| *entry = field::product(*entry, scale));
            let pivot = self.equations[done].clone();
            for (index, equation) in self.equations.iter_mut().enumerate() {
                let factor = if index == done { 0 } else { equation[unknown] };
                if factor != 0 {
                    let entries = equation.iter_mut().zip(&pivot);
                    entries.for_each(|(entry, other)| *entry ^= field::product(*other, factor));
                }
            }
            done += 1;
        }
        self.equations.into_iter().filter_map(|equation| determined(equation, self.unknowns)).collect()
    }
}

/// The one unknown of an equation, if there is but one, and its weights.
fn determined(mut equation: Vec<u8>, unknowns: usize) -> Option<(usize, Vec<u8>)> {
    let mut left = (0..unknowns).filter(|&unknown| equation[unknown] != 0);
    let unknown = left.next().filter(|_| left.next().is_none())?;
    Some((unknown, equation.split_off(unknowns)))
}

/// The factor of a row in a sum.
fn factor(sum: u64, row: u64) -> u8 {
    let (x, y) = (sum % SUMS, SUMS + row % SPAN);
    field::reciprocal((x ^ y) as u8)
}

/// So many sums of rows, by factors.
fn combine(rows: &[&[u8]], factors: &[u8], count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut sums = vec![vec![0; length]; count];
    let mut outputs: Vec<&mut [u8]> = sums.iter_mut().map(|sum| &mut sum[..]).collect();
    kernel::combine(rows, factors, &mut outputs);
    sums
}

fn padded(row: &[u8], length: usize) -> Vec<u8> {
    let mut padded = Vec::with_capacity(length);
    padded.extend_from_slice(row);
    padded.resize(length, 0);
    padded
}

/// How many rows a window has at most: factors begin anew then.
pub const SPAN: u64 = 160;

/// How many sums there are of one window at most.
pub const SUMS: u64 = 96;

/// In how many manners rows can be missing: a packet's end falls into a row or two.
const MAX_SEGMENTS: usize = 64;

/// Of how many rows something can be missing, and of how many in one column.
const MAX_ROWS: usize = 64;
const MAX_LACKING: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sum's number, its bytes and its rows.
    type Made = (u64, Vec<u8>, Range<usize>);

    /// Sums over windows of so many rows, one behind every third row.
    fn sums(rows: &[Vec<u8>], window: usize) -> Vec<Made> {
        let ends = (1..=rows.len()).filter(|end| end % 3 == 0).enumerate();
        ends.map(|(number, end)| {
            let range = end.saturating_sub(window)..end;
            let of: Vec<(u64, &[u8])> = range.clone().map(|row| (row as u64, &rows[row][..])).collect();
            (number as u64, mix(number as u64, &of), range)
        })
        .collect()
    }

    fn known(rows: &[Vec<u8>], lost: impl Fn(usize) -> Option<Range<usize>>) -> Vec<Row> {
        let known = |(index, row): (usize, &Vec<u8>)| {
            let mut bytes = row.clone();
            let missing: Vec<_> = lost(index).into_iter().collect();
            missing.iter().for_each(|range| bytes[range.clone()].fill(0xEE));
            Row { bytes, missing }
        };
        rows.iter().enumerate().map(known).collect()
    }

    fn found(rows: &[Row], sums: &[Made]) -> Vec<Found> {
        let sum = |(number, bytes, range): &'_ Made| {
            let rows = range.clone().map(|row| (row, row as u64)).collect();
            (*number, bytes.clone(), rows)
        };
        let sums: Vec<(u64, Vec<u8>, Vec<_>)> = sums.iter().map(sum).collect();
        let sums =
            sums.iter().map(|(number, bytes, rows)| Sum { number: *number, bytes, rows: rows.clone() });
        solve(rows, &sums.collect::<Vec<_>>())
    }

    fn row() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 1..60)
    }

    proptest! {
        #[test]
        fn as_many_rows_as_sums_that_hold_them_are_found(
            rows in prop::collection::vec(row(), 12),
            first in 0usize..9,
            count in 1usize..5,
        ) {
            // Sums behind rows 3, 6, 9 and 12; those behind what is lost hold it.
            let lost = first..(first + count).min(12);
            let sums: Vec<_> = sums(&rows, 12).into_iter().filter(|(.., range)| range.end >= lost.end).collect();
            let known = known(&rows, |row| lost.contains(&row).then_some(0..rows[row].len()));
            let found = found(&known, &sums);
            if sums.len() >= lost.len() {
                for row in lost {
                    let of_row = found.iter().filter(|found| found.row == row);
                    let mut bytes = vec![None; rows[row].len()];
                    of_row.for_each(|found| {
                        (0..found.bytes.len()).for_each(|at| bytes[found.at + at] = Some(found.bytes[at]));
                    });
                    let whole: Option<Vec<u8>> = bytes.into_iter().collect();
                    prop_assert_eq!(whole.as_ref(), Some(&rows[row]));
                }
            }
        }

        #[test]
        fn what_is_found_is_what_was_lost(
            rows in prop::collection::vec(row(), 1..25),
            window in 1usize..20,
            losses in prop::collection::vec((0usize..25, 0usize..60, 0usize..60), 0..6),
            kept in prop::collection::vec(any::<bool>(), 8),
        ) {
            let sums = sums(&rows, window);
            let sums: Vec<_> = sums.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(sum, _)| sum).collect();
            let known = known(&rows, |index| {
                let (_, from, to) = losses.iter().find(|(lost, ..)| *lost == index)?;
                let end = rows[index].len();
                let range = (*from.min(to)).min(end)..(*from.max(to)).min(end);
                (!range.is_empty()).then_some(range)
            });
            for Found { row, at, bytes } in found(&known, &sums) {
                prop_assert!(known[row].missing.iter().any(|range| range.start <= at && at + bytes.len() <= range.end));
                prop_assert_eq!(&bytes[..], &rows[row][at..at + bytes.len()]);
            }
        }
    }

    #[test]
    fn a_packet_that_ends_inside_a_row_costs_each_column_one() {
        let rows: Vec<Vec<u8>> = (1..4u8).map(|n| vec![n; 40]).collect();
        // The end of one row and the beginning of the next.
        let known = known(&rows, |row| [None, Some(25..40), Some(0..25)][row].clone());
        let found = found(&known, &sums(&rows, 3));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|found| found.bytes == rows[found.row][..found.bytes.len()]));
    }

    #[test]
    fn what_is_missing_in_many_pieces_is_left_alone() {
        let rows = vec![vec![1; 200]];
        let mut known = known(&rows, |_| None);
        known[0].missing = (0..33).map(|n| n * 3..n * 3 + 1).collect();
        let sum = mix(0, &[(0, &rows[0])]);
        let sums = [Sum { number: 0, bytes: &sum, rows: vec![(0, 0)] }];
        assert_eq!(solve(&known, &sums), []);
        known[0].missing.truncate(32);
        assert_eq!(solve(&known, &sums).len(), 32);
    }

    #[test]
    fn so_many_rows_are_found_and_no_more() {
        for lost in [MAX_LACKING, MAX_LACKING + 1] {
            let rows: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; 5]).collect();
            let known = known(&rows, |row| (row < lost).then_some(0..5));
            let all: Vec<(u64, &[u8])> =
                rows.iter().enumerate().map(|(n, row)| (n as u64, &row[..])).collect();
            let made: Vec<Made> = (0..lost as u64).map(|number| (number, mix(number, &all), 0..40)).collect();
            let found = found(&known, &made);
            assert_eq!(found.len(), if lost > MAX_LACKING { 0 } else { lost });
            assert!(found.iter().all(|found| found.bytes == rows[found.row]));
        }
    }
}
