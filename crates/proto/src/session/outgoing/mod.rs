//! This side's channels: from messages, bytes and updates to what the carrier has to do.
//!
//! Queued bytes become [`Transmit`]s only when asked for, the most urgent channel first, so that small messages queued
//! meanwhile travel as one piece. Channels without a stream of their own go through the main channel in pieces of
//! [`PIECE`] with the same bytes inside. What a channel is lies in [`channel`], what is kept for another carrier in
//! [`retention`]. Invariants: a stream's bytes leave in order and once; nothing but the main channel leaves before the
//! peer's hello, or before both sides know what goes on.

mod channel;
mod retention;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use self::channel::{Channel, content};
use self::retention::Retention;
use super::protect::{Protector, Source, What, Worth};
use super::{MAX_FLUSH, PIPE_WINDOW, Repair, SMALL_UPDATE, STREAM_CANCELLED};
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
/// Finished channels of sound that can still be reset: more than a second of them.
const MAX_SOUNDS: usize = 64;
/// Bytes of a blob that goes before everything else, as keymaps do; larger ones are pictures, which can wait.
const SMALL_BLOB: u32 = 128 << 10;

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
    /// Something in it is waited for.
    main_matters: bool,
    /// Something other than a ping was queued.
    worked: bool,
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
    /// How many bytes of large content and of pipes may wait in the carrier, and how many more may be handed over;
    /// without end while no carrier tells of the link.
    ahead: u64,
    room: u64,
    /// How many bytes of pipes may be handed over although content waits.
    pipe_turn: u64,
    /// Where channels of sound travelled of which everything has left, the oldest first.
    sounds: VecDeque<(ChannelId, StreamId)>,
    /// Places of updates that were taken back, for those that replace them.
    vacated: BTreeMap<(ConnectionId, SurfaceId), Priority>,
    /// What the carrier was given arrives in any case, and in order: it is a byte stream.
    in_order: bool,
    retention: Retention,
    /// There is no carrier.
    suspended: bool,
}

/// Where a channel travels, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// On a stream of its own. The carrier opens them in the order of their numbers, so that both sides count alike.
    Own(StreamId),
    /// In frames of the main channel, as this virtual stream.
    Main(u64),
}

/// Where a channel is kept.
enum Held {
    /// Not all of it has left.
    Here(ChannelId),
    /// All has, under this number.
    Sent(u64),
}

