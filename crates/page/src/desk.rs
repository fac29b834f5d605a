//! What a viewer tells of itself: the globals that it shows windows with.
//!
//! Invariant: of each global it offers the lowest version that has all that a view says.

use wayferry_message::snapshot::{Global, Snapshot};
use wayferry_pixels::Format;

use crate::objects::Factory;

/// What a viewer tells the app side of its compositor, which it has not: what windows need, every pixel format, no
/// output and no seat.
pub(crate) fn snapshot() -> Snapshot {
    let global = |factory: &Factory| Global {
        name: factory.name(),
        interface: factory.interface().to_owned(),
        version: factory.version(),
    };
    Snapshot {
        globals: Factory::ALL.iter().map(global).collect(),
        formats: Format::ALL.iter().map(|format| format.to_wl_shm()).collect(),
        ..Snapshot::default()
    }
}
