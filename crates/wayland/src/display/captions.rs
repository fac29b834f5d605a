//! Titles of windows, with what this side puts around them: where they are from, and that nothing is heard from there.
//!
//! The program's own title never changes, and the app side has no say in what is put around it. Invariant: the whole
//! fits into a message, and is cut between characters.

use std::collections::HashMap;

use crate::message::{MAX_ARG_BYTES, WireId};

/// The titles of one program's windows.
#[derive(Debug, Default)]
pub(super) struct Captions {
    /// Put before each.
    prefix: Vec<u8>,
    /// Nothing is heard from the other machine.
    is_stale: bool,
    /// As the program set them; long ones beyond [`MAX_KEPT`] are not here.
    titles: HashMap<WireId, Vec<u8>>,
    kept: usize,
}

impl Captions {
    pub(super) fn new(prefix: &str) -> Self {
        let prefix = prefix.as_bytes();
        Self { prefix: prefix[..cut(prefix, MAX_PREFIX)].to_vec(), ..Self::default() }
    }

    /// The program has set a title; gives the one to be shown.
    pub(super) fn set(&mut self, toplevel: WireId, title: &[u8]) -> Vec<u8> {
        self.forget(toplevel);
        let title = &title[..cut(title, MAX_TITLE)];
        if self.kept + title.len() <= MAX_KEPT {
            self.kept += title.len();
            self.titles.insert(toplevel, title.to_vec());
        }
        self.whole(title)
    }

    /// What a window is called to which its program gives no title, if anything.
    pub(super) fn untitled(&mut self, toplevel: WireId) -> Option<Vec<u8>> {
        let whole = self.set(toplevel, b"");
        (!whole.is_empty()).then_some(whole)
    }

    /// The window is gone.
    pub(super) fn forget(&mut self, toplevel: WireId) {
        self.kept -= self.titles.remove(&toplevel).map_or(0, |title| title.len());
    }

    /// Whether something is heard from the other machine has changed; gives the titles that are to be told again.
    pub(super) fn set_stale(&mut self, is_stale: bool) -> Vec<(WireId, Vec<u8>)> {
        if std::mem::replace(&mut self.is_stale, is_stale) == is_stale {
            return Vec::new();
        }
        self.titles.iter().map(|(toplevel, title)| (*toplevel, self.whole(title))).collect()
    }

    fn whole(&self, title: &[u8]) -> Vec<u8> {
        let suffix = if self.is_stale { STALE } else { b"" };
        let room = MAX_TITLE - self.prefix.len() - suffix.len();
        [&self.prefix[..], &title[..cut(title, room)], suffix].concat()
    }
}

/// How much of a text fits into so many bytes, in whole characters.
fn cut(text: &[u8], most: usize) -> usize {
    let start_of_character = |byte: u8| byte & 0xc0 != 0x80;
    match text.get(most) {
        None => text.len(),
        Some(_) => (0..=most).rev().find(|end| start_of_character(text[*end])).unwrap_or(most),
    }
}

/// Behind titles while nothing is heard from the other machine.
const STALE: &[u8] = b" (no contact)";
/// Bytes of the longest title: a whole message has its head, the length and the NUL beside it.
const MAX_TITLE: usize = MAX_ARG_BYTES - 8 - 4 - 1;
/// Bytes of what is put before titles: far more than anybody reads, far less than a title.
const MAX_PREFIX: usize = 256;
/// Bytes of titles that are kept of one program. Windows whose titles do not fit are not marked while nothing is heard.
const MAX_KEPT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: WireId = WireId(4);

    fn shown(prefix: &str, title: &[u8]) -> Vec<u8> {
        Captions::new(prefix).set(WINDOW, title)
    }

    #[test]
    fn regression_a_long_title_still_fits_with_what_is_put_before_it() {
        assert_eq!(shown("view: ", b"foot"), b"view: foot");
        assert_eq!(shown("", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        assert_eq!(shown("view: ", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        let cut = shown("view: ", "\u{e9}".repeat(MAX_TITLE / 2).as_bytes());
        assert!(cut.len() >= MAX_TITLE - 1 && str::from_utf8(&cut).is_ok());
    }

    #[test]
    fn what_is_put_before_a_title_never_swallows_it() {
        let whole = shown(&"\u{e9}".repeat(MAX_TITLE), b"foot");
        assert!(whole.ends_with(b"foot") && str::from_utf8(&whole).is_ok());
        assert_eq!(whole.len(), MAX_PREFIX + 4);
    }

    #[test]
    fn titles_say_when_nothing_is_heard_and_are_as_before_when_it_is() {
        let mut captions = Captions::new("far: ");
        captions.set(WINDOW, b"foot");
        assert_eq!(captions.set_stale(true), [(WINDOW, b"far: foot (no contact)".to_vec())]);
        assert_eq!(captions.set_stale(true), []);
        let long = captions.set(WINDOW, &[b'a'; MAX_TITLE]);
        assert!(long.len() == MAX_TITLE && long.ends_with(STALE));
        captions.set(WINDOW, b"vi");
        assert_eq!(captions.set_stale(false), [(WINDOW, b"far: vi".to_vec())]);
        captions.forget(WINDOW);
        assert_eq!(captions.set_stale(true), []);
    }

    #[test]
    fn a_window_without_a_title_has_what_is_put_before_it() {
        assert_eq!(Captions::new("far: ").untitled(WINDOW), Some(b"far: ".to_vec()));
        assert_eq!(Captions::new("").untitled(WINDOW), None);
    }

    #[test]
    fn titles_that_are_kept_are_bounded_and_those_that_are_not_are_shown_all_the_same() {
        let mut captions = Captions::default();
        let title = [b'a'; MAX_TITLE];
        for n in 0..1000 {
            assert_eq!(captions.set(WireId(4 + 2 * n), &title), title);
        }
        assert!(captions.kept <= MAX_KEPT && captions.titles.len() == MAX_KEPT / MAX_TITLE);
        (0..1000).for_each(|n| captions.forget(WireId(4 + 2 * n)));
        assert_eq!((captions.kept, captions.titles.len()), (0, 0));
    }
}
