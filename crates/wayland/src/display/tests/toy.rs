//! A toy program that a keyboard types into: letters of its own on a line with a block for a caret.
//!
//! It is the oracle: what it shows after a key is what should have been predicted.

use std::collections::HashMap;

use wayferry_pixels::{Content, Format, Rect};

use super::rig::{Rig, size};
use crate::message::{ToDisplay, Unit, UnitContent, WireId};
use crate::wire::Arg;

/// Sides of a cell, and cells of a line.
pub(super) const CELL: (u32, u32) = (8, 16);
const COLUMNS: u32 = 24;
const LINES: u32 = 3;

const PAPER: [u8; 4] = [20, 20, 20, 255];
const INK: [u8; 4] = [230, 230, 230, 255];

/// Codes of some keys.
pub(super) const A: u32 = 30;
pub(super) const B: u32 = 48;
pub(super) const C: u32 = 46;
pub(super) const RETURN: u32 = 28;

/// A window with the keyboard, and the program that it is of.
pub(super) struct Toy {
    pub(super) surface: WireId,
    pub(super) keyboard: u32,
    pub(super) content: Content,
    at: (u32, u32),
    presses: u64,
}

impl Toy {
    /// A window that has been shown, and to which the keyboard came.
    pub(super) fn new(rig: &mut Rig) -> Self {
        let [_, surface, ..] = rig.toplevel();
        let seat = rig.bind("wl_seat");
        let keyboard = rig.make(seat, "get_keyboard", vec![]);
        let mut content = Content::new(size(COLUMNS * CELL.0, LINES * CELL.1), Format::Argb8888);
        content.fill(&PAPER);
        let mut toy = Self { surface, keyboard: rig.id(keyboard), content, at: (0, 0), presses: 0 };
        toy.invert();
        toy.show(rig, None);
        toy.enter(rig);
        rig.requests();
        toy
    }

    /// The keyboard comes to the window.
    pub(super) fn enter(&self, rig: &mut Rig) {
        let surface = Arg::Object(rig.id(self.surface));
        rig.event(self.keyboard, "enter", vec![Arg::Uint(1), surface, Arg::Array(vec![])]);
        rig.turn();
    }

    /// A key is pressed and released; nothing is answered. Gives its number.
    pub(super) fn press(&mut self, rig: &mut Rig, code: u32) -> u64 {
        for state in [1, 0] {
            rig.event(self.keyboard, "key", [1, 0, code, state].map(Arg::Uint).into());
        }
        rig.turn();
        self.presses += 1;
        self.presses
    }

    /// The program takes a key.
    pub(super) fn take(&mut self, code: u32) {
        self.invert();
        if code == RETURN {
            self.at = (0, (self.at.1 + 1) % LINES);
        } else {
            self.letter(code);
            self.at.0 = (self.at.0 + 1).min(COLUMNS - 1);
        }
        self.invert();
    }

    /// The program answers all keys up to this one with what it shows now.
    pub(super) fn show(&mut self, rig: &mut Rig, answered: Option<u64>) {
        let unit = self.answer(rig, answered);
        rig.say(&ToDisplay::Unit(unit));
    }

    /// The same, of which the commit is not told yet.
    pub(super) fn answer(&mut self, rig: &mut Rig, answered: Option<u64>) -> Unit {
        let update = rig.update(self.surface, self.content.clone(), false);
        let seq = update.0.seq;
        rig.deliver(update);
        Unit { answered, ..rig.unit(self.surface, UnitContent::Update(seq)) }
    }

    /// A key is pressed, and answered after `millis`.
    pub(super) fn types(&mut self, rig: &mut Rig, code: u32, millis: u64) {
        let number = self.press(rig, code);
        self.take(code);
        rig.now += std::time::Duration::from_millis(millis);
        self.show(rig, Some(number));
        release_all(rig);
    }

    /// Letters are typed and answered until they are known, so that the next ones are predicted.
    pub(super) fn learn(&mut self, rig: &mut Rig) {
        for code in [A, B, C, A, B, C, A, B] {
            self.types(rig, code, 100);
        }
    }

    /// What the window shows there, as bytes.
    pub(super) fn part(&self, rect: Rect) -> Vec<u8> {
        (rect.y..rect.bottom()).flat_map(|y| self.content.row(y, rect.x, rect.width).to_vec()).collect()
    }

    /// Puts the caret there, or takes it away.
    pub(super) fn invert(&mut self) {
        let cell = self.cell();
        for y in cell.y..cell.bottom() {
            for x in cell.x..cell.right() {
                let inverted = if self.content.row(y, x, 1) == PAPER { INK } else { PAPER };
                paint(&mut self.content, Rect::new(x, y, 1, 1), inverted);
            }
        }
    }

    /// Letters are blocks from their key's code, each of another shape.
    fn letter(&mut self, code: u32) {
        let cell = self.cell();
        paint(&mut self.content, cell, PAPER);
        let mut pattern = code.wrapping_mul(0x9e37_79b1) >> 8 | 1;
        for block in 0..24 {
            let (x, y) = (cell.x + 1 + block % 3 * 2, cell.y + 2 + block / 3);
            if pattern & 1 == 1 {
                paint(&mut self.content, Rect::new(x, y, 2, 1), INK);
            }
            pattern >>= 1;
        }
    }

    fn cell(&self) -> Rect {
        Rect::new(self.at.0 * CELL.0, self.at.1 * CELL.1, CELL.0, CELL.1)
    }
}

fn paint(content: &mut Content, rect: Rect, pixel: [u8; 4]) {
    let row = pixel.repeat(rect.width as usize);
    (rect.y..rect.bottom()).for_each(|y| content.write_row(y, rect.x, &row));
}

/// The compositor releases what it holds but the newest buffers.
pub(super) fn release_all(rig: &mut Rig) {
    let last = rig.shown.iter().map(|shown| (shown.surface, shown.buffer));
    let newest: HashMap<u32, u32> = last.collect();
    let is_newest = |buffer: &u32| newest.values().any(|newest| newest == buffer);
    let old: Vec<u32> = rig.busy.iter().copied().filter(|buffer| !is_newest(buffer)).collect();
    old.into_iter().for_each(|buffer| rig.release(buffer));
    rig.turn();
}
