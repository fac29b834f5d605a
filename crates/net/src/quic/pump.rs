//! The sending side of a connection: transmits become streams, writes, resets.
//!
//! One task writes what it is given at once, in the order given, so that noq sees everything before it builds the
//! next packet and its priorities decide. Only a stream that flow control blocks keeps bytes here; no other waits
//! for it. Handles of finished streams are kept until the peer has everything or stops them: a stream whose handle
//! is gone can no longer be reset.
//!
//! Invariant: the bytes of one stream are written in order, or the stream is over.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use noq::{Connection, ConnectionError, SendStream, StoppedError, VarInt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use wayferry_mux::{Backlog, is_content};
use wayferry_proto::{Arrival, Class, CloseReason, Priority, StreamId, Transmit};

use super::framing::Framing;
use super::meter::Meter;
use super::shared::Shared;
use crate::carrier::QUEUE_LIMIT;

/// Everything about our own streams of one connection.
pub(super) struct Pump {
    connection: Connection,
    framing: Framing,
    shared: Arc<Shared>,
    kicks: mpsc::UnboundedReceiver<()>,
    streams: HashMap<StreamId, Outgoing>,
    /// Streams with bytes that flow control keeps here, highest priority first.
    blocked: BTreeSet<Place>,
    /// Streams that the peer does not let us open yet. They are opened in the order of their numbers, those that were
    /// given up too, so that QUIC counts them as the session does: repair names streams by number.
    waiting: BTreeSet<StreamId>,
    /// Those that had to wait, the longest first; may name some that no longer do.
    patience: VecDeque<(Instant, StreamId)>,
    opening: Option<Opening>,
    failed: HashSet<StreamId>,
    watches: JoinSet<(StreamId, Result<Option<VarInt>, StoppedError>)>,
    backlog: Backlog,
    open_timeout: Duration,
}

type Place = (Reverse<i32>, StreamId);
type Opening = Pin<Box<dyn Future<Output = Result<SendStream, ConnectionError>> + Send>>;

/// A stream of ours whose end the peer has not seen.
struct Outgoing {
    priority: Priority,
    stream: Option<SendStream>,
    queue: VecDeque<Bytes>,
    queued: usize,
    finish: bool,
    watch: Option<AbortHandle>,
}

/// What the pump waited for.
enum Event {
    Kick,
    Dropped,
    Opened(Result<SendStream, ConnectionError>),
    /// Some blocked stream could write.
    Progress,
    Stopped(StreamId, VarInt),
    /// The peer has all of a stream.
    Ended(StreamId),
    OpenTimeout,
    Over,
}

/// Whether the task goes on.
enum Next {
    Continue,
    Close { code: u32, text: String },
    Drop,
    Over,
}

impl Pump {
    pub(super) fn new(
        connection: Connection,
        framing: Framing,
        shared: Arc<Shared>,
        kicks: mpsc::UnboundedReceiver<()>,
        open_timeout: Duration,
    ) -> Self {
        Self {
            connection,
            framing,
            shared,
            kicks,
            streams: HashMap::new(),
            blocked: BTreeSet::new(),
            waiting: BTreeSet::new(),
            patience: VecDeque::new(),
            opening: None,
            failed: HashSet::new(),
            watches: JoinSet::new(),
            backlog: Backlog::default(),
            open_timeout,
        }
    }

    /// Runs until the connection is over, closing it when told to. `_pass` lets the runtime wait for that.
    pub(super) async fn run(mut self, _pass: Option<mpsc::Sender<()>>) {
        let connection = self.connection.clone();
        let mut closed = pin!(connection.closed());
        loop {
            let event = self.event(closed.as_mut()).await;
            match self.handle(event).await {
                Next::Continue => {}
                Next::Over => return,
                Next::Close { code, text } => return self.close(code, &text).await,
                Next::Drop => return self.framing.give_up(&connection, "the peer gave the link up"),
            }
        }
    }

