//! What of a frame has changed, in at most [`MAX_RECTS`] rectangles.

/// A rectangle, in pixels of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rect {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

impl Rect {
    /// All of a surface of any size.
    pub(crate) const ALL: Self = Self { x: 0, y: 0, width: i32::MAX, height: i32::MAX };

    fn union(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = self.x.saturating_add(self.width).max(other.x.saturating_add(other.width));
        let bottom = self.y.saturating_add(self.height).max(other.y.saturating_add(other.height));
        Self { x, y, width: right.saturating_sub(x), height: bottom.saturating_sub(y) }
    }
}

/// Damage that gathers until it is taken. All counts as changed at first.
#[derive(Debug)]
pub(crate) struct Damage {
    rects: Vec<Rect>,
}

impl Default for Damage {
    fn default() -> Self {
        Self { rects: vec![Rect::ALL] }
    }
}

impl Damage {
    /// Adds a rectangle; above the limit all of them become the one that holds them.
    pub(crate) fn add(&mut self, rect: Rect) {
        if self.rects.first() == Some(&Rect::ALL) {
            return;
        }
        self.rects.push(rect);
        if self.rects.len() > MAX_RECTS {
            let all = self.rects.drain(..).reduce(Rect::union);
            self.rects.extend(all);
        }
    }

    /// All has changed.
    pub(crate) fn all(&mut self) {
        self.rects = vec![Rect::ALL];
    }

    /// What has changed since this was called last.
    pub(crate) fn take(&mut self) -> Vec<Rect> {
        std::mem::take(&mut self.rects)
    }
}

/// Rectangles that are kept apart.
const MAX_RECTS: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_has_changed_is_told(rects in prop::collection::vec((0..500, 0..500, 1..50, 1..50), 0..200)) {
            let mut damage = Damage::default();
            damage.take();
            for &(x, y, width, height) in &rects {
                damage.add(Rect { x, y, width, height });
            }
            let told = damage.take();
            prop_assert!(told.len() <= MAX_RECTS);
            for (x, y, width, height) in rects {
                let holds = |of: &Rect| {
                    of.x <= x && of.y <= y && of.x + of.width >= x + width && of.y + of.height >= y + height
                };
                prop_assert!(told.iter().any(holds));
            }
        }
    }
}
