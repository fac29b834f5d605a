//! The evaluation grid: every combination of workload, delivery, controller and link that is to be compared.
//!
//! A [`Cell`] is one combination; running it with one seed gives a [`Run`]; a [`Row`] pools the runs of many seeds and
//! merges with the same row from elsewhere. Invariant: rows depend on which runs they hold, not on their order.

mod cell;
mod plans;
mod pool;
mod row;
mod run;

pub use cell::{Cell, LossModel, Trouble, Workload};
pub use plans::Grid;
pub use pool::{Job, Progress, jobs, run_jobs};
pub use row::Row;
pub use run::{References, Run};
