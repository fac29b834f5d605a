//! What a program was told of how a surface's buffers should be: scale and transform.
//!
//! Invariant: what says nothing new is not told again.

/// See the module.
#[derive(Debug)]
pub(super) struct Preferred {
    /// The scale that was told here.
    scale: Option<u32>,
    /// The transform that a display prefers, as the program knows it.
    transform: u32,
    /// The scale that was told by a `wp_fractional_scale_v1`, and by which.
    fraction: Option<(u32, u32)>,
}

impl Default for Preferred {
    fn default() -> Self {
        // What it is to begin with (wl_surface.preferred_buffer_scale). Some programs bind any version that is offered,
        // and an event that their library does not know ends them.
        Self { scale: Some(1), transform: 0, fraction: None }
    }
}

impl Preferred {
    /// Another scale is told here, or none; returns the one before.
    pub(super) fn set_scale(&mut self, scale: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.scale, scale)
    }

    /// The same by a `wp_fractional_scale_v1`.
    pub(super) fn set_fraction(&mut self, object: u32, scale: Option<u32>) -> Option<u32> {
        let before = std::mem::replace(&mut self.fraction, scale.map(|scale| (object, scale)));
        before.map(|(_, scale)| scale)
    }

    /// The `wp_fractional_scale_v1` that has told a scale.
    pub(super) fn fraction(&self) -> Option<u32> {
        self.fraction.map(|(object, _)| object)
    }

    /// It is another one, which has told nothing.
    pub(super) fn forget_fraction(&mut self) {
        self.fraction = None;
    }

    /// Another transform is told; returns the one before.
    pub(super) fn set_transform(&mut self, transform: u32) -> u32 {
        std::mem::replace(&mut self.transform, transform)
    }
}
