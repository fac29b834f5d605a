//! Keyboards: which keys are held, so that the app side hears of it, and which keymap it has already.
//!
//! Knows no other events. Invariant: while a key of a keyboard is held, a heartbeat is due within
//! [`BEAT`]; none is due when no key is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use wayferry_proto::Time;

use crate::message::WireId;

/// Time between two heartbeats. The app side releases the keys after 250 ms without one.
const BEAT: Duration = Duration::from_millis(100);

/// Keys that one keyboard can report as held; more are not counted.
const MAX_KEYS: usize = 256;

/// All keyboards of a connection.
#[derive(Debug, Default)]
pub(super) struct Keyboards {
    keyboards: BTreeMap<WireId, Keyboard>,
}

#[derive(Debug, Default)]
struct Keyboard {
    held: BTreeSet<u32>,
    beat: Option<Time>,
    /// The keymap that the app side told its program.
    known: Option<u128>,
}

impl Keyboards {
    pub(super) fn add(&mut self, keyboard: WireId) {
        self.keyboards.entry(keyboard).or_default();
    }

    pub(super) fn remove(&mut self, keyboard: WireId) {
        self.keyboards.remove(&keyboard);
    }

    /// The program has this keymap.
    pub(super) fn known(&mut self, keyboard: WireId, hash: u128) {
        self.keyboards.entry(keyboard).or_default().known = Some(hash);
    }

    /// Whether a keymap that the compositor sends is news to the program.
    pub(super) fn is_news(&mut self, keyboard: WireId, hash: u128) -> bool {
        let Some(keyboard) = self.keyboards.get_mut(&keyboard) else { return true };
        keyboard.known.replace(hash) != Some(hash)
    }

    /// A key went down or up.
    pub(super) fn key(&mut self, now: Time, keyboard: WireId, key: u32, pressed: bool) {
        let Some(keyboard) = self.keyboards.get_mut(&keyboard) else { return };
        if !pressed {
            keyboard.held.remove(&key);
        } else if keyboard.held.len() < MAX_KEYS {
            keyboard.held.insert(key);
        }
        keyboard.schedule(now);
    }

    /// A surface got the focus while these keys are down: an array of 32-bit words.
    pub(super) fn enter(&mut self, now: Time, keyboard: WireId, keys: &[u8]) {
        let Some(keyboard) = self.keyboards.get_mut(&keyboard) else { return };
        keyboard.held =
            keys.as_chunks::<4>().0.iter().take(MAX_KEYS).map(|key| u32::from_ne_bytes(*key)).collect();
        keyboard.schedule(now);
    }

    /// The focus is lost, and with it all keys.
    pub(super) fn leave(&mut self, now: Time, keyboard: WireId) {
        self.enter(now, keyboard, &[]);
    }

    /// When the next heartbeat is due.
    pub(super) fn next_beat(&self) -> Option<Time> {
        self.keyboards.values().filter_map(|keyboard| keyboard.beat).min()
    }

    /// The keyboards whose heartbeat is due; the next ones are scheduled.
    pub(super) fn beats(&mut self, now: Time) -> Vec<WireId> {
        let due =
            self.keyboards.iter_mut().filter(|(_, keyboard)| keyboard.beat.is_some_and(|beat| beat <= now));
        due.map(|(wire, keyboard)| {
            keyboard.beat = Some(now + BEAT);
            *wire
        })
        .collect()
    }
}

impl Keyboard {
    fn schedule(&mut self, now: Time) {
        if self.held.is_empty() {
            self.beat = None;
        } else if self.beat.is_none() {
            self.beat = Some(now + BEAT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYBOARD: WireId = WireId(8);

    #[test]
    fn a_held_key_beats_every_100_ms_until_released() {
        let mut keyboards = Keyboards::default();
        keyboards.add(KEYBOARD);
        assert_eq!(keyboards.next_beat(), None);
        keyboards.key(Time::from_millis(10), KEYBOARD, 30, true);
        keyboards.key(Time::from_millis(50), KEYBOARD, 31, true);
        assert_eq!(keyboards.next_beat(), Some(Time::from_millis(110)));
        assert!(keyboards.beats(Time::from_millis(109)).is_empty());
        assert_eq!(keyboards.beats(Time::from_millis(110)), [KEYBOARD]);
        assert_eq!(keyboards.next_beat(), Some(Time::from_millis(210)));
        keyboards.key(Time::from_millis(120), KEYBOARD, 30, false);
        assert_eq!(keyboards.next_beat(), Some(Time::from_millis(210)));
        keyboards.key(Time::from_millis(130), KEYBOARD, 31, false);
        assert_eq!(keyboards.next_beat(), None);
    }

    #[test]
    fn focus_brings_and_takes_held_keys() {
        let mut keyboards = Keyboards::default();
        keyboards.add(KEYBOARD);
        keyboards.enter(Time::ZERO, KEYBOARD, &30u32.to_ne_bytes());
        assert!(keyboards.next_beat().is_some());
        keyboards.leave(Time::ZERO, KEYBOARD);
        assert_eq!(keyboards.next_beat(), None);
    }

    #[test]
    fn only_another_keymap_than_the_told_one_is_news() {
        let mut keyboards = Keyboards::default();
        keyboards.add(KEYBOARD);
        keyboards.known(KEYBOARD, 7);
        assert!(!keyboards.is_news(KEYBOARD, 7));
        assert!(keyboards.is_news(KEYBOARD, 8));
        assert!(!keyboards.is_news(KEYBOARD, 8));
        assert!(keyboards.is_news(KEYBOARD, 7));
    }
}
