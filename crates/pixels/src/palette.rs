//! Few colours, by number.
//!
//! A palette numbers colours in the order in which they come. Pixels of any format are treated as
//! numbers here, nothing is known of channels.
//!
//! The one invariant: a colour has one number, and numbers are below [`MAX_COLOURS`].

/// Most colours of a palette.
pub(crate) const MAX_COLOURS: usize = 250;

/// A set of colours with their numbers.
#[derive(Clone)]
pub(crate) struct Palette {
    colours: Vec<u32>,
    /// A hash table: the colour, and above it its number + 1; 0 is free.
    slots: Box<[u64; SLOTS]>,
    /// The slots in use, by number.
    places: Vec<u16>,
}

impl Palette {
    pub(crate) fn new() -> Self {
        let (colours, places) = (Vec::with_capacity(MAX_COLOURS), Vec::with_capacity(MAX_COLOURS));
        Self { colours, slots: Box::new([0; SLOTS]), places }
    }

    pub(crate) fn clear(&mut self) {
        self.colours.clear();
        for place in self.places.drain(..) {
            self.slots[usize::from(place) % SLOTS] = 0;
        }
    }

    /// The colours by number.
    pub(crate) fn colours(&self) -> &[u32] {
        &self.colours
    }

    /// The number of a colour, which is added if it is new; `None` when there is no room for it.
    #[inline]
    pub(crate) fn number(&mut self, colour: u32) -> Option<u8> {
        let slot = slot(colour);
        let entry = self.slots[slot];
        if entry as u32 == colour && entry != 0 {
            return Some((entry >> 32) as u8 - 1);
        }
        self.search(colour, slot)
    }

    /// The number of a colour that is not in its own slot.
    #[inline(never)]
    fn search(&mut self, colour: u32, mut slot: usize) -> Option<u8> {
        while self.slots[slot] != 0 {
            if self.slots[slot] as u32 == colour {
                return Some((self.slots[slot] >> 32) as u8 - 1);
            }
            slot = (slot + 1) % SLOTS;
        }
        if self.colours.len() == MAX_COLOURS {
            return None;
        }
        self.colours.push(colour);
        self.places.push(slot as u16);
        self.slots[slot] = u64::from(colour) | (self.colours.len() as u64) << 32;
        Some((self.colours.len() - 1) as u8)
    }

    /// Numbers the pixels of a row, which is not empty, into `numbers`, which is as long. Gives how many differ from
    /// the one to the left, the first one among them; `None` when there is no room for a colour.
    pub(crate) fn number_row<const PIXEL: usize>(&mut self, row: &[u8], numbers: &mut [u8]) -> Option<usize> {
        let pixels = row.as_chunks::<PIXEL>().0;
        let mut last = !colour(&pixels[0]);
        let mut steps = 0;
        let ((blocks, rest), (targets, rest_of_targets)) =
            (pixels.as_chunks::<BLOCK>(), numbers.as_chunks_mut::<BLOCK>());
        for (block, target) in blocks.iter().zip(targets) {
            let first = colour(&block[0]);
            if block.iter().fold(0, |any, pixel| any | colour(pixel) ^ first) == 0 {
                steps += usize::from(first != last);
                *target = [self.number(first)?; BLOCK];
                last = first;
                continue;
            }
            // whether a pixel is like the one before it cannot be foretold here: looking for each is faster
            steps += self.number_each(block, target, &mut last)?;
        }
        Some(steps + self.number_each(rest, rest_of_targets, &mut last)?)
    }

    #[inline]
    fn number_each<const PIXEL: usize>(
        &mut self,
        pixels: &[[u8; PIXEL]],
        numbers: &mut [u8],
        last: &mut u32,
    ) -> Option<usize> {
        let mut steps = 0;
        for (pixel, number) in pixels.iter().zip(numbers) {
            let colour = colour(pixel);
            steps += usize::from(colour != *last);
            *last = colour;
            *number = self.number(colour)?;
        }
        Some(steps)
    }

    /// Adds all `colours` and gives their numbers; `false`, and nothing is added, when there is no room.
    pub(crate) fn join(&mut self, colours: &[u32], numbers: &mut [u8; 256]) -> bool {
        let known = self.colours.len();
        for (number, colour) in numbers.iter_mut().zip(colours) {
            let Some(joined) = self.number(*colour) else {
                self.shorten(known);
                return false;
            };
            *number = joined;
        }
        true
    }

