//! Which updates are there, for the fences that wait for them.
//!
//! [`Updates`] keeps, for one connection, how far the updates of each surface have come. It holds no messages and no
//! pixels: who holds a unit that names an update asks again after each change. Invariant: the updates of a surface
//! count only in sequence, so what is [reached](Updates::reached) means that everything up to it is there, or was
//! replaced by a later one that is.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, SurfaceId, UpdateSeq};

/// How far updates of one surface may run ahead of the first one that is missing.
pub const MAX_AHEAD: u64 = 4096;

/// Most surfaces whose updates may come before they are created.
pub const MAX_EARLY_SURFACES: usize = 8192;

/// Which updates of one connection's surfaces are there.
#[derive(Clone, Debug, Default)]
pub struct Updates {
    /// Created and not destroyed, or not created yet.
    surfaces: BTreeMap<SurfaceId, Sequence>,
    /// Ids up to this one have been created; those of them that are not in `surfaces` are destroyed.
    newest: Option<SurfaceId>,
}

impl Updates {
    /// Nothing is there.
    pub fn new() -> Self {
        Self::default()
    }

    /// The peer created a surface; its updates may have come before.
    ///
    /// # Errors
    /// Its id does not exceed those before it, as ids that are never reused do.
    pub fn create(&mut self, surface: SurfaceId) -> Result<(), Error> {
        if self.newest.is_some_and(|newest| surface <= newest) {
            let got = format!("surface {}", surface.0);
            return Err(Error::Violation { expected: "surface ids that only grow", got });
        }
        // Early updates of ids that were skipped belong to nothing.
        let skipped: Vec<_> = self.early().filter(|early| *early < surface).collect();
        for early in skipped {
            self.surfaces.remove(&early);
        }
        self.surfaces.entry(surface).or_default();
        self.newest = Some(surface);
        Ok(())
    }

    /// All chunks of an update are here. `false` when they are not needed: its surface is destroyed, or a later update
    /// has replaced it and is there. Updates are to be applied up to [`Updates::reached`], in sequence.
    ///
    /// # Errors
    /// The update came before or is too far ahead; too many surfaces are unknown.
    pub fn complete(&mut self, surface: SurfaceId, seq: UpdateSeq) -> Result<bool, Error> {
        if self.is_destroyed(surface) {
            return Ok(false);
        }
        self.make_room_for(surface)?;
        self.surfaces.entry(surface).or_default().complete(seq.0)
    }

    /// The updates from `from` up to the one before `to` will not come (or need not): `to` replaces them: what
    /// waits for one of them waits for `to`.
    ///
    /// # Errors
    /// `to` is not after `from`, or too far ahead; the surface was never created.
    pub fn supersede(&mut self, surface: SurfaceId, from: UpdateSeq, to: UpdateSeq) -> Result<(), Error> {
        if self.is_destroyed(surface) {
            return Ok(());
        }
        self.make_room_for(surface)?;
        self.surfaces.entry(surface).or_default().supersede(from.0, to.0)
    }

    /// The surface is destroyed: nothing waits for it any more.
    pub fn destroy(&mut self, surface: SurfaceId) {
        self.surfaces.remove(&surface);
        self.newest = self.newest.max(Some(surface));
    }

    /// The last update of `surface` up to which everything is there; `None` before the first.
    pub fn reached(&self, surface: SurfaceId) -> Option<UpdateSeq> {
        let reached = self.surfaces.get(&surface)?.reached;
        (reached > 0).then_some(UpdateSeq(reached))
    }

    fn is_destroyed(&self, surface: SurfaceId) -> bool {
        self.newest.is_some_and(|newest| surface <= newest) && !self.surfaces.contains_key(&surface)
    }

    fn early(&self) -> impl Iterator<Item = SurfaceId> {
        let after = self.newest.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.surfaces.range((after, std::ops::Bound::Unbounded)).map(|(surface, _)| *surface)
    }

    fn make_room_for(&self, surface: SurfaceId) -> Result<(), Error> {
        let known = self.surfaces.contains_key(&surface);
        if known || self.early().take(MAX_EARLY_SURFACES).count() < MAX_EARLY_SURFACES {
            return Ok(());
        }
        Err(Error::TooMuch { limit: "updates of unknown surfaces", max: MAX_EARLY_SURFACES as u64 })
    }
}

