//! The offset between the two hosts' monotonic clocks.
//!
//! Pings carry the sender's clock, pongs the answerer's. The sample with the least round trip of the last minute has
//! the least doubt: the true offset is within half its round trip. Nothing here sends or waits. Invariant: mapping
//! there and back gives the same time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::HostTime;

/// How many samples are remembered; at one a second, clocks that drift by 50 ppm move 3 ms apart meanwhile.
const MAX_SAMPLES: usize = 60;

/// Maps times of the peer's host to this host's, and back.
#[derive(Clone, Debug, Default)]
pub struct ClockMap {
    /// Peer's clock minus ours, in nanoseconds.
    offset: i64,
    rtt: Option<Duration>,
    samples: VecDeque<Sample>,
    /// A clock may have stood still since: the next sample replaces all.
    stale: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    rtt: Duration,
    offset: i64,
}

impl ClockMap {
    /// A first guess from the peer's hello, wrong by the time that it travelled.
    pub(crate) fn guess(&mut self, ours: HostTime, peer: HostTime) {
        if self.samples.is_empty() {
            self.offset = difference(peer, ours);
        }
    }

    /// A pong: the ping left at `sent`, the peer answered at `peer` by its own clock, and now it is `ours`.
    pub(crate) fn sample(&mut self, sent: HostTime, peer: HostTime, ours: HostTime) {
        let rtt = Duration::from_nanos(ours.0.saturating_sub(sent.0));
        if std::mem::take(&mut self.stale) {
            self.samples.clear();
        }
        let middle = HostTime(sent.0 + ours.0.saturating_sub(sent.0) / 2);
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { rtt, offset: difference(peer, middle) });
        self.rtt = Some(rtt);
        // The newest of equals: the other clock may have drifted since the older one.
        if let Some(best) = self.samples.iter().rev().min_by_key(|sample| sample.rtt) {
            self.offset = best.offset;
        }
    }

    /// What is known holds until the next sample, for want of better: the hosts have not heard of each other for a
    /// while.
    pub(crate) fn renew(&mut self) {
        self.stale = true;
    }

    /// Round trip of the newest ping, through everything; `None` before the first pong.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The peer's clock minus ours in nanoseconds.
    pub fn offset_nanos(&self) -> i64 {
        self.offset
    }

    /// The offset can be wrong by this much; `None` before the first pong, when it is a guess.
    pub fn uncertainty(&self) -> Option<Duration> {
        self.samples.iter().map(|sample| sample.rtt / 2).min()
    }

    /// A time of the peer's host in nanoseconds, by our clock.
    pub fn ours_from_nanos(&self, peer: u64) -> u64 {
        peer.wrapping_sub(self.offset as u64)
    }

    /// A time of the peer's host in milliseconds that wrap at 2³², as Wayland's events carry it, by our clock.
    pub fn ours_from_millis(&self, peer: u32) -> u32 {
        peer.wrapping_sub(self.offset_millis())
    }

    fn offset_millis(&self) -> u32 {
        self.offset.div_euclid(1_000_000) as u32
    }
}

fn difference(a: HostTime, b: HostTime) -> i64 {
    a.0.wrapping_sub(b.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_least_round_trip_decides() {
        let mut clock = ClockMap::default();
        // Our clock shows 1000 ms when the peer's shows 51 000 ms.
        clock.guess(HostTime(1_040 * MS), HostTime(51_000 * MS));
        assert_eq!(clock.ours_from_millis(51_000), 1_040);
        assert_eq!(clock.uncertainty(), None);
        // 40 ms each way, then 40 there and 160 back, then 41 each way.
        clock.sample(HostTime(2_000 * MS), HostTime(52_040 * MS), HostTime(2_080 * MS));
        clock.sample(HostTime(3_000 * MS), HostTime(53_040 * MS), HostTime(3_200 * MS));
        clock.sample(HostTime(4_000 * MS), HostTime(54_041 * MS), HostTime(4_082 * MS));
        assert_eq!(clock.ours_from_nanos(60_000 * MS), 10_000 * MS);
        assert_eq!(clock.uncertainty(), Some(Duration::from_millis(40)));
        assert_eq!(clock.rtt(), Some(Duration::from_millis(82)));
    }

    #[test]
    fn a_clock_that_stood_still_is_compared_anew() {
        let mut clock = ClockMap::default();
        clock.sample(HostTime(0), HostTime(MS), HostTime(2 * MS));
        clock.renew();
        clock.guess(HostTime(5000 * MS), HostTime(0));
        assert_eq!(clock.offset_nanos(), 0, "better than a guess");
        clock.sample(HostTime(9000 * MS), HostTime(2010 * MS), HostTime(9020 * MS));
        assert_eq!(clock.offset_nanos(), -7000 * MS as i64, "though its round trip is longer");
    }

    #[test]
    fn old_samples_are_forgotten() {
        let mut clock = ClockMap::default();
        clock.sample(HostTime(0), HostTime(MS), HostTime(2 * MS));
        for n in 1..=60 {
            let sent = n * 1000 * MS;
            clock.sample(HostTime(sent), HostTime(sent + 15 * MS), HostTime(sent + 10 * MS));
        }
        assert_eq!(clock.offset_nanos(), 10 * MS as i64);
    }

    #[test]
    fn times_are_mapped_even_when_milliseconds_wrap() {
        let mut clock = ClockMap::default();
        clock.guess(HostTime(500 * MS), HostTime(7 * MS + 300));
        assert_eq!(clock.ours_from_millis(5), 498);
        assert_eq!(clock.ours_from_millis(100_u32.wrapping_sub(493)), 100);
        assert_eq!(clock.ours_from_nanos(1_000 * MS), 1_493 * MS - 300);
    }
}
