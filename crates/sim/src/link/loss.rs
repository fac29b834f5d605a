//! The loss processes: one decision a packet.
//!
//! Invariant: every packet takes the same number of random numbers for any process, so that losses at two rates
//! hit the same packets as far as they can.

use std::time::Duration;

use wayferry_proto::Time;

use super::config::Loss;
use crate::random::Random;

/// State of a loss process.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Of packets.
    packets: Random,
    /// Of the bad and good times.
    times: Random,
    bad: bool,
    /// When the state changes; of the process by time.
    change: Option<Time>,
}

impl Losses {
    pub(super) fn new(random: &Random) -> Self {
        Self { packets: random.fork(1), times: random.fork(2), bad: false, change: None }
    }

    /// Another process begins.
    pub(super) fn restart(&mut self) {
        self.bad = false;
        self.change = None;
    }

    /// Whether the packet is lost that leaves the queue now.
    pub(super) fn next(&mut self, loss: Loss, now: Time) -> bool {
        let (turn, fate) = (self.packets.unit(), self.packets.unit());
        match loss {
            Loss::None => false,
            Loss::Independent(share) => fate < share,
            Loss::Packets { share, burst } => {
                let to_good = 1.0 / burst.max(1.0);
                let to_bad = to_good * share / (1.0 - share);
                self.bad = if self.bad { turn >= to_good } else { turn < to_bad };
                self.bad
            }
            Loss::Elliott { to_bad, to_good, lost } => {
                self.bad = if self.bad { turn >= to_good } else { turn < to_bad };
                self.bad && fate < lost
            }
            Loss::Times { share, burst } => self.bad_time(share, burst, now),
        }
    }

    fn bad_time(&mut self, share: f64, burst: Duration, now: Time) -> bool {
        if share <= 0.0 {
            return false;
        }
        let good = burst.as_secs_f64() * (1.0 - share) / share;
        let mut change = self.change.unwrap_or_else(|| {
            // The process has been running for ever: it begins in its stationary state.
            self.bad = self.times.unit() < share;
            let mean = if self.bad { burst.as_secs_f64() } else { good };
            now + Duration::from_secs_f64(self.times.exponential(mean))
        });
        while change <= now {
            self.bad = !self.bad;
            let mean = if self.bad { burst.as_secs_f64() } else { good };
            // Not zero: a state without duration would keep this loop from ending.
            change += Duration::from_secs_f64(self.times.exponential(mean)).max(Duration::from_nanos(1));
        }
        self.change = Some(change);
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of packets lost, and mean length of a burst, of four million packets, one each 100 µs.
    fn measure(loss: Loss, seed: u64) -> (f64, f64) {
        let mut losses = Losses::new(&Random::new(seed));
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for index in 0..4_000_000 {
            let now = losses.next(loss, Time::from_micros(index * 100));
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        (f64::from(lost) / 4e6, f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn independent_loss_has_its_share() {
        let (share, burst) = measure(Loss::Independent(0.01), 7);
        assert!((share - 0.01).abs() < 0.001, "{share}");
        assert!(burst < 1.05, "{burst}");
    }

    #[test]
    fn bursts_of_packets_have_their_share_and_length() {
        for (share, burst) in [(0.01, 2.0), (0.02, 4.0), (0.05, 10.0)] {
            let (seen, length) = measure(Loss::Packets { share, burst }, 3);
            assert!((seen / share - 1.0).abs() < 0.1, "{seen} of {share}");
            assert!((length / burst - 1.0).abs() < 0.1, "{length} of {burst}");
        }
    }

    #[test]
    fn bad_states_lose_their_share_of_packets() {
        // Stationary: bad 5/205 of packets, of which 80 % are lost.
        let (share, burst) = measure(Loss::Elliott { to_bad: 0.005, to_good: 0.2, lost: 0.8 }, 3);
        assert!((share / 0.0195 - 1.0).abs() < 0.1, "{share}");
        // A run ends with the state or with a packet that gets through: 1 / (1 - 0.8 × 0.8).
        assert!((burst / 2.78 - 1.0).abs() < 0.1, "{burst}");
    }

    #[test]
    fn bursts_of_time_have_their_share_and_length() {
        for (share, millis) in [(0.01, 5), (0.03, 20)] {
            let (seen, length) = measure(Loss::Times { share, burst: Duration::from_millis(millis) }, 5);
            assert!((seen / share - 1.0).abs() < 0.15, "{seen} of {share}");
            let packets = millis as f64 * 10.0;
            assert!((length / packets - 1.0).abs() < 0.15, "{length} of {packets}");
        }
    }
}
