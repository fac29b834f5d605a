//! An update with a worker, which opens its chunks.
//!
//! It counts as it was before, until it is back. Invariant: what comes back is as it would be if it had been opened
//! here.

use crate::message::WireId;
use crate::trace::{Probe, Stage};
use crate::workers::{self, Pending, Workers};

use super::updates::Stored;

/// See the module.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) surface: WireId,
    pub(super) seq: u64,
    /// Of what was not open.
    pub(super) bytes: usize,
    /// Of what was.
    pub(super) memory: usize,
    /// What stands for it if it is given up.
    pub(super) shell: Stored,
    update: Pending<Stored>,
}

impl Opening {
    /// Has an update opened until it takes about `most` bytes of memory.
    pub(super) fn begin(
        (surface, seq): (WireId, u64),
        mut update: Stored,
        most: usize,
        workers: &Workers,
        probe: &Probe,
    ) -> Self {
        let (bytes, memory, shell, probe) = (update.bytes, update.memory, update.shell(), probe.elsewhere());
        let update = workers.start(move |stop| {
            let (begun, mut room) = (probe.begin(), most);
            workers::decoder(|decoder| update.open_unless(decoder, &mut room, || stop.is_asked()));
            probe.end(begun, Stage::Decode, (surface, seq), 0);
            update
        });
        Self { surface, seq, bytes, memory, shell, update }
    }

    /// The update, once it is back; then this is over.
    pub(super) fn poll(&mut self) -> Option<Stored> {
        self.update.poll()
    }
}
