//! The share of packets lost, in windows long enough to tell a link's own loss from somebody who drops on purpose.
//!
//! A window ends after a round trip and [`MIN_PACKETS`], whichever is later. Invariant: a window is told once.

use std::time::Duration;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossWindow {
    acked: u64,
    bytes: u64,
    lost: u64,
    began: Duration,
}

/// What a window has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passed {
    /// Share of packets lost.
    pub(crate) lost: f64,
    /// Bytes per second that arrived.
    pub(crate) rate: u64,
}

impl LossWindow {
    /// Packets were acknowledged.
    pub(crate) fn on_acked(&mut self, packets: u64, bytes: u64) {
        self.acked += packets;
        self.bytes += bytes;
    }

    /// A packet was lost.
    pub(crate) fn on_lost(&mut self) {
        self.lost += 1;
    }

    /// What was seen, when a window is over.
    pub(crate) fn poll(&mut self, now: Duration, rtt: Duration) -> Option<Passed> {
        let packets = self.acked + self.lost;
        let span = now.saturating_sub(self.began);
        if packets < MIN_PACKETS || span < rtt || span.is_zero() {
            return None;
        }
        let rate = (self.bytes as f64 / span.as_secs_f64()) as u64;
        let lost = self.lost as f64 / packets as f64;
        *self = Self { began: now, ..Self::default() };
        Some(Passed { lost, rate })
    }
}

/// With a link's loss of 5 % and this many packets, 12 % are three standard deviations away.
const MIN_PACKETS: u64 = 100;
