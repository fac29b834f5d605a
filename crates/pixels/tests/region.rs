//! The region against a bitmap.

use proptest::prelude::*;
use wayferry_pixels::{MAX_RECTS, Rect, Region, Size};

const WIDTH: u32 = 61;
const HEIGHT: u32 = 47;

struct Bitmap(Vec<bool>);

impl Bitmap {
    fn of(rects: &[Rect]) -> Self {
        let mut bits = vec![false; (WIDTH * HEIGHT) as usize];
        for rect in rects {
            for y in rect.y..rect.bottom() {
                for x in rect.x..rect.right() {
                    bits[(y * WIDTH + x) as usize] = true;
                }
            }
        }
        Self(bits)
    }

    fn count(&self) -> u64 {
        self.0.iter().filter(|bit| **bit).count() as u64
    }

    fn holds(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(own, other)| *own || !other)
    }
}

fn rect() -> impl Strategy<Value = Rect> {
    (0..WIDTH, 0..HEIGHT, 0..WIDTH, 0..HEIGHT)
        .prop_map(|(x, y, width, height)| Rect::new(x, y, width.min(WIDTH - x), height.min(HEIGHT - y)))
}

fn check(region: &Region) -> Result<(), TestCaseError> {
    prop_assert!(region.rects().len() <= MAX_RECTS);
    prop_assert!(region.rects().iter().all(|rect| !rect.is_empty()));
    // disjoint: no pixel is counted twice
    prop_assert_eq!(region.area(), Bitmap::of(region.rects()).count());
    Ok(())
}

proptest! {
    #[test]
    fn few_rects_are_kept_exactly(rects in prop::collection::vec(rect(), 0..12)) {
        let region: Region = rects.iter().copied().collect();
        check(&region)?;
        let model = Bitmap::of(&rects);
        prop_assert!(Bitmap::of(region.rects()).0 == model.0);
        prop_assert_eq!(region.is_empty(), model.count() == 0);
    }

    #[test]
    fn a_union_is_both(a in prop::collection::vec(rect(), 0..8), b in prop::collection::vec(rect(), 0..8)) {
        let mut region: Region = a.iter().copied().collect();
        region.union(&b.iter().copied().collect());
        check(&region)?;
        prop_assert!(Bitmap::of(region.rects()).0 == Bitmap::of(&[a, b].concat()).0);
    }

    #[test]
    fn a_clip_is_what_lies_inside(
        rects in prop::collection::vec(rect(), 0..8), width in 1..WIDTH, height in 1..HEIGHT,
    ) {
        let size = Size::new(width, height).unwrap();
        let region: Region = rects.iter().copied().collect();
        let clipped = region.clip(size);
        check(&clipped)?;
        let parts: Vec<Rect> = rects.iter().filter_map(|rect| rect.intersection(size.rect())).collect();
        prop_assert!(Bitmap::of(clipped.rects()).0 == Bitmap::of(&parts).0);
        prop_assert_eq!(region.intersects(size.rect()), !clipped.is_empty());
    }

    /// Single pixels all over: more than fit, so the region gets coarser but never forgets.
    #[test]
    fn many_rects_are_bounded_and_kept(
        pixels in prop::collection::vec((0..WIDTH, 0..HEIGHT), 200..900), lines in prop::collection::vec(rect(), 0..9),
    ) {
        let mut rects: Vec<Rect> = pixels.into_iter().map(|(x, y)| Rect::new(x, y, 1, 1)).collect();
        rects.extend(lines);
        let region: Region = rects.iter().copied().collect();
        check(&region)?;
        let model = Bitmap::of(&rects);
        prop_assert!(Bitmap::of(region.rects()).holds(&model));
        let bounds = region.bounds().unwrap();
        let edges = |edge: fn(Rect) -> u32| rects.iter().filter(|rect| !rect.is_empty()).map(move |rect| edge(*rect));
        prop_assert_eq!(Some(bounds.x), edges(|rect| rect.x).min());
        prop_assert_eq!(Some(bounds.bottom()), edges(Rect::bottom).max());
    }
}

/// Sparse changes over a large surface must not become the whole surface.
#[test]
fn a_coarse_region_stays_near_its_rects() {
    let mut region = Region::new();
    for index in 0..2000 {
        region.add(Rect::new(index % 40 * 90, index / 40 * 2, 1, 1));
    }
    assert!(region.rects().len() <= MAX_RECTS);
    assert!(region.bounds().unwrap().bottom() <= 100);
    region.add(Rect::new(0, 2000, 10, 10));
    assert!(region.area() < 40 * 90 * 110);
}

#[test]
fn rects_that_overflow_are_taken_as_they_are() {
    let mut region = Region::new();
    region.add(Rect::new(5, 5, u32::MAX, u32::MAX));
    region.add(Rect::new(u32::MAX, 0, u32::MAX, 1));
    let inside = region.clip(Size::new(10, 10).unwrap());
    assert_eq!(inside.rects(), [Rect::new(5, 5, 5, 5)]);
}
