//! The units that have left and that the display side has not applied: so many of one program, however many windows it
//! has.
//!
//! The display side holds each of them until its pixels are there. Beyond the bound commits fold into the ones that
//! wait here. Knows numbers only.

use std::collections::BTreeMap;

use crate::message::WireId;

/// Units of one program that may be on their way, children with their parents counted as one: forty windows at 60
/// frames a second over a round trip of 400 ms.
pub(crate) const MAX_UNDER_WAY: usize = 1024;

/// Bytes of content of those: the display side has them in its memory until they are painted.
pub(crate) const MAX_BYTES_UNDER_WAY: u64 = 64 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// And how many bytes of content left with each.
    units: BTreeMap<(WireId, u64), u64>,
    bytes: u64,
}

impl UnderWay {
    /// A unit leaves.
    pub(super) fn add(&mut self, surface: WireId, unit: u64, bytes: u64) {
        self.bytes += bytes;
        self.units.insert((surface, unit), bytes);
    }

    /// The display side has applied a unit, and so all of the surface before it.
    pub(super) fn applied(&mut self, surface: WireId, unit: u64) {
        while let Some((first, bytes)) = self.units.range((surface, 0)..=(surface, unit)).next() {
            let (first, bytes) = (*first, *bytes);
            self.units.remove(&first);
            self.bytes -= bytes;
        }
    }

    /// Bytes of content of a surface's.
    pub(super) fn bytes_of(&self, surface: WireId) -> u64 {
        self.units.range((surface, 0)..=(surface, u64::MAX)).map(|(_, bytes)| bytes).sum()
    }

    /// The content of a surface's does not arrive.
    pub(super) fn give_up(&mut self, surface: WireId) {
        let units = self.units.range_mut((surface, 0)..=(surface, u64::MAX));
        units.for_each(|(_, bytes)| self.bytes -= std::mem::take(bytes));
    }

    /// The surface is destroyed: its units are never applied.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.applied(surface, u64::MAX);
    }

    /// Whether as many are on their way as may be.
    pub(super) fn is_full(&self) -> bool {
        self.units.len() >= MAX_UNDER_WAY || self.bytes >= MAX_BYTES_UNDER_WAY
    }
}
