//! This side's channels: from messages, bytes and updates to what the carrier has to do.
//!
//! Queued bytes become [`Transmit`]s only when asked for, the most urgent channel first, so that small messages queued
//! meanwhile travel as one piece. Channels without a stream of their own go through the main channel in pieces of
//! [`PIECE`] with the same bytes inside. Invariants: a stream's bytes leave in order and once; nothing but the main
//! channel leaves before the peer's hello.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::{PIPE_WINDOW, SMALL_UPDATE};
use crate::wire::Writer;
use crate::{ChannelId, Class, Control, Error, Header, Kind, Priority, Route, StreamId, Transmit};

/// Largest piece of a channel inside the main channel: what a more urgent message may have to wait for.
const PIECE: usize = 16 << 10;

/// Largest single [`Transmit::Data`] that is put together from small parts.
const BATCH: usize = 64 << 10;

/// Parts of this length and more are handed on as they are, not copied into a batch.
const LARGE: usize = 16 << 10;

/// The beginning of a pipe that travels at the priority of Wayland messages: programs give a paste up that does not
/// begin soon.
const PIPE_HEAD: u64 = 64 << 10;

/// The stream of the main channel.
const MAIN: StreamId = StreamId(0);

/// All channels that this side opened.
#[derive(Debug)]
pub(super) struct Outgoing {
    channels: BTreeMap<ChannelId, Channel>,
    by_stream: BTreeMap<StreamId, ChannelId>,
    /// Channels that have something to send, the most urgent first.
    dirty: BTreeSet<(Reverse<Priority>, ChannelId)>,
    /// Streams that the carrier could not open, with how many of their bytes it has returned.
    failed: BTreeMap<StreamId, u64>,
    returned: VecDeque<Returned>,
    transmits: VecDeque<Transmit>,
    main: Writer,
    ready: bool,
    next_stream: u64,
    next_channel: u64,
    /// How many streams with a place of their own each class has had.
    places: BTreeMap<Class, u64>,
    queued_content: usize,
}

/// One channel.
#[derive(Debug)]
struct Channel {
    header: Header,
    stream: StreamId,
    priority: Priority,
    /// Decided when the first byte leaves.
    route: Option<Route>,
    queue: Queue,
    finish: bool,
    /// Bytes of the stream that have left, header included.
    sent: u64,
    pipe: Option<Flow>,
}

/// The flow of a pipe; offsets in its own bytes.
#[derive(Debug, Default)]
struct Flow {
    written: u64,
    left: u64,
    consumed: u64,
}

/// Bytes that the carrier returned.
#[derive(Debug)]
struct Returned {
    stream: StreamId,
    offset: u64,
    bytes: Bytes,
    finish: bool,
}

impl Outgoing {
    /// With the main channel open and its header queued.
    pub(super) fn new() -> Self {
        let mut main = Writer::new();
        Header::Control.encode(&mut main);
        let open = Transmit::Open { stream: MAIN, priority: Priority::new(Class::Control, 0, false) };
        Self { transmits: VecDeque::from([open]), main, next_stream: 1, ..Self::closed() }
    }

    /// With nothing at all, for a session that is over.
    pub(super) fn closed() -> Self {
        Self {
            channels: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            dirty: BTreeSet::new(),
            failed: BTreeMap::new(),
            returned: VecDeque::new(),
            transmits: VecDeque::new(),
            main: Writer::new(),
            ready: false,
            next_stream: 0,
            next_channel: 0,
            places: BTreeMap::new(),
            queued_content: 0,
        }
    }

    /// The peer's hello came: channels other than the main one may leave.
    pub(super) fn set_ready(&mut self) {
        self.ready = true;
    }

    /// Queues a message of the main channel.
    pub(super) fn control(&mut self, message: &Control) {
        let mut frame = Writer::new();
        message.encode(&mut frame);
        self.main.bytes(frame.as_slice());
    }

