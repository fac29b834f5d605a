//! The code from outside: after any losses, a column with k known bytes is found, one with fewer is not.

use proptest::prelude::*;
use wayferry_fec::{Decoder, Error, Layout, MAX_RUNS, encode};

/// Bytes that look random and are always the same.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| step()).collect()
}

/// Gives the decoder the block without the bytes at which `lost` is set.
fn feed(decoder: &mut Decoder, block: &[u8], lost: &[bool]) {
    let mut at = 0;
    for run in lost.chunk_by(|left, right| left == right) {
        if !run[0] {
            decoder.source(at, &block[at..at + run.len()]).unwrap();
        }
        at += run.len();
    }
}

/// The lost bytes that must be recovered, given which bytes of each repair row are known.
fn recoverable(layout: Layout, lost: &[bool], repair: &[Vec<bool>]) -> Vec<bool> {
    let column = |at: usize| at % layout.row();
    let missing = |at: usize| (column(at)..lost.len()).step_by(layout.row()).filter(|&at| lost[at]).count();
    let known = |at: usize| repair.iter().filter(|row| row[column(at)]).count();
    (0..lost.len()).map(|at| lost[at] && missing(at) <= known(at)).collect()
}

/// Checks what was recovered against the truth, and that it is sorted and in as few pieces as can be.
fn check(found: &[(usize, Vec<u8>)], block: &[u8], expected: &[bool]) {
    let mut told = vec![false; block.len()];
    for (offset, bytes) in found {
        assert_eq!(bytes[..], block[*offset..offset + bytes.len()]);
        told[*offset..offset + bytes.len()].fill(true);
    }
    assert_eq!(told, expected);
    assert!(found.windows(2).all(|pair| pair[0].0 + pair[0].1.len() < pair[1].0));
}

// Computed by hand-written arithmetic outside this crate: shifts and additions modulo 0x11B, m(j, i) by trial.
#[test]
fn known_answer() {
    let block: Vec<u8> = (1..=11).collect();
    let layout = Layout::new(block.len(), 4).unwrap();
    let repair = encode(layout, &[&block], 0..4);
    assert_eq!(repair, KNOWN);
}

#[test]
fn every_pair_of_lost_rows_is_found_by_every_pair_of_repair_rows() {
    for length in [5 * 9, 5 * 9 - 4] {
        let layout = Layout::new(length, 9).unwrap();
        let block = noise(length, 1);
        let repair = encode(layout, &[&block], 0..4);
        for rows in 0..1 << 5_u8 {
            for kept in 0..1 << 4_u8 {
                let lost: Vec<bool> = (0..length).map(|at| rows >> (at / 9) & 1 == 1).collect();
                let mut decoder = Decoder::new(layout);
                for row in (0..4).filter(|row| kept >> row & 1 == 1) {
                    decoder.repair(row, 0, &repair[usize::from(row)]).unwrap();
                }
                feed(&mut decoder, &block, &lost);
                let known: Vec<Vec<bool>> = (0..4).map(|row| vec![kept >> row & 1 == 1; 9]).collect();
                check(&decoder.recover(), &block, &recoverable(layout, &lost, &known));
            }
        }
    }
}

#[test]
fn the_largest_block_survives_the_most_losses() {
    for (rows, repairs) in [(254, 1), (1, 254), (128, 127), (20, 235)] {
        let layout = Layout::new(rows * 67 - 3, 67).unwrap();
        let block = noise(layout.length(), 2);
        let repair = encode(layout, &[&block], 0..255);
        assert_eq!(repair.len(), repairs);
        let mut decoder = Decoder::new(layout);
        let lost = rows.min(repairs) * 67;
        decoder.source((lost).min(block.len()), &block[lost.min(block.len())..]).unwrap();
        for row in (0..repairs).rev() {
            assert!(decoder.repair(row as u8, 0, &repair[row]).is_ok());
        }
        let expected: Vec<bool> = (0..block.len()).map(|at| at < lost).collect();
        check(&decoder.recover(), &block, &expected);
        assert_eq!(decoder.bytes(), Some(&block[..]));
    }
}

#[test]
fn a_row_made_later_alone_is_the_same() {
    let block = noise(1000, 3);
    let layout = Layout::new(1000, 64).unwrap();
    let all = encode(layout, &[&block], 0..9);
    for row in 0..9 {
        assert_eq!(encode(layout, &[&block], row..row + 1), [all[usize::from(row)].clone()]);
    }
    assert_eq!(encode(layout, &[&block], 255..255).len(), 0);
    let sum: Vec<u8> =
        (0..64).map(|column| (column..1000).step_by(64).fold(0, |sum, at| sum ^ block[at])).collect();
    assert_eq!(all[0], sum);
}

#[test]
fn hostile_input_is_refused_and_changes_nothing() {
    let block = noise(100, 4);
    let layout = Layout::new(100, 40).unwrap();
    let repair = encode(layout, &[&block], 0..2);
    let mut decoder = Decoder::new(layout);
    for (offset, length) in [(100, 1), (0, 101), (usize::MAX, 1), (usize::MAX, 100)] {
        let refused = Err(Error::PastEnd { offset, length, end: 100 });
        assert_eq!(decoder.source(offset, &[0; 101][..length]), refused);
    }
    assert_eq!(decoder.repair(0, 30, &[0; 11]), Err(Error::PastEnd { offset: 30, length: 11, end: 40 }));
    assert_eq!(decoder.repair(252, 0, &[0; 40]), Err(Error::NoSuchRow { row: 252, limit: 252 }));
    decoder.source(100, &[]).unwrap();
    decoder.repair(251, 40, &[]).unwrap();
    assert!(decoder.recover().is_empty());
    decoder.source(40, &block[40..]).unwrap();
    decoder.repair(1, 0, &repair[1]).unwrap();
    assert_eq!(decoder.recover(), [(0, block[..40].to_vec())]);
}

