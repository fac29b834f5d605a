//! The contents of a unit with a worker, which paints them.
//!
//! Their updates are taken before, and their surfaces have no content meanwhile. Invariant: what comes back is as it
//! would be if it had been painted here.

use crate::message::WireId;
use crate::trace::{Probe, Stage};
use crate::workers::{self, Pending, Workers};

use super::ground::{Ground, Painted};
use super::updates::{MAX_OPENED_BYTES, Order, paint_all};

/// See the module.
#[derive(Debug)]
pub(super) struct Painting {
    /// Whose unit it is.
    pub(super) top: WireId,
    /// About how many bytes of memory it touches.
    pub(super) cost: usize,
    /// Bytes of the contents as they were.
    pub(super) content: usize,
    contents: Pending<Vec<(WireId, Ground, Painted)>>,
}

impl Painting {
    /// Has the contents of a unit painted.
    pub(super) fn begin(
        (top, cost): (WireId, usize),
        orders: Vec<Order>,
        workers: &Workers,
        probe: &Probe,
    ) -> Self {
        let content = orders.iter().map(|(_, ground, _)| ground.bytes()).sum();
        let probe = probe.elsewhere();
        let paint = move |(wire, mut ground, updates): Order| {
            let begun = probe.begin();
            let seq = updates.last().map_or(0, |(seq, _)| *seq);
            let painted =
                workers::decoder(|decoder| paint_all(decoder, &mut ground, updates, MAX_OPENED_BYTES));
            probe.end(begun, Stage::Decode, (wire, seq), 0);
            (wire, ground, painted)
        };
        let contents = workers.start(move |_| orders.into_iter().map(paint).collect());
        Self { top, cost, content, contents }
    }

    /// The contents, once they are back; then this is over.
    pub(super) fn poll(&mut self) -> Option<Vec<(WireId, Ground, Painted)>> {
        self.contents.poll()
    }
}
