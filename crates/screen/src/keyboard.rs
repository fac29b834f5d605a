//! Keys that the user presses in the window, pressed at the screen.
//!
//! The keymap goes along as it is, so a key means there what it means here. Invariant: a key that is down at the screen
//! is released when the window loses the keyboard, however that comes about.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use wayland_client::protocol::wl_keyboard::{self, KeyState, KeymapFormat, WlKeyboard};
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::{Proxy, WEnum};
use wayland_protocols_misc::zwp_virtual_keyboard_v1::client::zwp_virtual_keyboard_v1::ZwpVirtualKeyboardV1;

use crate::inbox::Queue;

/// The keyboard of the window, and that of the screen.
#[derive(Debug)]
pub(crate) struct Keyboard {
    there: ZwpVirtualKeyboardV1,
    here: Option<WlKeyboard>,
    down: BTreeSet<u32>,
    /// Keys mean nothing before the first keymap, and are an error there.
    has_keymap: bool,
    group: u32,
    /// The last event's time, for what is released by itself.
    time: u32,
}

impl Keyboard {
    pub(crate) fn new(there: ZwpVirtualKeyboardV1) -> Self {
        Self { there, here: None, down: BTreeSet::new(), has_keymap: false, group: 0, time: 0 }
    }

    /// Whether the session has a keyboard.
    pub(crate) fn devices(&mut self, has_one: bool, seat: &WlSeat, queue: &Queue) {
        if !has_one {
            self.leave();
            if let Some(here) = self.here.take().filter(|here| here.version() >= 3) {
                here.release();
            }
        } else if self.here.is_none() {
            self.here = Some(seat.get_keyboard(queue, ()));
        }
    }

    /// What the window's keyboard says; the serial, if the user has done something.
    pub(crate) fn hear(&mut self, event: wl_keyboard::Event) -> Option<u32> {
        use wl_keyboard::Event;
        match event {
            // A compositor ends the connection of a client with another.
            Event::Keymap { format: WEnum::Value(KeymapFormat::XkbV1), fd, size } if size > 1 => {
                self.there.keymap(KeymapFormat::XkbV1.into(), fd.as_fd(), size);
                self.has_keymap = true;
            }
            Event::Key { serial, time, key, state: WEnum::Value(state) } => {
                self.key(time, key, state);
                return Some(serial);
            }
            Event::Modifiers { mods_depressed, mods_latched, mods_locked, group, .. } => {
                self.group = group;
                if self.has_keymap {
                    self.there.modifiers(mods_depressed, mods_latched, mods_locked, group);
                }
            }
            Event::Enter { serial, .. } => return Some(serial),
            Event::Leave { .. } => self.leave(),
            _ => {}
        }
        None
    }

    fn key(&mut self, time: u32, key: u32, state: KeyState) {
        self.time = time;
        if !self.has_keymap {
            return;
        }
        let is_new = match state {
            KeyState::Pressed => self.down.len() < MAX_DOWN && self.down.insert(key),
            _ => self.down.remove(&key),
        };
        if is_new {
            self.there.key(time, key, state.into());
        }
    }

    /// Releases what is down.
    pub(crate) fn leave(&mut self) {
        for key in std::mem::take(&mut self.down) {
            self.there.key(self.time, key, KeyState::Released.into());
        }
        if self.has_keymap {
            self.there.modifiers(0, 0, 0, self.group);
        }
    }
}

/// Keys that may be down at a time.
const MAX_DOWN: usize = 256;
