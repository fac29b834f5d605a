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

use crate::backlog::{Backlog, is_content};
use crate::frame::{Decoder, Frame, MuxError, PAYLOAD_MAX, PREAMBLE, put_data_head, put_frame};
use crate::window::Window;

/// Both directions of one byte stream.
#[derive(Debug)]
pub struct Mux {
    sender: Sender,
    decoder: Decoder,
    incoming: HashMap<u64, Incoming>,
    next_incoming: u64,
    discarded: u64,
    acks: u64,
}

/// A stream of the peer that has not ended.
#[derive(Debug, Default)]
struct Incoming {
    offset: u64,
    stopped: bool,
}

/// What came out of the peer's bytes.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// For the session.
    Arrival(Arrival),
    /// The peer's last frame.
    Close {
        /// See [`Transmit::Close`].
        code: u32,
        /// In words.
        reason: String,
    },
}

impl Default for Mux {
    fn default() -> Self {
        Self::new()
    }
}

impl Mux {
    /// Before anything was said.
    pub fn new() -> Self {
        Self {
            sender: Sender { control: PREAMBLE.to_vec(), ..Sender::default() },
            decoder: Decoder::default(),
            incoming: HashMap::new(),
            next_incoming: 0,
            discarded: 0,
            acks: 0,
        }
    }

