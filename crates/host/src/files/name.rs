//! What a file is called where it is kept.
//!
//! A name comes from the other machine and may be anything. Touches no disk. Invariant: what comes out of here names a
//! visible file of the directory that it is put into, and shows as it is.

/// A name that can be used here, as like the given one as can be.
pub(super) fn usable(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let mut plain: String = last.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    // A name that begins with `-` is an option to what is run as `rm *`.
    if plain.starts_with(['.', '-']) {
        plain.replace_range(..1, "_");
    }
    if plain.is_empty() { "file".into() } else { shorten(&plain, MAX_NAME) }
}

/// The name for the `count`th file that is called so; the first is 1.
pub(super) fn numbered(name: &str, count: u32) -> String {
    if count < 2 {
        return name.to_owned();
    }
    let (stem, ending) = split(name);
    format!("{stem} ({count}){ending}")
}

/// No control characters, none that change how others are shown (Unicode's `Bidi_Control`) or that take no room
/// (`Default_Ignorable_Code_Point`, of which those stay that only choose a form of the letter before).
fn is_plain(it: char) -> bool {
    let is_unseen = matches!(it,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    !it.is_control() && !is_unseen
}

/// The name before its last full stop, and the rest.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= MAX_ENDING => name.split_at(at),
        _ => (name, ""),
    }
}

/// At most so many bytes of it, with its ending.
fn shorten(name: &str, most: usize) -> String {
    if name.len() <= most {
        return name.to_owned();
    }
    let (stem, ending) = split(name);
    let room = most - ending.len();
    let end = (0..=room).rev().find(|at| stem.is_char_boundary(*at)).unwrap_or(0);
    format!("{}{ending}", &stem[..end])
}

/// Bytes of a name, which leaves room for a number; most systems take 255.
const MAX_NAME: usize = 200;
/// Bytes of an ending such as `.pdf`.
const MAX_ENDING: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_leads_nowhere_else_and_hides_nothing() {
        for (given, used) in [
            ("plot.png", "plot.png"),
            ("../../.ssh/authorized_keys", "authorized_keys"),
            ("/etc/passwd", "passwd"),
            (".bashrc", "_bashrc"),
            ("..", "_."),
            ("", "file"),
            ("a/", "file"),
            ("x\u{1b}[2J\n.sh", "x_[2J_.sh"),
            ("invoice\u{202e}fdp.exe", "invoice_fdp.exe"),
            ("-rf", "_rf"),
            ("a\u{61c}b\u{ad}c\u{e0041}\u{3164}", "a_b_c__"),
            ("größe 1.txt", "größe 1.txt"),
        ] {
            assert_eq!(usable(given), used);
        }
        let long = format!("{}.pdf", "ö".repeat(300));
        assert_eq!(usable(&long).len(), MAX_NAME);
        assert!(usable(&long).ends_with("ö.pdf"));
    }

    #[test]
    fn names_that_are_taken_are_counted() {
        assert_eq!(numbered("a.tar.gz", 1), "a.tar.gz");
        assert_eq!(numbered("a.tar.gz", 2), "a.tar (2).gz");
        assert_eq!(numbered("README", 3), "README (3)");
    }

    proptest! {
        #[test]
        fn any_name_is_one_visible_file(given in ".{0,400}", count in 1..2000_u32) {
            let name = numbered(&usable(&given), count);
            prop_assert!(!name.contains('/') && !name.starts_with(['.', '-']) && !name.is_empty());
            prop_assert!(name.len() <= 255 && name.chars().all(is_plain));
        }
    }
}
