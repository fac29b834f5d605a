//! Letters that are all equally wide, by a fraction of a pixel: where the pen is after each.
//!
//! A caret is drawn at the nearest column. So each one that is seen says of two numbers, where in its column a line
//! begins and how wide a letter is, that they lie in a strip of the plane: together they leave a small polygon of
//! what is possible ([`Fit`]). It knows no pixels.
//!
//! The one invariant: what is possible only becomes less, until a caret contradicts it; then it is learned anew.

use zeroize::Zeroizing;

use crate::key::Key;

/// How wide the letters of a field are.
pub(crate) struct Pitch {
    /// The least and the most columns that a letter moved the caret by.
    columns: Option<(usize, usize)>,
    /// Different keys that did.
    keys: Zeroizing<Vec<Key>>,
    /// One for each column at which lines began, the last used first.
    fits: Vec<(u32, Fit)>,
}

/// A place between letters: the column of the surface at which a line began, and how many letters are before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) begin: u32,
    pub(crate) letters: usize,
}

impl Along {
    /// The beginning of a line.
    pub(crate) fn begin(begin: u32) -> Self {
        Self { begin, letters: 0 }
    }

    /// So many letters on.
    pub(crate) fn on(self, letters: usize) -> Self {
        Self { letters: self.letters + letters, ..self }
    }

    /// A letter back; `None` before the beginning.
    pub(crate) fn back(self) -> Option<Self> {
        Some(Self { letters: self.letters.checked_sub(1)?, ..self })
    }
}

/// Such a place, and the column of the surface in which its caret is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    along: Along,
    column: u32,
}

impl At {
    pub(crate) fn new(along: Along, column: u32) -> Self {
        Self { along, column }
    }
}

impl Default for Pitch {
    fn default() -> Self {
        let keys = Zeroizing::new(Vec::with_capacity(ALIKE));
        Self { columns: None, keys, fits: Vec::new() }
    }
}

impl Pitch {
    /// `key` moved the caret by so many columns.
    pub(crate) fn advanced(&mut self, key: Key, columns: usize) {
        let (least, most) = self.columns.unwrap_or((columns, columns));
        self.columns = Some((least.min(columns), most.max(columns)));
        if self.keys.len() < ALIKE && !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// A caret was seen there, in this column of the surface.
    pub(crate) fn saw(&mut self, along: Along, column: u32) {
        let at = match self.fits.iter().position(|(begin, _)| *begin == along.begin) {
            Some(at) => at,
            None => {
                let widths = self.fits.first().map_or((0.0, MAX_WIDTH), |(_, fit)| fit.widths());
                self.fits.truncate(BEGINS - 1);
                self.fits.push((along.begin, Fit::of_widths(widths)));
                self.fits.len() - 1
            }
        };
        self.fits[..=at].rotate_right(1);
        let columns = f64::from(column) - f64::from(along.begin);
        self.fits[0].1.saw(along.letters as f64, columns);
    }

    /// Whether all letters are equally wide, and by how much is known.
    pub(crate) fn is_known(&self) -> bool {
        let is_one = self.columns.is_some_and(|(least, most)| most == least + 1) && self.keys.len() == ALIKE;
        let (least, most) = self.fits.first().map_or((0.0, MAX_WIDTH), |(_, fit)| fit.widths());
        is_one && most - least < KNOWN
    }

    /// Where the pen is there, on the surface; `None` where letters have no pitch.
    fn pen(&self, along: Along) -> Option<(f64, f64)> {
        let known = self.fits.iter().find(|(begin, _)| *begin == along.begin).map(|(_, fit)| fit);
        let letters = along.letters as f64;
        let range = match known {
            Some(fit) => fit.range(letters),
            None => Fit::of_widths(self.fits.first()?.1.widths()).range(letters),
        };
        let begin = f64::from(along.begin);
        self.is_known().then_some((begin + range.0, begin + range.1))
    }

    /// The column of the surface in which a caret is there; `None` also where it may well be the next one.
    pub(crate) fn column(&self, along: Along) -> Option<u32> {
        let (least, most) = self.pen(along)?;
        let column = f64::midpoint(least, most).round();
        let beyond = (column - 0.5 - least).max(most - column - 0.5);
        (beyond <= DOUBT * (most - least)).then_some(column as u32)
    }

    /// Where the pen is beyond its column, where that is known well enough to tell pictures of a letter apart.
    pub(crate) fn offset(&self, at: At) -> Option<f32> {
        let (least, most) = self.pen(at.along).filter(|(least, most)| most - least < TELLING)?;
        Some((f64::midpoint(least, most) - f64::from(at.column)) as f32)
    }

    pub(crate) fn bytes(&self) -> usize {
        let fits = self.fits.iter().map(|(_, fit)| fit.0.capacity() * size_of::<(f64, f64)>()).sum::<usize>();
        self.keys.capacity() * size_of::<Key>() + self.fits.capacity() * size_of::<(u32, Fit)>() + fits
    }
}

/// What the carets leave possible: corners of a polygon, each where a line begins in its column, and how wide a letter
/// is.
struct Fit(Vec<(f64, f64)>);

impl Fit {
    fn of_widths((least, most): (f64, f64)) -> Self {
        Self(vec![(-ROUNDS, least), (ROUNDS, least), (ROUNDS, most), (-ROUNDS, most)])
    }

