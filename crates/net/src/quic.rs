//! The QUIC carrier: noq behind a handle for a run loop.
//!
//! A [`Listener`] is the app side, [`connect`] the display side, [`Reconnect`] one that comes back. Both pin the peer's
//! certificate; beyond that only pages are let in that may come ([`Listener::admit_pages`]). All connections of a
//! listener, and each `connect`, share one thread with a small async runtime, which nothing outside sees. This module
//! decides nothing about what is sent when: the session does, by priorities and by what
//! [`LinkState`](wayferry_proto::LinkState) tells. Loss repair and congestion control of our own are not here either.
//!
//! Invariant: what one stream waits for (flow control, a lost packet, a slow reader) no other stream waits for.

#[cfg(target_os = "linux")]
mod changes;
#[cfg(not(target_os = "linux"))]
#[path = "quic/changes_untold.rs"]
mod changes;
pub(crate) mod config;
pub(crate) mod error;
mod established;
mod framing;
mod intake;
mod listener;
mod meter;
mod page;
mod pages;
mod probe;
mod pump;
pub(crate) mod race;
mod reconnect;
mod roam;
mod runtime;
mod shared;
pub(crate) mod socket;
mod standing;

pub use self::config::{Congestion, Options};
pub use self::error::{Buffer, CertificateFault, ConnectError, ListenError, SetupError, Warning};
pub use self::established::Connected;
pub use self::listener::Listener;
pub use self::pages::{NotAnOrigin, PageOrigin};
pub use self::reconnect::{Attempt, Reconnect, connect};
