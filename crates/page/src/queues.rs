//! What waits, in the order in which it came.
//!
//! Each window has a queue of its own, whose first unit waits for pixels, and the rest for that: so windows do not wait
//! for each other, and in a window everything keeps its place. Invariant: there is no empty queue, and a queue is found
//! by the update that its first unit lacks.

use std::collections::{BTreeMap, VecDeque};

use wayferry_message::WireId;
use wayferry_proto::UpdateSeq;

use crate::ask::{Ask, Commit};
use crate::share::Lease;

/// Something that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) what: Waiting,
    /// What its message counts for.
    pub(crate) cost: u64,
    pub(crate) _lease: Lease,
}

/// What waits.
#[derive(Debug)]
pub(crate) enum Waiting {
    Ask(Ask),
    Commit(Commit),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: BTreeMap<WireId, VecDeque<Held>>,
    /// By the surface whose update the first unit of a window lacks: that window.
    lacking: BTreeMap<WireId, WireId>,
}

impl Queues {
    /// Whether something of this window waits.
    pub(crate) fn has(&self, group: WireId) -> bool {
        self.queues.contains_key(&group)
    }

    /// Waits behind what is there.
    pub(crate) fn push(&mut self, group: WireId, held: Held) {
        self.queues.entry(group).or_default().push_back(held);
    }

    /// The window that waits for an update of this surface; it is to be looked at again.
    pub(crate) fn take_lacking(&mut self, surface: WireId) -> Option<WireId> {
        self.lacking.remove(&surface)
    }

    /// The next of a window that need wait no longer.
    pub(crate) fn pop(
        &mut self,
        group: WireId,
        is_there: impl Fn(WireId, UpdateSeq) -> bool,
    ) -> Option<Held> {
        let queue = self.queues.get_mut(&group)?;
        if let Some(Waiting::Commit(commit)) = queue.front().map(|held| &held.what)
            && let Some(surface) = lacks(commit, &is_there)
        {
            self.lacking.insert(surface, group);
            return None;
        }
        let held = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&group);
        }
        held
    }
}

/// A surface whose update a unit lacks.
fn lacks(commit: &Commit, is_there: &impl Fn(WireId, UpdateSeq) -> bool) -> Option<WireId> {
    let mut lacking = None;
    commit.each(&mut |commit| {
        if let wayferry_message::UnitContent::Update(seq) = commit.content
            && !is_there(commit.surface, seq)
        {
            lacking.get_or_insert(commit.surface);
        }
    });
    lacking
}
