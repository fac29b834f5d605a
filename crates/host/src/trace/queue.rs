//! Which updates wait for the link, as far as its backlog tells.
//!
//! The carrier says how many bytes of content it still has; updates leave in about the order in which they were handed
//! over. So the first byte of an update has left when fewer bytes are unsent than were handed over from it on. Small
//! updates overtake large ones and pastes count too, so a bar may be off by a few of these. Invariant: every update
//! that is pushed comes out once.

use std::collections::VecDeque;

use super::Row;

/// Updates on their way to the link, oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<(u64, Row)>,
    /// Bytes of all updates so far.
    handed: u64,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds an update; gives the oldest if there are too many.
    pub(super) fn push(&mut self, row: Row) -> Option<Row> {
        self.waiting.push_back((self.handed, row));
        self.handed += row.bytes;
        let full = self.waiting.len() > MAX_WAITING;
        full.then(|| self.waiting.pop_front())?.map(|(_, row)| row)
    }

    /// The updates that have begun to leave when so many bytes are unsent.
    pub(super) fn sent(&mut self, unsent: u64) -> Vec<Row> {
        let left = self.handed.saturating_sub(unsent);
        let count = self.waiting.iter().take_while(|(first, _)| *first < left || unsent == 0).count();
        self.waiting.drain(..count).map(|(_, row)| row).collect()
    }
}

/// More than a session hands over ahead of the link.
const MAX_WAITING: usize = 4096;

#[cfg(test)]
mod tests {
    use super::super::{Half, Stage, Subject};
    use super::*;

    fn row(seq: u64, bytes: u64) -> Row {
        Row {
            stage: Stage::Queue,
            half: Half::App,
            thread: 0,
            subject: Subject::Surface { connection: 1, surface: 2 },
            seq,
            start: 0,
            end: 0,
            bytes,
        }
    }

    fn seqs(rows: Vec<Row>) -> Vec<u64> {
        rows.into_iter().map(|row| row.seq).collect()
    }

    #[test]
    fn an_update_is_under_way_when_its_first_byte_is() {
        let mut queue = Queue::default();
        for seq in 1..=3 {
            assert_eq!(queue.push(row(seq, 100)), None);
        }
        assert_eq!(seqs(queue.sent(300)), [0; 0]);
        assert_eq!(seqs(queue.sent(299)), [1]);
        assert_eq!(seqs(queue.sent(200)), [0; 0]);
        assert_eq!(seqs(queue.sent(0)), [2, 3]);
        assert!(queue.is_empty());
        // More unsent than was handed over: a paste is on its way too.
        queue.push(row(4, 0));
        assert_eq!(seqs(queue.sent(1000)), [0; 0]);
        assert_eq!(seqs(queue.sent(0)), [4]);
    }

    #[test]
    fn too_many_push_the_oldest_out() {
        let mut queue = Queue::default();
        let out: Vec<Row> = (0..MAX_WAITING as u64 + 2).filter_map(|seq| queue.push(row(seq, 1))).collect();
        assert_eq!(seqs(out), [0, 1]);
    }
}
