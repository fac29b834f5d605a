//! A line of text as a strip of rows with a pen in it, and what keys do to it.
//!
//! Writing is one operation: the glyph is laid at the pen, what is right of it moves on by the advance, and so does the
//! pen. BackSpace is its inverse and needs no glyph; Left and Right only move the pen. The strip holds no caret.
//!
//! The one invariant: the pen with its caret lies inside the strip, and the strip inside the surface.

use std::collections::VecDeque;
use std::ops::Range;

use wayferry_pixels::{Content, Rect, Size};

use crate::caret::Caret;
use crate::glyphs::{Glyphs, Place};
use crate::key::{Does, Key};
use crate::pitch::{Along, At};
use crate::plane::Plane;

/// The line that the caret is in.
#[derive(Clone)]
pub(crate) struct Line {
    /// Where the strip lies.
    pub(crate) rect: Rect,
    /// Its pixels, without the caret.
    pub(crate) strip: Plane,
    /// Column of the strip at which the next letter is written.
    pub(crate) pen: usize,
    /// Advances of the letters left and right of the pen, as far as they are known.
    left: VecDeque<usize>,
    right: Vec<usize>,
    /// The key of the letter left of the pen: no others are kept.
    pub(crate) after: Option<Key>,
    /// Where the first letter is that was written but is not known: what is right of it cannot be moved.
    pub(crate) unknown: Option<usize>,
    /// Ink of the last letter.
    pub(crate) ink: Option<u32>,
    /// Letters between where the caret was found and the pen.
    pub(crate) along: Along,
}

/// What a key would change.
pub(crate) struct Step {
    /// Columns of the strip.
    pub(crate) columns: Range<usize>,
    /// What a letter is written to.
    pub(crate) cell: Option<Cell>,
    /// What was from this column on is so far to the right of there now, or to the left.
    pub(crate) moved: (usize, isize),
}

/// A letter's place.
#[derive(Clone)]
pub(crate) struct Cell {
    pub(crate) columns: Range<usize>,
    /// The letter has not been seen yet: only its place is known.
    pub(crate) is_unknown: bool,
    /// What it is written with; the letter before it is not kept there.
    pub(crate) place: Place,
}

impl Line {
    /// The line of a caret whose top left pixel is there; it is still in the strip. `None` if it does not fit.
    pub(crate) fn open(content: &Content, caret: &Caret, x: u32, y: u32) -> Option<Self> {
        let (rect, pen) = strip_around(content.size(), caret, x, y)?;
        let strip = Plane::read(content, rect)?;
        let (left, right) = (VecDeque::new(), Vec::new());
        let along = Along::begin(x);
        Some(Self { rect, strip, pen, left, right, after: None, unknown: None, ink: None, along })
    }

    /// Whether the strip should be laid anew around the pen.
    pub(crate) fn is_near_end(&self) -> bool {
        let width = self.strip.width();
        self.pen > width / 8 * 7 || (self.pen < width / 16 && self.rect.x > 0)
    }

    /// The same line as `content` has it now, caret and all, in a strip around the pen.
    pub(crate) fn read_again(self, content: &Content, caret: &Caret) -> Option<Self> {
        let (x, y) = self.corner(caret);
        let (rect, pen) = strip_around(content.size(), caret, x, y)?;
        let strip = Plane::read(content, rect)?;
        Some(Self { rect, strip, pen, ..self })
    }

    /// Whether nothing is left of the pen but, perhaps, rules from top to bottom.
    pub(crate) fn is_blank_before(&self) -> bool {
        let rows = || self.strip.rows(0..self.pen);
        rows().all(|row| rows().next() == Some(row))
    }

    /// The pen's column on the surface.
    pub(crate) fn column(&self) -> u32 {
        self.rect.x + self.pen as u32
    }

    /// The caret's top left pixel on the surface.
    pub(crate) fn corner(&self, caret: &Caret) -> (u32, u32) {
        (self.column(), self.rect.y + caret.rows.start as u32)
    }

