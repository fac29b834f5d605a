//! What the caret of a text field looks like: a block that inverts its cell, a bar, or a line below the letters.
//!
//! A caret is drawn into a strip, the rows of one line of text, and found in one. It does not know where it is.
//!
//! The one invariant: its rows lie inside the strip, and it is at least one pixel wide and high.

use std::ops::Range;

use crate::field::Field;
use crate::plane::{Plane, channels, mixed, most};

/// How a caret marks its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Fills a cell; a letter in it has the colour of the paper.
    Block,
    /// A few columns left of the next letter.
    Bar,
    /// A few rows at the foot of a cell.
    Underline,
}

/// A kind of caret, and what was learned of the fields that have it.
pub(crate) struct Caret {
    pub(crate) kind: Kind,
    pub(crate) width: usize,
    /// Rows of the strip.
    pub(crate) height: usize,
    /// Which of them the caret fills.
    pub(crate) rows: Range<usize>,
    pub(crate) colour: u32,
    /// Colours that a block had over blanks before.
    others: Vec<u32>,
    /// A place where it was: the cells of a block lie on a grid.
    pub(crate) grid: (u32, u32),
    pub(crate) field: Field,
}

impl Caret {
    pub(crate) fn new(kind: Kind, width: usize, height: usize, rows: Range<usize>, colour: u32) -> Self {
        let cell = (kind != Kind::Bar).then_some(width);
        let (others, field) = (Vec::new(), Field::new(cell));
        Self { kind, width, height, rows, colour, others, grid: (0, 0), field }
    }

    /// Whether `other` is the same caret, of another field perhaps.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let what = |caret: &Self| (caret.kind, caret.width, caret.height, caret.rows.clone());
        what(self) == what(other) && (self.colour == other.colour || self.others.contains(&other.colour))
    }

    /// Whether it is drawn at column `x` of a strip.
    pub(crate) fn is_at(&self, strip: &Plane, x: usize) -> bool {
        if x + self.width > strip.width() || strip.height() != self.height {
            return false;
        }
        let columns = x..x + self.width;
        let own = |colour: u32| self.pixels(strip, x).filter(|pixel| *pixel == colour).count();
        let all = self.width * self.rows.len();
        match self.kind {
            Kind::Block if own(self.colour) * 2 >= all => !self.is_paper(strip, columns),
            Kind::Block => self.is_tinted(strip, columns),
            Kind::Bar => own(self.colour) * 50 >= all * 49 && !self.is_paper(strip, columns),
            // Fonts draw it somewhat into the next cell, or not to the end of its own.
            Kind::Underline => own(self.colour) * 10 >= all * 9,
        }
    }

    /// Whether the caret's colour is that of what is around.
    fn is_paper(&self, strip: &Plane, columns: Range<usize>) -> bool {
        around(strip, columns, self.height) == self.colour
    }

    /// A block over a letter of another colour takes that colour: most of a cell, of none of its neighbours.
    fn is_tinted(&self, strip: &Plane, columns: Range<usize>) -> bool {
        let Some((colour, count)) = most(self.pixels(strip, columns.start)) else { return false };
        let next = columns.end..(columns.end + self.width).min(strip.width());
        let is_next = !next.is_empty() && strip.paper(next) == colour;
        count * 2 >= self.width * self.height && !is_next && around(strip, columns, self.height) != colour
    }

    fn pixels<'a>(&self, strip: &'a Plane, x: usize) -> impl Iterator<Item = u32> + 'a {
        let columns = x..x + self.width;
        self.rows.clone().flat_map(move |y| strip.row(y, columns.clone()).iter().copied())
    }

    /// Draws it at column `x`, over letters of colour `ink` at its fullest.
    pub(crate) fn draw(&self, strip: &mut Plane, x: usize, paper: u32, ink: u32) {
        let columns = x..(x + self.width).min(strip.width());
        if self.kind != Kind::Block || !strip.has_ink(columns.clone(), paper) {
            return strip.fill(columns, self.rows.clone(), self.colour);
        }
        for y in 0..self.height {
            let row = strip.row_mut(y, columns.clone());
            row.iter_mut().for_each(|pixel| *pixel = inverted(*pixel, paper, ink));
        }
    }

    /// Takes it away from column `x`, where what is below it is not known.
    pub(crate) fn remove(&mut self, strip: &mut Plane, x: usize) {
        let columns = x..(x + self.width).min(strip.width());
        let paper = around(strip, columns.clone(), self.height);
        if self.kind != Kind::Block {
            return strip.fill(columns, self.rows.clone(), paper);
        }
        let pixels = || self.pixels(strip, x);
        if let Some((colour, count)) = most(pixels())
            && count == self.width * self.height
            && colour != paper
        {
            self.has_colour(colour);
            return strip.fill(columns, 0..self.height, paper);
        }
        for y in 0..self.height {
            let row = strip.row_mut(y, columns.clone());
            row.iter_mut().for_each(|pixel| *pixel = inverted(*pixel, paper, self.colour));
        }
    }

    /// It was seen over a blank, in this colour.
    fn has_colour(&mut self, colour: u32) {
        if colour == self.colour {
            return;
        }
        self.others.retain(|other| *other != colour);
        self.others.truncate(OTHERS - 1);
        self.others.insert(0, self.colour);
        self.colour = colour;
    }

    /// Every colour that it is known to have over blanks.
    pub(crate) fn colours(&self) -> impl Iterator<Item = u32> {
        [self.colour].into_iter().chain(self.others.iter().copied())
    }
}

/// The paper left and right of some columns.
pub(crate) fn around(strip: &Plane, columns: Range<usize>, height: usize) -> u32 {
    let reach = REACH * height;
    let left = strip.rows(columns.start.saturating_sub(reach)..columns.start);
    let right =
        strip.rows(columns.end..(columns.end + reach).clamp(columns.end, strip.width().max(columns.end)));
    most(left.chain(right).flatten().copied()).map_or(0, |(pixel, _)| pixel)
}

fn inverted(pixel: u32, paper: u32, ink: u32) -> u32 {
    let (pixel, paper, ink) = (channels(pixel), channels(paper), channels(ink));
    mixed([0, 1, 2].map(|at| paper[at] + ink[at] - pixel[at]))
}

/// How far the paper is looked for, in heights of the line.
const REACH: usize = 4;

/// Other colours of a block.
const OTHERS: usize = 3;
