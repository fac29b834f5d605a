//! The contents of a unit with a worker, which paints them, and fills the buffers that show them.
//!
//! Their updates are taken before, and their surfaces have no content meanwhile. Invariant: what comes back is as it
//! would be if it had been painted here.

use std::io;

use wayferry_pixels::Content;

use crate::message::WireId;
use crate::trace::{Probe, Stage};
use crate::workers::{self, Pending, Workers};

use super::buffers::{Buffer, Kind};
use super::ground::{Ground, Painted};
use super::updates::{MAX_OPENED_BYTES, Stored, paint_all};

/// See the module.
#[derive(Debug)]
pub(super) struct Painting {
    /// Whose unit it is.
    pub(super) top: WireId,
    /// About how many bytes of memory it touches.
    pub(super) cost: usize,
    /// Bytes of the contents as they were.
    pub(super) content: usize,
    contents: Pending<Vec<Done>>,
}

/// A surface's content, and what is to be done.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) surface: WireId,
    pub(super) ground: Ground,
    /// To be painted on it.
    pub(super) updates: Vec<(u64, Stored)>,
    /// To be filled with it, if it becomes of that kind.
    pub(super) buffer: Option<(Kind, Buffer)>,
}

/// The same, done.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) surface: WireId,
    pub(super) ground: Ground,
    pub(super) painted: Painted,
    pub(super) buffer: Option<io::Result<Buffer>>,
}

impl Painting {
    /// Has the contents of a unit painted.
    pub(super) fn begin(
        (top, cost): (WireId, usize),
        orders: Vec<Order>,
        workers: &Workers,
        probe: &Probe,
    ) -> Self {
        let content = orders.iter().map(|order| order.ground.bytes()).sum();
        let probe = probe.elsewhere();
        let contents = workers.start(move |_| orders.into_iter().map(|order| order.run(&probe)).collect());
        Self { top, cost, content, contents }
    }

    /// The contents, once they are back; then this is over.
    pub(super) fn poll(&mut self) -> Option<Vec<Done>> {
        self.contents.poll()
    }
}

impl Order {
    fn run(self, probe: &Probe) -> Done {
        let Self { surface, mut ground, updates, buffer } = self;
        let update = (surface, updates.last().map_or(0, |(seq, _)| *seq));
        let begun = probe.begin();
        let painted = workers::decoder(|decoder| paint_all(decoder, &mut ground, updates, MAX_OPENED_BYTES));
        probe.end(begun, Stage::Decode, update, 0);
        let begun = probe.begin();
        let buffer = buffer.map(|(kind, buffer)| fill(kind, buffer, &ground, &painted));
        probe.end(begun, Stage::Commit, update, 0);
        Done { surface, ground, painted, buffer }
    }
}

/// Brings a buffer up to a content that was painted on.
fn fill(kind: Kind, mut buffer: Buffer, ground: &Ground, painted: &Painted) -> io::Result<Buffer> {
    buffer.changed(&painted.changed, painted.is_new);
    let is_it = |content: &&Content| (content.size(), content.format()) == (kind.size, kind.format);
    if let Some(content) = ground.content.as_ref().filter(is_it) {
        buffer.fill(content)?;
    }
    Ok(buffer)
}
