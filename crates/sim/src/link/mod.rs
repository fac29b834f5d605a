//! The link: one lane each way, with everything that real ones do to packets.

mod codel;
mod config;
mod lane;
mod loss;
mod trace;

pub use config::{Change, Jitter, LaneConfig, Loss, Policer, Queue, Reorder, Service, Step};
pub use lane::{HEADERS, Lane, LaneStats, Wait};
pub use trace::Trace;