/// The updates of one surface.
#[derive(Clone, Debug, Default)]
struct Sequence {
    /// All up to this one are there or replaced.
    reached: u64,
    /// There, but something before them is missing.
    ahead: BTreeSet<u64>,
    /// First of a replaced run → what replaces it. Runs end after `reached`, and neither touch nor overlap.
    replaced: BTreeMap<u64, u64>,
}

impl Sequence {
    fn complete(&mut self, seq: u64) -> Result<bool, Error> {
        self.check_distance(seq)?;
        if seq <= self.reached {
            return Ok(false);
        }
        if !self.ahead.insert(seq) {
            let got = format!("update {seq} again");
            return Err(Error::Violation { expected: "each update once", got });
        }
        self.advance();
        Ok(true)
    }

    fn supersede(&mut self, from: u64, to: u64) -> Result<(), Error> {
        if from >= to || from == 0 {
            let got = format!("{from} replaced by {to}");
            return Err(Error::Violation { expected: "an update replaced by a later one", got });
        }
        self.check_distance(to)?;
        // What is passed already needs no replacement.
        let (mut from, mut to) = (from.max(self.reached + 1), to);
        if from >= to {
            return Ok(());
        }
        while let Some((first, end)) = self.run_before(to).filter(|(_, end)| *end >= from) {
            self.replaced.remove(&first);
            (from, to) = (from.min(first), to.max(end));
        }
        self.replaced.insert(from, to);
        self.advance();
        Ok(())
    }

    fn check_distance(&self, seq: u64) -> Result<(), Error> {
        if seq > self.reached.saturating_add(MAX_AHEAD) {
            return Err(Error::TooMuch { limit: "updates ahead of a missing one", max: MAX_AHEAD });
        }
        Ok(())
    }

    fn advance(&mut self) {
        while let Some(next) = self.next() {
            self.reached = next;
            while self.ahead.first().is_some_and(|seq| *seq <= next) {
                self.ahead.pop_first();
            }
            while self.replaced.first_key_value().is_some_and(|(_, to)| *to <= next) {
                self.replaced.pop_first();
            }
        }
    }

    /// The next update that may count: the one after `reached`, or what replaces it.
    fn next(&self) -> Option<u64> {
        let next = self.reached + 1;
        if self.ahead.contains(&next) {
            return Some(next);
        }
        let (_, to) = self.run_before(next).filter(|(_, to)| *to > next)?;
        self.ahead.contains(&to).then_some(to)
    }

