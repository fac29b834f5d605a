//! Between a session and its connection: transmits become streams, what streams bring becomes arrivals.
//!
//! The product's `crates/net/src/quic/{pump,intake}.rs` do the same with tasks. One uni stream for each stream of the
//! session, in its priority; unordered reads; a stream that the peer stopped is reset. What flow control holds back
//! waits here. Invariant: the bytes of one stream are written in order, or the stream is over.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use noq_proto::{Connection, Dir, ReadError, StreamEvent, StreamId as QuicId, VarInt, WriteError};
use wayferry_proto::{Arrival, LinkState, Priority, Session, Side, StreamId, Time, Transmit};

use super::Delivery;
use crate::app::Io;
use crate::meter::Meter;

/// See the module.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) session: Session,
    streams: BTreeMap<StreamId, Outgoing>,
    numbers: BTreeMap<QuicId, StreamId>,
    /// Streams that the peer does not let us open yet.
    waiting: VecDeque<StreamId>,
    /// Content bytes that flow control keeps here.
    backlog: u64,
    /// Every stream counts as content: the updates are in the main one.
    all_content: bool,
    /// How much of each of the peer's open streams is known to exist.
    lengths: BTreeMap<QuicId, u64>,
    carriage: Carriage,
    /// The peer's streams, as a page counts them: in the order in which something of each came.
    seen: Vec<QuicId>,
}

/// Between whom streams lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// Two hosts that read streams in any order and count them alike.
    Native,
    /// This is a script in a browser: it reads each stream in order, and knows nothing of the link but its own pings.
    Page,
    /// This is the host, and the peer is such a script.
    ToPage,
}

/// A stream of ours that is not over.
#[derive(Debug)]
struct Outgoing {
    id: Option<QuicId>,
    priority: Priority,
    queue: VecDeque<Bytes>,
    finish: bool,
    /// Counts as content in any class.
    always_content: bool,
}

impl Port {
    pub(super) fn new(delivery: Delivery, side: Side) -> Self {
        let port = Self::with(Session::new(delivery.config(side)));
        Self { all_content: delivery == Delivery::Total, carriage: delivery.carriage(side), ..port }
    }

    /// With this session.
    pub(crate) fn with(session: Session) -> Self {
        Self {
            session,
            all_content: false,
            streams: BTreeMap::new(),
            numbers: BTreeMap::new(),
            waiting: VecDeque::new(),
            backlog: 0,
            lengths: BTreeMap::new(),
            carriage: Carriage::Native,
            seen: Vec::new(),
        }
    }

    /// Tells the session of the datagrams that came.
    pub(super) fn hear(&mut self, now: Time, io: &mut Io<'_>) {
        while let Some(bytes) = io.connection.datagrams().recv() {
            self.session.receive(now, Arrival::Datagram { bytes });
        }
    }

