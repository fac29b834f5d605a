//! Keys that the program has, and whether it has answered them.
//!
//! A key is with the program once its event has been written to the socket. The first new content that comes after
//! that answers it, and those before it; where none comes for so long that none is to be expected, it is late. What
//! keys mean and what contents show is not looked at: whether an answer shows the key is the display side's to see.
//! Places are counts of bytes, of what the program was written and of what came of it.
//!
//! Invariant: each key is answered or late once, in order; and a content that came before the program had a key never
//! answers it.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::Time;

/// Keys that are neither answered nor late; the oldest are given up for those behind them, whose answer is theirs too.
const MAX_KEYS: usize = 64;

/// Answers of which it is known how long they took.
const MAX_TIMES: usize = 32;

/// A program has so long for an answer, at least and at most.
const PATIENCE: Duration = Duration::from_millis(50);
const LONG_PATIENCE: Duration = Duration::from_secs(1);

/// What comes so long after a late key may have been its answer after all: the program is slow, not silent.
const SLOW: Duration = Duration::from_millis(250);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The number of the last key that came.
    pressed: u64,
    /// Of the last that is answered or late.
    done: u64,
    keys: VecDeque<Key>,
    /// When the first late key was given that nothing has followed.
    silent: Option<Time>,
    times: VecDeque<Duration>,
}

#[derive(Debug)]
struct Key {
    number: u64,
    /// Where its event ends among what the program is written.
    end: u64,
    /// Since when the program has it, or may have.
    since: Time,
    /// What had come of the program when it got it.
    after: Option<u64>,
}

impl Answers {
    /// A key comes from the display side, whether the program gets it or not.
    pub(super) fn press(&mut self) {
        self.pressed += 1;
    }

    /// How many have come.
    pub(super) fn pressed(&self) -> u64 {
        self.pressed
    }

    /// The program gets it, once so much has been written.
    pub(super) fn give(&mut self, now: Time, end: u64) {
        if self.keys.len() == MAX_KEYS
            && let Some(oldest) = self.keys.pop_front()
        {
            self.done = oldest.number;
        }
        self.keys.push_back(Key { number: self.pressed, end, since: now, after: None });
    }

    /// So much has been written to the program, and so much has come of it; what comes next may answer that.
    pub(super) fn written(&mut self, now: Time, written: u64, received: u64) {
        for key in self.keys.iter_mut().rev().take_while(|key| key.after.is_none()) {
            match key.end <= written {
                true => key.after = Some(received),
                false => key.since = now,
            }
        }
    }

    /// The last key that the program had when it made what ends at this place.
    pub(super) fn before(&self, place: u64) -> Option<u64> {
        let had = |key: &&Key| key.after.is_some_and(|after| after < place);
        let last = self.keys.iter().rev().find(had).map_or(self.done, |key| key.number);
        Some(last).filter(|last| *last > 0)
    }

    /// New content comes, by a request that ends at this place.
    pub(super) fn content(&mut self, now: Time, place: u64) {
        if let Some(late) = self.silent.take().map(|since| now.since(since)).filter(|late| *late <= SLOW) {
            self.took(late);
        }
        while let Some(key) = self.keys.pop_front_if(|key| key.after.is_some_and(|after| after < place)) {
            self.done = key.number;
            self.took(now.since(key.since));
        }
    }

    /// When a key will be late, if so much has been written.
    pub(super) fn due(&self, written: u64) -> Option<Time> {
        let first = self.keys.front().filter(|key| key.end <= written)?;
        Some(first.since + self.patience())
    }

    /// The last key that is late now; those before it are, too.
    pub(super) fn late(&mut self, now: Time, written: u64) -> Option<u64> {
        let mut last = None;
        while self.due(written).is_some_and(|due| due <= now)
            && let Some(key) = self.keys.pop_front()
        {
            self.silent.get_or_insert(key.since);
            (self.done, last) = (key.number, Some(key.number));
        }
        last
    }

    /// The display is gone, and with it its numbers.
    pub(super) fn part(&mut self) {
        *self = Self { times: std::mem::take(&mut self.times), ..Self::default() };
    }

