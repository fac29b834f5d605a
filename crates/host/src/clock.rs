//! The run loop's clock.

use std::time::{Duration, Instant};

use rustix::time::ClockId;
use wayferry_proto::{HostTime, Time};

/// The run loop's own clock and its place on the host's.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    origin: HostTime,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let seconds = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
        let origin = HostTime::new(seconds + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0)));
        Self { start: Instant::now(), origin }
    }

    /// How long it has been running.
    pub fn now(&self) -> Time {
        Time::new(self.start.elapsed())
    }

    /// What the host's monotonic clock shows.
    pub fn host_now(&self) -> Duration {
        Duration::from_nanos(self.origin.0) + self.start.elapsed()
    }

    /// What the host's monotonic clock showed at the start.
    pub fn origin(&self) -> HostTime {
        self.origin
    }
}

/// How long this machine was suspended since it started, which [`Clock`] does not count.
pub fn asleep() -> Duration {
    let read = |clock| {
        let now = rustix::time::clock_gettime(clock);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
    };
    // In this order it is never too much, however late the second is read.
    let all = read(ClockId::Boottime);
    all.saturating_sub(read(ClockId::Monotonic))
}

/// The earlier of two deadlines.
pub fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
