//! Makes text from a peer safe for a terminal.
//!
//! Names, reasons and titles come from another machine; a control character in them could move the cursor, change
//! the terminal's title or worse. Nothing else is judged here. Invariant: no control character is left but a document's
//! line ends, and text by itself has at most `MAX_CHARS` characters.

use std::fmt::Write as _;

use serde_json::Value;

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

/// A document that holds text from a peer, indented where it `spreads` over lines: all of it is there, with what could
/// harm a terminal as `\uXXXX`.
pub fn json(document: &Value, spreads: bool) -> String {
    let text = if spreads { format!("{document:#}") } else { document.to_string() };
    let mut clean = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Such characters stand within strings alone, and those of more than 16 bits are none of them.
        if c != '\n' && is_harmful(c) {
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    clean.push('\n');
    clean
}

fn is_harmful(c: char) -> bool {
    // The bidirectional marks reorder what a reader sees.
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
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
    fn regression_a_document_holds_control_characters_as_they_came() {
        let harmful = [
            '\u{0}', '\n', '\u{1b}', '\u{7f}', '\u{80}', '\u{9b}', '\u{61c}', '\u{200f}', '\u{202e}',
            '\u{2069}',
        ];
        let text: String = harmful.iter().chain(&['x', '✓', '\u{1f600}']).collect();
        let document = serde_json::json!([{ text.clone(): text }]);
        for spreads in [false, true] {
            let clean = json(&document, spreads);
            let shown = clean.chars().filter(|&c| c != '\n').all(|c| !is_harmful(c));
            assert!(shown && clean.ends_with('\n') && clean.contains("\\u009b"), "{clean:?}");
            assert_eq!(serde_json::from_str::<Value>(&clean).expect("a document"), document);
        }
        assert_eq!(json(&serde_json::json!({ "a": "\u{9b}✓" }), false), "{\"a\":\"\\u009b✓\"}\n");
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