    fn took(&mut self, time: Duration) {
        if self.times.len() == MAX_TIMES {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// Twice what all but the slowest twentieth of the answers took.
    fn patience(&self) -> Duration {
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        times.sort_unstable();
        let usual = times.iter().rev().nth(times.len() / 20).copied().unwrap_or_default();
        (usual * 2).clamp(PATIENCE, LONG_PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// Keys that a program gets at once, each event eight bytes.
    struct Typed {
        answers: Answers,
        place: u64,
    }

    impl Typed {
        fn new() -> Self {
            Self { answers: Answers::default(), place: 0 }
        }

        fn key(&mut self, now: u64) {
            self.answers.press();
            self.answers.give(at(now), 8 * self.answers.pressed);
            self.answers.written(at(now), u64::MAX, self.place);
        }

        /// The last key that a content of now answers.
        fn content(&mut self, now: u64) -> Option<u64> {
            self.place += 8;
            let before = self.answers.before(self.place);
            self.answers.content(at(now), self.place);
            before
        }

        fn late(&mut self, now: u64) -> Option<u64> {
            self.answers.late(at(now), u64::MAX)
        }

        fn due(&self) -> Option<Time> {
            self.answers.due(u64::MAX)
        }
    }

    #[test]
    fn a_key_without_content_is_late_after_50_ms() {
        let mut typed = Typed::new();
        typed.key(10);
        assert_eq!(typed.due(), Some(at(60)));
        assert_eq!(typed.late(59), None);
        assert_eq!(typed.late(60), Some(1));
        assert_eq!((typed.late(1000), typed.due()), (None, None));
    }

    #[test]
    fn content_answers_the_keys_before_it() {
        let mut typed = Typed::new();
        assert_eq!(typed.content(0), None);
        typed.key(10);
        typed.key(12);
        assert_eq!(typed.content(20), Some(2));
        typed.key(30);
        assert_eq!(typed.due(), Some(at(80)));
        assert_eq!(typed.content(31), Some(3));
        assert_eq!((typed.content(40), typed.due()), (Some(3), None));
    }

    #[test]
    fn what_was_made_before_the_program_had_the_key_does_not_answer_it() {
        let mut answers = Answers::default();
        answers.press();
        answers.give(at(0), 20);
        // Half of the event is written; 96 bytes have come of the program.
        answers.written(at(5), 10, 96);
        assert_eq!((answers.before(100), answers.due(10)), (None, None));
        answers.written(at(40), 20, 104);
        for place in [100, 104] {
            answers.content(at(41), place);
            assert_eq!(answers.before(place), None);
        }
        assert_eq!(answers.before(112), Some(1));
        assert_eq!(answers.due(20), Some(at(55)), "it is with the program since it was last seen not to be");
    }

    #[test]
    fn a_slow_program_gets_more_time() {
        let mut typed = Typed::new();
        // 80 ms are late at first, and then no more.
        let lates = (0..4).map(|key| {
            let now = key * 1000;
            typed.key(now);
            let late = typed.late(now + 50);
            typed.content(now + 80);
            late
        });
        assert_eq!(lates.collect::<Vec<_>>(), [Some(1), None, None, None]);
        typed.key(9000);
        assert_eq!(typed.due(), Some(at(9160)));
        // One slow answer among many counts for nothing.
        for now in (10_000..14_000).step_by(100) {
            typed.key(now);
            typed.content(now + 3);
        }
        typed.key(15_000);
        assert_eq!(typed.due(), Some(at(15_050)));
    }

    #[test]
    fn a_program_that_never_answers_keeps_being_late_soon() {
        let mut typed = Typed::new();
        for now in (0..20_000).step_by(300) {
            typed.key(now);
            assert_eq!(typed.late(now + 50), Some(now / 300 + 1));
            if now % 600 == 0 {
                // A clock somewhere in the window.
                typed.content(now + 260);
            }
        }
    }

    #[test]
    fn a_key_that_the_program_never_got_is_answered_with_the_next() {
        let mut typed = Typed::new();
        typed.answers.press();
        typed.key(0);
        assert_eq!(typed.content(1), Some(2));
    }

    #[test]
    fn another_display_counts_anew() {
        let mut typed = Typed::new();
        typed.key(0);
        typed.key(0);
        typed.answers.part();
        assert_eq!((typed.content(1), typed.due()), (None, None));
        typed.key(2);
        assert_eq!(typed.content(3), Some(1));
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// A key, which the program may never get because its object is gone.
        Key {
            arrives: bool,
        },
        /// The socket takes so many more events.
        Write(u64),
        /// The program draws.
        Draw,
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => proptest::bool::weighted(0.9).prop_map(|arrives| Step::Key { arrives }),
            3 => (0u64..20).prop_map(Step::Write),
            2 => Just(Step::Draw),
            // 200 keys a second, to a key in a while.
            3 => (0u64..10).prop_map(Step::Wait),
            1 => (0u64..2000).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn each_key_is_answered_or_late_once_and_in_order(steps in prop::collection::vec(step(), 1..400)) {
            let (mut answers, mut now) = (Answers::default(), 0);
            let (mut queued, mut written, mut received) = (0u64, 0u64, 0u64);
            // The last key that the program had, and that something was said of.
            let (mut has, mut told) = (VecDeque::from([(0, 0u64)]), 0);
            let end = [Step::Write(u64::MAX), Step::Wait(2000)];
            for step in steps.into_iter().chain(end) {
                match step {
                    Step::Key { arrives } => {
                        answers.press();
                        if arrives {
                            queued += 1;
                            answers.give(at(now), queued);
                            has.push_back((queued, answers.pressed));
                        }
                    }
                    Step::Write(count) => written = written.saturating_add(count).min(queued),
                    Step::Draw => {
                        received += 8;
                        let before = answers.before(received).unwrap_or(0);
                        let had = has.iter().rev().find(|(end, _)| *end <= written).map_or(0, |(_, key)| *key);
                        prop_assert_eq!(before, had, "the program had those");
                        prop_assert!(before >= told);
                        answers.content(at(now), received);
                        told = before;
                    }
                    Step::Wait(ms) => {
                        let until = now + ms;
                        while let Some(due) = answers.due(written).filter(|due| *due <= at(until)) {
                            prop_assert!(due >= at(now), "nothing was due before");
                            now = due.since_start().as_millis() as u64;
                            let late = answers.late(at(now), written);
                            prop_assert!(late.is_some_and(|late| late > told), "{:?} after {}", late, told);
                            told = late.unwrap_or(told);
                        }
                        now = until;
                    }
                }
                answers.written(at(now), written, received);
                prop_assert!(answers.keys.len() <= MAX_KEYS && answers.times.len() <= MAX_TIMES);
                while has.get(1).is_some_and(|(end, _)| *end <= written) {
                    has.pop_front();
                }
            }
            prop_assert_eq!(told, has.back().map_or(0, |(_, key)| *key), "nothing is left open");
        }
    }
}
