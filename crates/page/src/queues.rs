//! What waits, in the order in which it came.
//!
//! Each window has a queue of its own, whose first unit waits for pixels, and the rest for that: so windows do not wait
//! for each other, and in a window everything keeps its place. Invariant: there is no empty queue, and a queue is found
//! by an update that its first unit lacks, which are looked for once each; or it waits for pictures alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wayferry_message::{UnitContent, WireId};
use wayferry_proto::UpdateSeq;

use crate::ask::{Ask, Commit};
use crate::share::Lease;

/// Something that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) what: Waiting,
    /// What its message counts for.
    pub(crate) cost: u64,
    /// Updates that it names, without those that are known to be there with their pictures.
    lacking: Vec<(WireId, UpdateSeq)>,
    /// So many of them, the last ones, have arrived.
    arrived: usize,
    pub(crate) lease: Lease,
}

impl Held {
    pub(crate) fn new(what: Waiting, cost: u64, lease: Lease) -> Self {
        let mut lacking = Vec::new();
        if let Waiting::Commit(commit) = &what {
            commit.each(&mut |commit| {
                if let UnitContent::Update(seq) = commit.content {
                    lacking.push((commit.surface, seq));
                }
            });
        }
        Self { what, cost, lacking, arrived: 0, lease }
    }

    /// Looks again for what was not there.
    fn look(&mut self, is: &mut impl FnMut(Step, WireId, UpdateSeq) -> bool) {
        while self.missing().is_some_and(|(surface, seq)| is(Step::Arrived, surface, seq)) {
            self.arrived += 1;
        }
        if self.missing().is_none() {
            while self.lacking.pop_if(|(surface, seq)| is(Step::Decoded, *surface, *seq)).is_some() {}
            self.arrived = self.lacking.len();
        }
    }

    /// The next of its updates that has not arrived.
    fn missing(&self) -> Option<(WireId, UpdateSeq)> {
        let left = self.lacking.len() - self.arrived;
        self.lacking[..left].last().copied()
    }
}

/// What a unit's updates wait for, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is there with all before it. One that is goes on to the next step.
    Arrived,
    /// The frames of videos that it has are decoded.
    Decoded,
}

/// What waits.
#[derive(Debug)]
pub(crate) enum Waiting {
    Ask(Ask),
    Commit(Commit),
}

impl Waiting {
    /// Bytes that it takes beside itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Ask(_) => 0,
            // With what is looked for.
            Self::Commit(commit) => {
                let mut updates = 0;
                commit.each(&mut |_| updates += 1);
                commit.memory() + updates * size_of::<(WireId, UpdateSeq)>()
            }
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: BTreeMap<WireId, VecDeque<Held>>,
    /// By the surface whose update the first unit of a window lacks: that window.
    lacking: BTreeMap<WireId, WireId>,
    /// Windows whose first unit waits for nothing but pictures.
    undecoded: BTreeSet<WireId>,
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

    /// Whether a window waits for pictures.
    pub(crate) fn has_undecoded(&self) -> bool {
        !self.undecoded.is_empty()
    }

    /// The windows that wait for pictures; they are to be looked at again.
    pub(crate) fn take_undecoded(&mut self) -> BTreeSet<WireId> {
        std::mem::take(&mut self.undecoded)
    }

    /// The next of a window that need wait no longer. So many behind it are looked at as well.
    pub(crate) fn pop(
        &mut self,
        group: WireId,
        ahead: usize,
        mut is: impl FnMut(Step, WireId, UpdateSeq) -> bool,
    ) -> Option<Held> {
        let queue = self.queues.get_mut(&group)?;
        for held in queue.iter_mut().take(1 + ahead) {
            held.look(&mut is);
            if held.missing().is_some() {
                break;
            }
        }
        let first = queue.front()?;
        if let Some((surface, _)) = first.missing() {
            self.lacking.insert(surface, group);
            return None;
        }
        if !first.lacking.is_empty() {
            self.undecoded.insert(group);
            return None;
        }
        let held = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&group);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::share::Share;

    #[test]
    fn regression_each_update_had_all_of_its_unit_looked_through() {
        const CHILDREN: u64 = 1000;
        let child = |number| Commit {
            surface: WireId(2 * number),
            number: 1,
            asks: Vec::new(),
            content: UnitContent::Update(UpdateSeq(1)),
            feedback: false,
            children: Vec::new(),
        };
        let group = WireId(2);
        let commit = Commit { children: (2..=CHILDREN).map(child).collect(), ..child(1) };
        let lease = Share::new("bytes of tests", 1).lease(1).unwrap();
        let mut queues = Queues::default();
        queues.push(group, Held::new(Waiting::Commit(commit), 1, lease));
        let looks = Cell::new(0);
        for there in 0..CHILDREN {
            let is_there = |_, surface: WireId, _| {
                looks.set(looks.get() + 1);
                surface.0 <= 2 * there
            };
            assert!(queues.pop(group, 0, is_there).is_none());
            queues.take_lacking(WireId(2 * (there + 1)));
        }
        assert!(queues.pop(group, 0, |_, _, _| true).is_some());
        assert!(looks.get() <= 3 * CHILDREN, "{}", looks.get());
    }
}