    /// Forgets the colours from `length` on.
    fn shorten(&mut self, length: usize) {
        let kept = self.colours[..length].to_vec();
        self.clear();
        for colour in kept {
            self.number(colour);
        }
    }
}

/// Pixels as numbers, in the byte order of their format.
pub(crate) fn colours<const PIXEL: usize>(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<PIXEL>().0.iter().map(colour)
}

#[inline]
fn colour<const PIXEL: usize>(pixel: &[u8; PIXEL]) -> u32 {
    let mut colour = [0; 4];
    colour[..PIXEL].copy_from_slice(pixel);
    u32::from_le_bytes(colour)
}

/// How many of these colours are different, at least: by hashes, of which several colours may have one.
pub(crate) fn at_least(colours: impl Iterator<Item = u32>) -> usize {
    let mut seen = [0u64; SEEN / 64];
    for colour in colours {
        let hash = hash(colour, SEEN);
        seen[hash / 64] |= 1 << (hash % 64);
    }
    seen.iter().map(|bits| bits.count_ones() as usize).sum()
}

fn slot(colour: u32) -> usize {
    hash(colour, SLOTS)
}

/// A number below `count`, a power of two.
fn hash(colour: u32, count: usize) -> usize {
    (colour.wrapping_mul(0x9e37_79b1) >> (32 - count.ilog2())) as usize % count
}

/// Power of two: enough for most colours to be in their own slots.
const SLOTS: usize = 2048;

/// Power of two: so many hashes that a few hundred colours seldom share them.
const SEEN: usize = 4096;

/// Pixels that are looked at at once.
const BLOCK: usize = 8;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs of colours, few or many, that are alike or not.
    fn runs() -> impl Strategy<Value = Vec<(u32, usize)>> {
        let colour = prop_oneof![0..4u32, 0..300u32, any::<u32>(), (0..4u32).prop_map(|top| top << 24)];
        prop::collection::vec((colour, prop_oneof![1..3usize, 7..20usize]), 1..40)
    }

    /// Rows are numbered as if each colour were looked for in the list of those before it.
    fn check<const PIXEL: usize>(rows: &[Vec<(u32, usize)>]) -> Result<(), TestCaseError> {
        let mut palette = Palette::new();
        let mut known: Vec<u32> = Vec::new();
        for runs in rows {
            let pixels: Vec<[u8; 4]> =
                runs.iter().flat_map(|(colour, count)| vec![colour.to_le_bytes(); *count]).collect();
            let row: Vec<u8> = pixels.iter().flat_map(|pixel| pixel[..PIXEL].to_vec()).collect();
            let colours: Vec<u32> = colours::<PIXEL>(&row).collect();
            let mut numbers = vec![0; colours.len()];
            let steps = palette.number_row::<PIXEL>(&row, &mut numbers);

            for colour in &colours {
                if !known.contains(colour) {
                    known.push(*colour);
                }
            }
            if known.len() > MAX_COLOURS {
                prop_assert_eq!(steps, None);
                prop_assert_eq!(palette.colours(), &known[..MAX_COLOURS]);
                palette.clear();
                known.clear();
                continue;
            }
            prop_assert_eq!(palette.colours(), &known[..]);
            let by_number: Vec<u32> = numbers.iter().map(|number| known[usize::from(*number)]).collect();
            prop_assert_eq!(&by_number, &colours);
            let changes = colours.windows(2).filter(|pair| pair[0] != pair[1]).count();
            prop_assert_eq!(steps, Some(1 + changes));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn rows_are_numbered_colour_by_colour(rows in prop::collection::vec(runs(), 1..20)) {
            check::<2>(&rows)?;
            check::<4>(&rows)?;
        }

        #[test]
        fn a_sample_never_has_more_colours_than_there_are(
            colours in prop::collection::vec(prop_oneof![0..9u32, any::<u32>()], 0..600),
        ) {
            let mut different = colours.clone();
            different.sort_unstable();
            different.dedup();
            let least = at_least(colours.into_iter());
            prop_assert!(least <= different.len());
            prop_assert!(least * 3 / 2 >= different.len(), "{least} of {}", different.len());
        }
    }
}
