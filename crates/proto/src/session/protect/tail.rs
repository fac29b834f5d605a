//! Small packets behind a large update: when all that left last is lost, nothing tells QUIC of it before its probe.
//!
//! Each asks for an acknowledgement, by which what is missing is found a round trip later. Only the times are here.
//! Invariant: none is due where something else has left since the one before.

use std::collections::VecDeque;
use std::time::Duration;

use super::Row;
use crate::Time;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tail {
    due: VecDeque<Time>,
    /// The carrier's count of packets when that was last looked at.
    packets: u64,
    probe: Option<Row>,
}

impl Tail {
    /// A large update ends, and leaves by `end`; `probe` stands for its last bytes.
    pub(super) fn begin(&mut self, end: Time, probe: Row) {
        self.due = AFTER.into_iter().map(|after| end + after).collect();
        self.probe = Some(probe);
    }

    /// When to look next.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.front().copied()
    }

    /// A probe, if one is due and nothing has left since the time before.
    pub(super) fn due(&mut self, now: Time, packets: u64) -> Option<Row> {
        let mut due = false;
        while self.next().is_some_and(|next| next <= now) {
            self.due.pop_front();
            due = self.due.len() + 1 < AFTER.len();
        }
        let quiet = std::mem::replace(&mut self.packets, packets) == packets;
        self.probe.clone().filter(|_| due && quiet)
    }
}

/// The first time is only looked at: what has left by then is the update.
const AFTER: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(12),
    Duration::from_millis(25),
    Duration::from_millis(50),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Priority, RepairHeader, StreamId};

    #[test]
    fn probes_leave_while_nothing_else_does() {
        let header = RepairHeader { channel: 1, stream: StreamId(1), offset: 9, length: 1, row: 1, index: 0 };
        let priority = Priority::new(Class::Content, 0);
        let probe = Row { header, priority, bytes: bytes::Bytes::from_static(b"x"), update: None };
        let mut tail = Tail::default();
        assert_eq!(tail.due(Time::from_millis(5), 9), None);
        tail.begin(Time::from_millis(100), probe);
        let mut left = Vec::new();
        for (millis, packets) in [(100, 20), (104, 20), (108, 25), (112, 25), (125, 26), (150, 26), (300, 26)]
        {
            if tail.due(Time::from_millis(millis), packets).is_some() {
                left.push(millis);
            }
        }
        assert_eq!(left, [104, 112, 150]);
        assert_eq!(tail.next(), None);
    }
}
