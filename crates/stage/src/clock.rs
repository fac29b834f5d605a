//! The one clock of the stage: `CLOCK_MONOTONIC`, which every process of a machine shares.
//!
//! Compositor, clients and benches compare their time stamps directly, so all of them read this.

use std::time::Duration;

use rustix::event::Timespec;
use rustix::time::{ClockId, clock_gettime};

/// Time since the machine's start, as Wayland input and presentation time stamps have it.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The time in milliseconds as a Wayland event carries it.
pub(crate) fn wayland_millis(time: Duration) -> u32 {
    time.as_millis() as u32
}

/// A time-out for poll(2).
pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}
