//! One stream of the peer and its parse state.
//!
//! It reads the header, waits for the peer's hello unless it is the main channel, then reads its kind's body. It knows no
//! other stream. Invariant: what comes out depends on the stream's bytes alone, not on how and in which order they came.

use bytes::Bytes;

use super::incoming::{Context, Output, Rules, Source};
use super::{Event, Limits, PIPE_WINDOW};
use crate::assembler::Assembler;
use crate::parse::{Blob, Frames, Update};
use crate::wire::Reader;
use crate::{Control, Error, Header, Kind, MAX_CONTROL, MAX_HEADER, MAX_MESSAGE, RemoteChannelId};

/// A stream that the peer opened.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) assembler: Assembler,
    /// What [`Stream::cost`] was when the session's sum was last brought up to date.
    pub(super) counted: usize,
    /// Taken from the assembler and not read yet.
    rest: Bytes,
    header: Option<Header>,
    channel: Option<RemoteChannelId>,
    listed: bool,
    body: Body,
}

/// What a stream is to become after a pump.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It goes on.
    Open,
    /// It is over: ended or refused.
    Over,
}

#[derive(Debug)]
enum Body {
    Header(Frames),
    Control(Frames),
    Messages(Frames),
    Pipe(Window),
    Blob { hash: u128, blob: Blob },
    Update(Update),
}

/// How far a pipe has come; offsets in its own bytes.
#[derive(Debug)]
struct Window {
    /// Where in the stream the pipe's bytes begin.
    begin: u64,
    given: u64,
    consumed: u64,
    announced: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            assembler: Assembler::default(),
            counted: 0,
            rest: Bytes::new(),
            header: None,
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
        let body = match &self.body {
            Body::Header(frames) | Body::Control(frames) | Body::Messages(frames) => frames.cost(),
            Body::Pipe(_) => 0,
            Body::Blob { blob, .. } => blob.cost(),
            Body::Update(update) => update.cost(),
        };
        self.assembler.cost() + self.rest.len() + body
    }

    /// The memory that it may hold. The main channel may carry all others; an update has its own limit.
    pub(super) fn limit(&self, limits: &Limits) -> usize {
        match self.header.map(|header| header.kind()) {
            Some(Kind::Control | Kind::Update) => limits.buffered,
            _ => limits.buffered_per_channel,
        }
    }

    /// The caller took bytes of a pipe; gives what to tell the peer, when it is time to.
    pub(super) fn consumed(&mut self, bytes: u64) -> Option<Control> {
        let (Some(Header::Pipe { connection, pipe }), Body::Pipe(window)) = (self.header, &mut self.body)
        else {
            return None;
        };
        window.consumed = window.consumed.saturating_add(bytes).min(window.given);
        if window.consumed - window.announced < PIPE_WINDOW as u64 / 4 {
            return None;
        }
        window.announced = window.consumed;
        Some(Control::PipeCredit { connection, pipe, consumed: window.consumed })
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
        self.open(context)?;
        loop {
            self.read_body(context)?;
            if !self.refill() {
                return self.end(context);
            }
        }
    }

    /// Whether there is something to read.
    fn refill(&mut self) -> bool {
        if self.rest.is_empty()
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
        let header = match Header::decode(&bytes) {
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
            Source::Own(_) if kind != Kind::Control && !rules.accepts.contains(kind) => {
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
        }
        self.body = Body::of(header, self.assembler.given() - self.rest.len() as u64);
        self.header = Some(header);
        Ok(None)
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
            Body::Pipe(window) => {
                let seen = self.assembler.highest().saturating_sub(window.begin);
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
            Body::Update(update) => {
                let chunks = update.feed(&mut self.rest)?;
                let update = chunks.map(|chunks| Event::Update { header: update.header, chunks });
                context.outputs.extend(update.map(event));
            }
        }
        Ok(())
    }

    /// Ends the stream if that was its last byte.
    fn end(&mut self, context: &mut Context) -> Result<Verdict, Error> {
        if !self.assembler.is_complete() {
            return Ok(Verdict::Open);
        }
        let whole = match &self.body {
            Body::Header(_) | Body::Pipe(_) => true,
            Body::Control(_) => false,
            Body::Messages(frames) => frames.is_between_messages(),
            Body::Blob { blob, .. } => blob.is_done(),
            Body::Update(update) => update.is_done(),
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
    /// The state at the beginning of a body at this offset of the stream.
    fn of(header: Header, begin: u64) -> Self {
        match header {
            Header::Control => Self::Control(Frames::new("a control message's length", MAX_CONTROL)),
            Header::Wayland { .. } | Header::Events { .. } => {
                Self::Messages(Frames::new("a message's length", MAX_MESSAGE))
            }
            Header::Update(header) => Self::Update(Update::new(header)),
            Header::Pipe { .. } => Self::Pipe(Window { begin, given: 0, consumed: 0, announced: 0 }),
            Header::Blob { hash, length } => Self::Blob { hash, blob: Blob::new(length) },
        }
    }
}
