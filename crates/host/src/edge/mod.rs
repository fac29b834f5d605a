//! What a run loop polls, and the loop itself. No part knows another; a side has them and asks each after its turn.

pub mod context;
pub mod counter;
pub(crate) mod data_dirs;
pub(crate) mod descriptors;
pub mod handle;
pub mod offer;
pub mod outlets;
pub mod part;
pub mod path;
pub mod peer;
pub(crate) mod pipes;
pub mod programs;
pub(crate) mod reader;
pub(crate) mod recorder;
pub(crate) mod remaining;
pub mod signals;
pub mod socket;
pub mod trunk;
pub mod turns;
pub mod wait;
pub mod whole_file;
pub(crate) mod workers;
pub mod xwayland;
