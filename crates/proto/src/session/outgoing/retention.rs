//! What is kept so that channels can go on over another carrier, and how they do.
//!
//! Each channel has a number. In a session that can be resumed, what has left is kept until the peer says that it has
//! it; so are the lasting messages of the main channel. It does not decide when a session is suspended or resumed.
//! Invariants: bytes that the peer has are never sent on another carrier; bytes that it may not have are always here.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::super::STREAM_CANCELLED;
use super::super::queue::Kept;
use super::channel::Channel;
use super::{Outgoing, Place};
use crate::assembler::IdSet;
use crate::wire::Writer;
use crate::{ChannelId, Control, Error, Header, Kind, Label, Receipt, Resume};

/// See the module.
#[derive(Debug)]
pub(super) struct Retention {
    /// Lasting messages are kept: both sides can resume, or it is not known yet.
    resumable: bool,
    /// Both can: the peer keeps account of channels by their numbers.
    numbered: bool,
    last_number: u64,
    by_number: BTreeMap<u64, ChannelId>,
    /// Channels of which not everything has left, and the peer wants nothing more. It has stopped their streams, or
    /// found them complete: a carrier need not tell a stop of a stream that it has delivered.
    unwanted: BTreeMap<u64, ChannelId>,
    /// Channels of which everything has left, and the peer has not said to have it.
    sent: BTreeMap<u64, (ChannelId, Channel)>,
    by_place: Places,
    /// Bytes that have left, of all channels.
    kept: usize,
    messages: Messages,
}

/// The numbers of channels by where they travelled. It cannot be walked: one receipt may name every number that is
/// here.
#[derive(Debug, Default)]
struct Places {
    numbers: BTreeMap<Place, u64>,
    /// Entries that were looked at so far.
    #[cfg(test)]
    touched: std::cell::Cell<usize>,
}

impl Places {
    fn insert(&mut self, place: Place, number: u64) {
        self.touch();
        self.numbers.insert(place, number);
    }

    fn number(&self, place: Place) -> Option<u64> {
        self.touch();
        self.numbers.get(&place).copied()
    }

    fn remove(&mut self, place: Place) -> Option<u64> {
        self.touch();
        self.numbers.remove(&place)
    }

    fn touch(&self) {
        #[cfg(test)]
        self.touched.set(self.touched.get() + 1);
    }
}

/// The lasting messages that the peer has not said to have.
#[derive(Debug, Default)]
struct Messages {
    frames: VecDeque<Bytes>,
    /// How many came before them.
    before: u64,
    /// How many of all have been written on this carrier, or need not be.
    written: u64,
    /// They are not to be written yet.
    held: bool,
}

/// A channel that the peer has stopped.
#[derive(Debug)]
pub(in super::super) struct Stopped {
    pub(in super::super) channel: ChannelId,
    pub(in super::super) header: Header,
    pub(in super::super) code: u32,
}

impl Retention {
    pub(super) fn new(resumable: bool) -> Self {
        Self {
            resumable,
            numbered: false,
            last_number: 0,
            by_number: BTreeMap::new(),
            unwanted: BTreeMap::new(),
            sent: BTreeMap::new(),
            by_place: Places::default(),
            kept: 0,
            messages: Messages::default(),
        }
    }

    /// Forgets a channel that was taken out.
    pub(super) fn forget(&mut self, channel: &Channel) {
        self.kept -= channel.kept.len();
        if let Some(number) = channel.number {
            self.by_number.remove(&number);
            self.unwanted.remove(&number);
        }
    }

    /// A stream of which everything has left is another one now.
    pub(super) fn moved(&mut self, from: Place, to: Place) {
        let Some(number) = self.by_place.remove(from) else { return };
        self.by_place.insert(to, number);
        if let Some((_, channel)) = self.sent.get_mut(&number) {
            channel.place = Some(to);
        }
    }

