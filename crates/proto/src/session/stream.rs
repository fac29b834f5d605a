//! One stream of the peer and its parse state.
//!
//! It reads the header, waits for the peer's hello unless it is the main channel, then reads its kind's body. It knows
//! no other stream; repair is brought to it. Invariant: what comes out depends on the stream's bytes alone, not on how
//! and in which order they came, or were rebuilt.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::incoming::{Context, Output, Repair, Rules, Source};
use super::{Event, Limits, MAX_FLUSH, PIPE_WINDOW, STREAM_CANCELLED};
use crate::assembler::Assembler;
use crate::joint::{Joint, MAX_BODY, MAX_MEMBER};
use crate::parse::{Blob, Chunks, Frames, Table};
use crate::rebuild::{self, Rebuild};
use crate::wire::Reader;
use crate::{
    Control, Error, Header, JointHeader, Kind, Label, MAX_CONTROL, MAX_HEADER, MAX_MESSAGE, MAX_SOUND,
    RemoteChannelId, RepairHeader, UpdateHeader,
};

/// A stream that the peer opened.
#[derive(Debug)]
pub(super) struct Stream {
    assembler: Assembler,
    /// What came of chunks since the last pump.
    touched: Vec<Range<u64>>,
    /// Its blocks that wait for more source or repair.
    rebuilds: Vec<Rebuild>,
    /// Whether some of its bytes were rebuilt.
    rebuilt: bool,
    /// The same by a sum of rows of several updates.
    restored: bool,
    /// What [`Stream::cost`] was when the session's sum was last brought up to date.
    pub(super) counted: usize,
    /// The same of [`Stream::kept`].
    pub(super) counted_kept: usize,
    /// Taken from the assembler and not read yet.
    rest: Bytes,
    header: Option<Header>,
    label: Option<Label>,
    /// Which channel it must be, as repair says: 0 for the main one.
    named: Option<u64>,
    /// Its number, once it has been found to be right.
    number: Option<u64>,
    /// It was looked which channel it is, or found that it may be read.
    admitted: bool,
    /// Where the body begins.
    begin: u64,
    /// How much of the body came on earlier carriers.
    before: u64,
    /// How much of the body the ledger knows to be delivered.
    pub(super) counted_delivered: u64,
    channel: Option<RemoteChannelId>,
    listed: bool,
    body: Body,
}

/// A long-lived channel whose stream is gone with its carrier.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) header: Header,
    pub(super) channel: RemoteChannelId,
    /// Bytes of the body that were read.
    pub(super) delivered: u64,
    body: Body,
}

impl Parked {
    /// The memory that it holds.
    pub(super) fn cost(&self) -> usize {
        self.body.cost()
    }

    /// See [`Stream::consumed`].
    pub(super) fn consumed(&mut self, bytes: u64) {
        if let Body::Pipe(window) = &mut self.body {
            window.consume(bytes);
        }
    }

    /// How much of a pipe its reader has taken, for the peer to know again.
    pub(super) fn credit(&self) -> Option<Control> {
        match &self.body {
            Body::Pipe(window) if window.announced > 0 => window.credit(self.header),
            _ => None,
        }
    }
}

/// What a stream is to become after a pump.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes on.
    Open,
    /// It is over: ended or refused.
    Over,
    /// Rows of repair have brought something of its channel, which has this number.
    Joins(u64),
}

/// Whether a stream is to be read.
#[derive(Debug)]
enum Admission {
    Wanted,
    /// Its channel is over here.
    Unwanted {
        code: u32,
    },
    /// Something of its channel is there.
    Joins(u64),
}

#[derive(Debug)]
enum Body {
    Header(Frames),
    Control(Frames),
    Messages(Frames),
    Sound(Frames),
    Pipe(Window),
    Blob { hash: u128, blob: Blob },
    Table { header: UpdateHeader, table: Table },
    Chunks { header: UpdateHeader, chunks: Chunks },
    Repair { header: RepairHeader, given: usize },
    Joint { header: JointHeader, bytes: BytesMut },
}

