//! Words of a language that does not exist: some are frequent, most are rare, as in every language.
//!
//! It knows glyph numbers only, no fonts. Invariant: a word is never empty.

use crate::canvas::{Canvas, Color};
use crate::font::{CAPITALS, DIGITS, Font, SIGNS};
use crate::random::Random;

/// A vocabulary.
#[derive(Debug)]
pub(crate) struct Words {
    words: Vec<Vec<u8>>,
}

impl Words {
    pub(crate) fn new(random: &Random) -> Self {
        let mut random = random.fork(0x770);
        let words = (0..VOCABULARY).map(|rank| {
            // Frequent words are short.
            let longest = 3 + 9 * rank / VOCABULARY;
            let length = 1 + random.below(longest).max(random.below(longest));
            (0..length).map(|_| letter(&mut random)).collect()
        });
        Self { words: words.collect() }
    }

    /// Some word, the first of the vocabulary most often.
    pub(crate) fn any(&self, random: &mut Random) -> &[u8] {
        let rank = (u64::from(random.below(VOCABULARY)) * u64::from(random.below(VOCABULARY))
            / u64::from(VOCABULARY)) as usize;
        &self.words[rank.min(self.words.len() - 1)]
    }

    /// Draws words from `x` until the next would go beyond `right`; gives the column behind the last.
    pub(crate) fn line(&self, canvas: &mut Canvas, font: &Font, random: &mut Random, place: Place) -> i32 {
        let mut x = place.x;
        let mut capital = true;
        loop {
            let mut word = self.any(random).to_vec();
            if capital {
                word[0] += CAPITALS;
            }
            capital = random.once_in(9);
            if capital {
                word.push(SIGNS);
            }
            if x + font.width(&word) as i32 > place.right {
                return x;
            }
            x = font.draw(canvas, x, place.y, &word, place.color) + font.blank() as i32;
        }
    }
}

/// Where a line of text goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) x: i32,
    pub(crate) y: i32,
    /// First column that must stay free.
    pub(crate) right: i32,
    pub(crate) color: Color,
}

/// The digits of a number, at least `least` of them.
pub(crate) fn digits(number: u32, least: usize) -> Vec<u8> {
    let text = format!("{number:0least$}");
    text.bytes().map(|digit| DIGITS + (digit - b'0')).collect()
}

/// A small letter: the first of the alphabet often, the last hardly ever.
fn letter(random: &mut Random) -> u8 {
    let (one, two) = (random.below(u32::from(CAPITALS)), random.below(u32::from(CAPITALS)));
    one.min(two) as u8
}

const VOCABULARY: u32 = 600;
