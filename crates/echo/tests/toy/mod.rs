//! A toy terminal: a grid of letters from a seed, a caret, and programs that answer keys as shells, editors, hidden
//! prompts and spiteful ones do. What it draws is a [`Recording`], so that the player can play it at any round trip.
//!
//! It knows nothing of the predictor: it is the oracle.

mod font;
pub(crate) mod hidden;

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_echo::Key;
use wayferry_pixels::{Rect, Size};

use crate::recording::{Event, Recording};
pub(crate) use font::{Dice, Font};

/// How the caret looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caret {
    Block,
    Bar,
    Underline,
}

/// What a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Letter {
    /// Which letter of the font.
    pub(crate) glyph: u32,
    pub(crate) ink: u32,
}

/// A terminal, and what was seen of it.
pub(crate) struct Toy {
    pub(crate) dice: Dice,
    font: Font,
    covers: BTreeMap<u32, Vec<u32>>,
    caret: Caret,
    paper: u32,
    pub(crate) ink: u32,
    pub(crate) columns: usize,
    rows: usize,
    cells: Vec<Option<Letter>>,
    pub(crate) at: (usize, usize),
    drawn: Vec<u32>,
    now: Duration,
    events: Vec<(Duration, Event)>,
}

impl Toy {
    /// Cells, colours and caret come from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let caret = [Caret::Block, Caret::Bar, Caret::Underline][dice.below(3)];
        let width = 6 + dice.below(9);
        let font = Font { seed: dice.word(), width, height: 2 * width + dice.below(3) };
        let (mut paper, mut ink) =
            (dice.word() as u32 & 0x3f_3f3f, 0x00c0_c0c0 | dice.word() as u32 & 0x3f_3f3f);
        if dice.below(2) == 0 {
            (paper, ink) = (ink, paper);
        }
        let (columns, rows) = (64, 7);
        let drawn = vec![paper; columns * font.width * rows * font.height];
        let cells = vec![None; columns * rows];
        let mut toy = Self {
            dice,
            font,
            covers: BTreeMap::new(),
            caret,
            paper,
            ink,
            columns,
            rows,
            cells,
            at: (0, 0),
            drawn,
            now: Duration::ZERO,
            events: vec![],
        };
        toy.events
            .push((Duration::ZERO, toy.frame(Rect::new(0, 0, toy.size().width(), toy.size().height()))));
        toy.show(Duration::ZERO);
        toy
    }

    pub(crate) fn recording(mut self) -> Recording {
        self.events.sort_by_key(|(at, _)| *at);
        Recording { name: "toy".to_owned(), size: self.size(), events: self.events }
    }

    fn size(&self) -> Size {
        let size = Size::new((self.columns * self.font.width) as u32, (self.rows * self.font.height) as u32);
        size.expect("a size")
    }

    /// The user presses a key some time after the last one; its index among the keys, from 1.
    pub(crate) fn press(&mut self, key: Key) -> usize {
        let gap = 90 + self.dice.below(120) as u64;
        self.wait(Duration::from_millis(gap));
        self.press_now(key)
    }

    pub(crate) fn press_now(&mut self, key: Key) -> usize {
        self.events.push((self.now, Event::Key(key)));
        self.events.iter().filter(|(_, event)| matches!(event, Event::Key(_))).count()
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// The program's letter at the caret, which moves on.
    pub(crate) fn put(&mut self, glyph: u32) {
        let letter = Letter { glyph, ink: self.ink };
        self.put_letter(Some(letter));
    }

    pub(crate) fn put_letter(&mut self, letter: Option<Letter>) {
        let (x, y) = self.at;
        self.set(x, y, letter);
        self.at.0 += 1;
        if self.at.0 == self.columns - 1 {
            self.new_line();
        }
    }

    pub(crate) fn set(&mut self, x: usize, y: usize, letter: Option<Letter>) {
        if let Some(letter) = letter {
            self.covers.entry(letter.glyph).or_insert_with(|| self.font.covers(letter.glyph));
        }
        self.cells[y * self.columns + x] = letter;
    }

    pub(crate) fn new_line(&mut self) {
        self.at = (0, self.at.1 + 1);
        if self.at.1 == self.rows {
            self.cells.drain(..self.columns);
            self.cells.resize(self.columns * self.rows, None);
            self.at.1 -= 1;
        }
    }

    /// Opens or closes a gap at the caret, as editors do.
    pub(crate) fn open(&mut self) {
        let (start, end) = (self.at.1 * self.columns + self.at.0, (self.at.1 + 1) * self.columns);
        self.cells[start..end].rotate_right(1);
        self.cells[start] = None;
    }

    pub(crate) fn close(&mut self) {
        let (start, end) = (self.at.1 * self.columns + self.at.0, (self.at.1 + 1) * self.columns);
        self.cells[start..end].rotate_left(1);
        self.cells[end - 1] = None;
    }

    pub(crate) fn letter(&self, x: usize, y: usize) -> Option<Letter> {
        self.cells[y * self.columns + x]
    }

    pub(crate) fn say(&mut self, glyphs: impl IntoIterator<Item = u32>) {
        glyphs.into_iter().for_each(|glyph| self.put(glyph));
    }

    /// What is there now is seen after so long.
    pub(crate) fn show(&mut self, after: Duration) {
        let picture = self.picture();
        let width = self.columns * self.font.width;
        let differs = (0..picture.len()).filter(|at| picture[*at] != self.drawn[*at]);
        let bounds = differs.fold(None, |bounds: Option<[usize; 4]>, at| {
            let (x, y) = (at % width, at / width);
            let [left, top, right, bottom] = bounds.unwrap_or([x, y, x, y]);
            Some([left.min(x), top.min(y), right.max(x), bottom.max(y)])
        });
        self.drawn = picture;
        if let Some([left, top, right, bottom]) = bounds {
            let sides = ((right - left + 1) as u32, (bottom - top + 1) as u32);
            let rect = Rect::new(left as u32, top as u32, sides.0, sides.1);
            self.events.push((self.now + after, self.frame(rect)));
        }
    }

    fn frame(&self, rect: Rect) -> Event {
        let width = self.columns * self.font.width;
        let row = |y: u32| &self.drawn[y as usize * width + rect.x as usize..][..rect.width as usize];
        Event::Frame(
            rect,
            (rect.y..rect.bottom())
                .flat_map(|y| row(y).iter().flat_map(|pixel| pixel.to_le_bytes()))
                .collect(),
        )
    }

    fn picture(&self) -> Vec<u32> {
        let (width, cell) = (self.columns * self.font.width, (self.font.width, self.font.height));
        let mut picture = vec![self.paper; self.drawn.len()];
        let caret = |x: usize, y: usize| match self.caret {
            Caret::Block => true,
            Caret::Bar => x < 2,
            Caret::Underline => (cell.1 * 4 / 5..cell.1 * 4 / 5 + 2).contains(&y) && x < cell.0,
        };
        for (at, letter) in self.cells.iter().enumerate() {
            let (left, top) = (at % self.columns * cell.0, at / self.columns * cell.1);
            let has_caret = (at % self.columns, at / self.columns) == self.at;
            let covers = letter.map(|letter| &self.covers[&letter.glyph]);
            if covers.is_none() && !has_caret {
                continue;
            }
            for (x, y) in (0..cell.1).flat_map(|y| (0..cell.0).map(move |x| (x, y))) {
                let cover = covers.map_or(0, |covers| covers[y * cell.0 + x]);
                let ink = letter.map_or(self.ink, |letter| letter.ink);
                let pixel = &mut picture[(top + y) * width + left + x];
                *pixel = match self.caret {
                    _ if !has_caret || !caret(x, y) => font::blend(self.paper, ink, cover),
                    Caret::Block => font::blend(ink, self.paper, cover),
                    _ => self.ink,
                };
            }
        }
        picture
    }
}

/// A key of the letters' rows, by its number; 0 is the space bar.
pub(crate) fn letter(number: usize) -> Key {
    const CODES: [u16; 27] = [
        57, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35, 36, 37, 38, 44, 45, 46, 47, 48,
        49, 50,
    ];
    plain(CODES[number % CODES.len()])
}

pub(crate) fn plain(code: u16) -> Key {
    Key { code, modifiers: 0, group: 0 }
}

pub(crate) const RETURN: u16 = 28;
pub(crate) const BACKSPACE: u16 = 14;
pub(crate) const LEFT: u16 = 105;
pub(crate) const RIGHT: u16 = 106;

/// The glyph that a key writes where letters are shown; none is below this.
pub(crate) fn glyph_of(key: Key) -> u32 {
    1000 + u32::from(key.code)
}
