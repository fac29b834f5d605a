//! Numbers of keys: both sides count presses as they go to a program, repeats too, of all its keyboards, from 1.
//!
//! Knows neither what a key is nor what it does. Checks what the app side says of a number, and has what it says of
//! late keys wait for the commits that it said before. Invariant: no number leaves here that was not given out here, so
//! a number that was made up is like none.

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Presses {
    /// The number of the last one.
    pressed: u64,
    /// The last one that was said to be late.
    late: u64,
    /// Late keys, and what was held before each: the first that waits, and the last.
    first: Option<(u64, u64)>,
    last: Option<(u64, u64)>,
}

impl Presses {
    /// A key that goes to the app side now; gives its number.
    pub(super) fn press(&mut self) -> u64 {
        self.pressed += 1;
        self.pressed
    }

    /// A number of the app side's, if there is such a key.
    pub(super) fn known(&self, key: Option<u64>) -> Option<u64> {
        key.filter(|key| (1..=self.pressed).contains(key))
    }

    /// The app side says that keys up to this one are late, after all that is before `mark`.
    pub(super) fn late(&mut self, key: u64, mark: u64) {
        let Some(key) = self.known(Some(key)).filter(|key| *key > self.late) else { return };
        self.late = key;
        let place = if self.first.is_some() { &mut self.last } else { &mut self.first };
        *place = Some((key, mark));
    }

    /// The next late key of which all has gone that was before.
    pub(super) fn next_late(&mut self, has_gone: impl FnOnce(u64) -> bool) -> Option<u64> {
        let (key, _) = self.first.filter(|(_, mark)| has_gone(*mark))?;
        self.first = self.last.take();
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(count: u64) -> Presses {
        let mut presses = Presses::default();
        (1..=count).for_each(|number| assert_eq!(presses.press(), number));
        presses
    }

    #[test]
    fn numbers_of_keys_that_were_never_pressed_are_none() {
        let presses = pressed(2);
        let told = [None, Some(0), Some(1), Some(2), Some(3), Some(u64::MAX)];
        assert_eq!(told.map(|key| presses.known(key)), [None, None, Some(1), Some(2), None, None]);
    }

    #[test]
    fn late_keys_are_told_once_and_only_if_they_were_pressed() {
        let mut presses = pressed(3);
        for key in [4, 2, 2, 1, 0, u64::MAX] {
            presses.late(key, 0);
        }
        assert_eq!(presses.next_late(|_| true), Some(2));
        assert_eq!(presses.next_late(|_| true), None);
        presses.late(2, 0);
        assert_eq!(presses.next_late(|_| true), None, "it was told before");
    }

    #[test]
    fn late_keys_wait_for_what_was_said_before_and_take_two_places() {
        let mut presses = pressed(9);
        (1..=9).for_each(|key| presses.late(key, key * 10));
        assert_eq!(presses.next_late(|mark| mark <= 9), None);
        assert_eq!(presses.next_late(|mark| mark <= 10), Some(1));
        assert_eq!(presses.next_late(|mark| mark <= 89), None);
        assert_eq!(presses.next_late(|mark| mark <= 90), Some(9), "it stands for those before it");
        assert_eq!(presses.next_late(|_| true), None);
    }
}