/// A stream that the carrier could not open.
#[derive(Clone, Copy, Debug)]
struct Failed {
    /// As which its bytes go through the main channel.
    place: u64,
    /// How many of its bytes have been returned.
    count: u64,
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
    pub(super) fn new(repair: Repair, main_only: Kinds, resumable: bool) -> Self {
        let mut main = Writer::new();
        Header::Control.encode(&mut main);
        // With updates inside, it is what a content budget has to count.
        let class = if main_only.contains(Kind::Update) { Class::Content } else { Class::Control };
        let main_priority = Priority::first(class);
        let open = Transmit::Open { stream: MAIN, priority: main_priority };
        let protector = Protector::new(repair);
        let transmits = VecDeque::from([open]);
        let retention = Retention::new(resumable);
        Self { transmits, main, main_priority, protector, retention, next_stream: 1, ..Self::closed() }
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
            main_matters: false,
            worked: false,
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
            sounds: VecDeque::new(),
            vacated: BTreeMap::new(),
            in_order: false,
            retention: Retention::new(false),
            suspended: false,
        }
    }

    /// Channels other than the main one may leave.
    pub(super) fn set_ready(&mut self) {
        self.ready = true;
    }

    /// Queues a message of the main channel.
    pub(super) fn control(&mut self, message: &Control) {
        let mut frame = Writer::new();
        message.encode(&mut frame);
        if message.is_lasting() && !self.keep_message(frame.as_slice()) {
            return;
        }
        if !self.suspended {
            self.main.bytes(frame.as_slice());
            self.main_matters |= message.is_waited_for();
            self.worked |= message.is_waited_for();
        }
    }

    /// Whether something other than pings was queued since this was asked last.
    pub(super) fn take_worked(&mut self) -> bool {
        std::mem::take(&mut self.worked)
    }

    /// Queues something for the carrier itself.
    pub(super) fn transmit(&mut self, transmit: Transmit) {
        if !self.suspended {
            self.worked = true;
            self.transmits.push_back(transmit);
        }
    }

    pub(super) fn open(&mut self, header: Header) -> ChannelId {
        let (class, place) = match header.kind() {
            // Its head; it is put back into its own class when that is through.
            Kind::Pipe => (Class::Wayland, 1),
            Kind::Sound => (Class::Audio, self.place(Class::Audio)),
            Kind::Blob => {
                let class = match header {
                    Header::Blob { length, .. } if length > SMALL_BLOB => Class::Pipe,
                    _ => Class::Events,
                };
                (class, self.place(class))
            }
            kind => (kind.class(), 0),
        };
        let id = self.insert(header, Priority::new(class, place));
        self.mark_dirty(id); // so that the peer knows it before its first message
        id
    }

    pub(super) fn send(&mut self, id: ChannelId, message: &[u8]) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        debug_assert!(
            matches!(channel.header.kind(), Kind::Wayland | Kind::Events | Kind::Sound),
            "a channel of messages"
        );
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

    pub(super) fn update(&mut self, header: UpdateHeader, chunks: Vec<Vec<u8>>, worth: Worth) -> u64 {
        let key = (header.connection, header.surface);
        let (queue, table) = content(chunks);
        let class = if queue.len() < SMALL_UPDATE { Class::SmallContent } else { Class::Content };
        let vacated = self.vacated.remove(&key).filter(|place| place.class() == class);
        let priority = vacated.unwrap_or_else(|| Priority::new(class, self.place(class)));
        let length = queue.len();
        let id = self.insert(Header::Update(header), priority);
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.queue = queue;
            (channel.table, channel.worth) = (table, worth);
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
        let found = self.channels.iter().find(|(_, channel)| !channel.has_left() && is_it(channel));
        let channel = self.remove(*found?.0)?;
        self.give_up_number(&channel, STREAM_CANCELLED);
        if self.vacated.len() >= MAX_VACATED {
            self.vacated.pop_first();
        }
        self.vacated.insert((connection, surface), channel.priority);
        Some(channel.queue.len() as u64)
    }

    /// See [`Session::give_up`](super::Session::give_up).
    pub(super) fn give_up(
        &mut self,
        connection: ConnectionId,
        surface: SurfaceId,
    ) -> Option<(UpdateSeq, u64)> {
        if self.in_order {
            return None;
        }
        let waiting = self.channels.iter().map(|(id, channel)| (Held::Here(*id), channel));
        let sent = self.retention.sent().map(|(number, channel)| (Held::Sent(number), channel));
        let updates = waiting.chain(sent).filter_map(|(held, channel)| match channel.header {
            Header::Update(header) if (header.connection, header.surface) == (connection, surface) => {
                Some((held, header.seq, channel))
            }
            _ => None,
        });
        let (mut held, mut first, mut bytes) = (Vec::new(), None, 0);
        for (place, seq, channel) in updates {
            if channel.stale || matches!(channel.place, Some(Place::Main(_))) {
                return None;
            }
            first = Some(first.map_or(seq, |first: UpdateSeq| first.min(seq)));
            bytes += channel.length();
            held.push(place);
        }
        for held in held {
            match held {
                Held::Here(id) => self.reset(id, STREAM_CANCELLED),
                Held::Sent(number) => self.reset_sent(number, STREAM_CANCELLED),
            }
        }
        first.map(|first| (first, bytes))
    }

    /// Takes what is known of the link now.
    pub(super) fn set_link(&mut self, now: Time, link: &LinkState) {
        self.ahead = link.ahead();
        self.room = self.ahead.saturating_sub(link.unsent);
        self.in_order = link.in_order || link.payload.is_none();
        self.protector.set_link(now, link);
    }

    pub(super) fn finish(&mut self, id: ChannelId) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.finish = true;
        self.mark_dirty(id);
    }

    pub(super) fn reset(&mut self, id: ChannelId, code: u32) {
        if let Some(at) = self.sounds.iter().position(|(finished, _)| *finished == id) {
            let stream = self.sounds.remove(at).map(|(_, stream)| stream);
            stream.into_iter().for_each(|stream| self.reset_stream(stream, code));
        }
        let Some(channel) = self.remove(id) else { return };
        self.give_up_number(&channel, code);
        match channel.place {
            None => {} // the peer has never heard of it, or has no stream of it
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

    pub(super) fn reset_stream(&mut self, stream: StreamId, code: u32) {
        self.protector.give_up(stream);
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
            // What is still in the carrier need not go on: the peer has all of it, or does not want it.
            (None, Place::Own(stream)) if stream.0 < self.next_stream => {
                self.protector.forget(stream);
                self.forget_sent(place, code);
                self.reset_stream(stream, code);
                None
            }
            (None, _) => {
                self.forget_sent(place, code);
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
        self.protector.give_up(stream);
        let number = self.next_virtual;
        self.next_virtual += 1;
        let (from, to) = (Place::Own(stream), Place::Main(number));
        match self.by_place.remove(&from) {
            Some(id) => self.put(id, to),
            None => self.retention.moved(from, to),
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
        let (id, place, left) = (*id, channel.place, channel.left);
        let Some(flow) = &mut channel.pipe else { return Ok(()) };
        if consumed > left {
            return Err(Error::OutOfRange { expected: "bytes taken of a pipe", max: left, got: consumed });
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
        lists + self.sounds.len() + self.returned.len() + self.transmits.len() + self.retention.entries()
    }

    /// How many entries of the table of places were looked at so far.
    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        self.retention.touched()
    }

    /// Whether rows of repair go into datagrams from now on.
    pub(super) fn set_rows_in_datagrams(&mut self, in_datagrams: bool) {
        self.protector.set_in_datagrams(in_datagrams);
    }

    /// See [`Protector`].
    pub(super) fn protector(&self) -> &Protector {
        &self.protector
    }

    /// The peer has all of a stream.
    pub(super) fn acknowledged(&mut self, stream: StreamId) {
        self.protector.forget(stream);
    }

    /// Lets the rows go whose time has come.
    pub(super) fn send_repair(&mut self, now: Time) {
        while let Some(row) = self.protector.due(now) {
            self.send_row(row.header(), row.priority, &row.bytes);
        }
        while let Some((header, priority, body)) = self.protector.due_jointly(now) {
            self.send_row(header, priority, &body);
        }
    }

    fn send_row(&mut self, header: Header, priority: Priority, body: &[u8]) {
        if let (Header::Repair(header), true) = (header, self.protector.is_in_datagrams()) {
            return self.transmit(Transmit::Datagram { bytes: header.datagram(body) });
        }
        let stream = self.next_stream();
        let mut bytes = Writer::new();
        header.encode(&mut bytes);
        bytes.raw(body);
        // Should the carrier return it, it goes nowhere.
        self.given_up.insert(stream.0);
        self.transmit(Transmit::Open { stream, priority });
        self.transmit(Transmit::Data { stream, bytes: bytes.into_vec().into(), finish: true });
    }

    /// The next thing to do. `route` decides how a kind travels.
    pub(super) fn poll(&mut self, now: Time, route: impl Fn(Kind) -> Route) -> Option<Transmit> {
        if self.transmits.is_empty() && !self.suspended {
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
            let matters = std::mem::take(&mut self.main_matters);
            let repairs = matters && self.ready && route(Kind::Repair) == Route::Own;
            if repairs && bytes.len() <= MAX_FLUSH {
                let pieces = std::slice::from_ref(&bytes);
                let (priority, offset) = (self.main_priority, self.main_sent);
                let (what, channel, stream) = (What::Messages, 0, MAIN);
                let source = Source { what, channel, stream, priority, offset, pieces };
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
        let Some((place, lead)) = self.place_of(id, &route) else { return };
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let most = if matches!(place, Place::Own(_)) { MAX_FLUSH } else { PIECE };
        let (offset, left) = (channel.sent, channel.left);
        let bytes = channel.take(lead.as_slice(), most.min(usize::try_from(allowance).unwrap_or(most)));
        let body = (channel.left - left) as usize;
        let kind = channel.header.kind();
        let finish = channel.finish && channel.queue.is_empty();
        let more = !finish && channel.can_send();
        if priority.0.class() <= Class::Content {
            self.room = self.room.saturating_sub(bytes.len() as u64);
        }
        if priority.0.class() < Class::Content {
            self.pipe_turn = self.pipe_turn.saturating_sub(bytes.len() as u64);
        }
        if kind == Kind::Update {
            self.queued_content -= body;
        }
        self.keep(id, bytes.slice(bytes.len() - body..));
        if let Place::Own(stream) = place
            && route(Kind::Repair) == Route::Own
        {
            let joint = route(Kind::Joint) == Route::Own && !self.protector.is_in_datagrams();
            self.protect(now, id, (stream, offset), &bytes, finish, joint);
        }
        if finish {
            if let (Place::Own(stream), Kind::Sound) = (place, kind) {
                self.sounds.push_back((id, stream));
                if self.sounds.len() > MAX_SOUNDS {
                    self.sounds.pop_front();
                }
            }
            self.all_has_left(id);
        } else if more {
            self.dirty.insert((priority, id));
        }
        match place {
            _ if bytes.is_empty() && !finish => {}
            Place::Own(stream) => self.transmits.push_back(Transmit::Data { stream, bytes, finish }),
            Place::Main(place) => self.embed(place, offset, &bytes, finish),
        }
    }

    /// Makes repair for what has been taken of a channel, if it is a block or completes one.
    fn protect(
        &mut self,
        now: Time,
        id: ChannelId,
        (stream, offset): (StreamId, u64),
        bytes: &Bytes,
        finish: bool,
        joint: bool,
    ) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let handed = bytes.clone();
        let (what, offset, pieces) = match channel.header {
            Header::Update(header) => {
                channel.handed.push(handed);
                if !finish {
                    return;
                }
                let (head, worth) = (channel.head(), channel.worth);
                (What::Update { header, head, worth, joint }, 0, std::mem::take(&mut channel.handed))
            }
            Header::Wayland { .. } => (What::Messages, offset, vec![handed]),
            Header::Events { .. } => (What::Events, offset, vec![handed]),
            _ => return,
        };
        let (priority, Some(channel), pieces) = (channel.priority, channel.number, &pieces[..]) else {
            return;
        };
        let source = Source { what, channel, stream, priority, offset, pieces };
        self.protector.protect(now, source);
    }

    /// How many bytes of a class may be handed over now. Pipes leave half of what may wait in the carrier to content:
    /// it would count theirs as its own and wait for them.
    fn allowance(&self, class: Class) -> u64 {
        match class {
            Class::Content => self.room,
            Class::Pipe => self.room.saturating_sub(self.ahead - self.ahead / 2).max(self.pipe_turn),
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

    /// Where a channel travels, and if that is decided only now, the header that goes before its bytes.
    fn place_of(&mut self, id: ChannelId, route: impl Fn(Kind) -> Route) -> Option<(Place, Writer)> {
        let channel = self.channels.get(&id)?;
        let mut lead = Writer::new();
        if let Some(place) = channel.place {
            return Some((place, lead));
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
        let label = if self.channels.get(&id)?.is_numbered() { self.number(id) } else { None };
        self.channels.get(&id)?.header.encode_labelled(label, &mut lead);
        self.put(id, place);
        Some((place, lead))
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
        self.channels.insert(id, Channel::new(header, priority));
        id
    }

    /// Takes a channel out, with all that is kept of it.
    fn remove(&mut self, id: ChannelId) -> Option<Channel> {
        let channel = self.detach(id)?;
        self.retention.forget(&channel);
        Some(channel)
    }

    fn detach(&mut self, id: ChannelId) -> Option<Channel> {
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
            self.worked = true;
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
