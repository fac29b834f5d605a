//! What is laid over a line: the predicted pixels, and marks where no answer has confirmed them.
//!
//! Plain pixels. Invariant: what is not predicted is transparent.

use wayferry_echo::{Marked, Overlay};
use wayferry_pixels::Rect;
use zeroize::Zeroizing;

use super::when::Marking;

/// Paints `overlay` on a transparent sheet that lies at `sheet` on the surface: rows of ARGB, as bytes in memory.
/// Lines are `thick` pixels thick. `None` if the sheet does not cover it.
pub(crate) fn paint(
    overlay: &Overlay,
    sheet: Rect,
    marking: Marking,
    thick: u32,
) -> Option<Zeroizing<Vec<u8>>> {
    if !sheet.contains(overlay.rect) || overlay.pixels.len() as u64 != overlay.rect.area() {
        return None;
    }
    let mut canvas = Canvas::new(sheet);
    canvas.lay(overlay);
    for mark in
        overlay.marks.iter().filter_map(|mark| Some((mark.rect.intersection(overlay.rect)?, mark.kind)))
    {
        let (rect, kind) = mark;
        let colour = match marking {
            Marking::Overdue => NOTICE,
            Marking::Plain | Marking::Lined => ink(overlay, rect),
        };
        match kind {
            Marked::Unknown => canvas.frame(rect, thick, colour),
            Marked::Letter if marking == Marking::Plain => {}
            Marked::Letter => canvas.underline(rect, thick, colour),
        }
    }
    Some(canvas.bytes)
}

struct Canvas {
    place: Rect,
    bytes: Zeroizing<Vec<u8>>,
}

impl Canvas {
    fn new(place: Rect) -> Self {
        let length = place.width as usize * place.height as usize * PIXEL;
        Self { place, bytes: Zeroizing::new(vec![0; length]) }
    }

    fn lay(&mut self, overlay: &Overlay) {
        let rows = overlay.pixels.chunks_exact(overlay.rect.width.max(1) as usize);
        for (y, row) in (overlay.rect.y..).zip(rows) {
            for (x, pixel) in (overlay.rect.x..).zip(row) {
                self.put(x, y, *pixel);
            }
        }
    }

    fn underline(&mut self, rect: Rect, thick: u32, colour: u32) {
        self.fill(Rect { y: rect.bottom().saturating_sub(thick).max(rect.y), ..rect }, rect, colour);
    }

    fn frame(&mut self, rect: Rect, thick: u32, colour: u32) {
        self.underline(rect, thick, colour);
        self.fill(Rect { height: thick, ..rect }, rect, colour);
        self.fill(Rect { width: thick, ..rect }, rect, colour);
        self.fill(Rect { x: rect.right().saturating_sub(thick).max(rect.x), ..rect }, rect, colour);
    }

    fn fill(&mut self, rect: Rect, inside: Rect, colour: u32) {
        let Some(rect) = rect.intersection(inside) else { return };
        for y in rect.y..rect.bottom() {
            (rect.x..rect.right()).for_each(|x| self.put(x, y, colour));
        }
    }

    /// The pixel lies in the overlay, which lies on the sheet.
    fn put(&mut self, x: u32, y: u32, colour: u32) {
        let (x, y) = ((x - self.place.x) as usize, (y - self.place.y) as usize);
        let at = (y * self.place.width as usize + x) * PIXEL;
        self.bytes[at..at + PIXEL].copy_from_slice(&(colour | BLACK).to_le_bytes());
    }
}

/// The colour of what is drawn in a part of the overlay: that which is farthest from what most of the part has. Where
/// it has one colour, something else in the overlay tells: a caret is as large as a letter.
fn ink(overlay: &Overlay, rect: Rect) -> u32 {
    let mut own = pixels(overlay, rect);
    own.sort_unstable();
    let paper = own.chunk_by(|a, b| a == b).max_by_key(|run| run.len()).map_or(BLACK, |run| run[0]);
    let farthest = |pixels: &[u32]| pixels.iter().copied().max_by_key(|pixel| distance(*pixel, paper));
    let drawn = |pixels: &[u32]| farthest(pixels).filter(|ink| *ink != paper);
    drawn(&own).or_else(|| drawn(&overlay.pixels)).unwrap_or(BLACK)
}

