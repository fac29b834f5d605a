//! Finds what has only moved up or down.
//!
//! Works in bands one tile wide, since a page scrolls beside a sidebar that does not. In each band rows
//! are hashed, before and after; rows that were there once and are elsewhere now vote for a distance, and
//! where the rows of a band agree with one of the few distances that win, a copy is made of them. Bands
//! that agree share a copy. Nothing is looked for sideways or across bands.
//!
//! Hashes only choose. The one invariant: a copy is a proposal, and a caller that uses it compares what it
//! gives with what is wanted; copies do not overlap, and their sources lie inside the surface.

use xxhash_rust::xxh3::xxh3_64;

use crate::chunk::Copy;
use crate::geometry::{Rect, Size};
use crate::hashes::Hashes;
use crate::tiles::{self, Past, TILE};

/// Looks for copies between the past, of which `hashes` are, and the present, of which they are then.
pub(crate) fn find(past: Past<'_>, hashes: &mut Hashes) -> Option<(Vec<Copy>, Shifts)> {
    if past.tiles.count() < LEAST_TILES {
        hashes.clear();
        return None;
    }
    let size = past.content.size();
    let columns: Vec<u32> = (0..tiles::columns(size))
        .filter(|column| (0..tiles::rows(size)).any(|row| past.tiles.kept(*column, row) != 0))
        .collect();
    let mut bands = Vec::new();
    if columns.len() >= MANY_BANDS {
        bands = hashed(past, hashes, columns.iter().copied().step_by(SAMPLED));
    }
    let sampled: Vec<u32> = bands.iter().map(|band| band.column).collect();
    let others = columns.into_iter().filter(|column| sampled.binary_search(column).is_err());
    if !bands.is_empty() && vote(&bands, size.height, LEAST_VOTES / SAMPLED as u32).is_empty() {
        others.for_each(|column| hashes.forget(column));
        return None;
    }
    bands.extend(hashed(past, hashes, others));
    bands.sort_unstable_by_key(|band| band.column);
    let distances = vote(&bands, size.height, LEAST_VOTES);
    if distances.is_empty() {
        return None;
    }
    let mut shifts = Shifts::new(size);
    let mut joiner = Joiner { past, open: Vec::new(), done: Vec::new() };
    for band in &bands {
        let mut runs = Vec::new();
        for &distance in &distances {
            band.runs(distance, &mut shifts, &mut runs);
        }
        joiner.band(band.column, runs, &mut shifts);
    }
    let copies = joiner.finish();
    (!copies.is_empty()).then_some((copies, shifts))
}

/// Where the rows of each band come from.
pub(crate) struct Shifts {
    height: u32,
    rows_of_tiles: u32,
    /// By column of tiles, then by row: by how many rows it has moved down. Fits: sides are below 2¹⁵.
    moved: Vec<i16>,
    /// By column, then by row of tiles: whether anything has moved there.
    reached: Vec<bool>,
}

impl Shifts {
    fn new(size: Size) -> Self {
        let (columns, rows_of_tiles) = (tiles::columns(size), tiles::rows(size));
        Self {
            height: size.height,
            rows_of_tiles,
            moved: vec![0; columns as usize * size.height as usize],
            reached: vec![false; (columns * rows_of_tiles) as usize],
        }
    }

    /// The row that a row comes from.
    pub(crate) fn source(&self, column: u32, y: u32) -> u32 {
        y.wrapping_add_signed(-i32::from(self.moved[self.index(column, y)]))
    }

    /// Whether something has moved into a tile.
    pub(crate) fn reach(&self, column: u32, row: u32) -> bool {
        self.reached[(column * self.rows_of_tiles + row) as usize]
    }

    fn is_free(&self, column: u32, y: u32) -> bool {
        self.moved[self.index(column, y)] == 0
    }

    fn set(&mut self, column: u32, run: Run) {
        for y in run.top..run.bottom {
            let index = self.index(column, y);
            self.moved[index] = run.distance as i16;
            self.reached[(column * self.rows_of_tiles + y / TILE) as usize] = true;
        }
    }

    fn index(&self, column: u32, y: u32) -> usize {
        column as usize * self.height as usize + y as usize
    }
}

/// Rows that have moved down by the same distance.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    top: u32,
    bottom: u32,
    distance: i32,
}

/// The rows of a column of tiles: those between its first and its last tile that has changed, and some around
/// them, which may have moved in.
struct Band {
    column: u32,
    top: u32,
    bottom: u32,
    /// Hashes of the rows.
    old: Vec<u64>,
    new: Vec<u64>,
}