    /// Channels of which everything has left, and the peer has not said to have it, by their numbers.
    pub(super) fn sent(&self) -> impl Iterator<Item = (u64, &Channel)> {
        self.sent.iter().map(|(number, (_, channel))| (*number, channel))
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        let channels = self.by_number.len() + self.unwanted.len() + self.sent.len();
        channels + self.by_place.numbers.len() + self.messages.frames.len()
    }

    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        self.by_place.touched.get()
    }

    /// Nothing is kept any more of what has left, and of what will.
    fn forgo(&mut self) {
        self.resumable = false;
        self.kept = 0;
        self.sent.clear();
        self.by_place = Places::default();
        self.messages.forget(u64::MAX);
    }

    fn forget_sent(&mut self, numbers: &RangeInclusive<u64>) {
        while let Some((number, _)) = self.sent.range(numbers.clone()).next() {
            let number = *number;
            if let Some((_, channel)) = self.sent.remove(&number) {
                self.forget(&channel);
                if let Some(place) = channel.place {
                    self.by_place.remove(place);
                }
            }
        }
    }

    fn unwant(&mut self, numbers: &RangeInclusive<u64>) {
        while let Some((number, id)) = self.by_number.range(numbers.clone()).next() {
            let (number, id) = (*number, *id);
            self.by_number.remove(&number);
            self.unwanted.insert(number, id);
        }
    }
}

impl Messages {
    fn bytes(&self) -> usize {
        self.frames.iter().map(Bytes::len).sum()
    }

    fn last(&self) -> u64 {
        self.before + self.frames.len() as u64
    }

    fn forget(&mut self, count: u64) {
        while self.before < count && self.frames.pop_front().is_some() {
            self.before += 1;
        }
        self.written = self.written.max(self.before);
    }
}

impl Outgoing {
    /// Whether both sides can resume: the peer keeps account of channels from now on. Else nothing more is kept.
    pub(in super::super) fn set_numbered(&mut self, numbered: bool) {
        self.retention.numbered = numbered;
        if !numbered {
            self.retention.resumable = false;
            self.retention.messages = Messages::default();
        }
    }

    /// This side will not go on over another carrier: channels keep their numbers, which the peer expects, and their
    /// bytes are forgotten as they leave.
    pub(in super::super) fn forgo(&mut self) {
        self.retention.forgo();
        for channel in self.channels.values_mut() {
            channel.kept = Kept::default();
        }
    }

    /// Lasting messages wait from now on until [`Outgoing::write_messages`].
    pub(in super::super) fn hold_messages(&mut self) {
        self.retention.messages.held = true;
    }

    /// Queues the lasting messages that have not left on this carrier.
    pub(in super::super) fn write_messages(&mut self) {
        let messages = &mut self.retention.messages;
        messages.held = false;
        let skip = usize::try_from(messages.written - messages.before).unwrap_or(usize::MAX);
        for frame in messages.frames.iter().skip(skip) {
            self.main.bytes(frame);
        }
        messages.written = messages.last();
    }

    /// Bytes that are here because the peer may not have them: those that wait, and those that have left.
    pub(in super::super) fn retained(&self) -> usize {
        let queued: usize = self.channels.values().map(|channel| channel.queue.len()).sum();
        queued + self.retention.kept + self.retention.messages.bytes()
    }

    /// The memory that a peer costs which does not say what it has.
    pub(in super::super) fn unacknowledged(&self) -> usize {
        let entries = self.retention.sent.len() + self.retention.messages.frames.len();
        self.retention.kept + entries * ENTRY_COST
    }

    /// Keeps a lasting message; gives whether it may leave now.
    pub(super) fn keep_message(&mut self, frame: &[u8]) -> bool {
        let messages = &mut self.retention.messages;
        if !self.retention.resumable {
            // The peer counts them where channels have numbers.
            messages.before += 1;
            messages.written = messages.before;
            return true;
        }
        messages.frames.push_back(Bytes::copy_from_slice(frame));
        let leaves = !messages.held && !self.suspended;
        if leaves {
            messages.written = messages.last();
        }
        leaves
    }

