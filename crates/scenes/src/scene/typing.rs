//! An editor in which somebody types.
//!
//! Each commit is one key: its glyph where the cursor was, the cursor a cell further, and the column in the status
//! line. The end of some words gives them another colour. Typing goes on below the last line, and at the bottom from
//! the top again.

use super::{Commit, Program};
use crate::canvas::{Canvas, Color, Rect};
use crate::font::Font;
use crate::random::Random;
use crate::text::{Words, digits};

#[derive(Debug)]
pub(super) struct Typing {
    font: Font,
    words: Words,
    random: Random,
    /// What is left of the word that is being typed, last glyph first.
    rest: Vec<u8>,
    word: Vec<u8>,
    column: u32,
    row: u32,
}

impl Typing {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        let font = Font::monospaced(CELL.0, CELL.1, 1.8, &random.fork(1));
        let words = Words::new(random);
        let mut chance = random.fork(2);
        canvas.fill(canvas.rect(), PAPER);
        for row in 0..STATUS {
            font.draw(canvas, 0, (row * CELL.1) as i32, &digits(row + 1, 4), FAINT);
            if !TYPED.contains(&row) {
                code(canvas, &font, &words, &mut chance, row);
            }
        }
        let bar = Rect::new(0, STATUS * CELL.1, canvas.width(), canvas.height() - STATUS * CELL.1);
        canvas.fill(bar, BAR);
        for (column, number) in [(2, 1), (60, 2), (STATUS_COLUMN - 8, 3)] {
            let word = words.any(&mut chance.fork(number)).to_vec();
            font.draw(canvas, (column * CELL.0) as i32, bar.y as i32 + 4, &word, INK);
        }
        let typing = Self {
            font,
            words,
            random: chance,
            rest: Vec::new(),
            word: Vec::new(),
            column: MARGIN,
            row: TYPED.start,
        };
        canvas.fill(cell(typing.column, typing.row), CURSOR);
        typing
    }

    /// The next key: a glyph, or `None` for a blank.
    fn key(&mut self) -> Option<u8> {
        if let Some(glyph) = self.rest.pop() {
            self.word.push(glyph);
            return Some(glyph);
        }
        self.rest = self.words.any(&mut self.random).iter().rev().take(8).copied().collect();
        None
    }

    fn write(&self, canvas: &mut Canvas, column: u32, glyph: u8, color: Color) {
        let place = cell(column, self.row);
        canvas.fill(place, PAPER);
        self.font.draw(canvas, place.x as i32, place.y as i32, &[glyph], color);
    }

    /// Gives the word before the cursor another colour; gives where it is.
    fn highlight(&self, canvas: &mut Canvas) -> Rect {
        let first = self.column - self.word.len() as u32;
        for (column, glyph) in (first..).zip(&self.word) {
            self.write(canvas, column, *glyph, KEYWORD);
        }
        let start = cell(first, self.row);
        Rect::new(start.x, start.y, self.word.len() as u32 * CELL.0, CELL.1)
    }

    /// Moves the cursor behind what was typed.
    fn advance(&mut self, blank: bool) {
        self.column += 1;
        if blank {
            self.word.clear();
        }
        if blank && self.column >= LAST {
            self.column = MARGIN;
            self.row = if self.row + 1 < TYPED.end { self.row + 1 } else { TYPED.start };
        }
    }

    fn tell_column(&self, canvas: &mut Canvas) -> Rect {
        let place = Rect::new(STATUS_COLUMN * CELL.0, STATUS * CELL.1 + 4, 3 * CELL.0, CELL.1);
        canvas.fill(place, BAR);
        self.font.draw(canvas, place.x as i32, place.y as i32, &digits(self.column, 3), INK);
        place
    }
}

impl Program for Typing {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        let old = cell(self.column, self.row);
        let key = self.key();
        let mut damage = Vec::new();
        match key {
            Some(glyph) => self.write(canvas, self.column, glyph, INK),
            None => {
                canvas.fill(old, PAPER);
                if self.word.len() > 2 && self.random.once_in(3) {
                    damage.push(self.highlight(canvas));
                }
            }
        }
        self.advance(key.is_none());
        let new = cell(self.column, self.row);
        canvas.fill(new, CURSOR);
        if new.x == old.right() {
            damage.push(Rect::new(old.x, old.y, 2 * CELL.0, CELL.1));
        } else {
            damage.extend([old, new]);
        }
        damage.push(self.tell_column(canvas));
        Commit::of(damage)
    }
}

/// A line of a program's text, indented.
fn code(canvas: &mut Canvas, font: &Font, words: &Words, chance: &mut Random, row: u32) {
    let mut column = MARGIN + 4 * chance.below(4);
    for _ in 0..chance.below(10) {
        let word = words.any(chance).to_vec();
        let color = [INK, INK, INK, KEYWORD, NAME, FAINT][chance.below(6) as usize];
        font.draw(canvas, (column * CELL.0) as i32, (row * CELL.1) as i32, &word, color);
        column += word.len() as u32 + 1;
    }
}

fn cell(column: u32, row: u32) -> Rect {
    Rect::new(column * CELL.0, row * CELL.1, CELL.0, CELL.1)
}

const CELL: (u32, u32) = (12, 25);
/// Rows that are typed into.
const TYPED: std::ops::Range<u32> = 20..36;
const MARGIN: u32 = 6;
/// Words end before this column or little behind it.
const LAST: u32 = 100;
/// The row of the status line, and where it tells the column.
const STATUS: u32 = 42;
const STATUS_COLUMN: u32 = 150;

const PAPER: Color = Color(30, 30, 36);
const BAR: Color = Color(0, 90, 150);
const INK: Color = Color(212, 212, 212);
const FAINT: Color = Color(110, 118, 110);
const KEYWORD: Color = Color(86, 156, 214);
const NAME: Color = Color(206, 145, 120);
const CURSOR: Color = Color(230, 230, 200);
