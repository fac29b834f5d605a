//! Sizes and rectangles in buffer pixels.
//!
//! A [`Size`] is always within the limits; a [`Rect`] is plain data and is checked or clipped where
//! it meets a size.

use crate::error::Error;

/// Longest side of a surface, in pixels.
pub const MAX_SIDE: u32 = 16_384;

/// Most pixels of a surface: 8192 × 8192, which is 256 MiB of content.
pub const MAX_PIXELS: u64 = 1 << 26;

/// Size of a buffer in pixels, within 1 × 1 and the limits [`MAX_SIDE`] and [`MAX_PIXELS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Size {
    /// Checks the limits; [`Error::Size`] beyond them.
    pub fn new(width: u32, height: u32) -> Result<Self, Error> {
        let side = 1..=MAX_SIDE;
        if !side.contains(&width)
            || !side.contains(&height)
            || u64::from(width) * u64::from(height) > MAX_PIXELS
        {
            return Err(Error::Size { width, height });
        }
        Ok(Self { width, height })
    }

    /// Pixels in a row.
    pub fn width(self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(self) -> u32 {
        self.height
    }

    /// The rectangle that covers everything.
    pub fn rect(self) -> Rect {
        Rect { x: 0, y: 0, width: self.width, height: self.height }
    }
}

/// A rectangle in buffer pixels; nothing is in it when a side is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rect {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Rect {
    /// A rectangle from its corner and its size.
    pub const fn new(x: u32, y: u32, width: u32, height: u32) -> Self {
        Self { x, y, width, height }
    }

    /// The part inside `size` of a rectangle as programs give it: any corner, any size, even such
    /// that overflow. `None` if nothing is inside.
    pub fn clipped(x: i32, y: i32, width: i32, height: i32, size: Size) -> Option<Self> {
        let (left, right) = clip_span(x, width, size.width)?;
        let (top, bottom) = clip_span(y, height, size.height)?;
        Some(Self::between(left, top, right, bottom))
    }

    /// First column beyond the rectangle.
    pub fn right(self) -> u32 {
        self.x.saturating_add(self.width)
    }

    /// First row beyond the rectangle.
    pub fn bottom(self) -> u32 {
        self.y.saturating_add(self.height)
    }

    /// Pixels inside.
    pub fn area(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Whether nothing is inside.
    pub fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Whether all of `other` is inside.
    pub fn contains(self, other: Self) -> bool {
        self.x <= other.x
            && self.y <= other.y
            && self.right() >= other.right()
            && self.bottom() >= other.bottom()
    }

    /// Whether the two share a pixel.
    pub fn intersects(self, other: Self) -> bool {
        self.intersection(other).is_some()
    }

    /// What both hold, if anything.
    pub fn intersection(self, other: Self) -> Option<Self> {
        let (left, right) = (self.x.max(other.x), self.right().min(other.right()));
        let (top, bottom) = (self.y.max(other.y), self.bottom().min(other.bottom()));
        (left < right && top < bottom).then(|| Self::between(left, top, right, bottom))
    }

    /// The smallest rectangle around both; neither may be empty.
    pub(crate) fn bounding(self, other: Self) -> Self {
        Self::between(
            self.x.min(other.x),
            self.y.min(other.y),
            self.right().max(other.right()),
            self.bottom().max(other.bottom()),
        )
    }

    /// The rectangle from `left`, `top` up to but not including `right`, `bottom`.
    pub(crate) fn between(left: u32, top: u32, right: u32, bottom: u32) -> Self {
        Self { x: left, y: top, width: right - left, height: bottom - top }
    }

    /// What is left without `hole`: up to four disjoint rectangles, full-width strips first.
    pub(crate) fn without(self, hole: Self) -> impl Iterator<Item = Self> {
        let parts = match self.intersection(hole) {
            None => [self, Self::default(), Self::default(), Self::default()],
            Some(cut) => [
                Self::between(self.x, self.y, self.right(), cut.y),
                Self::between(self.x, cut.bottom(), self.right(), self.bottom()),
                Self::between(self.x, cut.y, cut.x, cut.bottom()),
                Self::between(cut.right(), cut.y, self.right(), cut.bottom()),
            ],
        };
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

fn clip_span(start: i32, length: i32, limit: u32) -> Option<(u32, u32)> {
    let end = (i64::from(start) + i64::from(length)).min(i64::from(limit));
    let start = i64::from(start).max(0);
    (start < end).then_some((start as u32, end as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_limited() {
        assert!(Size::new(1, 1).is_ok());
        assert!(Size::new(MAX_SIDE, 4096).is_ok());
        for (width, height) in [(0, 1), (1, 0), (MAX_SIDE + 1, 1), (MAX_SIDE, 4097), (u32::MAX, u32::MAX)] {
            assert_eq!(Size::new(width, height), Err(Error::Size { width, height }));
        }
    }

    #[test]
    fn extreme_damage_is_clipped() {
        let size = Size::new(10, 20).unwrap();
        assert_eq!(Rect::clipped(0, 0, i32::MAX, i32::MAX, size), Some(size.rect()));
        assert_eq!(Rect::clipped(i32::MIN, -5, i32::MAX, 6, size), None);
        assert_eq!(Rect::clipped(-5, -5, 6, 7, size), Some(Rect::new(0, 0, 1, 2)));
        assert_eq!(Rect::clipped(i32::MAX, 0, i32::MAX, 1, size), None);
        assert_eq!(Rect::clipped(3, 3, -1, 5, size), None);
        assert_eq!(Rect::clipped(9, 19, 5, 5, size), Some(Rect::new(9, 19, 1, 1)));
    }

    #[test]
    fn a_hole_in_the_middle_leaves_four_parts() {
        let whole = Rect::new(0, 0, 10, 10);
        let parts: Vec<Rect> = whole.without(Rect::new(3, 3, 4, 4)).collect();
        assert_eq!(parts.len(), 4);
        assert_eq!(parts.iter().map(|part| part.area()).sum::<u64>(), 100 - 16);
        assert_eq!(whole.without(whole).count(), 0);
        assert_eq!(whole.without(Rect::new(10, 0, 1, 1)).collect::<Vec<_>>(), [whole]);
    }
}
