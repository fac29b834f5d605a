//! Prompts that hide what is typed, in ten ways.

use std::time::Duration;

use wayferry_echo::Key;

use super::{Letter, Toy, glyph_of};

/// What a prompt draws for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hides {
    /// Nothing.
    Nothing,
    Stars,
    /// Stars, long after the key.
    SlowStars,
    /// Stars in another colour each.
    ColouredStars,
    /// One of two stars that differ a little.
    Bullets,
    /// One to three stars.
    SomeStars,
    /// Only the caret moves.
    Blanks,
    /// A figure at the caret, which stays, turns.
    Spinner,
    /// The last letter is shown, those before are stars.
    LastLetter,
    /// One of eight figures that are no letters, at random.
    Figures,
}

pub(crate) const ALL: [Hides; 10] = [
    Hides::Nothing,
    Hides::Stars,
    Hides::SlowStars,
    Hides::ColouredStars,
    Hides::Bullets,
    Hides::SomeStars,
    Hides::Blanks,
    Hides::Spinner,
    Hides::LastLetter,
    Hides::Figures,
];

impl Hides {
    /// The program's answer to a key at its prompt.
    pub(crate) fn answer(self, toy: &mut Toy, key: Key) {
        let ink = toy.ink;
        match self {
            Self::Nothing => {}
            Self::Stars | Self::SlowStars => toy.put(STAR),
            Self::ColouredStars => {
                let ink = [ink, ink ^ 0x10_1010, ink ^ 0x20_0020][toy.dice.below(3)];
                toy.put_letter(Some(Letter { glyph: STAR, ink }));
            }
            Self::Bullets => {
                let ink = if toy.dice.below(2) == 0 { ink } else { ink ^ 0x08_0808 };
                toy.put_letter(Some(Letter { glyph: STAR + 1, ink }));
            }
            Self::SomeStars => (0..=toy.dice.below(3)).for_each(|_| toy.put(STAR)),
            Self::Blanks => toy.put_letter(None),
            Self::Spinner => {
                let glyph = STAR + 2 + toy.dice.below(4) as u32;
                let (x, y) = toy.at;
                toy.set(x, y, Some(Letter { glyph, ink }));
            }
            Self::LastLetter => {
                let (x, y) = toy.at;
                if x > 0 && toy.letter(x - 1, y).is_some_and(|letter| letter.glyph >= 1000) {
                    toy.set(x - 1, y, Some(Letter { glyph: STAR, ink }));
                }
                toy.put(glyph_of(key));
            }
            Self::Figures => {
                let glyph = STAR + 10 + toy.dice.below(8) as u32;
                toy.put(glyph);
            }
        }
        let after = if self == Self::SlowStars { 40 + toy.dice.below(60) as u64 } else { 3 };
        toy.show(Duration::from_millis(after));
    }
}

/// A glyph that no key writes.
const STAR: u32 = 7;