    /// What a channel's header says at its end, now that it leaves.
    pub(super) fn number(&mut self, id: ChannelId) -> Option<Label> {
        let channel = self.channels.get_mut(&id)?;
        let number = channel.number.unwrap_or_else(|| {
            self.retention.last_number += 1;
            self.retention.last_number
        });
        channel.number = Some(number);
        self.retention.by_number.insert(number, id);
        Some(Label { number, from: channel.from })
    }

    /// Keeps what has been taken of a channel's body.
    pub(super) fn keep(&mut self, id: ChannelId, body: Bytes) {
        let keeps = self.retention.resumable;
        let Some(channel) = self.channels.get_mut(&id).filter(|channel| keeps && channel.number.is_some())
        else {
            return;
        };
        self.retention.kept += body.len();
        channel.kept.push(body);
    }

    /// A channel has left to its end.
    pub(super) fn all_has_left(&mut self, id: ChannelId) {
        let Some(channel) = self.detach(id) else { return };
        let Some(number) = channel.number else { return };
        self.retention.by_number.remove(&number);
        let wanted = self.retention.unwanted.remove(&number).is_none();
        if !wanted || !self.retention.resumable {
            self.retention.forget(&channel);
            return;
        }
        if let Some(place) = channel.place {
            self.retention.by_place.insert(place, number);
        }
        self.retention.sent.insert(number, (id, channel));
    }

    /// The peer does not want a stream of which everything has left.
    pub(super) fn forget_sent(&mut self, place: Place, code: u32) {
        let Some(number) = self.retention.by_place.number(place) else { return };
        self.retention.forget_sent(&(number..=number));
        if code != STREAM_CANCELLED {
            // It may not have read the number.
            self.control(&Control::GivenUp { number, code });
        }
    }

    /// Gives up a channel of which everything has left.
    pub(super) fn reset_sent(&mut self, number: u64, code: u32) {
        let place = self.retention.sent.get(&number).and_then(|(_, channel)| channel.place);
        self.retention.forget_sent(&(number..=number));
        // It may not have read the number.
        self.control(&Control::GivenUp { number, code });
        if let Some(Place::Own(stream)) = place {
            self.reset_stream(stream, code);
        }
    }

    /// Tells the peer that nothing more of a channel comes, for it may never see that by the stream.
    pub(super) fn give_up_number(&mut self, channel: &Channel, code: u32) {
        if let Some(number) = channel.number.filter(|_| self.retention.numbered) {
            self.control(&Control::GivenUp { number, code });
        }
    }

    /// Frees what the peer has.
    ///
    /// # Errors
    /// It claims to have what was never sent.
    pub(in super::super) fn received(&mut self, receipt: &Receipt) -> Result<(), Error> {
        let (last, messages) = (self.retention.last_number, self.retention.messages.last());
        if receipt.highest() > last {
            let got = receipt.highest();
            return Err(Error::OutOfRange { expected: "the number of a channel", max: last, got });
        }
        if receipt.lasting > messages {
            let got = receipt.lasting;
            return Err(Error::OutOfRange { expected: "messages received", max: messages, got });
        }
        self.retention.messages.forget(receipt.lasting);
        for numbers in &receipt.done {
            self.retention.forget_sent(numbers);
            self.retention.unwant(numbers);
        }
        receipt.open.iter().try_for_each(|open| self.delivered(open.number, open.offset))
    }

