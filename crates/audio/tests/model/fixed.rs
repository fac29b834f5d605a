//! What a player without an estimate does: it waits a constant time, and leaves out what comes later.

use crate::link::Link;
use crate::world::{Plan, arrivals};

/// Share of packets that come later than `wait` behind the first, in percent.
pub(crate) fn concealed(plan: Plan, link: Link, wait: f64) -> f64 {
    let delays: Vec<f64> = arrivals(plan, link);
    let first = delays.first().copied().unwrap_or_default();
    let late = delays.iter().filter(|delay| **delay > first + wait - 0.010).count();
    late as f64 / delays.len().max(1) as f64 * 100.0
}