    /// Tells the session what happened to a stream. `tap` sees every piece that came.
    pub(crate) fn on_stream(
        &mut self,
        now: Time,
        event: &StreamEvent,
        io: &mut Io<'_>,
        mut tap: impl FnMut(&[u8]),
    ) {
        match *event {
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = io.connection.streams().accept(Dir::Uni) {
                    self.read(now, id, io.connection, &mut tap);
                }
            }
            StreamEvent::Readable { id } => self.read(now, id, io.connection, &mut tap),
            StreamEvent::Writable { id } => {
                if let Some(stream) = self.numbers.get(&id).copied() {
                    self.write(stream, io);
                }
            }
            StreamEvent::Finished { id } => {
                if let Some(stream) = self.numbers.get(&id).copied() {
                    self.forget(stream);
                    self.session.receive(now, Arrival::Acknowledged { stream });
                }
            }
            StreamEvent::Stopped { id, error_code } => self.stopped(now, id, error_code, io),
            StreamEvent::Available { .. } => self.open_waiting(io),
            StreamEvent::Opened { .. } => {}
        }
    }

    /// Does what the session wants done.
    pub(crate) fn transmit(&mut self, now: Time, io: &mut Io<'_>) {
        let datagram = io.connection.datagrams().max_size().unwrap_or_default();
        let datagram = u16::try_from(datagram).unwrap_or(u16::MAX);
        self.session.set_link(now, &LinkState { datagram, ..self.link(io.meter) });
        while let Some(transmit) = self.session.poll_transmit(now) {
            match transmit {
                Transmit::Open { stream, priority } => {
                    self.streams.insert(stream, Outgoing::new(priority, self.all_content));
                    self.waiting.push_back(stream);
                    self.open_waiting(io);
                }
                Transmit::Data { stream, bytes, finish } => self.data(stream, bytes, finish, io),
                Transmit::Prioritise { stream, priority } => self.prioritise(stream, priority, io.connection),
                Transmit::Reset { stream, code } => self.reset(stream, code, io.connection),
                Transmit::Stop { stream, code } => {
                    let Some(id) = self.incoming(stream, io.connection) else { continue };
                    let _ = io.connection.recv_stream(id).stop(VarInt::from_u32(code));
                }
                // What does not fit is lost.
                Transmit::Datagram { bytes } => drop(io.connection.datagrams().send(bytes, true)),
                // The session says itself that it closes.
                Transmit::Close { .. } => {}
            }
        }
    }

    /// Streams that have something to write, or wait to be opened.
    pub(crate) fn waiting(&self) -> usize {
        let busy = self.streams.values().filter(|stream| stream.id.is_none() || !stream.queue.is_empty());
        busy.count()
    }

    /// What the session's scheduler is told of the link.
    pub(super) fn link(&self, meter: &Meter) -> LinkState {
        let figures = meter.figures();
        if self.carriage == Carriage::Page {
            let rtt = self.session.clock().rtt().unwrap_or_default();
            return LinkState { rtt, payload: Some(1200), in_order: true, ..LinkState::default() };
        }
        LinkState {
            rtt: figures.rtt,
            rtt_deviation: figures.rtt_deviation,
            base_rtt: figures.base_rtt,
            queue_delay: figures.queue_delay,
            payload: Some(figures.payload),
            in_order: self.carriage == Carriage::ToPage,
            window: figures.window,
            unsent: figures.content + self.backlog,
            rate: figures.rate,
            lost_packets: figures.lost_packets,
            lost_runs: figures.lost_runs,
            sent_packets: figures.sent_packets,
            acked_packets: figures.acked_packets,
            ..LinkState::default()
        }
    }

    fn read(&mut self, now: Time, id: QuicId, connection: &mut Connection, tap: &mut impl FnMut(&[u8])) {
        let in_order = self.carriage == Carriage::Page;
        let (known, fresh) = (self.seen.iter().position(|seen| *seen == id), self.seen.len());
        let stream = StreamId(if in_order { known.unwrap_or(fresh) as u64 } else { id.index() });
        let mut recv = connection.recv_stream(id);
        let Ok(mut chunks) = recv.read(in_order) else { return };
        let length = self.lengths.entry(id).or_default();
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    tap(&chunk.bytes);
                    if in_order && self.seen.get(stream.0 as usize).is_none() {
                        self.seen.push(id);
                    }
                    *length = (*length).max(chunk.offset + chunk.bytes.len() as u64);
                    self.session
                        .receive(now, Arrival::Data { stream, offset: chunk.offset, bytes: chunk.bytes });
                }
                end => break end,
            }
        };
        let _ = chunks.finalize();
        let length = *length;
        if in_order && end != Err(ReadError::Blocked) && self.seen.get(stream.0 as usize).is_none() {
            self.seen.push(id);
        }
        match end {
            Ok(_) => self.session.receive(now, Arrival::Finished { stream, length }),
            Err(ReadError::Reset(code)) => {
                self.session.receive(now, Arrival::Reset { stream, code: code_of(code) });
            }
            Err(ReadError::Blocked) => return,
        }
        self.lengths.remove(&id);
    }

    /// A stream of the peer.
    fn incoming(&self, stream: StreamId, connection: &Connection) -> Option<QuicId> {
        match self.carriage {
            Carriage::Page => self.seen.get(stream.0 as usize).copied(),
            _ => Some(QuicId::new(!connection.side(), Dir::Uni, stream.0)),
        }
    }

    /// Opens in the order that the session opened in: a stream has the same number there and here.
    fn open_waiting(&mut self, io: &mut Io<'_>) {
        while let Some(stream) = self.waiting.front().copied() {
            let Some(id) = io.connection.streams().open(Dir::Uni) else { return };
            debug_assert_eq!(id.index(), stream.0, "numbers are equal");
            self.waiting.pop_front();
            let mut send = io.connection.send_stream(id);
            let Some(outgoing) = self.streams.get_mut(&stream) else {
                // Given up before it could be opened; its number is used up.
                let _ = send.reset(VarInt::from_u32(0));
                continue;
            };
            let _ = send.set_priority(outgoing.priority.0);
            outgoing.id = Some(id);
            self.numbers.insert(id, stream);
            self.write(stream, io);
        }
    }

    fn data(&mut self, stream: StreamId, bytes: Bytes, finish: bool, io: &mut Io<'_>) {
        let Some(outgoing) = self.streams.get_mut(&stream) else { return };
        outgoing.finish = finish;
        if !bytes.is_empty() {
            self.backlog += if outgoing.is_content() { bytes.len() as u64 } else { 0 };
            outgoing.queue.push_back(bytes);
        }
        self.write(stream, io);
    }

    /// Writes what the stream has, as far as it goes.
    fn write(&mut self, stream: StreamId, io: &mut Io<'_>) {
        let Some(outgoing) = self.streams.get_mut(&stream) else { return };
        let Some(id) = outgoing.id else { return };
        let content = outgoing.is_content();
        let mut send = io.connection.send_stream(id);
        while let Some(front) = outgoing.queue.front_mut() {
            match send.write_chunks(&mut std::slice::from_mut(front)) {
                Ok(written) => {
                    io.meter.on_written(written, content);
                    self.backlog -= if content { written as u64 } else { 0 };
                    if front.is_empty() {
                        outgoing.queue.pop_front();
                    }
                }
                Err(WriteError::Blocked) => return,
                // Its end has been or will be told.
                Err(_) => return self.forget(stream),
            }
        }
        if outgoing.finish {
            let _ = send.finish();
        }
    }

    fn prioritise(&mut self, stream: StreamId, priority: Priority, connection: &mut Connection) {
        let Some(outgoing) = self.streams.get_mut(&stream) else { return };
        let queued = outgoing.queued();
        self.backlog -= if outgoing.is_content() { queued } else { 0 };
        outgoing.priority = priority;
        self.backlog += if outgoing.is_content() { queued } else { 0 };
        if let Some(id) = outgoing.id {
            let _ = connection.send_stream(id).set_priority(priority.0);
        }
    }

    fn reset(&mut self, stream: StreamId, code: u32, connection: &mut Connection) {
        if let Some(id) = self.streams.get(&stream).and_then(|outgoing| outgoing.id) {
            let _ = connection.send_stream(id).reset(VarInt::from_u32(code));
        }
        self.forget(stream);
    }

    fn stopped(&mut self, now: Time, id: QuicId, code: VarInt, io: &mut Io<'_>) {
        let Some(stream) = self.numbers.get(&id).copied() else { return };
        let code = code_of(code);
        self.reset(stream, code, io.connection);
        self.session.receive(now, Arrival::Stopped { stream, code });
    }

    fn forget(&mut self, stream: StreamId) {
        let Some(outgoing) = self.streams.remove(&stream) else { return };
        self.backlog -= if outgoing.is_content() { outgoing.queued() } else { 0 };
        if let Some(id) = outgoing.id {
            self.numbers.remove(&id);
        }
    }
}

impl Outgoing {
    fn new(priority: Priority, always_content: bool) -> Self {
        Self { id: None, priority, queue: VecDeque::new(), finish: false, always_content }
    }

    fn is_content(&self) -> bool {
        self.always_content || self.priority.class().is_budgeted()
    }

    fn queued(&self) -> u64 {
        self.queue.iter().map(|bytes| bytes.len() as u64).sum()
    }
}

fn code_of(code: VarInt) -> u32 {
    u32::try_from(code.into_inner()).unwrap_or(u32::MAX)
}
