//! The surface of ours that predictions are drawn on: where it lies, and its buffers.
//!
//! Plain values; requests are made in `lay.rs`. Invariant: a buffer that the compositor holds is not written to, and
//! there are at most [`MAX_LEAVES`].

use wayferry_echo::Overlay;
use wayferry_pixels::{Rect, Size};

use crate::message::WireId;

use super::super::ratio::Ratio;
use super::super::shm::Part;
use super::when::Marking;

/// See the module.
pub(crate) struct Sheet {
    /// The surface that it lies on.
    pub(crate) parent: WireId,
    pub(crate) surface: u32,
    pub(crate) subsurface: u32,
    /// Where units of the parent are not whole pixels.
    pub(crate) viewport: Option<u32>,
    /// Where it lies.
    pub(crate) place: Place,
    /// It follows commits of the parent, until told otherwise.
    pub(crate) is_synchronised: bool,
    /// What it shows.
    pub(crate) drawn: Option<Drawn>,
    /// It shows less than it should, until the compositor releases a buffer.
    pub(crate) waits: bool,
    leaves: Vec<Leaf>,
}

/// Where a sheet lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In pixels of the parent's buffer, at whole units.
    pub(crate) rect: Rect,
    /// How many of them are how many of its units.
    pub(crate) ratio: Ratio,
}

impl Place {
    const NOWHERE: Self = Self { rect: Rect::new(0, 0, 0, 0), ratio: Ratio::ONE };

    /// Left and top, and width and height, in units of the parent.
    pub(crate) fn in_units(self) -> ([i32; 2], [i32; 2]) {
        let Self { rect, ratio } = self;
        ([rect.x, rect.y].map(|at| ratio.units(at)), [rect.width, rect.height].map(|side| ratio.units(side)))
    }
}

/// What a sheet shows.
pub(crate) struct Drawn {
    pub(crate) overlay: Overlay,
    pub(crate) marking: Marking,
    /// Where the sheet lay then.
    pub(crate) place: Place,
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
            viewport: None,
            place: Place::NOWHERE,
            is_synchronised: true,
            drawn: None,
            waits: false,
            leaves: Vec::new(),
        }
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
