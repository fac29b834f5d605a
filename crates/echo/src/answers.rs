//! What a new content means: which keys it answers, what is learned of them, and where the caret is now.
//!
//! A content that some outstanding key may have caused is compared with the line as it would be after that key, the
//! newest first. One that agrees with none is a miss: the caret is looked for, and what is shown is taken back.
//!
//! The one invariant: after each content the line is as that content has it, or there is none.

use wayferry_pixels::{Content, Rect};

use crate::ahead::{Ahead, Verdict, is_letter, without_rules};
use crate::caret::{Caret, Kind};
use crate::engine::{Echo, Outstanding};
use crate::glyphs::{Glyphs, Place};
use crate::ink::ink_of;
use crate::key::{Does, Key};
use crate::line::Line;
use crate::plane::Plane;
use crate::shape::Shape;

impl Echo {
    /// The content changed inside of `boxes`; the first `count` outstanding keys may have done it.
    pub(crate) fn changed(&mut self, content: &Content, boxes: &[Rect], count: usize) {
        let (Some(line), Some(caret)) = (&self.line, self.carets.present()) else {
            // A film, perhaps; the caret is found again once a key is answered.
            if self.may_search() || count > 0 {
                self.look(content, boxes, count);
            }
            return;
        };
        let own = line.on_surface(&(line.pen..line.pen + caret.width));
        if boxes.iter().all(|rect| own.contains(*rect)) {
            // The caret blinks.
            return;
        }
        if self.outstanding.iter().take(count).any(|outstanding| outstanding.key.does() == Does::Ends) {
            return self.look(content, boxes, count);
        }
        let touched: Vec<Rect> = boxes.iter().filter_map(|rect| rect.intersection(line.rect)).collect();
        if touched.is_empty() {
            return;
        }
        let Some(actual) = Plane::read(content, line.rect) else {
            return self.lose();
        };
        let agrees = |count: usize| {
            let keys = self.outstanding.iter().take(count).map(|outstanding| outstanding.key);
            let ahead = Ahead::of(line, keys, caret, &self.glyphs)?;
            let verdict = ahead.judge(&actual, &touched, caret, &self.glyphs)?;
            Some((count, ahead, verdict))
        };
        if let Some((count, ahead, verdict)) = (1..=count).rev().find_map(agrees) {
            return self.accept(content, &actual, count, ahead, verdict);
        }
        let is_elsewhere = !touched.iter().any(|rect| rect.intersects(own));
        if (count == 0 || is_elsewhere) && caret.is_at(&actual, line.pen) {
            self.refresh(actual);
        } else if count != 1 || !self.wrote_here(content, &actual, &touched) {
            self.look(content, boxes, count);
        }
    }

    /// The program has said where its caret is: is it there in this content? Where it is known to be, that is no news.
    pub(crate) fn heed(&mut self, content: &Content) {
        let Some(rect) = self.hint else { return };
        if let (Some(line), Some(caret)) = (&self.line, self.carets.present()) {
            self.hint = Some(rect).filter(|rect| line.corner(caret) != (rect.x, rect.y));
        } else if self.may_search() {
            self.line = self.carets.hinted(content, rect);
        }
    }

    /// Whether the caret may be looked for once more before the next key.
    fn may_search(&mut self) -> bool {
        self.searches = self.searches.saturating_add(1);
        self.searches <= MAX_SEARCHES
    }

    /// The first `count` keys did what was predicted.
    fn accept(&mut self, content: &Content, actual: &Plane, count: usize, ahead: Ahead, verdict: Verdict) {
        let keys = self.done_with(count, true);
        let (Some(before), Some(caret)) = (self.line.take(), self.carets.present_mut()) else { return };
        if let Some(replaces) = ahead.replaces(&before, actual, caret, &self.glyphs) {
            caret.field.replaces = replaces;
        }
        let is_judged = keys.iter().any(|key| key.is_shown) || self.confidence.has_credit();
        if is_judged && ahead.only_writes() && !ahead.has_unknown() {
            caret.field.judged(true);
        }
        // Letters behind the pen became others: a field that shows only the last one, for a moment.
        let pen = before.pen.min(ahead.line.pen).saturating_sub(BESIDE);
        let is_other_text = has_other_shape(&before.strip, actual, pen);
        let Ahead { mut line, steps } = ahead;
        if steps.iter().any(|step| step.cell.is_some()) {
            caret.field.saw(line.along, line.column());
        }
        if steps.iter().all(|step| step.cell.is_some()) {
            let mut after = before.after;
            for (Outstanding { key, epoch, .. }, cell) in
                keys.iter().map(|key| &**key).zip(steps.into_iter().filter_map(|step| step.cell))
            {
                let credit = (verdict == Verdict::Right).then_some(*epoch);
                let place = Place { after: after.replace(*key), ..cell.place };
                let ink = self.learn(*key, &actual.cut(cell.columns), place, credit);
                line.ink = ink.or(line.ink);
            }
        }
        self.settle(content, line, actual);
        if is_other_text {
            self.doubt();
        }
    }

