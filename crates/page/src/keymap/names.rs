//! The names of keys and characters in xkb text.
//!
//! Tables. Codes are those of `linux/input-event-codes.h`.

use std::fmt;

/// What a key with a name of its own is; it never turns out to be another one.
pub(super) fn name(code: u32) -> Option<&'static str> {
    let at = NAMED.binary_search_by_key(&code, |(code, _)| *code).ok()?;
    NAMED.get(at).map(|(_, name)| *name)
}

/// All keys with names.
pub(super) fn named() -> impl Iterator<Item = (u32, &'static str)> {
    NAMED.iter().copied()
}

/// A character as xkb text names it; nothing for the zero character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol(pub(super) char);

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = u32::from(self.0);
        match code {
            0 => f.write_str("NoSymbol"),
            0x20 => f.write_str("space"),
            0x30..=0x39 | 0x41..=0x5a | 0x61..=0x7a => write!(f, "{}", self.0),
            0x21..=0x7e => {
                let at = PUNCTUATION.chars().position(|other| other == self.0);
                f.write_str(at.and_then(|at| PUNCTUATION_NAMES.get(at)).copied().unwrap_or("NoSymbol"))
            }
            0xa0..=0xff => f.write_str(LATIN[code as usize - 0xa0]),
            _ => write!(f, "U{code:04X}"),
        }
    }
}

const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

const PUNCTUATION_NAMES: [&str; 32] = [
    "exclam",
    "quotedbl",
    "numbersign",
    "dollar",
    "percent",
    "ampersand",
    "apostrophe",
    "parenleft",
    "parenright",
    "asterisk",
    "plus",
    "comma",
    "minus",
    "period",
    "slash",
    "colon",
    "semicolon",
    "less",
    "equal",
    "greater",
    "question",
    "at",
    "bracketleft",
    "backslash",
    "bracketright",
    "asciicircum",
    "underscore",
    "grave",
    "braceleft",
    "bar",
    "braceright",
    "asciitilde",
];

/// The upper half of Latin-1.
const LATIN: [&str; 96] = [
    "nobreakspace",
    "exclamdown",
    "cent",
    "sterling",
    "currency",
    "yen",
    "brokenbar",
    "section",
    "diaeresis",
    "copyright",
    "ordfeminine",
    "guillemotleft",
    "notsign",
    "hyphen",
    "registered",
    "macron",
    "degree",
    "plusminus",
    "twosuperior",
    "threesuperior",
    "acute",
    "mu",
    "paragraph",
    "periodcentered",
    "cedilla",
    "onesuperior",
    "masculine",
    "guillemotright",
    "onequarter",
    "onehalf",
    "threequarters",
    "questiondown",
    "Agrave",
    "Aacute",
    "Acircumflex",
    "Atilde",
    "Adiaeresis",
    "Aring",
    "AE",
    "Ccedilla",
    "Egrave",
    "Eacute",
    "Ecircumflex",
    "Ediaeresis",
    "Igrave",
    "Iacute",
    "Icircumflex",
    "Idiaeresis",
    "ETH",
    "Ntilde",
    "Ograve",
    "Oacute",
    "Ocircumflex",
    "Otilde",
    "Odiaeresis",
    "multiply",
    "Oslash",
    "Ugrave",
    "Uacute",
    "Ucircumflex",
    "Udiaeresis",
    "Yacute",
    "THORN",
    "ssharp",
    "agrave",
    "aacute",
    "acircumflex",
    "atilde",
    "adiaeresis",
    "aring",
    "ae",
    "ccedilla",
    "egrave",
    "eacute",
    "ecircumflex",
    "ediaeresis",
    "igrave",
    "iacute",
    "icircumflex",
    "idiaeresis",
    "eth",
    "ntilde",
    "ograve",
    "oacute",
    "ocircumflex",
    "otilde",
    "odiaeresis",
    "division",
    "oslash",
    "ugrave",
    "uacute",
    "ucircumflex",
    "udiaeresis",
    "yacute",
    "thorn",
    "ydiaeresis",
];

/// What keys are at first: code, without and with shift.
pub(super) const BASE: [(u32, char, char); 48] = [
    (2, '1', '!'),
    (3, '2', '@'),
    (4, '3', '#'),
    (5, '4', '$'),
    (6, '5', '%'),
    (7, '6', '^'),
    (8, '7', '&'),
    (9, '8', '*'),
    (10, '9', '('),
    (11, '0', ')'),
    (12, '-', '_'),
    (13, '=', '+'),
    (16, 'q', 'Q'),
    (17, 'w', 'W'),
    (18, 'e', 'E'),
    (19, 'r', 'R'),
    (20, 't', 'T'),
    (21, 'y', 'Y'),
    (22, 'u', 'U'),
    (23, 'i', 'I'),
    (24, 'o', 'O'),
    (25, 'p', 'P'),
    (26, '[', '{'),
    (27, ']', '}'),
    (30, 'a', 'A'),
    (31, 's', 'S'),
    (32, 'd', 'D'),
    (33, 'f', 'F'),
    (34, 'g', 'G'),
    (35, 'h', 'H'),
    (36, 'j', 'J'),
    (37, 'k', 'K'),
    (38, 'l', 'L'),
    (39, ';', ':'),
    (40, '\'', '"'),
    (41, '`', '~'),
    (43, '\\', '|'),
    (44, 'z', 'Z'),
    (45, 'x', 'X'),
    (46, 'c', 'C'),
    (47, 'v', 'V'),
    (48, 'b', 'B'),
    (49, 'n', 'N'),
    (50, 'm', 'M'),
    (51, ',', '<'),
    (52, '.', '>'),
    (53, '/', '?'),
    (86, '<', '>'),
];

