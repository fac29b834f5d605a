//! From changed rows to few tight rectangles.
//!
//! Changes are collected in cells of [`CELL`] × [`CELL`] pixels, each with the bounding box of what
//! changed in it; neighbouring boxes are joined when that adds few unchanged pixels. It neither
//! reads buffers nor keeps pixels.
//!
//! The one invariant: every changed pixel that was reported is in the resulting region, and nothing
//! outside the damage is.

use crate::geometry::Rect;
use crate::region::Region;

/// Collects changed pixels row by row, one damage rectangle after the other.
pub(crate) struct Tightener {
    /// Changes of the current band of cells, by column of cells.
    cells: Vec<Option<Rect>>,
    /// Columns of cells used in the current band.
    first: usize,
    last: usize,
    /// Index of the current band: its first row divided by [`CELL`].
    band: u32,
    /// Boxes that ended in the previous band, by their column.
    open: Vec<Rect>,
    done: Vec<Rect>,
}

impl Tightener {
    /// For a surface of this width.
    pub(crate) fn new(width: u32) -> Self {
        Self {
            cells: vec![None; width.div_ceil(CELL) as usize],
            first: usize::MAX,
            last: 0,
            band: 0,
            open: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Rows of this rectangle follow.
    pub(crate) fn begin(&mut self, damage: Rect) {
        self.band = damage.y / CELL;
    }

    /// The rectangle is through.
    pub(crate) fn end(&mut self) {
        self.close_band();
        self.done.append(&mut self.open);
    }

    /// Pixels of row `y` from column `x` on, before and after; rows come from top to bottom.
    pub(crate) fn row(&mut self, y: u32, x: u32, old: &[u8], new: &[u8], pixel: usize) {
        let band = y / CELL;
        if band != self.band {
            self.close_band();
            if band != self.band + 1 {
                self.done.append(&mut self.open);
            }
            self.band = band;
        }
        let (left, right) = (x, x + (new.len() / pixel) as u32);
        let mut x = left;
        while x < right {
            let end = ((x / CELL + 1) * CELL).min(right);
            let bytes = (x - left) as usize * pixel..(end - left) as usize * pixel;
            let (old, new) = (&old[bytes.clone()], &new[bytes]);
            let column = (x / CELL) as usize;
            // most rows of a cell that changes add nothing but their height
            let whole = self.cells[column].is_some_and(|cell| cell.x == x && cell.right() == end);
            if whole {
                if old != new {
                    self.mark(column, Rect::between(x, y, end, y + 1));
                }
            } else if let Some((first, last)) = differing(old, new) {
                let changed =
                    Rect::between(x + (first / pixel) as u32, y, x + (last / pixel) as u32 + 1, y + 1);
                self.mark(column, changed);
            }
            x = end;
        }
    }

    /// Everything that was reported.
    pub(crate) fn into_region(self) -> Region {
        Region::around(&self.done)
    }

    fn mark(&mut self, column: usize, changed: Rect) {
        let cell = &mut self.cells[column];
        *cell = Some(cell.map_or(changed, |known| known.bounding(changed)));
        self.first = self.first.min(column);
        self.last = self.last.max(column);
    }

    /// Joins the cells of the band with each other and with the boxes of the band above.
    fn close_band(&mut self) {
        if self.first > self.last {
            self.done.append(&mut self.open);
            return;
        }
        let mut row: Vec<Rect> = Vec::new();
        for cell in self.cells[self.first..=self.last].iter_mut().filter_map(Option::take) {
            match row.last_mut() {
                Some(left) if worth_joining(*left, cell) => *left = left.bounding(cell),
                _ => row.push(cell),
            }
        }
        (self.first, self.last) = (usize::MAX, 0);

        let mut above = std::mem::take(&mut self.open);
        let mut from = 0;
        for rect in &mut row {
            while above.get(from).is_some_and(|candidate| candidate.right() <= rect.x) {
                from += 1;
            }
            let overlapping = above[from..].iter_mut().take_while(|candidate| candidate.x < rect.right());
            for candidate in overlapping.filter(|candidate| !candidate.is_empty()) {
                if worth_joining(*candidate, *rect) {
                    *rect = candidate.bounding(*rect);
                    *candidate = Rect { width: 0, ..*candidate };
                    break;
                }
            }
        }
        self.done.extend(above.into_iter().filter(|rect| !rect.is_empty()));
        self.open = row;
    }
}

/// Positions of the first and the last byte that differ.
fn differing(old: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    if old == new {
        return None;
    }
    let differs = |(a, b): (&u8, &u8)| a != b;
    let first = old.iter().zip(new).position(differs)?;
    let last = old.iter().zip(new).rposition(differs)?;
    Some((first, last))
}

/// Whether one rectangle around both costs less than both: a rectangle costs some bytes of header
/// and breaks the compressor's runs, an unchanged pixel costs a byte or so.
fn worth_joining(a: Rect, b: Rect) -> bool {
    let apart = a.area() + b.area();
    let joined = a.bounding(b).area();
    joined.saturating_sub(apart) <= SLACK + apart / 8
}

/// Side of a cell, in pixels.
const CELL: u32 = 16;

/// Unchanged pixels that are always worth sending rather than a second rectangle.
const SLACK: u64 = 64;
