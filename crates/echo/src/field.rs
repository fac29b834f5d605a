//! What was learned of the fields that have one kind of caret: how far keys move it, and whether predictions are right.
//!
//! The one invariant: a field that was often predicted wrong is left alone.

use std::collections::VecDeque;

use crate::key::Key;

/// A field, or several that look alike.
pub(crate) struct Field {
    /// The advance of all letters, as far as is known, and how many different keys had it.
    cell: Option<usize>,
    agreed: Vec<Key>,
    /// The caret is as wide as a cell.
    is_fixed: bool,
    /// Two letters had different advances.
    is_uneven: bool,
    /// The column of the surface which no caret passes: lines are wrapped or scrolled before.
    pub(crate) wrap: Option<u32>,
    /// Whether letters replace those right of the caret instead of moving them.
    pub(crate) replaces: bool,
    /// Which of the last predictions came true.
    history: VecDeque<bool>,
}

impl Field {
    pub(crate) fn new(cell: Option<usize>) -> Self {
        let agreed = Vec::new();
        Self {
            cell,
            is_fixed: cell.is_some(),
            agreed,
            is_uneven: false,
            wrap: None,
            replaces: false,
            history: VecDeque::new(),
        }
    }

    /// The advance of every letter; `None` where it is not known to be the same.
    pub(crate) fn cell(&self) -> Option<usize> {
        let is_known = self.is_fixed || (!self.is_uneven && self.agreed.len() >= AGREED);
        self.cell.filter(|_| is_known)
    }

    /// Whether the caret is as wide as a cell.
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// `key` moved the caret so far.
    pub(crate) fn advanced(&mut self, key: Key, advance: usize) {
        let cell = *self.cell.get_or_insert(advance);
        self.is_uneven |= cell != advance;
        if cell == advance && self.agreed.len() < AGREED && !self.agreed.contains(&key) {
            self.agreed.push(key);
        }
    }

    /// A letter and the caret after it end at this column: no line is wrapped before.
    pub(crate) fn passed(&mut self, column: u32) {
        self.wrap = self.wrap.filter(|wrap| *wrap > column);
    }

    /// A prediction came true, or did not.
    pub(crate) fn judged(&mut self, is_right: bool) {
        self.history.push_back(is_right);
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }

    /// Whether enough of the last predictions came true.
    pub(crate) fn is_trusted(&self) -> bool {
        let right = self.history.iter().filter(|is_right| **is_right).count();
        self.history.len() < FIRST || right * 10 >= self.history.len() * 9
    }
}

/// Different keys with one advance that make all have it.
const AGREED: usize = 3;

/// Predictions that are remembered, and so many before they count.
const HISTORY: usize = 30;
const FIRST: usize = 8;