/// How far a pipe has come; offsets in its own bytes.
#[derive(Debug, Default)]
struct Window {
    given: u64,
    consumed: u64,
    announced: u64,
}

impl Window {
    /// Whether it is time to tell the peer.
    fn consume(&mut self, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes).min(self.given);
        let tell = self.consumed - self.announced >= PIPE_WINDOW as u64 / 4;
        if tell {
            self.announced = self.consumed;
        }
        tell
    }

    fn credit(&self, header: Header) -> Option<Control> {
        let Header::Pipe { connection, pipe } = header else { return None };
        Some(Control::PipeCredit { connection, pipe, consumed: self.announced })
    }
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            assembler: Assembler::default(),
            touched: Vec::new(),
            rebuilds: Vec::new(),
            rebuilt: false,
            restored: false,
            counted: 0,
            counted_kept: 0,
            rest: Bytes::new(),
            header: None,
            label: None,
            named: None,
            number: None,
            admitted: false,
            begin: 0,
            before: 0,
            counted_delivered: 0,
            channel: None,
            listed: false,
            body: Body::Header(Frames::new("a stream header", MAX_HEADER)),
        }
    }
}

impl Stream {
    /// What it is, once that has been read.
    pub(super) fn header(&self) -> Option<Header> {
        self.header
    }

    /// Its handle, if the caller has one.
    pub(super) fn channel(&self) -> Option<RemoteChannelId> {
        self.channel
    }

    /// Whether it stands among the open long-lived channels.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// The memory that it holds.
    pub(super) fn cost(&self) -> usize {
        let rest = if self.assembler.keeps_all() { 0 } else { self.rest.len() };
        let rebuilds: usize = self.rebuilds.iter().map(Rebuild::cost).sum();
        self.assembler.cost() + rest + rebuilds + self.body.cost()
    }

    /// The memory that bytes take which were given out and may help to rebuild others.
    pub(super) fn kept(&self) -> usize {
        self.assembler.kept()
    }

    /// The memory that it may hold. The main channel may carry all others; an update has its own limit.
    pub(super) fn limit(&self, limits: &Limits) -> usize {
        match self.header.map(|header| header.kind()) {
            Some(Kind::Control | Kind::Update) => limits.buffered,
            _ => limits.buffered_per_channel,
        }
    }

    /// Takes bytes that came.
    pub(super) fn insert(&mut self, offset: u64, bytes: &Bytes, context: &mut Context) -> Result<(), Error> {
        self.put(offset, bytes)?;
        if self.rebuilds.is_empty() {
            return Ok(());
        }
        self.rebuilds.retain_mut(|rebuild| rebuild.source(offset, bytes).is_ok());
        self.rebuild(context)
    }

    /// Takes the length.
    pub(super) fn finish(&mut self, length: u64) -> Result<(), Error> {
        self.assembler.finish(length)
    }

    /// Repair calls it the channel with this number; 0 is the main one.
    ///
    /// # Errors
    /// It is another one.
    pub(super) fn name(&mut self, channel: u64) -> Result<(), Error> {
        let known = match self.header {
            Some(Header::Control) => Some(0),
            Some(_) => self.label.map(|label| label.number),
            None => self.named.or(Some(channel)),
        };
        self.named = Some(channel);
        if known != self.named {
            let got = format!("repair of channel {channel} for channel {known:?}");
            return Err(Error::Violation { expected: "repair of the channel that it names", got });
        }
        Ok(())
    }