    async fn event(&mut self, closed: Pin<&mut impl Future<Output = ConnectionError>>) -> Event {
        let deadline = self.open_deadline();
        let Self { kicks, streams, blocked, opening, watches, backlog, shared, .. } = self;
        tokio::select! {
            kick = kicks.recv() => if kick.is_some() { Event::Kick } else { Event::Dropped },
            stream = poll_fn(|cx| opening.as_mut().map_or(Poll::Pending, |opening| opening.as_mut().poll(cx)))
                => Event::Opened(stream),
            () = poll_fn(|cx| poll_blocked(cx, streams, blocked, backlog, &shared.meter)), if !blocked.is_empty()
                => Event::Progress,
            Some(watched) = watches.join_next(), if !watches.is_empty() => match watched {
                Ok((stream, Ok(Some(code)))) => Event::Stopped(stream, code),
                Ok((stream, Ok(None))) => Event::Ended(stream),
                // The connection is over, or the watch was aborted because the stream was reset.
                Ok((_, Err(_))) | Err(_) => Event::Progress,
            },
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => Event::OpenTimeout,
            _ = closed => Event::Over,
        }
    }

    async fn handle(&mut self, event: Event) -> Next {
        match event {
            Event::Kick => return self.take_transmits().await,
            // What was handed over before the drop still counts: a close may be among it.
            Event::Dropped => {
                return match self.take_transmits().await {
                    Next::Continue => Next::Drop,
                    next => next,
                };
            }
            Event::Opened(Ok(stream)) => self.on_opened(stream).await,
            Event::Opened(Err(_)) => self.opening = None,
            Event::Progress => {}
            Event::Stopped(stream, code) => self.on_stopped(stream, code),
            Event::Ended(stream) => self.on_ended(stream),
            Event::OpenTimeout => self.fail_openings(),
            Event::Over => return Next::Over,
        }
        self.shared.meter.settle(0, self.backlog);
        Next::Continue
    }

    async fn take_transmits(&mut self) -> Next {
        let (transmits, counted) = self.shared.outbox.take();
        let mut next = Next::Continue;
        for transmit in transmits {
            match transmit {
                Transmit::Open { stream, priority } => self.open(stream, priority).await,
                Transmit::Data { stream, bytes, finish } => self.data(stream, bytes, finish).await,
                Transmit::Prioritise { stream, priority } => self.prioritise(stream, priority),
                Transmit::Reset { stream, code } => self.reset(stream, code),
                Transmit::Stop { stream, code } => self.shared.stops.stop(stream, code),
                // Too large for the path by now, or not taken by the peer: it may be lost anyway.
                Transmit::Datagram { bytes } => {
                    drop(self.connection.send_datagram(self.framing.wrap(bytes)));
                }
                Transmit::Close { code, reason } => {
                    next = Next::Close { code, text: reason };
                    break;
                }
            }
        }
        self.shared.meter.settle(counted, self.backlog);
        if self.backlog.total > QUEUE_LIMIT {
            let reason = CloseReason::TooMuch("bytes that the link does not take".into());
            let (code, text) = reason.to_wire();
            return Next::Close { code, text };
        }
        next
    }

    async fn open(&mut self, id: StreamId, priority: Priority) {
        let outgoing = Outgoing {
            priority,
            stream: None,
            queue: VecDeque::new(),
            queued: 0,
            finish: false,
            watch: None,
        };
        self.streams.insert(id, outgoing);
        self.waiting.insert(id);
        if self.opening.is_none() {
            self.open_next().await;
        }
        if self.is_waiting(id) {
            self.patience.push_back((Instant::now() + self.open_timeout, id));
        }
    }

