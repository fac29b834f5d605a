//! Titles of windows, with something before them that says where they are from.
//!
//! Invariant: the whole fits into a message, and is cut between characters.

use crate::message::MAX_ARG_BYTES;

/// A title with something before it, each cut at the end of a character where it would not fit into a message.
pub(super) fn prefixed(prefix: &[u8], title: &[u8]) -> Vec<u8> {
    let mut whole = [&prefix[..cut(prefix, MAX_PREFIX)], title].concat();
    whole.truncate(cut(&whole, MAX_TITLE));
    whole
}

/// How much of a text fits into so many bytes, in whole characters.
fn cut(text: &[u8], most: usize) -> usize {
    let start_of_character = |byte: u8| byte & 0xc0 != 0x80;
    match text.get(most) {
        None => text.len(),
        Some(_) => (0..=most).rev().find(|end| start_of_character(text[*end])).unwrap_or(most),
    }
}

/// Bytes of the longest title: a whole message has its head, the length and the NUL beside it.
const MAX_TITLE: usize = MAX_ARG_BYTES - 8 - 4 - 1;
/// Bytes of what is put before titles: far more than anybody reads, far less than a title.
const MAX_PREFIX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_long_title_still_fits_with_what_is_put_before_it() {
        assert_eq!(prefixed(b"view: ", b"foot"), b"view: foot");
        assert_eq!(prefixed(b"", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        assert_eq!(prefixed(b"view: ", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        let cut = prefixed(b"view: ", "\u{e9}".repeat(MAX_TITLE / 2).as_bytes());
        assert!(cut.len() >= MAX_TITLE - 1 && str::from_utf8(&cut).is_ok());
    }

    #[test]
    fn what_is_put_before_a_title_never_swallows_it() {
        let whole = prefixed("\u{e9}".repeat(MAX_TITLE).as_bytes(), b"foot");
        assert!(whole.ends_with(b"foot") && str::from_utf8(&whole).is_ok());
        assert_eq!(whole.len(), MAX_PREFIX + 4);
    }
}
