//! Where the peer's channels are by their numbers, for repair that names nothing else.
//!
//! In a session that can be resumed the [`Ledger`](super::ledger::Ledger) knows that, and more. Invariant: a channel is
//! open or done, or nothing of it has come; what is done stays done.

use std::collections::BTreeMap;

use super::incoming::Source;
use crate::Error;
use crate::assembler::IdSet;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    open: BTreeMap<u64, Source>,
    done: IdSet,
}

impl Numbers {
    /// A channel begins, here.
    ///
    /// # Errors
    /// There is one with its number.
    pub(super) fn begin(&mut self, number: u64, source: Source) -> Result<(), Error> {
        if self.open.insert(number, source).is_some() {
            let got = format!("channel {number} again");
            return Err(Error::Violation { expected: "each channel's number once", got });
        }
        Ok(())
    }

    /// An open channel goes on, here.
    pub(super) fn moved(&mut self, number: u64, source: Source) {
        if let Some(known) = self.open.get_mut(&number) {
            *known = source;
        }
    }

    /// A channel is over.
    pub(super) fn finish(&mut self, number: u64) {
        self.open.remove(&number);
        self.done.insert(number);
    }

    /// Whether nothing more of a channel is wanted.
    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done.contains(number)
    }

    /// Where an open channel travels.
    pub(super) fn source(&self, number: u64) -> Option<Source> {
        self.open.get(&number).copied()
    }

    /// How many channels are open, and how many holes there are between those that are done.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.open.len() + self.done.runs().count().saturating_sub(1)
    }
}