#[test]
fn bytes_in_too_many_runs_are_refused() {
    let layout = Layout::new(4 * MAX_RUNS, 4 * MAX_RUNS).unwrap();
    let mut decoder = Decoder::new(layout);
    for run in 0..MAX_RUNS / 2 {
        decoder.source(2 * run, &[1]).unwrap();
        decoder.repair(0, 2 * run, &[1]).unwrap();
    }
    let cost = decoder.cost();
    assert_eq!(decoder.source(3 * MAX_RUNS, &[1]), Err(Error::TooManyRuns));
    assert_eq!(decoder.repair(0, 3 * MAX_RUNS, &[1]), Err(Error::TooManyRuns));
    assert_eq!(decoder.repair(7, 0, &[1]), Err(Error::TooManyRuns));
    assert_eq!(decoder.cost(), cost);
    decoder.source(0, &[1; 3]).unwrap();
    decoder.source(3 * MAX_RUNS, &[1]).unwrap();
}

#[test]
fn memory_is_that_of_what_came() {
    let layout = Layout::new(100_000, 1200).unwrap();
    let mut decoder = Decoder::new(layout);
    let before = decoder.cost();
    assert!((100_000..102_000).contains(&before));
    decoder.repair(5, 17, &[9; 3]).unwrap();
    assert!((1200..1400).contains(&(decoder.cost() - before)));
}

/// One piece on its way: `None` is the source, else the repair row; the range wraps into what there is.
type Piece = (Option<u8>, usize, usize);

proptest! {
    #[test]
    fn encoding_does_not_see_how_the_source_is_cut(length in 1usize..400, row in 20usize..60, cuts in prop::collection::vec(0usize..400, 0..9)) {
        let block = noise(length, 5);
        let layout = Layout::new(length, row).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(length)).chain([0, length]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &block[cut[0]..cut[1]]).collect();
        prop_assert_eq!(encode(layout, &pieces, 0..6), encode(layout, &[&block], 0..6));
    }

    #[test]
    fn any_pieces_in_any_order(
        length in 1usize..700,
        row in 1usize..90,
        seed in any::<u64>(),
        pieces in prop::collection::vec((prop::option::of(0u8..6), 0usize..700, 1usize..250), 0..24),
    ) {
        let row = row.max(length.div_ceil(200));
        any_pieces(Layout::new(length, row).unwrap(), seed, &pieces);
    }

    #[test]
    fn losses_that_are_not_rows(
        seed in any::<u64>(),
        losses in prop::collection::vec((0usize..20_000, 1usize..700), 1..7),
        short in prop::collection::vec(0usize..300, 5),
    ) {
        let layout = Layout::new(20_000, 601).unwrap();
        let block = noise(20_000, seed);
        let mut lost = vec![false; 20_000];
        for (start, length) in losses {
            lost[start..(start + length).min(20_000)].fill(true);
        }
        let repair = encode(layout, &[&block], 0..5);
        let mut decoder = Decoder::new(layout);
        feed(&mut decoder, &block, &lost);
        let mut known = Vec::new();
        for (row, &short) in short.iter().enumerate() {
            decoder.repair(row as u8, short, &repair[row][short..]).unwrap();
            known.push((0..601).map(|column| column >= short).collect());
        }
        check(&decoder.recover(), &block, &recoverable(layout, &lost, &known));
        prop_assert!(decoder.recover().is_empty());
    }
}

/// Feeds pieces one after the other, with duplicates and overlaps, and compares with the truth after each.
fn any_pieces(layout: Layout, seed: u64, pieces: &[Piece]) {
    let block = noise(layout.length(), seed);
    let repair = encode(layout, &[&block], 0..6);
    let mut decoder = Decoder::new(layout);
    let mut lost = vec![true; block.len()];
    let mut known = vec![vec![false; layout.row()]; 6];
    for &(row, start, length) in pieces {
        match row {
            None => {
                let start = start % block.len();
                let end = (start + length).min(block.len());
                decoder.source(start, &block[start..end]).unwrap();
                lost[start..end].fill(false);
            }
            Some(row) => {
                let start = start % layout.row();
                let end = (start + length).min(layout.row());
                decoder.repair(row, start, &repair[usize::from(row)][start..end]).unwrap();
                known[usize::from(row)][start..end].fill(true);
            }
        }
        let expected = recoverable(layout, &lost, &known);
        check(&decoder.recover(), &block, &expected);
        lost.iter_mut().zip(expected).for_each(|(lost, found)| *lost &= !found);
        assert_eq!(decoder.is_complete(), !lost.contains(&true));
        assert_eq!(decoder.bytes(), decoder.is_complete().then_some(&block[..]));
    }
}

const KNOWN: [[u8; 4]; 4] =
    [[0x0D, 0x0E, 0x0F, 0x0C], [0xDF, 0x77, 0xE6, 0xF3], [0x69, 0xE6, 0x6A, 0xB8], [0x56, 0xAD, 0x0D, 0x4C]];
