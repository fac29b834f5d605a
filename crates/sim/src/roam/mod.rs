//! Sessions that outlive their carriers, over real QUIC (noq-proto), in virtual time.
//!
//! An app side and a display side talk at random while the link has outages and changes its address, while the display
//! comes over another connection, crashes or sleeps, and while the app side forgets everything. What the display does
//! then is in `viewer`, what the app side does in `server`; what they say, and what has to come of it, in `talk`.
//! Invariant: a run is a function of its seed.
//!
//! ```sh
//! cargo run --release -p wayferry-sim --example schedules -- 0 1000   # the first thousand
//! cargo run --release -p wayferry-sim --example schedules -- 77       # one again, by its seed
//! ```

mod leg;
mod schedule;
mod server;
mod talk;
mod viewer;
mod world;

use std::fmt;

use wayferry_proto::Time;

pub use schedule::{Schedule, Trouble};
pub use world::{Report, run};

/// Why a run is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Of which seed.
    pub seed: u64,
    /// When.
    pub at: Time,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.since_start().as_secs_f64();
        write!(f, "schedule {} failed after {seconds:.3} s: {}", self.seed, self.why)
    }
}

impl std::error::Error for Failure {}
