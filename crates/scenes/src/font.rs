//! Fonts of 16 levels of coverage, made from strokes.
//!
//! A glyph is a stem and a few more strokes between points of a small grid, drawn by the distance of each pixel from
//! them. Glyphs cannot be read; they have the ink, the edges and the repetition of letters. Invariant: the same glyph
//! of a font gives the same pixels wherever it stands.

use crate::canvas::{Canvas, Color};
use crate::random::Random;

/// How many glyphs a font has: letters of both cases, digits, signs.
pub(crate) const GLYPHS: u8 = 74;
/// The first capital.
pub(crate) const CAPITALS: u8 = 26;
/// The digit 0.
pub(crate) const DIGITS: u8 = 52;
/// The first sign.
pub(crate) const SIGNS: u8 = 62;

/// See the module.
#[derive(Debug)]
pub(crate) struct Font {
    /// Width of a blank, and of all glyphs of a monospaced font.
    blank: u32,
    glyphs: Vec<Glyph>,
}

#[derive(Debug)]
struct Glyph {
    width: u32,
    /// Coverage from 0 to 15, row by row.
    levels: Vec<u8>,
}

impl Font {
    /// A font whose glyphs all have the same width, strokes `weight` pixels wide.
    pub(crate) fn monospaced(width: u32, height: u32, weight: f32, random: &Random) -> Self {
        let glyph = |index| Glyph::new(width, height, weight, index, random);
        Self { blank: width, glyphs: (0..GLYPHS).map(glyph).collect() }
    }

    /// A font whose glyphs are as wide as they need.
    pub(crate) fn proportional(height: u32, weight: f32, random: &Random) -> Self {
        let width = |index: u8| {
            let wide = random.fork(0x1d00 + u64::from(index)).between(0, height / 6);
            if index < CAPITALS { height / 3 + wide } else { height * 2 / 5 + wide }
        };
        let glyph = |index| Glyph::new(width(index), height, weight, index, random);
        Self { blank: height / 4, glyphs: (0..GLYPHS).map(glyph).collect() }
    }

    /// Width of a blank.
    pub(crate) fn blank(&self) -> u32 {
        self.blank
    }

    /// How wide these glyphs are together.
    pub(crate) fn width(&self, glyphs: &[u8]) -> u32 {
        glyphs.iter().filter_map(|index| self.glyphs.get(usize::from(*index))).map(|glyph| glyph.width).sum()
    }

    /// Draws glyphs beside each other, the first one's box at (x, y); gives the column behind the last.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x: i32, y: i32, glyphs: &[u8], color: Color) -> i32 {
        let mut x = x;
        for glyph in glyphs.iter().filter_map(|index| self.glyphs.get(usize::from(*index))) {
            glyph.draw(canvas, x, y, color);
            x += glyph.width as i32;
        }
        x
    }
}

impl Glyph {
    fn new(width: u32, height: u32, weight: f32, index: u8, random: &Random) -> Self {
        let strokes = strokes(index, &mut random.fork(u64::from(index)));
        let (wide, high) = (width as f32, height as f32);
        let place = |(column, row): (f32, f32)| ((0.16 + 0.68 * column) * wide, (0.14 + 0.72 * row) * high);
        let placed: Vec<_> = strokes.into_iter().map(|(from, to)| (place(from), place(to))).collect();
        let level = |x: u32, y: u32| {
            let point = (x as f32 + 0.5, y as f32 + 0.5);
            let nearest =
                placed.iter().map(|(from, to)| distance(point, *from, *to)).fold(f32::MAX, f32::min);
            (15.0 * (weight / 2.0 + 0.5 - nearest).clamp(0.0, 1.0)).round() as u8
        };
        Self {
            width,
            levels: (0..height)
                .flat_map(|y| (0..width).map(move |x| (x, y)))
                .map(|(x, y)| level(x, y))
                .collect(),
        }
    }

    fn draw(&self, canvas: &mut Canvas, x: i32, y: i32, color: Color) {
        for (row, levels) in (y..).zip(self.levels.chunks_exact(self.width as usize)) {
            for (column, level) in (x..).zip(levels).filter(|(_, level)| **level > 0) {
                canvas.blend(column, row, color, level * 17);
            }
        }
    }
}

/// The strokes of a glyph between points of the unit square.
fn strokes(index: u8, random: &mut Random) -> Vec<((f32, f32), (f32, f32))> {
    // Small letters reach from a third of the height to the foot of the line, some up or down.
    let (top, foot) = match index {
        0..CAPITALS => {
            ([0.3, 0.3, 0.3, 0.0][random.below(4) as usize], [0.8, 0.8, 0.8, 1.0][random.below(4) as usize])
        }
        SIGNS.. => (0.5, 0.9),
        _ => (0.0, 0.8),
    };
    let at = |column: u32, row: u32| (column as f32 / 2.0, top + (foot - top) * row as f32 / 2.0);
    if index >= SIGNS {
        let row = random.below(3);
        return vec![(at(random.below(2), row), at(1 + random.below(2), random.between(row, 2)))];
    }
    let stem = 2 * random.below(2);
    let mut strokes = vec![(at(stem, 0), at(stem, 2))];
    for _ in 0..random.between(1, 3) {
        let row = random.below(3);
        strokes.push(match random.below(5) {
            0..3 => (at(0, row), at(2, row)),
            3 => (at(2 - stem, random.below(2)), at(2 - stem, 2)),
            _ => (at(stem, row), at(2 - stem, 2 - row)),
        });
    }
    strokes
}

/// From a point to the nearest one between two others.
fn distance(point: (f32, f32), from: (f32, f32), to: (f32, f32)) -> f32 {
    let (along, off) = ((to.0 - from.0, to.1 - from.1), (point.0 - from.0, point.1 - from.1));
    let length = along.0 * along.0 + along.1 * along.1;
    let share =
        if length > 0.0 { ((off.0 * along.0 + off.1 * along.1) / length).clamp(0.0, 1.0) } else { 0.0 };
    let (x, y) = (off.0 - share * along.0, off.1 - share * along.1);
    (x * x + y * y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_have_soft_edges_and_differ() {
        let font = Font::monospaced(10, 20, 1.6, &Random::new(1));
        let mut levels: Vec<u8> = font.glyphs.iter().flat_map(|glyph| glyph.levels.clone()).collect();
        levels.sort_unstable();
        levels.dedup();
        assert_eq!(levels, (0..16).collect::<Vec<u8>>());
        let same = |one: &Glyph, two: &Glyph| one.levels == two.levels;
        let pairs = font
            .glyphs
            .iter()
            .enumerate()
            .flat_map(|(at, one)| font.glyphs[..at].iter().map(move |two| (one, two)));
        assert!(pairs.filter(|(one, two)| same(one, two)).count() < 60);
    }

    #[test]
    fn a_glyph_looks_the_same_everywhere() {
        let font = Font::proportional(18, 1.4, &Random::new(2));
        let (black, white) = (Color(0, 0, 0), Color(255, 255, 255));
        let mut canvas = Canvas::new(80, 60, black);
        let end = font.draw(&mut canvas, 3, 5, &[7], white);
        assert_eq!(end as u32, 3 + font.width(&[7]));
        font.draw(&mut canvas, 43, 35, &[7], white);
        let cut = |x: usize, y: usize| {
            (0..18).map(|row| canvas.pixels()[(y + row) * 80 + x..][..12].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(cut(3, 5), cut(43, 35));
        assert!(cut(3, 5).concat().iter().any(|pixel| *pixel != black.pixel()));
    }
}
