//! The window beside a flow that fills the queue: CUBIC's law (RFC 9438 §4.2, §4.3), so that the shares come out even.
//!
//! Only losses while the queue is near its longest count, so that a lossy link does not make it yield. Invariant: one
//! step back for each round trip.

use std::time::Duration;

use crate::window::Path;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Compete {
    bytes: f64,
    /// The window before the last step back.
    peak: f64,
    /// What a Reno flow would have.
    friendly: f64,
    epoch: Duration,
    longest: Duration,
    /// Bytes per second of the line, as far as known.
    line: f64,
    /// Whether this sender has less than half of it.
    poor: bool,
}

impl Compete {
    /// Begins as if it had just stepped back from `peak`.
    pub(crate) fn new(now: Duration, peak: f64, queue: Duration, line: f64) -> Self {
        Self { bytes: peak * BETA, peak, friendly: peak * BETA, epoch: now, longest: queue, line, poor: true }
    }

    /// Bytes that may be on their way.
    pub(crate) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Whether to look if anybody is still there, having looked at `last`. Right after a step back is the time: two
    /// senders of this kind step back together, so that they also find out together.
    pub(crate) fn is_due(&self, now: Duration, last: Duration) -> bool {
        let since = now.saturating_sub(last);
        since > CHECK_LATEST
            || (since > CHECK_SOONEST
                && self.epoch > last
                && now.saturating_sub(self.epoch) < CHECK_SOONEST / 4)
    }

    /// `acked` bytes were acknowledged; `limited` says that the window held others back.
    pub(crate) fn on_ack(&mut self, path: &Path, acked: u64, limited: bool) {
        self.longest = self.longest.max(path.queue);
        if !limited {
            return;
        }
        self.line = self.line.max(path.line.unwrap_or(0) as f64);
        let (now, rtt) = (path.now, path.smoothed);
        let (acked, mtu) = (acked as f64, path.mtu as f64);
        self.poor = self.bytes < self.line / 2.0 * rtt.as_secs_f64();
        let c = if self.poor { C * POOR } else { C };
        let depth = cube_root((self.peak / mtu) * (1.0 - BETA) / c);
        let time = (now.saturating_sub(self.epoch) + rtt).as_secs_f64() - depth;
        let cubic = self.peak + c * time * time * time * mtu;
        self.friendly += FRIENDLY * mtu * acked / self.bytes;
        let target = cubic.max(self.friendly).min(self.bytes * 1.5);
        self.bytes += ((target - self.bytes) * acked / self.bytes).clamp(0.0, acked);
    }

    /// Something sent at `sent` was lost while a queue of this length stood.
    pub(crate) fn on_loss(&mut self, now: Duration, sent: Duration, mtu: u64, queue: Duration) {
        if queue * 2 < self.longest || sent <= self.epoch {
            return;
        }
        self.longest = queue;
        self.peak = if self.bytes < self.peak { self.bytes * (1.0 + BETA) / 2.0 } else { self.bytes };
        self.bytes = (self.bytes * if self.poor { POOR_BETA } else { BETA }).max(4.0 * mtu as f64);
        self.friendly = self.bytes;
        self.epoch = now;
    }
}

/// Of a positive number, by Newton's method: libraries' own differ in their last bits from machine to machine.
fn cube_root(of: f64) -> f64 {
    let mut root = of.max(1.0);
    for _ in 0..60 {
        root = (2.0 * root + of / (root * root)) / 3.0;
    }
    root
}

/// A look costs a round trip or two of sending.
const CHECK_SOONEST: Duration = Duration::from_secs(4);

/// Without losses.
const CHECK_LATEST: Duration = Duration::from_secs(12);

// RFC 9438 §4.6
const BETA: f64 = 0.7;

/// What a sender with less than its half keeps, and how much faster it grows: looking for others costs it some, and at
/// the beginning it has little.
const POOR_BETA: f64 = 0.85;
const POOR: f64 = 3.0;

// RFC 9438 §5
const C: f64 = 0.4;

// RFC 9438 §4.3
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1000;

    fn path(now: Duration, queue: Duration, line: u64) -> Path {
        let base = Duration::from_millis(40);
        let smoothed = base + queue;
        let (noise, jitter) = (Duration::ZERO, Duration::ZERO);
        Path { now, mtu: MTU, base, queue, smoothed, noise, jitter, rate: Some(line), line: Some(line) }
    }

    #[test]
    fn cube_roots_are_exact_enough() {
        for of in [1e-3, 0.5, 1.0, 27.0, 1e9] {
            let root = cube_root(of);
            assert!((root * root * root / of - 1.0).abs() < 1e-12, "{of}: {root}");
        }
    }

    #[test]
    fn losses_count_while_the_queue_is_long_and_once_a_round_trip() {
        let ms = Duration::from_millis;
        let mut compete = Compete::new(ms(0), 100_000.0, ms(100), 0.0);
        let before = compete.bytes();
        compete.on_loss(ms(500), ms(400), MTU, ms(20));
        assert_eq!(compete.bytes(), before, "a lossy link");
        compete.on_loss(ms(500), ms(400), MTU, ms(90));
        let after = compete.bytes();
        assert!(after < before);
        compete.on_loss(ms(510), ms(450), MTU, ms(90));
        assert_eq!(compete.bytes(), after, "sent before the step back");
    }

    #[test]
    fn the_window_comes_back_to_its_peak_and_goes_on() {
        let mut compete = Compete::new(Duration::ZERO, 200_000.0, Duration::from_millis(50), 0.0);
        let mut reached = None;
        for step in 1..2000 {
            let now = Duration::from_millis(step * 10);
            compete.on_ack(&path(now, Duration::from_millis(50), 1), 20_000, true);
            if reached.is_none() && compete.bytes() >= 200_000.0 {
                reached = Some(now);
            }
        }
        // RFC 9438 §4.2: K = ∛(200 × 0.3 ÷ 0.4) = 5.3 s, less one round trip ahead.
        let reached = reached.unwrap();
        assert!(reached > Duration::from_secs(4) && reached < Duration::from_secs(6), "{reached:?}");
        assert!(compete.bytes() > 300_000.0);
    }

    #[test]
    fn a_sender_that_lacks_data_does_not_grow() {
        let mut compete = Compete::new(Duration::ZERO, 200_000.0, Duration::from_millis(50), 1e6);
        let before = compete.bytes();
        compete.on_ack(&path(Duration::from_secs(9), Duration::from_millis(50), 1), 20_000, false);
        assert_eq!(compete.bytes(), before);
    }
}
