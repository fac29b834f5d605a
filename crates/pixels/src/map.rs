//! From surface damage to buffer damage.
//!
//! A buffer becomes a surface by its transform, its integer scale, then its viewport (crop, then
//! resize). This module goes the other way for rectangles. It does not know when geometry changes:
//! after such a change damage says nothing, and the caller compares the whole buffer.
//!
//! The one invariant: every buffer pixel that could influence a damaged surface pixel is inside the
//! result; in doubt that is the whole buffer.

use crate::geometry::{Rect, Size};
use crate::region::Region;

/// How the content of a buffer is turned and mirrored against the surface: the values of
/// `wl_output.transform`. `Rotated90` is a buffer that holds the surface turned by 90° counter-clockwise;
/// the flipped ones hold it mirrored at the vertical axis first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transform {
    /// As it is.
    #[default]
    Normal,
    /// Turned by 90° counter-clockwise.
    Rotated90,
    /// Turned by 180°.
    Rotated180,
    /// Turned by 270° counter-clockwise.
    Rotated270,
    /// Mirrored.
    Flipped,
    /// Mirrored, then turned by 90° counter-clockwise.
    Flipped90,
    /// Mirrored, then turned by 180°.
    Flipped180,
    /// Mirrored, then turned by 270° counter-clockwise.
    Flipped270,
}

impl Transform {
    /// Every transform, in the order of their `wl_output.transform` values.
    pub const ALL: [Self; 8] = [
        Self::Normal,
        Self::Rotated90,
        Self::Rotated180,
        Self::Rotated270,
        Self::Flipped,
        Self::Flipped90,
        Self::Flipped180,
        Self::Flipped270,
    ];

    /// The transform with this `wl_output.transform` value.
    pub fn from_wl(value: u32) -> Option<Self> {
        Self::ALL.get(value as usize).copied()
    }

    /// The number of `wl_output.transform`.
    pub fn to_wl(self) -> i32 {
        Self::ALL.iter().zip(0..).find(|(one, _)| **one == self).map_or(0, |(_, number)| number)
    }

    /// Whether width and height change places.
    pub fn swaps_sides(self) -> bool {
        matches!(self, Self::Rotated90 | Self::Rotated270 | Self::Flipped90 | Self::Flipped270)
    }
}

/// A damaged rectangle in surface coordinates, as programs give it: it may lie anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceRect {
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width; nothing is damaged when it is not positive.
    pub width: i32,
    /// Height; nothing is damaged when it is not positive.
    pub height: i32,
}

/// The crop rectangle of a viewport: `wl_fixed` values (24.8, units of 1/256) in surface coordinates
/// before the resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    /// Left edge.
    pub x: i32,
    /// Upper edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
}

/// How a buffer is shown on its surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The buffer's own size.
    pub buffer: Size,
    /// `wl_surface.set_buffer_transform`.
    pub transform: Transform,
    /// `wl_surface.set_buffer_scale`; valid from 1.
    pub scale: i32,
    /// `wp_viewport.set_source`, unless unset.
    pub crop: Option<Crop>,
    /// `wp_viewport.set_destination`: width and height in surface coordinates, unless unset.
    pub destination: Option<(i32, i32)>,
}

impl Mapping {
    /// A buffer shown as it is.
    pub fn plain(buffer: Size) -> Self {
        Self { buffer, transform: Transform::Normal, scale: 1, crop: None, destination: None }
    }

    /// The buffer pixels behind a damaged rectangle; `None` when there are none.
    ///
    /// Where surface pixels are not whole buffer pixels the result is a pixel larger on every side, as
    /// compositors interpolate there.
    pub fn rect(&self, damage: SurfaceRect) -> Option<Rect> {
        if damage.width <= 0 || damage.height <= 0 {
            return None;
        }
        let (width, height) = self.turned_size();
        let (crop, to) = (self.crop, self.destination);
        let horizontal = self.axis(width, crop.map(|crop| (crop.x, crop.width)), to.map(|to| to.0));
        let vertical = self.axis(height, crop.map(|crop| (crop.y, crop.height)), to.map(|to| to.1));
        let columns = horizontal.map_or(Some((0, width)), |axis| axis.span(damage.x, damage.width, width))?;
        let rows = vertical.map_or(Some((0, height)), |axis| axis.span(damage.y, damage.height, height))?;
        Some(self.turn_back(columns, rows))
    }