/// Keys that are no characters, or the same ones on every keyboard; sorted. Two names are those without and with num
/// lock.
const NAMED: [(u32, &str); 96] = [
    (1, "Escape"),
    (14, "BackSpace"),
    (15, "Tab, ISO_Left_Tab"),
    (28, "Return"),
    (29, "Control_L"),
    (42, "Shift_L"),
    (54, "Shift_R"),
    (55, "KP_Multiply"),
    (56, "Alt_L"),
    (57, "space"),
    (58, "Caps_Lock"),
    (59, "F1"),
    (60, "F2"),
    (61, "F3"),
    (62, "F4"),
    (63, "F5"),
    (64, "F6"),
    (65, "F7"),
    (66, "F8"),
    (67, "F9"),
    (68, "F10"),
    (69, "Num_Lock"),
    (70, "Scroll_Lock"),
    (71, "KP_Home, KP_7"),
    (72, "KP_Up, KP_8"),
    (73, "KP_Prior, KP_9"),
    (74, "KP_Subtract"),
    (75, "KP_Left, KP_4"),
    (76, "KP_Begin, KP_5"),
    (77, "KP_Right, KP_6"),
    (78, "KP_Add"),
    (79, "KP_End, KP_1"),
    (80, "KP_Down, KP_2"),
    (81, "KP_Next, KP_3"),
    (82, "KP_Insert, KP_0"),
    (83, "KP_Delete, KP_Decimal"),
    (87, "F11"),
    (88, "F12"),
    (92, "Henkan_Mode"),
    (93, "Hiragana_Katakana"),
    (94, "Muhenkan"),
    (96, "KP_Enter"),
    (97, "Control_R"),
    (98, "KP_Divide"),
    (99, "Print"),
    (100, "ISO_Level3_Shift"),
    (102, "Home"),
    (103, "Up"),
    (104, "Prior"),
    (105, "Left"),
    (106, "Right"),
    (107, "End"),
    (108, "Down"),
    (109, "Next"),
    (110, "Insert"),
    (111, "Delete"),
    (113, "XF86AudioMute"),
    (114, "XF86AudioLowerVolume"),
    (115, "XF86AudioRaiseVolume"),
    (116, "XF86PowerOff"),
    (117, "KP_Equal"),
    (119, "Pause"),
    (121, "KP_Separator"),
    (122, "Hangul"),
    (123, "Hangul_Hanja"),
    (125, "Super_L"),
    (126, "Super_R"),
    (127, "Menu"),
    (128, "Cancel"),
    (129, "Redo"),
    (131, "Undo"),
    (133, "XF86Copy"),
    (134, "XF86Open"),
    (135, "XF86Paste"),
    (136, "Find"),
    (137, "XF86Cut"),
    (138, "Help"),
    (142, "XF86Sleep"),
    (143, "XF86WakeUp"),
    (155, "XF86Mail"),
    (156, "XF86Favorites"),
    (158, "XF86Back"),
    (159, "XF86Forward"),
    (163, "XF86AudioNext"),
    (164, "XF86AudioPlay"),
    (165, "XF86AudioPrev"),
    (166, "XF86AudioStop"),
    (172, "XF86HomePage"),
    (173, "XF86Reload"),
    (183, "F13"),
    (184, "F14"),
    (185, "F15"),
    (186, "F16"),
    (187, "F17"),
    (188, "F18"),
    (189, "F19"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_can_be_searched_and_no_key_is_in_two() {
        assert!(NAMED.is_sorted_by_key(|(code, _)| *code));
        assert!(BASE.iter().all(|(code, ..)| name(*code).is_none()));
        assert_eq!((name(1), name(30)), (Some("Escape"), None));
    }

    #[test]
    fn characters_have_names() {
        let name = |character| Symbol(character).to_string();
        let names = ['a', '7', '!', '~', ' ', 'ß', 'ÿ', '\u{a0}', '€', 'я', '😀'].map(name);
        let expected = [
            "a",
            "7",
            "exclam",
            "asciitilde",
            "space",
            "ssharp",
            "ydiaeresis",
            "nobreakspace",
            "U20AC",
            "U044F",
            "U1F600",
        ];
        assert_eq!(names, expected);
    }
}