    fn is_waiting(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|outgoing| outgoing.stream.is_none())
    }

    /// Opens for those who wait, as long as that takes no waiting itself.
    async fn open_next(&mut self) {
        while !self.waiting.is_empty() {
            let connection = self.connection.clone();
            let mut opening: Opening = Box::pin(async move { connection.open_uni().await });
            match poll_fn(|cx| Poll::Ready(opening.as_mut().poll(cx))).await {
                Poll::Ready(Ok(stream)) => self.assign(stream).await,
                Poll::Ready(Err(_)) => return,
                Poll::Pending => {
                    self.opening = Some(opening);
                    return;
                }
            }
        }
    }

    async fn on_opened(&mut self, stream: SendStream) {
        self.opening = None;
        self.assign(stream).await;
        self.open_next().await;
    }

    /// The first of those who wait gets the stream.
    async fn assign(&mut self, mut stream: SendStream) {
        let first = self.waiting.pop_first();
        let Some((id, outgoing)) = first.and_then(|id| Some((id, self.streams.get_mut(&id)?))) else {
            // No stream of the session wants it any more; the peer may forget it.
            let _ = stream.reset(VarInt::from_u32(0));
            return;
        };
        debug_assert_eq!(stream.id().index(), id.0 + self.framing.first(), "they count alike");
        outgoing.put_first(self.framing.stream_header(), &mut self.backlog);
        let _ = stream.set_priority(outgoing.priority.0);
        let stopped = stream.stopped();
        outgoing.watch = Some(self.watches.spawn(async move { (id, stopped.await) }));
        outgoing.stream = Some(stream);
        self.write(id).await;
    }

    async fn data(&mut self, id: StreamId, bytes: Bytes, finish: bool) {
        if self.failed.contains(&id) {
            return self.give_back(id, bytes, finish);
        }
        let Some(outgoing) = self.streams.get_mut(&id).filter(|outgoing| !outgoing.finish) else {
            return;
        };
        outgoing.finish = finish;
        if !bytes.is_empty() {
            self.backlog.add(outgoing.priority, bytes.len());
            outgoing.queued += bytes.len();
            outgoing.queue.push_back(bytes);
        }
        self.write(id).await;
    }

    /// Writes what the stream has, as far as it goes.
    async fn write(&mut self, id: StreamId) {
        let Self { streams, blocked, backlog, shared, .. } = self;
        let Some(outgoing) = streams.get_mut(&id).filter(|outgoing| outgoing.stream.is_some()) else {
            return;
        };
        let place = (Reverse(outgoing.priority.0), id);
        if poll_fn(|cx| Poll::Ready(outgoing.poll_write(cx, backlog, &shared.meter))).await.is_pending() {
            blocked.insert(place);
        }
    }

    fn prioritise(&mut self, id: StreamId, priority: Priority) {
        let Some(outgoing) = self.streams.get_mut(&id) else {
            return;
        };
        let old = std::mem::replace(&mut outgoing.priority, priority);
        self.backlog.sub(old, outgoing.queued);
        self.backlog.add(priority, outgoing.queued);
        if let Some(stream) = &outgoing.stream {
            let _ = stream.set_priority(priority.0);
        }
        if self.blocked.remove(&(Reverse(old.0), id)) {
            self.blocked.insert((Reverse(priority.0), id));
        }
    }

    fn reset(&mut self, id: StreamId, code: u32) {
        self.failed.remove(&id);
        if let Some(mut outgoing) = self.forget(id)
            && let Some(stream) = &mut outgoing.stream
        {
            let _ = stream.reset(self.framing.code_out(code));
        }
    }

    fn on_stopped(&mut self, id: StreamId, code: VarInt) {
        let code = self.framing.code_in(code);
        self.reset(id, code);
        self.shared.inbox.push(Arrival::Stopped { stream: id, code });
    }

    fn on_ended(&mut self, id: StreamId) {
        let ended = self.forget(id);
        // The session waits for no others.
        if ended.is_some_and(|outgoing| outgoing.priority.class() == Class::SmallContent) {
            self.shared.inbox.push(Arrival::Acknowledged { stream: id });
        }
    }

    fn forget(&mut self, id: StreamId) -> Option<Outgoing> {
        let outgoing = self.streams.remove(&id)?;
        self.blocked.remove(&(Reverse(outgoing.priority.0), id));
        self.backlog.sub(outgoing.priority, outgoing.queued);
        if let Some(watch) = &outgoing.watch {
            watch.abort();
        }
        Some(outgoing)
    }

    fn open_deadline(&mut self) -> Option<Instant> {
        while let Some(&(deadline, id)) = self.patience.front() {
            if self.is_waiting(id) {
                return Some(deadline);
            }
            self.patience.pop_front();
        }
        None
    }

    /// One has waited too long: all who wait get their bytes back, for the session has another way for them. None of
    /// the others could be opened sooner, and repair must not outlive its source.
    fn fail_openings(&mut self) {
        while let Some((_, id)) = self.patience.pop_front() {
            if !self.is_waiting(id) {
                continue;
            }
            let Some(mut outgoing) = self.forget(id) else { continue };
            self.failed.insert(id);
            if outgoing.finish && outgoing.queue.is_empty() {
                outgoing.queue.push_back(Bytes::new());
            }
            while let Some(bytes) = outgoing.queue.pop_front() {
                let finish = outgoing.finish && outgoing.queue.is_empty();
                self.give_back(id, bytes, finish);
            }
        }
    }

    fn give_back(&mut self, id: StreamId, bytes: Bytes, finish: bool) {
        if finish {
            self.failed.remove(&id);
        }
        self.shared.inbox.push(Arrival::OpenFailed { stream: id, bytes, finish });
    }

    /// Gives up content, waits a moment until the peer has the rest, then closes. A stranger is not waited for.
    async fn close(mut self, code: u32, text: &str) {
        *self.shared.ours.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(CloseReason::from_wire(code, text));
        let content = |(id, outgoing): (&StreamId, &Outgoing)| is_content(outgoing.priority).then_some(*id);
        for id in self.streams.iter().filter_map(content).collect::<Vec<_>>() {
            self.reset(id, code);
        }
        self.shared.meter.settle(0, self.backlog);
        let connection = self.connection.clone();
        let mut closed = pin!(connection.closed());
        let linger = if self.shared.standing.is_welcome() { CLOSE_LINGER } else { Duration::ZERO };
        let _ = timeout(linger, async {
            while !self.is_delivered() {
                tokio::select! {
                    _ = closed.as_mut() => return,
                    () = sleep(CLOSE_POLL) => {}
                    () = poll_fn(|cx| self.poll_rest(cx)) => {}
                }
            }
        })
        .await;
        self.framing.close(&connection, code, text).await;
    }

    fn is_delivered(&self) -> bool {
        let waits = self.waiting.iter().any(|id| self.streams.contains_key(id));
        self.blocked.is_empty() && !waits && self.shared.meter.is_quiet()
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { streams, blocked, backlog, shared, .. } = self;
        poll_blocked(cx, streams, blocked, backlog, &shared.meter)
    }
}