/// Hashes the rows of columns of tiles. Goes from tile to tile of a row of tiles, and then to the next row of them: a
/// whole column of the surface lies in more pages than a processor has at hand.
fn hashed(past: Past<'_>, hashes: &mut Hashes, columns: impl Iterator<Item = u32>) -> Vec<Band> {
    let size = past.content.size();
    let mut bands: Vec<Band> = columns.map(|column| Band::new(past, column)).collect();
    for row in 0..tiles::rows(size) {
        for band in &mut bands {
            let rows = (row * TILE).max(band.top)..((row + 1) * TILE).min(band.bottom);
            rows.for_each(|y| band.row(past, hashes, y));
        }
    }
    for band in &bands {
        hashes.set(size, band.column, band.top, &band.new);
    }
    bands
}

impl Band {
    /// Without any hashes yet.
    fn new(past: Past<'_>, column: u32) -> Self {
        let size = past.content.size();
        let changed = |row: &u32| past.tiles.kept(column, *row) != 0;
        let rows = 0..tiles::rows(size);
        let first = rows.clone().find(changed).unwrap_or(0).saturating_sub(AROUND);
        let last = rows.clone().rfind(changed).unwrap_or(0).saturating_add(AROUND).min(rows.end - 1);
        let (top, bottom) = (first * TILE, tiles::tile(size, column, last).bottom());
        let hashes = || Vec::with_capacity((bottom - top) as usize);
        Self { column, top, bottom, old: hashes(), new: hashes() }
    }

    /// Hashes row `y`, the one below the last.
    fn row(&mut self, past: Past<'_>, hashes: &Hashes, y: u32) {
        let old = hashes.get(self.column, y).unwrap_or_else(|| hash(past.piece(self.column, y)));
        let changed = past.changed(self.column, y);
        let new = if changed { hash(tiles::piece(past.content, self.column, y)) } else { old };
        self.old.push(old);
        self.new.push(new);
    }

    fn changed(&self, index: usize) -> bool {
        self.old[index] != self.new[index]
    }

    fn matches(&self, index: usize, distance: i32) -> bool {
        let source = index.checked_add_signed(-(distance as isize));
        source.and_then(|source| self.old.get(source)) == Some(&self.new[index])
    }

    /// Adds the runs of free rows that have moved by `distance`.
    fn runs(&self, distance: i32, shifts: &mut Shifts, runs: &mut Vec<Run>) {
        let free = |shifts: &Shifts, index: usize| shifts.is_free(self.column, self.top + index as u32);
        let mut index = 0;
        while index < self.new.len() && runs.len() < MOST_RUNS {
            if !(free(shifts, index) && self.changed(index) && self.matches(index, distance)) {
                index += 1;
                continue;
            }
            let (start, mut end, mut useful) = (index, index + 1, 0);
            while index < self.new.len() && free(shifts, index) {
                let changed = self.changed(index);
                if self.matches(index, distance) {
                    // it ends with a changed row
                    if changed {
                        (end, useful) = (index + 1, useful + 1);
                    }
                } else if !changed || index - end >= BRIDGE || !self.has_source(index, distance) {
                    break;
                }
                index += 1;
            }
            if useful >= LEAST_ROWS {
                let run = Run { top: self.top + start as u32, bottom: self.top + end as u32, distance };
                shifts.set(self.column, run);
                runs.push(run);
            }
        }
    }

    fn has_source(&self, index: usize, distance: i32) -> bool {
        index.checked_add_signed(-(distance as isize)).is_some_and(|source| source < self.old.len())
    }
}

/// The distances that most rows have moved by, the most frequent first.
fn vote(bands: &[Band], height: u32, least: u32) -> Vec<i32> {
    let mut votes = vec![0u32; 2 * height as usize];
    let mut seen = Seen::default();
    for band in bands {
        seen.start(&band.old);
        for index in (0..band.new.len()).filter(|index| band.changed(*index)) {
            if let Some(source) = seen.once(&band.old, band.new[index]) {
                votes[height as usize + index - source] += 1;
            }
        }
    }
    let mut distances = Vec::new();
    while distances.len() < MOST_DISTANCES {
        let most = (0..votes.len()).max_by_key(|index| (votes[*index], std::cmp::Reverse(*index)));
        let Some(most) = most.filter(|most| votes[*most] >= least) else { break };
        votes[most] = 0;
        distances.push(most as i32 - height as i32);
    }
    distances
}

/// Hashes a row of a tile. Long input costs XXH3 a slow start, which two halves of a row do without.
pub(crate) fn hash(row: &[u8]) -> u64 {
    match row.split_at_checked(128) {
        Some((left, right)) if right.len() <= 128 => {
            xxh3_64(left).wrapping_mul(3) ^ xxh3_64(right).rotate_left(17)
        }
        _ => xxh3_64(row),
    }
}

/// Which hashes a band has once: a hash table of their places.
#[derive(Default)]
struct Seen {
    /// Place + 1, or 0; the uppermost bit when the hash is there twice.
    slots: Vec<u32>,
}

