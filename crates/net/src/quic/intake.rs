//! The receiving side of a connection: every stream of the peer is read as its bytes come, in any order.
//!
//! One small task per stream, and none of them waits for the run loop: noq closes a connection that leaves more than
//! 1024 pieces (a megabyte) of one stream unread. Instead, what waits in the inbox narrows the connection's window, so
//! that the peer gets credit for what the run loop has taken, not for what was read; and so does what the session
//! [holds](crate::Carrier::hold). The window does not hold back lost packets that are sent again. Only a flood of tiny
//! pieces, or a stranger that talks too much, stops the reading itself. Invariant: the end of the connection is the
//! last arrival; everything that had reached this host by then comes before it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use noq::{Connection, ReadError, RecvStream, UnorderedRecvStream, VarInt};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use wayferry_proto::{Arrival, StreamId};

use super::config::CONNECTION_WINDOW;
use super::framing::Framing;
use super::shared::{STEP, Shared};
use super::standing::STRANGER_STREAMS;

/// The peer's open streams and how to stop them.
#[derive(Default)]
pub(super) struct Stops(Mutex<HashMap<StreamId, oneshot::Sender<u32>>>);

impl Stops {
    /// The session no longer wants this stream. Nothing happens when it has ended.
    pub(super) fn stop(&self, stream: StreamId, code: u32) {
        if let Some(stop) = self.take(stream) {
            let _ = stop.send(code);
        }
    }

    fn add(&self, stream: StreamId) -> oneshot::Receiver<u32> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(stream, sender);
        receiver
    }

    fn take(&self, stream: StreamId) -> Option<oneshot::Sender<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream)
    }
}

/// Reads everything until the connection ends, then tells why it did.
pub(super) async fn run(connection: Connection, framing: Framing, shared: Arc<Shared>) {
    let mut readers = JoinSet::new();
    let mut narrowed = [0; 2];
    let mut come = 0;
    let error = loop {
        // A page's connection may have more streams than a stranger's session.
        let room = come < STRANGER_STREAMS || shared.standing.is_welcome();
        tokio::select! {
            () = shared.level.notified() => {
                let steps = [shared.inbox.queued(), shared.held.load(Ordering::Acquire)].map(|bytes| bytes / STEP);
                if steps != narrowed {
                    narrowed = steps;
                    connection.set_receive_window(window(steps));
                }
            }
            accepted = framing.accept(&connection), if room => match accepted {
                Ok((stream, skipped)) => {
                    come = come.saturating_add(1);
                    start(&mut readers, Incoming { stream, skipped }, &connection, &framing, &shared);
                }
                Err(error) => break error,
            },
            read = connection.read_datagram() => match read {
                Ok(bytes) => framing.unwrap(bytes).iter().for_each(|bytes| datagram(&shared, bytes)),
                Err(error) => break error,
            },
            Some(Ok(stream)) = readers.join_next(), if !readers.is_empty() => {
                shared.stops.take(stream);
            }
        }
    };
    while readers.join_next().await.is_some() {}
    let ours = shared.ours.lock().unwrap_or_else(PoisonError::into_inner).take();
    let reason = framing.close_reason(&error, ours, shared.standing.is_proven()).await;
    shared.inbox.push(Arrival::Closed { reason });
}

/// A stream of the peer's, and how many of its first bytes are not the session's.
struct Incoming {
    stream: RecvStream,
    skipped: u64,
}

/// A datagram is dropped rather than waited with, and one of a stranger means nothing.
fn datagram(shared: &Shared, bytes: &[u8]) {
    if shared.standing.is_welcome() && !shared.inbox.is_full() {
        shared.inbox.push(Arrival::Datagram { bytes: Bytes::copy_from_slice(bytes) });
    }
}

fn start(
    readers: &mut JoinSet<StreamId>,
    incoming: Incoming,
    connection: &Connection,
    framing: &Framing,
    shared: &Arc<Shared>,
) {
    let stop = shared.stops.add(incoming.id());
    readers.spawn(read(incoming, stop, connection.clone(), framing.clone(), Arc::clone(shared)));
}

impl Incoming {
    fn id(&self) -> StreamId {
        StreamId(self.stream.id().index())
    }
}

async fn read(
    incoming: Incoming,
    mut stop: oneshot::Receiver<u32>,
    connection: Connection,
    framing: Framing,
    shared: Arc<Shared>,
) -> StreamId {
    let (id, skipped) = (incoming.id(), incoming.skipped);
    let mut stream = incoming.stream.into_unordered();
    let mut length = 0;
    loop {
        let chunk = tokio::select! {
            biased;
            code = &mut stop => {
                let _ = stream.stop(framing.code_out(code.unwrap_or_default()));
                return id;
            }
            chunk = next(&mut stream, &connection, &shared) => chunk,
        };
        let arrival = match chunk {
            Ok(Some(chunk)) => {
                let offset = chunk.offset.saturating_sub(skipped);
                length = length.max(offset + chunk.bytes.len() as u64);
                // A copy: a piece that is kept would keep the whole datagram, or a batch of them.
                let bytes = Bytes::copy_from_slice(&chunk.bytes);
                give(&shared, Arrival::Data { stream: id, offset, bytes });
                continue;
            }
            Ok(None) => Arrival::Finished { stream: id, length },
            Err(ReadError::Reset(code)) => Arrival::Reset { stream: id, code: framing.code_in(code) },
            // The connection is over, and says so itself.
            Err(_) => return id,
        };
        give(&shared, arrival);
        return id;
    }
}

/// What the peer may have on the way while so many [`STEP`]s are queued, and held by the session. The queue drains by
/// itself; for what is held, the peer has nothing left in the end.
fn window([queued, held]: [u64; 2]) -> VarInt {
    let whole = u64::from(CONNECTION_WINDOW);
    let open = whole.saturating_sub(queued * STEP).max(STEP);
    VarInt::from_u64(open.saturating_sub(held * STEP)).unwrap_or(CONNECTION_WINDOW)
}

/// Queues an arrival, and calls for another window at each step.
fn give(shared: &Shared, arrival: Arrival) {
    let bytes = if let Arrival::Data { bytes, .. } = &arrival { bytes.len() as u64 } else { 0 };
    shared.standing.hear(bytes as usize);
    let queued = shared.inbox.push(arrival);
    if queued / STEP != (queued - bytes.min(queued)) / STEP {
        shared.level.notify_one();
    }
}

async fn next(
    stream: &mut UnorderedRecvStream,
    connection: &Connection,
    shared: &Shared,
) -> Result<Option<noq::Chunk>, ReadError> {
    may_read(connection, shared).await;
    stream.read_chunk(usize::MAX).await
}

/// Waits until more may be taken of what the peer says, or the connection is over: what has come until then is no more
/// than its window, and ends.
pub(super) async fn may_read(connection: &Connection, shared: &Shared) {
    let must_wait = || shared.inbox.is_overfull() || shared.standing.has_said_enough();
    while must_wait() {
        let room = shared.room.notified();
        // Between the question and the wait the run loop may have made room.
        if must_wait() {
            tokio::select! {
                () = room => {}
                _ = connection.closed() => return,
            }
        }
    }
}
