//! Scenes: a canvas and the program that paints on it.
//!
//! Each program of this folder paints its first picture when it is made and then one commit after the other, without
//! end. Invariant: what a commit changes lies inside its damage.

mod page;
mod screens;
mod still;
mod terminal;
mod typing;
mod video;
mod widgets;

use crate::canvas::{Canvas, Color, Rect};
use crate::random::Random;
use crate::sequence::Sequence;

/// A sequence that is being played.
pub struct Scene {
    canvas: Canvas,
    program: Box<dyn Program>,
    commit: Commit,
}

/// What a program shows after a commit.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// All pixels: blue, green, red, unused.
    pub pixels: &'a [[u8; 4]],
    /// What the program says it has painted: rectangles inside the surface, which do not overlap.
    pub damage: &'a [Rect],
    /// What the program has moved; codecs must find it themselves.
    pub scroll: Option<Scroll>,
}

/// Content that moved up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scroll {
    /// Where.
    pub rect: Rect,
    /// By how many rows.
    pub rows: u32,
}

impl Scene {
    /// Begins a sequence; [`Self::frame`] then gives its first picture, damaged everywhere.
    pub fn new(sequence: Sequence, seed: u64) -> Self {
        let (width, height) = sequence.size();
        let mut canvas = Canvas::new(width, height, Color(0, 0, 0));
        let random = Random::new(seed).fork(0x5cee);
        let program = start(sequence, &mut canvas, &random);
        let commit = Commit { damage: vec![canvas.rect()], scroll: None };
        Self { canvas, program, commit }
    }

    /// Lets the program paint and commit once more.
    pub fn step(&mut self) {
        self.commit = self.program.paint(&mut self.canvas);
    }

    /// What the last commit shows.
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            width: self.canvas.width(),
            height: self.canvas.height(),
            pixels: self.canvas.pixels(),
            damage: &self.commit.damage,
            scroll: self.commit.scroll,
        }
    }
}

impl std::fmt::Debug for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene")
            .field("canvas", &self.canvas)
            .field("commit", &self.commit)
            .finish_non_exhaustive()
    }
}

/// Something that paints.
trait Program {
    /// Paints the next commit.
    fn paint(&mut self, canvas: &mut Canvas) -> Commit;
}

#[derive(Debug, Default)]
struct Commit {
    damage: Vec<Rect>,
    scroll: Option<Scroll>,
}

impl Commit {
    fn of(damage: impl IntoIterator<Item = Rect>) -> Self {
        Self { damage: damage.into_iter().collect(), scroll: None }
    }
}

/// The program of a sequence, its first picture painted.
fn start(sequence: Sequence, canvas: &mut Canvas, random: &Random) -> Box<dyn Program> {
    match sequence {
        Sequence::Type => Box::new(typing::Typing::new(canvas, random)),
        Sequence::TypeWhole => Box::new(still::Whole::new(typing::Typing::new(canvas, random))),
        Sequence::Gtk => Box::new(widgets::Widgets::new(canvas, random)),
        Sequence::Term => Box::new(terminal::Terminal::new(canvas, random)),
        Sequence::Page => Box::new(page::Page::new(canvas, random)),
        Sequence::Video => Box::new(video::Video::new(canvas, random)),
        Sequence::Switch => Box::new(still::Turns::new(canvas, screens::all(random))),
        Sequence::Photo => Box::new(still::Turns::new(canvas, screens::photographs(random))),
        Sequence::Same | Sequence::Same4k => Box::new(still::Same::new(canvas, random)),
    }
}
