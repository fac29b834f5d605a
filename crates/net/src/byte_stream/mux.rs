//! The multiplexer without I/O: streams with priorities in, bytes out, and back.
//!
//! It takes transmits and bytes and gives bytes and arrivals; time comes from the caller. Among what may be sent
//! the highest priority goes first, in frames small enough that a key press waits for one of them at most. What
//! counts as content (see [`is_content`]) is held back while a window of it is unacknowledged; nothing else is.
//!
//! Invariant: streams are numbered on the wire in the order of their first frames, so a receiver needs no memory
//! of ended streams to tell a new one from a reused one.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use bytes::{Buf, Bytes};
use wayferry_proto::{Arrival, Priority, StreamId, Transmit};

use super::frame::{Decoder, Frame, MuxError, PAYLOAD_MAX, PREAMBLE, put_data_head, put_frame};
use super::window::Window;
use crate::carrier::{Backlog, is_content};

/// Both directions of one byte stream.
pub(crate) struct Mux {
    sender: Sender,
    decoder: Decoder,
    incoming: HashMap<u64, Incoming>,
    next_incoming: u64,
    discarded: u64,
}

/// A stream of the peer that has not ended.
#[derive(Default)]
struct Incoming {
    offset: u64,
    stopped: bool,
}

/// What came out of the peer's bytes.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// For the session.
    Arrival(Arrival),
    /// The peer's last frame.
    Close { code: u32, reason: String },
}

impl Mux {
    pub(crate) fn new() -> Self {
        Self {
            sender: Sender { control: PREAMBLE.to_vec(), ..Sender::default() },
            decoder: Decoder::default(),
            incoming: HashMap::new(),
            next_incoming: 0,
            discarded: 0,
        }
    }

