//! Answers that are not acknowledged: what left a round trip ago, and of which not everything came, goes once more.
//!
//! QUIC finds a loss out by what is acknowledged later, and sets its probe anew with each packet: of an answer that was
//! lost as a whole it hears with the next one. Here each answer has a time of its own. It makes no rows. Invariants:
//! each is told once; all of them together stay within a share of the link.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::budget::Budget;
use crate::{Priority, StreamId, Time, UpdateHeader};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Insistence {
    waiting: BTreeMap<StreamId, Answer>,
    budget: Budget,
}

/// An update that was handed over.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// When it should have been acknowledged.
    pub(super) at: Time,
    pub(super) channel: u64,
    pub(super) priority: Priority,
    pub(super) pieces: Vec<Bytes>,
    pub(super) row: usize,
    /// The first repair row that was not sent yet.
    pub(super) index: u8,
    pub(super) update: UpdateHeader,
}

impl Answer {
    pub(super) fn length(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl Insistence {
    /// Waits for a stream's acknowledgement.
    pub(super) fn wait(&mut self, stream: StreamId, answer: Answer) {
        self.waiting.insert(stream, answer);
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_first();
        }
    }

    /// Nothing is to go again. What has gone stays paid for.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// A stream is acknowledged, or not wanted any more.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.waiting.remove(&stream);
    }

    /// Forgets the updates of which `stays` is false.
    pub(super) fn retain(&mut self, stays: impl Fn(&UpdateHeader) -> bool) {
        self.waiting.retain(|_, answer| stays(&answer.update));
    }

    /// When the next one should have been acknowledged.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.values().map(|answer| answer.at).min()
    }

    /// Nothing leaves the carrier before `at`: what is due waits for as long again.
    pub(super) fn postpone(&mut self, now: Time, at: Time) {
        self.waiting.values_mut().filter(|answer| answer.at <= now).for_each(|answer| answer.at = at);
    }

    /// The next one that is to go again, on a link of which so many bytes a second are
    /// to spare; those that the budget does not hold are dropped.
    pub(super) fn due(&mut self, now: Time, rate: u64) -> Option<(StreamId, Answer)> {
        loop {
            let stream =
                self.waiting.iter().find(|(_, answer)| answer.at <= now).map(|(stream, _)| *stream)?;
            let answer = self.waiting.remove(&stream)?;
            if self.budget.take(now, rate, answer.length()) {
                return Some((stream, answer));
            }
        }
    }
}

/// Answers that wait to be acknowledged.
const MAX_WAITING: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::budget::SAVED;
    use super::*;
    use crate::Class;
    use crate::session::tests::update;

    fn answer(at: u64, length: usize) -> Answer {
        Answer {
            at: Time::from_millis(at),
            channel: 1,
            priority: Priority::new(Class::SmallContent, 0),
            pieces: vec![vec![7; length].into()],
            row: 1000,
            index: 0,
            update: update(1, 1),
        }
    }

    #[test]
    fn each_goes_again_once_unless_it_is_acknowledged() {
        let mut insistence = Insistence::default();
        (1..4).for_each(|n| insistence.wait(StreamId(n), answer(100 + n, 1000)));
        insistence.forget(StreamId(2));
        assert_eq!(insistence.next(), Some(Time::from_millis(101)));
        let mut due = |millis| insistence.due(Time::from_millis(millis), 1 << 20).map(|(stream, _)| stream.0);
        assert_eq!([due(100), due(101), due(200), due(200), due(999)], [None, Some(1), Some(3), None, None]);
        assert_eq!(insistence.next(), None);
    }

    #[test]
    fn what_insists_stays_within_its_share() {
        let mut insistence = Insistence::default();
        let mut bytes = 0;
        for millis in 0..10_000 {
            insistence.wait(StreamId(millis), answer(millis, 4000));
            let due = insistence.due(Time::from_millis(millis), 100_000);
            bytes += due.map_or(0, |(_, answer)| answer.length());
        }
        let most = 10 * 100_000;
        assert!(bytes <= most + SAVED as usize && bytes > most - 8000, "{bytes} of {most}");
    }

    #[test]
    fn no_more_wait_than_the_limit() {
        let mut insistence = Insistence::default();
        (0..1000).for_each(|n| insistence.wait(StreamId(n), answer(n, 10)));
        assert_eq!(insistence.waiting.len(), MAX_WAITING);
    }
}
