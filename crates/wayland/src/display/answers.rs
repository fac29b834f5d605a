//! What the app side says of keys: which of them commits answer, and which none will.
//!
//! Predicts nothing. Invariant: what is handed on names keys that went to the app side, in the order in which the
//! commits that came before are shown.

use crate::message::Unit;

use super::connection::Connection;

impl Connection {
    /// The app side says that it will not answer keys up to this one. Commits that it said before may still do.
    pub(super) fn on_late(&mut self, key: u64) {
        self.state.presses.late(key, self.holds.mark());
    }

    /// A unit and its children answer keys that were pressed, or none that is known.
    pub(super) fn know_answers(&self, unit: &mut Unit) {
        unit.answered = self.state.presses.known(unit.answered);
        unit.children.iter_mut().for_each(|child| self.know_answers(child));
    }

    /// Keys that are late and of which nothing is held any more.
    pub(super) fn late_key(&mut self) -> Option<u64> {
        let Self { holds, state, .. } = self;
        state.presses.next_late(|mark| holds.has_gone(mark))
    }
}
