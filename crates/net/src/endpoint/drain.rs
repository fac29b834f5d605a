//! Waiting for what was finished to arrive.
//!
//! A stream that was finished may be dropped, and still has to be waited for before a graceful close. Invariant: those
//! kept are the ones that were not acknowledged yet, and at most as many again.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use noq::{Stopped, StreamId};

/// Completes when everything that was finished has been acknowledged, or the connection is over.
#[derive(Debug)]
pub struct Drain(pub(super) Arc<Finished>);

/// The streams of a connection that were finished and may not have arrived.
#[derive(Debug, Default)]
pub(super) struct Finished {
    streams: Mutex<Streams>,
    /// Of all that drain: a future of noq's knows only one.
    hub: Arc<Hub>,
}

#[derive(Debug, Default)]
struct Streams {
    waiting: Vec<(StreamId, Pin<Box<Stopped>>)>,
    purge_at: usize,
}

#[derive(Debug, Default)]
struct Hub(Mutex<Vec<Waker>>);

impl Finished {
    /// Remembers a stream that was just finished.
    pub(super) fn add(&self, id: StreamId, stopped: Stopped) {
        let waker = Waker::from(Arc::clone(&self.hub));
        let mut streams = self.lock();
        if streams.waiting.len() >= streams.purge_at.max(PURGE_MIN) {
            let cx = &mut Context::from_waker(&waker);
            streams.waiting.retain_mut(|(_, stopped)| stopped.as_mut().poll(cx).is_pending());
            streams.purge_at = 2 * streams.waiting.len();
        }
        streams.waiting.push((id, Box::pin(stopped)));
    }

    /// Forgets one that was reset after all: noq does not tell when that has arrived.
    pub(super) fn remove(&self, id: StreamId) {
        self.lock().waiting.retain(|(known, _)| *known != id);
        Arc::clone(&self.hub).wake();
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.hub.join(cx.waker());
        let waker = Waker::from(Arc::clone(&self.hub));
        let cx = &mut Context::from_waker(&waker);
        let mut streams = self.lock();
        while let Some((_, last)) = streams.waiting.last_mut() {
            std::task::ready!(last.as_mut().poll(cx)).ok();
            streams.waiting.pop();
        }
        Poll::Ready(())
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    fn join(&self, waker: &Waker) {
        let mut wakers = self.lock();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Hub {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut *self.lock());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Future for Drain {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}

/// Streams below which it is not worth looking which have arrived.
const PURGE_MIN: usize = 64;
