//! The window beside a flow that fills the queue: CUBIC's law (RFC 9438 §4.2, §4.3), so that the shares come out even.
//!
//! Only losses while the queue is near its longest count, so that a lossy link does not make it yield. Invariant: one
//! step back for each round trip.

use std::time::Duration;

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
}

impl Compete {
    /// Begins as if it had just stepped back from `peak`.
    pub(crate) fn new(now: Duration, peak: f64, queue: Duration) -> Self {
        Self { bytes: peak * BETA, peak, friendly: peak * BETA, epoch: now, longest: queue }
    }

    /// Bytes that may be on their way.
    pub(crate) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// `acked` bytes were acknowledged while a queue of this length stood.
    pub(crate) fn on_ack(&mut self, now: Duration, acked: u64, mtu: u64, rtt: Duration, queue: Duration) {
        self.longest = self.longest.max(queue);
        let (acked, mtu) = (acked as f64, mtu as f64);
        let depth = ((self.peak / mtu) * (1.0 - BETA) / C).cbrt();
        let time = (now.saturating_sub(self.epoch) + rtt).as_secs_f64() - depth;
        let cubic = self.peak + C * time * time * time * mtu;
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
        self.bytes = (self.bytes * BETA).max(4.0 * mtu as f64);
        self.friendly = self.bytes;
        self.epoch = now;
    }
}

// RFC 9438 §4.6
const BETA: f64 = 0.7;

// RFC 9438 §5
const C: f64 = 0.4;

// RFC 9438 §4.3
const FRIENDLY: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
