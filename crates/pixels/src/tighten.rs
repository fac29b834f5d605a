//! From changed rows to few tight rectangles.
//!
//! Changes are collected in cells of [`CELL`] × [`CELL`] pixels: which rows of a cell have changed, and which bits
//! of its columns. The bounding boxes of what changed are joined with their neighbours' when that adds few
//! unchanged pixels. It neither reads buffers nor keeps pixels.
//!
//! The one invariant: every changed pixel that was reported is in the resulting region, and nothing
//! outside the damage is.

use crate::geometry::Rect;
use crate::region::Region;

/// Collects changed pixels row by row, one damage rectangle after the other.
pub(crate) struct Tightener {
    /// Bytes per pixel.
    pixel: usize,
    /// Changes of the current band of cells, by column of cells.
    cells: Vec<Cell>,
    /// Columns of cells used in the current band.
    first: usize,
    last: usize,
    /// Index of the current band: its first row divided by [`CELL`].
    band: u32,
    /// Boxes that ended in the previous band, by their column.
    open: Vec<Rect>,
    done: Vec<Rect>,
}

/// What has changed in a cell.
#[derive(Clone)]
struct Cell {
    /// From the first row that has changed to beyond the last one; equal when none has.
    top: u32,
    bottom: u32,
    /// The bits that have changed in any row, from the cell's own left edge: the box comes of them once, instead of
    /// being looked for in every row. Pixels of two bytes need half of it.
    bits: [u8; CELL_BYTES],
}