    /// Queues something for the carrier itself.
    pub(super) fn transmit(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    pub(super) fn open(&mut self, header: Header) -> ChannelId {
        let (class, place) = match header.kind() {
            // Its head; it is put back into its own class when that is through.
            Kind::Pipe => (Class::Wayland, 1),
            Kind::Blob => (Class::Events, self.place(Class::Events)),
            kind => (kind.class(), 0),
        };
        let id = self.insert(header, Priority::new(class, place, false));
        self.mark_dirty(id); // so that the peer knows it before its first message
        id
    }

    pub(super) fn send(&mut self, id: ChannelId, message: &[u8]) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        debug_assert!(matches!(channel.header.kind(), Kind::Wayland | Kind::Events), "a channel of messages");
        channel.queue.append(|writer| {
            writer.bytes(message);
        });
        self.mark_dirty(id);
    }

    pub(super) fn write(&mut self, id: ChannelId, bytes: Bytes) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        debug_assert!(matches!(channel.header.kind(), Kind::Pipe | Kind::Blob), "a channel of bytes");
        if let Some(flow) = &mut channel.pipe {
            flow.written += bytes.len() as u64;
        }
        channel.queue.push(bytes);
        self.mark_dirty(id);
    }

    pub(super) fn update(&mut self, header: Header, chunks: Vec<Vec<u8>>) -> u64 {
        let mut queue = Queue::default();
        queue.append(|writer| {
            header.encode(writer);
            writer.varint(chunks.len() as u64);
            for chunk in &chunks {
                writer.varint(chunk.len() as u64);
            }
        });
        for chunk in chunks {
            queue.push(chunk.into());
        }
        let length = queue.len;
        let class = if length < SMALL_UPDATE { Class::SmallContent } else { Class::Content };
        let priority = Priority::new(class, self.place(class), false);
        let id = self.insert(header, priority);
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.queue = queue;
        }
        self.queued_content += length;
        self.finish(id);
        length as u64
    }

    pub(super) fn finish(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.finish = true;
        self.mark_dirty(id);
    }

    pub(super) fn reset(&mut self, id: ChannelId, code: u32) {
        let Some(channel) = self.remove(id) else { return };
        let stream = channel.stream;
        self.returned.retain(|returned| returned.stream != stream);
        self.failed.remove(&stream);
        match channel.route {
            None => {} // the peer has never heard of it
            Some(Route::Own) => self.transmit(Transmit::Reset { stream, code }),
            Some(Route::Main) => self.control(&Control::EmbeddedReset { stream: stream.0, code }),
        }
    }

    /// The peer does not want a stream: gives the channel, unless all of it has left already.
    pub(super) fn stopped(&mut self, stream: StreamId, code: u32) -> Option<(ChannelId, Header)> {
        match self.by_stream.get(&stream).copied() {
            Some(id) => {
                let header = self.channels.get(&id)?.header;
                self.reset(id, code);
                Some((id, header))
            }
            None => {
                // What is still in the carrier need not go on.
                if stream.0 < self.next_stream {
                    self.transmit(Transmit::Reset { stream, code });
                }
                None
            }
        }
    }

    /// The carrier could not open a stream and returns some of its bytes.
    ///
    /// # Errors
    /// It is the main channel's, for which there is no other way.
    pub(super) fn open_failed(
        &mut self,
        stream: StreamId,
        bytes: Bytes,
        finish: bool,
    ) -> Result<(), MainFailed> {
        if stream == MAIN {
            return Err(MainFailed);
        }
        if let Some(channel) = self.by_stream.get(&stream).and_then(|id| self.channels.get_mut(id)) {
            channel.route = Some(Route::Main);
        }
        let count = self.failed.entry(stream).or_default();
        let offset = *count;
        *count += bytes.len() as u64;
        if finish {
            self.failed.remove(&stream);
        }
        self.returned.push_back(Returned { stream, offset, bytes, finish });
        Ok(())
    }

    /// The reader of one of our pipes took bytes.
    pub(super) fn credit(&mut self, header: Header, consumed: u64) -> Result<(), Error> {
        let found = self.channels.iter_mut().find(|(_, channel)| channel.header == header);
        let Some((id, channel)) = found else { return Ok(()) }; // it is over already
        let (id, stream, own) = (*id, channel.stream, channel.route == Some(Route::Own));
        let Some(flow) = &mut channel.pipe else { return Ok(()) };
        if consumed > flow.left {
            return Err(Error::OutOfRange {
                expected: "bytes taken of a pipe",
                max: flow.left,
                got: consumed,
            });
        }
        let in_head = flow.in_head();
        flow.consumed = flow.consumed.max(consumed);
        if in_head && !flow.in_head() {
            self.dirty.remove(&(Reverse(channel.priority), id));
            channel.priority = Priority::new(Class::Pipe, 0, false);
            let priority = channel.priority;
            if own {
                self.transmit(Transmit::Prioritise { stream, priority });
            }
        }
        self.mark_dirty(id);
        Ok(())
    }

    pub(super) fn pipe_room(&self, id: ChannelId) -> usize {
        let flow = self.channels.get(&id).and_then(|channel| channel.pipe.as_ref());
        flow.map_or(0, |flow| (flow.consumed + PIPE_WINDOW as u64).saturating_sub(flow.written) as usize)
    }

    /// Gives pipes a turn before content, or ends it.
    pub(super) fn boost_pipes(&mut self, on: bool) {
        let class = if on { Class::SmallContent } else { Class::Pipe };
        let priority = Priority::new(class, 0, false);
        let pipes = self.channels.values().filter(|channel| channel.is_pipe_under_way(on));
        let turns = pipes.map(|channel| Transmit::Prioritise { stream: channel.stream, priority });
        self.transmits.extend(turns);
    }

    /// Whether there are pipes to boost.
    pub(super) fn has_pipes(&self) -> bool {
        self.channels.values().any(|channel| channel.is_pipe_under_way(true))
    }

    /// Bytes of updates that are queued here.
    pub(super) fn queued_content(&self) -> usize {
        self.queued_content
    }

    /// How many channels and other entries there are.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        let lists = self.channels.len() + self.by_stream.len() + self.dirty.len() + self.failed.len();
        lists + self.returned.len() + self.transmits.len()
    }

    /// The next thing to do. `route` decides how a kind travels.
    pub(super) fn poll(&mut self, route: impl Fn(Kind) -> Route) -> Option<Transmit> {
        if self.transmits.is_empty() {
            self.flush(route);
        }
        self.transmits.pop_front()
    }

    /// Moves the most urgent bytes to `transmits`.
    fn flush(&mut self, route: impl Fn(Kind) -> Route) {
        if self.main.is_empty()
            && let Some(returned) = self.returned.pop_front()
        {
            self.embed(returned.stream, returned.offset, &returned.bytes, returned.finish);
        }
        if self.main.is_empty() && self.ready {
            self.flush_channel(route);
        }
        if !self.main.is_empty() {
            let bytes = std::mem::take(&mut self.main).into_vec().into();
            self.transmits.push_back(Transmit::Data { stream: MAIN, bytes, finish: false });
        }
    }

    /// Moves bytes of the most urgent channel: all of them if it has a stream of its own, else one piece.
    fn flush_channel(&mut self, route: impl Fn(Kind) -> Route) {
        let Some((priority, id)) = self.dirty.pop_first() else { return };
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let stream = channel.stream;
        let new = channel.route.is_none();
        let route = *channel.route.get_or_insert_with(|| route(channel.header.kind()));
        let max = if route == Route::Own { BATCH } else { PIECE };
        if new && route == Route::Own {
            self.transmits.push_back(Transmit::Open { stream, priority: channel.priority });
        }
        let offset = channel.sent;
        let bytes = channel.take(max);
        let finish = channel.finish && channel.queue.is_empty();
        let more = !finish && channel.can_send();
        if channel.header.kind() == Kind::Update {
            self.queued_content -= bytes.len();
        }
        if finish {
            self.remove(id);
        } else if more {
            self.dirty.insert((priority, id));
        }
        match route {
            _ if bytes.is_empty() && !finish => {}
            Route::Own => self.transmits.push_back(Transmit::Data { stream, bytes, finish }),
            Route::Main => self.embed(stream, offset, &bytes, finish),
        }
    }

    /// Puts bytes of a channel into the main one.
    fn embed(&mut self, stream: StreamId, mut offset: u64, bytes: &Bytes, finish: bool) {
        let mut rest = bytes.clone();
        loop {
            let bytes = rest.split_to(rest.len().min(PIECE));
            let length = bytes.len() as u64;
            let finish = finish && rest.is_empty();
            self.control(&Control::Embedded { stream: stream.0, offset, finish, bytes });
            offset += length;
            if rest.is_empty() {
                break;
            }
        }
    }

    fn insert(&mut self, header: Header, priority: Priority) -> ChannelId {
        let (id, stream) = (ChannelId(self.next_channel), StreamId(self.next_stream));
        self.next_channel += 1;
        self.next_stream += 1;
        let mut queue = Queue::default();
        queue.append(|writer| header.encode(writer));
        let channel = Channel {
            header,
            stream,
            priority,
            route: None,
            queue,
            finish: false,
            sent: 0,
            pipe: (header.kind() == Kind::Pipe).then(Flow::default),
        };
        self.channels.insert(id, channel);
        self.by_stream.insert(stream, id);
        id
    }

    fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let channel = self.channels.remove(&id)?;
        self.by_stream.remove(&channel.stream);
        self.dirty.remove(&(Reverse(channel.priority), id));
        if channel.header.kind() == Kind::Update {
            self.queued_content -= channel.queue.len;
        }
        Some(channel)
    }

    fn mark_dirty(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.get(&id).filter(|channel| channel.can_send()) {
            self.dirty.insert((Reverse(channel.priority), id));
        }
    }

    /// The next place in a class; 0 is for its long-lived streams, 1 for the heads of pipes.
    fn place(&mut self, class: Class) -> u64 {
        let place = self.places.entry(class).or_insert(1);
        *place += 1;
        *place
    }
}