    /// Takes bytes of a repair row of one of its blocks.
    pub(super) fn repair(
        &mut self,
        header: &RepairHeader,
        at: usize,
        bytes: &[u8],
        context: &mut Context,
    ) -> Result<(), Error> {
        let end = header.offset.saturating_add(header.length.into());
        if self.assembler.given() >= end || self.assembler.gaps(header.offset..end).is_empty() {
            return self.check(header, at, bytes, context);
        }
        // A block too many, or in more pieces than the decoder takes, is left to QUIC.
        let rebuild = match self.rebuilds.iter().position(|rebuild| rebuild.fits(header)) {
            Some(known) => Ok(self.rebuilds.remove(known)),
            None if self.rebuilds.len() == MAX_REBUILDS => return Ok(()),
            None => Rebuild::new(header, &self.assembler),
        };
        let Ok(mut rebuild) = rebuild else { return Ok(()) };
        if rebuild.repair(header.index, at, bytes).is_ok() {
            self.rebuilds.push(rebuild);
        }
        self.rebuild(context)
    }

    /// Takes everything that came of another stream, which is the same.
    pub(super) fn absorb(&mut self, same: &Self, context: &mut Context) -> Result<(), Error> {
        let pieces: Vec<_> = same.assembler.pieces(&(0..same.assembler.highest())).collect();
        pieces.iter().try_for_each(|(at, bytes)| self.insert(*at, bytes, context))?;
        same.assembler.length().map_or(Ok(()), |length| self.finish(length))
    }

    /// Takes bytes that follow from a sum of rows of several updates.
    pub(super) fn restore(&mut self, offset: u64, bytes: &Bytes, context: &mut Context) -> Result<(), Error> {
        context.rebuilt.bytes += bytes.len() as u64;
        (self.rebuilt, self.restored) = (true, true);
        self.insert(offset, bytes, context)
    }

    /// What came of the first bytes, in at most so many pieces.
    pub(super) fn pieces(&self, length: usize, most: usize) -> Vec<(u64, Bytes)> {
        self.assembler.pieces(&(0..length as u64)).take(most).collect()
    }

    /// The number of a small update that is whole, as its sender counts, whether the session can resume or not, and all
    /// bytes of its stream.
    pub(super) fn whole_update(&mut self) -> Option<(u64, Bytes)> {
        let (Body::Chunks { chunks, .. }, Some(label)) = (&self.body, self.label) else { return None };
        let end = chunks.end();
        let whole = (end <= MAX_MEMBER as u64).then(|| self.assembler.read(&(0..end)))??;
        Some((label.number, Bytes::copy_from_slice(&whole)))
    }

    /// Whether some of its bytes followed from a sum of rows of several updates.
    pub(super) fn was_restored(&self) -> bool {
        self.restored
    }

    /// The caller took bytes of a pipe; gives what to tell the peer, when it is time to.
    pub(super) fn consumed(&mut self, bytes: u64) -> Option<Control> {
        let (Some(header), Body::Pipe(window)) = (self.header, &mut self.body) else { return None };
        window.consume(bytes).then(|| window.credit(header)).flatten()
    }

    /// Its number, once it has been found to be right.
    pub(super) fn number(&self) -> Option<u64> {
        self.number
    }

    /// How much of the body has been read; what came of an update or a blob does not count before it is whole.
    pub(super) fn delivered(&self) -> u64 {
        match self.body {
            Body::Messages(_) | Body::Pipe(_) => self.before + self.position().saturating_sub(self.begin),
            _ => 0,
        }
    }

    /// How long the body is, as far as it came.
    pub(super) fn length(&self) -> u64 {
        self.before + self.assembler.highest().saturating_sub(self.begin)
    }

    /// Whether the caller has all of it, though its end has not come.
    pub(super) fn is_complete(&self) -> bool {
        matches!(&self.body, Body::Blob { blob, .. } if blob.is_done())
    }

    /// What is to be kept of it when its carrier is gone.
    pub(super) fn park(self) -> Option<Parked> {
        let delivered = self.delivered();
        let (channel, header) = self.channel.zip(self.header)?;
        Some(Parked { header, channel, delivered, body: self.body })
    }

