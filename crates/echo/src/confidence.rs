//! When predictions may be shown: the epochs, after mosh, with credit for distinct shapes alone.
//!
//! An epoch is a stretch of typing during which a program is expected to go on as it does. Within one, predictions are
//! made in silence until [`ENOUGH`] letters of different shapes came true; a password prompt never gets there, for it
//! draws nothing, or one shape. Keys that are not answered, and letters that look otherwise than before, end showing
//! until the epoch ends. In running text (`text.rs`) one letter is enough, if it looks as it did where all was
//! confirmed.
//!
//! The one invariant: nothing may be shown in an epoch before [`ENOUGH`] distinct shapes were confirmed in it, or one
//! that is proven where text runs on.

use crate::key::Key;
use crate::masked::Masked;
use crate::shape::Shape;

/// The present epoch.
#[derive(Default)]
pub(crate) struct Confidence {
    epoch: u32,
    confirmed: Vec<Shape>,
    /// The epoch is a line of running text, in which no prediction has failed.
    runs_on: bool,
    /// A letter came true as it was drawn in a confirmed epoch before.
    is_proven: bool,
    unanswered: u32,
    others: u32,
    masked: Masked,
}

impl Confidence {
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A prediction failed, or the line changed by itself: what was confirmed counts no more.
    pub(crate) fn doubt(&mut self) {
        self.epoch += 1;
        self.confirmed.clear();
        (self.runs_on, self.is_proven) = (false, false);
    }

    /// The user did something else: a new epoch for everything.
    pub(crate) fn begin(&mut self) {
        *self = Self { epoch: self.epoch + 1, ..Self::default() };
    }

    /// The epoch is one more line of running text.
    pub(crate) fn runs_on(&mut self) {
        self.runs_on = true;
    }

    /// A key of `epoch` drew what was predicted; what that is was proven, or not.
    pub(crate) fn came_true(&mut self, epoch: u32, shape: Shape, is_proven: bool) {
        self.is_proven |= is_proven && epoch == self.epoch;
        let is_new = !self.confirmed.iter().any(|known| known.is_like(&shape));
        if epoch == self.epoch && is_new && self.confirmed.len() < ENOUGH {
            self.confirmed.push(shape);
        }
    }

    /// A key drew this, predicted or not. Says whether the field is masked.
    pub(crate) fn drew(&mut self, key: Key, shape: Shape) -> bool {
        self.unanswered = if self.is_silent() { self.unanswered } else { 0 };
        self.masked.drew(key, shape)
    }

    /// A key that should have written something wrote nothing.
    pub(crate) fn unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// A key that is known drew another shape than it ever did.
    pub(crate) fn drew_another(&mut self) {
        self.others += 1;
    }

    /// Whether a prediction of `epoch` may be shown.
    pub(crate) fn may_show(&self, epoch: u32) -> bool {
        epoch == self.epoch && (self.is_confirmed() || (self.runs_on && self.is_proven)) && !self.is_quiet()
    }

    /// Whether enough letters of this epoch came true.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.len() >= ENOUGH
    }

    /// Whether nothing is even predicted until the epoch ends.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_silent() || self.masked.is_masked() || self.others >= OTHERS
    }

    /// Whether a prediction of this epoch came true.
    pub(crate) fn has_credit(&self) -> bool {
        !self.confirmed.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.confirmed.iter().map(Shape::bytes).sum::<usize>() + self.masked.bytes()
    }

    fn is_silent(&self) -> bool {
        self.unanswered >= SILENT
    }
}

/// Distinct shapes that must have come true.
const ENOUGH: usize = 2;

/// Keys that drew another shape than they ever did, after which what a field draws are no letters.
const OTHERS: u32 = 3;

/// Keys without an answer after which the program is taken to be silent.
const SILENT: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::Plane;

    fn shape(top: usize) -> Shape {
        let mut cell = Plane::filled(8, 16, 0xff00_0000);
        cell.fill(1..7, top..top + 3, 0xffff_ffff);
        Shape::of(&cell, 0..8).expect("ink")
    }

    #[test]
    fn one_shape_often_is_not_enough() {
        let mut confidence = Confidence::default();
        (0..9).for_each(|_| confidence.came_true(0, shape(2), true));
        assert!(!confidence.may_show(0));
        confidence.came_true(0, shape(8), true);
        assert!(confidence.may_show(0));
        confidence.doubt();
        assert!(!confidence.may_show(0) && !confidence.may_show(1));
    }

    #[test]
    fn what_came_true_in_an_epoch_before_counts_no_more() {
        let mut confidence = Confidence::default();
        confidence.begin();
        confidence.came_true(0, shape(2), true);
        confidence.came_true(0, shape(8), true);
        assert!(!confidence.may_show(1));
    }

    #[test]
    fn where_text_runs_on_one_proven_shape_is_enough_until_one_fails() {
        let mut confidence = Confidence::default();
        confidence.runs_on();
        confidence.came_true(0, shape(2), false);
        assert!(!confidence.may_show(0), "seen before, but proven never");
        confidence.came_true(0, shape(2), true);
        assert!(confidence.may_show(0));
        confidence.doubt();
        confidence.came_true(1, shape(2), true);
        assert!(!confidence.may_show(1));
    }

    #[test]
    fn letters_that_look_otherwise_than_ever_end_it_until_the_next_epoch() {
        let mut confidence = Confidence::default();
        (0..3).for_each(|_| {
            assert!(!confidence.is_quiet());
            confidence.drew_another();
        });
        confidence.came_true(0, shape(2), true);
        confidence.came_true(0, shape(8), true);
        assert!(confidence.is_quiet() && !confidence.may_show(0));
        confidence.begin();
        assert!(!confidence.is_quiet());
    }

    #[test]
    fn keys_without_an_answer_end_it_until_the_next_epoch() {
        let mut confidence = Confidence::default();
        (0..2).for_each(|_| confidence.unanswered());
        assert!(!confidence.is_quiet());
        confidence.drew(Key { code: 30, modifiers: 0, group: 0 }, shape(2));
        (0..3).for_each(|_| confidence.unanswered());
        assert!(confidence.is_quiet());
        confidence.drew(Key { code: 30, modifiers: 0, group: 0 }, shape(2));
        confidence.doubt();
        assert!(confidence.is_quiet(), "an answer after that, or a doubt, ends no silence");
        confidence.begin();
        assert!(!confidence.is_quiet());
    }
}
