//! The predictor: keys and contents in, pictures out.
//!
//! Keys are outstanding from their press until a content answers them, or the caller says that none will. The line is
//! what the last content has; what outstanding keys will make of it is worked out anew after every input, so nothing
//! that was only predicted is ever built upon. What a content means for keys and line is in `answers.rs`.
//!
//! The one invariant: a key is shown only if the keys before it are, and no more than [`MAX_SHOWN`] letters at once.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::{Content, Format, Rect, Region, Size};
use zeroize::Zeroize;

use crate::ahead::Ahead;
use crate::carets::Carets;
use crate::confidence::Confidence;
use crate::find;
use crate::glyphs::Glyphs;
use crate::key::{Does, Key, KeyId};
use crate::line::{Cell, Line};
use crate::overlay::{Mark, Marked, Overlay, Show};
use crate::text::Text;

/// Predicts one surface.
#[derive(Default)]
pub struct Echo {
    seen: Option<(Size, Format)>,
    pub(crate) carets: Carets,
    pub(crate) line: Option<Line>,
    pub(crate) glyphs: Glyphs,
    pub(crate) confidence: Confidence,
    pub(crate) text: Text,
    /// Each in a place of its own, for a queue moves what it holds and leaves copies behind.
    pub(crate) outstanding: VecDeque<Box<Outstanding>>,
    /// Contents in which the caret was looked for since the last key.
    pub(crate) searches: u32,
    /// The last key's number, and the layout then.
    last: Option<(KeyId, u8)>,
    pub(crate) hint: Option<Rect>,
    is_sensitive: bool,
    is_drawn: bool,
    figures: Figures,
}

/// A key without an answer.
pub(crate) struct Outstanding {
    pub(crate) id: KeyId,
    pub(crate) key: Key,
    pub(crate) at: Duration,
    pub(crate) epoch: u32,
    pub(crate) is_shown: bool,
    /// It has been shown since it was pressed.
    was_shown: bool,
}

/// What became of keys: numbers alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Shown before they were answered, and answered as they looked.
    pub right: u64,
    /// Shown, and answered otherwise or not at all.
    pub wrong: u64,
    /// Not shown.
    pub held: u64,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// The last key that the program had been given before it made a content, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered(pub Option<KeyId>);

/// What a program says of the field that has the focus, as `zwp_text_input_v3.set_content_type` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing that forbids predicting; programs say so of password fields too.
    Normal,
    /// A password, a PIN, hidden text, sensitive data: nothing is predicted, and all that was learned is forgotten.
    Sensitive,
}

impl Echo {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A key was pressed, or repeated, at `now`. Keys whose id is not greater than the last one's are ignored.
    ///
    /// While a letter is composed of several keys, or by an input method, call [`Self::disturbed`] instead.
    pub fn key(&mut self, now: Duration, id: KeyId, key: Key) -> Option<Show> {
        let last = self.last;
        if key.does() == Does::Nothing || self.is_sensitive || last.is_some_and(|(last, _)| id <= last) {
            return None;
        }
        self.expire(now);
        (self.last, self.searches) = (Some((id, key.group)), 0);
        if key.does() == Does::Ends || last.is_some_and(|(_, group)| group != key.group) {
            self.text.left(key, self.confidence.is_confirmed());
            self.confidence.begin();
            self.carets.moved();
        }
        if self.outstanding.len() == MAX_OUTSTANDING {
            // What the oldest one does cannot be told from what the others do any more.
            self.done_with(1, false);
            self.lose();
        }
        let epoch = self.confidence.epoch();
        let (is_shown, was_shown) = (false, false);
        self.outstanding.push_back(Box::new(Outstanding { id, key, at: now, epoch, is_shown, was_shown }));
        self.show()
    }

    /// The surface has this content at `now`, which differs from the one before inside `damage` alone. `answered` says
    /// which keys it may be the answer to.
    pub fn content(
        &mut self,
        now: Duration,
        content: &Content,
        damage: &Region,
        answered: Answered,
    ) -> Option<Show> {
        if self.is_sensitive {
            return None;
        }
        self.expire(now);
        let seen = (content.size(), content.format());
        if self.seen.replace(seen).is_some_and(|before| before != seen) {
            self.interrupt();
            self.carets.resized();
        }
        let count = self.outstanding.iter().take_while(|key| Some(key.id) <= answered.0).count();
        let boxes = find::boxes(&damage.clip(content.size()));
        if !boxes.is_empty() {
            self.changed(content, &boxes, count);
        }
        self.show()
    }

    /// All keys up to this one have been with the program for so long at `now` that it will not answer them any more.
    pub fn late(&mut self, now: Duration, id: KeyId) -> Option<Show> {
        self.expire(now);
        while let Some(key) = self.outstanding.front().filter(|key| key.id <= id) {
            let (does, was_shown) = (key.key.does(), key.is_shown);
            self.done_with(1, false);
            if does == Does::Text {
                self.confidence.unanswered();
            }
            if was_shown {
                self.failed();
            }
        }
        self.show()
    }

    /// The program says that its caret is in `rect`, in pixels of the surface's buffer, and what its field is for. The
    /// surface shows `content`; the caret may be in that, or in the next one.
    pub fn hint(&mut self, content: &Content, rect: Rect, purpose: Purpose) -> Option<Show> {
        if purpose == Purpose::Sensitive {
            let show = self.forget();
            self.is_sensitive = true;
            return show;
        }
        self.is_sensitive = false;
        self.hint = Some(rect);
        self.heed(content);
        None
    }

