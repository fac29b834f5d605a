//! What a program's connection has handed to the session, as far as it can be had back.

use wayferry_proto::{ConnectionId, Session, SurfaceId, UpdateSeq};
use wayferry_wayland::app;

/// See the module.
pub(super) struct Handed<'a> {
    pub(super) session: &'a mut Session,
    pub(super) connection: ConnectionId,
    /// How many updates did not leave after all.
    pub(super) superseded: &'a mut u64,
}

impl app::Handed for Handed<'_> {
    fn take_back(&mut self, surface: SurfaceId, update: UpdateSeq) -> Option<u64> {
        let bytes = self.session.take_back(self.connection, surface, update)?;
        *self.superseded += 1;
        Some(bytes)
    }

    fn give_up(&mut self, surface: SurfaceId) -> Option<(UpdateSeq, u64)> {
        self.session.give_up(self.connection, surface)
    }
}
