//! Which keys commits answer, and which keys none will: told to a display side that predicts what keys look like.
//!
//! The books are in [`answers`](super::answers). Invariant: no key is told to be late while a commit that may answer
//! it, or one before it, has yet to leave.

use wayferry_proto::Time;

use crate::message::{ToDisplay, WireArg};

use super::connection::Connection;
use super::pending::Attach;

/// Whether an event of a `wl_keyboard` is a key that goes down, or repeats.
pub(super) fn is_press(name: &str, args: &[WireArg]) -> bool {
    matches!((name, args), ("key", [_, _, _, WireArg::Uint(state)]) if *state != 0)
}

impl Connection {
    /// The program is about to be listened to: what comes from now on may answer what it has been written.
    pub(super) fn note_written(&mut self) {
        let (written, received) = self.program.places();
        self.answers.written(self.now, written, received);
    }

    /// A key has been put into what the program is written.
    pub(super) fn note_given(&mut self) {
        if self.offering.desk().echo {
            self.answers.give(self.now, self.program.end());
        }
    }

    /// The program commits a surface: which key did it have before?
    pub(super) fn note_answer(&mut self, id: u32) {
        if !self.offering.desk().echo {
            return;
        }
        let (place, is_typed_in) = (self.program.place(), self.is_typed_in(id));
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let pending = &mut surface.pending;
        pending.answered = self.answers.before(place);
        if is_typed_in && matches!(pending.attach, Attach::Buffer { .. }) {
            self.answers.content(self.now, place);
        }
    }

    /// When [`Self::tell_late`] has something to say.
    pub(super) fn late_due(&self) -> Option<Time> {
        let (written, _) = self.program.places();
        self.answers.due(written).filter(|_| !self.may_answer())
    }

    /// Says which keys no commit will answer.
    pub(super) fn tell_late(&mut self) {
        let is_due = self.late_due().is_some_and(|due| due <= self.now);
        let (written, _) = self.program.places();
        if is_due && let Some(key) = self.answers.late(self.now, written) {
            self.send(&ToDisplay::Late { key });
        }
    }

    /// Whether a commit of a window that keys go to has not left, or may not have been read.
    fn may_answer(&self) -> bool {
        let waits = |id: &u32| self.is_typed_in(*id) && self.surfaces.get(id).is_some_and(|it| it.waits());
        self.stalled() || self.surfaces.keys().any(waits)
    }
}
