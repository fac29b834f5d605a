//! How a congestion controller behaves: the scenarios behind `wayferry bench cc`.

mod scenario;

pub use scenario::{Outcome, Scenario};
