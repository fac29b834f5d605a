//! A link that is worse than loopback: a seeded UDP relay with rate, delay, queue, loss and the rest.
//!
//! [`Lane`] is one direction as a sans-IO machine: packets and the time in, packets out. [`Link`] is the thin
//! thread around two of them. Losses and delays are decided per packet, in order of arrival, from the seed alone:
//! the n-th packet's fate does not depend on when it comes (only the queue's does).
//!
//! It does not carry ECN marks, and a datagram is what it counts: there is no fragmentation.

mod config;
mod lane;
mod loss;
mod relay;
mod trace;

pub use config::{LinkConfig, Loss, Outage, Reorder};
pub use lane::{Lane, LaneStats};
pub use relay::{Link, LinkStats};
pub use trace::{Trace, TraceError};
