//! What a poll leaves behind until the next one.
//!
//! noq's futures that wait for a connection (to open, to accept, for datagrams) forget that they were woken when they
//! are dropped. So one that has to wait is kept here, and polled again next time. Invariant: a result that was not
//! handed out is not lost, and what need not wait is not allocated.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

/// Room for one future that waits.
///
/// The lock is never taken: it makes the slot `Sync`, whose only use is through `&mut`.
pub(super) struct Slot<T>(Mutex<Option<Pin<Box<dyn Future<Output = T> + Send>>>>);

impl<T> Slot<T> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Polls the future that waits, or else one that `make` makes, which is kept if it has to wait.
    ///
    /// For that it may be made twice: up to where it first waits, it must not have done anything.
    pub(super) fn poll<F>(&mut self, cx: &mut Context<'_>, make: impl Fn() -> F) -> Poll<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        if let Some(polled) = self.poll_kept(cx) {
            return polled;
        }
        if let Poll::Ready(output) = pin!(make()).poll(cx) {
            return Poll::Ready(output);
        }
        self.keep(cx, make())
    }

    /// As [`Slot::poll`], for what may only be made once.
    pub(super) fn poll_once<F>(&mut self, cx: &mut Context<'_>, make: impl FnOnce() -> F) -> Poll<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        match self.poll_kept(cx) {
            Some(polled) => polled,
            None => self.keep(cx, make()),
        }
    }

    /// Polls the future that waits, if there is one.
    pub(super) fn poll_kept(&mut self, cx: &mut Context<'_>) -> Option<Poll<T>> {
        let slot = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let polled = slot.as_mut()?.as_mut().poll(cx);
        if polled.is_ready() {
            *slot = None;
        }
        Some(polled)
    }

    /// Polls `future`, and keeps it if it has to wait.
    pub(super) fn keep(
        &mut self,
        cx: &mut Context<'_>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Poll<T> {
        let mut future = Box::pin(future);
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(future);
        }
        polled
    }

    /// Gives up what waits.
    pub(super) fn clear(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot")
    }
}
