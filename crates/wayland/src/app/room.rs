//! What the contents of a program's surfaces take here, and what happens when that is too much.
//!
//! One content is kept of each surface that has any, shown or not: the next commit is compared with it, and another
//! display is told it. It cannot be asked for again, since the program has its buffer back; so none is dropped, but one
//! more may have to wait. A commit that would make the contents larger than the bound waits as the program made it,
//! with its buffer, unread (see `later`), until there is room: when surfaces are destroyed, unmapped, or get smaller.
//! Meanwhile the program is read, since only its own requests make room; newer commits of the surface fold into the one
//! that waits and give its buffer back; frame callbacks are answered, slowly; and all other surfaces go on. So no
//! program waits for what waits for it.
//!
//! Order beats room as it beats time: what a later request builds on, and what a synchronised child commits, is taken
//! at once. Only a program that gets beyond twice the bound by that is ended. Invariant: no program has more than that.

use super::fault::Fault;
use super::pending::{Attach, Pending};
use super::surface::Surface;

/// Bytes that the contents of one program's surfaces take: 64 windows of 3840 × 2160. While they change, each takes up
/// to three times as much.
pub(crate) const MAX_CONTENT_BYTES: u64 = 2 << 30;

/// See the module.
#[derive(Debug)]
pub(super) struct Room {
    taken: u64,
    most: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { taken: 0, most: MAX_CONTENT_BYTES }
    }
}

impl Room {
    /// A surface's content took `old` bytes and takes `new`.
    ///
    /// # Errors
    /// When the contents take more than twice the bound.
    pub(super) fn change(&mut self, old: u64, new: u64) -> Result<(), Fault> {
        self.taken = self.taken - old + new;
        if new > old && self.taken > 2 * self.most {
            return Err(Fault::TooMuch("pixels of all surfaces"));
        }
        Ok(())
    }

    /// So many bytes more are to be held for contents that are not applied.
    ///
    /// # Errors
    /// When they are too many, with those that are.
    pub(super) fn must_hold(&self, bytes: u64) -> Result<(), Fault> {
        if self.taken + bytes > 2 * self.most {
            return Err(Fault::TooMuch("pixels of all surfaces"));
        }
        Ok(())
    }

    /// Whether there is room for what a commit of a surface brings.
    pub(super) fn has(&self, surface: &Surface, pending: &Pending) -> bool {
        let Attach::Buffer { buffer, .. } = &pending.attach else { return true };
        let new = surface.fade.will_need(pending.factor, buffer.content_bytes(), buffer.size.rect().area());
        let old = surface.content_bytes();
        new <= old || self.taken - old + new <= self.most
    }

    /// Whether what a surface has committed waits for room.
    pub(super) fn crowds_out(&self, surface: &Surface) -> bool {
        surface.timing.first().is_some_and(|first| !self.has(surface, first))
    }

    #[cfg(test)]
    pub(super) fn limit(&mut self, most: u64) {
        self.most = most;
    }
}