    /// Takes one transmit. What concerns a stream that has ended meanwhile is dropped.
    pub(crate) fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::Open { stream, priority } => self.sender.open(stream, priority),
            Transmit::Data { stream, bytes, finish } => self.sender.data(stream, bytes, finish),
            Transmit::Prioritise { stream, priority } => self.sender.prioritise(stream, priority),
            Transmit::Reset { stream, code } => self.sender.reset(stream, code),
            Transmit::Stop { stream, code } => {
                let open = self.incoming.get_mut(&stream.0).filter(|incoming| !incoming.stopped);
                if let Some(incoming) = open {
                    incoming.stopped = true;
                    put_frame(&mut self.sender.control, &Frame::Stop { stream: stream.0, code });
                }
            }
            Transmit::Close { code, reason } => self.sender.close(code, reason),
        }
    }

    /// The run loop has consumed `total` bytes of payload: tells the peer when that is news.
    pub(crate) fn acknowledge(&mut self, total: u64) {
        self.sender.consumed = total + self.discarded;
    }

    /// Appends what should be written next to `out`, at least [`PAYLOAD_MAX`] bytes of it if there are as many.
    pub(crate) fn produce(&mut self, now: Duration, out: &mut Vec<u8>) {
        self.sender.produce(now, out);
    }

    /// Takes bytes from the peer. An error is final: nothing after it can be understood.
    pub(crate) fn receive(
        &mut self,
        now: Duration,
        bytes: &[u8],
        mut give: impl FnMut(Output),
    ) -> Result<(), MuxError> {
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next()? {
            match frame {
                Frame::Data { stream, payload, end } => self.on_data(stream, payload, end, &mut give)?,
                Frame::Reset { stream, code } => {
                    let incoming = self.find(stream)?;
                    if !incoming.stopped {
                        give(Output::Arrival(Arrival::Reset { stream: StreamId(stream), code }));
                    }
                    self.incoming.remove(&stream);
                }
                Frame::Stop { stream, code } => {
                    if let Some(stream) = self.sender.on_stop(stream, code)? {
                        give(Output::Arrival(Arrival::Stopped { stream, code }));
                    }
                }
                Frame::Ack { total } => {
                    self.sender.window.on_ack(now, total).ok_or(MuxError::WrongAck { total })?;
                }
                Frame::Close { code, reason } => {
                    give(Output::Close { code, reason });
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether the peer's bytes so far end between two frames.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.decoder.is_between_frames()
    }

    /// Bytes that were taken and are not produced yet.
    pub(crate) fn backlog(&self) -> Backlog {
        self.sender.backlog
    }

    /// Whether the close frame has been produced: nothing follows it.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.closed
    }

    pub(crate) fn window(&self) -> &Window {
        &self.sender.window
    }

    fn on_data(
        &mut self,
        stream: u64,
        payload: Bytes,
        end: bool,
        give: &mut impl FnMut(Output),
    ) -> Result<(), MuxError> {
        let incoming = self.find(stream)?;
        let (offset, stopped) = (incoming.offset, incoming.stopped);
        let length = offset + payload.len() as u64;
        incoming.offset = length;
        if end {
            self.incoming.remove(&stream);
        }
        if stopped {
            self.discarded += payload.len() as u64;
            return Ok(());
        }
        let stream = StreamId(stream);
        if !payload.is_empty() {
            give(Output::Arrival(Arrival::Data { stream, offset, bytes: payload }));
        }
        if end {
            give(Output::Arrival(Arrival::Finished { stream, length }));
        }
        Ok(())
    }

    /// The open stream with that number, which may be the next new one.
    fn find(&mut self, stream: u64) -> Result<&mut Incoming, MuxError> {
        if stream > self.next_incoming {
            return Err(MuxError::StreamOutOfOrder { expected: self.next_incoming, found: stream });
        }
        if stream == self.next_incoming {
            if self.incoming.len() >= STREAMS_MAX {
                return Err(MuxError::TooManyStreams { limit: STREAMS_MAX });
            }
            self.next_incoming += 1;
            self.incoming.insert(stream, Incoming::default());
        }
        self.incoming.get_mut(&stream).ok_or(MuxError::StreamEnded { stream })
    }
}

/// The outgoing direction.
#[derive(Default)]
struct Sender {
    /// Encoded frames that go before any data.
    control: Vec<u8>,
    streams: HashMap<StreamId, Outgoing>,
    /// Streams with something to send, highest priority first, the oldest first among equals.
    ready: BTreeSet<(Reverse<i32>, u64, StreamId)>,
    /// Streams that have a number on the wire and have not ended.
    begun: HashMap<u64, StreamId>,
    next_number: u64,
    opened: u64,
    window: Window,
    consumed: u64,
    told: u64,
    backlog: Backlog,
    closing: Option<(u32, String)>,
    closed: bool,
}

/// A stream of ours that has not ended.
struct Outgoing {
    priority: Priority,
    opened: u64,
    number: Option<u64>,
    queue: VecDeque<Bytes>,
    queued: usize,
    finish: bool,
}

impl Sender {
    fn open(&mut self, stream: StreamId, priority: Priority) {
        let (opened, queue) = (self.opened, VecDeque::new());
        self.opened += 1;
        self.streams
            .insert(stream, Outgoing { priority, opened, number: None, queue, queued: 0, finish: false });
    }

    fn data(&mut self, stream: StreamId, bytes: Bytes, finish: bool) {
        let Some(outgoing) = self.streams.get_mut(&stream).filter(|outgoing| !outgoing.finish) else {
            return;
        };
        if self.closing.is_some() && is_content(outgoing.priority) {
            return;
        }
        outgoing.finish = finish;
        if !bytes.is_empty() {
            self.backlog.add(outgoing.priority, bytes.len());
            outgoing.queued += bytes.len();
            outgoing.queue.push_back(bytes);
        }
        if finish || !outgoing.queue.is_empty() {
            self.ready.insert((Reverse(outgoing.priority.0), outgoing.opened, stream));
        }
    }

    fn prioritise(&mut self, stream: StreamId, priority: Priority) {
        let Some(outgoing) = self.streams.get_mut(&stream) else {
            return;
        };
        let old = std::mem::replace(&mut outgoing.priority, priority);
        self.backlog.sub(old, outgoing.queued);
        self.backlog.add(priority, outgoing.queued);
        if self.ready.remove(&(Reverse(old.0), outgoing.opened, stream)) {
            self.ready.insert((Reverse(priority.0), outgoing.opened, stream));
        }
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        if let Some(number) = self.forget(stream) {
            put_frame(&mut self.control, &Frame::Reset { stream: number, code });
        }
    }

    /// The peer's wish is granted at once: the stream ends with a reset of the same code.
    fn on_stop(&mut self, number: u64, code: u32) -> Result<Option<StreamId>, MuxError> {
        if number >= self.next_number {
            return Err(MuxError::StreamOutOfOrder { expected: self.next_number, found: number });
        }
        let Some(&stream) = self.begun.get(&number) else {
            return Ok(None);
        };
        self.reset(stream, code);
        Ok(Some(stream))
    }

    fn close(&mut self, code: u32, reason: String) {
        if self.closed || self.closing.is_some() {
            return;
        }
        self.closing = Some((code, reason));
        let content =
            |(stream, outgoing): (&StreamId, &Outgoing)| is_content(outgoing.priority).then_some(*stream);
        for stream in self.streams.iter().filter_map(content).collect::<Vec<_>>() {
            self.reset(stream, code);
        }
    }

    /// Drops all state of a stream; its number if the peer knows it.
    fn forget(&mut self, stream: StreamId) -> Option<u64> {
        let outgoing = self.streams.remove(&stream)?;
        self.ready.remove(&(Reverse(outgoing.priority.0), outgoing.opened, stream));
        self.backlog.sub(outgoing.priority, outgoing.queued);
        outgoing.number.inspect(|number| {
            self.begun.remove(number);
        })
    }

    fn produce(&mut self, now: Duration, out: &mut Vec<u8>) {
        if self.closed {
            return;
        }
        out.append(&mut self.control);
        if self.consumed > self.told {
            self.told = self.consumed;
            put_frame(out, &Frame::Ack { total: self.told });
        }
        while out.len() < PAYLOAD_MAX {
            let Some(stream) = self.pick() else {
                break;
            };
            self.put_data(now, stream, out);
        }
        if self.ready.is_empty()
            && let Some((code, reason)) = self.closing.take()
        {
            put_frame(out, &Frame::Close { code, reason });
            self.closed = true;
        }
    }

    /// The stream whose frame is next: nothing of content while its window is full, no new stream while too many
    /// are open.
    fn pick(&self) -> Option<StreamId> {
        let held = self.window.unacked() >= self.window.size();
        let full = self.begun.len() >= STREAMS_MAX;
        self.ready
            .iter()
            .take_while(|(Reverse(priority), ..)| !(held && is_content(Priority(*priority))))
            .map(|(.., stream)| *stream)
            .find(|stream| !full || self.streams.get(stream).is_some_and(|open| open.number.is_some()))
    }

    fn put_data(&mut self, now: Duration, stream: StreamId, out: &mut Vec<u8>) {
        let Some(outgoing) = self.streams.get_mut(&stream) else {
            return;
        };
        let number = *outgoing.number.get_or_insert_with(|| {
            self.next_number += 1;
            self.begun.insert(self.next_number - 1, stream);
            self.next_number - 1
        });
        let length = outgoing.queued.min(PAYLOAD_MAX);
        outgoing.queued -= length;
        let all = outgoing.queued == 0;
        let (end, priority) = (all && outgoing.finish, outgoing.priority);
        put_data_head(out, number, length, end);
        take(&mut outgoing.queue, length, out);
        self.window.on_sent(now, length as u64);
        self.backlog.sub(priority, length);
        if end {
            self.forget(stream);
        } else if all {
            self.ready.remove(&(Reverse(priority.0), outgoing.opened, stream));
        }
    }
}

/// Moves `length` bytes from the front of the queue.
fn take(queue: &mut VecDeque<Bytes>, mut length: usize, out: &mut Vec<u8>) {
    while length > 0
        && let Some(front) = queue.front_mut()
    {
        let piece = length.min(front.len());
        out.extend_from_slice(&front[..piece]);
        front.advance(piece);
        length -= piece;
        if front.is_empty() {
            queue.pop_front();
        }
    }
}

/// Streams of one side that have begun and not ended. More wait for one to end.
pub(crate) const STREAMS_MAX: usize = 4096;
