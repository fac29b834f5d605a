//! Children: where they are, and which of their commits wait for their parents.

use wayferry_wayland::wire::Arg;

use super::Program;
use crate::link::World;
use crate::operation::{Op, PLACES};
use crate::place::{Place, Role};

impl<W: World> Program<'_, W> {
    /// What concerns a child and its parent.
    pub(super) fn arrange(&mut self, op: &Op) {
        let (Op::Position(at, _) | Op::Place { place: at, .. } | Op::Sync(at, _)) = *op else { return };
        let Some(Place { role: Role::Child { role, parent: Some(parent) }, .. }) = self.places[at] else {
            return;
        };
        match *op {
            Op::Position(_, (x, y)) => {
                self.request(role, "set_position", [x, y].map(|at| Arg::Int(i32::from(at))).into());
            }
            Op::Place { sibling, above, .. } => {
                let Some(other) = self.places[sibling].as_ref().filter(|_| sibling != at) else { return };
                if sibling == parent || other.parent() == Some(parent) {
                    let other = Arg::Object(other.id);
                    self.request(role, if above { "place_above" } else { "place_below" }, vec![other]);
                }
            }
            Op::Sync(_, sync) => {
                self.request(role, if sync { "set_sync" } else { "set_desync" }, vec![]);
                if let Some(place) = &mut self.places[at] {
                    place.sync = sync;
                }
                self.freed(at);
            }
            _ => {}
        }
    }

    /// Commits that waited for a parent need not any more.
    pub(super) fn freed(&mut self, at: usize) {
        if self.is_synchronised(at) {
            return;
        }
        if let Some(place) = &mut self.places[at]
            && std::mem::take(&mut place.unclaimed)
        {
            self.applied(at);
        }
        for child in 0..PLACES {
            if self.places[child].as_ref().is_some_and(|child| child.parent() == Some(at)) {
                self.freed(child);
            }
        }
    }

    /// Follows which commits of children wait for which of their parents.
    pub(super) fn claim(&mut self, at: usize) {
        for child in 0..PLACES {
            if let Some(child) = self.places[child].as_mut().filter(|child| child.parent() == Some(at))
                && std::mem::take(&mut child.unclaimed)
            {
                child.claimed_by = Some(at);
            }
        }
        if self.is_synchronised(at) {
            if let Some(place) = &mut self.places[at] {
                place.unclaimed = true;
            }
        } else {
            self.applied(at);
        }
    }

    pub(super) fn applied(&mut self, at: usize) {
        for child in 0..PLACES {
            let claimed = self.places[child].as_mut().filter(|child| child.claimed_by == Some(at));
            if let Some(child_place) = claimed {
                child_place.claimed_by = None;
                self.applied(child);
            }
        }
    }

    /// Whether a commit of it waits for a surface that is gone: it may be forgotten, or not.
    pub(super) fn is_lost(&self, at: usize) -> bool {
        self.places[at].as_ref().is_some_and(|place| place.claimed_by == Some(PLACES))
    }

    pub(super) fn is_synchronised(&self, at: usize) -> bool {
        let mut next = self.places[at].as_ref();
        while let Some(place) = next {
            let Some(parent) = place.parent() else { return false };
            if place.sync {
                return true;
            }
            next = self.places[parent].as_ref();
        }
        false
    }
}
