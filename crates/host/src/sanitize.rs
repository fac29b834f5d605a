//! Makes text from a peer safe for a terminal.
//!
//! Names, reasons and titles come from another machine; a control character in them could move the cursor, change
//! the terminal's title or worse. Nothing else is judged here. Invariant: the result has no control character and
//! at most `MAX_CHARS` characters.

/// Longest text from a peer that is shown.
const MAX_CHARS: usize = 300;

/// `text` with control characters and invisible direction marks replaced, cut to a bounded length.
pub fn sanitize(text: &str) -> String {
    let mut clean: String =
        text.chars().take(MAX_CHARS).map(|c| if is_harmful(c) { '\u{FFFD}' } else { c }).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        clean.push('…');
    }
    clean
}

fn is_harmful(c: char) -> bool {
    // The bidirectional marks reorder what a reader sees.
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_pass() {
        let clean = sanitize("a\u{1b}]0;owned\u{7}\nb\u{9b}31m\u{202e}x");
        assert_eq!(clean, "a\u{FFFD}]0;owned\u{FFFD}\u{FFFD}b\u{FFFD}31m\u{FFFD}x");
    }

    #[test]
    fn long_text_is_cut() {
        let clean = sanitize(&"x".repeat(10_000));
        assert_eq!(clean.chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn ordinary_text_stays() {
        assert_eq!(sanitize("foot — Ünïcode ✓"), "foot — Ünïcode ✓");
    }
}
