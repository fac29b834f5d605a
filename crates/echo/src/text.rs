//! Running text: lines that follow each other without a word from the program, as in an editor.
//!
//! After a Return that only opens one more such line, one letter that is known well enough confirms the epoch. A prompt
//! stands left of where its line begins, so what is typed there is no running text, hidden or not.
//!
//! The one invariant: no line is one of running text before [`LINES`] in a row were that have been confirmed, with
//! nothing left of where they begin, each directly below the one before.

use crate::key::Key;

/// The lines before the present one.
#[derive(Default)]
pub(crate) struct Text {
    /// Where the present line begins, if nothing is left of there.
    begins: Option<(u32, u32)>,
    /// Letters that were typed in it have come true.
    is_confirmed: bool,
    /// Lines of running text before it.
    lines: u32,
}

impl Text {
    /// `key`, which is no letter, ends an epoch; letters had come true in it, or not.
    pub(crate) fn left(&mut self, key: Key, is_confirmed: bool) {
        self.is_confirmed |= is_confirmed;
        if !(key.is_return() || key.is_way()) {
            *self = Self::default();
        }
    }

    /// Return was answered: the caret, so high, went from `before` to where a line begins. Says whether that line is
    /// one of running text.
    pub(crate) fn returned(
        &mut self,
        before: Option<(u32, u32)>,
        now: Option<(u32, u32)>,
        height: u32,
    ) -> bool {
        let is_next = |(from, to): ((u32, u32), (u32, u32))| to.1 > from.1 && to.1 - from.1 <= height * 3 / 2;
        let goes_on =
            before.zip(now).is_some_and(is_next) && now.zip(self.begins).is_some_and(|(a, b)| a.0 == b.0);
        let is_empty = before.is_some() && before == self.begins;
        let counts = goes_on && (self.is_confirmed || is_empty);
        let lines = self.lines + u32::from(self.is_confirmed);
        *self = Self { begins: now, is_confirmed: false, lines: if counts { lines } else { 0 } };
        self.lines >= LINES
    }

    /// The user did something else.
    pub(crate) fn ended(&mut self) {
        *self = Self::default();
    }
}

/// Lines in a row that make running text.
const LINES: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const RETURN: Key = Key { code: 28, modifiers: 0, group: 0 };
    const DOWN: Key = Key { code: 108, modifiers: 0, group: 0 };
    const INTERRUPT: Key = Key { code: 46, modifiers: 4, group: 0 };

    /// Lines of 16 pixels; letters were typed in each of them. Says which of them ran on.
    fn lines(text: &mut Text, begins: &[Option<u32>]) -> Vec<bool> {
        let line = |(y, begins): (u32, &Option<u32>)| {
            text.left(RETURN, true);
            text.returned(Some((90, y * 16)), begins.map(|x| (x, y * 16 + 16)), 16)
        };
        (0..).zip(begins).map(line).collect()
    }

    #[test]
    fn text_runs_after_two_confirmed_lines_with_nothing_left_of_them() {
        assert_eq!(lines(&mut Text::default(), &[Some(4); 5]), [false, false, true, true, true]);
    }

    #[test]
    fn a_prompt_or_another_beginning_ends_it() {
        let begins = [Some(4), Some(4), Some(4), None, Some(4), Some(4), Some(12), Some(4)];
        let runs = lines(&mut Text::default(), &begins);
        assert_eq!(runs, [false, false, true, false, false, false, false, false]);
    }

    #[test]
    fn a_line_that_showed_nothing_ends_it() {
        let mut text = Text::default();
        lines(&mut text, &[Some(4); 3]);
        text.left(RETURN, false);
        assert!(!text.returned(Some((90, 48)), Some((4, 64)), 16));
    }

    #[test]
    fn an_empty_line_does_not() {
        let mut text = Text::default();
        lines(&mut text, &[Some(4); 3]);
        text.left(RETURN, false);
        assert!(text.returned(Some((4, 48)), Some((4, 64)), 16));
    }

    #[test]
    fn what_the_program_says_between_ends_it() {
        let mut text = Text::default();
        lines(&mut text, &[Some(4); 3]);
        text.left(RETURN, true);
        assert!(!text.returned(Some((90, 48)), Some((4, 96)), 16), "two lines below");
    }

    #[test]
    fn ways_through_it_do_not_end_it_and_commands_do() {
        let mut text = Text::default();
        lines(&mut text, &[Some(4); 3]);
        text.left(DOWN, true);
        text.left(RETURN, true);
        assert!(text.returned(Some((90, 48)), Some((4, 64)), 16));
        text.left(INTERRUPT, true);
        text.left(RETURN, true);
        assert!(!text.returned(Some((90, 64)), Some((4, 80)), 16));
    }
}
