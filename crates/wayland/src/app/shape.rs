//! How a surface's content is shown: which part of it, in which size, turned how.
//!
//! As the program has committed it. Knows no pixels.

use wayferry_pixels::Size;
use wayferry_pixels::map::{Crop, Mapping, Transform};

use super::pending::Pending;

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

    /// The same once a commit is applied.
    pub(super) fn after(self, pending: &Pending) -> Self {
        Self {
            scale: pending.scale.unwrap_or(self.scale),
            transform: pending.transform.unwrap_or(self.transform),
            crop: pending.crop.unwrap_or(self.crop),
            destination: pending.destination.unwrap_or(self.destination),
        }
    }

    /// How a buffer of that size is shown so.
    pub(super) fn mapping(self, buffer: Size) -> Mapping {
        let Self { transform, scale, crop, destination } = self;
        Mapping { buffer, transform, scale, crop, destination }
    }
}
