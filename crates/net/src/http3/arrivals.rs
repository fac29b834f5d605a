//! What the peer has opened, taken apart and waiting to be taken.
//!
//! Bounded by how many streams the peer may have open at once: one that waits here is open. Invariant: what arrived
//! before the end of the connection is given before the end is told.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use noq::{ConnectionError, RecvStream, SendStream, VarInt};
use tokio::sync::Notify;

use super::codes::{BUFFERED_STREAM_REJECTED, REQUEST_REJECTED};

/// Between the task that takes streams apart and those who wait for them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// The number of the session, when there is one.
    session: Option<u64>,
    /// Of streams: the number of their session, and how many bytes said so.
    uni: VecDeque<(u64, RecvStream, u64)>,
    bi: VecDeque<(u64, SendStream, RecvStream, u64)>,
    request: Requested,
    settings: Option<Settled>,
    over: Option<ConnectionError>,
}

/// The request for a session; there is one.
#[derive(Debug, Default)]
enum Requested {
    #[default]
    NotYet,
    Waits(SendStream, RecvStream, Vec<u8>),
    Taken,
}

/// What the peer's settings say.
#[derive(Clone, Debug)]
pub(crate) enum Settled {
    /// Whether it does WebTransport.
    Does(bool),
    /// They cannot be read.
    Broken(String),
}

impl Arrivals {
    /// The next of the session's streams to receive on, and how many bytes of it are not the application's.
    pub(crate) async fn next_uni(&self) -> Result<(RecvStream, u64), ConnectionError> {
        self.next(|queue| queue.uni.pop_front()).await.map(|(_, stream, skipped)| (stream, skipped))
    }

    /// The next of the session's streams both ways, and how many bytes of it are not the application's.
    pub(crate) async fn next_bi(&self) -> Result<(SendStream, RecvStream, u64), ConnectionError> {
        let next = self.next(|queue| queue.bi.pop_front()).await;
        next.map(|(_, send, receive, skipped)| (send, receive, skipped))
    }

    /// The request, with the bytes of it that were read already.
    pub(crate) async fn request(&self) -> Result<(SendStream, RecvStream, Vec<u8>), ConnectionError> {
        self.next(|queue| match std::mem::replace(&mut queue.request, Requested::Taken) {
            Requested::Waits(send, receive, read) => Some((send, receive, read)),
            other => {
                queue.request = other;
                None
            }
        })
        .await
    }

    /// The peer's settings.
    pub(crate) async fn settings(&self) -> Result<Settled, ConnectionError> {
        self.next(|queue| queue.settings.clone()).await
    }

    /// No request is expected, so each is refused.
    pub(crate) fn refuse_requests(&self) {
        self.lock().request = Requested::Taken;
    }

    /// Says which session there is; streams of others are refused from now on, and those that wait.
    pub(crate) fn begin(&self, session: u64) {
        let mut queue = self.lock();
        queue.session = Some(session);
        let (uni, bi) = (std::mem::take(&mut queue.uni), std::mem::take(&mut queue.bi));
        for (of, stream, skipped) in uni {
            queue.add_uni(of, stream, skipped);
        }
        for (of, send, receive, skipped) in bi {
            queue.add_bi(of, send, receive, skipped);
        }
    }

    /// Whether it was not refused.
    pub(super) fn add_uni(&self, session: u64, stream: RecvStream, skipped: u64) -> bool {
        let taken = self.lock().add_uni(session, stream, skipped);
        self.changed.notify_waiters();
        taken
    }

    /// Whether it was not refused.
    pub(super) fn add_bi(&self, session: u64, send: SendStream, receive: RecvStream, skipped: u64) -> bool {
        let taken = self.lock().add_bi(session, send, receive, skipped);
        self.changed.notify_waiters();
        taken
    }

    /// Only the first request is one; whether it was not refused.
    pub(super) fn add_request(&self, mut send: SendStream, mut receive: RecvStream, read: Vec<u8>) -> bool {
        let mut queue = self.lock();
        if matches!(queue.request, Requested::NotYet) {
            queue.request = Requested::Waits(send, receive, read);
            drop(queue);
            self.changed.notify_waiters();
            return true;
        }
        drop(queue);
        let _ = send.reset(REQUEST_REJECTED);
        let _ = receive.stop(REQUEST_REJECTED);
        false
    }

    pub(super) fn settle(&self, settled: Settled) {
        self.lock().settings.get_or_insert(settled);
        self.changed.notify_waiters();
    }

    /// Nothing more comes.
    pub(super) fn end(&self, error: ConnectionError) {
        self.lock().over.get_or_insert(error);
        self.changed.notify_waiters();
    }

    async fn next<T>(&self, mut pick: impl FnMut(&mut Queue) -> Option<T>) -> Result<T, ConnectionError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before looking, so that no change falls between.
            changed.as_mut().enable();
            {
                let mut queue = self.lock();
                if let Some(picked) = pick(&mut queue) {
                    return Ok(picked);
                }
                if let Some(error) = &queue.over {
                    return Err(error.clone());
                }
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn add_uni(&mut self, session: u64, mut stream: RecvStream, skipped: u64) -> bool {
        let refused = self.is_of_other(session);
        if refused {
            let _ = stream.stop(BUFFERED_STREAM_REJECTED);
        } else {
            self.uni.push_back((session, stream, skipped));
        }
        !refused
    }

    fn add_bi(&mut self, session: u64, mut send: SendStream, mut receive: RecvStream, skipped: u64) -> bool {
        let refused = self.is_of_other(session);
        if refused {
            let code: VarInt = BUFFERED_STREAM_REJECTED;
            let _ = send.reset(code);
            let _ = receive.stop(code);
        } else {
            self.bi.push_back((session, send, receive, skipped));
        }
        !refused
    }

    fn is_of_other(&self, session: u64) -> bool {
        self.session.is_some_and(|ours| ours != session)
    }
}
