//! Cells of letters as pixels, and pixels read as cells again.
//!
//! Invariant: each glyph has a figure of its own, in rows that no line below a letter reaches.

use std::collections::BTreeMap;

/// Sides of a cell, and cells of the screen.
pub(crate) const CELL: (usize, usize) = (8, 16);
pub(crate) const COLUMNS: usize = 24;
pub(crate) const LINES: usize = 3;

/// Column and line.
pub(crate) type At = (usize, usize);

const PAPER: [u8; 4] = [20, 20, 20, 255];
const INK: [u8; 4] = [230, 230, 230, 255];

/// What a terminal shows.
pub(crate) struct Screen {
    cells: [[u32; COLUMNS]; LINES],
    at: At,
    pub(crate) has_caret: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { cells: [[0; COLUMNS]; LINES], at: (0, LINES - 1), has_caret: true }
    }

    /// The next line, or the first one again.
    pub(crate) fn new_line(&mut self) {
        self.at = (0, (self.at.1 + 1) % LINES);
        self.cells[self.at.1] = [0; COLUMNS];
    }

    /// A glyph at the caret, which moves on; a line that is full takes no more.
    pub(crate) fn write(&mut self, glyph: u32) {
        if self.at.0 + 1 < COLUMNS {
            self.cells[self.at.1][self.at.0] = glyph;
            self.at.0 += 1;
        }
    }

    pub(crate) fn pixels(&self) -> Vec<u8> {
        let width = COLUMNS * CELL.0;
        (0..width * LINES * CELL.1).flat_map(|at| self.pixel(at % width, at / width)).collect()
    }

    fn pixel(&self, x: usize, y: usize) -> [u8; 4] {
        let at = (x / CELL.0, y / CELL.1);
        let is_inverted = self.has_caret && at == self.at;
        let has_ink = figure_has(figure(self.cells[at.1][at.0]), x % CELL.0, y % CELL.1);
        if has_ink == is_inverted { PAPER } else { INK }
    }
}

/// Three columns of eight blocks, two pixels wide each.
fn figure(glyph: u32) -> u32 {
    if glyph == 0 { 0 } else { (glyph.wrapping_mul(0x9e37_79b1) >> 8 | 1) & FULL }
}

const FULL: u32 = (1 << 24) - 1;

fn figure_has(figure: u32, x: usize, y: usize) -> bool {
    let is_inside = (1..7).contains(&x) && (2..10).contains(&y);
    is_inside && figure >> ((y - 2) * 3 + (x - 1) / 2) & 1 == 1
}

/// What a cell is seen to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    Glyph(u32),
    /// A blank.
    Blank,
    /// The caret, over any of these.
    Caret,
}

/// A picture of the screen, or of a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cells(pub(crate) BTreeMap<At, Cell>);

impl Cells {
    /// The whole screen.
    pub(crate) fn of(pixels: &[u8]) -> Self {
        Self::over([0, 0], COLUMNS * CELL.0, pixels)
    }

    /// Pixels that lie there in the window, rows of `width`; cells that are not all opaque are none.
    pub(crate) fn over([left, top]: [usize; 2], width: usize, pixels: &[u8]) -> Self {
        let pixel = |x: usize, y: usize| {
            let at = (y.checked_sub(top)? * width + x.checked_sub(left).filter(|x| *x < width)?) * 4;
            pixels.get(at..at + 4).filter(|pixel| pixel[3] == 255)
        };
        let see = |at: At| {
            let corner = (at.0 * CELL.0, at.1 * CELL.1);
            let paper = pixel(corner.0, corner.1)?;
            let mut seen = 0;
            for block in 0..24 {
                let (x, y) = (corner.0 + 1 + block % 3 * 2, corner.1 + 2 + block / 3);
                seen |= u32::from(pixel(x, y)? != paper) << block;
            }
            Some((at, cell(paper == PAPER, seen)?))
        };
        let all = (0..LINES).flat_map(|line| (0..COLUMNS).map(move |column| (column, line)));
        Self(all.filter_map(see).collect())
    }

    /// Letters and other glyphs.
    pub(crate) fn glyphs(&self) -> impl Iterator<Item = (At, u32)> {
        let glyph = |(at, cell): (&At, &Cell)| match cell {
            Cell::Glyph(glyph) => Some((*at, *glyph)),
            _ => None,
        };
        self.0.iter().filter_map(glyph)
    }

    pub(crate) fn glyph(&self, at: At) -> Option<u32> {
        self.glyphs().find(|(place, _)| *place == at).map(|(_, glyph)| glyph)
    }

    /// The line that the caret is in.
    pub(crate) fn line(&self) -> Option<usize> {
        self.0.iter().find(|(_, cell)| **cell == Cell::Caret).map(|((_, line), _)| *line)
    }
}

/// A hollow box is no cell.
fn cell(is_on_paper: bool, seen: u32) -> Option<Cell> {
    match (is_on_paper, seen) {
        (true, 0) => Some(Cell::Blank),
        (true, seen) => (1..256).find(|glyph| figure(*glyph) == seen).map(Cell::Glyph),
        (false, FULL) => None,
        (false, _) => Some(Cell::Caret),
    }
}
