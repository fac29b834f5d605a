//! The peer's channels: from byte ranges to headers, messages, pipes' bytes, blobs, updates.
//!
//! It decides nothing about the session: what comes out is a list of [`Output`]s in order, or the error that ends the
//! session. Invariants: each stream has its own parse state; `buffered` is the sum of what all streams hold; a stream
//! that is over stays over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::jointly::{Found, Jointly, MAX_PIECES, There};
use super::ledger::Ledger;
use super::numbers::Numbers;
use super::stream::{Parked, Stream, Verdict};
use super::{Event, Limits, MAX_UPDATE, STREAM_CANCELLED};
use crate::assembler::IdSet;
use crate::joint::{Joint, Member};
use crate::{
    Control, Error, Header, Kind, Kinds, Receipt, RemoteChannelId, RepairHeader, Resume, Side, StreamId,
};

/// Where a stream of the peer comes from. The two kinds are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The carrier.
    Own(StreamId),
    /// Frames in the main channel.
    Main(u64),
    /// Rows of repair alone: the stream of the channel with this number has not been seen.
    Rows(u64),
}

/// What the peer's bytes mean.
#[derive(Debug)]
pub(super) enum Output {
    /// For the caller.
    Event(Event),
    /// A frame of the main channel.
    Control(Control),
    /// A message of the main channel with a type that this build does not know.
    UnknownControl,
    /// A stream that is not accepted; nothing more of it will be looked at.
    Refuse { source: Source, kind: u64, why: String },
    /// A stream that is whole before the carrier has all of it, or of which nothing is wanted.
    Stop { source: Source, code: u32 },
}

/// Bytes of a repair row.
#[derive(Debug)]
pub(super) struct Repair {
    pub(super) header: RepairHeader,
    /// Where in the row they belong.
    pub(super) at: usize,
    pub(super) bytes: Bytes,
}

/// All channels that the peer opened.
#[derive(Debug)]
pub(super) struct Incoming {
    rules: Rules,
    pub(super) streams: BTreeMap<Source, Stream>,
    pub(super) by_channel: BTreeMap<RemoteChannelId, At>,
    over: Over,
    buffered: usize,
    /// What all streams keep of what they have given out.
    kept: usize,
    pub(super) ready: bool,
    jointly: Jointly,
    /// Something other than a ping came.
    worked: bool,
    pub(super) context: Context,
}

/// Where a channel is.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// On a stream.
    Stream(Source),
    /// In the ledger, with this number: it has no stream now.
    Parked(u64),
}

/// What a stream is judged by.
#[derive(Debug)]
pub(super) struct Rules {
    /// Who opens the streams.
    pub(super) peer: Side,
    /// Kinds that may have streams of their own.
    pub(super) accepts: Kinds,
    pub(super) limits: Limits,
}

/// What the streams share.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub(super) outputs: VecDeque<Output>,
    /// Headers of the long-lived channels that are open.
    pub(super) open: BTreeSet<Header>,
    /// The last handle given.
    pub(super) last_channel: u64,
    /// Repair that has not been brought to its source.
    pub(super) repairs: VecDeque<Repair>,
    /// The same for several updates.
    pub(super) joints: VecDeque<Joint>,
    pub(super) rebuilt: Rebuilt,
    /// How many rows could have been checked.
    pub(super) checks: u64,
    /// Where both sides can resume.
    pub(super) ledger: Option<Ledger>,
    /// Where they cannot, and repair comes in datagrams.
    pub(super) numbers: Option<Numbers>,
    /// The channels of [`Source::Rows`], by their numbers.
    pub(super) unseen: BTreeSet<u64>,
    /// The control stream, once it has been read.
    pub(super) control: Option<Source>,
}

/// What repair was good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rebuilt {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
}

impl Rules {
    /// Whether a stream can have repair.
    pub(super) fn repairs(&self, source: Source) -> bool {
        !matches!(source, Source::Main(_)) && self.accepts.contains(Kind::Repair)
    }
}

#[derive(Debug, Default)]
struct Over {
    own: IdSet,
    main: IdSet,
}

impl Over {
    fn insert(&mut self, source: Source) {
        match source {
            Source::Own(stream) => self.own.insert(stream.0),
            Source::Main(stream) => self.main.insert(stream),
            // What becomes of it is known by its number.
            Source::Rows(_) => {}
        }
    }