    /// The buffer pixels behind all damaged rectangles.
    pub fn region(&self, damage: impl IntoIterator<Item = SurfaceRect>) -> Region {
        damage.into_iter().filter_map(|rect| self.rect(rect)).collect()
    }

    /// Size of the buffer after its transform.
    fn turned_size(&self) -> (u32, u32) {
        let Size { width, height } = self.buffer;
        if self.transform.swaps_sides() { (height, width) } else { (width, height) }
    }

    /// How one axis is mapped; `None` if the state is not valid (the compositor will refuse it).
    fn axis(&self, length: u32, crop: Option<(i32, i32)>, destination: Option<i32>) -> Option<Axis> {
        let scale = i64::from(self.scale);
        if scale < 1 {
            return None;
        }
        let (start, source) = match crop {
            Some((start, source)) => (i64::from(start) * scale, i64::from(source) * scale),
            None => (0, i64::from(length) * 256),
        };
        let destination = match (crop, destination) {
            (_, Some(destination)) => i64::from(destination),
            // a crop alone makes a surface of its own size, which must be whole
            (Some((_, source)), None) if source % 256 == 0 => i64::from(source / 256),
            (Some(_), None) => return None,
            // without a viewport a surface pixel is `scale` buffer pixels, even beyond the buffer
            (None, None) => return Some(Axis { start: 0, source: 256 * scale, destination: 1 }),
        };
        (start >= 0 && source > 0 && destination > 0).then_some(Axis { start, source, destination })
    }

    /// From spans of the transformed buffer to the buffer.
    fn turn_back(&self, (left, right): (u32, u32), (top, bottom): (u32, u32)) -> Rect {
        let (width, height) = self.turned_size();
        let (from_right, from_bottom) = ((width - right, width - left), (height - bottom, height - top));
        let (columns, rows) = match self.transform {
            Transform::Normal => ((left, right), (top, bottom)),
            Transform::Rotated90 => ((top, bottom), from_right),
            Transform::Rotated180 => (from_right, from_bottom),
            Transform::Rotated270 => (from_bottom, (left, right)),
            Transform::Flipped => (from_right, (top, bottom)),
            Transform::Flipped90 => ((top, bottom), (left, right)),
            Transform::Flipped180 => ((left, right), from_bottom),
            Transform::Flipped270 => (from_bottom, from_right),
        };
        Rect::between(columns.0, rows.0, columns.1, rows.1)
    }
}

/// One axis: surface coordinate 0 lies at `start`, and `destination` surface pixels are `source` long,
/// both in 1/256 of a buffer pixel.
struct Axis {
    start: i64,
    source: i64,
    destination: i64,
}

impl Axis {
    /// The buffer pixels behind the surface pixels from `start` on; `None` when all lie outside.
    fn span(&self, start: i32, length: i32, limit: u32) -> Option<(u32, u32)> {
        let end = i64::from(start) + i64::from(length);
        let spread = if self.is_exact() { 0 } else { 1 };
        let first = self.position(i64::from(start)).div_euclid(self.unit()) - spread;
        let beyond = -(-self.position(end)).div_euclid(self.unit()) + spread;
        let (first, beyond) = (first.max(0), beyond.min(i128::from(limit)));
        (first < beyond).then_some((first as u32, beyond as u32))
    }

    /// A surface coordinate in the buffer, in fractions of [`Axis::unit`].
    fn position(&self, surface: i64) -> i128 {
        i128::from(self.start) * i128::from(self.destination) + i128::from(surface) * i128::from(self.source)
    }

    /// What [`Axis::position`] counts per buffer pixel.
    fn unit(&self) -> i128 {
        i128::from(self.destination) * 256
    }

    /// Whether every surface pixel is a whole number of buffer pixels.
    fn is_exact(&self) -> bool {
        self.start % 256 == 0 && self.source % (self.destination * 256) == 0
    }
}
