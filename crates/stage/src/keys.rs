//! Which key types which character, as the embedded US keymap has it.

/// The key (evdev code) and whether it wants Shift, for a character.
pub(crate) fn key_of(character: char) -> Option<(u32, bool)> {
    let at = |row: &str, first: u32| row.chars().position(|it| it == character).map(|at| first + at as u32);
    ROWS.iter().find_map(|(first, plain, shifted)| {
        at(plain, *first).map(|code| (code, false)).or_else(|| at(shifted, *first).map(|code| (code, true)))
    })
}

/// The character of a key (evdev code).
pub(crate) fn character_of(code: u32, shifted: bool) -> Option<char> {
    ROWS.iter().find_map(|(first, plain, with_shift)| {
        let index = code.checked_sub(*first)? as usize;
        let one = plain.chars().nth(index)?;
        // Keys such as Return have one character only.
        Some(if shifted { with_shift.chars().nth(index).unwrap_or(one) } else { one })
    })
}

/// Evdev codes of the two Shift keys.
pub(crate) const SHIFTS: [u32; 2] = [42, 54];

/// First code of a run of keys, their characters without and with Shift.
const ROWS: [(u32, &str, &str); 5] = [
    (1, "\u{1b}1234567890-=\u{8}\t", "\u{1b}!@#$%^&*()_+\u{8}\t"),
    (16, "qwertyuiop[]\n", "QWERTYUIOP{}\n"),
    (30, "asdfghjkl;'`", "ASDFGHJKL:\"~"),
    (43, "\\zxcvbnm,./", "|ZXCVBNM<>?"),
    (57, " ", " "),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_character_has_its_key() {
        for character in (' '..='~').chain(['\n', '\t', '\u{8}', '\u{1b}']) {
            let (code, shifted) = key_of(character).unwrap();
            assert_eq!(character_of(code, shifted), Some(character));
        }
        assert_eq!(key_of('a'), Some((30, false)));
        assert_eq!(key_of('é'), None);
        assert_eq!(character_of(42, false), None);
    }
}
