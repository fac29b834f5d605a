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
    /// A last batch of one packet, which does not count yet.
    lone: Option<Batch>,
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
            lone: None,
        }
    }

    /// Whether the batch belongs to this train.
    pub(crate) fn continues(&self, now: Duration, batch: Batch, rtt: Duration) -> bool {
        let silence = now.saturating_sub(self.last_acked);
        batch.oldest.saturating_sub(self.last_sent) <= SEND_GAP && silence <= (rtt / 2).max(ACK_GAP)
    }

    /// Adds a batch. A single packet counts with the next one: alone at the end its acknowledgement was held back.
    pub(crate) fn extend(&mut self, now: Duration, batch: Batch) {
        let lone = self.lone.take();
        if batch.packets == 1 && lone.is_none() {
            self.lone = Some(batch);
            return;
        }
        self.last_acked = now;
        for batch in lone.into_iter().chain([batch]) {
            self.last_sent = self.last_sent.max(batch.newest);
            self.bytes += batch.bytes;
            self.packets += batch.packets;
        }
    }

    /// How long its acknowledgements have been coming.
    pub(crate) fn span(&self) -> Duration {
        self.last_acked - self.first_acked
    }

    /// What it tells so far; `None` while it is shorter than `least`.
    pub(crate) fn sample(&self, least: Duration) -> Option<Sample> {
        let (acked, sent) = (self.span(), self.last_sent - self.first_sent);
        let span = acked.max(sent);
        if self.packets < MIN_PACKETS || span.is_zero() || span < least {
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

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1000;

    /// Pairs of packets, sent and acknowledged this far apart.
    fn pairs(sent: Duration, acked: Duration, count: u32) -> Train {
        let at = |number: u32| (Duration::from_millis(100) + acked * number, pair(sent * number));
        let mut train = Train::new(at(0).0, at(0).1);
        for number in 1..=count {
            train.extend(at(number).0, at(number).1);
        }
        train
    }

    fn pair(sent: Duration) -> Batch {
        Batch { oldest: sent, newest: sent, bytes: 2 * PACKET, packets: 2 }
    }

    #[test]
    fn the_link_spaces_what_was_sent_at_once() {
        let sample = pairs(Duration::ZERO, Duration::from_millis(2), 10).sample(Duration::ZERO).unwrap();
        assert_eq!(sample, Sample { rate: 1_000_000, limit: Limit::Link });
    }

    #[test]
    fn compressed_acknowledgements_do_not_look_fast() {
        let train = pairs(Duration::from_millis(2), Duration::from_micros(10), 10);
        assert_eq!(train.sample(Duration::ZERO), Some(Sample { rate: 1_000_000, limit: Limit::Sender }));
    }

    #[test]
    fn short_trains_tell_nothing() {
        let apart = Duration::from_millis(2);
        assert_eq!(pairs(apart, apart, 3).sample(Duration::ZERO), None);
        assert!(pairs(apart, apart, 10).sample(apart * 10).is_some());
        assert_eq!(pairs(apart, apart, 10).sample(apart * 11), None);
    }

    #[test]
    fn a_held_back_last_acknowledgement_does_not_count() {
        let apart = Duration::from_millis(1);
        let mut train = pairs(apart, apart, 10);
        let before = train.sample(Duration::ZERO);
        let last = Batch::new(apart * 11, PACKET);
        train.extend(train.last_acked + Duration::from_millis(6), last);
        assert_eq!(train.sample(Duration::ZERO), before);
        train.extend(train.last_acked + apart * 2, pair(apart * 12));
        assert_eq!(train.packets, 23);
    }

    #[test]
    fn a_pause_ends_a_train() {
        let apart = Duration::from_millis(1);
        let train = pairs(apart, apart, 4);
        let next =
            |sent, acked| train.continues(train.last_acked + acked, pair(train.last_sent + sent), apart * 40);
        assert!(next(apart * 12, apart * 30));
        assert!(!next(apart * 13, apart));
        assert!(!next(apart, apart * 31));
    }
}