    /// Takes one transmit. What concerns a stream that has ended meanwhile is dropped.
    pub fn transmit(&mut self, transmit: Transmit) {
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
            // `LinkState::datagram` says that there are none.
            Transmit::Datagram { .. } => {}
            Transmit::Close { code, reason } => self.sender.close(code, reason),
        }
    }

    /// The run loop has consumed `total` bytes of payload: tells the peer when that is news.
    pub fn acknowledge(&mut self, total: u64) {
        self.sender.consumed = total + self.discarded;
    }

    /// Appends what should be written next to `out`, at least 16 KiB of it if there are as many; nothing where there is
    /// nothing to say now.
    pub fn produce(&mut self, now: Duration, out: &mut Vec<u8>) {
        self.sender.produce(now, out);
    }

    /// The first bytes of the peer are about to be read: what was sent may have waited for the link.
    pub fn begin(&mut self, now: Duration) {
        self.sender.window.begin(now);
    }

    /// Takes bytes from the peer.
    ///
    /// # Errors
    /// They break the rules. That is final: nothing after it can be understood.
    pub fn receive(
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
                    self.acks += 1;
                }
                Frame::Close { code, reason } => {
                    give(Output::Close { code, reason });
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How often the peer has said what it consumed.
    pub fn acks(&self) -> u64 {
        self.acks
    }

    /// Whether the peer's bytes so far end between two frames.
    pub fn is_between_frames(&self) -> bool {
        self.decoder.is_between_frames()
    }

    /// Bytes that were taken and are not produced yet.
    pub fn backlog(&self) -> Backlog {
        self.sender.backlog
    }

    /// Whether the close frame has been produced: nothing follows it.
    pub fn is_closed(&self) -> bool {
        self.sender.closed
    }

    /// Bytes of resets and stops that are not produced yet. A peer that reads nothing can cause them without end.
    pub fn answers(&self) -> usize {
        self.sender.control.len()
    }

    /// What is on the way, and how fast that goes.
    pub fn window(&self) -> &Window {
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
#[derive(Debug, Default)]
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
    acknowledged: u64,
    backlog: Backlog,
    closing: Option<(u32, String)>,
    closed: bool,
}

/// A stream of ours that has not ended.
#[derive(Debug)]
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
        if self.consumed > self.acknowledged {
            self.acknowledged = self.consumed;
            put_frame(out, &Frame::Ack { total: self.acknowledged });
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
const STREAMS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wayferry_proto::Class;

    use super::*;

    fn open(mux: &mut Mux, stream: u64, class: Class) -> StreamId {
        let stream = StreamId(stream);
        mux.transmit(Transmit::Open { stream, priority: Priority::new(class, stream.0) });
        stream
    }

    fn send(mux: &mut Mux, stream: StreamId, bytes: impl Into<Bytes>, finish: bool) {
        mux.transmit(Transmit::Data { stream, bytes: bytes.into(), finish });
    }

    fn output(mux: &mut Mux) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let mut piece = Vec::new();
            mux.produce(Duration::ZERO, &mut piece);
            if piece.is_empty() {
                return bytes;
            }
            bytes.append(&mut piece);
        }
    }

    fn input(mux: &mut Mux, bytes: &[u8]) -> Result<Vec<Output>, MuxError> {
        let mut outputs = Vec::new();
        mux.receive(Duration::from_millis(1), bytes, |output| outputs.push(output))?;
        Ok(outputs)
    }

    /// Streams with their bytes and whether they finished; panics on a gap.
    fn collect(outputs: &[Output]) -> HashMap<u64, (Vec<u8>, bool)> {
        let mut streams: HashMap<u64, (Vec<u8>, bool)> = HashMap::new();
        for output in outputs {
            match output {
                Output::Arrival(Arrival::Data { stream, offset, bytes }) => {
                    let got = streams.entry(stream.0).or_default();
                    assert_eq!(got.0.len() as u64, *offset);
                    got.0.extend_from_slice(bytes);
                }
                Output::Arrival(Arrival::Finished { stream, length }) => {
                    let got = streams.entry(stream.0).or_default();
                    assert_eq!(got.0.len() as u64, *length);
                    got.1 = true;
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        streams
    }

    proptest! {
        #[test]
        fn any_messages_arrive_whole_however_the_bytes_are_cut(
            messages in prop::collection::vec((0..6u64, 0..3000usize), 1..40),
            cuts in prop::collection::vec(1..4000usize, 1..20),
        ) {
            let (mut sender, mut receiver) = (Mux::new(), Mux::new());
            let classes = [Class::Control, Class::Events, Class::Wayland, Class::Content, Class::SmallContent, Class::Pipe];
            let mut expected: HashMap<StreamId, Vec<u8>> = HashMap::new();
            for (stream, class) in classes.into_iter().enumerate() {
                expected.insert(open(&mut sender, stream as u64, class), Vec::new());
            }
            let mut wire = Vec::new();
            for (at, (stream, length)) in messages.into_iter().enumerate() {
                let bytes: Vec<u8> = (0..length).map(|byte| (byte * 7 + at) as u8).collect();
                expected.get_mut(&StreamId(stream)).unwrap().extend_from_slice(&bytes);
                send(&mut sender, StreamId(stream), bytes, false);
                if at % 3 == 0 {
                    sender.produce(Duration::ZERO, &mut wire);
                }
            }
            for stream in 0..6 {
                send(&mut sender, StreamId(stream), Bytes::new(), true);
            }
            wire.append(&mut output(&mut sender));
            let (mut outputs, mut acked, mut rest, mut cuts) = (Vec::new(), 0, wire, cuts.into_iter().cycle());
            while !rest.is_empty() {
                let piece: Vec<u8> = rest.drain(..cuts.next().unwrap().min(rest.len())).collect();
                let got = input(&mut receiver, &piece).unwrap();
                let bytes = |output: &Output| match output {
                    Output::Arrival(Arrival::Data { bytes, .. }) => bytes.len() as u64,
                    _ => 0,
                };
                acked += got.iter().map(bytes).sum::<u64>();
                outputs.extend(got);
                receiver.acknowledge(acked);
                input(&mut sender, &output(&mut receiver)).unwrap();
                rest.append(&mut output(&mut sender));
            }
            let mut got: Vec<_> = collect(&outputs).into_values().collect();
            prop_assert!(got.iter().all(|(_, finished)| *finished));
            let mut got: Vec<_> = got.drain(..).map(|(bytes, _)| bytes).collect();
            let mut expected: Vec<_> = expected.into_values().collect();
            got.sort();
            expected.sort();
            prop_assert_eq!(got, expected);
            prop_assert_eq!(sender.backlog(), Backlog::default());
            prop_assert_eq!(sender.window().unacked(), 0);
        }

        #[test]
        fn garbage_is_an_error_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let mut mux = Mux::new();
            input(&mut mux, &PREAMBLE).unwrap();
            let _ = input(&mut mux, &bytes);
            prop_assert!(mux.incoming.len() <= STREAMS_MAX);
        }
    }

    #[test]
    fn a_key_passes_all_queued_content() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let content = open(&mut sender, 0, Class::Content);
        send(&mut sender, content, vec![0; 1 << 20], true);
        let mut wire = Vec::new();
        sender.produce(Duration::ZERO, &mut wire);
        let key = open(&mut sender, 1, Class::Events);
        send(&mut sender, key, &b"key"[..], false);
        wire.append(&mut output(&mut sender));
        let outputs = input(&mut receiver, &wire).unwrap();
        let at = outputs.iter().position(
            |output| matches!(output, Output::Arrival(Arrival::Data { bytes, .. }) if &bytes[..] == b"key"),
        );
        assert!(at.unwrap() <= 1, "behind {at:?} frames");
    }

    #[test]
    fn content_is_held_at_a_window_and_continues_with_the_acknowledgement() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let content = open(&mut sender, 0, Class::SmallContent);
        send(&mut sender, content, vec![0; 200 << 10], true);
        input(&mut receiver, &output(&mut sender)).unwrap();
        assert_eq!(sender.window().unacked(), 64 << 10);
        assert_eq!(sender.backlog().content, (200 - 64) << 10);
        let wayland = open(&mut sender, 1, Class::Wayland);
        send(&mut sender, wayland, vec![1; 100 << 10], false);
        assert!(output(&mut sender).len() > 100 << 10, "only content is held");
        receiver.acknowledge(164 << 10);
        input(&mut sender, &output(&mut receiver)).unwrap();
        assert!(output(&mut sender).len() > 64 << 10);
    }

    #[test]
    fn stop_leads_to_a_reset_and_silence() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let pipe = open(&mut sender, 7, Class::Pipe);
        send(&mut sender, pipe, vec![0; 300 << 10], false);
        input(&mut receiver, &output(&mut sender)).unwrap();
        receiver.transmit(Transmit::Stop { stream: StreamId(0), code: 5 });
        let got = input(&mut sender, &output(&mut receiver)).unwrap();
        assert_eq!(got, [Output::Arrival(Arrival::Stopped { stream: pipe, code: 5 })]);
        assert_eq!(sender.backlog(), Backlog::default());
        send(&mut sender, pipe, vec![0; 1000], true);
        assert_eq!(sender.backlog(), Backlog::default());
        let last = output(&mut sender);
        assert!(last.len() < 16, "a reset, not the rest");
        assert_eq!(input(&mut receiver, &last).unwrap(), []);
        assert!(receiver.incoming.is_empty() && sender.sender.streams.is_empty());
    }

    #[test]
    fn what_a_stopped_stream_still_carries_is_acknowledged() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let pipe = open(&mut sender, 0, Class::Pipe);
        send(&mut sender, pipe, vec![0; 1000], false);
        let first = output(&mut sender);
        send(&mut sender, pipe, vec![0; 1000], false);
        let second = output(&mut sender);
        input(&mut receiver, &first).unwrap();
        receiver.transmit(Transmit::Stop { stream: StreamId(0), code: 0 });
        assert_eq!(input(&mut receiver, &second).unwrap(), []);
        receiver.acknowledge(1000);
        assert_eq!(sender.acks(), 0, "to write is not to be heard");
        input(&mut sender, &output(&mut receiver)).unwrap();
        assert_eq!((sender.window().unacked(), sender.acks()), (0, 1));
    }

    #[test]
    fn a_reset_reaches_the_session_once_and_frees_the_stream() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let (seen, unseen) = (open(&mut sender, 0, Class::Wayland), open(&mut sender, 1, Class::Wayland));
        send(&mut sender, seen, &b"x"[..], false);
        input(&mut receiver, &output(&mut sender)).unwrap();
        for stream in [seen, unseen, seen] {
            sender.transmit(Transmit::Reset { stream, code: 9 });
        }
        let got = input(&mut receiver, &output(&mut sender)).unwrap();
        assert_eq!(got, [Output::Arrival(Arrival::Reset { stream: StreamId(0), code: 9 })]);
        assert!(receiver.incoming.is_empty());
    }

    #[test]
    fn close_comes_after_messages_and_instead_of_content() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        let (pixels, main) = (open(&mut sender, 0, Class::Content), open(&mut sender, 1, Class::Control));
        send(&mut sender, pixels, vec![0; 1 << 20], true);
        send(&mut sender, main, &b"exit 3"[..], false);
        sender.transmit(Transmit::Close { code: 4, reason: "enough".into() });
        send(&mut sender, pixels, vec![0; 1 << 20], true);
        let wire = output(&mut sender);
        assert!(sender.is_closed() && wire.len() < 100);
        let got = input(&mut receiver, &wire).unwrap();
        let text = Arrival::Data { stream: StreamId(0), offset: 0, bytes: Bytes::from_static(b"exit 3") };
        let close = Output::Close { code: 4, reason: "enough".into() };
        assert_eq!(got, [Output::Arrival(text), close]);
        assert_eq!(sender.backlog(), Backlog::default());
    }

    #[test]
    fn ten_thousand_streams_leave_nothing_behind() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        for stream in 0..10_000 {
            let stream = open(&mut sender, stream, Class::Wayland);
            send(&mut sender, stream, &b"hello"[..], true);
        }
        let got = input(&mut receiver, &output(&mut sender)).unwrap();
        assert_eq!(collect(&got).len(), 10_000);
        assert!(receiver.incoming.is_empty() && sender.sender.streams.is_empty());
        assert!(sender.sender.begun.is_empty() && sender.sender.ready.is_empty());
    }

    #[test]
    fn too_many_open_streams_wait_for_an_end() {
        let (mut sender, mut receiver) = (Mux::new(), Mux::new());
        for stream in 0..=STREAMS_MAX as u64 {
            let stream = open(&mut sender, stream, Class::Wayland);
            send(&mut sender, stream, &b"x"[..], false);
        }
        assert_eq!(collect(&input(&mut receiver, &output(&mut sender)).unwrap()).len(), STREAMS_MAX);
        send(&mut sender, StreamId(0), &b"y"[..], true);
        assert_eq!(
            collect_loose(&input(&mut receiver, &output(&mut sender)).unwrap()),
            [0, 0, STREAMS_MAX as u64]
        );
    }

    fn collect_loose(outputs: &[Output]) -> Vec<u64> {
        let stream = |output: &Output| match output {
            Output::Arrival(Arrival::Data { stream, .. } | Arrival::Finished { stream, .. }) => stream.0,
            other => panic!("unexpected {other:?}"),
        };
        outputs.iter().map(stream).collect()
    }

    #[test]
    fn a_raised_priority_overtakes() {
        let mut sender = Mux::new();
        output(&mut sender);
        let (first, second) = (open(&mut sender, 0, Class::Pipe), open(&mut sender, 1, Class::Pipe));
        send(&mut sender, first, vec![1; 100], true);
        send(&mut sender, second, vec![2; 100], true);
        sender.transmit(Transmit::Prioritise { stream: second, priority: Priority::new(Class::Audio, 0) });
        assert_eq!(sender.backlog(), Backlog { total: 200, content: 100 });
        assert_eq!(output(&mut sender)[4], 2);
        assert_eq!(sender.backlog(), Backlog::default());
    }

    #[test]
    fn rules_of_streams_are_enforced() {
        let refused = |frames: &[Frame]| {
            let mut bytes = PREAMBLE.to_vec();
            frames.iter().for_each(|frame| put_frame(&mut bytes, frame));
            input(&mut Mux::new(), &bytes).unwrap_err()
        };
        let data = |stream, end| Frame::Data { stream, payload: Bytes::from_static(b"x"), end };
        assert_eq!(refused(&[data(1, false)]), MuxError::StreamOutOfOrder { expected: 0, found: 1 });
        assert_eq!(refused(&[data(0, true), data(0, false)]), MuxError::StreamEnded { stream: 0 });
        let reset = Frame::Reset { stream: 0, code: 0 };
        assert_eq!(refused(&[data(0, false), reset.clone(), reset]), MuxError::StreamEnded { stream: 0 });
        assert_eq!(refused(&[Frame::Ack { total: 1 }]), MuxError::WrongAck { total: 1 });
        let stop = Frame::Stop { stream: 0, code: 0 };
        assert_eq!(refused(&[stop]), MuxError::StreamOutOfOrder { expected: 0, found: 0 });
        let flood: Vec<_> = (0..=STREAMS_MAX as u64).map(|stream| data(stream, false)).collect();
        assert_eq!(refused(&flood), MuxError::TooManyStreams { limit: STREAMS_MAX });
    }
}
