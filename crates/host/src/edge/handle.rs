//! A way into a running loop from another thread: ask it to end, read its counters.
//!
//! Invariant: asking never waits for the loop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::{LinkState, Time};

use super::part::{Hub, Part};
use super::turns::{Took, Turns};
use super::wait::Interests;
use crate::error::Error;
use crate::stats::Counters;

/// Shared by the loop and the threads that watch it.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    wake: OwnedFd,
    stop: AtomicBool,
    published: Mutex<Published>,
}

/// What the loop has published.
#[derive(Debug, Default)]
struct Published {
    counters: Counters,
    link: LinkState,
    /// Time that each turn with new content took, from the program's request to the session.
    turns: Vec<Duration>,
    /// How long all turns took, and how much of that they had a processor.
    all_turns: Turns,
    at_work: Turns,
    /// When the newest program connected, on the host's monotonic clock.
    accepted: Option<Duration>,
}

impl Handle {
    /// A handle for one loop.
    pub fn new() -> Result<Self, Error> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::System { doing: "eventfd", source: error.into() })?;
        Ok(Self(Arc::new(Shared { wake, stop: AtomicBool::new(false), published: Mutex::default() })))
    }

    /// Asks the loop to end the session in an orderly way.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::SeqCst);
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }

    /// The counters that the loop published last.
    pub fn counters(&self) -> (Counters, LinkState) {
        let published = self.published();
        (published.counters, published.link)
    }

    /// How long commits took from being read until they had left, workers' part included, since this was last asked.
    pub fn take_turns(&self) -> Vec<Duration> {
        std::mem::take(&mut self.published().turns)
    }

    /// How long all turns took.
    pub fn all_turns(&self) -> Turns {
        self.published().all_turns.clone()
    }

    /// How much of that they had a processor: the rest of it other threads had, or other programs.
    pub fn turns_at_work(&self) -> Turns {
        self.published().at_work.clone()
    }

    /// When the newest program connected, on the host's monotonic clock.
    pub fn accepted(&self) -> Option<Duration> {
        self.published().accepted
    }

    /// Whether the loop was asked to end. Clears the wake-up.
    pub(crate) fn stop_asked(&self) -> bool {
        let _ = rustix::io::read(&self.0.wake, &mut [0u8; 8]);
        self.0.stop.load(Ordering::SeqCst)
    }

    pub(crate) fn publish(&self, counters: Counters, link: LinkState) {
        let mut published = self.published();
        (published.counters, published.link) = (counters, link);
    }

    pub(crate) fn publish_turn(&self, took: Duration) {
        let mut published = self.published();
        if published.turns.len() < MAX_TURNS {
            published.turns.push(took);
        }
    }

    pub(crate) fn publish_any_turn(&self, took: Took) {
        let mut published = self.published();
        published.all_turns.add(took.time);
        published.at_work.add(took.processor);
    }

    pub(crate) fn publish_accepted(&self, at: Duration) {
        self.published().accepted = Some(at);
    }

    fn published(&self) -> MutexGuard<'_, Published> {
        self.0.published.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part for Handle {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(self);
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

/// Turns kept until a caller takes them: two minutes at 60 Hz.
const MAX_TURNS: usize = 8192;