    /// Reads what can be read now.
    pub(super) fn pump(
        &mut self,
        source: Source,
        ready: bool,
        rules: &Rules,
        context: &mut Context,
    ) -> Result<Verdict, Error> {
        while self.header.is_none() {
            let refusal = match self.refill() {
                true => self.read_header(source, rules, context)?,
                false if self.assembler.is_complete() => Some((0, "it ends inside its header".to_owned())),
                false => return Ok(Verdict::Open),
            };
            if let Some((kind, why)) = refusal {
                context.outputs.push_back(Output::Refuse { source, kind, why });
                return Ok(Verdict::Over);
            }
        }
        if !ready && self.header != Some(Header::Control) {
            return Ok(Verdict::Open);
        }
        if !std::mem::replace(&mut self.admitted, true) {
            match self.admit(source, context)? {
                Admission::Wanted => self.keep(source, rules),
                Admission::Joins(number) => return Ok(Verdict::Joins(number)),
                Admission::Unwanted { code } => {
                    context.outputs.push_back(Output::Stop { source, code });
                    return Ok(Verdict::Over);
                }
            }
        }
        self.open(context)?;
        loop {
            self.read_body(context)?;
            if !self.refill() {
                return self.end(source, context);
            }
        }
    }

    /// Whether there is something to read.
    fn refill(&mut self) -> bool {
        // Chunks are not read in order.
        if self.rest.is_empty()
            && !matches!(self.body, Body::Chunks { .. })
            && let Some(piece) = self.assembler.pop()
        {
            self.rest = piece;
        }
        !self.rest.is_empty()
    }

