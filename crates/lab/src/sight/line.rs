//! A line that is typed at its end: what it looks like after each key, and when each was seen.
//!
//! Letters, blanks, BackSpace, and Return as the last one. A picture shows the line after some of the keys that were
//! pressed; where the line is the same after several of them, after the next one from what was shown before, for a
//! letter that is taken back leaves the line as it was. A picture that shows the line after none of them is wrong,
//! until one does. Invariant: pictures are looked at in their order.

use std::time::Duration;

use super::letters::Cell;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// What stands there before the first key.
    begin: Vec<char>,
    keys: Vec<Key>,
    /// What was seen last.
    last: Vec<Cell>,
    /// How many keys that shows; `None` before the line was seen at all.
    shown: Option<usize>,
    /// How often that became less.
    went_back: usize,
    wrong_since: Option<Duration>,
    wrong: Vec<Duration>,
}

/// A key that was pressed.
#[derive(Debug)]
struct Key {
    at: Duration,
    /// The line after it, and whether the caret has left that.
    after: Vec<char>,
    has_left: bool,
    /// The cell that its letter is in.
    cell: Option<usize>,
    seen: Option<Duration>,
}

impl Line {
    /// A line that begins with this text, and the caret behind it.
    pub(crate) fn new(begin: &str) -> Self {
        Self { begin: begin.chars().collect(), ..Self::default() }
    }

    /// A key was pressed.
    pub(crate) fn press(&mut self, at: Duration, letter: char) {
        let mut after = self.keys.last().map_or(&self.begin, |key| &key.after).clone();
        let (mut cell, has_left) = (None, letter == '\n');
        if letter == BACKSPACE {
            after.pop();
        } else if !has_left {
            cell = Some(after.len());
            after.push(letter);
        }
        self.keys.push(Key { at, after, has_left, cell, seen: None });
    }

    /// The line looks like this from `time` on; all keys before that are known.
    pub(crate) fn sees(&mut self, time: Duration, cells: &[Cell]) {
        if self.last == cells {
            return;
        }
        self.last = cells.to_vec();
        match self.count(time, cells) {
            Some(count) => {
                self.ends(time);
                self.shows(time, count);
            }
            // What stood there before the line began is not of it.
            None if self.shown.is_some() => drop(self.wrong_since.get_or_insert(time)),
            None => {}
        }
    }

    /// The line is looked at no more: what is wrong has stayed until now.
    pub(crate) fn ends(&mut self, time: Duration) {
        self.wrong.extend(self.wrong_since.take().map(|since| time - since));
    }

    /// Whether the line looks like that before the first key.
    pub(crate) fn begins_as(&self, cells: &[Cell]) -> bool {
        self.looks_like(0, cells)
    }

    /// How many keys were pressed.
    pub(crate) fn pressed(&self) -> usize {
        self.keys.len()
    }

    /// How long each key took that was seen.
    pub(crate) fn delays(&self) -> impl Iterator<Item = Duration> {
        self.keys.iter().filter_map(|key| Some(key.seen? - key.at))
    }

    /// How long each wrong picture stayed.
    pub(crate) fn wrong(&self) -> &[Duration] {
        &self.wrong
    }

    /// How often it was shown as after fewer keys than before.
    pub(crate) fn went_back(&self) -> usize {
        self.went_back
    }

    /// After how many keys the line looks like this.
    fn count(&self, time: Duration, cells: &[Cell]) -> Option<usize> {
        let pressed = self.keys.partition_point(|key| key.at <= time);
        let shown = self.shown.unwrap_or(0);
        let fits = |count: &usize| self.looks_like(*count, cells);
        (shown..=pressed).find(fits).or_else(|| (0..shown).rev().find(fits))
    }

    fn looks_like(&self, count: usize, cells: &[Cell]) -> bool {
        let (text, has_left) = match count.checked_sub(1).map(|last| &self.keys[last]) {
            Some(key) => (&key.after, key.has_left),
            None => (&self.begin, false),
        };
        let Some((written, rest)) = cells.split_at_checked(text.len()) else { return false };
        let is_written = text.iter().zip(written).all(|(letter, cell)| match cell {
            Cell::Letter(seen) => seen == letter,
            Cell::Blank => *letter == ' ',
            Cell::Place => *letter != ' ',
            Cell::Caret | Cell::Other => false,
        });
        let caret = if has_left { Cell::Blank } else { Cell::Caret };
        is_written
            && rest.iter().zip([caret].iter().chain(std::iter::repeat(&Cell::Blank))).all(|(a, b)| a == b)
    }

