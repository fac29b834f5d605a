//! What the controller is about: finding the rate, keeping the queue short, looking whose queue it is, competing.
//!
//! A queue that stands although this sender keeps to its allowance has one of three reasons, and half a window for a
//! round trip tells them apart. Gone: it was ours. Still there: the way has become longer, and that is the new base. If
//! such a base proves wrong soon after, because the time falls below it or rises again, somebody else fills the queue.

use std::time::Duration;

use crate::compete::Compete;

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
    /// Whether the raise may still prove wrong.
    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) < DOUBT
    }
}

/// Longer than CUBIC takes from one step back to the next on the links that matter here (a window of 250 packets: 6 s).
const DOUBT: Duration = Duration::from_secs(15);