impl Tightener {
    /// For a surface of this width with so many bytes per pixel: 2 or 4.
    pub(crate) fn new(width: u32, pixel: usize) -> Self {
        Self {
            pixel,
            cells: vec![Cell::NONE; width.div_ceil(CELL) as usize],
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

    /// Pixels of row `y` from column `x` on, before and after; rows come from top to bottom. Says whether any has
    /// changed.
    pub(crate) fn row(&mut self, y: u32, x: u32, old: &[u8], new: &[u8]) -> bool {
        let band = y / CELL;
        if band != self.band {
            self.close_band();
            if band != self.band + 1 {
                self.done.append(&mut self.open);
            }
            self.band = band;
        }
        match self.pixel {
            2 => self.pieces::<{ CELL_BYTES / 2 }>(y, x as usize * 2, old, new),
            _ => self.pieces::<CELL_BYTES>(y, x as usize * 4, old, new),
        }
    }

    /// A row from byte `start` on, in pieces of one cell each: of `LENGTH` bytes, except for the first and the last.
    fn pieces<const LENGTH: usize>(&mut self, y: u32, start: usize, old: &[u8], new: &[u8]) -> bool {
        let head = (start.next_multiple_of(LENGTH) - start).min(old.len());
        let ((old_head, old), (new_head, new)) = (old.split_at(head), new.split_at(head));
        let mut changed = self.piece(y, start / LENGTH, start % LENGTH, old_head, new_head);
        let first = (start + head) / LENGTH;
        let ((old, old_tail), (new, new_tail)) = (old.as_chunks::<LENGTH>(), new.as_chunks::<LENGTH>());
        for (column, (old, new)) in old.iter().zip(new).enumerate() {
            if differ(old, new) {
                changed = true;
                self.mark(first + column, y);
                note(&mut self.cells[first + column].bits, old, new);
            }
        }
        changed | self.piece(y, first + old.len(), 0, old_tail, new_tail)
    }

    /// Some bytes of a cell, from its byte `start` on.
    fn piece(&mut self, y: u32, column: usize, start: usize, old: &[u8], new: &[u8]) -> bool {
        // a row of whole cells has nothing before and behind them
        let changed = !old.is_empty() && old != new;
        if changed {
            self.mark(column, y);
            note(&mut self.cells[column].bits[start..], old, new);
        }
        changed
    }

    /// Everything that was reported.
    pub(crate) fn into_region(self) -> Region {
        Region::around(&self.done)
    }

    /// Row `y` of a cell has changed.
    fn mark(&mut self, column: usize, y: u32) {
        let cell = &mut self.cells[column];
        if cell.bottom == 0 {
            cell.top = y;
            self.first = self.first.min(column);
            self.last = self.last.max(column);
        }
        cell.bottom = y + 1;
    }

    /// Joins the cells of the band with each other and with the boxes of the band above.
    fn close_band(&mut self) {
        if self.first > self.last {
            self.done.append(&mut self.open);
            return;
        }
        let mut row: Vec<Rect> = Vec::new();
        let (first, pixel) = (self.first, self.pixel);
        let cells = self.cells[first..=self.last].iter_mut().enumerate();
        for cell in cells.filter_map(|(column, cell)| cell.take((first + column) as u32 * CELL, pixel)) {
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

impl Cell {
    const NONE: Self = Self { top: 0, bottom: 0, bits: [0; CELL_BYTES] };

    /// The box around what has changed, if anything has, in a cell whose left edge is `x`; then nothing has.
    fn take(&mut self, x: u32, pixel: usize) -> Option<Rect> {
        let first = self.bits.iter().position(|bits| *bits != 0)?;
        let last = self.bits.iter().rposition(|bits| *bits != 0)?;
        let (left, right) = (x + (first / pixel) as u32, x + (last / pixel) as u32 + 1);
        let Self { top, bottom, .. } = std::mem::replace(self, Self::NONE);
        Some(Rect::between(left, top, right, bottom))
    }
}

/// Whether two pieces differ: without a call, which would take longer than the comparison.
fn differ<const LENGTH: usize>(old: &[u8; LENGTH], new: &[u8; LENGTH]) -> bool {
    let words = old.as_chunks::<8>().0.iter().zip(new.as_chunks::<8>().0);
    words.fold(0, |any, (old, new)| any | u64::from_ne_bytes(*old) ^ u64::from_ne_bytes(*new)) != 0
}

/// Adds the bits that differ.
fn note(bits: &mut [u8], old: &[u8], new: &[u8]) {
    for (bits, (old, new)) in bits.iter_mut().zip(old.iter().zip(new)) {
        *bits |= old ^ new;
    }
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

/// Most bytes of a row of a cell.
const CELL_BYTES: usize = CELL as usize * 4;

/// Unchanged pixels that are always worth sending rather than a second rectangle.
const SLACK: u64 = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rows of a surface, what is damaged, and which bytes of pixels change.
    #[derive(Clone, Debug)]
    struct Changes {
        pixel: usize,
        width: u32,
        damage: Rect,
        /// Column and row inside the damage, byte of the pixel.
        bytes: Vec<(u32, u32, usize)>,
    }

    fn changes() -> impl Strategy<Value = Changes> {
        let span = |most: u32| (0..most).prop_flat_map(move |start| (Just(start), 1..=most - start));
        (prop_oneof![Just(2usize), Just(4)], 1..150u32)
            .prop_flat_map(move |(pixel, width)| (Just(pixel), Just(width), span(width), span(70)))
            .prop_flat_map(|(pixel, width, (x, columns), (y, rows))| {
                let bytes = prop::collection::vec((0..columns, 0..rows, 0..pixel), 0..40);
                let damage = Rect::new(x, y, columns, rows);
                bytes.prop_map(move |bytes| Changes { pixel, width, damage, bytes })
            })
    }

    proptest! {
        #[test]
        fn boxes_are_around_what_changed_and_no_larger(changes in changes()) {
            let Changes { pixel, width, damage, bytes } = changes;
            let mut tightener = Tightener::new(width, pixel);
            tightener.begin(damage);
            let old = vec![7; damage.width as usize * pixel];
            for y in 0..damage.height {
                let mut new = old.clone();
                let here = bytes.iter().filter(|(_, row, _)| *row == y);
                here.for_each(|(x, _, byte)| new[*x as usize * pixel + byte] |= 0x80);
                let changed = tightener.row(damage.y + y, damage.x, &old, &new);
                prop_assert_eq!(changed, old != new);
            }
            tightener.end();
            let pixels: Vec<Rect> =
                bytes.iter().map(|(x, y, _)| Rect::new(damage.x + x, damage.y + y, 1, 1)).collect();
            for changed in &pixels {
                prop_assert!(tightener.done.iter().any(|rect| rect.contains(*changed)), "{changed:?}");
            }
            for rect in &tightener.done {
                let inside = pixels.iter().copied().filter(|changed| rect.contains(*changed));
                prop_assert_eq!(inside.reduce(Rect::bounding), Some(*rect));
            }
        }
    }
}
