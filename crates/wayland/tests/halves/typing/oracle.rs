//! Looks at what the compositor shows after everything that happens, and judges predictions by that alone.
//!
//! A letter that is drawn before the window has it came true if the window has it when it is drawn no more. It was
//! wrong if the window has another one there then, and taken back if it has none. Invariant: nothing that the halves
//! say of themselves is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use wayferry_proto::Time;

use super::screen::{At, CELL, COLUMNS, Cells, LINES};
use super::terminal::{Does, LETTERS};
use crate::compositor::Compositor;

/// Letters that are drawn at once.
const MAX_DRAWN: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    window: Cells,
    /// Pictures of the window so far.
    pictures: usize,
    /// Letters that are drawn, and since when.
    drawn: BTreeMap<At, (u32, Time)>,
    /// Different letters that came to the window since something drawn was wrong.
    came: BTreeSet<u32>,
    /// Letters that came true, pictures that were wrong, letters taken back, and how long the longest was drawn.
    pub(crate) right: usize,
    pub(crate) wrong: usize,
    pub(crate) back: usize,
    pub(crate) longest: Duration,
}

impl Oracle {
    /// # Panics
    /// If what is drawn must not be.
    pub(crate) fn look(&mut self, now: Time, compositor: &Compositor) {
        let Some(pixels) = compositor.window_pixels() else { return };
        if pixels.len() != COLUMNS * CELL.0 * LINES * CELL.1 * 4 {
            return;
        }
        let pictures = compositor.logs[0].len();
        let is_one = pictures <= self.pictures + 1;
        if pictures != self.pictures {
            self.pictures = pictures;
            self.see(Cells::of(pixels));
        }
        let sheets = compositor.sheets();
        assert!(sheets.len() <= 1, "two pictures over one window");
        let drawn = sheets.first().map(|over| Cells::over(over.at, over.width, &over.pixels));
        self.check_hidden(drawn.is_some());
        self.judge(now, &drawn.unwrap_or_default(), is_one);
    }

    /// Nothing is drawn.
    pub(crate) fn is_clear(&self) -> bool {
        self.drawn.is_empty()
    }

    /// Another display is there, and knows nothing.
    pub(crate) fn forget(&mut self) {
        let Self { right, wrong, back, longest, .. } = *self;
        *self = Self { right, wrong, back, longest, ..Self::default() };
    }

    fn see(&mut self, window: Cells) {
        let new = window.glyphs().filter(|(at, glyph)| self.window.glyph(*at) != Some(*glyph));
        self.came.extend(new.map(|(_, glyph)| glyph).filter(|glyph| LETTERS.contains(glyph)));
        self.window = window;
    }

    fn check_hidden(&self, is_drawn: bool) {
        let prompt = self.window.line().and_then(|line| self.window.glyph((0, line)));
        let hidden = Does::ALL.into_iter().find(|does| does.is_hidden() && Some(does.prompt()) == prompt);
        assert!(hidden.is_none() || !is_drawn, "something is drawn where a program {hidden:?}");
    }

    fn judge(&mut self, now: Time, drawn: &Cells, is_one: bool) {
        let is_right = |at: &At, glyph: u32| self.window.glyph(*at) == Some(glyph);
        let new: BTreeMap<At, u32> = drawn.glyphs().filter(|(at, glyph)| !is_right(at, *glyph)).collect();
        let gone = |(at, (glyph, _)): &(&At, &(u32, Time))| new.get(*at) != Some(glyph);
        let mut wrong = 0;
        for (at, (glyph, _)) in self.drawn.iter().filter(gone) {
            match self.window.glyph(*at) {
                Some(seen) if seen == *glyph => self.right += 1,
                Some(_) => wrong += 1,
                None => self.back += 1,
            }
        }
        if wrong > 0 {
            self.wrong += 1;
            assert!(new.is_empty() || !is_one, "{new:?} is still drawn where something was wrong");
            if is_one {
                // Of several pictures at once it cannot be said what came after the one that was wrong.
                self.came.clear();
            }
        }
        let before = std::mem::take(&mut self.drawn);
        for (at, glyph) in new {
            let since = before.get(&at).filter(|(old, _)| *old == glyph).map(|(_, since)| *since);
            assert!(since.is_some() || self.came.len() >= 2, "drawn after {:?} came true", self.came);
            let since = since.unwrap_or(now);
            self.longest = self.longest.max(now.since(since));
            self.drawn.insert(at, (glyph, since));
        }
        assert!(self.drawn.len() <= MAX_DRAWN, "{:?} are drawn at once", self.drawn);
    }
}