    fn contains(&self, source: Source) -> bool {
        match source {
            Source::Own(stream) => self.own.contains(stream.0),
            Source::Main(stream) => self.main.contains(stream),
            Source::Rows(_) => false,
        }
    }
}

impl Incoming {
    pub(super) fn new(side: Side, accepts: Kinds, limits: Limits) -> Self {
        Self {
            rules: Rules { peer: side.peer(), accepts, limits },
            streams: BTreeMap::new(),
            by_channel: BTreeMap::new(),
            over: Over::default(),
            buffered: 0,
            kept: 0,
            ready: false,
            jointly: Jointly::default(),
            worked: false,
            context: Context::default(),
        }
    }

    /// Something other than a ping came.
    pub(super) fn note_work(&mut self) {
        self.worked = true;
    }

    /// Whether that was so since this was asked last.
    pub(super) fn take_worked(&mut self) -> bool {
        std::mem::take(&mut self.worked)
    }

    /// Other limits hold from now on.
    pub(super) fn restrict(&mut self, limits: Limits) {
        self.rules.limits = limits;
    }

    /// What came of the calls so far, in order.
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.context.outputs.pop_front()
    }

    /// Channels other than the main one are read from now on; `numbered` where both sides can resume, `in_datagrams`
    /// where repair comes so.
    pub(super) fn set_ready(&mut self, numbered: bool, in_datagrams: bool) -> Result<(), Error> {
        self.ready = true;
        if numbered {
            self.context.ledger.get_or_insert_default();
        } else if in_datagrams {
            self.context.numbers.get_or_insert_default();
        }
        let sources: Vec<_> = self.streams.keys().copied().collect();
        sources.into_iter().try_for_each(|source| self.read(source))
    }

    /// Bytes of a stream.
    pub(super) fn data(&mut self, source: Source, offset: u64, bytes: &Bytes) -> Result<(), Error> {
        let copy = (!self.ready).then(|| Bytes::copy_from_slice(bytes));
        let Some((stream, context)) = self.stream(source)? else { return Ok(()) };
        stream.insert(offset, copy.as_ref().unwrap_or(bytes), context)?;
        // What comes on the control stream is judged by its messages.
        let works = stream.header() != Some(Header::Control);
        self.worked |= works;
        self.jointly.earn(bytes.len());
        self.read(source)
    }

    /// The length of a stream.
    pub(super) fn finished(&mut self, source: Source, length: u64) -> Result<(), Error> {
        let Some((stream, _)) = self.stream(source)? else { return Ok(()) };
        stream.finish(length)?;
        self.read(source)
    }

    /// The peer gave a stream up.
    pub(super) fn reset(&mut self, source: Source, code: u32) -> Result<(), Error> {
        let Some(stream) = self.end(source, 0) else { return Ok(()) };
        if stream.header() == Some(Header::Control) {
            let got = format!("its reset with code {code}");
            return Err(Error::Violation { expected: "a control stream that lasts", got });
        }
        if let Some((channel, header)) = stream.channel().zip(stream.header()) {
            self.context.outputs.push_back(Output::Event(Event::Reset { channel, header, code }));
        }
        Ok(())
    }

    /// The peer gave a numbered channel up, no matter what came of it.
    pub(super) fn given_up(&mut self, number: u64, code: u32) -> Result<(), Error> {
        let ledger = self.ledger()?;
        match ledger.source(number) {
            Some(source) => self.reset(source, code),
            None => {
                self.drop_parked(number, code);
                Ok(())
            }
        }
    }

    /// The caller does not want a channel any more; gives its stream, if it has one.
    pub(super) fn stop(&mut self, channel: RemoteChannelId, code: u32) -> Option<Source> {
        let (number, source) = match *self.by_channel.get(&channel)? {
            At::Stream(source) => (self.streams.get(&source)?.number(), Some(source)),
            At::Parked(number) => (Some(number), None),
        };
        if let Some((ledger, number)) = self.context.ledger.as_mut().zip(number) {
            if let Some(parked) = ledger.take_parked(number) {
                self.context.open.remove(&parked.header);
            }
            ledger.stop(number, code);
        }
        self.by_channel.remove(&channel);
        if let Some(source) = source {
            self.end(source, 0);
        }
        source
    }

    /// The caller took bytes of a pipe; gives what to tell the peer, when it is time to.
    pub(super) fn consumed(&mut self, channel: RemoteChannelId, bytes: usize) -> Option<Control> {
        match *self.by_channel.get(&channel)? {
            At::Stream(source) => self.streams.get_mut(&source)?.consumed(bytes as u64),
            At::Parked(number) => {
                self.context.ledger.as_mut()?.parked(number)?.consumed(bytes as u64);
                None
            }
        }
    }

    /// What is known of the peer's channels, where both sides can resume.
    ///
    /// # Errors
    /// They cannot; and what came is the peer's mistake.
    pub(super) fn ledger(&mut self) -> Result<&mut Ledger, Error> {
        let got = "one of a session that can".to_owned();
        let expected = "messages of a session that cannot resume";
        self.context.ledger.as_mut().ok_or(Error::Violation { expected, got })
    }

    /// Whether there is something to tell the peer, and of how many delivered bytes.
    pub(super) fn news(&self) -> Option<usize> {
        self.context.ledger.as_ref()?.news()
    }

    /// What the peer has not been told.
    pub(super) fn take_news(&mut self) -> Option<Receipt> {
        let Self { streams, context, .. } = self;
        let ledger = context.ledger.as_mut()?;
        let open: BTreeMap<u64, u64> = ledger
            .progressed()
            .filter_map(|number| Some((number, streams.get(&ledger.source(number)?)?.delivered())))
            .collect();
        Some(ledger.take_news(|number| open.get(&number).copied()))
    }

    /// The carrier is gone. Long-lived channels wait for another one; of all else the peer begins anew.
    pub(super) fn park(&mut self) {
        for (_, stream) in std::mem::take(&mut self.streams) {
            let (header, listed, complete) = (stream.header(), stream.is_listed(), stream.is_complete());
            let numbered = self.context.ledger.as_mut().zip(stream.number());
            match (numbered, stream.park()) {
                (Some((ledger, number)), Some(parked)) => {
                    self.by_channel.insert(parked.channel, At::Parked(number));
                    ledger.park(number, parked);
                }
                (Some((ledger, number)), None) if complete => ledger.finish(number, 0),
                _ => {
                    header.filter(|_| listed).map(|header| self.context.open.remove(&header));
                }
            }
        }
        if let Some(ledger) = &mut self.context.ledger {
            ledger.close_streams();
        }
        self.context.repairs.clear();
        self.context.joints.clear();
        self.context.unseen.clear();
        (self.context.numbers, self.context.control) = (None, None);
        self.jointly = Jointly::default();
        self.over = Over::default();
        (self.buffered, self.kept, self.ready) = (0, 0, false);
    }

    /// Takes over what a session of another carrier, which is suspended, has received.
    pub(super) fn inherit(&mut self, old: Self) {
        let outputs = std::mem::take(&mut self.context.outputs);
        let listed = std::mem::take(&mut self.context.open);
        let control = self.context.control;
        self.by_channel = old.by_channel;
        self.context = Context { control, ..old.context };
        self.context.outputs.extend(outputs);
        self.context.open.extend(listed);
    }

    /// What the peer has to know to go on. Channels beyond those that can be told are given up.
    pub(super) fn resume(&mut self) -> Resume {
        let Some(ledger) = &self.context.ledger else { return Resume::default() };
        for number in ledger.surplus() {
            self.drop_parked(number, STREAM_CANCELLED);
        }
        let Some(ledger) = &mut self.context.ledger else { return Resume::default() };
        ledger.announced();
        Resume { receipt: ledger.receipt(), stopped: ledger.stopped() }
    }

    /// How much of the peer's pipes has been taken, to be said again.
    pub(super) fn credits(&self) -> Vec<Control> {
        let parked = self.context.ledger.iter().flat_map(Ledger::all_parked);
        parked.filter_map(Parked::credit).collect()
    }

    /// There is nothing to go on with: forgets the channels of earlier carriers.
    pub(super) fn void(&mut self) {
        if let Some(ledger) = self.context.ledger.take() {
            for parked in ledger.all_parked() {
                self.by_channel.remove(&parked.channel);
                self.context.open.remove(&parked.header);
            }
        }
    }

    fn drop_parked(&mut self, number: u64, code: u32) {
        let Some(ledger) = &mut self.context.ledger else { return };
        if let Some(Parked { header, channel, .. }) = ledger.take_parked(number) {
            self.by_channel.remove(&channel);
            self.context.open.remove(&header);
            self.context.outputs.push_back(Output::Event(Event::Reset { channel, header, code }));
        }
        ledger.finish(number, 0);
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.rules.peer.peer(), self.rules.accepts, self.rules.limits);
    }

    /// What repair was good for so far.
    pub(super) fn rebuilt(&self) -> Rebuilt {
        self.context.rebuilt
    }

    /// See [`Session::held`](super::Session::held).
    pub(super) fn held(&self) -> usize {
        if self.buffered < MAX_UPDATE / 2 {
            return 0;
        }
        let most = self.streams.values().map(|stream| stream.counted).max().unwrap_or_default();
        self.buffered - most.min(MAX_UPDATE)
    }

    /// What all streams hold, in bytes.
    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// How many streams and other entries there are.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        let ledger = self.context.ledger.as_ref().map_or(0, Ledger::entries);
        let numbers = self.context.numbers.as_ref().map_or(0, Numbers::entries);
        let lists = self.streams.len() + self.by_channel.len() + self.context.open.len();
        lists + self.context.outputs.len() + self.context.unseen.len() + ledger + numbers
    }

    /// Reads what a stream can give now, and if that is repair, what its source can give then.
    fn read(&mut self, source: Source) -> Result<(), Error> {
        self.pump(source)?;
        while let Some(repair) = self.context.repairs.pop_front() {
            self.repair(&repair)?;
        }
        while let Some(joint) = self.context.joints.pop_front() {
            self.jointly.add(joint);
        }
        if self.jointly.is_due() { self.solve() } else { Ok(()) }
    }

    /// Brings what follows from sums of rows of several updates to these.
    fn solve(&mut self) -> Result<(), Error> {
        let mut jointly = std::mem::take(&mut self.jointly);
        let found = jointly.solve(|member| self.there(member));
        self.jointly = jointly;
        for Found { member, offset, bytes } in found {
            let Some(source) = self.carrying(member.channel, member.stream) else { continue };
            let Some((stream, context)) = self.stream(source)? else { continue };
            stream.name(member.channel)?;
            stream.restore(offset, &bytes, context)?;
            self.pump(source)?;
        }
        Ok(())
    }

    /// What there is of an update that is not whole.
    fn there(&self, member: &Member) -> There {
        match self.carrying(member.channel, member.stream) {
            None => There::Over,
            Some(source) if self.over.contains(source) => There::Over,
            Some(source) => {
                let pieces = |stream: &Stream| stream.pieces(member.length, MAX_PIECES);
                There::Pieces(self.streams.get(&source).map(pieces).unwrap_or_default())
            }
        }
    }

    /// Brings repair to its source.
    fn repair(&mut self, repair: &Repair) -> Result<(), Error> {
        let Some(source) = self.repaired(&repair.header) else { return Ok(()) };
        let Some((stream, context)) = self.stream(source)? else { return Ok(()) };
        stream.name(repair.header.channel)?;
        stream.repair(&repair.header, repair.at, &repair.bytes, context)?;
        self.pump(source)
    }

    /// The source of a repair row, if it is known and not over: what says its number in its header, or, while that has
    /// not come, what the sender says that it travels on.
    fn repaired(&self, header: &RepairHeader) -> Option<Source> {
        match header.channel {
            0 => Some(Source::Own(header.stream)),
            channel => self.carrying(channel, header.stream),
        }
    }

    /// Where a numbered channel is that is not over, if `told` is the stream that its sender says.
    fn carrying(&self, channel: u64, told: StreamId) -> Option<Source> {
        let ledger = self.context.ledger.as_ref();
        if ledger.is_some_and(|ledger| ledger.is_done(channel)) {
            return None;
        }
        match ledger.and_then(|ledger| ledger.source(channel)) {
            Some(known) => matches!(known, Source::Own(_)).then_some(known),
            None => (told.0 != 0).then_some(Source::Own(told)),
        }
    }

    /// The stream, made if it is new; `None` when it is over.
    pub(super) fn stream(&mut self, source: Source) -> Result<Option<(&mut Stream, &mut Context)>, Error> {
        if !self.streams.contains_key(&source) {
            if self.over.contains(source) {
                return Ok(None);
            }
            let max = self.rules.limits.streams;
            if self.streams.len() >= max {
                return Err(Error::TooMuch { limit: "open streams", max: max as u64 });
            }
        }
        Ok(Some((self.streams.entry(source).or_default(), &mut self.context)))
    }

    pub(super) fn pump(&mut self, source: Source) -> Result<(), Error> {
        let Some(stream) = self.streams.get_mut(&source) else { return Ok(()) };
        let verdict = stream.pump(source, self.ready, &self.rules, &mut self.context)?;
        if let Verdict::Joins(number) = verdict {
            return self.join(number, source);
        }
        if let Some(channel) = stream.channel() {
            self.by_channel.insert(channel, At::Stream(source));
        }
        let delivered = stream.delivered();
        if let Some((number, ledger)) = stream.number().zip(self.context.ledger.as_mut())
            && delivered > stream.counted_delivered
        {
            ledger.progress(number, (delivered - stream.counted_delivered) as usize);
            stream.counted_delivered = delivered;
        }
        let uncounted = (stream.length() - delivered) as usize;
        let cost = stream.cost();
        self.buffered = self.buffered - stream.counted + cost;
        stream.counted = cost;
        let kept = stream.kept();
        self.kept = self.kept - stream.counted_kept + kept;
        stream.counted_kept = kept;
        let max = stream.limit(&self.rules.limits);
        match verdict {
            Verdict::Open => self.check_limits(cost, max),
            Verdict::Over => {
                self.end(source, uncounted);
                Ok(())
            }
            Verdict::Joins(_) => Ok(()),
        }
    }

    /// A stream is over, with so many bytes that the ledger has not counted.
    fn end(&mut self, source: Source, uncounted: usize) -> Option<Stream> {
        let mut removed = self.remove(source);
        self.over.insert(source);
        self.keep(removed.as_mut());
        let number = removed.as_ref().and_then(Stream::number);
        if let Some((ledger, number)) = self.context.ledger.as_mut().zip(number) {
            ledger.finish(number, uncounted);
        }
        if let Some((numbers, number)) = self.context.numbers.as_mut().zip(number) {
            numbers.finish(number);
        }
        removed
    }

    /// Keeps a small update that is whole, for what else it may be repaired with.
    fn keep(&mut self, ended: Option<&mut Stream>) {
        let Some(stream) = ended.filter(|_| self.rules.accepts.contains(Kind::Joint)) else { return };
        let Some((number, bytes)) = stream.whole_update() else { return };
        self.context.rebuilt.blocks += u64::from(stream.was_restored());
        self.jointly.keep(number, bytes);
    }

    fn check_limits(&self, cost: usize, max: usize) -> Result<(), Error> {
        let limits = &self.rules.limits;
        let parked = self.context.ledger.as_ref().map_or(0, Ledger::cost);
        // Who resumes is known from an earlier carrier.
        let before_hello = if self.ready || self.context.ledger.is_some() {
            usize::MAX
        } else {
            limits.buffered_before_hello
        };
        let checks = [
            (self.buffered, before_hello, "bytes before the hello"),
            (cost, max, "buffered bytes of a channel"),
            (self.buffered + self.kept + parked, limits.buffered, "buffered bytes"),
        ];
        match checks.into_iter().find(|(got, max, _)| got > max) {
            Some((_, max, limit)) => Err(Error::TooMuch { limit, max: max as u64 }),
            None => Ok(()),
        }
    }

    /// Takes a stream out of the list and of the sums, and nothing else.
    pub(super) fn detach(&mut self, source: Source) -> Option<Stream> {
        let mut stream = self.streams.remove(&source)?;
        self.buffered -= std::mem::take(&mut stream.counted);
        self.kept -= std::mem::take(&mut stream.counted_kept);
        if let Source::Rows(number) = source {
            self.context.unseen.remove(&number);
        }
        Some(stream)
    }

    fn remove(&mut self, source: Source) -> Option<Stream> {
        let stream = self.detach(source)?;
        if let Some(channel) = stream.channel() {
            self.by_channel.remove(&channel);
        }
        if let Some(header) = stream.header().filter(|_| stream.is_listed()) {
            self.context.open.remove(&header);
        }
        Some(stream)
    }
}
