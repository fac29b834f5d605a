//! The books of what is kept for another display, beside what each object keeps of itself.
//!
//! What is left of objects that are gone, the contents that requests name, and in which order requests were made. Says
//! nothing to any display and knows no living object. Invariant: what is left of an object stays as long as a living
//! one came from it.

use std::collections::BTreeSet;
use std::rc::Rc;

use wayland_backend::protocol::Interface;

use crate::message::WireId;

use super::birth::{Lasting, Message, Past, Stock, Tombstone, Tombstones};

/// A content that a request names, by its hash.
pub(super) type Blob = (u128, Rc<[u8]>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    tombstones: Tombstones,
    /// Of these, what the display has while it is being told of the rest.
    revived: BTreeSet<WireId>,
    /// Contents that are kept, each once.
    stock: Stock,
    /// The content that the request at hand names.
    blob: Option<Blob>,
    /// Requests that were kept so far.
    age: u64,
    /// Bytes that were kept since they were last counted.
    uncounted: usize,
}

impl Keeping {
    /// So many bytes more are kept. Returns whether it is time to count them all.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.uncounted += bytes;
        let is_due = self.uncounted > UNCOUNTED;
        if is_due {
            self.uncounted = 0;
        }
        is_due
    }

    /// Bytes that these books take.
    pub(super) fn bytes(&self) -> usize {
        self.tombstones.bytes() + self.stock.bytes()
    }

    /// Keeps a content for the request at hand; gives its hash.
    pub(super) fn stock(&mut self, bytes: &[u8]) -> u128 {
        let hash = crate::blob::hash(bytes);
        self.blob = Some((hash, self.stock.share(hash, bytes)));
        hash
    }

    /// The content that the request at hand names.
    pub(super) fn take_blob(&mut self) -> Option<Blob> {
        self.blob.take()
    }

    /// A request whose effect lasts, as the newest.
    pub(super) fn newest(
        &mut self,
        slot: Option<&'static str>,
        message: Message,
        blob: Option<Blob>,
    ) -> Lasting {
        self.age += 1;
        Lasting { slot, age: self.age, message, blob }
    }

    /// Keeps what is left of an object. Returns whether there are so many by now that [`Self::sweep`] is due.
    pub(super) fn leave_tombstone(&mut self, name: WireId, tombstone: Tombstone) -> bool {
        self.tombstones.add(name, tombstone)
    }

    /// Forgets what living objects, which need these, have no use for.
    pub(super) fn sweep(&mut self, needs: impl Iterator<Item = WireId>) {
        self.tombstones.sweep(needs);
    }

    /// What is left of an object.
    pub(super) fn tombstone(&self, name: WireId) -> Option<&Tombstone> {
        self.tombstones.of(name)
    }

    /// The objects that are gone and that living ones need, which need these, oldest first.
    pub(super) fn needed(&self, needs: impl Iterator<Item = WireId>) -> Vec<WireId> {
        self.tombstones.needed(needs)
    }

    /// What the objects that are gone went through.
    pub(super) fn pasts(&self) -> impl Iterator<Item = &Past> {
        self.tombstones.pasts()
    }

    /// As [`Self::pasts`].
    pub(super) fn pasts_mut(&mut self) -> impl Iterator<Item = &mut Past> {
        self.tombstones.pasts_mut()
    }

    /// The display has an object that is gone, for now.
    pub(super) fn revive(&mut self, name: WireId) {
        self.revived.insert(name);
    }

    /// The interface of an object that is gone, while the display has it.
    pub(super) fn revived(&self, name: WireId) -> Option<&'static Interface> {
        let there = self.revived.contains(&name);
        self.tombstone(name).filter(|_| there).map(|tombstone| tombstone.interface)
    }

    /// The display needs those no more: gives them, the newest first.
    pub(super) fn take_revived(&mut self) -> Vec<(WireId, &Tombstone)> {
        let names = std::mem::take(&mut self.revived);
        names.into_iter().rev().filter_map(|name| Some((name, self.tombstones.of(name)?))).collect()
    }
}

/// What is kept may grow by so much before it is counted.
const UNCOUNTED: usize = 1 << 20;
