//! A terminal in which a log runs past: each commit scrolls by 1 to 40 lines.
//!
//! A terminal gives damage for all of its grid when it scrolls. The scroll sizes come in rounds of ten in an order of
//! chance, so that any ten commits of a round scroll by the same sum.

use super::{Commit, Program, Scroll};
use crate::canvas::{Canvas, Color, Rect};
use crate::font::Font;
use crate::random::Random;
use crate::text::{Words, digits};

#[derive(Debug)]
pub(super) struct Terminal {
    font: Font,
    words: Words,
    random: Random,
    /// Lines written so far.
    lines: u32,
    /// What is left of the round.
    steps: Vec<u32>,
}

impl Terminal {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        let font = Font::monospaced(CELL.0, CELL.1, 1.25, &random.fork(7));
        let mut terminal =
            Self { font, words: Words::new(random), random: random.fork(8), lines: 0, steps: Vec::new() };
        canvas.fill(canvas.rect(), PAPER);
        for row in 0..canvas.height() / CELL.1 {
            terminal.line(canvas, row);
        }
        terminal
    }

    /// Writes the next line of the log.
    fn line(&mut self, canvas: &mut Canvas, row: u32) {
        let y = row * CELL.1;
        canvas.fill(Rect::new(0, y, canvas.width(), CELL.1), PAPER);
        self.lines += 1;
        let mut x = self.font.draw(canvas, 0, y as i32, &digits(40_000 + self.lines * 7, 6), COLORS[0]);
        let level = [1, 1, 1, 2, 3][self.random.below(5) as usize];
        for place in 0..self.random.between(LENGTHS.0, LENGTHS.1) {
            let word = self.words.any(&mut self.random).to_vec();
            let color = match place {
                0 => COLORS[level],
                1 => COLORS[4],
                _ if self.random.once_in(9) => COLORS[5 + self.random.below(2) as usize],
                _ => COLORS[7 - 1],
            };
            x = self.font.draw(canvas, x + CELL.0 as i32, y as i32, &word, color);
        }
    }

    fn step(&mut self) -> u32 {
        if self.steps.is_empty() {
            self.steps = STEPS.to_vec();
            self.random.shuffle(&mut self.steps);
        }
        self.steps.pop().unwrap_or(1)
    }
}

impl Program for Terminal {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        let rows = canvas.height() / CELL.1;
        let lines = self.step().min(rows);
        let grid = Rect::new(0, 0, canvas.width(), rows * CELL.1);
        canvas.scroll_up(grid, lines * CELL.1);
        for row in rows - lines..rows {
            self.line(canvas, row);
        }
        Commit { damage: vec![grid], scroll: Some(Scroll { rect: grid, rows: lines * CELL.1 }) }
    }
}

const CELL: (u32, u32) = (9, 18);
/// Words of a line, fewest and most.
const LENGTHS: (u32, u32) = (3, 11);
/// Lines that a commit scrolls by, one round.
const STEPS: [u32; 10] = [1, 1, 2, 2, 3, 5, 8, 12, 20, 40];

const PAPER: Color = Color(24, 24, 24);
/// With the paper, the eight colours of the terminal.
const COLORS: [Color; 7] = [
    Color(120, 120, 120),
    Color(120, 200, 110),
    Color(220, 190, 100),
    Color(220, 100, 100),
    Color(110, 150, 220),
    Color(190, 130, 210),
    Color(210, 210, 210),
];