    /// Takes the header if it is whole; gives kind and reason of a refusal.
    fn read_header(
        &mut self,
        source: Source,
        rules: &Rules,
        context: &mut Context,
    ) -> Result<Option<(u64, String)>, Error> {
        let Body::Header(frames) = &mut self.body else { return Ok(None) };
        let bytes = match frames.feed(&mut self.rest) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some((0, error.to_string()))),
        };
        let (header, label) = match Header::decode_labelled(&bytes) {
            Ok(header) => header,
            Err(error) => {
                let kind = Reader::new(&bytes).varint("a stream kind").unwrap_or(0);
                return Ok(Some((kind, error.to_string())));
            }
        };
        let kind = header.kind();
        if !kind.opened_by(rules.peer) {
            let got = format!("a {kind:?} stream of the {:?} side", rules.peer);
            return Err(Error::Violation { expected: "streams of the sender's kinds", got });
        }
        match source {
            Source::Main(_) | Source::Rows(_) if matches!(kind, Kind::Repair | Kind::Joint) => {
                return Ok(Some((kind.code(), "repair inside another channel".to_owned())));
            }
            Source::Rows(_) if kind == Kind::Control => {
                let got = "one with a number".to_owned();
                return Err(Error::Violation { expected: "a control stream", got });
            }
            Source::Own(_) | Source::Rows(_) if kind != Kind::Control && !rules.accepts.contains(kind) => {
                return Ok(Some((kind.code(), format!("{kind:?} was not offered a stream of its own"))));
            }
            Source::Main(_) if kind == Kind::Control => {
                let got = "one inside another".to_owned();
                return Err(Error::Violation { expected: "one control stream", got });
            }
            _ => {}
        }
        if header == Header::Control {
            self.list(header, context)?;
            context.control = Some(source);
        }
        self.body = Body::of(header);
        self.begin = self.position();
        (self.header, self.label) = (Some(header), label);
        if let Some(named) = self.named {
            self.name(named)?;
        }
        Ok(None)
    }

    /// Keeps from now on what its kind has use for.
    fn keep(&mut self, source: Source, rules: &Rules) {
        let kind = self.header.map(|header| header.kind());
        self.assembler.keep(match kind {
            Some(Kind::Update) => usize::MAX,
            Some(Kind::Control | Kind::Wayland | Kind::Events) if rules.repairs(source) => MAX_KEPT,
            _ => 0,
        });
    }

    /// Looks which of the peer's channels it is.
    fn admit(&mut self, source: Source, context: &mut Context) -> Result<Admission, Error> {
        let Some(header) = self.header.filter(|_| context.knows_numbers()) else {
            return Ok(Admission::Wanted);
        };
        if matches!(header.kind(), Kind::Control | Kind::Sound | Kind::Repair | Kind::Joint) {
            return Ok(Admission::Wanted);
        }
        let Some(Label { number, from }) = self.label else {
            let got = format!("{header:?} without one");
            return Err(Error::Violation { expected: "channels with numbers", got });
        };
        if context.is_done(number) {
            let code = context.ledger.as_ref().map_or(STREAM_CANCELLED, |ledger| ledger.code(number));
            return Ok(Admission::Unwanted { code });
        }
        if source != Source::Rows(number) && context.unseen.contains(&number) {
            return Ok(Admission::Joins(number));
        }
        self.number = Some(number);
        if let Some(numbers) = &mut context.numbers {
            numbers.begin(number, source)?;
        }
        let Some(ledger) = &mut context.ledger else { return Ok(Admission::Wanted) };
        let Some(from) = from else {
            ledger.begin(number, source)?;
            return Ok(Admission::Wanted);
        };
        let parked = ledger.resume(number, source)?;
        if (parked.header, parked.delivered) != (header, from) {
            let got = format!("{header:?} from {from} on");
            return Err(Error::Violation { expected: "a channel where it was left", got });
        }
        (self.body, self.channel, self.listed) = (parked.body, Some(parked.channel), true);
        (self.before, self.counted_delivered) = (from, from);
        Ok(Admission::Wanted)
    }

    /// Enters a header into the list of long-lived channels; each can be open once.
    fn list(&mut self, header: Header, context: &mut Context) -> Result<(), Error> {
        if !context.open.insert(header) {
            let got = format!("{header:?} again");
            return Err(Error::Violation { expected: "each long-lived channel once", got });
        }
        self.listed = true;
        Ok(())
    }

    /// Tells the caller of a long-lived channel, once.
    fn open(&mut self, context: &mut Context) -> Result<(), Error> {
        let Some(header) = self.header else { return Ok(()) };
        let long_lived = matches!(header.kind(), Kind::Wayland | Kind::Events | Kind::Pipe);
        if !long_lived || self.listed {
            return Ok(());
        }
        self.list(header, context)?;
        context.last_channel += 1;
        let channel = RemoteChannelId(context.last_channel);
        self.channel = Some(channel);
        context.outputs.push_back(Output::Event(Event::Opened { channel, header }));
        Ok(())
    }

    /// Reads all of `rest`.
    fn read_body(&mut self, context: &mut Context) -> Result<(), Error> {
        let event = |event| Output::Event(event);
        let handle = self.channel.zip(self.header);
        match &mut self.body {
            Body::Header(_) => {}
            Body::Control(frames) => {
                while let Some(frame) = frames.feed(&mut self.rest)? {
                    let message = Control::decode(&frame)?;
                    context.outputs.push_back(message.map_or(Output::UnknownControl, Output::Control));
                }
            }
            Body::Messages(frames) => {
                while let Some(bytes) = frames.feed(&mut self.rest)? {
                    let message = handle.map(|(channel, header)| Event::Message { channel, header, bytes });
                    context.outputs.extend(message.map(event));
                }
            }
            Body::Sound(frames) => {
                while let Some(bytes) = frames.feed(&mut self.rest)? {
                    context.outputs.push_back(event(Event::Sound { bytes }));
                }
            }
            Body::Pipe(window) => {
                let seen = self.before + self.assembler.highest().saturating_sub(self.begin);
                if seen > window.consumed + PIPE_WINDOW as u64 {
                    return Err(Error::TooMuch {
                        limit: "bytes of a pipe's window",
                        max: PIPE_WINDOW as u64,
                    });
                }
                let bytes = std::mem::take(&mut self.rest);
                window.given += bytes.len() as u64;
                let data = handle.filter(|_| !bytes.is_empty());
                let data = data.map(|(channel, header)| Event::Data { channel, header, bytes });
                context.outputs.extend(data.map(event));
            }
            Body::Blob { hash, blob } => {
                let blob = blob.feed(&mut self.rest)?.map(|bytes| Event::Blob { hash: *hash, bytes });
                context.outputs.extend(blob.map(event));
            }
            Body::Table { header, table } => {
                let header = *header;
                let Some(lengths) = table.feed(&mut self.rest)? else { return Ok(()) };
                let chunks = Chunks::new(self.position(), &lengths);
                self.rest = Bytes::new();
                let all = 0..self.assembler.highest();
                let there = self.assembler.pieces(&all);
                self.touched = there.map(|(at, piece)| at..at + piece.len() as u64).collect();
                self.body = Body::Chunks { header, chunks };
                self.read_chunks(context);
            }
            Body::Chunks { .. } => self.read_chunks(context),
            Body::Repair { header, given } => {
                let bytes = std::mem::take(&mut self.rest);
                if *given + bytes.len() > header.row.into() {
                    return Err(Error::Trailing { after: "a repair row", bytes: bytes.len() });
                }
                let at = *given;
                *given += bytes.len();
                if !bytes.is_empty() {
                    context.repairs.push_back(Repair { header: *header, at, bytes });
                }
            }
            Body::Joint { bytes, .. } => {
                let more = std::mem::take(&mut self.rest);
                if bytes.len() + more.len() > MAX_BODY {
                    return Err(Error::TooMuch { limit: "bytes of joint repair", max: MAX_BODY as u64 });
                }
                bytes.extend_from_slice(&more);
            }
        }
        Ok(())
    }

    /// Takes the chunks that what came since the last pump has made whole.
    fn read_chunks(&mut self, context: &mut Context) {
        let Body::Chunks { header, chunks } = &mut self.body else { return };
        for range in std::mem::take(&mut self.touched) {
            for index in chunks.take(&mut self.assembler, &range) {
                let (header, bytes) = (*header, chunks.get(index));
                context.outputs.push_back(Output::Event(Event::Chunk { header, index, bytes }));
            }
        }
    }

    /// Puts bytes to the others.
    fn put(&mut self, offset: u64, bytes: &Bytes) -> Result<(), Error> {
        let new = self.assembler.insert(offset, bytes)?;
        if matches!(self.body, Body::Chunks { .. }) {
            self.touched.extend(new);
        }
        Ok(())
    }

    /// Rebuilds what can be rebuilt, and forgets the blocks that are whole.
    fn rebuild(&mut self, context: &mut Context) -> Result<(), Error> {
        for mut rebuild in std::mem::take(&mut self.rebuilds) {
            for (at, bytes) in rebuild.recover() {
                context.rebuilt.bytes += bytes.len() as u64;
                self.rebuilt = true;
                self.put(at, &bytes)?;
            }
            if rebuild.is_complete() {
                context.rebuilt.blocks += u64::from(rebuild.has_recovered());
            } else {
                self.rebuilds.push(rebuild);
            }
        }
        Ok(())
    }

    /// Looks now and then, in debug builds, whether repair would have repaired.
    fn check(
        &self,
        header: &RepairHeader,
        at: usize,
        bytes: &[u8],
        context: &mut Context,
    ) -> Result<(), Error> {
        let end = header.offset + u64::from(header.length);
        let usable = at == 0 && bytes.len() == usize::from(header.row);
        if !cfg!(debug_assertions) || !usable || !self.assembler.gaps(header.offset..end).is_empty() {
            return Ok(());
        }
        context.checks += 1;
        if context.checks % CHECK_EVERY != 1 {
            return Ok(());
        }
        rebuild::check(header, &self.assembler, bytes)
    }

    /// Where in the stream the next byte to be read lies.
    fn position(&self) -> u64 {
        self.assembler.given() - self.rest.len() as u64
    }

    /// Ends the stream if that was its last byte.
    fn end(&mut self, source: Source, context: &mut Context) -> Result<Verdict, Error> {
        if let Body::Chunks { header, chunks } = &mut self.body {
            let (seen, end) = (self.assembler.length().unwrap_or(self.assembler.highest()), chunks.end());
            if seen > end || self.assembler.length().is_some_and(|length| length < end) {
                let got = format!("the end of one after {seen} bytes instead of {end}");
                return Err(Error::Violation { expected: "an update as its table says", got });
            }
            let Some(chunks) = chunks.whole() else { return Ok(Verdict::Open) };
            context.outputs.push_back(Output::Event(Event::Update { header: *header, chunks }));
            if self.rebuilt {
                context.outputs.push_back(Output::Stop { source, code: STREAM_CANCELLED });
            }
            return Ok(Verdict::Over);
        }
        if !self.assembler.is_complete() {
            return Ok(Verdict::Open);
        }
        let whole = match &self.body {
            Body::Header(_) | Body::Pipe(_) => true,
            Body::Control(_) | Body::Table { .. } | Body::Chunks { .. } => false,
            Body::Messages(frames) | Body::Sound(frames) => frames.is_between_messages(),
            Body::Blob { blob, .. } => blob.is_done(),
            Body::Repair { header, given } => *given == header.row.into(),
            Body::Joint { header, bytes } => {
                context.joints.push_back(Joint::decode(*header, &Bytes::copy_from_slice(bytes))?);
                true
            }
        };
        if !whole {
            let got = format!("the end of {:?}", self.header);
            return Err(Error::Violation { expected: "more bytes of a stream", got });
        }
        if let Some((channel, header)) = self.channel.zip(self.header) {
            context.outputs.push_back(Output::Event(Event::Finished { channel, header }));
        }
        Ok(Verdict::Over)
    }
}