    /// Something else than keys came between: a button of a pointer, another focus, another state of the window, text
    /// of an input method, film in the surface. Nothing is shown until two letters came true again.
    pub fn disturbed(&mut self) -> Option<Show> {
        self.interrupt();
        self.show()
    }

    /// Forgets all that was learned, as when the focus goes to another program or the display leaves.
    pub fn forget(&mut self) -> Option<Show> {
        let is_drawn = self.is_drawn;
        *self = Self::new();
        is_drawn.then_some(Show::Clear)
    }

    /// When [`Self::timeout_passed`] is to be called, unless something else is before.
    pub fn timeout(&self) -> Option<Duration> {
        self.outstanding.front().map(|key| key.at + GIVE_UP)
    }

    /// It is `now`: keys of which nothing was heard for long are given up.
    pub fn timeout_passed(&mut self, now: Duration) -> Option<Show> {
        self.expire(now);
        self.show()
    }

    /// The strip of the surface in which what is drawn lies, until the next content or [`Self::forget`]; none while the
    /// line is not known.
    pub fn strip(&self) -> Option<Rect> {
        self.line.as_ref().map(|line| line.rect)
    }

    /// What became of the keys so far.
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Bytes that are kept for this surface.
    pub fn memory(&self) -> usize {
        let line = self.line.as_ref().map_or(0, Line::bytes);
        let outstanding = self.outstanding.capacity() * (size_of::<Outstanding>() + size_of::<usize>());
        let learned = self.glyphs.bytes() + self.carets.bytes() + self.confidence.bytes();
        learned + line + outstanding + size_of::<Self>()
    }

    /// The first keys are outstanding no more.
    #[expect(clippy::vec_box, reason = "moving them out of their places would leave copies behind")]
    pub(crate) fn done_with(&mut self, count: usize, is_right: bool) -> Vec<Box<Outstanding>> {
        let keys: Vec<_> = self.outstanding.drain(..count).collect();
        for key in &keys {
            let figure = match (key.was_shown, is_right) {
                (true, true) => &mut self.figures.right,
                (true, false) => &mut self.figures.wrong,
                (false, _) => &mut self.figures.held,
            };
            *figure += 1;
        }
        keys
    }

    fn interrupt(&mut self) {
        self.done_with(self.outstanding.len(), false);
        self.text.ended();
        self.confidence.begin();
        self.carets.moved();
        (self.line, self.hint) = (None, None);
    }

    fn expire(&mut self, now: Duration) {
        if self.timeout().is_some_and(|at| at <= now) {
            self.interrupt();
        }
    }

    /// A prediction that was shown is not what the program did.
    pub(crate) fn failed(&mut self) {
        if let Some(caret) = self.carets.present_mut() {
            caret.field.judged(false);
        }
        self.doubt();
    }

    /// The program did not go on as it did: a new epoch, and what is shown is taken back.
    pub(crate) fn doubt(&mut self) {
        self.confidence.doubt();
        self.outstanding.iter_mut().for_each(|key| key.is_shown = false);
        if let Some(line) = &mut self.line {
            line.ink = None;
        }
    }

    /// Where the caret is is not known any more.
    pub(crate) fn lose(&mut self) {
        self.doubt();
        self.line = None;
    }

    /// What is to be drawn now: nothing new where nothing was and nothing is.
    fn show(&mut self) -> Option<Show> {
        let overlay = self.overlay();
        let was_drawn = std::mem::replace(&mut self.is_drawn, overlay.is_some());
        overlay.map(Show::Overlay).or(was_drawn.then_some(Show::Clear))
    }

    /// The line after all keys that may be shown: none after one that may not.
    fn overlay(&mut self) -> Option<Overlay> {
        let before: Vec<bool> =
            self.outstanding.iter_mut().map(|key| std::mem::take(&mut key.is_shown)).collect();
        let (line, caret) = (self.line.as_ref()?, self.carets.present()?);
        if self.confidence.is_quiet() || !caret.field.is_trusted() {
            return None;
        }
        let mut ahead = Ahead { line: line.clone(), steps: Vec::new() };
        let mut letters = 0;
        for (key, was_shown) in self.outstanding.iter_mut().zip(before) {
            letters += usize::from(key.key.does() == Does::Text);
            if letters > MAX_SHOWN || !(was_shown || self.confidence.may_show(key.epoch)) {
                break;
            }
            let Some(step) = ahead.line.apply(key.key, caret, &self.glyphs) else { break };
            ahead.steps.push(step);
            (key.is_shown, key.was_shown) = (true, true);
        }
        let last = self.outstanding.get(ahead.steps.len().checked_sub(1)?)?.id;
        let since = self.outstanding.front()?.at;
        let columns = ahead.columns();
        let pixels = ahead.line.picture(&columns, caret, &self.glyphs).into_pixels();
        let kind = |is_unknown| if is_unknown { Marked::Unknown } else { Marked::Letter };
        let mark = |cell: Cell| Mark { rect: line.on_surface(&cell.columns), kind: kind(cell.is_unknown) };
        let marks = ahead.cells().into_iter().map(mark).collect();
        Some(Overlay { rect: line.on_surface(&columns), pixels, marks, last, since })
    }
}

/// Bytes that are kept for one surface.
pub const MAX_MEMORY: usize = 224 << 10;

/// Keys without an answer that are remembered; before one more the oldest is given up.
pub const MAX_OUTSTANDING: usize = 32;

/// Letters that are shown before they are answered. What is typed ahead of a hidden prompt is no more than these.
pub const MAX_SHOWN: usize = 3;

/// How long a key is outstanding when neither an answer nor its lateness is told.
const GIVE_UP: Duration = Duration::from_secs(30);
