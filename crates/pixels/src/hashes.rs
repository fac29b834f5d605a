//! Hashes of rows of tiles, kept from one search for what has scrolled to the next.
//!
//! What the one finds new is what the other finds old, so each row is hashed once. This does not hash, and does not see
//! what changes: the search says of every row that has changed since the last time what it is now, or that it is not
//! known.
//!
//! The one invariant: a hash is that of the row in the content of the last update, or unknown. One that is wrong makes
//! a search find less or something useless, never a wrong update.

use crate::geometry::Size;
use crate::tiles;

/// Hashes of the rows of a content of one size, by column of tiles.
#[derive(Default)]
pub(crate) struct Hashes {
    /// By column of tiles, then by row of pixels; 0 where it is not known. Empty until the first is set.
    rows: Vec<u64>,
    height: usize,
}

impl Hashes {
    /// Nothing is known.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// The hash of row `y` of a column of tiles, if it is known.
    pub(crate) fn get(&self, column: u32, y: u32) -> Option<u64> {
        self.rows.get(column as usize * self.height + y as usize).copied().filter(|hash| *hash != UNKNOWN)
    }

    /// The hashes of the rows of a column of tiles from `top` on, in a content of this size.
    pub(crate) fn set(&mut self, size: Size, column: u32, top: u32, hashes: &[u64]) {
        if self.rows.is_empty() {
            self.height = size.height as usize;
            self.rows.resize(tiles::columns(size) as usize * self.height, UNKNOWN);
        }
        self.rows[column as usize * self.height + top as usize..][..hashes.len()].copy_from_slice(hashes);
    }

    /// Nothing is known of a column of tiles.
    pub(crate) fn forget(&mut self, column: u32) {
        let rows = self.rows.get_mut(column as usize * self.height..).unwrap_or_default();
        rows.iter_mut().take(self.height).for_each(|hash| *hash = UNKNOWN);
    }
}

/// A row that has this hash is hashed each time.
const UNKNOWN: u64 = 0;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::content::Layout;
    use crate::draft::Draft;
    use crate::encode::{Compression, Encoder};
    use crate::format::Format;
    use crate::geometry::Rect;
    use crate::region::Region;
    use crate::scroll;

    const SIDES: (u32, u32) = (640, 400);

    #[derive(Clone, Debug)]
    enum Step {
        /// Part of the picture moves by so many rows.
        Scroll(Rect, i32),
        /// All of it becomes noise.
        Noise(u8),
        Paint(Rect, u8),
        Encode,
        TakeBack,
        Renew,
    }

    fn rect() -> impl Strategy<Value = Rect> {
        let part = (0..SIDES.0 / 2, 0..SIDES.1 / 2, 1..=SIDES.0 / 2, 1..=SIDES.1 / 2);
        let part = part.prop_map(|(x, y, width, height)| Rect::new(x, y, width, height));
        prop_oneof![part, Just(Rect::new(0, 0, SIDES.0, SIDES.1))]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (rect(), -50..50i32).prop_map(|(rect, distance)| Step::Scroll(rect, distance)),
            1 => any::<u8>().prop_map(Step::Noise),
            2 => (rect(), any::<u8>()).prop_map(|(rect, value)| Step::Paint(rect, value)),
            8 => Just(Step::Encode),
            1 => Just(Step::TakeBack),
            1 => Just(Step::Renew),
        ]
    }

    /// A picture of 4 bytes a pixel.
    struct Picture(Vec<u8>);

    impl Picture {
        fn row(rect: Rect, y: u32) -> std::ops::Range<usize> {
            let start = (y * SIDES.0 + rect.x) as usize * 4;
            start..start + rect.width as usize * 4
        }

        fn scroll(&mut self, rect: Rect, distance: i32) {
            let before = self.0.clone();
            for y in rect.y..rect.bottom() {
                let from = y.checked_add_signed(-distance);
                if let Some(from) = from.filter(|from| (rect.y..rect.bottom()).contains(from)) {
                    self.0[Self::row(rect, y)].copy_from_slice(&before[Self::row(rect, from)]);
                }
            }
        }

        fn noise(&mut self, salt: u8) {
            let mut seed = u64::from(salt);
            for byte in &mut self.0 {
                seed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                *byte = (seed >> 56) as u8;
            }
        }
    }

    /// Whether the hashes are those of the content of the last update.
    fn right(draft: &Draft) -> bool {
        let Some(past) = draft.past() else { return true };
        let mut rows = (0..tiles::columns(draft.content().size()))
            .flat_map(|column| (0..SIDES.1).map(move |y| (column, y)));
        rows.all(|(column, y)| {
            let known = draft.hashes.get(column, y);
            known.is_none_or(|hash| hash == scroll::hash(past.piece(column, y)))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn what_is_known_is_right(steps in prop::collection::vec(step(), 1..40)) {
            let size = Size::new(SIDES.0, SIDES.1).unwrap();
            let layout = Layout::new(0, u64::from(SIDES.0) * 4, size, Format::Argb8888).unwrap();
            let (mut draft, mut encoder) = (Draft::new(size, Format::Argb8888), Encoder::new(Compression::Zstd(1)));
            let mut picture = Picture(vec![0; (SIDES.0 * SIDES.1 * 4) as usize]);
            for step in steps {
                match step {
                    Step::Scroll(rect, distance) => picture.scroll(rect, distance),
                    Step::Noise(salt) => picture.noise(salt),
                    Step::Paint(rect, value) => {
                        (rect.y..rect.bottom()).for_each(|y| picture.0[Picture::row(rect, y)].fill(value));
                    }
                    Step::TakeBack => _ = draft.take_back(),
                    Step::Renew => draft.renew(),
                    Step::Encode => {
                        prop_assert!(right(&draft));
                        encoder.encode(&mut draft);
                        prop_assert!(right(&draft));
                    }
                }
                let read = |offset: u64, target: &mut [u8]| {
                    target.copy_from_slice(&picture.0[offset as usize..][..target.len()]);
                    Ok::<(), Infallible>(())
                };
                draft.absorb(&layout, &Region::full(size), read).unwrap();
            }
        }
    }

    #[test]
    fn what_was_hashed_is_known_the_next_time() {
        let mut hashes = Hashes::default();
        let size = Size::new(130, 70).unwrap();
        assert_eq!(hashes.get(2, 69), None);
        hashes.set(size, 2, 68, &[7, 8]);
        hashes.set(size, 1, 0, &[9]);
        assert_eq!(
            [(2, 68), (2, 69), (1, 0), (1, 1)].map(|(column, y)| hashes.get(column, y)),
            [Some(7), Some(8), Some(9), None]
        );
        hashes.forget(2);
        assert_eq!((hashes.get(2, 69), hashes.get(1, 0)), (None, Some(9)));
        hashes.clear();
        assert_eq!(hashes.get(1, 0), None);
        hashes.forget(1);
    }
}