fn pixels(overlay: &Overlay, rect: Rect) -> Zeroizing<Vec<u32>> {
    let width = overlay.rect.width as usize;
    let rows = (rect.y..rect.bottom()).map(|y| {
        let at = (y - overlay.rect.y) as usize * width + (rect.x - overlay.rect.x) as usize;
        &overlay.pixels[at..at + rect.width as usize]
    });
    // As much as there will be: what a vector outgrows is freed as it is.
    let mut all = Zeroizing::new(Vec::with_capacity(rect.area() as usize));
    rows.for_each(|row| all.extend_from_slice(row));
    all
}

fn distance(a: u32, b: u32) -> u32 {
    a.to_ne_bytes().iter().zip(b.to_le_bytes()).map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// Bytes of a pixel.
const PIXEL: usize = 4;

/// Opaque, and nothing else.
const BLACK: u32 = 0xff00_0000;

/// An amber that is seen on dark and on light paper.
const NOTICE: u32 = 0xffd0_7000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wayferry_echo::{KeyId, Mark};

    use super::*;

    const PAPER: u32 = 0xff10_1010;
    const INK: u32 = 0xfff0_f0f0;

    /// Two cells of 4 × 4 at 8, 4: a letter and one that is not known.
    fn overlay() -> Overlay {
        let mut pixels = vec![PAPER; 8 * 4];
        (pixels[9], pixels[10]) = (INK, 0xff80_8080);
        let mark = |x, kind| Mark { rect: Rect::new(x, 4, 4, 4), kind };
        Overlay {
            rect: Rect::new(8, 4, 8, 4),
            pixels: Zeroizing::new(pixels),
            marks: vec![mark(8, Marked::Letter), mark(12, Marked::Unknown)],
            last: KeyId(2),
            since: Duration::ZERO,
        }
    }

    fn painted(marking: Marking) -> String {
        let sheet = Rect::new(6, 4, 12, 4);
        drawn(&paint(&overlay(), sheet, marking, 1).expect("it fits"), 12)
    }

    /// Rows of so many pixels.
    fn drawn(bytes: &[u8], width: usize) -> String {
        let pixels = bytes.chunks_exact(4).map(|pixel| u32::from_le_bytes(pixel.try_into().unwrap()));
        let letters = pixels.map(|pixel| match pixel {
            0 => ' ',
            PAPER => '.',
            INK => '#',
            NOTICE => '!',
            _ => '+',
        });
        letters
            .collect::<Vec<_>>()
            .chunks(width)
            .map(|row| format!("{}\n", row.iter().collect::<String>()))
            .collect()
    }

    #[test]
    fn letters_are_lined_and_unknown_ones_framed() {
        assert_eq!(painted(Marking::Plain), "  ....####  \n  .#+.#..#  \n  ....#..#  \n  ....####  \n");
        assert_eq!(painted(Marking::Lined), "  ....####  \n  .#+.#..#  \n  ....#..#  \n  ########  \n");
        assert_eq!(painted(Marking::Overdue), "  ....!!!!  \n  .#+.!..!  \n  ....!..!  \n  !!!!!!!!  \n");
    }

    /// A block is as large as the letter before it.
    #[test]
    fn a_letter_that_is_not_known_is_framed_beside_a_caret_too() {
        let caret = (0..4).flat_map(|_| [[PAPER; 4], [INK; 4]].concat()).collect();
        let mark = Mark { rect: Rect::new(8, 4, 4, 4), kind: Marked::Unknown };
        let overlay = Overlay { pixels: Zeroizing::new(caret), marks: vec![mark], ..overlay() };
        let bytes = paint(&overlay, overlay.rect, Marking::Lined, 1).expect("it fits");
        assert_eq!(drawn(&bytes, 8), "########\n#..#####\n#..#####\n########\n");
    }

    #[test]
    fn what_the_sheet_does_not_cover_is_not_painted() {
        assert!(paint(&overlay(), Rect::new(9, 4, 12, 4), Marking::Plain, 1).is_none());
        let torn = Overlay { pixels: Zeroizing::new(vec![PAPER; 7]), ..overlay() };
        assert!(paint(&torn, Rect::new(6, 4, 12, 4), Marking::Plain, 1).is_none());
    }
}
