//! Keys as the predictor knows them: by their code, never by the character that a keymap gives them.

use zeroize::DefaultIsZeroes;

/// The caller's number of a key press; each is greater than those before it on this surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub u64);

/// A key that was pressed, and what was in force then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The code of evdev, as `wl_keyboard.key` has it.
    pub code: u16,
    /// Modifiers in force: pressed, latched and locked, as `wl_keyboard.modifiers` has them.
    pub modifiers: u8,
    /// Layout in force.
    pub group: u8,
}

impl DefaultIsZeroes for Key {}

/// What a key does to a line, as far as its code tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Writes something.
    Text,
    /// Takes the last character away.
    BackSpace,
    Left,
    Right,
    /// Only changes what others do: Shift and its like.
    Nothing,
    /// May do anything: what is known of the line ends here.
    Ends,
}

impl Key {
    pub(crate) fn does(self) -> Does {
        match self.code {
            // Shift, Control, Alt, Super; Caps Lock, Num Lock, Scroll Lock.
            29 | 42 | 54 | 56 | 58 | 69 | 70 | 97 | 100 | 125 | 126 => Does::Nothing,
            _ if self.modifiers & COMMANDS != 0 => Does::Ends,
            14 => Does::BackSpace,
            105 => Does::Left,
            106 => Does::Right,
            // The rows of a keyboard; the key beside the left Shift; the keypad without Enter; keys of Japan and
            // Brazil.
            2..=13 | 16..=27 | 30..=41 | 43..=53 | 55 | 57 | 71..=83 | 86 | 89 | 98 | 121 | 124 => Does::Text,
            _ => Does::Ends,
        }
    }

    /// Return alone.
    pub(crate) fn is_return(self) -> bool {
        self.code == 28 && self.does() == Does::Ends && self.modifiers & COMMANDS == 0
    }

    /// Home, Up, Page Up, End, Down, Page Down: they only move the caret.
    pub(crate) fn is_way(self) -> bool {
        matches!(self.code, 102..=104 | 107..=109) && self.modifiers & COMMANDS == 0
    }

    pub(crate) fn is_space(self) -> bool {
        self.code == 57
    }
}

/// Control, Alt, Super: with these a key is a command.
const COMMANDS: u8 = 1 << 2 | 1 << 3 | 1 << 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_what_is_known() {
        let does = |code, modifiers| Key { code, modifiers, group: 0 }.does();
        assert_eq!(does(30, 0), Does::Text);
        assert_eq!(does(30, 1), Does::Text);
        assert_eq!(does(30, 4), Does::Ends);
        assert_eq!(does(28, 0), Does::Ends);
        assert_eq!(does(42, 1), Does::Nothing);
        assert_eq!(does(14, 8), Does::Ends);
    }
}
