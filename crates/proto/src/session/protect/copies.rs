//! Copies of what is small and urgent: keys, clicks, and other events that answer nothing but wait for an answer.
//!
//! A copy carries everything that was handed over on a stream within the last round trip and a quarter, as the one
//! repair row of a block of one row, so that any copy that comes heals everything before it, order included. It knows
//! neither the link nor the clock. Invariants: a copy fits a packet; two are never closer than [`APART`], nor do they
//! take more of the link than their share.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::budget::Budget;
use super::{Row, Source};
use crate::{Priority, RepairHeader, StreamId, Time};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// What was handed over of late, the oldest first.
    recent: VecDeque<Recent>,
    due: BTreeSet<Time>,
    /// Before that, no copy may leave.
    free: Time,
    budget: Budget,
}

/// What was handed over at once on one stream.
#[derive(Debug)]
struct Recent {
    at: Time,
    channel: u64,
    stream: StreamId,
    priority: Priority,
    offset: u64,
    bytes: Bytes,
}

impl Copies {
    /// Takes what is to be copied at these times after `now`.
    pub(super) fn push(&mut self, now: Time, source: &Source<'_>, after: impl Iterator<Item = Duration>) {
        let Source { channel, stream, priority, offset, pieces, .. } = *source;
        let bytes = pieces.concat().into();
        self.recent.push_back(Recent { at: now, channel, stream, priority, offset, bytes });
        if self.recent.len() > MAX_RECENT {
            self.recent.pop_front();
        }
        self.due.extend(after.map(|after| now + after));
        while self.due.len() > MAX_DUE {
            self.due.pop_last();
        }
    }

    /// When the next copy may leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.first().map(|due| (*due).max(self.free))
    }

    /// One for each stream, if any is due: of what is no older than `horizon`, as much of the newest as `room` holds.
    /// None while they exceed what `rate` bytes a second leave for them: the next carry the same.
    pub(super) fn due(&mut self, now: Time, horizon: Duration, room: usize, rate: u64) -> Vec<Row> {
        if self.next().is_none_or(|next| next > now) {
            return Vec::new();
        }
        while self.recent.front().is_some_and(|recent| recent.at + horizon < now) {
            self.recent.pop_front();
        }
        let mut streams: Vec<StreamId> = self.recent.iter().map(|recent| recent.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        let rows: Vec<Row> = streams.into_iter().filter_map(|stream| self.copy(stream, room)).collect();
        let bytes = rows.iter().map(|row| row.bytes.len() + OVERHEAD).sum();
        self.free = now + APART;
        if !self.budget.take(now, rate, bytes) {
            return Vec::new();
        }
        self.due = self.due.split_off(&(now + TOGETHER));
        rows
    }

    /// Nothing is to be copied. What has been copied stays paid for.
    pub(super) fn clear(&mut self) {
        self.recent.clear();
        self.due.clear();
    }

    /// Forgets a stream.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.recent.retain(|recent| recent.stream != stream);
    }

    /// What of a stream follows upon itself, up to the newest.
    fn copy(&self, stream: StreamId, room: usize) -> Option<Row> {
        let mut of_stream = self.recent.iter().rev().filter(|recent| recent.stream == stream);
        let newest = of_stream.next()?;
        let mut parts = vec![&newest.bytes];
        let (mut offset, mut length) = (newest.offset, newest.bytes.len());
        for recent in of_stream {
            let follows = recent.offset + recent.bytes.len() as u64 == offset;
            if !follows || length + recent.bytes.len() > room {
                break;
            }
            (offset, length) = (recent.offset, length + recent.bytes.len());
            parts.push(&recent.bytes);
        }
        let mut bytes = BytesMut::with_capacity(length);
        parts.iter().rev().for_each(|part| bytes.extend_from_slice(part));
        let header = RepairHeader {
            channel: newest.channel,
            stream,
            offset,
            length: u32::try_from(length).ok()?,
            row: u16::try_from(length).ok()?,
            index: 0,
        };
        let priority = newest.priority.repair(0);
        Some(Row { header, priority, bytes: bytes.freeze(), update: None })
    }
}

