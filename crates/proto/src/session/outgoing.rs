//! This side's channels: from messages, bytes and updates to what the carrier has to do.
//!
//! Queued bytes become [`Transmit`]s only when asked for, the most urgent channel first, so that small messages queued
//! meanwhile travel as one piece. Channels without a stream of their own go through the main channel in pieces of
//! [`PIECE`] with the same bytes inside. Invariants: a stream's bytes leave in order and once; nothing but the main
//! channel leaves before the peer's hello.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::protect::{Protector, Source};
use super::queue::Queue;
use super::{MAX_FLUSH, PIPE_WINDOW, Repair, SMALL_UPDATE};
use crate::assembler::IdSet;
use crate::wire::Writer;
use crate::{
    ChannelId, Class, ConnectionId, Control, Error, Header, Kind, Kinds, LinkState, Priority, Route,
    StreamId, SurfaceId, Time, Transmit, UpdateHeader, UpdateSeq,
};

/// Largest piece of a channel inside the main channel: what a more urgent message may have to wait for.
const PIECE: usize = 16 << 10;

/// Places that are kept for replacements on their way here.
const MAX_VACATED: usize = 1024;

/// The beginning of a pipe that travels at the priority of Wayland messages: programs give a paste up that does not
/// begin soon.
const PIPE_HEAD: u64 = 64 << 10;

/// The stream of the main channel.
const MAIN: StreamId = StreamId(0);

/// All channels that this side opened.
#[derive(Debug)]
pub(super) struct Outgoing {
    channels: BTreeMap<ChannelId, Channel>,
    by_place: BTreeMap<Place, ChannelId>,
    /// Channels that have something to send, the most urgent first.
    dirty: BTreeSet<(Reverse<Priority>, ChannelId)>,
    /// Streams that the carrier could not open.
    failed: BTreeMap<StreamId, Failed>,
    /// Those that were given up: what the carrier returns of them goes nowhere.
    given_up: IdSet,
    returned: VecDeque<Returned>,
    transmits: VecDeque<Transmit>,
    main: Writer,
    main_priority: Priority,
    /// Bytes of the main channel that have left.
    main_sent: u64,
    protector: Protector,
    ready: bool,
    next_stream: u64,
    next_virtual: u64,
    next_channel: u64,
    /// How many streams with a place of their own each class has had.
    places: BTreeMap<Class, u64>,
    queued_content: usize,
    /// How many bytes of large content and of pipes may wait in the carrier, and how many more may be handed over; without
    /// end while nobody tells of the link.
    ahead: u64,
    room: u64,
    /// How many bytes of pipes may be handed over although content waits.
    pipe_turn: u64,
    /// Places of updates that were taken back, for those that replace them.
    vacated: BTreeMap<(ConnectionId, SurfaceId), Priority>,
}

/// One channel.
#[derive(Debug)]
struct Channel {
    header: Header,
    priority: Priority,
    /// Decided when the first byte leaves.
    place: Option<Place>,
    queue: Queue,
    finish: bool,
    /// Bytes of the stream that have left, header included.
    sent: u64,
    /// Those of an update, until all have: they are one block.
    handed: Vec<Bytes>,
    /// Bytes of an update before its chunks.
    head: usize,
    pipe: Option<Flow>,
}

/// Where a channel travels, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// On a stream of its own. The carrier opens them in the order of their numbers, so that both sides count alike.
    Own(StreamId),
    /// In frames of the main channel, as this virtual stream.
    Main(u64),
}

/// A stream that the carrier could not open.
#[derive(Clone, Copy, Debug)]
struct Failed {
    /// As which its bytes go through the main channel.
    place: u64,
    /// How many of its bytes have been returned.
    count: u64,
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
    place: u64,
    offset: u64,
    bytes: Bytes,
    finish: bool,
}

