//! The share of packets lost, in windows long enough to tell a link's own loss from somebody who drops on purpose.
//!
//! Somebody who drops what exceeds a rate lets packets through in between; a radio that is gone for a moment does not.
//! So of each run of losses only the first few count. A window ends after a round trip and [`MIN_PACKETS`], whichever
//! is later. Invariant: a window is told once.

use std::time::Duration;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossWindow {
    acked: u64,
    bytes: u64,
    lost: u64,
    began: Duration,
    /// The number of the last packet lost, and how many before it were lost in one run with it.
    run: Option<(u64, u64)>,
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

    /// The packet with this number was lost.
    pub(crate) fn on_lost(&mut self, number: u64) {
        let before = self.run.filter(|(last, _)| last + 1 == number).map_or(0, |(_, before)| before + 1);
        self.run = Some((number, before));
        self.lost += u64::from(before < RUN);
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
        *self = Self { began: now, run: self.run, ..Self::default() };
        Some(Passed { lost, rate })
    }
}

/// Losses of a run that count: a policer drops so many in a row of a burst at five times its rate.
const RUN: u64 = 4;

/// With a link's loss of 5 % and this many packets, 12 % are three standard deviations away.
const MIN_PACKETS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_window_needs_packets_and_a_round_trip() {
        let mut window = LossWindow::default();
        window.on_acked(99, 99_000);
        assert_eq!(window.poll(MS * 500, MS * 40), None);
        window.on_lost(7);
        assert_eq!(window.poll(MS * 30, MS * 40), None);
        let passed = window.poll(MS * 500, MS * 40).unwrap();
        assert_eq!((passed.lost, passed.rate), (0.01, 198_000));
        assert_eq!(window.poll(MS * 900, MS * 40), None, "told once");
    }

    #[test]
    fn every_other_packet_counts_a_gap_hardly() {
        let mut dropper = LossWindow::default();
        let mut gap = LossWindow::default();
        for number in 0..60 {
            dropper.on_lost(number * 2);
            gap.on_lost(number);
        }
        dropper.on_acked(60, 60_000);
        gap.on_acked(116, 116_000);
        assert_eq!(dropper.poll(MS * 100, MS * 40).unwrap().lost, 0.5);
        assert_eq!(gap.poll(MS * 100, MS * 40).unwrap().lost, 4.0 / 120.0);
    }
}
