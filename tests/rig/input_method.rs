//! An input method that composes nothing, so that programs say where their carets are.

use super::Compositor;
use super::device::Device;

/// See the module.
pub(crate) struct InputMethod(#[expect(dead_code, reason = "it is there as long as this value")] Device);

impl InputMethod {
    /// Makes one on a compositor.
    pub(crate) fn new(compositor: &impl Compositor) -> Self {
        Self(Device::new(compositor, SOURCE, &[]))
    }
}

const SOURCE: &str = include_str!("../tools/input-method.py");
