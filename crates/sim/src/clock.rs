//! Virtual time for a library that wants `std::time::Instant`.
//!
//! One instant is taken when a world is made; from then on the clock moves only when it is told to. Nothing may read
//! what an instant is, only how far two are apart, so a run does not depend on when it takes place.

use std::time::{Duration, Instant};

use wayferry_proto::Time;

/// Maps virtual times to instants and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        // Some room before it: a controller may subtract from the time of its beginning.
        Self { zero: Instant::now() + ROOM }
    }

    pub(crate) fn instant(&self, time: Time) -> Instant {
        self.zero + time.since_start()
    }

    /// [`Time::ZERO`] for instants before it.
    pub(crate) fn time(&self, instant: Instant) -> Time {
        Time::new(instant.saturating_duration_since(self.zero))
    }

    /// Calls what was `time` zero from now on.
    pub(crate) fn restart(&mut self, time: Time) {
        self.zero = self.instant(time);
    }
}

const ROOM: Duration = Duration::from_secs(24 * 3600);