    /// What the letters are written on.
    pub(crate) fn paper(&self, caret: &Caret) -> u32 {
        let reach = 4 * caret.height;
        let columns = self.pen.saturating_sub(reach)..(self.pen + reach).min(self.strip.width());
        self.strip.paper(columns)
    }

    /// Where the ink right of the pen ends, gaps between words included.
    fn end(&self, caret: &Caret, paper: u32) -> usize {
        let (gap, width) = (3 * caret.height, self.strip.width());
        let mut end = self.pen;
        let mut x = self.pen;
        while x < width && x <= end + gap {
            let next = (x + SCAN).min(width);
            if self.strip.has_ink(x..next, paper) {
                let inked = (x..next).rev().find(|x| self.strip.has_ink(*x..*x + 1, paper));
                end = inked.map_or(end, |x| x + 1);
            }
            x = next;
        }
        end
    }

    /// Where the next letter is written, and with what.
    pub(crate) fn place(&self, caret: &Caret) -> Place {
        let at = At::new(self.along, self.column());
        Place { paper: self.paper(caret), ink: self.ink, after: self.after, at }
    }

    /// Does what `key` is likely to do; `None`, and nothing done, where that is not known.
    pub(crate) fn apply(&mut self, key: Key, caret: &Caret, glyphs: &Glyphs) -> Option<Step> {
        match key.does() {
            Does::Text => self.write(key, caret, glyphs),
            Does::BackSpace => self.take_back(caret),
            Does::Left => self.step_left(caret),
            Does::Right => self.step_right(caret),
            Does::Nothing | Does::Ends => None,
        }
    }

    fn write(&mut self, key: Key, caret: &Caret, glyphs: &Glyphs) -> Option<Step> {
        let place = self.place(caret);
        let cell = caret.field.advance(self.along, self.column());
        let glyph = match cell {
            Some(cell) if key.is_space() => Some(Plane::filled(cell, caret.height, place.paper)),
            _ => glyphs.find(caret, key, place),
        };
        let own = glyph.as_ref().map(Plane::width).filter(|_| !caret.field.pitch.is_known());
        let advance = cell.or(own)?;
        let (pen, next) = (self.pen, self.pen + advance);
        let is_past = |wrap: u32| self.rect.x + (next + caret.width) as u32 >= wrap;
        if next + caret.width > self.strip.width() || caret.field.wrap.is_some_and(is_past) {
            return None;
        }
        let end = self.end(caret, place.paper);
        let moves = end > pen && !caret.field.replaces;
        if moves {
            if end + advance > self.strip.width() {
                return None;
            }
            self.strip.shift(pen..end, next);
        }
        self.strip.fill(pen..next, 0..caret.height, place.paper);
        if let Some(glyph) = &glyph {
            self.strip.paste(pen, &glyph.cut(0..glyph.width().min(advance)));
        }
        self.wrote(Some(key), advance);
        self.unknown = self.unknown.or(glyph.is_none().then_some(pen));
        let far = if moves { end + advance } else { 0 };
        let place = Place { after: None, ..place };
        let cell = Cell { columns: pen..next, is_unknown: glyph.is_none(), place };
        let moved = (pen, if moves { advance as isize } else { 0 });
        Some(Step { columns: pen..far.max(next + caret.width), cell: Some(cell), moved })
    }

    /// The pen has moved over a letter that was written.
    pub(crate) fn wrote(&mut self, key: Option<Key>, advance: usize) {
        if self.left.len() == MAX_BEHIND {
            self.left.pop_front();
        }
        self.left.push_back(advance);
        self.after = key;
        self.pen += advance;
        self.along = self.along.on(1);
    }

    /// The pen has moved back over a letter.
    fn went_back(&mut self, advance: usize) {
        self.left.pop_back();
        self.after = None;
        self.pen -= advance;
        self.along = self.along.back().unwrap_or(Along::begin(self.column()));
    }

