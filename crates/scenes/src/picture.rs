//! Photographs that no camera took: soft light, hard edges, texture, and the grain of a sensor.
//!
//! They are made for coders, not for eyes: brightness varies more than colour, neighbouring pixels are alike, and the
//! grain is such that a lossless coder with gradient prediction needs about 0.75 bytes per pixel (a test measures it).
//! Invariant: only sums, products and divisions of floats are used, so that every machine rounds alike.

use crate::canvas::{Canvas, Color};
use crate::random::Random;

/// A photograph.
pub fn photograph(width: u32, height: u32, seed: u64) -> Canvas {
    expose(width, height, &Random::new(seed), true)
}

/// The same without grain: what a video's frames have in common.
pub(crate) fn clean(width: u32, height: u32, random: &Random) -> Canvas {
    expose(width, height, random, false)
}

fn expose(width: u32, height: u32, random: &Random, grain: bool) -> Canvas {
    let fields = Fields::new(width, height, random);
    let mut canvas = Canvas::new(width, height, Color(0, 0, 0));
    let mut noise = random.fork(0x9a1);
    let rows = canvas.pixels_mut().chunks_exact_mut(width as usize);
    for (y, row) in rows.enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            let (light, red, blue) = fields.at(x, y);
            let (shared, red_grain, blue_grain) = if grain { grains(&mut noise) } else { (0.0, 0.0, 0.0) };
            let green = light + shared;
            let byte = |value: f32| value.round().clamp(0.0, 255.0) as u8;
            *pixel =
                Color(byte(green + red + red_grain), byte(green), byte(green + blue + blue_grain)).pixel();
        }
    }
    canvas
}

/// What a sensor adds: most of it to all colours alike.
fn grains(noise: &mut Random) -> (f32, f32, f32) {
    let bits = noise.bits();
    let part = |shift: u32| ((bits >> shift) & 0xff) as f32 / 255.0;
    // Sums of equal chances lie about the middle more often than at the ends.
    let bell = |shift: u32| part(shift) + part(shift + 8) + part(shift + 16) - 1.5;
    (bell(0) * GRAIN, bell(24) * COLOR_GRAIN, (part(48) + part(56) - 1.0) * COLOR_GRAIN)
}

/// Brightness and the two differences of colour, as lattices of several sizes.
struct Fields {
    light: Vec<(Lattice, f32)>,
    red: Lattice,
    blue: Lattice,
    things: Vec<Thing>,
}

/// Something with an outline, of its own brightness and colour.
struct Thing {
    x: f32,
    y: f32,
    /// One over the squares of its half axes.
    wide: f32,
    high: f32,
    light: f32,
    color: f32,
}

impl Fields {
    fn new(width: u32, height: u32, random: &Random) -> Self {
        let lattice = |label, cell| Lattice::new(width, height, cell, &mut random.fork(label));
        let mut chance = random.fork(0x7419);
        let things = (0..24).map(|_| Thing::new(width, height, &mut chance)).collect();
        let light = [(400, 110.0), (120, 50.0), (36, 20.0), (11, 9.0), (4, TEXTURE)];
        let light =
            light.into_iter().map(|(cell, weight)| (lattice(u64::from(cell), cell), weight)).collect();
        Self { light, red: lattice(0x4ed, 160), blue: lattice(0xb1e, 210), things }
    }

    fn at(&self, x: usize, y: usize) -> (f32, f32, f32) {
        let mut light: f32 =
            128.0 + self.light.iter().map(|(lattice, weight)| (lattice.at(x, y) - 0.5) * weight).sum::<f32>();
        let mut red = (self.red.at(x, y) - 0.5) * 70.0;
        let mut blue = (self.blue.at(x, y) - 0.5) * 70.0;
        for thing in self.things.iter().filter(|thing| thing.covers(x as f32, y as f32)) {
            light = light * 0.6 + thing.light;
            (red, blue) = (red * 0.5 + thing.color, blue * 0.5 - thing.color);
        }
        (light, red, blue)
    }
}

impl Thing {
    fn new(width: u32, height: u32, chance: &mut Random) -> Self {
        let mut axis = || {
            let half = (0.02 + 0.1 * chance.unit()) * width.min(height) as f32;
            1.0 / (half * half)
        };
        let (wide, high) = (axis(), axis());
        let (x, y) = (chance.unit() * width as f32, chance.unit() * height as f32);
        Self { x, y, wide, high, light: 100.0 * chance.unit(), color: 60.0 * (chance.unit() - 0.5) }
    }

    fn covers(&self, x: f32, y: f32) -> bool {
        let (x, y) = (x - self.x, y - self.y);
        x * x * self.wide + y * y * self.high < 1.0
    }
}

/// Values of chance at the corners of cells, and soft passages between them.
struct Lattice {
    columns: usize,
    values: Vec<f32>,
    /// For each column and row of the picture: the cell, and how far into it.
    x: Vec<(usize, f32)>,
    y: Vec<(usize, f32)>,
}

impl Lattice {
    fn new(width: u32, height: u32, cell: u32, random: &mut Random) -> Self {
        let (columns, rows) = ((width / cell + 2) as usize, (height / cell + 2) as usize);
        let places = |length: u32| {
            (0..length).map(|at| {
                let share = (at % cell) as f32 / cell as f32;
                ((at / cell) as usize, share * share * (3.0 - 2.0 * share))
            })
        };
        let values = (0..columns * rows).map(|_| random.unit()).collect();
        Self { columns, values, x: places(width).collect(), y: places(height).collect() }
    }

    fn at(&self, x: usize, y: usize) -> f32 {
        let ((column, right), (row, down)) = (self.x[x], self.y[y]);
        let above = row * self.columns + column;
        let mix = |index: usize| self.values[index] + (self.values[index + 1] - self.values[index]) * right;
        let (above, below) = (mix(above), mix(above + self.columns));
        above + (below - above) * down
    }
}

/// Levels of grain that all colours share, and that each has for itself; half the whole range.
const GRAIN: f32 = 0.7;
const COLOR_GRAIN: f32 = 0.28;

/// Levels of brightness between neighbours of the finest texture.
const TEXTURE: f32 = 1.8;
