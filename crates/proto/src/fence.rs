//! Fences: what waits for updates, and which updates are there.
//!
//! A [`Fence`] names updates of surfaces; [`Updates`] keeps, for one connection, which of them have come, and answers
//! whether a fence still waits. It holds no messages and no pixels: who holds a unit behind a fence asks again after
//! each change. Invariant: the updates of a surface count only in sequence, so a released fence means that everything up
//! to the updates it names is there, or was replaced by a later one that is.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, SurfaceId, UpdateSeq};

/// Most updates that one fence names.
pub const MAX_BLOCKERS: usize = 1024;

/// How far updates of one surface may run ahead of the first one that is missing.
pub const MAX_AHEAD: u64 = 4096;

/// Most surfaces whose updates may come before they are created.
pub const MAX_EARLY_SURFACES: usize = 1024;

/// A set of updates to wait for; empty waits for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    blockers: Vec<(SurfaceId, UpdateSeq)>,
}

/// What became of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceState {
    /// Some update is missing.
    Pending,
    /// Every update is there, apart from those of destroyed surfaces.
    Released,
    /// There is nothing left to wait for: all surfaces that it names are destroyed.
    Cancelled,
}

impl Fence {
    /// Waits for all of `blockers`.
    ///
    /// # Errors
    /// More than [`MAX_BLOCKERS`].
    pub fn new(blockers: Vec<(SurfaceId, UpdateSeq)>) -> Result<Self, Error> {
        if blockers.len() > MAX_BLOCKERS {
            return Err(Error::TooMuch { limit: "updates in a fence", max: MAX_BLOCKERS as u64 });
        }
        Ok(Self { blockers })
    }

    /// What it waits for.
    pub fn blockers(&self) -> &[(SurfaceId, UpdateSeq)] {
        &self.blockers
    }

    /// Whether it waits for nothing.
    pub fn is_empty(&self) -> bool {
        self.blockers.is_empty()
    }
}

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

    /// All chunks of an update are here. `false` when its surface is destroyed: drop them.
    ///
    /// # Errors
    /// The update came before, was passed already, or is too far ahead; too many surfaces are unknown.
    pub fn complete(&mut self, surface: SurfaceId, seq: UpdateSeq) -> Result<bool, Error> {
        if self.is_destroyed(surface) {
            return Ok(false);
        }
        self.make_room_for(surface)?;
        self.surfaces.entry(surface).or_default().complete(seq.0)?;
        Ok(true)
    }

    /// The updates from `from` up to the one before `to` will not come (or need not): `to` replaces them. A fence on
    /// one of them is met by `to`.
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

    /// Whether `fence` still waits.
    pub fn state(&self, fence: &Fence) -> FenceState {
        let mut live = fence.blockers.iter().filter(|(surface, _)| !self.is_destroyed(*surface)).peekable();
        if live.peek().is_none() && !fence.is_empty() {
            return FenceState::Cancelled;
        }
        let met = |(surface, seq): &(SurfaceId, UpdateSeq)| self.reached(*surface) >= Some(*seq);
        if live.all(met) { FenceState::Released } else { FenceState::Pending }
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
    /// First of a replaced run → what replaces it; only runs that end after `reached`.
    replaced: BTreeMap<u64, u64>,
}

impl Sequence {
    fn complete(&mut self, seq: u64) -> Result<(), Error> {
        self.check_distance(seq)?;
        // An update that came although it was superseded is passed already: harmless, once.
        if seq > self.reached && !self.ahead.insert(seq) {
            let got = format!("update {seq} again");
            return Err(Error::Violation { expected: "each update once", got });
        }
        self.advance();
        Ok(())
    }

    fn supersede(&mut self, from: u64, to: u64) -> Result<(), Error> {
        if from >= to || from == 0 {
            let got = format!("{from} replaced by {to}");
            return Err(Error::Violation { expected: "an update replaced by a later one", got });
        }
        self.check_distance(to)?;
        let end = self.replaced.entry(from).or_insert(to);
        *end = (*end).max(to);
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
            self.ahead = self.ahead.split_off(&(next + 1));
            self.replaced.retain(|_, to| *to > next);
        }
    }

    /// The next update that may count: the one after `reached`, or the end of a chain of replaced runs that cover it.
    fn next(&self) -> Option<u64> {
        let mut next = self.reached + 1;
        while !self.ahead.contains(&next) {
            next = self.replaced.range(..=next).map(|(_, to)| *to).filter(|to| *to > next).max()?;
        }
        Some(next)
    }
}
