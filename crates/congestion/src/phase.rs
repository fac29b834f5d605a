//! What the controller is about: finding the rate, keeping the queue short, looking whose queue it is, competing.
//!
//! A queue that stands although this sender keeps to its allowance has one of three reasons, and half a window for a
//! round trip tells them apart. Gone: it was ours. Still there: the way has become longer, and that is the new base. If
//! such a base proves wrong soon after, because the time falls below it or rises again, somebody else fills the queue.

use std::time::Duration;

use crate::ack::Batch;
use crate::compete::Compete;
use crate::queue::RttFilter;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    /// The window doubles until the link shows its rate.
    StartUp,
    /// The window follows the queue.
    Cruise,
    /// Less than the window is sent for a while.
    Drain(Drain),
    /// The window follows CUBIC's law.
    Compete(Compete, Option<Drain>),
}

/// A look at what remains when nothing of ours waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    /// Bytes that may be on their way meanwhile.
    pub(crate) cap: f64,
    /// When it is over.
    pub(crate) until: Duration,
    /// The least round-trip time seen.
    pub(crate) least: Duration,
    /// The rate before the queue stood, if a queue is the reason; bytes per second.
    pub(crate) rate: Option<u64>,
    /// When it began.
    pub(crate) began: Duration,
    /// What was on its way then.
    pub(crate) bytes: u64,
    /// Bytes per second of the link that these got, once they are through.
    pub(crate) share: Option<f64>,
    /// Whether it is the second in a row.
    pub(crate) again: bool,
    /// What stood when it began.
    pub(crate) queue: Duration,
}

impl Drain {
    /// Begins with `bytes` on their way.
    pub(crate) fn new(now: Duration, until: Duration, cap: f64, bytes: u64, rtt: &RttFilter) -> Self {
        let queue = Duration::ZERO;
        Self {
            cap,
            until,
            least: rtt.latest(),
            rate: None,
            began: now,
            bytes,
            share: None,
            again: false,
            queue,
        }
    }

    /// An acknowledgement has come.
    pub(crate) fn on_batch(&mut self, now: Duration, batch: Batch, rtt: Duration) {
        self.least = self.least.min(rtt);
        if batch.newest >= self.began && self.share.is_none() {
            self.share = Some(self.bytes as f64 / (now - self.began).as_secs_f64().max(1e-4));
        }
    }

    /// Bytes per second that this sender got; nothing if it sent nothing.
    pub(crate) fn share(&self) -> f64 {
        self.share.unwrap_or(0.0)
    }

    /// Whether what was sent meanwhile is enough for a queue, since this sender gets less than it believed.
    pub(crate) fn is_inconclusive(&self, base: Duration) -> bool {
        !self.again && self.cap > 0.75 * self.share() * base.as_secs_f64()
    }

    /// Whether all has been seen.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now >= self.until && (self.share.is_some() || now >= self.until + PATIENCE)
    }
}

/// A base that a drain has raised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raised {
    /// When.
    pub(crate) at: Duration,
    /// To what.
    pub(crate) to: Duration,
    /// What it was before.
    pub(crate) from: Duration,
}

impl Raised {
    /// Below it the raise was wrong.
    pub(crate) fn middle(&self) -> Duration {
        (self.from + self.to) / 2
    }

    /// Whether the raise may still prove wrong.
    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) < DOUBT
    }
}

/// Longer than CUBIC takes from one step back to the next on the links that matter here (a window of 250 packets: 6 s).
const DOUBT: Duration = Duration::from_secs(15);

/// How long a drain waits for the acknowledgement of something that was sent in it, which may be lost.
const PATIENCE: Duration = Duration::from_secs(1);