    /// After so many letters the caret is so many columns on.
    fn saw(&mut self, letters: f64, columns: f64) {
        let over = |corner: (f64, f64)| corner.0 + letters * corner.1 - columns - ROUNDS;
        let under = |corner: (f64, f64)| columns - ROUNDS - corner.0 - letters * corner.1;
        self.cut(over);
        self.cut(under);
        if !(1..=MAX_CORNERS).contains(&self.0.len()) {
            *self = Self::of_widths((0.0, MAX_WIDTH));
            self.cut(over);
            self.cut(under);
        }
    }

    /// Cuts away what is too much by a linear measure.
    fn cut(&mut self, excess: impl Fn((f64, f64)) -> f64) {
        let corners = std::mem::take(&mut self.0);
        for (at, corner) in corners.iter().enumerate() {
            let next = corners[(at + 1) % corners.len()];
            let (own, other) = (excess(*corner), excess(next));
            if own <= 0.0 {
                self.0.push(*corner);
            }
            if (own < 0.0 && other > 0.0) || (own > 0.0 && other < 0.0) {
                let part = own / (own - other);
                self.0.push((corner.0 + part * (next.0 - corner.0), corner.1 + part * (next.1 - corner.1)));
            }
        }
    }

    /// Where the pen can be after so many letters.
    fn range(&self, letters: f64) -> (f64, f64) {
        least_and_most(self.0.iter().map(|corner| corner.0 + letters * corner.1))
    }

    fn widths(&self) -> (f64, f64) {
        least_and_most(self.0.iter().map(|corner| corner.1))
    }
}

fn least_and_most(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::MAX, f64::MIN), |(least, most), number| (least.min(number), most.max(number)))
}

/// How far the pen can be from the column in which its caret is drawn: half of one, and a little, for programs round
/// more than once.
const ROUNDS: f64 = 0.52;

/// Different keys that moved the caret by about as much, after which all letters are taken to.
const ALIKE: usize = 6;

/// How well the width must be known, and the pen to tell pictures of a letter apart, in pixels.
const KNOWN: f64 = 0.3;
const TELLING: f64 = 0.4;

/// The part of what is possible that may lie in another column than the one that is told.
const DOUBT: f64 = 0.3;

/// Beginnings of lines that are remembered.
const BEGINS: usize = 4;

/// Corners of what is possible; it is learned anew where more are needed.
const MAX_CORNERS: usize = 32;

/// Pixels of the widest letter.
const MAX_WIDTH: f64 = 128.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key { code: 16 + number as u16 % 9, modifiers: 0, group: 0 }
    }

    /// Letters so wide, in lines that begin there: how many carets were told wrong, and right, of 250 in all lines but
    /// the first.
    fn told(width: f64, begin: f64) -> (usize, usize) {
        let (mut pitch, mut wrong, mut right) = (Pitch::default(), 0, 0);
        for line in 0..6 {
            let mut along = Along::begin(begin.round() as u32);
            let mut column = along.begin;
            for letter in 1..=50 {
                along = along.on(1);
                let to = (begin + letter as f64 * width).round() as u32;
                let told = pitch.column(along).filter(|_| line > 0);
                right += usize::from(told == Some(to));
                wrong += usize::from(told.is_some_and(|column| column != to));
                pitch.advanced(key(letter), (to - column) as usize);
                pitch.saw(along, to);
                column = to;
            }
        }
        (wrong, right)
    }

    #[test]
    fn carets_of_letters_that_are_a_fraction_wider_are_told_after_one_line() {
        for width in [7.22, 7.8, 8.03, 9.5, 6.333, 14.45] {
            for begin in [4.0, 3.71, 12.26] {
                let (wrong, right) = told(width, begin);
                assert!(wrong == 0 && right > 225, "{width} from {begin}: {wrong} wrong, {right} right");
            }
        }
    }

    #[test]
    fn a_line_that_begins_elsewhere_has_the_same_width() {
        let mut pitch = Pitch::default();
        for letter in 1..=50 {
            pitch.advanced(key(letter), 7 + letter % 2);
            pitch.saw(Along::begin(4).on(letter), (4.0 + letter as f64 * 7.22).round() as u32);
        }
        assert_eq!(pitch.column(Along::begin(100).on(4)), Some(129));
    }

    #[test]
    fn letters_of_different_widths_have_no_pitch() {
        let (mut pitch, mut column) = (Pitch::default(), 4);
        for letter in 0..60 {
            let columns = 4 + letter % 5;
            column += columns as u32;
            pitch.advanced(key(letter), columns);
            pitch.saw(Along::begin(4).on(letter + 1), column);
        }
        assert!(!pitch.is_known());
    }

    #[test]
    fn carets_that_contradict_all_before_leave_few_corners() {
        let mut pitch = Pitch::default();
        for letter in 0..2000usize {
            pitch.advanced(key(letter), 7 + letter % 2);
            pitch.saw(Along::begin(4).on(letter % 61), (letter * 7919 % 500) as u32);
            assert!(pitch.bytes() < 8192, "{} bytes", pitch.bytes());
        }
    }
}
