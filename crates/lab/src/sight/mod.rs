//! When a key is seen, told from pixels alone: for programs that are typed into, with predictions or without.
//!
//! A line of cells is read from its picture ([`Letters`]) and compared with what the keys that were pressed make of it
//! ([`Line`]). Nothing that Wayferry counts itself is used. Invariant: a key counts as seen when a picture shows the
//! line as it is after that key, and never before it was pressed.

mod letters;
mod line;

use std::time::Duration;

pub(crate) use letters::Letters;
pub(crate) use line::{BACKSPACE, Line};

/// How soon a key is seen that counts as shown at once, over a link of this round trip: too soon for an answer to any
/// key.
pub(crate) fn at_once(rtt: Duration) -> Duration {
    AT_ONCE.min(rtt / 2)
}

const AT_ONCE: Duration = Duration::from_millis(40);
