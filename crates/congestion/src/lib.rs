//! A delay-based congestion controller behind noq-proto's `Controller` trait.
//!
//! It keeps the queue at the bottleneck short, because priorities are worth nothing behind a long one, and it knows the
//! bottleneck's rate, so that a sender that was idle may emit an update at the link's speed. Losses alone do not slow
//! it: repair is there for them. Beside a flow that fills the queue it turns to that flow's own manners.
//!
//! What it does not do: it opens no socket, sets no timer and reads no clock; it knows the time from noq's calls. It
//! schedules nothing: [`State`] tells the session how much the path takes.
//!
//! Where to begin: [`Copa`] is the shell that noq calls; `train` and `rate` measure the bottleneck, `base_rtt` and
//! `queue` the delay, `loss` the losses; `phase` decides what the controller is about; `window` and `compete` are its
//! two laws, `pacing` the third number. Invariant: what it does is a function of the calls made to it.
//!
//! Beside it, and for any controller: [`metered`] tells what passes between it and noq, [`Meter`] makes figures of
//! that; and [`transport()`] is how QUIC is set up wherever it is used.

mod ack;
mod base_rtt;
mod compete;
mod copa;
mod loss;
mod meter;
mod metered;
mod pacing;
mod phase;
mod queue;
mod rate;
mod state;
mod train;
mod transport;
mod window;

pub use copa::{Copa, CopaFactory};
pub use meter::{Figures, Meter};
pub use metered::{Listener, Report, metered};
pub use state::{Shared, State};
pub use transport::{CONNECTION_WINDOW, MTU_MAX, STREAM_WINDOW, transport};
