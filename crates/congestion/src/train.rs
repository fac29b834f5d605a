//! Ack trains: packets that were sent in one go, and what their acknowledgements tell of the bottleneck.
//!
//! A bottleneck spaces the packets of a train; their acknowledgements come at its rate, unless they were sent slower.
//! Taking the longer of both spans keeps compressed acknowledgements from looking like a fast link. Invariant: a sample
//! is never above what was sent nor above what was acknowledged in its span.

use std::time::Duration;

use crate::ack::Batch;

/// A train whose acknowledgements are coming in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    first_sent: Duration,
    first_acked: Duration,
    last_sent: Duration,
    last_acked: Duration,
    /// Behind the first batch, which only marks the beginning.
    bytes: u64,
    packets: u64,
}

/// What a train tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Bytes per second.
    pub(crate) rate: u64,
    /// Who set it.
    pub(crate) limit: Limit,
}

/// Who set the rate of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The sender: the link may be faster.
    Sender,
    /// The link: the packets arrived further apart than they were sent.
    Link,
}

impl Train {
    /// Begins with this batch.
    pub(crate) fn new(now: Duration, batch: Batch) -> Self {
        Self {
            first_sent: batch.newest,
            first_acked: now,
            last_sent: batch.newest,
            last_acked: now,
            bytes: 0,
            packets: 0,
        }
    }

    /// Whether the batch belongs to this train.
    pub(crate) fn continues(&self, now: Duration, batch: Batch, rtt: Duration) -> bool {
        let silence = now.saturating_sub(self.last_acked);
        batch.oldest.saturating_sub(self.last_sent) <= SEND_GAP && silence <= (rtt / 2).max(ACK_GAP)
    }

    /// Adds a batch.
    pub(crate) fn extend(&mut self, now: Duration, batch: Batch) {
        self.last_sent = self.last_sent.max(batch.newest);
        self.last_acked = now;
        self.bytes += batch.bytes;
        self.packets += batch.packets;
    }

    /// How long its acknowledgements have been coming.
    pub(crate) fn span(&self) -> Duration {
        self.last_acked - self.first_acked
    }

    /// When its last acknowledgement came.
    pub(crate) fn last_acked(&self) -> Duration {
        self.last_acked
    }

    /// What it tells so far; `None` while it is too short.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let (acked, sent) = (self.span(), self.last_sent - self.first_sent);
        let span = acked.max(sent);
        if self.packets < MIN_PACKETS || span.is_zero() {
            return None;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / span.as_nanos();
        let limit = if acked > sent + sent / 5 + SLACK { Limit::Link } else { Limit::Sender };
        Some(Sample { rate: u64::try_from(rate).unwrap_or(u64::MAX), limit })
    }
}

/// A pause in sending that ends a train: longer than the pacer's bursts are apart (10 ms).
const SEND_GAP: Duration = Duration::from_millis(12);

/// A pause in acknowledgements that ends a train: longer than a receiver may hold one back (25 ms by default).
const ACK_GAP: Duration = Duration::from_millis(30);

/// Packets behind the first batch. With fewer, the spacing of single acknowledgements (every second packet) decides.
const MIN_PACKETS: u64 = 8;

/// What acknowledgements may be spread by their own delays.
const SLACK: Duration = Duration::from_micros(2500);
