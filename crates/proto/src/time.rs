//! The two kinds of time that the session knows.
//!
//! [`Time`] is the time of the run loop: a duration since it started, so that the same code runs in virtual time and
//! where `std::time::Instant` does not exist. [`HostTime`] is what a host's monotonic clock shows; only it crosses the
//! wire, and only [`ClockMap`](crate::ClockMap) compares those of two hosts. Nothing here reads a clock.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: how long ago the run loop started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// The moment at which the run loop started.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// `elapsed` after the start.
    pub const fn new(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(Duration::from_micros(micros))
    }

    /// `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    /// How long after the start this is.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Time {
    type Output = Duration;

    /// As [`Time::since`]: never negative.
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl Sub<Duration> for Time {
    type Output = Self;

    /// Not before [`Time::ZERO`].
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(rhs))
    }
}

/// What a host's monotonic clock shows, in nanoseconds; comparable only with readings of the same host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostTime(pub u64);

impl HostTime {
    /// The reading of a clock that shows `since` its own beginning.
    pub fn new(since: Duration) -> Self {
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for HostTime {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(Self::new(rhs).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_underflow() {
        let (early, late) = (Time::from_millis(3), Time::from_millis(10));
        assert_eq!(late - early, Duration::from_millis(7));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(early - Duration::from_millis(7), Time::ZERO);
        assert_eq!(early + Duration::from_millis(7), late);
        assert_eq!(Time::new(Duration::MAX) + Duration::MAX, Time::new(Duration::MAX));
    }
}