    fn take_back(&mut self, caret: &Caret) -> Option<Step> {
        let (paper, pen) = (self.paper(caret), self.pen);
        let advance = self.behind(caret, paper)?;
        let end = self.end(caret, paper);
        if end == self.strip.width() {
            return None;
        }
        self.strip.shift(pen..end, pen - advance);
        self.strip.fill(end - advance..end, 0..caret.height, paper);
        self.went_back(advance);
        self.unknown = self.unknown.filter(|unknown| *unknown < self.pen);
        let moved = (pen, -(advance as isize));
        Some(Step { columns: self.pen..end.max(pen + caret.width), cell: None, moved })
    }

    fn step_left(&mut self, caret: &Caret) -> Option<Step> {
        let advance = self.behind(caret, self.paper(caret))?;
        if self.unknown.is_some_and(|unknown| self.pen - advance <= unknown) {
            return None;
        }
        if self.right.len() < MAX_BEHIND {
            self.right.push(advance);
        }
        self.went_back(advance);
        Some(Step { columns: self.pen..self.pen + advance + caret.width, cell: None, moved: (0, 0) })
    }

    fn step_right(&mut self, caret: &Caret) -> Option<Step> {
        let on_ink = || self.end(caret, self.paper(caret)) > self.pen;
        let cell = || caret.field.advance(self.along, self.column());
        let advance = self.right.last().copied().or_else(|| cell().filter(|_| on_ink()))?;
        if self.pen + advance + caret.width > self.strip.width() {
            return None;
        }
        let pen = self.pen;
        self.right.pop();
        self.wrote(None, advance);
        Some(Step { columns: pen..self.pen + caret.width, cell: None, moved: (0, 0) })
    }

    /// How far the letter left of the pen reaches back; `None` where a prompt or the line's beginning may be.
    fn behind(&self, caret: &Caret, paper: u32) -> Option<usize> {
        let inked = |cell: &usize| self.pen >= *cell && self.strip.has_ink(self.pen - cell..self.pen, paper);
        let known = self.left.back().copied();
        let advance = known.or_else(|| caret.field.cell().filter(inked))?;
        (advance <= self.pen).then_some(advance)
    }

    /// Some columns as they are drawn, with the caret.
    pub(crate) fn picture(&self, columns: &Range<usize>, caret: &Caret, glyphs: &Glyphs) -> Plane {
        let mut picture = self.strip.cut(columns.clone());
        if let Some(x) = self.pen.checked_sub(columns.start).filter(|x| *x < columns.len()) {
            let paper = self.paper(caret);
            let ink = glyphs.inks.fullest(self.ink.unwrap_or(caret.colour), paper);
            caret.draw(&mut picture, x, paper, ink);
        }
        picture
    }

    pub(crate) fn bytes(&self) -> usize {
        let letters = self.left.capacity() + self.right.capacity();
        size_of_val(self.strip.pixels()) + letters * size_of::<usize>()
    }

    /// Where columns of the strip lie on the surface.
    pub(crate) fn on_surface(&self, columns: &Range<usize>) -> Rect {
        Rect::new(self.rect.x + columns.start as u32, self.rect.y, columns.len() as u32, self.rect.height)
    }
}

/// The strip for a caret there, and the pen in it. The window's width, or as much as is kept: a quarter of it is left
/// of the caret.
fn strip_around(size: Size, caret: &Caret, x: u32, y: u32) -> Option<(Rect, usize)> {
    let top = y.checked_sub(caret.rows.start as u32)?;
    let height = caret.height as u32;
    let width = (MAX_STRIP as u32 / height.max(1)).min(size.width());
    let left = x.saturating_sub(width / 4).min(size.width() - width);
    let rect = Rect::new(left, top, width, height);
    let fits = size.rect().contains(rect) && x + caret.width as u32 <= rect.right();
    fits.then(|| (rect, (x - left) as usize))
}

/// Pixels of a strip.
pub(crate) const MAX_STRIP: usize = 16 << 10;

/// Letters whose advances are remembered, on each side of the pen.
const MAX_BEHIND: usize = 128;

/// Columns that are looked at at once.
const SCAN: usize = 16;
