//! Whole-number rectangles of the compositor, in the space that the field that holds them names.

/// A rectangle; empty when a side is not positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
}

impl Rect {
    /// The rectangle at (x, y) of the given size.
    pub fn new(x: i32, y: i32, width: i32, height: i32) -> Rect {
        Rect { x, y, width, height }
    }

    /// Whether it covers no pixel.
    pub fn is_empty(&self) -> bool {
        self.width <= 0 || self.height <= 0
    }

    /// Whether the point is inside.
    pub fn contains(&self, x: f64, y: f64) -> bool {
        x >= f64::from(self.x)
            && y >= f64::from(self.y)
            && x < f64::from(self.x) + f64::from(self.width)
            && y < f64::from(self.y) + f64::from(self.height)
    }

    /// What both cover.
    pub fn intersect(&self, other: &Rect) -> Rect {
        let left = self.x.max(other.x);
        let top = self.y.max(other.y);
        let right = self.right().min(other.right());
        let bottom = self.bottom().min(other.bottom());
        Rect::new(left, top, right.saturating_sub(left).max(0), bottom.saturating_sub(top).max(0))
    }

    /// The smallest rectangle around both; an empty one counts for nothing.
    pub fn union(&self, other: &Rect) -> Rect {
        if self.is_empty() {
            return *other;
        }
        if other.is_empty() {
            return *self;
        }
        let left = self.x.min(other.x);
        let top = self.y.min(other.y);
        let right = self.right().max(other.right());
        let bottom = self.bottom().max(other.bottom());
        Rect::new(left, top, right.saturating_sub(left), bottom.saturating_sub(top))
    }

    pub(crate) fn scaled(&self, factor: i32) -> Rect {
        Rect::new(
            self.x.saturating_mul(factor),
            self.y.saturating_mul(factor),
            self.width.saturating_mul(factor),
            self.height.saturating_mul(factor),
        )
    }

    fn right(&self) -> i32 {
        self.x.saturating_add(self.width)
    }

    fn bottom(&self) -> i32 {
        self.y.saturating_add(self.height)
    }
}
