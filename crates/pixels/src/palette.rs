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
}

impl Palette {
    pub(crate) fn new() -> Self {
        Self { colours: Vec::with_capacity(MAX_COLOURS), slots: Box::new([0; SLOTS]) }
    }

    pub(crate) fn clear(&mut self) {
        self.colours.clear();
        self.slots.fill(0);
    }

    /// The colours by number.
    pub(crate) fn colours(&self) -> &[u32] {
        &self.colours
    }

    /// The number of a colour, which is added if it is new; `None` when there is no room for it.
    pub(crate) fn number(&mut self, colour: u32) -> Option<u8> {
        let mut slot = (colour.wrapping_mul(0x9e37_79b1) >> (32 - SLOTS.ilog2())) as usize;
        loop {
            let entry = self.slots[slot % SLOTS];
            if entry == 0 {
                break;
            }
            if entry as u32 == colour {
                return Some(((entry >> 32) - 1) as u8);
            }
            slot += 1;
        }
        if self.colours.len() == MAX_COLOURS {
            return None;
        }
        self.colours.push(colour);
        self.slots[slot % SLOTS] = u64::from(colour) | (self.colours.len() as u64) << 32;
        Some((self.colours.len() - 1) as u8)
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
    bytes.as_chunks::<PIXEL>().0.iter().map(|pixel| {
        let mut colour = [0; 4];
        colour[..PIXEL].copy_from_slice(pixel);
        u32::from_le_bytes(colour)
    })
}

/// Power of two; at most half are in use.
const SLOTS: usize = 512;
