//! A small video for tests: soft shapes that move over a soft ground, with grain that is new in each picture.

/// Gives pictures, one after the other.
pub(crate) struct Video {
    width: u32,
    height: u32,
    time: i32,
}

impl Video {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self { width, height, time: 0 }
    }

    /// The next picture: rows of 4 bytes per pixel.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        self.time += 1;
        let mut picture = Vec::with_capacity(self.width as usize * self.height as usize * 4);
        for y in 0..self.height as i32 {
            for x in 0..self.width as i32 {
                picture.extend(self.pixel(x, y));
            }
        }
        picture
    }

    fn pixel(&self, x: i32, y: i32) -> [u8; 4] {
        let (right, down) = (x + 3 * self.time, y + self.time);
        let wave = |at: i32, length: i32| (at.rem_euclid(2 * length) - length).abs() * 255 / length;
        let seed =
            (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca6b) ^ self.time as u32;
        let grain = (seed.wrapping_mul(0xc2b2_ae35) >> 29) as i32;
        let texture = (((right * 7) ^ (down * 13)) & 7) + grain;
        let red = (wave(right, 90) + wave(down, 60)) / 3 + texture;
        let green = (wave(right + down, 120) + wave(x, 200)) / 3 + texture;
        let blue = (wave(right - down, 70) + wave(y, 100)) / 3 + texture;
        [blue as u8, green as u8, red as u8, 0]
    }
}

/// Likeness of the three colours together, in dB.
pub(crate) fn psnr(one: &[u8], other: &[u8]) -> f64 {
    let (one, other) = (one.as_chunks::<4>().0, other.as_chunks::<4>().0);
    let square = |one: &[u8; 4], other: &[u8; 4]| {
        (0..3).map(|at| u64::from(one[at].abs_diff(other[at])).pow(2)).sum::<u64>()
    };
    let sum: u64 = one.iter().zip(other).map(|(one, other)| square(one, other)).sum();
    10.0 * (255.0_f64.powi(2) * one.len() as f64 * 3.0 / sum.max(1) as f64).log10()
}
