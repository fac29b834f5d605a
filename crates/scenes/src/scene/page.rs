//! A page that is scrolled: a header and a sidebar that stay, a column of text with a picture now and then, a
//! scrollbar.
//!
//! A browser gives damage for the whole viewport. The steps are those of a wheel with inertia, over and over. Below the
//! end of what was laid out there is always more.

use super::{Commit, Program, Scroll};
use crate::canvas::{Canvas, Color, Rect};
use crate::font::Font;
use crate::picture::photograph;
use crate::random::Random;
use crate::text::{Place, Words};

#[derive(Debug)]
pub(super) struct Page {
    font: Font,
    words: Words,
    random: Random,
    pictures: Vec<Canvas>,
    /// Rows of the page above the viewport.
    top: u32,
    commits: usize,
}

impl Page {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        let pictures =
            (0..3).map(|number| photograph(COLUMN, PICTURE, random.fork(9).fork(number).bits())).collect();
        let font = Font::proportional(20, 1.7, &random.fork(10));
        let random = random.fork(11);
        let page = Self { font, words: Words::new(&random), random, pictures, top: 0, commits: 0 };
        page.surround(canvas);
        page.show(canvas, viewport(canvas));
        page.scrollbar(canvas);
        page
    }

    /// Paints what stays.
    fn surround(&self, canvas: &mut Canvas) {
        let mut chance = self.random.fork(12);
        canvas.fill(canvas.rect(), PAPER);
        canvas.fill(Rect::new(0, 0, canvas.width(), HEADER), Color(36, 41, 47));
        canvas.fill(Rect::new(0, HEADER, SIDEBAR, canvas.height()), Color(246, 248, 250));
        let mut line = |canvas: &mut Canvas, x, y, right, color| {
            self.words.line(canvas, &self.font, &mut chance, Place { x, y, right, color });
        };
        line(canvas, 30, 16, 700, Color(240, 246, 252));
        for row in 0..32 {
            line(canvas, 30, 80 + 31 * row, 290, LINK);
        }
    }

    /// Paints what of the page lies inside `part` of the screen.
    fn show(&self, canvas: &mut Canvas, part: Rect) {
        canvas.set_clip(part);
        canvas.fill(part, PAPER);
        let (first, last) = (self.top + part.y - HEADER, self.top + part.bottom() - HEADER);
        for block in first / BLOCK..=last / BLOCK {
            let y = (HEADER + block * BLOCK) as i32 - self.top as i32;
            canvas.draw(&self.pictures[block as usize % self.pictures.len()], LEFT as i32, y + 30);
            self.paragraphs(canvas, block, y + 30 + PICTURE as i32 + 30);
        }
        canvas.unclip();
    }

    /// The text below a block's picture, from row `y` of the screen.
    fn paragraphs(&self, canvas: &mut Canvas, block: u32, y: i32) {
        let mut chance = self.random.fork(0x1000 + u64::from(block));
        for line in 0..(BLOCK - PICTURE - 70) / LINE {
            let last = line % 6 == 5;
            let right = if last { LEFT + chance.between(80, COLUMN - 80) } else { LEFT + COLUMN };
            let place =
                Place { x: LEFT as i32, y: y + (line * LINE) as i32, right: right as i32, color: INK };
            self.words.line(canvas, &self.font, &mut chance, place);
            // A note at the margin of each paragraph.
            if line % 6 < 4 {
                let note = Place { x: NOTES as i32, right: (NOTES + 180) as i32, color: FAINT, ..place };
                self.words.line(canvas, &self.font, &mut chance, note);
            }
        }
    }

    /// Paints the scrollbar.
    fn scrollbar(&self, canvas: &mut Canvas) {
        let groove = Rect::new(canvas.width() - BAR, HEADER, BAR, canvas.height() - HEADER);
        canvas.fill(groove, Color(240, 240, 240));
        let offset = self.top / 12 % (groove.height - THUMB);
        canvas.fill(Rect::new(groove.x + 3, groove.y + offset, BAR - 6, THUMB), Color(150, 150, 150));
    }
}

impl Program for Page {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        let rows = STEPS[self.commits % STEPS.len()];
        self.commits += 1;
        self.top += rows;
        let rect = viewport(canvas);
        canvas.scroll_up(rect, rows);
        self.show(canvas, Rect::new(rect.x, rect.bottom() - rows, rect.width, rows));
        self.scrollbar(canvas);
        let damage = vec![Rect { width: rect.width + BAR, ..rect }];
        Commit { damage, scroll: (rows > 0).then_some(Scroll { rect, rows }) }
    }
}

/// What scrolls.
fn viewport(canvas: &Canvas) -> Rect {
    Rect::new(SIDEBAR, HEADER, canvas.width() - SIDEBAR - BAR, canvas.height() - HEADER)
}

/// Rows that each commit scrolls by, over and over.
const STEPS: [u32; 10] = [0, 3, 11, 24, 40, 53, 40, 24, 11, 5];

const HEADER: u32 = 52;
const SIDEBAR: u32 = 320;
/// Width of the scrollbar, and the height of what moves in it.
const BAR: u32 = 14;
const THUMB: u32 = 120;

/// Where the text begins, and how wide it is.
const LEFT: u32 = 520;
const COLUMN: u32 = 860;
/// Where notes begin.
const NOTES: u32 = LEFT + COLUMN + 30;
/// From picture to picture, and a picture's height.
const BLOCK: u32 = 900;
const PICTURE: u32 = 180;
/// From line to line.
const LINE: u32 = 24;

const PAPER: Color = Color(255, 255, 255);
const INK: Color = Color(31, 35, 40);
const FAINT: Color = Color(101, 109, 118);
const LINK: Color = Color(9, 105, 218);
