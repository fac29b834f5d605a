//! How fast packets leave within the window.
//!
//! Two times the bottleneck's rate as long as it is unknown how much faster the link is, else a little more than the
//! window asks for, and never below the rate: an update leaves an idle sender at the link's speed. Invariant: never
//! zero.

use std::time::Duration;

use crate::train::Limit;

/// What the pace depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes that may be on their way.
    pub(crate) window: f64,
    /// The mean round-trip time.
    pub(crate) rtt: Duration,
    /// The bottleneck's rate in bytes per second.
    pub(crate) rate: Option<u64>,
    /// Who set the last train's.
    pub(crate) limit: Option<Limit>,
    /// Whether a faster link is looked for.
    pub(crate) probing: bool,
}

impl Pace {
    /// Bytes per second.
    pub(crate) fn rate(&self) -> u64 {
        let window = self.window / self.rtt.as_secs_f64().max(1e-4);
        let rate = self.rate.unwrap_or(0) as f64;
        let pace = if self.probing && self.limit != Some(Limit::Link) {
            PROBE * window.max(rate)
        } else {
            (STEADY * window).max(AT_LEAST * rate)
        };
        (pace as u64).max(1)
    }
}

/// Finds a link of a hundred times the rate in seven trains, and queues at most half a train.
const PROBE: f64 = 2.0;

/// Lets the window decide, and fills it in less than a round trip.
const STEADY: f64 = 1.25;

/// The rate is measured in what was acknowledged, a little less than what passed.
const AT_LEAST: f64 = 1.02;

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        window: 50_000.0,
        rtt: Duration::from_millis(50),
        rate: Some(2_000_000),
        limit: Some(Limit::Sender),
        probing: true,
    };

    #[test]
    fn an_unknown_link_is_probed_at_twice_what_is_known() {
        assert_eq!(PACE.rate(), 4_000_000);
        assert_eq!(Pace { rate: None, limit: None, ..PACE }.rate(), 2_000_000);
    }

    #[test]
    fn a_known_one_is_filled_and_hardly_more() {
        let known = Pace { limit: Some(Limit::Link), ..PACE };
        assert_eq!(known.rate(), 2_040_000);
        assert_eq!(Pace { window: 100_000.0, ..known }.rate(), 2_500_000);
        assert_eq!(Pace { probing: false, ..PACE }.rate(), 2_040_000);
    }

    #[test]
    fn it_is_never_zero() {
        assert_eq!(Pace { window: 0.0, rtt: Duration::ZERO, rate: None, ..PACE }.rate(), 1);
    }
}