    fn delivered(&mut self, number: u64, offset: u64) -> Result<(), Error> {
        let channel = match self.retention.by_number.get(&number) {
            Some(id) => self.channels.get_mut(id),
            None => self.retention.sent.get_mut(&number).map(|(_, channel)| channel),
        };
        let Some(channel) = channel else { return Ok(()) }; // given up
        if !channel.is_long_lived() {
            let got = format!("{offset} bytes of channel {number}");
            return Err(Error::Violation { expected: "nothing or all of an update or a blob", got });
        }
        if offset > channel.left {
            return Err(Error::OutOfRange { expected: "bytes of a channel", max: channel.left, got: offset });
        }
        let before = channel.kept.len();
        channel.kept.release(offset);
        self.retention.kept -= before - channel.kept.len();
        Ok(())
    }

    /// The carrier is gone. Everything stays but what was its own.
    pub(in super::super) fn suspend(&mut self) {
        self.suspended = true;
        self.ready = false;
        self.sounds.clear();
        self.channels.retain(|_, channel| channel.is_numbered());
        self.by_place.clear();
        self.dirty.clear();
        self.failed.clear();
        self.given_up = IdSet::default();
        self.returned.clear();
        self.transmits.clear();
        self.main = Writer::new();
        self.protector.suspend();
        self.retention.by_place = Places::default();
        let sent = self.retention.sent.values_mut().map(|(_, channel)| channel);
        self.channels.values_mut().chain(sent).for_each(Channel::detach);
    }

    /// Takes over what a session of another carrier, which is suspended, has to say. It waits for [`Outgoing::resume`].
    pub(in super::super) fn inherit(&mut self, old: Self) {
        self.protector.inherit(&old.protector);
        self.channels = old.channels;
        self.next_channel = old.next_channel;
        self.places = old.places;
        self.queued_content = old.queued_content;
        self.vacated = old.vacated;
        self.retention = old.retention;
        self.dirty.clear();
        self.hold_messages();
    }

    /// Goes on with what the peer does not have; gives what it does not want.
    ///
    /// # Errors
    /// It claims to have what was never sent, or to lack what it had.
    pub(in super::super) fn resume(&mut self, resume: &Resume) -> Result<Vec<Stopped>, Error> {
        let receipt = &resume.receipt;
        self.received(receipt)?;
        let mut stopped = Vec::new();
        for (number, channel) in self.retention.unwanted.clone() {
            if let Some(Channel { header, .. }) = self.remove(channel) {
                let code = resume.stopped.iter().find(|(other, _)| *other == number).map(|(_, code)| *code);
                stopped.push(Stopped { channel, header, code: code.unwrap_or(STREAM_CANCELLED) });
            }
        }
        for (number, (id, channel)) in std::mem::take(&mut self.retention.sent) {
            self.retention.by_number.insert(number, id);
            self.channels.insert(id, channel);
        }
        for (number, id) in self.retention.by_number.clone() {
            self.rewind(id, receipt.delivered(number))?;
        }
        let ids: Vec<_> = self.channels.keys().copied().collect();
        ids.into_iter().for_each(|id| self.mark_dirty(id));
        // Every one that the peer lacks.
        self.retention.messages.written = self.retention.messages.before;
        Ok(stopped)
    }

    fn rewind(&mut self, id: ChannelId, from: Option<u64>) -> Result<(), Error> {
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        let had = channel.kept.begin();
        if from.unwrap_or(0) < had {
            let got = format!("{} after {had} bytes of {:?}", from.unwrap_or(0), channel.header);
            return Err(Error::Violation { expected: "what was received before", got });
        }
        let kept = channel.kept.len();
        self.retention.kept -= kept;
        if channel.header.kind() == Kind::Update {
            self.queued_content += kept;
        }
        channel.rewind(from);
        Ok(())
    }

    /// Forgets everything that was to be said: the peer knows nothing of it.
    pub(in super::super) fn void(&mut self) {
        self.channels.clear();
        self.by_place.clear();
        self.dirty.clear();
        self.vacated.clear();
        self.queued_content = 0;
        self.retention = Retention::new(self.retention.resumable);
    }
}

/// What a message or a channel costs beside its bytes.
const ENTRY_COST: usize = 256;