    /// The last run that begins at or before `seq`.
    fn run_before(&self, seq: u64) -> Option<(u64, u64)> {
        self.replaced.range(..=seq).next_back().map(|(first, to)| (*first, *to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: SurfaceId = SurfaceId(2);
    const B: SurfaceId = SurfaceId(4);

    fn created() -> Updates {
        let mut updates = Updates::new();
        updates.create(A).unwrap();
        updates.create(B).unwrap();
        updates
    }

    fn reached(updates: &Updates, surface: SurfaceId) -> Option<u64> {
        updates.reached(surface).map(|seq| seq.0)
    }

    #[test]
    fn updates_count_in_sequence() {
        let mut updates = created();
        assert_eq!(reached(&updates, A), None);
        assert_eq!(updates.complete(A, UpdateSeq(2)), Ok(true));
        assert_eq!(reached(&updates, A), None, "update 1 is missing");
        updates.complete(A, UpdateSeq(1)).unwrap();
        assert_eq!((reached(&updates, A), reached(&updates, B)), (Some(2), None));
        updates.complete(B, UpdateSeq(1)).unwrap();
        assert_eq!((reached(&updates, A), reached(&updates, B)), (Some(2), Some(1)));
    }

    #[test]
    fn a_superseded_update_is_reached_with_its_successor() {
        let mut updates = created();
        updates.complete(A, UpdateSeq(1)).unwrap();
        updates.supersede(A, UpdateSeq(2), UpdateSeq(4)).unwrap();
        updates.supersede(A, UpdateSeq(4), UpdateSeq(5)).unwrap();
        assert_eq!(reached(&updates, A), Some(1));
        assert_eq!(updates.complete(A, UpdateSeq(5)), Ok(true));
        assert_eq!(reached(&updates, A), Some(5));
        assert_eq!(updates.complete(A, UpdateSeq(3)), Ok(false), "too late: it would undo update 5");
        assert!(updates.supersede(A, UpdateSeq(7), UpdateSeq(7)).is_err());
    }

    #[test]
    fn nothing_comes_of_a_destroyed_surface() {
        let mut updates = created();
        updates.complete(A, UpdateSeq(1)).unwrap();
        updates.destroy(A);
        assert_eq!(updates.complete(A, UpdateSeq(2)), Ok(false), "its late updates are dropped");
        assert_eq!(reached(&updates, A), None);
        updates.complete(B, UpdateSeq(1)).unwrap();
        assert_eq!(reached(&updates, B), Some(1));
        assert!(updates.create(A).is_err(), "ids are never used twice");
    }

    #[test]
    fn updates_may_come_before_their_surface() {
        let mut updates = Updates::new();
        assert_eq!(updates.complete(B, UpdateSeq(1)), Ok(true));
        updates.create(A).unwrap();
        assert_eq!(reached(&updates, A), None);
        updates.create(B).unwrap();
        assert_eq!(reached(&updates, B), Some(1));
        // An id that was passed over belongs to no surface.
        updates.complete(SurfaceId(6), UpdateSeq(1)).unwrap();
        updates.create(SurfaceId(8)).unwrap();
        assert_eq!(updates.complete(SurfaceId(6), UpdateSeq(2)), Ok(false));
        assert_eq!(updates.surfaces.len(), 3);
    }

    #[test]
    fn hostile_numbers_are_bounded() {
        let mut updates = created();
        assert!(matches!(updates.complete(A, UpdateSeq(MAX_AHEAD + 1)), Err(Error::TooMuch { .. })));
        assert!(updates.supersede(A, UpdateSeq(1), UpdateSeq(u64::MAX)).is_err());
        updates.complete(A, UpdateSeq(3)).unwrap();
        assert!(updates.complete(A, UpdateSeq(3)).is_err());
        for seq in 1..=20_000 {
            updates.complete(B, UpdateSeq(seq)).unwrap();
            updates.supersede(B, UpdateSeq(1), UpdateSeq(seq + MAX_AHEAD)).unwrap();
            updates.supersede(B, UpdateSeq(seq + 1 + seq % 3), UpdateSeq(seq + MAX_AHEAD)).unwrap();
        }
        assert_eq!(updates.surfaces[&B].replaced.len(), 1);
        for id in 0..MAX_EARLY_SURFACES as u64 {
            updates.complete(SurfaceId(100 + id), UpdateSeq(1)).unwrap();
        }
        assert!(matches!(updates.complete(SurfaceId(50), UpdateSeq(1)), Err(Error::TooMuch { .. })));
        updates.complete(SurfaceId(100), UpdateSeq(2)).unwrap();
    }

    proptest! {
        /// In any order of updates and replacements: an update is reached as soon as, and only when, every update up to
        /// it is there or replaced by one that is.
        #[test]
        fn the_order_does_not_matter(
            order in Just((1..=12_u64).collect::<Vec<_>>()).prop_shuffle(),
            dropped in 1..=12_u64, replacement in 1..=12_u64, at in 0..12_usize,
        ) {
            let (from, to) = (dropped.min(replacement), dropped.max(replacement));
            let mut updates = created();
            let mut there = BTreeSet::new();
            let mut replaced = false;
            for (n, seq) in order.iter().copied().enumerate() {
                if n == at && from < to {
                    updates.supersede(A, UpdateSeq(from), UpdateSeq(to)).unwrap();
                    replaced = true;
                }
                if !(from..to).contains(&seq) {
                    updates.complete(A, UpdateSeq(seq)).unwrap();
                    there.insert(seq);
                }
                let met = |seq: u64| there.contains(&seq)
                    || (replaced && (from..to).contains(&seq) && there.contains(&to));
                let reached = (1..=12).take_while(|seq| met(*seq)).last();
                prop_assert_eq!(updates.reached(A), reached.map(UpdateSeq));
            }
            if from < to && replaced {
                prop_assert!(updates.surfaces[&A].ahead.is_empty() && updates.surfaces[&A].replaced.is_empty());
            }
        }
    }
}
