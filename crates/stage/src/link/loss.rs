//! The loss process: one decision a packet.

use super::config::Loss;
use crate::random::Random;

/// State of a loss process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    bad: bool,
}

impl Losses {
    /// Whether the next packet is lost. Takes two random numbers for any process, so that changing it does
    /// not change the other decisions.
    pub(crate) fn next(&mut self, loss: Loss, random: &mut Random) -> bool {
        let (change, fate) = (random.unit(), random.unit());
        match loss {
            Loss::None => false,
            Loss::Independent(probability) => fate < probability,
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                self.bad = if self.bad { change >= to_good } else { change < to_bad };
                fate < if self.bad { loss_bad } else { loss_good }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rate and mean burst of a million packets.
    fn measure(loss: Loss, seed: u64) -> (f64, f64) {
        let (mut losses, mut random) = (Losses::default(), Random::new(seed));
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for _ in 0..1_000_000 {
            let now = losses.next(loss, &mut random);
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        (f64::from(lost) / 1e6, f64::from(lost) / f64::from(bursts.max(1)))
    }

    #[test]
    fn independent_loss_has_its_rate() {
        let (rate, _) = measure(Loss::Independent(0.01), 7);
        assert!((rate - 0.01).abs() < 0.001, "{rate}");
    }

    #[test]
    fn bursts_have_their_rate_and_mean_length() {
        for (rate, length) in [(0.01, 2.0), (0.02, 4.0), (0.05, 10.0)] {
            let (seen_rate, seen_length) = measure(Loss::bursts(rate, length), 3);
            assert!((seen_rate / rate - 1.0).abs() < 0.1, "{seen_rate} of {rate}");
            assert!((seen_length / length - 1.0).abs() < 0.1, "{seen_length} of {length}");
        }
    }
}
