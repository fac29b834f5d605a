//! How many pixels of a surface are how many of its units: the scale at which a program draws, whole or not.
//!
//! Plain numbers. What is laid over a surface begins and ends at whole units, for subsurfaces are placed and measured
//! in them. Invariant: in lowest terms, and neither number is 0.

use wayferry_pixels::{Rect, Size};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ratio {
    /// So many pixels …
    pub(super) pixels: u32,
    /// … are so many units.
    pub(super) units: u32,
}

impl Ratio {
    pub(super) const ONE: Self = Self { pixels: 1, units: 1 };

    /// As many pixels for as many units; `None` where units lie too seldom at the border of two pixels.
    pub(super) fn new(pixels: u32, units: u32) -> Option<Self> {
        let (mut divisor, mut rest) = (pixels, units);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        let ratio = Self { pixels: pixels.checked_div(divisor)?, units: units.checked_div(divisor)? };
        (ratio.units > 0 && (1..=COARSEST).contains(&ratio.pixels)).then_some(ratio)
    }

    /// The least rectangle around `part` that begins and ends at whole units of a surface of this size, as far as it
    /// is inside of that.
    pub(super) fn around(self, part: Rect, size: Size) -> Option<Rect> {
        let down = |side: u32| side / self.pixels * self.pixels;
        let up =
            |end: u32, side: u32| end.checked_next_multiple_of(self.pixels).unwrap_or(end).min(down(side));
        let (x, y) = (down(part.x), down(part.y));
        let (right, bottom) = (up(part.right(), size.width()), up(part.bottom(), size.height()));
        (x < right && y < bottom).then(|| Rect::new(x, y, right - x, bottom - y))
    }

    /// So many pixels in units; they are whole.
    pub(super) fn units(self, pixels: u32) -> i32 {
        (pixels / self.pixels * self.units).cast_signed()
    }

    /// So many units in pixels, to the nearest; `None` where there are not so many.
    pub(super) fn pixels(self, units: i32) -> Option<u32> {
        let pixels = (u64::try_from(units).ok()? * u64::from(self.pixels)) + u64::from(self.units / 2);
        u32::try_from(pixels / u64::from(self.units)).ok()
    }

    /// How many pixels a line of one unit is thick.
    pub(super) fn thickness(self) -> u32 {
        (self.pixels / self.units).max(1)
    }
}

/// The most pixels between two borders of pixels at which a unit begins: of scales in use, 1.25 and 1.5 have 5 and 3.
/// What is laid over a line is larger by less than twice as many.
const COARSEST: u32 = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ratio(pixels: u32, units: u32) -> Ratio {
        Ratio::new(pixels, units).expect("a ratio")
    }

    #[test]
    fn a_scale_is_in_lowest_terms_and_not_too_fine() {
        assert_eq!(ratio(1200, 800), Ratio { pixels: 3, units: 2 });
        assert_eq!(ratio(240, 120), Ratio { pixels: 2, units: 1 });
        for (pixels, units) in [(0, 0), (0, 4), (4, 0), (121, 120), (1202, 801)] {
            assert_eq!(Ratio::new(pixels, units), None, "{pixels} of {units}");
        }
    }

    #[test]
    fn places_of_programs_are_rounded_and_those_that_are_none_are_not() {
        let half = ratio(3, 2);
        assert_eq!([0, 1, 2, 3, -1, i32::MAX].map(|units| half.pixels(units)), {
            [Some(0), Some(2), Some(3), Some(5), None, Some(3_221_225_471)]
        });
        assert_eq!(ratio(32, 1).pixels(i32::MAX), None);
    }

    proptest! {
        #[test]
        fn what_is_laid_over_a_part_lies_at_whole_units_inside_of_the_surface(
            (x, y, width, height) in (0u32..4000, 0u32..4000, 1u32..2000, 1u32..64),
            (pixels, units) in (1u32..=COARSEST, 1u32..=COARSEST),
            (right, below) in (0u32..90, 0u32..90),
        ) {
            let ratio = ratio(pixels, units);
            let part = Rect::new(x, y, width, height);
            let size = Size::new(part.right() + right, part.bottom() + below).expect("a size");
            let Some(place) = ratio.around(part, size) else { return Ok(()) };
            prop_assert!(size.rect().contains(place));
            let sides = [place.x, place.y, place.width, place.height];
            prop_assert!(sides.iter().all(|side| side % ratio.pixels == 0));
            prop_assert!(sides.iter().all(|side| ratio.pixels(ratio.units(*side)) == Some(*side)));
            prop_assert!(place.width < width + 2 * ratio.pixels && place.height < height + 2 * ratio.pixels);
            let is_room = right >= ratio.pixels && below >= ratio.pixels;
            prop_assert!(place.contains(part) || !is_room, "{place:?} around {part:?}");
        }
    }
}