    /// The line is `line` now: its pen is right, and what is below its caret.
    fn settle(&mut self, content: &Content, mut line: Line, actual: &Plane) {
        let Some(caret) = self.carets.present_mut() else { return };
        let below = below(&line, actual, caret, &self.glyphs);
        line.strip = actual.clone();
        line.unknown = None;
        self.line = if line.is_near_end() { line.read_again(content, caret) } else { Some(line) };
        match (&mut self.line, below) {
            (Some(line), Some(below)) => line.strip.paste(line.pen, &below),
            (Some(line), None) => caret.remove(&mut line.strip, line.pen),
            (None, _) => {}
        }
    }

    /// The line changed, but not at the caret, or not by a key.
    fn refresh(&mut self, actual: Plane) {
        let (Some(mut line), Some(caret)) = (self.line.take(), self.carets.present_mut()) else { return };
        let below = below(&line, &actual, caret, &self.glyphs);
        let is_other_text = has_other_shape(&line.strip, &actual, line.pen);
        line.strip = actual;
        match below {
            Some(below) => line.strip.paste(line.pen, &below),
            None => caret.remove(&mut line.strip, line.pen),
        }
        self.line = Some(line);
        if is_other_text {
            self.doubt();
        }
    }

    /// Whether the one key that is answered wrote a letter where the pen was; if so, it is learned.
    fn wrote_here(&mut self, content: &Content, actual: &Plane, touched: &[Rect]) -> bool {
        let (Some(line), Some(caret)) = (&self.line, self.carets.present()) else { return false };
        let Some(key) = self.outstanding.front().map(|outstanding| outstanding.key) else { return false };
        let Some(pen) = new_pen(line, caret, actual, touched).filter(|_| key.does() == Does::Text) else {
            return false;
        };
        let ahead = Ahead::of(line, [key].into_iter(), caret, &self.glyphs);
        let predicted = ahead.filter(|ahead| !ahead.has_unknown());
        let (cell, place, along) = (line.pen..pen, line.place(caret), line.along.on(1));
        let own = line.on_surface(&(line.pen..line.pen + caret.width));
        let was_there = actual.equal(&line.strip, cell.clone());
        let is_shown = self.done_with(1, false).iter().any(|outstanding| outstanding.is_shown);
        if let Some(ahead) = predicted {
            self.contradicted(&ahead, actual.cut(cell.clone()), is_shown);
        }
        if let Some(caret) = self.carets.present_mut() {
            caret.field.advanced(key, cell.len());
            caret.field.passed(own.x + cell.len() as u32 + own.width);
            caret.field.saw(along, own.x + cell.len() as u32);
        }
        // A caret that only moved over what was there wrote nothing.
        let writes = !was_there || key.is_space();
        let ink = writes.then(|| self.learn(key, &actual.cut(cell.clone()), place, None)).flatten();
        let (Some(mut line), Some(caret)) = (self.line.take(), self.carets.present_mut()) else {
            return true;
        };
        line.wrote(Some(key), cell.len());
        line.ink = ink.or(line.ink);
        line.strip = actual.clone();
        caret.remove(&mut line.strip, line.pen);
        self.settle(content, line, actual);
        true
    }

    /// One key, whose letter was known, has `drawn` something else, or elsewhere.
    fn contradicted(&mut self, predicted: &Ahead, drawn: Plane, was_shown: bool) {
        let cells = predicted.cells();
        let own = cells.first().map(|own| predicted.line.strip.cut(own.columns.clone()));
        // Elsewhere it may be the same letter.
        if !own.is_some_and(|own| is_letter(own, drawn)) {
            self.confidence.drew_another();
        }
        let is_judged = was_shown || self.confidence.has_credit();
        if is_judged { self.failed() } else { self.doubt() }
    }

    /// `key` drew this; with credit for an epoch, as was predicted. Gives the ink of a letter that shows it.
    fn learn(&mut self, key: Key, picture: &Plane, place: Place, credit: Option<u32>) -> Option<u32> {
        let caret = self.carets.present()?;
        if picture.pixels().len() > MAX_CELL {
            return None;
        }
        let Some(shape) = Shape::of(picture, 0..picture.width()) else {
            if key.is_space() {
                self.glyphs.learn(caret, key, picture, place, false);
            }
            return None;
        };
        if self.confidence.drew(key, shape.clone()) {
            self.glyphs.forget_like(&shape);
            return None;
        }
        let was_proven = self.glyphs.learn(caret, key, picture, place, self.confidence.is_confirmed());
        if let Some(epoch) = credit.filter(|_| !key.is_space()) {
            self.confidence.came_true(epoch, shape, was_proven);
        }
        let ink = ink_of(picture, place.paper)?;
        let inked = picture.pixels().iter().filter(|pixel| **pixel != place.paper).count();
        let is_full = inked * 8 > picture.pixels().len();
        is_full.then(|| {
            self.glyphs.inks.saw(ink, place.paper);
            ink
        })
    }

