//! The keymap of a page: which character each of its keys is, as xkb text.
//!
//! A browser does not tell the layout of its keyboard, but which character each key made. So a keymap begins as that of
//! the United States and *learns*: where a key turns out to be another character, it becomes that. A character that no
//! key is gets a spare one. Where letters are not Latin, a second group has the Latin ones: programs look there for
//! what shortcuts are called. Invariant: a character of a spare key is that until as many others were typed as there
//! are spare keys.

mod names;
mod write;

use std::collections::{BTreeMap, VecDeque};

use names::Symbol;

/// Which of a key's characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Without modifiers.
    Plain,
    /// With shift.
    Shift,
    /// With the third level's.
    AltGr,
    /// With both.
    Both,
}

impl Level {
    /// The level of a number: 1 for shift and 2 for the third level's, together.
    pub fn of(number: u32) -> Option<Self> {
        [Self::Plain, Self::Shift, Self::AltGr, Self::Both].get(usize::try_from(number).ok()?).copied()
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    /// The characters of keys that have some, by code.
    keys: BTreeMap<u32, [Option<char>; 4]>,
    /// Spare keys that have a character, that of the longest ago first.
    spare: VecDeque<(u32, char)>,
}

impl Keymap {
    pub(crate) fn new() -> Self {
        let keys =
            names::BASE.iter().map(|(code, plain, shift)| (*code, [Some(*plain), Some(*shift), None, None]));
        Self { keys: keys.collect(), spare: VecDeque::new() }
    }

    /// A key of this code has turned out to be this character. Says whether that is news.
    pub(crate) fn learn(&mut self, code: u32, level: Level, character: char) -> bool {
        let is_free = (1..=MAX_CODE).contains(&code) && names::name(code).is_none() && !SPARE.contains(&code);
        if !is_free || character.is_control() {
            return false;
        }
        let key = self.keys.entry(code).or_default();
        let before = key[level as usize].replace(character);
        if level == Level::Plain && before != Some(character) {
            let shifted = &mut key[Level::Shift as usize];
            *shifted = other_case(character).or(*shifted).or(Some(character));
        }
        before != Some(character)
    }

    /// The same of a key of which nothing was learnt: the character is what a shortcut, or the browser's map of the
    /// keyboard, calls it, so it is told without modifiers but for shift.
    pub(crate) fn guess(&mut self, code: u32, character: char) -> bool {
        let base = base(code).map(|(plain, shift)| [Some(plain), Some(shift), None, None]);
        if self.keys.get(&code).copied() != base {
            return false;
        }
        // A shortcut with shift names the large letter.
        let small = other_case(character).filter(|_| character.is_uppercase()).unwrap_or(character);
        self.learn(code, Level::Plain, small)
    }

    /// Has these characters on spare keys; those beyond what there are are left out. Gives their codes, and whether
    /// that is news.
    pub(crate) fn bind(&mut self, characters: &[char]) -> (Vec<u32>, bool) {
        let characters = &characters[..characters.len().min(SPARE.len())];
        let mut is_new = false;
        for character in characters {
            if let Some(at) = self.spare.iter().position(|(_, bound)| bound == character) {
                // It counts as the newest, so that it stays.
                let bound = self.spare.remove(at);
                self.spare.extend(bound);
                continue;
            }
            is_new = true;
            let free = SPARE.iter().find(|code| self.spare.iter().all(|(taken, _)| taken != *code));
            let code = free.copied().or_else(|| self.spare.pop_front().map(|(code, _)| code));
            self.spare.extend(code.map(|code| (code, *character)));
        }
        let code = |character: &char| self.spare.iter().find(|(_, bound)| bound == character);
        (characters.iter().filter_map(code).map(|(code, _)| *code).collect(), is_new)
    }

    /// Whether letters are on the keys of Latin ones that are none.
    fn is_foreign(&self) -> bool {
        let is_other = |code: &u32, plain: char| {
            let was_letter = base(*code).is_some_and(|(plain, _)| plain.is_ascii_alphabetic());
            was_letter && plain.is_alphabetic() && plain >= FIRST_FOREIGN
        };
        self.keys.iter().any(|(code, levels)| levels[0].is_some_and(|plain| is_other(code, plain)))
    }