/// The main channel could not be opened.
#[derive(Debug)]
pub(super) struct MainFailed;

impl Channel {
    /// Whether there is something that may leave now.
    fn can_send(&self) -> bool {
        self.allowed() > 0 || (self.queue.is_empty() && self.finish)
    }

    /// How many of the queued bytes may leave now.
    fn allowed(&self) -> usize {
        let Some(flow) = &self.pipe else { return self.queue.len };
        let body = (flow.written - flow.left) as usize;
        let header = self.queue.len - body;
        header + body.min(flow.room())
    }

    /// Takes up to about `max` bytes to be sent.
    fn take(&mut self, max: usize) -> Bytes {
        let header = self.pipe.as_ref().map_or(0, |flow| self.queue.len as u64 - (flow.written - flow.left));
        let bytes = self.queue.take(max.min(self.allowed()));
        self.sent += bytes.len() as u64;
        if let Some(flow) = &mut self.pipe {
            flow.left += (bytes.len() as u64).saturating_sub(header);
        }
        bytes
    }

    /// Whether it is a pipe beyond its head on a stream of its own; if `busy`, one with bytes that its reader has not
    /// taken.
    fn is_pipe_under_way(&self, busy: bool) -> bool {
        let under_way = |flow: &Flow| !flow.in_head() && (!busy || flow.left > flow.consumed);
        self.route == Some(Route::Own) && self.pipe.as_ref().is_some_and(under_way)
    }
}

