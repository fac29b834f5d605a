//! Repair that comes in datagrams, and channels of which nothing else has come.
//!
//! Of a stream whose first packet is lost, a script in a browser hears nothing at all. Rows name its channel by number;
//! what they rebuild is read as if it had come. The stream that brings that number joins what is there, and is stopped
//! if all is. Invariant: a channel is read in one place, so nothing of it is told twice.

use super::incoming::{At, Context, Incoming, Source};
use crate::{Error, RepairHeader};

impl Incoming {
    /// A row of repair in a datagram.
    pub(super) fn row(&mut self, header: &RepairHeader, row: &[u8]) -> Result<(), Error> {
        if !self.ready {
            return Ok(());
        }
        let Some(source) = self.named(header.channel) else { return Ok(()) };
        let Some((stream, context)) = self.stream(source)? else { return Ok(()) };
        stream.name(header.channel)?;
        stream.repair(header, 0, row, context)?;
        self.pump(source)
    }

    /// Where the channel with this number is; a place for it, if nothing of it has come. `None` if it is over, cannot
    /// have repair, or too many wait for their streams.
    fn named(&mut self, number: u64) -> Option<Source> {
        if number == 0 {
            return self.context.control;
        }
        if self.context.is_done(number) {
            return None;
        }
        if let Some(known) = self.context.source(number) {
            return (!matches!(known, Source::Main(_))).then_some(known);
        }
        let source = Source::Rows(number);
        let is_new = self.context.unseen.insert(number);
        if is_new && self.context.unseen.len() > MAX_UNSEEN && !self.forget_unseen(number) {
            self.context.unseen.remove(&number);
            return None;
        }
        Some(source)
    }

    /// Forgets the oldest channel but this one of which nothing was read; its stream may have been given up. Gives
    /// whether there is one.
    fn forget_unseen(&mut self, newest: u64) -> bool {
        let is_unread = |number: &&u64| {
            let stream = self.streams.get(&Source::Rows(**number));
            **number != newest && stream.is_none_or(|stream| stream.header().is_none())
        };
        let Some(oldest) = self.context.unseen.iter().find(is_unread).copied() else { return false };
        self.context.unseen.remove(&oldest);
        self.detach(Source::Rows(oldest));
        true
    }

    /// The stream of a channel has come of which there is something already: it goes on with both.
    pub(super) fn join(&mut self, number: u64, source: Source) -> Result<(), Error> {
        let Some(came) = self.detach(source) else { return Ok(()) };
        let Some(mut stream) = self.detach(Source::Rows(number)) else { return Ok(()) };
        stream.absorb(&came, &mut self.context)?;
        self.context.moved(number, source);
        if let Some(channel) = stream.channel() {
            self.by_channel.insert(channel, At::Stream(source));
        }
        self.streams.insert(source, stream);
        self.pump(source)
    }
}

impl Context {
    /// Whether channels are known by their numbers.
    pub(super) fn knows_numbers(&self) -> bool {
        self.ledger.is_some() || self.numbers.is_some()
    }

    /// Whether nothing more of a channel is wanted.
    pub(super) fn is_done(&self, number: u64) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.is_done(number))
            || self.numbers.as_ref().is_some_and(|numbers| numbers.is_done(number))
    }

    /// Where an open channel is.
    fn source(&self, number: u64) -> Option<Source> {
        let of_ledger = self.ledger.as_ref().and_then(|ledger| ledger.source(number));
        of_ledger.or_else(|| self.numbers.as_ref()?.source(number))
    }

    /// An open channel goes on, here.
    fn moved(&mut self, number: u64, source: Source) {
        self.ledger.iter_mut().for_each(|ledger| ledger.moved(number, source));
        self.numbers.iter_mut().for_each(|numbers| numbers.moved(number, source));
    }
}

/// Channels of which nothing but rows has come. A side repairs what left within a round trip or two.
const MAX_UNSEEN: usize = 64;