    /// The keymap as programs read it, with the zero byte at its end.
    pub(crate) fn text(&self) -> Vec<u8> {
        let spare = self.spare.iter().map(|(code, character)| (*code, vec![Symbol(*character)], None));
        let is_foreign = self.is_foreign();
        let keys = self.keys.iter().map(|(code, levels)| {
            let last = levels.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            let has_latin = levels[Level::Plain as usize].is_some_and(|plain| plain.is_ascii());
            let latin = base(*code).filter(|_| is_foreign && !has_latin);
            (*code, levels[..last].iter().map(|level| Symbol(level.unwrap_or('\0'))).collect(), latin)
        });
        let mut text = write::keymap(keys.chain(spare)).into_bytes();
        text.push(0);
        text
    }
}

/// What the key of a code is in the United States, without and with shift.
fn base(code: u32) -> Option<(char, char)> {
    names::BASE.iter().find(|(known, ..)| *known == code).map(|(_, plain, shift)| (*plain, *shift))
}

/// Letters before it are Latin (Unicode's blocks up to IPA extensions).
const FIRST_FOREIGN: char = '\u{370}';

/// How many characters [`Keymap::bind`] takes.
pub(crate) const SPARES: usize = SPARE.len();

/// The highest code that programs of X11 know.
pub(crate) const MAX_CODE: u32 = 247;

/// Codes that no key of a keyboard before a browser has.
const SPARE: [u32; 42] = {
    let mut codes = [0; 42];
    let mut at = 0;
    while at < codes.len() {
        codes[at] = if at < 22 { 195 + at as u32 } else { 206 + at as u32 };
        at += 1;
    }
    codes
};

/// The same letter in the other case, if it has one there and back.
fn other_case(character: char) -> Option<char> {
    let one = |mut all: Box<dyn Iterator<Item = char>>| all.next().filter(|_| all.next().is_none());
    let upper = one(Box::new(character.to_uppercase())).filter(|upper| *upper != character);
    let lower = one(Box::new(character.to_lowercase())).filter(|lower| *lower != character);
    upper.or(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(keymap: &Keymap) -> String {
        let bytes = keymap.text();
        assert_eq!(bytes.last(), Some(&0));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_keymap_begins_as_that_of_the_united_states_and_learns() {
        let mut keymap = Keymap::new();
        assert!(text(&keymap).contains("key <I44> { type = \"FOUR_LEVEL_ALPHABETIC\", [ z, Z ] };"));
        assert!(!keymap.learn(44, Level::Plain, 'z'));
        assert!(keymap.learn(44, Level::Plain, 'y'));
        assert!(!keymap.learn(44, Level::Shift, 'Y'), "it follows");
        assert!(keymap.learn(16, Level::AltGr, '@'));
        assert!(keymap.learn(18, Level::AltGr, '€'));
        assert!(keymap.learn(84, Level::Plain, '<'));
        let text = text(&keymap);
        assert!(text.contains("key <I44> { type = \"FOUR_LEVEL_ALPHABETIC\", [ y, Y ] };"));
        assert!(text.contains("[ q, Q, at ]"), "{text}");
        assert!(text.contains("[ e, E, U20AC ]"));
        assert!(text.contains("key <I84> { type = \"FOUR_LEVEL\", [ less, less ] };"));
    }

    #[test]
    fn what_a_shortcut_is_called_is_learnt_of_keys_of_which_nothing_is_known() {
        let mut keymap = Keymap::new();
        assert!(keymap.guess(16, 'A'), "a French keyboard");
        assert!(text(&keymap).contains("key <I16> { type = \"FOUR_LEVEL_ALPHABETIC\", [ a, A ] };"));
        assert!(!keymap.guess(16, 'b'), "it is known");
        assert!(!keymap.guess(30, 'a'), "as it was");
        assert!(keymap.guess(84, '<'), "a key that has nothing");
    }

    #[test]
    fn where_letters_are_not_latin_a_second_group_has_those() {
        let mut keymap = Keymap::new();
        assert!(keymap.learn(3, Level::Plain, 'é') && keymap.learn(39, Level::Plain, 'ö'));
        assert!(!text(&keymap).contains("Group2"), "letters of Latin keyboards");
        assert!(keymap.learn(46, Level::Plain, 'с'));
        let text = text(&keymap);
        let expected = "key <I46> { type[Group1] = \"FOUR_LEVEL_ALPHABETIC\", symbols[Group1] = [ U0441, \
                        U0421 ], type[Group2] = \"FOUR_LEVEL_ALPHABETIC\", symbols[Group2] = [ c, C ] };";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("key <I47> { type = \"FOUR_LEVEL_ALPHABETIC\", [ v, V ] };"), "{text}");
    }

    #[test]
    fn what_is_no_character_of_a_key_is_not_learnt() {
        let mut keymap = Keymap::new();
        let before = text(&keymap);
        for (code, character) in [(28, '\r'), (1, 'x'), (30, '\u{7f}'), (0, 'x'), (248, 'x'), (195, 'x')] {
            assert!(!keymap.learn(code, Level::Plain, character), "{code}");
        }
        assert_eq!(text(&keymap), before);
    }

    #[test]
    fn characters_that_no_key_is_get_spare_ones_in_turn() {
        let mut keymap = Keymap::new();
        let (codes, is_new) = keymap.bind(&['é', '漢', 'é']);
        assert!(is_new && codes[0] == codes[2] && codes[0] != codes[1]);
        assert!(text(&keymap).contains("[ U6F22 ]") && text(&keymap).contains("[ eacute ]"));
        assert_eq!(keymap.bind(&['漢']), (vec![codes[1]], false));
        let many: Vec<char> = ('\u{4e00}'..).take(SPARES - 1).collect();
        assert_eq!(keymap.bind(&many).0.len(), SPARES - 1);
        // It was typed last but those.
        assert_eq!(keymap.bind(&['漢']), (vec![codes[1]], false));
        assert!(keymap.bind(&['é']).1, "others have its key");
        let all: Vec<char> = ('\u{5e00}'..).take(2 * SPARES).collect();
        assert_eq!(keymap.bind(&all).0.len(), SPARES);
    }

    #[test]
    fn spare_codes_are_each_one_of_no_key() {
        let mut codes: Vec<u32> = SPARE.to_vec();
        codes.dedup();
        assert_eq!(codes.len(), SPARES);
        assert!(codes.iter().all(|code| *code <= MAX_CODE && names::name(*code).is_none()));
    }
}
