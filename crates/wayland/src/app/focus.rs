//! Which surfaces the user attends to: those that a keyboard, pointer or touch of the program is in.
//!
//! Only what the compositor has said, no guesses. Invariant: a device is in at most one surface.

use std::collections::HashMap;

use crate::message::{WireArg, WireId};

/// The surface that each device is in, by the device's id.
#[derive(Debug, Default)]
pub(crate) struct Focus(HashMap<u32, WireId>);

impl Focus {
    /// An event of a device may move it.
    pub(crate) fn on_event(&mut self, device: u32, name: (&str, &str), args: &[WireArg]) {
        match (name, args) {
            (("wl_keyboard" | "wl_pointer", "enter"), [_, WireArg::Object(surface), ..])
            | (("wl_touch", "down"), [_, _, WireArg::Object(surface), ..]) => {
                self.0.insert(device, *surface);
            }
            (("wl_keyboard" | "wl_pointer", "leave") | ("wl_touch", "up" | "cancel"), _) => {
                self.forget(device);
            }
            _ => {}
        }
    }

    /// The device is gone.
    pub(crate) fn forget(&mut self, device: u32) {
        self.0.remove(&device);
    }

    /// Whether some device is in a surface of the program.
    pub(crate) fn is_anywhere(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether some device is in the surface.
    pub(crate) fn is_in(&self, surface: WireId) -> bool {
        self.0.values().any(|entered| *entered == surface)
    }
}
