//! A bounded set of disjoint rectangles.
//!
//! Holds damage and changes. It never forgets a pixel that was added; when it would need more than
//! [`MAX_RECTS`] rectangles it holds somewhat more instead. No subtraction is offered: damage only
//! ever grows until it is taken.
//!
//! The one invariant: rectangles are never empty and never overlap.

use crate::geometry::{Rect, Size};

/// Most rectangles a region holds.
pub const MAX_RECTS: usize = 256;

/// A set of pixels, as disjoint rectangles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    rects: Vec<Rect>,
}

impl Region {
    /// The empty region.
    pub const fn new() -> Self {
        Self { rects: Vec::new() }
    }

    /// Everything inside `size`.
    pub fn full(size: Size) -> Self {
        Self { rects: vec![size.rect()] }
    }

    /// Adds the pixels of `rect`.
    pub fn add(&mut self, rect: Rect) {
        if rect.is_empty() || self.rects.iter().any(|old| old.contains(rect)) {
            return;
        }
        self.rects.retain(|old| !rect.contains(*old));
        let mut pieces = vec![rect];
        for old in &self.rects {
            if old.intersects(rect) {
                pieces = pieces.into_iter().flat_map(|piece| piece.without(*old)).collect();
            }
        }
        for piece in pieces {
            self.insert(piece);
        }
        if self.rects.len() > MAX_RECTS {
            *self = Self::coarse(&self.rects);
        }
    }

    /// Adds the pixels of `other`.
    pub fn union(&mut self, other: &Self) {
        for rect in &other.rects {
            self.add(*rect);
        }
    }

    /// The rectangles: disjoint, none empty, in no order that means anything.
    pub fn rects(&self) -> &[Rect] {
        &self.rects
    }

    /// Whether no pixel is inside.
    pub fn is_empty(&self) -> bool {
        self.rects.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.rects.clear();
    }

    /// The smallest rectangle around everything; `None` when empty.
    pub fn bounds(&self) -> Option<Rect> {
        self.rects.iter().copied().reduce(Rect::bounding)
    }

    /// Pixels inside.
    pub fn area(&self) -> u64 {
        self.rects.iter().map(|rect| rect.area()).sum()
    }

    /// Whether a pixel of `rect` is inside.
    pub fn intersects(&self, rect: Rect) -> bool {
        self.rects.iter().any(|own| own.intersects(rect))
    }

    /// What lies inside `size`.
    pub fn clip(&self, size: Size) -> Self {
        Self { rects: self.rects.iter().filter_map(|rect| rect.intersection(size.rect())).collect() }
    }

    /// A region that holds all of `rects`, which may overlap; beyond [`MAX_RECTS`] of them it is
    /// coarser than they are.
    pub(crate) fn around(rects: &[Rect]) -> Self {
        if rects.len() > MAX_RECTS { Self::coarse(rects) } else { rects.iter().copied().collect() }
    }

    /// Lays a grid over the bounds and keeps, per cell, the bounding box of what is in it. At most
    /// half of [`MAX_RECTS`] remain, so that a region that grows is coarsened rarely.
    fn coarse(rects: &[Rect]) -> Self {
        let Some(bounds) = rects.iter().copied().reduce(Rect::bounding) else { return Self::new() };
        let (cell_width, cell_height) =
            (bounds.width.div_ceil(COARSE_COLUMNS), bounds.height.div_ceil(COARSE_ROWS));
        let mut boxes = [None; (COARSE_COLUMNS * COARSE_ROWS) as usize];
        for rect in rects.iter().filter(|rect| !rect.is_empty()) {
            for row in (rect.y - bounds.y) / cell_height..=(rect.bottom() - 1 - bounds.y) / cell_height {
                for column in (rect.x - bounds.x) / cell_width..=(rect.right() - 1 - bounds.x) / cell_width {
                    let (x, y) = (bounds.x + column * cell_width, bounds.y + row * cell_height);
                    let part = rect.intersection(Rect::new(x, y, cell_width, cell_height));
                    let slot: &mut Option<Rect> = &mut boxes[(row * COARSE_COLUMNS + column) as usize];
                    *slot = part.into_iter().chain(*slot).reduce(Rect::bounding);
                }
            }
        }
        let mut region = Self::new();
        for rect in boxes.into_iter().flatten() {
            region.insert(rect);
        }
        region
    }

    /// Adds a rectangle that overlaps none, joined with neighbours that share a whole edge.
    fn insert(&mut self, mut rect: Rect) {
        while let Some(index) = self.rects.iter().position(|own| share_edge(*own, rect)) {
            rect = rect.bounding(self.rects.swap_remove(index));
        }
        self.rects.push(rect);
    }
}

impl From<Rect> for Region {
    fn from(rect: Rect) -> Self {
        [rect].into_iter().collect()
    }
}

impl Extend<Rect> for Region {
    fn extend<I: IntoIterator<Item = Rect>>(&mut self, rects: I) {
        for rect in rects {
            self.add(rect);
        }
    }
}

impl FromIterator<Rect> for Region {
    fn from_iter<I: IntoIterator<Item = Rect>>(rects: I) -> Self {
        let mut region = Self::new();
        region.extend(rects);
        region
    }
}

fn share_edge(a: Rect, b: Rect) -> bool {
    let same_columns = a.x == b.x && a.width == b.width;
    let same_rows = a.y == b.y && a.height == b.height;
    (same_columns && (a.bottom() == b.y || b.bottom() == a.y))
        || (same_rows && (a.right() == b.x || b.right() == a.x))
}

const COARSE_COLUMNS: u32 = 8;
const COARSE_ROWS: u32 = 16;
