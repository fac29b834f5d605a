//! Reads a line of cells from its picture.
//!
//! It knows what each cell may look like, pixel by pixel, but for the row at the foot where letters that are not
//! confirmed have a line. It knows nothing of what was typed. Invariant: a cell that looks like nothing known is
//! [`Cell::Other`].

use std::collections::HashMap;

use wayferry_stage::Image;

/// What a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Blank,
    Letter(char),
    Caret,
    /// A hollow box: a letter whose looks are not known yet.
    Place,
    Other,
}

/// See the module.
pub(crate) struct Letters {
    /// Width and height of a cell.
    size: (u32, u32),
    /// What is blank is of this colour.
    paper: u32,
    known: HashMap<Vec<u32>, Cell>,
}

impl Letters {
    /// Cells of this size and paper; a cell that is filled with another colour is a caret.
    pub(crate) fn new(size: (u32, u32), paper: u32) -> Self {
        Self { size, paper: opaque(paper), known: HashMap::new() }
    }

    /// Width and height of a cell.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The cells of a line in which these letters stand look like them. Says whether there is one in each; if not,
    /// nothing is learned: a terminal without the keyboard has a hollow caret.
    pub(crate) fn learn(&mut self, line: &Image, text: &str) -> bool {
        let letters = text.chars().enumerate().filter(|(_, letter)| *letter != ' ');
        let cells = letters.map(|(column, letter)| (self.pixels(line, column as u32), Cell::Letter(letter)));
        let cells: Vec<_> = cells.collect();
        let is_whole = cells.iter().all(|(pixels, _)| pixels.iter().any(|pixel| *pixel != pixels[0]));
        if is_whole {
            self.known.extend(cells);
        }
        is_whole
    }

    /// A caret looks like the first cell of this picture.
    pub(crate) fn learn_caret(&mut self, picture: &Image) {
        self.known.insert(self.pixels(picture, 0), Cell::Caret);
    }

    /// Whole cells from the left.
    pub(crate) fn read(&self, line: &Image) -> Vec<Cell> {
        (0..line.width() / self.size.0).map(|column| self.cell(&self.pixels(line, column))).collect()
    }

    /// Without the row at the foot.
    fn pixels(&self, line: &Image, column: u32) -> Vec<u32> {
        let (width, height) = (self.size.0 as usize, self.size.1.min(line.height()));
        let from = column as usize * width;
        let rows = (0..height.saturating_sub(MARK)).filter_map(|y| line.row(y).get(from..from + width));
        rows.flatten().map(|pixel| opaque(*pixel)).collect()
    }

    fn cell(&self, pixels: &[u32]) -> Cell {
        let Some(first) = pixels.first() else { return Cell::Other };
        if pixels.iter().all(|pixel| pixel == first) {
            return if *first == self.paper { Cell::Blank } else { Cell::Caret };
        }
        match self.known.get(pixels) {
            Some(cell) => *cell,
            None if self.is_box(pixels) => Cell::Place,
            None => Cell::Other,
        }
    }

    /// Paper with a frame of another colour, whose foot is not here.
    fn is_box(&self, pixels: &[u32]) -> bool {
        let (width, frame) = (self.size.0 as usize, pixels[0]);
        let is_frame = |at: usize| at < width || [0, width - 1].contains(&(at % width));
        let fits = |(at, pixel): (usize, &u32)| *pixel == if is_frame(at) { frame } else { self.paper };
        frame != self.paper && pixels.iter().enumerate().all(fits)
    }
}

fn opaque(pixel: u32) -> u32 {
    pixel | 0xff00_0000
}

/// Rows at the foot of a cell that may have a mark.
const MARK: u32 = 1;

#[cfg(test)]
mod tests {
    use wayferry_stage::Font;

    use super::*;

    const PAPER: u32 = 0xff10_1010;
    const INK: u32 = 0xfff0_f0f0;

    fn line(text: &str) -> Image {
        let mut line = Image::new(12 * 8, 18, PAPER);
        Font::new(2.0).draw(&mut line, (0, 0), INK, text);
        line
    }

    #[test]
    fn a_line_is_read_with_its_marks() {
        let mut letters = Letters::new((12, 18), PAPER);
        let mut hollow = Image::new(12 * 8, 18, PAPER);
        hollow.fill_rect(0, 0, 12, 18, INK);
        hollow.fill_rect(1, 1, 10, 16, PAPER);
        assert!(!letters.learn(&hollow, "abg"), "they are not there yet");
        assert!(letters.learn(&line("abg"), "abg"));
        let mut seen = line("ab ga");
        // The line below a letter that is not confirmed, a caret, a hollow box.
        seen.fill_rect(12, 17, 12, 1, INK);
        seen.fill_rect(60, 0, 12, 18, INK);
        seen.fill_rect(72, 0, 12, 18, INK);
        seen.fill_rect(73, 1, 10, 16, PAPER);
        seen.fill_rect(90, 9, 3, 3, INK);
        use Cell::{Blank, Caret, Letter, Other, Place};
        let cells = [Letter('a'), Letter('b'), Blank, Letter('g'), Letter('a'), Caret, Place, Other];
        assert_eq!(letters.read(&seen), cells);
    }

    #[test]
    fn letters_that_were_not_learned_are_not_guessed() {
        let mut letters = Letters::new((12, 18), PAPER);
        letters.learn(&line("ab"), "ab");
        assert_eq!(letters.read(&line("c"))[0], Cell::Other);
        let mut bar = Image::new(12, 18, PAPER);
        bar.fill_rect(0, 0, 3, 18, INK);
        assert_eq!(letters.read(&bar), [Cell::Other]);
        letters.learn_caret(&bar);
        assert_eq!(letters.read(&bar), [Cell::Caret]);
    }
}
