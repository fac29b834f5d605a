//! What became of predictions, in numbers, of each surface.
//!
//! Numbers alone: never which keys or letters. Invariant: what was not drawn counts as held back, no matter what it
//! would have been.

use super::super::connection::Connection;

impl Connection {
    /// Counts what has become of keys since the last time.
    pub(super) fn count_predictions(&mut self) {
        let draws = self.state.predictions.when.draws();
        let Some(typing) = &mut self.state.predictions.typing else { return };
        let (new, target) = (typing.take_figures(), typing.target);
        let Some(surface) = self.surfaces.get_mut(&target) else { return };
        let figures = &mut surface.predicted;
        let shown = new.right + new.wrong;
        if draws {
            figures.shown += shown;
            figures.right += new.right;
            figures.wrong += new.wrong;
            figures.held += new.held;
        } else {
            figures.held += shown + new.held;
        }
    }
}
