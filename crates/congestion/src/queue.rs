//! The delay that is not the way's own: how long packets wait at the bottleneck.
//!
//! Single round-trip times are late for many reasons; what stands is their minimum over half a round trip. Invariant:
//! the standing time is at most the latest.

use std::time::Duration;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttFilter {
    latest: Duration,
    smoothed: Duration,
    /// Minima of the running quarter of a round trip and of the one before.
    quarters: [Duration; 2],
    quarter_began: Duration,
    round_min: Duration,
    round_before: Option<Duration>,
    round_began: Duration,
    noise: Duration,
}

impl RttFilter {
    /// Takes a round-trip time.
    pub(crate) fn on_sample(&mut self, now: Duration, rtt: Duration) {
        if self.smoothed.is_zero() {
            self.smoothed = rtt;
            self.quarters = [rtt; 2];
            self.round_min = rtt;
        }
        self.latest = rtt;
        self.smoothed = (self.smoothed * 7 + rtt) / 8;
        if now.saturating_sub(self.quarter_began) >= self.smoothed / 4 {
            self.quarters = [rtt, self.quarters[0]];
            self.quarter_began = now;
        }
        self.quarters[0] = self.quarters[0].min(rtt);
        self.round_min = self.round_min.min(rtt);
        if now.saturating_sub(self.round_began) >= self.smoothed {
            self.end_round(now, rtt);
        }
    }

    /// The last round-trip time.
    pub(crate) fn latest(&self) -> Duration {
        self.latest
    }

    /// The mean, over eight samples or so.
    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The least of the last half of a round trip.
    pub(crate) fn standing(&self) -> Duration {
        self.quarters[0].min(self.quarters[1])
    }

    /// How far the least time of one round is from that of the next: the jitter that the minimum does not remove.
    pub(crate) fn noise(&self) -> Duration {
        self.noise
    }

    fn end_round(&mut self, now: Duration, rtt: Duration) {
        if let Some(before) = self.round_before {
            // One jump is a queue or another way; jitter goes on. So a jump counts for little more than what is known.
            let step = self.round_min.abs_diff(before).min(self.noise * 2 + NOISE_STEP);
            self.noise = (self.noise * 7 + step) / 8;
        }
        self.round_before = Some(self.round_min);
        self.round_min = rtt;
        self.round_began = now;
    }
}

/// What one round may add to the noise.
const NOISE_STEP: Duration = Duration::from_millis(4);