impl Flow {
    fn in_head(&self) -> bool {
        self.consumed < PIPE_HEAD
    }

    /// How many more bytes may leave. Until the reader has taken the head, only that, for it is urgent and all else is
    /// not.
    fn room(&self) -> usize {
        let window = if self.in_head() { PIPE_HEAD } else { self.consumed + PIPE_WINDOW as u64 };
        window.saturating_sub(self.left) as usize
    }
}

/// Bytes in order. Small parts are put together, large ones kept as they are.
#[derive(Debug, Default)]
struct Queue {
    parts: VecDeque<Bytes>,
    /// After all `parts`.
    tail: Writer,
    len: usize,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn append(&mut self, write: impl FnOnce(&mut Writer)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.len += self.tail.len() - before;
    }

    fn push(&mut self, bytes: Bytes) {
        if bytes.len() < LARGE {
            return self.append(|writer| {
                writer.raw(&bytes);
            });
        }
        self.len += bytes.len();
        self.seal();
        self.parts.push_back(bytes);
    }

    /// Takes between 1 and `max` bytes, if there are any.
    fn take(&mut self, max: usize) -> Bytes {
        self.seal();
        let Some(first) = self.parts.front_mut() else { return Bytes::new() };
        let bytes = first.split_to(first.len().min(max));
        if first.is_empty() {
            self.parts.pop_front();
        }
        self.len -= bytes.len();
        bytes
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.parts.push_back(std::mem::take(&mut self.tail).into_vec().into());
        }
    }
}
