//! Which surface is a subsurface of which, by the requests that have arrived: one that is held counts as done.
//!
//! For order only, so it asks nothing of the maker of the tree. Invariant: it has no more entries than there are
//! surfaces.

use std::collections::{HashMap, HashSet};

use crate::message::{MAX_UNIT_DEPTH, WireId};

/// Subsurfaces with what they are on.
#[derive(Debug, Default)]
pub(super) struct Tree {
    parents: HashMap<WireId, WireId>,
    /// Those that are not synchronised by themselves.
    free: HashSet<WireId>,
    /// Surfaces that have been subsurfaces: nothing else can become of them.
    children: HashSet<WireId>,
}

impl Tree {
    /// A surface becomes a subsurface.
    pub(super) fn adopt(&mut self, child: WireId, parent: WireId) {
        self.parents.insert(child, parent);
        self.children.insert(child);
        self.free.remove(&child);
    }

    /// `wl_subsurface.set_sync` and `set_desync`.
    pub(super) fn synchronise(&mut self, child: WireId, synchronised: bool) {
        if synchronised || !self.parents.contains_key(&child) {
            self.free.remove(&child);
        } else {
            self.free.insert(child);
        }
    }

    /// Whether the compositor keeps what is committed to a surface for a commit of one above it.
    pub(super) fn is_synchronised(&self, surface: WireId) -> bool {
        let own = |surface: WireId| self.parents.contains_key(&surface) && !self.free.contains(&surface);
        own(surface) || self.above(surface).any(own)
    }

    /// A surface is no subsurface any more.
    pub(super) fn orphan(&mut self, child: WireId) {
        self.parents.remove(&child);
        self.free.remove(&child);
    }

    /// A surface ends.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.orphan(surface);
        self.children.remove(&surface);
    }

    /// Whether a surface is, or was, part of another one's window.
    pub(super) fn is_part(&self, surface: WireId) -> bool {
        self.children.contains(&surface)
    }

    /// The surfaces above one, the nearest first: as many as there may be, even if a peer made a ring of them.
    pub(super) fn above(&self, surface: WireId) -> impl Iterator<Item = WireId> {
        let parent = |surface: &WireId| self.parents.get(surface).copied();
        std::iter::successors(parent(&surface), parent).take(MAX_UNIT_DEPTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_subsurfaces_has_an_end() {
        let mut tree = Tree::default();
        tree.adopt(WireId(4), WireId(6));
        tree.adopt(WireId(6), WireId(8));
        assert_eq!(tree.above(WireId(4)).collect::<Vec<_>>(), [WireId(6), WireId(8)]);
        tree.adopt(WireId(8), WireId(4));
        assert_eq!(tree.above(WireId(4)).count(), MAX_UNIT_DEPTH);
        tree.orphan(WireId(6));
        assert_eq!(tree.above(WireId(4)).collect::<Vec<_>>(), [WireId(6)]);
    }
}
