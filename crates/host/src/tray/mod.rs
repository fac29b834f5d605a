//! Icons of a session's programs in the tray of the desk, and their menus.
//!
//! On the session's bus there is a watcher, with which programs register as with any desk's ([`watcher`]); at the desk
//! each icon is registered with the desk's watcher (`desk`). Both are D-Bus, which runs on threads of its own; the
//! loops pass what crosses. What a program may show is bounded by [`wayferry_proto::TrayItem`] and
//! [`wayferry_proto::TrayMenu`], how often by `Paced`, on both sides. Invariant: nothing here ends a session, nothing
//! is shown at a desk whose user does not want it, and programs find a tray only while the desk has one.

mod desk;
mod file;
mod layout;
mod names;
mod paced;
mod program;
mod said;
mod showing;
mod teller;
mod value;
pub mod watcher;

pub(crate) use self::paced::{Budget, Paced};
#[cfg(test)]
pub(crate) use self::program::Order;
pub use self::showing::Showing;
