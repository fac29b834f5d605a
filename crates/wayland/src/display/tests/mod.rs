//! The display half against a compositor that is played by hand, through real sockets, without time passing.

mod captures;
mod drags;
mod hostile;
mod input;
mod lending;
mod memory;
mod opening;
mod order;
mod predict;
mod rig;
mod startup;
mod told;
mod toy;
mod units;
mod veils;
#[cfg(feature = "video")]
mod videos;
mod watching;
