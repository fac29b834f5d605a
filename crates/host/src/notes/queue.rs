//! Notifications that wait because others came before them, or because no desk is there.
//!
//! A few pass at once, then one a second. While that holds them back, a later one of a program takes the place of its
//! waiting one, so that a flood becomes its newest. It decides nothing about what they say. Invariant: at most
//! [`MAX_WAITING`] wait, and what is given up is told to the caller.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::{Note, Time};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pace: Pace,
    waiting: VecDeque<Note>,
}

impl Queue {
    /// One comes. Gives the id of another that is given up for it, if one is. It takes the place of the one with its id
    /// in any case, and of the last of its program if that only waits for its turn (`moving`).
    pub(crate) fn add(&mut self, note: Note, moving: bool) -> Option<u32> {
        if let Some(same) = self.waiting.iter_mut().find(|waiting| waiting.id == note.id) {
            *same = note;
            return None;
        }
        let last = self.waiting.iter_mut().rfind(|waiting| waiting.app == note.app);
        if let Some(last) = last.filter(|_| moving) {
            return Some(std::mem::replace(last, note).id);
        }
        self.waiting.push_back(note);
        if self.waiting.len() > MAX_WAITING { self.waiting.pop_front().map(|oldest| oldest.id) } else { None }
    }

    /// Takes one back. Says whether it was waiting.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|note| note.id != id);
        self.waiting.len() < before
    }

    /// The next one, if it may pass at `now`.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Note> {
        if self.waiting.is_empty() || !self.pace.take(now) {
            return None;
        }
        self.waiting.pop_front()
    }

    /// When the next one may pass; `None` if none waits.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then(|| self.pace.opens())
    }
}

/// How many may pass: some at once, and then one now and then.
#[derive(Debug, Default)]
struct Pace {
    /// When all that passed have been paid for.
    paid: Time,
}

impl Pace {
    /// Whether another one may pass at `now`.
    fn take(&mut self, now: Time) -> bool {
        let fits = now >= self.opens();
        if fits {
            self.paid = self.paid.max(now) + STEP;
        }
        fits
    }

    /// When another one may pass.
    fn opens(&self) -> Time {
        self.paid - STEP * (MAX_AT_ONCE - 1)
    }
}

/// Notifications that pass at once.
const MAX_AT_ONCE: u32 = 5;
/// After those, one in so long.
const STEP: Duration = Duration::from_secs(1);
/// Notifications that wait; for a later one the oldest is given up.
const MAX_WAITING: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(id: u32, app: &str) -> Note {
        Note { id, app: app.into(), ..Note::default() }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(100_000 + millis)
    }

    fn passed(queue: &mut Queue, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| queue.poll(now)).map(|note| note.id).collect()
    }

    #[test]
    fn five_pass_at_once_and_then_one_a_second() {
        let mut queue = Queue::default();
        assert_eq!(queue.next_timeout(), None);
        (1..=9).for_each(|id| assert_eq!(queue.add(note(id, ""), false), None));
        assert_eq!(passed(&mut queue, at(0)), [1, 2, 3, 4, 5]);
        assert_eq!(queue.next_timeout(), Some(at(1000)));
        assert!(passed(&mut queue, at(999)).is_empty());
        assert_eq!(passed(&mut queue, at(1000)), [6]);
        assert_eq!(passed(&mut queue, at(600_000)), [7, 8, 9]);
        assert_eq!(queue.next_timeout(), None);
    }

    #[test]
    fn a_flood_of_one_program_becomes_its_newest_and_leaves_others_their_turn() {
        let mut queue = Queue::default();
        let mut given_up = 0;
        queue.add(note(1000, "other"), true);
        for id in 1..=200 {
            given_up += usize::from(queue.add(note(id, "flood"), true).is_some());
            queue.poll(at(0));
        }
        // Five passed, the other's among them.
        assert_eq!(given_up, 200 - 4 - 1);
        assert_eq!(passed(&mut queue, at(1000)), [200]);
    }

    #[test]
    fn while_no_desk_is_there_the_newest_16_wait() {
        let mut queue = Queue::default();
        let given_up: Vec<u32> = (1..=20).filter_map(|id| queue.add(note(id, "one"), false)).collect();
        assert_eq!(given_up, [1, 2, 3, 4]);
        assert_eq!(queue.waiting.len(), MAX_WAITING);
    }

    #[test]
    fn one_of_the_same_id_takes_its_place_and_one_that_was_taken_back_never_passes() {
        let mut queue = Queue::default();
        queue.add(note(1, "a"), false);
        queue.add(note(2, "b"), false);
        assert_eq!(queue.add(Note { summary: "new".into(), ..note(1, "a") }, false), None);
        assert!(queue.remove(2) && !queue.remove(2));
        assert_eq!(queue.poll(at(0)).map(|note| note.summary).as_deref(), Some("new"));
        assert_eq!(queue.poll(at(0)), None);
    }
}
