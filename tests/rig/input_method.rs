//! An input method that composes nothing, so that programs say where their carets are.

use super::Compositor;
use super::device::Device;

/// See the module.
pub(crate) struct InputMethod(Device);

impl InputMethod {
    /// Makes one on a compositor.
    pub(crate) fn new(compositor: &impl Compositor) -> Self {
        Self(Device::new(compositor, SOURCE, &[]))
    }

    /// Waits until the program that has the focus has said that it takes text.
    pub(crate) fn is_asked(&mut self) {
        self.0.act("wait");
    }
}

const SOURCE: &str = include_str!("../tools/input-method.py");