/// When what is handed over is copied on a link that loses, and on one that has lost nothing so far. Most bursts of 5
/// ms are over after 8 ms, most of 20 ms after 55.
pub(super) const AFTER: [Duration; 5] = [
    Duration::from_millis(2),
    Duration::from_millis(8),
    Duration::from_millis(16),
    Duration::from_millis(30),
    Duration::from_millis(55),
];

/// Two copies are no closer: each carries what the other one would.
const APART: Duration = Duration::from_millis(6);

/// Bytes of a packet around a copy: QUIC's and UDP's headers, the stream's own.
const OVERHEAD: usize = 80;

/// What is due so soon after a copy is served by it.
const TOGETHER: Duration = Duration::from_millis(1);

/// Pieces that are copied: a second of a mouse that tells a thousand times a second has as many, in pieces of a turn.
const MAX_RECENT: usize = 512;

/// Times at which copies are to be made.
const MAX_DUE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::What;
    use super::super::budget::SAVED;
    use super::*;
    use crate::Class;

    fn source<'a>(stream: u64, offset: u64, pieces: &'a [Bytes]) -> Source<'a> {
        Source {
            what: What::Events,
            channel: stream,
            stream: StreamId(stream),
            priority: Priority::new(Class::Events, 0),
            offset,
            pieces,
        }
    }

    fn millis(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn brought(row: &Row) -> (u64, u64, Vec<u8>) {
        assert_eq!(row.header.length as usize, row.bytes.len());
        assert_eq!(usize::from(row.header.row), row.bytes.len());
        (row.header.stream.0, row.header.offset, row.bytes.to_vec())
    }

    const TRIP: Duration = Duration::from_millis(125);

    #[test]
    fn a_copy_carries_everything_of_the_last_round_trip_stream_by_stream() {
        let mut copies = Copies::default();
        for (at, stream, offset, text) in
            [(0, 1, 0, "a"), (10, 2, 7, "x"), (120, 1, 1, "bc"), (130, 1, 3, "d")]
        {
            let pieces = [Bytes::from_static(text.as_bytes())];
            copies.push(millis(at), &source(stream, offset, &pieces), [Duration::from_millis(2)].into_iter());
        }
        assert_eq!(copies.next(), Some(millis(2)));
        assert!(copies.due(millis(1), TRIP, 1000, 1 << 20).is_empty());
        let all: Vec<_> = copies.due(millis(132), TRIP, 1000, 1 << 20).iter().map(brought).collect();
        assert_eq!(all, [(1, 1, b"bcd".to_vec()), (2, 7, b"x".to_vec())]);
        assert_eq!(copies.next(), None);
    }

    #[test]
    fn a_gap_or_a_full_packet_ends_a_copy_at_the_newest() {
        let mut copies = Copies::default();
        for (offset, length) in [(0, 10), (10, 400), (900, 300), (1200, 200), (1400, 400)] {
            copies.push(
                millis(0),
                &source(1, offset, &[vec![7; length].into()]),
                [Duration::ZERO].into_iter(),
            );
        }
        let rows = copies.due(millis(0), TRIP, 700, 1 << 20);
        assert_eq!(
            rows.iter().map(|row| (row.header.offset, row.bytes.len())).collect::<Vec<_>>(),
            [(1200, 600)]
        );
        let mut copies = Copies::default();
        for (offset, length) in [(0, 10), (20, 30)] {
            copies.push(
                millis(0),
                &source(1, offset, &[vec![7; length].into()]),
                [Duration::ZERO].into_iter(),
            );
        }
        assert_eq!(copies.due(millis(0), TRIP, 700, 1 << 20)[0].header.offset, 20);
    }

    #[test]
    fn copies_keep_apart_and_to_their_share() {
        let mut copies = Copies::default();
        let mut sent = Vec::new();
        for at in 0..400 {
            let now = millis(at);
            copies.push(now, &source(1, at * 100, &[vec![7; 100].into()]), AFTER.into_iter());
            let rows = copies.due(now, TRIP, 1000, 25_000);
            sent.extend(rows.into_iter().map(|row| (now, row.bytes.len() + OVERHEAD)));
        }
        assert!(sent.windows(2).all(|two| two[1].0.since(two[0].0) >= APART));
        let bytes: usize = sent.iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes <= 10_000 + SAVED as usize, "{bytes}");
        assert!(copies.recent.len() <= MAX_RECENT && copies.due.len() <= MAX_DUE);
    }
}
