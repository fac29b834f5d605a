//! A way into a running loop from another thread: ask it to end, read its counters.
//!
//! Invariant: asking never waits for the loop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::LinkState;

use super::stats::Counters;
use crate::error::Error;

/// Shared by the loop and whoever watches it.
#[derive(Debug, Clone)]
pub(crate) struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wake: OwnedFd,
    stop: AtomicBool,
    published: Mutex<(Counters, LinkState)>,
}

impl Handle {
    /// A handle for one loop.
    pub(crate) fn new() -> Result<Self, Error> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { doing: "eventfd", source: error.into() })?;
        Ok(Self(Arc::new(Shared { wake, stop: AtomicBool::new(false), published: Mutex::default() })))
    }

    /// Asks the loop to end the session in its own order.
    pub(crate) fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }

    /// What the loop last told.
    pub(crate) fn counters(&self) -> (Counters, LinkState) {
        *self.0.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the loop was asked to end; stops being readable.
    pub(super) fn stop_asked(&self) -> bool {
        let _ = rustix::io::read(&self.0.wake, &mut [0u8; 8]);
        self.0.stop.load(Ordering::SeqCst)
    }

    pub(super) fn publish(&self, counters: Counters, link: LinkState) {
        *self.0.published.lock().unwrap_or_else(PoisonError::into_inner) = (counters, link);
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}
