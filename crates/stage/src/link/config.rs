//! What a link can be told.

use std::time::Duration;

use super::trace::Trace;

/// One direction of a link, or both; [`LinkConfig::default`] is a perfect one.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, counted with 28 bytes of headers for each datagram; `None` is as fast as the machine.
    pub rate: Option<u64>,
    /// Delay of every packet after it left the queue, one way.
    pub one_way_delay: Duration,
    /// Bytes (headers included) that may wait for the rate or the trace; a packet that finds no room is dropped.
    pub queue_bytes: u64,
    /// Loss at random.
    pub loss: Loss,
    /// Up to this much more delay, uniform; order is kept.
    pub jitter: Duration,
    /// Packets that come later than those sent after them.
    pub reorder: Option<Reorder>,
    /// Probability that a packet comes twice, 0 to 1.
    pub duplication: f64,
    /// Times, since the link's start, in which everything that leaves the queue is lost.
    pub outages: Vec<Outage>,
    /// Opportunities to send, in the place of a rate.
    pub trace: Option<Trace>,
    /// Decides every random thing.
    pub seed: u64,
}

impl Default for LinkConfig {
    fn default() -> LinkConfig {
        LinkConfig {
            rate: None,
            one_way_delay: Duration::ZERO,
            queue_bytes: 1 << 20,
            loss: Loss::None,
            jitter: Duration::ZERO,
            reorder: None,
            duplication: 0.0,
            outages: Vec::new(),
            trace: None,
            seed: 1,
        }
    }
}

/// Which packets are lost on the way (after the queue).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each by itself with this probability.
    Independent(f64),
    /// A good and a bad state, changing from packet to packet (Gilbert and Elliott).
    GilbertElliott {
        /// Probability, at each packet, to go from good to bad.
        to_bad: f64,
        /// Probability, at each packet, to go from bad to good.
        to_good: f64,
        /// Probability of loss in the good state.
        loss_good: f64,
        /// Probability of loss in the bad state.
        loss_bad: f64,
    },
}

impl Loss {
    /// A Gilbert–Elliott loss of this mean rate (0 to 1) in bursts of this mean length in packets (at least 1).
    pub fn bursts(rate: f64, mean_length: f64) -> Loss {
        let to_good = 1.0 / mean_length.max(1.0);
        let rate = rate.clamp(0.0, 0.99);
        Loss::GilbertElliott { to_bad: to_good * rate / (1.0 - rate), to_good, loss_good: 0.0, loss_bad: 1.0 }
    }
}

/// Packets out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Probability of a packet to be late, 0 to 1.
    pub probability: f64,
    /// How late.
    pub by: Duration,
}

/// A time in which nothing comes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Since the link's start.
    pub start: Duration,
    /// How long.
    pub length: Duration,
}

impl Outage {
    pub(crate) fn covers(&self, time: Duration) -> bool {
        time >= self.start && time < self.start + self.length
    }
}
