//! The laboratory: sessions and congestion controllers over a lossy link, in virtual time.
//!
//! A [`World`] holds hosts that speak real QUIC (noq-proto) to each other over a link of [`link`]; on each host runs an
//! [`App`](app::App). Nothing here opens a socket, waits, or asks the machine for time or randomness, so a run takes as
//! long as its packets take to compute, and comes out the same on every machine. It is unpublished: benches and tests
//! use it. Links that break and sessions that outlive them are in [`roam`]. It does not measure what a machine needs
//! for its work; in virtual time all work is free.
//!
//! The one invariant: the same configuration and seed give the same result, bit for bit, unless BBR3 takes part, which
//! noq seeds from the system.

pub mod app;
pub mod cc;
mod clock;
mod controller;
mod crypto;
mod error;
pub mod grid;
mod host;
pub mod link;
mod meter;
mod random;
pub mod roam;
pub mod session;
mod stats;
mod transport;
mod unit;
pub mod why;
mod world;

pub use controller::Controller;
pub use error::Error;
pub use meter::Meter;
pub use random::Random;
pub use stats::Samples;
pub use transport::{PacketSize, Windows};
pub use unit::Bitrate;
pub use world::{Constant, Flow, HostId, LinkConfig, World};
