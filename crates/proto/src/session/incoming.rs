//! The peer's channels: from byte ranges to headers, messages, pipes' bytes, blobs, updates.
//!
//! It decides nothing about the session: what comes out is a list of [`Output`]s in order, or the error that ends the
//! session. Invariants: each stream has its own parse state; `buffered` is the sum of what all streams hold; a stream
//! that is over stays over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::stream::{Stream, Verdict};
use super::{Event, Limits};
use crate::assembler::IdSet;
use crate::{Control, Error, Header, Kind, Kinds, RemoteChannelId, RepairHeader, Side, StreamId};

/// Where a stream of the peer comes from. The two kinds are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The carrier.
    Own(StreamId),
    /// Frames in the main channel.
    Main(u64),
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
    /// A stream that is whole before the carrier has all of it.
    Rebuilt { source: Source },
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
    streams: BTreeMap<Source, Stream>,
    by_channel: BTreeMap<RemoteChannelId, Source>,
    over: Over,
    buffered: usize,
    /// What all streams keep of what they have given out.
    kept: usize,
    ready: bool,
    context: Context,
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
    pub(super) rebuilt: Rebuilt,
    /// How many rows could have been checked.
    pub(super) checks: u64,
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
        matches!(source, Source::Own(_)) && self.accepts.contains(Kind::Repair)
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
        }
    }

    fn contains(&self, source: Source) -> bool {
        match source {
            Source::Own(stream) => self.own.contains(stream.0),
            Source::Main(stream) => self.main.contains(stream),
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
            context: Context::default(),
        }
    }

    /// What came of the calls so far, in order.
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.context.outputs.pop_front()
    }

    /// The peer's hello fits: channels other than the main one are read from now on.
    pub(super) fn set_ready(&mut self) -> Result<(), Error> {
        self.ready = true;
        let sources: Vec<_> = self.streams.keys().copied().collect();
        sources.into_iter().try_for_each(|source| self.read(source))
    }

    /// Bytes of a stream.
    pub(super) fn data(&mut self, source: Source, offset: u64, bytes: &Bytes) -> Result<(), Error> {
        let copy = (!self.ready).then(|| Bytes::copy_from_slice(bytes));
        let Some((stream, context)) = self.stream(source)? else { return Ok(()) };
        stream.insert(offset, copy.as_ref().unwrap_or(bytes), context)?;
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
        let removed = self.remove(source);
        self.over.insert(source);
        let Some(stream) = removed else { return Ok(()) };
        if stream.header() == Some(Header::Control) {
            let got = format!("its reset with code {code}");
            return Err(Error::Violation { expected: "a control stream that lasts", got });
        }
        if let Some((channel, header)) = stream.channel().zip(stream.header()) {
            self.context.outputs.push_back(Output::Event(Event::Reset { channel, header, code }));
        }
        Ok(())
    }

    /// The caller does not want a channel any more.
    pub(super) fn stop(&mut self, channel: RemoteChannelId) -> Option<Source> {
        let source = *self.by_channel.get(&channel)?;
        self.remove(source);
        self.over.insert(source);
        Some(source)
    }

    /// The caller took bytes of a pipe; gives what to tell the peer, when it is time to.
    pub(super) fn consumed(&mut self, channel: RemoteChannelId, bytes: usize) -> Option<Control> {
        self.streams.get_mut(self.by_channel.get(&channel)?)?.consumed(bytes as u64)
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.rules.peer.peer(), self.rules.accepts, self.rules.limits);
    }

    /// What repair was good for so far.
    pub(super) fn rebuilt(&self) -> Rebuilt {
        self.context.rebuilt
    }

    /// What all streams hold, in bytes.
    #[cfg(test)]
    pub(super) fn buffered(&self) -> usize {
        self.buffered
    }

    /// How many streams and other entries there are.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.streams.len() + self.by_channel.len() + self.context.open.len() + self.context.outputs.len()
    }

    /// Reads what a stream can give now, and if that is repair, what its source can give then.
    fn read(&mut self, source: Source) -> Result<(), Error> {
        self.pump(source)?;
        while let Some(repair) = self.context.repairs.pop_front() {
            self.repair(&repair)?;
        }
        Ok(())
    }

    /// Brings repair to its source.
    fn repair(&mut self, repair: &Repair) -> Result<(), Error> {
        let source = Source::Own(repair.header.stream);
        let Some((stream, context)) = self.stream(source)? else { return Ok(()) };
        stream.repair(&repair.header, repair.at, &repair.bytes, context)?;
        self.pump(source)
    }

    /// The stream, made if it is new; `None` when it is over.
    fn stream(&mut self, source: Source) -> Result<Option<(&mut Stream, &mut Context)>, Error> {
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

    fn pump(&mut self, source: Source) -> Result<(), Error> {
        let Some(stream) = self.streams.get_mut(&source) else { return Ok(()) };
        let verdict = stream.pump(source, self.ready, &self.rules, &mut self.context)?;
        if let Some(channel) = stream.channel() {
            self.by_channel.insert(channel, source);
        }
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
                self.remove(source);
                self.over.insert(source);
                Ok(())
            }
        }
    }

    fn check_limits(&self, cost: usize, max: usize) -> Result<(), Error> {
        let limits = &self.rules.limits;
        let before_hello = if self.ready { usize::MAX } else { limits.buffered_before_hello };
        let checks = [
            (self.buffered, before_hello, "bytes before the hello"),
            (cost, max, "buffered bytes of a channel"),
            (self.buffered + self.kept, limits.buffered, "buffered bytes"),
        ];
        match checks.into_iter().find(|(got, max, _)| got > max) {
            Some((_, max, limit)) => Err(Error::TooMuch { limit, max: max as u64 }),
            None => Ok(()),
        }
    }

    fn remove(&mut self, source: Source) -> Option<Stream> {
        let stream = self.streams.remove(&source)?;
        self.buffered -= stream.counted;
        self.kept -= stream.counted_kept;
        if let Some(channel) = stream.channel() {
            self.by_channel.remove(&channel);
        }
        if let Some(header) = stream.header().filter(|_| stream.is_listed()) {
            self.context.open.remove(&header);
        }
        Some(stream)
    }
}
