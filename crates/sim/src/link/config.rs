//! What a link does to packets; plain values.

use std::sync::Arc;
use std::time::Duration;

use wayferry_proto::Time;

use super::trace::Trace;
use crate::unit::Bitrate;

/// One direction of a link. The default is perfect: no delay, no limit, no loss.
#[derive(Clone, Debug, Default)]
pub struct LaneConfig {
    /// How fast packets leave the queue.
    pub service: Service,
    /// Time from leaving the queue to arrival.
    pub delay: Duration,
    /// What varies that time.
    pub jitter: Jitter,
    /// What happens to packets that have to wait.
    pub queue: Queue,
    /// Drops what exceeds a rate, before the queue. Default: none.
    pub policer: Option<Policer>,
    /// Losses after the queue. They have cost their time on the line.
    pub loss: Loss,
    /// Some packets are late, others overtake them. Default: none.
    pub reorder: Option<Reorder>,
    /// Share of packets that arrive twice, 0 ..= 1.
    pub duplication: f64,
    /// What changes on the way, in order of time.
    pub steps: Vec<Step>,
}

/// How fast packets leave the queue.
#[derive(Clone, Debug, Default)]
pub enum Service {
    /// At once.
    #[default]
    Unlimited,
    /// At this rate, headers counted.
    Rate(Bitrate),
    /// As recorded.
    Trace(Arc<Trace>),
}

/// What varies the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Each packet is late by up to `span`, uniformly and for itself: those behind it overtake.
    Apart {
        /// The most that a packet is late.
        span: Duration,
    },
    /// Each packet is late by up to `span`, uniformly, and those behind it wait: they arrive in clumps.
    Clumps {
        /// The most that a packet is late.
        span: Duration,
    },
    /// The delay wanders between 0 and `span` more, in a straight line to a new point every `period`. Order is kept.
    Wander {
        /// The most that packets are late.
        span: Duration,
        /// From one point to the next.
        period: Duration,
    },
}

/// What happens to packets that have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Bytes that may wait, headers counted; one packet always may. More are dropped. Default 4 MiB.
    pub bytes: u64,
    /// CoDel (RFC 8289) with its own defaults, target 5 ms and interval 100 ms, in front of that limit. Default: off.
    pub codel: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { bytes: 4 << 20, codel: false }
    }
}

impl Queue {
    /// Drops its tail when it holds what `rate` carries in `span`; at least ten full packets.
    pub fn of(rate: Bitrate, span: Duration) -> Self {
        Self { bytes: rate.bytes(span).max(15_000), codel: false }
    }
}

/// A token bucket that drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// How fast tokens come, headers counted.
    pub rate: Bitrate,
    /// Bytes that the bucket holds.
    pub burst: u64,
}

/// A loss process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Every packet for itself, with this probability.
    Independent(f64),
    /// Gilbert–Elliott by packet: in the bad state all are lost. Stationary share and mean length of a burst in
    /// packets.
    Packets {
        /// Share of packets lost, below 1.
        share: f64,
        /// Mean length of a burst, at least 1.
        burst: f64,
    },
    /// Gilbert–Elliott by packet, as netem's `gemodel`: in the bad state a share is lost. A step of the state each
    /// packet.
    Elliott {
        /// Chance of the good state to become bad.
        to_bad: f64,
        /// Chance of the bad state to become good.
        to_good: f64,
        /// Share of packets lost in the bad state.
        lost: f64,
    },
    /// Gilbert–Elliott by time: in the bad state, which lasts exponentially long, all are lost.
    Times {
        /// Share of time in the bad state, below 1.
        share: f64,
        /// Mean duration of the bad state.
        burst: Duration,
    },
}

/// Some packets are late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of packets, 0 ..= 1.
    pub share: f64,
    /// By how much.
    pub by: Duration,
}

/// A change at a time.
#[derive(Clone, Debug)]
pub struct Step {
    /// When.
    pub at: Time,
    /// What.
    pub change: Change,
}

/// What may change while packets are on their way.
#[derive(Clone, Debug)]
pub enum Change {
    /// How fast packets leave the queue, from the next one on.
    Service(Service),
    /// Time on the line, of packets that leave the queue from then on: another route. They may overtake.
    Delay(Duration),
    /// The loss process.
    Loss(Loss),
    /// Everything that leaves the queue is lost (true), or no longer (false).
    Down(bool),
}
