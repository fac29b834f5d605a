//! Letters from a seed, and the dice.

/// Cells of one size, and what is in them.
pub(crate) struct Font {
    pub(crate) seed: u64,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Font {
    /// How much ink a pixel of a letter has, of 255: strokes of a random figure inside the cell.
    pub(crate) fn covers(&self, glyph: u32) -> Vec<u32> {
        let places = (0..self.height).flat_map(|y| (0..self.width).map(move |x| (x, y)));
        places.map(|(x, y)| self.cover(glyph, x, y)).collect()
    }

    fn cover(&self, glyph: u32, x: usize, y: usize) -> u32 {
        if glyph == SPACE {
            return 0;
        }
        let mut dice = Dice(self.seed ^ u64::from(glyph) << 20);
        // A pattern of 4 × 6 blocks, six to sixteen of them inked.
        let blocks = 6 + dice.below(11);
        let pattern = (0..blocks).fold(1u32 << dice.below(24), |pattern, _| pattern | 1 << dice.below(24));
        let (left, top) = (1, self.height / 6);
        let (width, height) = (self.width - 2, self.height * 2 / 3 - 1);
        if x < left || x >= left + width || y < top || y >= top + height {
            return 0;
        }
        let block = ((y - top) * 6 / height) * 4 + (x - left) * 4 / width;
        let soft = (Dice(self.seed ^ (x * 31 + y) as u64).word() % 90) as u32;
        if pattern >> block & 1 == 1 { 255 - if (x + y).is_multiple_of(3) { soft } else { 0 } } else { 0 }
    }
}

/// The glyph of the space bar.
pub(crate) const SPACE: u32 = 1057;

/// Paper with so much ink of 255.
pub(crate) fn blend(paper: u32, ink: u32, cover: u32) -> u32 {
    let channel = |by: u32| {
        let (paper, ink) = (paper >> by & 255, ink >> by & 255);
        ((paper * (255 - cover) + ink * cover + 127) / 255) << by
    };
    channel(16) | channel(8) | channel(0)
}

/// SplitMix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound as u64) as usize
    }
}
