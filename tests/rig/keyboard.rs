//! A virtual keyboard with a keymap of its own that a test types on, key by key.

use super::Compositor;
use super::device::Device;

/// See the module.
pub(crate) struct Keyboard(Device);

impl Keyboard {
    /// Makes one on a compositor.
    pub(crate) fn new(compositor: &impl Compositor) -> Self {
        Self(Device::new(compositor, SOURCE, &[]))
    }

    /// Presses and releases the key of a small letter, or of the space bar.
    pub(crate) fn letter(&mut self, letter: char) {
        self.press(code(letter));
    }

    /// Presses and releases Return.
    pub(crate) fn enter(&mut self) {
        self.press(RETURN);
    }

    /// Presses the key of a small letter, and keeps it down for as long as the keyboard is there.
    pub(crate) fn hold(&mut self, letter: char) {
        self.0.act(&format!("hold {}", code(letter)));
    }

    fn press(&mut self, code: usize) {
        self.0.act(&format!("key {code} 0"));
    }
}

/// The code of a letter on a keyboard of the United States, as evdev has it.
fn code(letter: char) -> usize {
    let rows = [(16, "qwertyuiop"), (30, "asdfghjkl"), (44, "zxcvbnm"), (57, " ")];
    let found = rows.iter().find_map(|(first, row)| Some(first + row.find(letter)?));
    found.unwrap_or_else(|| panic!("no key is known for {letter:?}"))
}

/// Its code, as evdev has it.
const RETURN: usize = 28;

const SOURCE: &str = include_str!("../tools/virtual-keyboard.py");
