//! Messages between the two halves of a connection.
//!
//! Input: which of the three kinds, then the message.

use wayferry_wayland::message::{ToApp, ToDisplay};
use wayferry_wayland::snapshot::Snapshot;

use crate::Input;

/// What decodes can be encoded, and decodes to the same again.
///
/// # Panics
/// When it does not.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 3 {
        0 => {
            if let Ok(message) = ToDisplay::decode(input.0) {
                assert_eq!(ToDisplay::decode(&message.encode()).as_ref(), Ok(&message));
            }
        }
        1 => {
            if let Ok(message) = ToApp::decode(input.0) {
                assert_eq!(ToApp::decode(&message.encode()).as_ref(), Ok(&message));
            }
        }
        _ => {
            if let Ok(snapshot) = Snapshot::decode(input.0) {
                assert_eq!(Snapshot::decode(&snapshot.encode()).as_ref(), Ok(&snapshot));
            }
        }
    }
}