impl Seen {
    fn start(&mut self, hashes: &[u64]) {
        self.slots.clear();
        self.slots.resize((hashes.len() * 2).next_power_of_two(), 0);
        for (index, hash) in hashes.iter().enumerate() {
            let Some(slot) = self.slot(hashes, *hash) else { continue };
            self.slots[slot] =
                if self.slots[slot] == 0 { index as u32 + 1 } else { self.slots[slot] | TWICE };
        }
    }

    /// The place of a hash that is there once.
    fn once(&self, hashes: &[u64], hash: u64) -> Option<usize> {
        let place = self.slots[self.slot(hashes, hash)?];
        (place != 0 && place & TWICE == 0).then(|| place as usize - 1)
    }

    /// The slot of a hash, or the free one where it belongs; `None` where too many are in the way, which a program
    /// may bring about that knows the hash.
    fn slot(&self, hashes: &[u64], hash: u64) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let slots = (0..MOST_PROBES).map(|probe| (hash as usize).wrapping_add(probe) & mask);
        slots.into_iter().find(|slot| match self.slots[*slot] & !TWICE {
            0 => true,
            place => hashes[place as usize - 1] == hash,
        })
    }
}

/// Joins equal runs of neighbouring bands to wide copies.
struct Joiner<'a> {
    past: Past<'a>,
    /// Copies that end at the previous band: first and last column of tiles.
    open: Vec<(u32, u32, Run)>,
    done: Vec<(u32, u32, Run)>,
}

impl Joiner<'_> {
    fn band(&mut self, column: u32, runs: Vec<Run>, shifts: &mut Shifts) {
        let mut next = Vec::new();
        for run in runs {
            let joined = (0..self.open.len()).find_map(|index| {
                let (first, last, left) = self.open[index];
                let both = self.common(first, (last, left), (column, run), shifts)?;
                Some((index, first, both))
            });
            match joined {
                Some((index, first, both)) => {
                    let (_, last, left) = self.open.swap_remove(index);
                    // the columns have their runs already; most are as long as both together
                    if left != both {
                        (first..=last).for_each(|column| shifts.set(column, both));
                    }
                    if run != both {
                        shifts.set(column, both);
                    }
                    next.push((first, column, both));
                }
                None => next.push((column, column, run)),
            }
        }
        self.done.append(&mut self.open);
        self.open = next;
    }

    /// One run for the columns of a copy and for the band beside it, if there is one that is right for all.
    fn common(
        &self,
        first: u32,
        (last, left): (u32, Run),
        (column, right): (u32, Run),
        shifts: &Shifts,
    ) -> Option<Run> {
        let beside = last + 1 == column && left.distance == right.distance;
        if !beside || left.top >= right.bottom || right.top >= left.bottom {
            return None;
        }
        let both = Run { top: left.top.min(right.top), bottom: left.bottom.max(right.bottom), ..left };
        let fits = |column: u32, run: Run| {
            (both.top..run.top).chain(run.bottom..both.bottom).all(|y| self.moved(column, y, both, shifts))
        };
        ((first..=last).all(|column| fits(column, left)) && fits(column, right)).then_some(both)
    }

    /// Whether a row that belongs to no run would be right in this one.
    fn moved(&self, column: u32, y: u32, run: Run, shifts: &Shifts) -> bool {
        let source =
            y.checked_add_signed(-run.distance).filter(|source| *source < self.past.content.size().height);
        shifts.is_free(column, y)
            && source.is_some_and(|source| {
                self.past.piece(column, source) == tiles::piece(self.past.content, column, y)
            })
    }

    fn finish(mut self) -> Vec<Copy> {
        self.done.append(&mut self.open);
        self.done.sort_unstable_by_key(|(first, _, run)| (run.top, *first));
        let size = self.past.content.size();
        let copy = |(first, last, run): (u32, u32, Run)| {
            let right = tiles::tile(size, last, 0).right();
            let rect = Rect::between(first * TILE, run.top, right, run.bottom);
            Copy { rect, x: rect.x, y: rect.y.wrapping_add_signed(-run.distance) }
        };
        self.done.into_iter().map(copy).collect()
    }
}

/// Changed tiles below which nothing is looked for.
const LEAST_TILES: usize = 12;

/// Tiles above and below those that have changed from which rows may have come.
const AROUND: u32 = 4;

/// Bands from which on a sample of every so many decides whether the others are looked at.
const MANY_BANDS: usize = 8;
const SAMPLED: usize = 4;

/// Distances that are tried.
const MOST_DISTANCES: usize = 3;

/// Rows that must agree on a distance, of all bands together.
const LEAST_VOTES: u32 = 24;

/// Changed rows that make a copy worth its bytes.
const LEAST_ROWS: u32 = 8;

/// Copies of a band.
const MOST_RUNS: usize = 64;

/// Slots of a hash table that are looked at for one hash.
const MOST_PROBES: usize = 64;

/// Rows inside a copy that may differ: a cursor, say. They are sent on top of it.
const BRIDGE: usize = 32;

const TWICE: u32 = 1 << 31;
