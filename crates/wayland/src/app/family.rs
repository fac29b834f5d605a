//! Where a surface stands among others: its parent, its children, and in which order these are.
//!
//! Of one surface only; chains of them are walked elsewhere. Invariant: each child is in the order once.

use super::stack::{Move, Stack};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Family {
    parent: Option<u32>,
    /// Its `wl_subsurface`, while it has a parent.
    subsurface: u32,
    sync: bool,
    children: Vec<u32>,
    /// Their order as the program has placed them, committed or not.
    stack: Stack,
}

impl Family {
    pub(super) fn parent(&self) -> Option<u32> {
        self.parent
    }

    /// The `wl_subsurface` by which it has a parent, or had one.
    pub(super) fn subsurface(&self) -> u32 {
        self.subsurface
    }

    /// Whether its commits wait for those of a parent by its own mode.
    pub(super) fn is_synchronised(&self) -> bool {
        self.sync && self.parent.is_some()
    }

    /// Whether its mode is that, whether it has a parent or not.
    pub(super) fn is_sync(&self) -> bool {
        self.sync
    }

    pub(super) fn set_sync(&mut self, sync: bool) {
        self.sync = sync;
    }

    /// It becomes a child by this `wl_subsurface`; such ones are synchronised at first.
    pub(super) fn enter(&mut self, parent: u32, subsurface: u32) {
        (self.parent, self.subsurface, self.sync) = (Some(parent), subsurface, true);
    }

    /// It is no child any more; gives the parent that it had.
    pub(super) fn leave(&mut self) -> Option<u32> {
        self.sync = false;
        self.parent.take()
    }

    /// Its parent is gone.
    pub(super) fn lose_parent(&mut self) {
        self.parent = None;
    }

    /// Its children in the order in which they became such.
    pub(super) fn children(&self) -> &[u32] {
        &self.children
    }

    /// A surface becomes a child of this one, which is `own`: it is on top.
    pub(super) fn adopt(&mut self, own: u32, child: u32) {
        self.children.push(child);
        self.stack.adopt(own, child);
    }

    /// A child is gone.
    pub(super) fn orphan(&mut self, child: u32) {
        self.children.retain(|id| *id != child);
        self.stack.orphan(child);
    }

    /// A child is placed, as part of the next commit. Returns whether there is such a place.
    pub(super) fn place(&mut self, to: Move, pending: &mut Option<Stack>) -> bool {
        let is_place = self.stack.place(to);
        if is_place {
            Stack::pend(&mut self.stack, pending);
        }
        is_place
    }

    /// Another display is to be told of all that was ever moved in `told`, by the next commit.
    pub(super) fn place_again(&mut self, told: &Stack, pending: &mut Option<Stack>) {
        Stack::pend_again(&mut self.stack, told, pending);
    }
}