impl Outgoing {
    /// Puts this before all of its bytes.
    fn put_first(&mut self, bytes: Bytes, backlog: &mut Backlog) {
        if !bytes.is_empty() {
            backlog.add(self.priority, bytes.len());
            self.queued += bytes.len();
            self.queue.push_front(bytes);
        }
    }

    /// Ready when nothing is left to write; also when the stream takes nothing any more, which its watch tells.
    fn poll_write(&mut self, cx: &mut Context<'_>, backlog: &mut Backlog, meter: &Meter) -> Poll<()> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(());
        };
        let content = is_content(self.priority);
        while let Some(front) = self.queue.front_mut() {
            let mut piece = [std::mem::take(front)];
            let written = {
                let mut pieces = &mut piece[..];
                pin!(stream.write_many_chunks(&mut pieces)).poll(cx)
            };
            let [rest] = piece;
            match written {
                Poll::Ready(Ok(written)) => {
                    meter.on_written(written, content);
                    backlog.sub(self.priority, written);
                    self.queued -= written;
                    if rest.is_empty() {
                        self.queue.pop_front();
                    } else {
                        *front = rest;
                    }
                }
                Poll::Ready(Err(_)) => {
                    backlog.sub(self.priority, std::mem::take(&mut self.queued));
                    self.queue.clear();
                    return Poll::Ready(());
                }
                Poll::Pending => {
                    *front = rest;
                    return Poll::Pending;
                }
            }
        }
        if self.finish {
            let _ = stream.finish();
        }
        Poll::Ready(())
    }
}

/// Ready when at least one blocked stream got somewhere.
fn poll_blocked(
    cx: &mut Context<'_>,
    streams: &mut HashMap<StreamId, Outgoing>,
    blocked: &mut BTreeSet<Place>,
    backlog: &mut Backlog,
    meter: &Meter,
) -> Poll<()> {
    let before = *backlog;
    blocked.retain(|(_, id)| {
        streams.get_mut(id).is_some_and(|outgoing| outgoing.poll_write(cx, backlog, meter).is_pending())
    });
    if *backlog == before { Poll::Pending } else { Poll::Ready(()) }
}

/// How long a close may wait for the peer to have what was sent before it.
const CLOSE_LINGER: Duration = Duration::from_secs(1);

/// How often that is looked at.
const CLOSE_POLL: Duration = Duration::from_millis(2);