    /// The content agrees with nothing: where is the caret now? The first `count` keys are done with.
    fn look(&mut self, content: &Content, boxes: &[Rect], count: usize) {
        let keys = self.done_with(count, false);
        let typed = keys.first().map(|outstanding| outstanding.key).filter(|key| key.does() == Does::Text);
        let ends = keys.iter().any(|outstanding| outstanding.key.does() == Does::Ends);
        if !ends && keys.iter().any(|outstanding| outstanding.is_shown) {
            self.failed();
        } else if !ends {
            self.doubt();
        }
        let before = self.line.take().zip(self.carets.present()).map(|(line, caret)| line.corner(caret));
        self.line = self.carets.search(content, boxes, self.hint.take());
        if keys.len() == 1 && keys[0].key.is_return() {
            self.returned(before);
        }
        if typed.is_none() || keys.len() != 1 {
            return;
        }
        if self.line.is_none() {
            self.line = self.carets.learn(content, boxes);
        } else if let (Some(before), Some(line)) = (before, &self.line) {
            let now = self.carets.present().map(|caret| line.corner(caret));
            self.carets.went(before, now);
        }
    }

    /// Return moved the caret from there to where it is now.
    fn returned(&mut self, before: Option<(u32, u32)>) {
        let height = self.carets.present().map_or(0, |caret| caret.height as u32);
        let begun = self.line.as_ref().filter(|line| line.is_blank_before()).zip(self.carets.present());
        let now = begun.map(|(line, caret)| line.corner(caret));
        if self.text.returned(before, now, height) {
            self.confidence.runs_on();
        }
    }
}

/// What is below the caret of a line, if it is what the line says; a caret hides some of it.
fn below(line: &Line, actual: &Plane, caret: &Caret, glyphs: &Glyphs) -> Option<Plane> {
    let columns = line.pen..line.pen + caret.width;
    // Beside a bar the rest of the letter is seen.
    let seen = columns.start..(columns.end + BESIDE).min(actual.width());
    let (drawn, actual) = (line.picture(&seen, caret, glyphs), actual.cut(seen));
    let shape = |plane: &Plane| Shape::of(plane, 0..caret.width);
    let is_alike = || shape(&drawn).zip(shape(&actual)).is_some_and(|(a, b)| a.likeness(&b) > SAME_TEXT);
    let is_below = drawn.pixels() == actual.pixels() || (caret.kind == Kind::Block && is_alike());
    is_below.then(|| line.strip.cut(columns))
}

/// Where the pen is after one letter: a cell further, at the end of what changed, or wherever a caret appeared.
fn new_pen(line: &Line, caret: &Caret, actual: &Plane, touched: &[Rect]) -> Option<usize> {
    let reach = (line.pen + 3 * caret.height).min(actual.width().saturating_sub(caret.width));
    let cell = caret.field.cell().map(|cell| line.pen + cell);
    let own = line.on_surface(&(line.pen..line.pen + caret.width));
    let changed = touched.iter().find(|rect| rect.x <= own.right() && rect.right() >= own.x)?;
    let end = (changed.right() - line.rect.x) as usize;
    let end = end.checked_sub(caret.width);
    let all = line.pen + 1..if caret.field.is_fixed() { 0 } else { reach };
    let appeared =
        |x: &usize| *x > line.pen && *x <= reach && caret.is_at(actual, *x) && !caret.is_at(&line.strip, *x);
    cell.into_iter().chain(end).chain(all).find(appeared)
}

/// Whether other letters are left of the pen than were there; in other colours they are the same.
fn has_other_shape(before: &Plane, after: &Plane, pen: usize) -> bool {
    let differs = |x: &usize| !before.equal(after, *x..*x + 1);
    let (Some(first), Some(last)) = ((0..pen).find(differs), (0..pen).rev().find(differs)) else {
        return false;
    };
    let (mut before, mut after) = (before.cut(first..last + 1), after.cut(first..last + 1));
    without_rules(&mut before, &mut after);
    let shape = |plane: &Plane| Shape::of(plane, 0..plane.width());
    !shape(&before).zip(shape(&after)).is_some_and(|(before, after)| before.likeness(&after) > SAME_TEXT)
}

/// Columns beside a caret that show whether a letter is there.
const BESIDE: usize = 2;

/// Contents in which the caret is looked for until the next key.
const MAX_SEARCHES: u32 = 64;

/// Pixels of the largest cell that is learned.
const MAX_CELL: usize = 4096;

/// Likeness from which a line has the same letters.
const SAME_TEXT: f32 = 0.85;
