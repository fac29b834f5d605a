//! What the app side says of keys: which of them commits answer, and which none will.
//!
//! Predicts nothing. Invariant: what is handed on names keys that went to the app side, in the order in which the
//! commits that came before are shown.

use wayferry_proto::SurfaceId;

use crate::message::Unit;
use crate::predicted::PredictFigures;

use super::connection::Connection;

impl Connection {
    /// What came of the keys that were shown before their answers, of each surface that has had any.
    pub fn predicted(&self) -> impl Iterator<Item = (SurfaceId, PredictFigures)> {
        let figures = self.surfaces.iter().map(|(wire, surface)| (SurfaceId(wire.0), surface.predicted));
        figures.filter(|(_, predicted)| *predicted != PredictFigures::default())
    }

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
