//! A small font of our own: 5 × 9 dots a glyph, made smooth when it is scaled up.
//!
//! The glyphs are drawn in `font.txt`: a line with the character, then nine lines of dots (the last two are below the
//! base line). A space has none. Scaling doubles three times, rounding the corners of diagonals, then averages down to
//! size.

use crate::image::Image;

/// The font at one size.
#[derive(Debug)]
pub struct Font {
    /// From one character to the next, pixels.
    pub advance: i32,
    /// From the top of a glyph to the end of its descender, pixels.
    pub height: i32,
    width: i32,
    /// Coverage of the characters from `!` to `~` in order, 0 to 255, row by row.
    glyphs: Vec<Vec<u8>>,
}

impl Font {
    /// The font with `scale` pixels a dot, at least 1.
    pub fn new(scale: f64) -> Font {
        let size = |dots: usize| (dots as f64 * scale.max(1.0)).round() as i32;
        let (width, height) = (size(WIDTH), size(HEIGHT));
        let glyphs = glyphs().map(|dots| resample(&dots.doubled().doubled().doubled(), width, height));
        Font { advance: size(WIDTH + 1), height, width, glyphs: glyphs.collect() }
    }

    /// Draws a text of printable ASCII with its top-left corner at (x, y); returns where it ends.
    pub fn draw(&self, image: &mut Image, (x, y): (i32, i32), colour: u32, text: &str) -> i32 {
        let mut left = x;
        for character in text.chars() {
            self.draw_glyph(image, (left, y), colour, character);
            left += self.advance;
        }
        left
    }

    fn draw_glyph(&self, image: &mut Image, (x, y): (i32, i32), colour: u32, character: char) {
        let index = (character as usize).wrapping_sub(usize::from(b'!'));
        let Some(coverage) = self.glyphs.get(index) else { return };
        for (row, line) in (y..).zip(coverage.chunks_exact(self.width as usize)) {
            for (column, alpha) in (x..).zip(line) {
                let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) else { continue };
                if let (true, Some(below)) = (*alpha > 0, image.pixel(column, row)) {
                    image.set(column, row, mix(below, colour, u32::from(*alpha)));
                }
            }
        }
    }
}

/// `above` over `below` with this opacity, 0 to 255; both are opaque.
pub(crate) fn mix(below: u32, above: u32, alpha: u32) -> u32 {
    let channel = |shift: u32| {
        let (low, high) = (below >> shift & 255, above >> shift & 255);
        ((low * (255 - alpha) + high * alpha + 127) / 255) << shift
    };
    0xff00_0000 | channel(0) | channel(8) | channel(16)
}

/// A picture of dots that are set or not.
struct Dots {
    width: usize,
    set: Vec<bool>,
}

impl Dots {
    fn at(&self, x: isize, y: isize) -> bool {
        let inside = x >= 0 && y >= 0 && (x as usize) < self.width;
        inside && self.set.get(y as usize * self.width + x as usize).copied().unwrap_or(false)
    }

    /// Twice the size; a corner between two equal neighbours takes their value.
    fn doubled(&self) -> Dots {
        let height = self.set.len() / self.width;
        let mut doubled = Dots { width: self.width * 2, set: vec![false; self.set.len() * 4] };
        for y in 0..height as isize {
            for x in 0..self.width as isize {
                let dot = self.at(x, y);
                let (up, down) = (self.at(x, y - 1), self.at(x, y + 1));
                let (left, right) = (self.at(x - 1, y), self.at(x + 1, y));
                let corner = |one: bool, two: bool, other: bool, another: bool| {
                    if one == two && one != other && two != another { one } else { dot }
                };
                let start = y as usize * 2 * doubled.width + x as usize * 2;
                doubled.set[start] = corner(left, up, down, right);
                doubled.set[start + 1] = corner(up, right, left, down);
                doubled.set[start + doubled.width] = corner(down, left, right, up);
                doubled.set[start + doubled.width + 1] = corner(right, down, up, left);
            }
        }
        doubled
    }
}

/// The share of set dots under each of `width` × `height` pixels.
fn resample(dots: &Dots, width: i32, height: i32) -> Vec<u8> {
    let rows = dots.set.len() / dots.width;
    let span = |index: i32, count: i32, dots: usize| {
        let start = index as usize * dots / count as usize;
        start..((index as usize + 1) * dots / count as usize).max(start + 1)
    };
    let mut coverage = Vec::with_capacity((width * height) as usize);
    for y in 0..height {
        for x in 0..width {
            let (across, down) = (span(x, width, dots.width), span(y, height, rows));
            let all = across.len() * down.len();
            let set = down.flat_map(|y| across.clone().map(move |x| (x, y)));
            let set = set.filter(|(x, y)| dots.at(*x as isize, *y as isize)).count();
            coverage.push((set * 255 / all) as u8);
        }
    }
    coverage
}

fn glyphs() -> impl Iterator<Item = Dots> {
    let lines: Vec<&str> = GLYPHS.lines().collect();
    let glyph = |chunk: &[&str]| Dots {
        width: WIDTH,
        set: chunk[1..].iter().flat_map(|line| line.bytes().map(|byte| byte == b'#')).collect(),
    };
    lines.chunks_exact(HEIGHT + 1).map(glyph).collect::<Vec<_>>().into_iter()
}

const GLYPHS: &str = include_str!("font.txt");
const WIDTH: usize = 5;
const HEIGHT: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_a_glyph() {
        let names: String = GLYPHS.lines().step_by(HEIGHT + 1).collect();
        assert_eq!(names, ('!'..='~').collect::<String>());
        assert!(glyphs().all(|dots| dots.set.len() == WIDTH * HEIGHT));
        let font = Font::new(2.0);
        assert!(font.glyphs.iter().all(|glyph| glyph.iter().any(|alpha| *alpha > 0)));
    }

    #[test]
    fn draws_inside_its_box_only() {
        let font = Font::new(2.0);
        let mut image = Image::new(40, 40, 0xff00_0000);
        let end = font.draw(&mut image, (10, 10), 0xffff_ffff, "Hg");
        assert_eq!(end, 34);
        let outside = (0..40).flat_map(|y| (0..40).map(move |x| (x, y)));
        let mut outside = outside.filter(|(x, y)| *x < 10 || *x >= 32 || *y < 10 || *y >= 28);
        assert!(outside.all(|(x, y)| image.pixel(x, y) == Some(0xff00_0000)));
        assert_ne!(image, Image::new(40, 40, 0xff00_0000));
    }
}