    /// The line shows so many keys, but for letters of which only the place is shown.
    fn shows(&mut self, time: Duration, count: usize) {
        self.went_back += usize::from(self.shown.replace(count).is_some_and(|before| count < before));
        let cells = &self.last;
        let is_place = |cell: Option<usize>| cell.and_then(|cell| cells.get(cell)) == Some(&Cell::Place);
        for key in self.keys[..count].iter_mut().filter(|key| key.seen.is_none() && !is_place(key.cell)) {
            key.seen = Some(time);
        }
    }
}

/// What the key of that name types.
pub(crate) const BACKSPACE: char = '\u{8}';

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Cells as a text: `|` is a caret, `#` a place, `?` anything else.
    fn cells(text: &str) -> Vec<Cell> {
        let cell = |letter| match letter {
            ' ' => Cell::Blank,
            '|' => Cell::Caret,
            '#' => Cell::Place,
            '?' => Cell::Other,
            letter => Cell::Letter(letter),
        };
        format!("{text:<8}").chars().map(cell).collect()
    }

    fn typed(keys: &[(u64, char)], pictures: &[(u64, &str)]) -> Line {
        let mut line = Line::new("$ ");
        keys.iter().for_each(|(at, letter)| line.press(ms(*at), *letter));
        pictures.iter().for_each(|(at, text)| line.sees(ms(*at), &cells(text)));
        line
    }

    fn delays(line: &Line) -> Vec<u64> {
        line.delays().map(|delay| delay.as_millis() as u64).collect()
    }

    #[test]
    fn a_key_is_seen_when_the_line_is_as_after_it() {
        let keys = [(100, 'a'), (200, ' '), (300, 'b'), (400, '\n')];
        let line =
            typed(&keys, &[(0, "$ |"), (102, "$ a|"), (330, "$ a |"), (340, "$ a b|"), (500, "$ a b")]);
        assert_eq!(delays(&line), [2, 130, 40, 100]);
        assert!(line.wrong().is_empty());
    }

    #[test]
    fn no_key_is_seen_before_it_is_pressed() {
        let line = typed(&[(100, 'a'), (200, 'b')], &[(0, "$ |"), (150, "$ ab|"), (210, "$ ab")]);
        assert_eq!(delays(&line), Vec::<u64>::new());
    }

    /// Both letters are on their way when the first one is taken back.
    #[test]
    fn a_letter_that_is_taken_back_is_seen_before_that() {
        let keys = [(100, 'a'), (110, 'b'), (120, BACKSPACE)];
        let line = typed(&keys, &[(0, "$ |"), (300, "$ a|"), (310, "$ ab|"), (320, "$ a|")]);
        assert_eq!(delays(&line), [200, 200, 200]);
    }

    #[test]
    fn a_place_is_no_letter_yet_and_nothing_wrong() {
        let keys = [(100, 'a'), (200, 'b')];
        let line = typed(&keys, &[(0, "$ |"), (102, "$ #|"), (203, "$ #b|"), (303, "$ ab|")]);
        assert_eq!(delays(&line), [203, 3]);
        assert!(line.wrong().is_empty());
    }

    #[test]
    fn what_no_key_made_is_wrong_until_it_is_gone() {
        let keys = [(100, 'a'), (200, 'b')];
        let line = typed(
            &keys,
            &[(0, "?"), (50, "$ |"), (102, "$ e|"), (140, "$ ee|"), (205, "$ |"), (300, "$ ab|")],
        );
        assert_eq!(line.wrong(), [ms(103)]);
        assert_eq!(delays(&line), [200, 100]);
    }

    #[test]
    fn what_is_wrong_at_the_end_was_wrong_until_then() {
        let mut line = typed(&[(100, 'a')], &[(0, "$ |"), (102, "$ a|"), (300, "$ b|")]);
        assert!(line.wrong().is_empty());
        line.ends(ms(900));
        assert_eq!(line.wrong(), [ms(600)]);
    }

    #[test]
    fn what_is_shown_may_be_taken_back_and_come_again() {
        let keys = [(100, 'a'), (110, 'b')];
        let line = typed(&keys, &[(0, "$ |"), (102, "$ a|"), (112, "$ ab|"), (150, "$ |"), (210, "$ ab|")]);
        assert_eq!(delays(&line), [2, 2]);
        assert_eq!((line.wrong().len(), line.went_back()), (0, 1));
    }
}
