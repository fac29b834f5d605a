//! What was learned of the fields that have one kind of caret: how far keys move it, and whether predictions are right.
//!
//! The one invariant: a field that was often predicted wrong is left alone.

use std::collections::VecDeque;

use zeroize::Zeroizing;

use crate::key::Key;
use crate::pitch::{Along, Pitch};

/// A field, or several that look alike.
pub(crate) struct Field {
    /// The advance of all letters, as far as is known, and how many different keys had it.
    cell: Option<usize>,
    agreed: Zeroizing<Vec<Key>>,
    /// The caret is as wide as a cell.
    is_fixed: bool,
    /// Two letters had different advances.
    is_uneven: bool,
    /// The column of the surface which no caret passes: lines are wrapped or scrolled before.
    pub(crate) wrap: Option<u32>,
    /// Whether letters replace those right of the caret instead of moving them.
    pub(crate) replaces: bool,
    /// How wide its letters are, if by a fraction of a pixel.
    pub(crate) pitch: Pitch,
    /// Which of the last predictions came true.
    history: VecDeque<bool>,
}

impl Field {
    pub(crate) fn new(cell: Option<usize>) -> Self {
        let agreed = Zeroizing::new(Vec::with_capacity(AGREED));
        Self {
            cell,
            is_fixed: cell.is_some(),
            agreed,
            is_uneven: false,
            wrap: None,
            replaces: false,
            pitch: Pitch::default(),
            history: VecDeque::new(),
        }
    }

    /// The advance of every letter; `None` where it is not known to be the same.
    pub(crate) fn cell(&self) -> Option<usize> {
        let is_known = self.is_fixed || (!self.is_uneven && self.agreed.len() >= AGREED);
        self.cell.filter(|_| is_known)
    }

    /// Whether letters are not equally wide: what is next to one may change its place.
    pub(crate) fn is_proportional(&self) -> bool {
        self.is_uneven && !self.is_fixed && !self.pitch.is_known()
    }

    /// Whether the caret is as wide as a cell.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// `key` moved the caret so far.
    pub(crate) fn advanced(&mut self, key: Key, advance: usize) {
        let cell = *self.cell.get_or_insert(advance);
        self.is_uneven |= cell != advance;
        self.pitch.advanced(key, advance);
        if cell == advance && self.agreed.len() < AGREED && !self.agreed.contains(&key) {
            self.agreed.push(key);
        }
    }

    /// A caret was seen there, in this column of the surface.
    pub(crate) fn saw(&mut self, along: Along, column: u32) {
        let was_known = self.pitch.is_known();
        self.pitch.saw(along, column);
        if !was_known && self.pitch.is_known() {
            // What was predicted before says nothing of what will be.
            self.history.clear();
        }
    }

    /// How far a letter moves the caret from there, in this column of the surface, where all letters are equally wide.
    pub(crate) fn advance(&self, along: Along, column: u32) -> Option<usize> {
        let fraction = || self.pitch.column(along.on(1))?.checked_sub(column).map(|columns| columns as usize);
        self.cell().or_else(fraction).filter(|columns| *columns > 0)
    }

    /// A letter and the caret after it end at this column: no line is wrapped before.
    pub(crate) fn passed(&mut self, column: u32) {
        self.wrap = self.wrap.filter(|wrap| *wrap > column);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.agreed.capacity() * size_of::<Key>() + self.history.capacity() + self.pitch.bytes()
    }

    /// A prediction came true, or did not.
    pub(crate) fn judged(&mut self, is_right: bool) {
        self.history.push_back(is_right);
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    /// Whether enough of the last predictions came true: of letters that are not equally wide, all but one.
    pub(crate) fn is_trusted(&self) -> bool {
        let right = self.history.iter().filter(|is_right| **is_right).count();
        if self.is_proportional() {
            return self.history.len() >= FIRST && right + 1 >= self.history.len();
        }
        self.history.len() < FIRST || right * 10 >= self.history.len() * 9
    }
}

/// Different keys with one advance that make all have it.
const AGREED: usize = 3;

/// Predictions that are remembered, and so many before they count.
const HISTORY: usize = 30;
const FIRST: usize = 8;