impl Outgoing {
    /// With the main channel open and its header queued.
    pub(super) fn new(repair: Repair, main_only: Kinds) -> Self {
        let mut main = Writer::new();
        Header::Control.encode(&mut main);
        // With updates inside, it is what a content budget has to count.
        let class = if main_only.contains(Kind::Update) { Class::Content } else { Class::Control };
        let main_priority = Priority::first(class);
        let open = Transmit::Open { stream: MAIN, priority: main_priority };
        let protector = Protector::new(repair);
        let transmits = VecDeque::from([open]);
        Self { transmits, main, main_priority, protector, next_stream: 1, ..Self::closed() }
    }

    /// With nothing at all, for a session that is over.
    pub(super) fn closed() -> Self {
        Self {
            channels: BTreeMap::new(),
            by_place: BTreeMap::new(),
            dirty: BTreeSet::new(),
            failed: BTreeMap::new(),
            given_up: IdSet::default(),
            returned: VecDeque::new(),
            transmits: VecDeque::new(),
            main: Writer::new(),
            main_priority: Priority::first(Class::Control),
            main_sent: 0,
            protector: Protector::new(Repair::Off),
            ready: false,
            next_stream: 0,
            next_virtual: 1,
            next_channel: 0,
            places: BTreeMap::new(),
            queued_content: 0,
            ahead: u64::MAX,
            room: u64::MAX,
            pipe_turn: 0,
            vacated: BTreeMap::new(),
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
        let id = self.insert(header, Priority::new(class, place));
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

    pub(super) fn update(&mut self, header: UpdateHeader, chunks: Vec<Vec<u8>>) -> u64 {
        let key = (header.connection, header.surface);
        let (queue, head) = content(header, chunks);
        let class = if queue.len() < SMALL_UPDATE { Class::SmallContent } else { Class::Content };
        let vacated = self.vacated.remove(&key).filter(|place| place.class() == class);
        let priority = vacated.unwrap_or_else(|| Priority::new(class, self.place(class)));
        let length = queue.len();
        let id = self.insert(Header::Update(header), priority);
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.queue = queue;
            channel.head = head;
        }
        self.queued_content += length;
        self.finish(id);
        length as u64
    }

    /// See [`Session::take_back`](super::Session::take_back).
    pub(super) fn take_back(
        &mut self,
        connection: ConnectionId,
        surface: SurfaceId,
        seq: UpdateSeq,
    ) -> Option<u64> {
        let is_it = |channel: &Channel| match channel.header {
            Header::Update(header) => {
                (header.connection, header.surface, header.seq) == (connection, surface, seq)
            }
            _ => false,
        };
        let found = self.channels.iter().find(|(_, channel)| channel.place.is_none() && is_it(channel));
        let channel = self.remove(*found?.0)?;
        if self.vacated.len() >= MAX_VACATED {
            self.vacated.pop_first();
        }
        self.vacated.insert((connection, surface), channel.priority);
        Some(channel.queue.len() as u64)
    }

    /// Takes what is known of the link now.
    pub(super) fn set_link(&mut self, now: Time, link: &LinkState) {
        self.ahead = link.ahead();
        self.room = self.ahead.saturating_sub(link.unsent);
        self.protector.set_link(now, link);
    }

    pub(super) fn finish(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.finish = true;
        self.mark_dirty(id);
    }

    pub(super) fn reset(&mut self, id: ChannelId, code: u32) {
        let Some(channel) = self.remove(id) else { return };
        match channel.place {
            None => {} // the peer has never heard of it
            Some(Place::Own(stream)) => self.reset_stream(stream, code),
            Some(Place::Main(place)) => {
                self.returned.retain(|returned| returned.place != place);
                if let Some(stream) = self.failed_stream(place) {
                    self.failed.remove(&stream);
                    self.reset_stream(stream, code);
                }
                self.control(&Control::EmbeddedReset { stream: place, code });
            }
        }
    }

    fn reset_stream(&mut self, stream: StreamId, code: u32) {
        self.protector.forget(stream);
        self.given_up.insert(stream.0);
        self.transmit(Transmit::Reset { stream, code });
    }

    fn failed_stream(&self, place: u64) -> Option<StreamId> {
        self.failed.iter().find(|(_, failed)| failed.place == place).map(|(stream, _)| *stream)
    }

    /// The peer does not want a stream: gives the channel, unless all of it has left already.
    pub(super) fn stopped(&mut self, place: Place, code: u32) -> Option<(ChannelId, Header)> {
        match (self.by_place.get(&place).copied(), place) {
            (Some(id), _) => {
                let header = self.channels.get(&id)?.header;
                self.reset(id, code);
                Some((id, header))
            }
            // What is still in the carrier need not go on.
            (None, Place::Own(stream)) if stream.0 < self.next_stream => {
                self.reset_stream(stream, code);
                None
            }
            (None, _) => None,
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
        if self.given_up.contains(stream.0) {
            return Ok(());
        }
        let place =
            self.failed.get(&stream).map(|failed| failed.place).unwrap_or_else(|| self.move_to_main(stream));
        let failed = self.failed.entry(stream).or_insert(Failed { place, count: 0 });
        let offset = failed.count;
        failed.count += bytes.len() as u64;
        if finish {
            self.failed.remove(&stream);
        }
        self.returned.push_back(Returned { place, offset, bytes, finish });
        Ok(())
    }

    /// Gives the channel of a stream a place in the main one.
    fn move_to_main(&mut self, stream: StreamId) -> u64 {
        self.protector.forget(stream);
        let number = self.next_virtual;
        self.next_virtual += 1;
        if let Some(id) = self.by_place.remove(&Place::Own(stream)) {
            self.put(id, Place::Main(number));
        }
        number
    }

    fn put(&mut self, id: ChannelId, place: Place) {
        self.by_place.insert(place, id);
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.place = Some(place);
        }
    }

    /// The reader of one of our pipes took bytes.
    pub(super) fn credit(&mut self, header: Header, consumed: u64) -> Result<(), Error> {
        let found = self.channels.iter_mut().find(|(_, channel)| channel.header == header);
        let Some((id, channel)) = found else { return Ok(()) }; // it is over already
        let (id, place) = (*id, channel.place);
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
            channel.priority = Priority::new(Class::Pipe, 0);
            let priority = channel.priority;
            if let Some(Place::Own(stream)) = place {
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
        // A tenth of the link, see the timers.
        self.pipe_turn = if on && self.ahead < u64::MAX { self.ahead / 4 } else { 0 };
        let class = if on { Class::SmallContent } else { Class::Pipe };
        let priority = Priority::new(class, 0);
        let pipes = self.channels.values().filter(|channel| channel.is_pipe_under_way(on));
        let streams = pipes.filter_map(|channel| match channel.place? {
            Place::Own(stream) => Some(stream),
            Place::Main(_) => None,
        });
        self.transmits.extend(streams.map(|stream| Transmit::Prioritise { stream, priority }));
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
        let lists = self.channels.len() + self.by_place.len() + self.dirty.len() + self.failed.len();
        lists + self.returned.len() + self.transmits.len()
    }

    /// See [`Protector`].
    pub(super) fn protector(&self) -> &Protector {
        &self.protector
    }

    /// Lets the rows go whose time has come.
    pub(super) fn send_repair(&mut self, now: Time) {
        while let Some(row) = self.protector.due(now) {
            let stream = self.next_stream();
            let mut bytes = Writer::new();
            row.header().encode(&mut bytes);
            bytes.raw(&row.bytes);
            // Should the carrier return it, it goes nowhere.
            self.given_up.insert(stream.0);
            self.transmit(Transmit::Open { stream, priority: row.priority });
            self.transmit(Transmit::Data { stream, bytes: bytes.into_vec().into(), finish: true });
        }
    }

    /// The next thing to do. `route` decides how a kind travels.
    pub(super) fn poll(&mut self, now: Time, route: impl Fn(Kind) -> Route) -> Option<Transmit> {
        if self.transmits.is_empty() {
            self.flush(now, route);
        }
        self.transmits.pop_front()
    }

    /// Moves the most urgent bytes to `transmits`.
    fn flush(&mut self, now: Time, route: impl Fn(Kind) -> Route) {
        if self.main.is_empty()
            && let Some(returned) = self.returned.pop_front()
        {
            self.embed(returned.place, returned.offset, &returned.bytes, returned.finish);
        }
        if self.main.is_empty() && self.ready {
            self.flush_channel(now, &route);
        }
        if !self.main.is_empty() {
            let bytes: Bytes = std::mem::take(&mut self.main).into_vec().into();
            let repairs = self.ready && route(Kind::Repair) == Route::Own;
            if repairs && bytes.len() <= MAX_FLUSH {
                let pieces = std::slice::from_ref(&bytes);
                let (priority, offset) = (self.main_priority, self.main_sent);
                let source = Source { stream: MAIN, priority, offset, head: 0, pieces };
                self.protector.protect(now, source);
            }
            self.main_sent += bytes.len() as u64;
            self.transmits.push_back(Transmit::Data { stream: MAIN, bytes, finish: false });
        }
    }

    /// Moves bytes of the most urgent channel: all of them if it has a stream of its own, else one piece.
    fn flush_channel(&mut self, now: Time, route: impl Fn(Kind) -> Route) {
        let Some((priority, id)) = self.pop_dirty() else { return };
        let allowance = self.allowance(priority.0.class());
        let Some(place) = self.place_of(id, &route) else { return };
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let kind = channel.header.kind();
        let offset = channel.sent;
        let most = if matches!(place, Place::Own(_)) { MAX_FLUSH } else { PIECE };
        let bytes = channel.take(most.min(usize::try_from(allowance).unwrap_or(most)));
        if priority.0.class() <= Class::Content {
            self.room = self.room.saturating_sub(bytes.len() as u64);
        }
        if priority.0.class() < Class::Content {
            self.pipe_turn = self.pipe_turn.saturating_sub(bytes.len() as u64);
        }
        let finish = channel.finish && channel.queue.is_empty();
        let more = !finish && channel.can_send();
        if kind == Kind::Update {
            self.queued_content -= bytes.len();
        }
        if let Place::Own(stream) = place
            && route(Kind::Repair) == Route::Own
        {
            let (priority, head) = (channel.priority, channel.head);
            if kind == Kind::Update {
                channel.handed.push(bytes.clone());
            }
            let source = match kind {
                Kind::Update if finish => Some((0, std::mem::take(&mut channel.handed))),
                Kind::Wayland | Kind::Events => Some((offset, vec![bytes.clone()])),
                _ => None,
            };
            if let Some((offset, pieces)) = source {
                self.protector.protect(now, Source { stream, priority, offset, head, pieces: &pieces });
            }
        }
        if finish {
            self.remove(id);
        } else if more {
            self.dirty.insert((priority, id));
        }
        match place {
            _ if bytes.is_empty() && !finish => {}
            Place::Own(stream) => self.transmits.push_back(Transmit::Data { stream, bytes, finish }),
            Place::Main(place) => self.embed(place, offset, &bytes, finish),
        }
    }

    /// How many bytes of a class may be handed over now. Pipes leave half of what may wait in the carrier to content: it
    /// would count theirs as its own and wait for them.
    fn allowance(&self, class: Class) -> u64 {
        match class {
            Class::Content => self.room,
            Class::Bulk | Class::Pipe | Class::Refinement => {
                self.room.saturating_sub(self.ahead - self.ahead / 2).max(self.pipe_turn)
            }
            _ => u64::MAX,
        }
    }

    /// The most urgent channel that may go on.
    fn pop_dirty(&mut self) -> Option<(Reverse<Priority>, ChannelId)> {
        let may = |(Reverse(priority), _): &&(Reverse<Priority>, _)| self.allowance(priority.class()) > 0;
        let found = self.dirty.iter().find(may).copied()?;
        self.dirty.remove(&found);
        Some(found)
    }

    /// Where a channel travels; decided now if it was not.
    fn place_of(&mut self, id: ChannelId, route: impl Fn(Kind) -> Route) -> Option<Place> {
        let channel = self.channels.get(&id)?;
        if channel.place.is_some() {
            return channel.place;
        }
        let priority = channel.priority;
        let place = match route(channel.header.kind()) {
            Route::Own => {
                let stream = self.next_stream();
                self.transmits.push_back(Transmit::Open { stream, priority });
                Place::Own(stream)
            }
            Route::Main => {
                self.next_virtual += 1;
                Place::Main(self.next_virtual - 1)
            }
        };
        self.put(id, place);
        Some(place)
    }

    fn next_stream(&mut self) -> StreamId {
        self.next_stream += 1;
        StreamId(self.next_stream - 1)
    }

    /// Puts bytes of a channel into the main one.
    fn embed(&mut self, stream: u64, mut offset: u64, bytes: &Bytes, finish: bool) {
        let mut rest = bytes.clone();
        loop {
            let bytes = rest.split_to(rest.len().min(PIECE));
            let length = bytes.len() as u64;
            let finish = finish && rest.is_empty();
            self.control(&Control::Embedded { stream, offset, finish, bytes });
            offset += length;
            if rest.is_empty() {
                break;
            }
        }
    }

    fn insert(&mut self, header: Header, priority: Priority) -> ChannelId {
        let id = ChannelId(self.next_channel);
        self.next_channel += 1;
        let mut queue = Queue::default();
        queue.append(|writer| header.encode(writer));
        let channel = Channel {
            header,
            priority,
            place: None,
            queue,
            finish: false,
            sent: 0,
            handed: Vec::new(),
            head: 0,
            pipe: (header.kind() == Kind::Pipe).then(Flow::default),
        };
        self.channels.insert(id, channel);
        id
    }

    fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let channel = self.channels.remove(&id)?;
        if let Some(place) = channel.place {
            self.by_place.remove(&place);
        }
        self.dirty.remove(&(Reverse(channel.priority), id));
        if channel.header.kind() == Kind::Update {
            self.queued_content -= channel.queue.len();
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

/// The bytes of an update's stream, and how many come before its chunks.
fn content(header: UpdateHeader, chunks: Vec<Vec<u8>>) -> (Queue, usize) {
    let mut queue = Queue::default();
    queue.append(|writer| {
        Header::Update(header).encode(writer);
        writer.varint(chunks.len() as u64);
        for chunk in &chunks {
            writer.varint(chunk.len() as u64);
        }
    });
    let head = queue.len();
    for chunk in chunks {
        queue.push(chunk.into());
    }
    (queue, head)
}

impl Channel {
    /// Whether there is something that may leave now.
    fn can_send(&self) -> bool {
        self.allowed() > 0 || (self.queue.is_empty() && self.finish)
    }

    /// How many of the queued bytes may leave now.
    fn allowed(&self) -> usize {
        let Some(flow) = &self.pipe else { return self.queue.len() };
        let body = (flow.written - flow.left) as usize;
        let header = self.queue.len() - body;
        header + body.min(flow.room())
    }

    /// Takes up to about `max` bytes to be sent.
    fn take(&mut self, max: usize) -> Bytes {
        let header =
            self.pipe.as_ref().map_or(0, |flow| self.queue.len() as u64 - (flow.written - flow.left));
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
        let under_way = |flow: &Flow| !flow.in_head() && (!busy || flow.written > flow.consumed);
        matches!(self.place, Some(Place::Own(_))) && self.pipe.as_ref().is_some_and(under_way)
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