impl Body {
    /// The memory that it holds.
    fn cost(&self) -> usize {
        match self {
            Self::Header(frames) | Self::Control(frames) | Self::Messages(frames) | Self::Sound(frames) => {
                frames.cost()
            }
            Self::Pipe(_) | Self::Repair { .. } => 0,
            Self::Joint { bytes, .. } => bytes.len(),
            Self::Blob { blob, .. } => blob.cost(),
            Self::Table { table, .. } => table.cost(),
            Self::Chunks { chunks, .. } => chunks.cost(),
        }
    }

    /// The state at the beginning of a body.
    fn of(header: Header) -> Self {
        match header {
            Header::Control => Self::Control(Frames::new("a control message's length", MAX_CONTROL)),
            Header::Wayland { .. } | Header::Events { .. } => {
                Self::Messages(Frames::new("a message's length", MAX_MESSAGE))
            }
            Header::Sound => Self::Sound(Frames::new("a sound packet's length", MAX_SOUND)),
            Header::Update(header) => Self::Table { header, table: Table::default() },
            Header::Repair(header) => Self::Repair { header, given: 0 },
            Header::Joint(header) => Self::Joint { header, bytes: BytesMut::new() },
            Header::Pipe { .. } => Self::Pipe(Window::default()),
            Header::Blob { hash, length } => Self::Blob { hash, blob: Blob::new(length) },
        }
    }
}

/// What a long-lived channel keeps of what it has given out, so that a block can be rebuilt: one flush, and what its
/// ranges cost.
const MAX_KEPT: usize = MAX_FLUSH / 4 * 5;

/// Most blocks of one stream that wait for source or repair; QUIC's own retransmission makes others whole.
const MAX_REBUILDS: usize = 64;

/// In debug builds, one of so many rows that were not needed is used for a check.
const CHECK_EVERY: u64 = 16;
