//! The carets that a window is known to have, and the search for where one is.
//!
//! The one invariant: at most [`MAX_CARETS`] are remembered, the present one among them.

use wayferry_pixels::{Content, Rect};

use crate::caret::Caret;
use crate::find::{self, Bootstrap};
use crate::line::Line;

/// The present caret first.
#[derive(Default)]
pub(crate) struct Carets {
    known: Vec<Caret>,
    bootstrap: Bootstrap,
}

impl Carets {
    /// The caret of the present line.
    pub(crate) fn present(&self) -> Option<&Caret> {
        self.known.first()
    }

    pub(crate) fn present_mut(&mut self) -> Option<&mut Caret> {
        self.known.first_mut()
    }

    /// Looks for a caret where the program says that it is, and then in what changed.
    pub(crate) fn search(&mut self, content: &Content, boxes: &[Rect], hint: Option<Rect>) -> Option<Line> {
        if let Some(line) = hint.and_then(|rect| self.hinted(content, rect)) {
            return Some(line);
        }
        let places = self.known.iter().map(|caret| find::search(content, caret, boxes));
        let (at, (x, y)) = places.enumerate().find_map(|(at, place)| Some((at, place?)))?;
        self.known[..=at].rotate_right(1);
        self.open(content, x, y)
    }

    /// The program says that the caret is there: is it?
    pub(crate) fn hinted(&mut self, content: &Content, rect: Rect) -> Option<Line> {
        let (caret, x, y) = find::hinted(content, rect)?;
        self.found(content, caret, x, y)
    }

    /// A key changed these: two such in a row show what the caret is.
    pub(crate) fn learn(&mut self, content: &Content, boxes: &[Rect]) -> Option<Line> {
        let (caret, x, y) = self.bootstrap.saw(content, boxes)?;
        self.found(content, caret, x, y)
    }

    fn found(&mut self, content: &Content, caret: Caret, x: u32, y: u32) -> Option<Line> {
        match self.known.iter().position(|known| known.is_like(&caret)) {
            Some(at) => self.known[..=at].rotate_right(1),
            None => {
                self.known.truncate(MAX_CARETS - 1);
                self.known.insert(0, caret);
            }
        }
        self.open(content, x, y)
    }

    /// The line of the present caret, which is there.
    fn open(&mut self, content: &Content, x: u32, y: u32) -> Option<Line> {
        let caret = self.known.first_mut()?;
        caret.grid = (x, y);
        let mut line = Line::open(content, caret, x, y)?;
        caret.remove(&mut line.strip, line.pen);
        Some(line)
    }

    /// A letter was written at `before`, and the caret is `now` left of there, on that line or below: lines end there.
    pub(crate) fn went(&mut self, before: (u32, u32), now: Option<(u32, u32)>) {
        let Some(caret) = self.known.first_mut() else { return };
        if now.is_some_and(|now| now.1 >= before.1 && now.0 < before.0) {
            let letter = caret.field.cell().unwrap_or(caret.height / 2);
            let end = before.0 + (letter + caret.width) as u32;
            caret.field.wrap = Some(caret.field.wrap.map_or(end, |wrap| wrap.min(end)));
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<Caret>()
            + self.known.iter().map(|caret| caret.field.bytes()).sum::<usize>()
    }

    /// The next key is not typed where the last one was.
    pub(crate) fn moved(&mut self) {
        self.bootstrap.forget();
        self.known.iter_mut().for_each(|caret| caret.field.replaces = false);
    }

    /// The surface has another size.
    pub(crate) fn resized(&mut self) {
        self.known.iter_mut().for_each(|caret| caret.field.wrap = None);
    }
}

/// Kinds of carets that are remembered for a window.
const MAX_CARETS: usize = 4;
