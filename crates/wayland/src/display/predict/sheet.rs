//! The surface of ours that predictions are drawn on: where it lies, and its buffers.
//!
//! Plain values; requests are made in `lay.rs`. Invariant: a buffer that the compositor holds is not written to, and
//! there are at most [`MAX_LEAVES`].

use wayferry_echo::Overlay;
use wayferry_pixels::{Rect, Size};

use crate::message::WireId;

use super::super::shm::Part;
use super::when::Marking;

/// See the module.
pub(crate) struct Sheet {
    /// The surface that it lies on.
    pub(crate) parent: WireId,
    pub(crate) surface: u32,
    pub(crate) subsurface: u32,
    /// Where it lies, in pixels of the parent's buffer, and how many of them are one of its units.
    pub(crate) place: Rect,
    pub(crate) scale: u32,
    /// It follows commits of the parent, until told otherwise.
    pub(crate) is_synchronised: bool,
    /// What it shows.
    pub(crate) drawn: Option<Drawn>,
    /// It shows less than it should, until the compositor releases a buffer.
    pub(crate) waits: bool,
    leaves: Vec<Leaf>,
}

/// What a sheet shows.
pub(crate) struct Drawn {
    pub(crate) overlay: Overlay,
    pub(crate) marking: Marking,
    /// Where the sheet lay then.
    pub(crate) place: Rect,
}

/// A buffer.
pub(crate) struct Leaf {
    pub(crate) id: u32,
    pub(crate) memory: Part,
    pub(crate) size: Size,
    pub(crate) is_busy: bool,
}

impl Sheet {
    pub(crate) fn new(parent: WireId, surface: u32, subsurface: u32) -> Self {
        Self {
            parent,
            surface,
            subsurface,
            place: Rect::new(0, 0, 0, 0),
            scale: 1,
            is_synchronised: true,
            drawn: None,
            waits: false,
            leaves: Vec::new(),
        }
    }

    /// Where a sheet lies that covers `strip`: at whole units of the parent.
    pub(crate) fn place_for(strip: Rect, scale: u32) -> Rect {
        let down = |value: u32| value / scale * scale;
        let (x, y) = (down(strip.x), down(strip.y));
        let up = |value: u32| value.next_multiple_of(scale);
        Rect::new(x, y, up(strip.right()) - x, up(strip.bottom()) - y)
    }

    /// A buffer of this size that the compositor does not hold.
    pub(crate) fn free_leaf(&mut self, size: Size) -> Option<&mut Leaf> {
        self.leaves.iter_mut().find(|leaf| !leaf.is_busy && leaf.size == size)
    }

    /// Whether there may be one more of this size.
    pub(crate) fn has_room(&self, size: Size) -> bool {
        let alike = self.leaves.iter().filter(|leaf| leaf.size == size).count();
        alike < LEAVES && self.leaves.len() < MAX_LEAVES
    }

    /// Adds a buffer.
    pub(crate) fn add(&mut self, leaf: Leaf) {
        self.leaves.push(leaf);
    }

    /// The compositor has released a buffer.
    pub(crate) fn released(&mut self, id: u32) {
        if let Some(leaf) = self.leaves.iter_mut().find(|leaf| leaf.id == id) {
            leaf.is_busy = false;
        }
    }

    /// Forgets buffers of other sizes that the compositor does not hold; the caller destroys them.
    pub(crate) fn take_useless(&mut self, size: Size) -> Vec<u32> {
        let useless = self.leaves.extract_if(.., |leaf| !leaf.is_busy && leaf.size != size);
        useless.map(|leaf| leaf.id).collect()
    }

    /// All buffers, and whether the compositor holds them; the caller destroys them.
    pub(crate) fn into_leaves(self) -> impl Iterator<Item = (u32, bool)> {
        self.leaves.into_iter().map(|leaf| (leaf.id, leaf.is_busy))
    }
}

/// Buffers of a sheet's size: one is shown, the other is written to.
const LEAVES: usize = 2;

/// Buffers of a sheet: with two that the compositor may still hold of another size.
const MAX_LEAVES: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sheet_lies_at_whole_units_and_covers_its_strip(
            x in 0u32..9000, y in 0u32..9000, width in 1u32..3000, height in 1u32..64, scale in 1u32..8,
        ) {
            let strip = Rect::new(x, y, width, height);
            let place = Sheet::place_for(strip, scale);
            prop_assert!(place.contains(strip));
            prop_assert!([place.x, place.y, place.width, place.height].iter().all(|side| side % scale == 0));
            prop_assert!(place.width < width + 2 * scale && place.height < height + 2 * scale);
        }
    }
}
