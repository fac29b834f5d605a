//! The run loops of the two sides: one thread each, sitting in poll(2).
//!
//! A run loop moves bytes between sans-IO cores and descriptors and does nothing else: the session, both Wayland
//! halves and the carriers decide everything. Order of work in each turn: arrivals of the link, events of the session,
//! sockets that have something, content as far as the link has room, the session's transmits, then writes. So a key
//! that arrives is written to its program before any pixel is looked at. Invariant: the work of one turn is bounded per
//! descriptor, so that nobody can starve the others.

pub(crate) mod app_side;
mod backlog;
pub(crate) mod context;
mod descriptors;
pub(crate) mod display_side;
mod error;
mod handle;
pub(crate) mod link;
pub(crate) mod offer;
pub(crate) mod outlets;
pub(crate) mod part;
pub(crate) mod peer;
pub(crate) mod pipes;
pub(crate) mod programs;
mod recorder;
mod remaining;
pub(crate) mod returning;
mod served;
pub(crate) mod signals;
pub(crate) mod socket;
pub(crate) mod stats;
pub(crate) mod tap;
pub(crate) mod wait;
pub(crate) mod xwayland;

use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;
use rustix::time::ClockId;
use wayferry_proto::{HostTime, Time};

pub(crate) use error::Error;
pub(crate) use handle::Handle;

/// The run loop's own clock and its place on the host's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    origin: HostTime,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start() -> Self {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let seconds = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
        let origin = HostTime::new(seconds + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0)));
        Self { start: Instant::now(), origin }
    }

    /// How long it has been running.
    pub(crate) fn now(&self) -> Time {
        Time::new(self.start.elapsed())
    }

    /// What the host's monotonic clock shows.
    pub(crate) fn host_now(&self) -> Duration {
        Duration::from_nanos(self.origin.0) + self.start.elapsed()
    }

    /// What the host's monotonic clock showed at the start.
    pub(crate) fn origin(&self) -> HostTime {
        self.origin
    }
}

/// Waits for the descriptors; an interruption counts as a wake-up for nothing.
pub(crate) fn poll(set: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<(), Error> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match rustix::event::poll(set, timeout.as_ref()) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            set.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(Error::System { doing: "poll", source: error.into() }),
    }
}

/// The earlier of two deadlines.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Programs of a session at once, on either side. On the app side more wait in the socket's queue; a host that shows more is
/// refused them.
pub(crate) const MAX_PROGRAMS: usize = 100;
