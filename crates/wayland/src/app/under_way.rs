//! The units that have left and that the display side has not applied: so many of one program, however many windows it has.
//!
//! The display side holds each of them until its pixels are there. Beyond the bound commits fold into the ones that wait
//! here. Knows numbers only.

use std::collections::BTreeSet;

use crate::message::WireId;

/// Units of one program that may be on their way, children with their parents counted as one: forty windows at 60 frames a
/// second over a round trip of 400 ms.
pub(crate) const MAX_UNDER_WAY: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    units: BTreeSet<(WireId, u64)>,
}

impl UnderWay {
    /// A unit leaves.
    pub(super) fn add(&mut self, surface: WireId, unit: u64) {
        self.units.insert((surface, unit));
    }

    /// The display side has applied a unit, and so all of the surface before it.
    pub(super) fn applied(&mut self, surface: WireId, unit: u64) {
        while let Some(first) = self.units.range((surface, 0)..=(surface, unit)).next().copied() {
            self.units.remove(&first);
        }
    }

    /// The surface is destroyed: its units are never applied.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.applied(surface, u64::MAX);
    }

    /// Whether as many are on their way as may be.
    pub(super) fn is_full(&self) -> bool {
        self.units.len() >= MAX_UNDER_WAY
    }
}
