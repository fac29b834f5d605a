//! A virtual pointer that a test moves.

use super::Compositor;
use super::device::Device;

/// See the module.
pub(crate) struct Pointer(Device);

impl Pointer {
    /// Makes one on a compositor whose output has this size.
    pub(crate) fn new(compositor: &impl Compositor, width: u32, height: u32) -> Self {
        Self(Device::new(compositor, SOURCE, &[width, height].map(|side| side.to_string())))
    }

    pub(crate) fn move_to(&mut self, x: u32, y: u32) {
        self.0.act(&format!("move {x} {y}"));
    }

    pub(crate) fn press(&mut self) {
        self.0.act("press");
    }

    pub(crate) fn release(&mut self) {
        self.0.act("release");
    }

    pub(crate) fn click(&mut self, x: u32, y: u32) {
        self.move_to(x, y);
        self.press();
        self.release();
    }

    /// Turns the wheel by whole steps.
    pub(crate) fn wheel(&mut self, steps: i32) {
        self.0.act(&format!("wheel {steps}"));
    }

    /// Scrolls as a touchpad does.
    pub(crate) fn scroll(&mut self, amount: f64) {
        self.0.act(&format!("axis {amount}"));
    }
}

const SOURCE: &str = include_str!("../tools/virtual-pointer.py");
