//! What has come of the peer's numbered channels: which are over, which go on, and what of that the peer has not been
//! told.
//!
//! It holds no bytes of streams, only the parse state of channels that have no stream now. Invariant: a channel is
//! open, parked or done, or nothing of it has come; what is done stays done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::STREAM_CANCELLED;
use super::incoming::Source;
use super::stream::Parked;
use crate::assembler::IdSet;
use crate::{Delivered, Error, MAX_STOPPED, Receipt};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    done: IdSet,
    /// Those of them that the peer has not been told.
    fresh: IdSet,
    /// Where those travel that are open.
    open: BTreeMap<u64, Source>,
    /// Long-lived channels of which more was delivered than the peer has been told.
    progressed: BTreeSet<u64>,
    /// Long-lived channels without a stream: that of an earlier carrier is gone.
    parked: BTreeMap<u64, Parked>,
    /// What `parked` takes in memory.
    cost: usize,
    /// The last ones that the caller stopped, and why.
    stopped: VecDeque<(u64, u32)>,
    /// Lasting messages of the main channel that came.
    lasting: u64,
    announced_lasting: u64,
    /// Body bytes delivered since the peer was told.
    unannounced: usize,
}

impl Ledger {
    /// Whether nothing more of a channel is wanted.
    pub(super) fn is_done(&self, number: u64) -> bool {
        self.done.contains(number)
    }

    /// A channel begins, here.
    ///
    /// # Errors
    /// There is one with its number.
    pub(super) fn begin(&mut self, number: u64, source: Source) -> Result<(), Error> {
        if self.parked.contains_key(&number) || self.open.insert(number, source).is_some() {
            let got = format!("channel {number} again");
            return Err(Error::Violation { expected: "each channel's number once", got });
        }
        Ok(())
    }

    /// A parked channel goes on, here.
    ///
    /// # Errors
    /// There is none with its number.
    pub(super) fn resume(&mut self, number: u64, source: Source) -> Result<Parked, Error> {
        let Some(parked) = self.take_parked(number) else {
            let got = format!("more of channel {number}");
            return Err(Error::Violation { expected: "channels that were told to be open", got });
        };
        self.open.insert(number, source);
        Ok(parked)
    }

    /// An open channel goes on, here.
    pub(super) fn moved(&mut self, number: u64, source: Source) {
        if let Some(known) = self.open.get_mut(&number) {
            *known = source;
        }
    }

    /// Keeps a channel whose stream is gone.
    pub(super) fn park(&mut self, number: u64, parked: Parked) {
        self.open.remove(&number);
        self.cost += parked.cost();
        self.parked.insert(number, parked);
    }

    /// A parked channel, if that is what it is.
    pub(super) fn parked(&mut self, number: u64) -> Option<&mut Parked> {
        self.parked.get_mut(&number)
    }

    pub(super) fn take_parked(&mut self, number: u64) -> Option<Parked> {
        let parked = self.parked.remove(&number)?;
        self.cost -= parked.cost();
        Some(parked)
    }

    /// All parked channels.
    pub(super) fn all_parked(&self) -> impl Iterator<Item = &Parked> {
        self.parked.values()
    }

    /// No stream is open any more.
    pub(super) fn close_streams(&mut self) {
        self.open.clear();
    }

    /// Where an open channel travels.
    pub(super) fn source(&self, number: u64) -> Option<Source> {
        self.open.get(&number).copied()
    }

    /// More of a long-lived channel was delivered.
    pub(super) fn progress(&mut self, number: u64, bytes: usize) {
        self.unannounced += bytes;
        self.progressed.insert(number);
    }

    /// A channel is over, with so many bytes that were not counted yet.
    pub(super) fn finish(&mut self, number: u64, bytes: usize) {
        self.open.remove(&number);
        self.take_parked(number);
        self.progressed.remove(&number);
        if !self.done.contains(number) {
            self.done.insert(number);
            self.fresh.insert(number);
            self.unannounced += bytes;
        }
    }

    /// The caller stopped a channel.
    pub(super) fn stop(&mut self, number: u64, code: u32) {
        if self.stopped.len() == MAX_STOPPED {
            self.stopped.pop_front();
        }
        self.stopped.push_back((number, code));
        self.finish(number, 0);
    }

    /// A lasting message of the main channel came.
    pub(super) fn message(&mut self) {
        self.lasting += 1;
    }

    /// Whether there is something to tell, and of how many bytes.
    pub(super) fn news(&self) -> Option<usize> {
        let news =
            !self.fresh.is_empty() || !self.progressed.is_empty() || self.announced_lasting < self.lasting;
        news.then_some(self.unannounced)
    }

    /// Long-lived channels of which more was delivered than the peer has been told.
    pub(super) fn progressed(&self) -> impl Iterator<Item = u64> {
        self.progressed.iter().copied()
    }

    /// What the peer has not been told, as much as fits a message; `delivered` says it of an open channel.
    pub(super) fn take_news(&mut self, delivered: impl Fn(u64) -> Option<u64>) -> Receipt {
        self.unannounced = 0;
        self.announced_lasting = self.lasting;
        let numbers: Vec<u64> = self.progressed.iter().copied().take(MOST_OPEN).collect();
        let open = numbers.into_iter().filter_map(|number| {
            self.progressed.remove(&number);
            Some(Delivered { number, offset: delivered(number)? })
        });
        Receipt { lasting: self.lasting, open: open.collect(), done: self.fresh.take(MOST_RANGES) }
    }

    /// Everything that the peer has to know to go on. Of what is done the end is left out if there is too much: it is
    /// stopped when it comes again.
    pub(super) fn receipt(&self) -> Receipt {
        let open = self
            .parked
            .iter()
            .map(|(number, parked)| Delivered { number: *number, offset: parked.delivered });
        Receipt {
            lasting: self.lasting,
            done: self.done.runs().take(MOST_RANGES).collect(),
            open: open.collect(),
        }
    }

    /// The peer has been told everything.
    pub(super) fn announced(&mut self) {
        self.unannounced = 0;
        self.announced_lasting = self.lasting;
        self.fresh = IdSet::default();
        self.progressed.clear();
    }

    /// Why nothing more of a channel is wanted.
    pub(super) fn code(&self, number: u64) -> u32 {
        let stopped = self.stopped.iter().find(|(other, _)| *other == number);
        stopped.map_or(STREAM_CANCELLED, |(_, code)| *code)
    }

    /// Number and code of the last channels that were stopped.
    pub(super) fn stopped(&self) -> Vec<(u64, u32)> {
        self.stopped.iter().copied().collect()
    }

    /// The parked channels of which a receipt cannot tell: they cannot go on.
    pub(super) fn surplus(&self) -> Vec<u64> {
        self.parked.keys().copied().skip(MOST_OPEN).collect()
    }

    /// What parked channels take in memory.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// How many channels are open, parked or still to be told, and how many holes there are between those that are
    /// done.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        let lists = self.open.len() + self.parked.len() + self.progressed.len();
        lists + self.fresh.runs().count() + self.done.runs().count().saturating_sub(1)
    }
}

/// Most ranges that this side puts into a receipt, so that it fits a message with any numbers.
const MOST_RANGES: usize = 1024;

/// The same of open channels.
const MOST_OPEN: usize = 2048;
