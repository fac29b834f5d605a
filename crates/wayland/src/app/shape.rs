//! How a surface's content is shown: which part of it, in which size, turned how.
//!
//! As the program has committed it. Knows no pixels.

use wayferry_pixels::map::{Crop, Transform};

/// How a surface's content is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) scale: i32,
    pub(super) transform: Transform,
    pub(super) crop: Option<Crop>,
    pub(super) destination: Option<(i32, i32)>,
}

impl Shape {
    /// Of a surface that has just been made.
    pub(super) const NEW: Self =
        Self { scale: 1, transform: Transform::Normal, crop: None, destination: None };
}
