//! Notifications of a session's programs, which are shown at the desk.
//!
//! Beside the programs there is a bus of the session's own, with a server of notifications on it ([`bus`]); at the desk
//! they are given to the desk's server ([`desk`]). Both are D-Bus, which runs on threads of its own; the loops pass
//! what crosses. What a program may say is bounded by [`wayferry_proto::Note`], how often by `Queue`, on both sides.
//! Invariant: nothing here ends a session, and nothing is shown at a desk whose user does not want it.

pub mod bus;
pub mod desk;
pub(crate) mod markup;
pub mod question;
mod queue;
mod showing;

pub(crate) use self::queue::Queue;
pub use self::showing::Showing;

/// The interface of both servers, and the name that has it.
const NAME: &str = "org.freedesktop.Notifications";
/// The object that has it.
const PATH: &str = "/org/freedesktop/Notifications";
