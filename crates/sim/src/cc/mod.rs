//! How a congestion controller behaves: the scenarios behind `wayferry bench cc`.
//!
//! A [`Scenario`] is a link, what goes over it, and what is measured; an [`Outcome`] is what was seen; a [`Target`]
//! says what it should have been. Invariant: goodput is measured against what the link can carry, not against what the
//! sender tried.

mod experiment;
mod outcome;
mod scenario;

pub use outcome::{Metric, Outcome, Target};
pub use scenario::Scenario;
