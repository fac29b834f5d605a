//! What the display's input has begun at the program: keys that are down, focus, what is offered.
//!
//! Keeps the books; what follows from them is told by `event` and `away`. Invariant: all that input has begun can be
//! ended here when its display is gone.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use wayferry_proto::Time;

use super::announced::{Announced, Open};
use super::clipboard::Clipboard;
use super::focus::Focus;
use super::keyboard::Keyboard;
use super::late::{Late, Part};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Devices {
    keyboards: HashMap<u32, Keyboard>,
    late: Late,
    /// How long ago the display side had read the events that come now, when it last said so.
    read_age: Duration,
    focus: Focus,
    announced: Announced,
    clipboard: Clipboard,
}

/// Keys of a keyboard, and the serial to tell them with.
pub(super) type Keys = (u32, (u32, Vec<u32>));

impl Devices {
    /// A new `wl_keyboard`.
    pub(super) fn add_keyboard(&mut self, id: u32, keyboard: Keyboard) {
        self.keyboards.insert(id, keyboard);
    }

    pub(super) fn keyboard(&self, id: u32) -> Option<&Keyboard> {
        self.keyboards.get(&id)
    }

    pub(super) fn keyboard_mut(&mut self, id: u32) -> Option<&mut Keyboard> {
        self.keyboards.get_mut(&id)
    }

    /// All keyboards, in no order.
    pub(super) fn keyboards(&self) -> impl Iterator<Item = (u32, &Keyboard)> {
        self.keyboards.iter().map(|(id, keyboard)| (*id, keyboard))
    }

    /// The display side has read the events that come now so long ago.
    pub(super) fn set_read_age(&mut self, age: Duration) {
        self.read_age = age;
    }

    pub(super) fn read_age(&self) -> Duration {
        self.read_age
    }

    /// Whether the program gets an event of its object `id`, which may be a part of a press: none that comes too late.
    pub(super) fn passes(&mut self, id: u32, press: Option<(u32, Part)>, name: &str) -> bool {
        self.late.passes(id, press, name, self.read_age)
    }

    /// A device comes to a surface that the program has destroyed, until the event `end`, or a finger does.
    pub(super) fn come_to_nothing(&mut self, id: u32, press: Option<(u32, Part)>, end: &'static str) {
        self.late.come_to_nothing(id, press, end);
    }

    /// What the user attends to.
    pub(super) fn focus(&self) -> &Focus {
        &self.focus
    }

    /// The same, which an event may move.
    pub(super) fn focus_mut(&mut self) -> &mut Focus {
        &mut self.focus
    }

    /// What the program has been told, which an event may begin or end.
    pub(super) fn announced(&mut self) -> &mut Announced {
        &mut self.announced
    }

    /// What is open at an object: the object that each event named.
    pub(super) fn about(&self, object: u32) -> impl Iterator<Item = u32> {
        self.announced.about(object)
    }

    /// Selections and drags of the program.
    pub(super) fn clipboard(&mut self) -> &mut Clipboard {
        &mut self.clipboard
    }

    /// The program releases a device.
    pub(super) fn release(&mut self, id: u32) {
        self.keyboards.remove(&id);
        self.focus.forget(id);
    }

    /// The program has destroyed an object.
    pub(super) fn forget(&mut self, id: u32) {
        self.announced.forget(id);
        self.late.forget(id);
    }

    /// When [`Self::on_timeout`] has something to do.
    pub(super) fn next_timeout(&self, patience: Duration) -> Option<Time> {
        self.keyboards.values().filter_map(|keyboard| keyboard.next_timeout(patience)).min()
    }

    /// Keys that go up, as the display side says nothing of them any more.
    pub(super) fn on_timeout(&mut self, now: Time, patience: Duration) -> Vec<Keys> {
        let silent = self.keyboards.iter_mut();
        silent.map(|(id, keyboard)| (*id, keyboard.on_timeout(now, patience))).collect()
    }

    /// The display is going: keys that go up.
    pub(super) fn take_keys(&mut self) -> Vec<Keys> {
        self.keyboards.iter_mut().map(|(id, keyboard)| (*id, keyboard.part())).collect()
    }

    /// Pointers, and their buttons that go up.
    pub(super) fn take_buttons(&mut self) -> BTreeSet<(u32, u32)> {
        self.announced.take_buttons()
    }

    /// What else ends.
    pub(super) fn take_open(&mut self) -> Vec<Open> {
        self.announced.take().collect()
    }

    /// The display is gone, and all that is told.
    pub(super) fn part(&mut self) {
        self.focus.clear();
        (self.late, self.read_age) = Default::default();
    }
}
