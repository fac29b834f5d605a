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
    /// The minima of the last two rounds.
    rounds: [Option<Duration>; 2],
    round_began: Duration,
    noise: Duration,
    jitter: Jitter,
}

/// How far single samples are from the middle of their neighbours.
#[derive(Clone, Debug, Default)]
struct Jitter {
    mean: Duration,
    /// The last two samples, the latest first.
    last: [Duration; 2],
}

impl RttFilter {
    /// Takes a round-trip time. That of a `lone` packet may have waited for a second one, to be acknowledged with it.
    pub(crate) fn on_sample(&mut self, now: Duration, rtt: Duration, lone: bool) {
        if self.smoothed.is_zero() {
            self.smoothed = rtt;
            self.quarters = [rtt; 2];
            self.round_min = rtt;
            self.jitter.last = [rtt; 2];
        }
        if !lone {
            self.jitter.on_sample(rtt);
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

    /// How far a time is from the middle of its neighbours, in the mean, beyond what packets sent in bursts make of it.
    pub(crate) fn jitter(&self) -> Duration {
        self.jitter.mean.saturating_sub(BURSTS)
    }

    /// The window changes by much: what the next round differs by is no noise.
    pub(crate) fn skip_round(&mut self) {
        self.rounds = [None; 2];
        self.round_min = Duration::MAX;
    }

    fn end_round(&mut self, now: Duration, rtt: Duration) {
        if let [Some(last), Some(before)] = self.rounds {
            // A queue that grows or shrinks evenly is no noise: how far is the middle one off the line?
            let step = ((self.round_min + before) / 2).abs_diff(last);
            // One jump is a queue or another way; jitter goes on. So a jump counts for little more than what is known.
            self.noise = (self.noise * 7 + step.min(self.noise * 2 + NOISE_STEP)) / 8;
        }
        self.rounds = [Some(self.round_min), self.rounds[0]];
        self.round_min = rtt;
        self.round_began = now;
    }
}

impl Jitter {
    fn on_sample(&mut self, rtt: Duration) {
        let [middle, before] = self.last;
        // A queue that grows or shrinks evenly is no jitter.
        let off = ((rtt + before) / 2).abs_diff(middle);
        self.mean = (self.mean * 15 + off.min(JITTER_MAX)) / 16;
        self.last = [rtt, middle];
    }
}

/// What one round may add to the noise.
const NOISE_STEP: Duration = Duration::from_millis(4);

/// Within a burst the queue grows, between two it falls.
const BURSTS: Duration = Duration::from_micros(300);

/// More is an outage.
const JITTER_MAX: Duration = Duration::from_millis(40);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A sample every millisecond.
    fn feed(filter: &mut RttFilter, times: impl IntoIterator<Item = Duration>, start: Duration) {
        for (number, rtt) in (0..).zip(times) {
            filter.on_sample(start + MS * number, rtt, false);
        }
    }

    #[test]
    fn single_late_ones_do_not_stand() {
        let mut filter = RttFilter::default();
        feed(&mut filter, (0..200).map(|n| MS * if n % 4 == 0 { 40 } else { 55 }), MS);
        assert_eq!(filter.standing(), MS * 40);
        feed(&mut filter, (0..40).map(|_| MS * 60), MS * 300);
        assert_eq!(filter.standing(), MS * 60, "half a round trip later they do");
    }

    #[test]
    fn a_ramp_is_no_noise_and_a_jump_is_little() {
        let mut filter = RttFilter::default();
        feed(&mut filter, (0..1000).map(|n| MS * 40 + MS * n / 20), MS);
        assert!(filter.noise() < MS, "{:?}", filter.noise());
        let before = filter.noise();
        feed(&mut filter, (0..1000).map(|_| MS * 200), MS * 1001);
        assert!(filter.noise() < before + MS, "{:?}", filter.noise());
    }

    #[test]
    fn jitter_is_noise() {
        let mut filter = RttFilter::default();
        feed(&mut filter, (0u32..4000).map(|n| MS * (40 + n / 150 % 2 * 20)), MS);
        assert!(filter.noise() > MS * 3, "{:?}", filter.noise());
    }

    #[test]
    fn our_own_queue_is_no_jitter_and_late_packets_are() {
        let mut filter = RttFilter::default();
        // A queue of up to 30 ms that grows and shrinks.
        feed(&mut filter, (0u32..4000).map(|n| MS * 60 + MS * (n % 300).min(300 - n % 300) / 5), MS);
        assert!(filter.jitter() < MS / 10, "{:?}", filter.jitter());
        feed(&mut filter, (0u32..4000).map(|n| MS * 60 + MS * (n * 7 % 5)), MS * 4001);
        assert!(filter.jitter() > MS && filter.jitter() < MS * 3, "{:?}", filter.jitter());
    }

    /// Where a packet takes longer than an acknowledgement waits for a second one, bulk is acknowledged late, packet by
    /// packet, until something small comes right behind it.
    #[test]
    fn regression_an_acknowledgement_that_waits_is_no_jitter() {
        let mut filter = RttFilter::default();
        for number in 0..1000 {
            let lone = number % 3 != 0;
            filter.on_sample(MS * 10 * number, MS * if lone { 65 } else { 60 }, lone);
        }
        assert_eq!(filter.jitter(), Duration::ZERO);
    }
}
