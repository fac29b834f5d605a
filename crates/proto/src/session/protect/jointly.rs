//! Repair of small updates that follow each other quickly: a row for every few of them, and not one for each.
//!
//! A row of an update of one packet is as long as the update. Where the next one comes within a frame or two, a sum of
//! the last rows of all of them stands for any of these, and costs a part of that; what is lost is there two or three
//! frames later. A sum stands for all that is not known to have come, so the next one helps where this one is lost,
//! too. Knows neither the link nor what updates are worth. Invariant: a sum is of updates that were handed over as
//! they are, of no more than [`MAX_JOINT`] of them and no more rows than it can have.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use wayferry_fec::sliding;

use crate::joint::{Joint, Member};
use crate::{ConnectionId, JointHeader, MAX_JOINT, Priority, StreamId, SurfaceId, Time, UpdateHeader};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Jointly {
    /// Those of the last round trip, the oldest first.
    recent: VecDeque<Recent>,
    /// Bytes of a row.
    row: usize,
    /// The number of the next row, and of the next sum.
    next: (u64, u64),
    /// Rows that no sum stands for yet.
    open: usize,
    due: Option<Time>,
    /// Sums that may leave then, in order.
    made: VecDeque<(Time, Joint, Priority)>,
    paces: BTreeMap<(ConnectionId, SurfaceId), [Option<Time>; 2]>,
}

/// All of an update, as it was handed over.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) channel: u64,
    pub(super) stream: StreamId,
    pub(super) priority: Priority,
    pub(super) bytes: Bytes,
    pub(super) is_answer: bool,
}

/// One of those that were.
#[derive(Debug)]
struct Recent {
    at: Time,
    update: Update,
    /// The number of its first row.
    first: u64,
    /// The peer has it.
    is_over: bool,
}

impl Jointly {
    /// An update of a surface leaves: whether it is the third within this time.
    pub(super) fn is_busy(&mut self, now: Time, update: &UpdateHeader, within: Duration) -> bool {
        let surface = (update.connection, update.surface);
        if self.paces.len() >= MAX_PACES {
            self.paces.retain(|_, [_, last]| last.is_some_and(|last| now.since(last) <= within));
        }
        if self.paces.len() >= MAX_PACES && !self.paces.contains_key(&surface) {
            return false;
        }
        let pace = self.paces.entry(surface).or_default();
        let [before, last] = *pace;
        *pace = [last, Some(now)];
        before.is_some_and(|before| now.since(before) <= within)
    }

    /// Takes an update in rows of so many bytes. A sum may leave `hold` after it if `most` rows wait for one, else when
    /// none follows within a frame or, unless it is an answer, two.
    pub(super) fn push(&mut self, now: Time, update: Update, row: usize, most: usize, hold: Duration) {
        let (rows, is_answer) = (update.bytes.len().div_ceil(row), update.is_answer);
        if row != self.row || self.recent.back().is_some_and(|last| !update.follows(&last.update)) {
            if self.open > 0 {
                self.make(now + hold);
            }
            (self.recent, self.row, self.open) = (VecDeque::new(), row, 0);
        }
        self.make_room(now + hold, rows);
        self.recent.push_back(Recent { at: now, update, first: self.next.0, is_over: false });
        self.next.0 += rows as u64;
        self.open += rows;
        // One that leaves soon is not put off by what follows.
        if self.open - rows < most || self.due.is_none() {
            let pause = if is_answer { PAUSE_OF_ANSWER } else { PAUSE };
            self.due = Some(now + if self.open >= most { hold } else { pause });
        }
    }

    /// When the next sum may leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.made.front().map(|(at, ..)| *at).into_iter().chain(self.due).min()
    }

    /// Rows that no sum stands for yet.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The next sum that may leave, of what is no older than `horizon`; there are `count` for what has none yet.
    pub(super) fn due(&mut self, now: Time, horizon: Duration, count: usize) -> Option<(Joint, Priority)> {
        if self.due.is_some_and(|due| due <= now) {
            let is_old = |recent: &Recent| recent.is_over || recent.at + horizon < now;
            while self.recent.front().is_some_and(is_old) {
                self.recent.pop_front();
            }
            (0..count).for_each(|_| self.make(now));
            (self.open, self.due) = (0, None);
        }
        self.made.front().filter(|(at, ..)| *at <= now)?;
        self.made.pop_front().map(|(_, joint, priority)| (joint, priority))
    }

    /// The oldest make room for so many rows. Those that no sum stands for get one before.
    fn make_room(&mut self, at: Time, rows: usize) {
        let most = sliding::SPAN - rows as u64;
        let next = self.next.0;
        while let Some(oldest) = self.recent.front()
            && (self.recent.len() >= MAX_JOINT || next - oldest.first > most)
        {
            if oldest.first + self.open as u64 >= next {
                self.make(at);
                self.open = 0;
            }
            self.recent.pop_front();
        }
    }

    /// Makes a sum that may leave at `at` of all that may be missing.
    fn make(&mut self, at: Time) {
        let (Some(oldest), Some(newest)) = (self.recent.front(), self.recent.back()) else { return };
        if self.made.len() >= MAX_MADE {
            return;
        }
        let number = self.next.1;
        let all = self.recent.iter().flat_map(|recent| recent.update.bytes.chunks(self.row));
        let rows: Vec<(u64, &[u8])> = (oldest.first..).zip(all).collect();
        let (row, updates) = (self.row as u16, self.recent.len() as u8);
        let joint = Joint {
            header: JointHeader { number, first: oldest.first, row, updates },
            updates: self.recent.iter().map(|recent| recent.update.member()).collect(),
            sum: sliding::mix(number, &rows).into(),
        };
        let priority = newest.update.priority.repair(0);
        self.made.push_back((at, joint, priority));
        self.next.1 += 1;
    }

    /// The peer has all of a stream.
    pub(super) fn forget(&mut self, stream: StreamId) {
        let of_stream = |recent: &&mut Recent| recent.update.stream == stream;
        self.recent.iter_mut().filter(of_stream).for_each(|recent| recent.is_over = true);
        if self.recent.iter().all(|recent| recent.is_over) {
            (self.recent, self.open, self.due) = (VecDeque::new(), 0, None);
        }
    }

    /// The peer will not have a stream, and a sum in which it is says nothing: neither it nor what is older is in one.
    pub(super) fn give_up(&mut self, stream: StreamId) {
        let given_up = |recent: &Recent| recent.update.stream == stream && !recent.is_over;
        if let Some(at) = self.recent.iter().position(given_up) {
            self.recent.drain(..=at);
            self.made.retain(|(_, joint, _)| joint.updates.iter().all(|member| member.stream != stream));
        }
    }

    /// Nothing is to leave.
    pub(super) fn clear(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }
}

impl Update {
    /// Whether its channel and its stream come after those of the other: a sum names its updates in their order.
    fn follows(&self, other: &Self) -> bool {
        self.channel > other.channel && self.stream > other.stream
    }

    fn member(&self) -> Member {
        let Self { channel, stream, .. } = *self;
        Member { channel, stream, length: self.bytes.len() }
    }
}

/// When no update follows for so long, a sum leaves for those that have none: longer than from one to the next of a
/// busy surface, and less than two frames at 60 Hz.
const PAUSE: Duration = Duration::from_millis(30);

/// The same after an answer, which may be the last for long: as soon as a frame at 60 Hz would have come.
const PAUSE_OF_ANSWER: Duration = Duration::from_millis(18);

/// Sums that wait to leave.
const MAX_MADE: usize = 64;

/// Surfaces of which is known when they drew last.
const MAX_PACES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use crate::session::tests::update;
    use crate::wire::Writer;

    fn millis(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// The length of those that are answers.
    const ANSWER: usize = 77;

    fn push(jointly: &mut Jointly, at: u64, number: u64, length: usize) {
        let bytes = Bytes::from(vec![number as u8; length]);
        let priority = Priority::new(Class::SmallContent, number);
        let is_answer = length == ANSWER;
        let update = Update { channel: number, stream: StreamId(number), priority, bytes, is_answer };
        jointly.push(millis(at), update, 1000, 3, Duration::from_millis(2));
    }

    fn due(jointly: &mut Jointly, at: u64) -> Option<(Vec<u64>, usize)> {
        let count = (jointly.open / 6).max(1);
        let (joint, _) = jointly.due(millis(at), Duration::from_millis(130), count)?;
        Some((joint.updates.iter().map(|update| update.channel).collect(), joint.sum.len()))
    }

    #[test]
    fn there_is_a_sum_for_every_three_rows() {
        let mut jointly = Jointly::default();
        let mut sums = Vec::new();
        for n in 0..9 {
            push(&mut jointly, 17 * n, n, 500 + n as usize);
            sums.extend(due(&mut jointly, 17 * n + 2));
        }
        assert_eq!(sums, [(vec![0, 1, 2], 502), ((0..6).collect(), 505), ((1..9).collect(), 508)]);
    }

    #[test]
    fn one_leaves_when_no_more_follows() {
        let mut jointly = Jointly::default();
        push(&mut jointly, 0, 0, 500);
        assert_eq!((jointly.next(), due(&mut jointly, 29)), (Some(millis(30)), None));
        push(&mut jointly, 29, 1, 400);
        assert_eq!(due(&mut jointly, 58), None);
        assert_eq!(due(&mut jointly, 59), Some((vec![0, 1], 500)));
        push(&mut jointly, 80, 2, 2700);
        assert_eq!(jointly.next(), Some(millis(82)), "three rows");
        push(&mut jointly, 81, 3, 10);
        assert_eq!(due(&mut jointly, 82), Some((vec![0, 1, 2, 3], 1000)));
        assert_eq!(jointly.next(), None);
    }

    #[test]
    fn regression_the_last_answer_waits_for_two_frames() {
        let mut jointly = Jointly::default();
        push(&mut jointly, 0, 1, ANSWER);
        assert_eq!((due(&mut jointly, 17), due(&mut jointly, 18)), (None, Some((vec![1], ANSWER))));
        push(&mut jointly, 20, 2, ANSWER);
        push(&mut jointly, 37, 3, ANSWER);
        assert_eq!(due(&mut jointly, 54), None, "another came");
        push(&mut jointly, 54, 4, 500);
        assert_eq!(due(&mut jointly, 56), Some((vec![1, 2, 3, 4], 500)));
    }

    #[test]
    fn what_has_come_needs_none() {
        let mut jointly = Jointly::default();
        (0..3).for_each(|n| push(&mut jointly, n, n, 500));
        jointly.forget(StreamId(0));
        jointly.forget(StreamId(1));
        assert_eq!(due(&mut jointly, 4), Some((vec![2], 500)));
        (3..5).for_each(|n| push(&mut jointly, n, n, 500));
        (2..5).for_each(|n| jointly.forget(StreamId(n)));
        assert_eq!(jointly.next(), None);
    }

    #[test]
    fn a_sum_is_of_no_more_than_the_limit() {
        let mut jointly = Jointly::default();
        (0..100).for_each(|n| push(&mut jointly, 0, n, 900));
        // None goes without one.
        for updates in [0..32, 32..64, 64..96, 68..100] {
            assert_eq!(due(&mut jointly, 1), None);
            assert_eq!(due(&mut jointly, 2), Some((updates.collect(), 900)));
        }
        assert_eq!(due(&mut jointly, 4), None);
        (100..130).for_each(|n| push(&mut jointly, 4, n, 8000));
        assert_eq!(due(&mut jointly, 6).unwrap().0, (100..120).collect::<Vec<_>>(), "160 rows");
        assert_eq!(due(&mut jointly, 6).unwrap().0, (110..130).collect::<Vec<_>>());
    }

    #[test]
    fn there_are_more_sums_of_more_rows() {
        let mut jointly = Jointly::default();
        push(&mut jointly, 0, 1, 6000);
        push(&mut jointly, 0, 2, 6000);
        let sum = Some((vec![1, 2], 1000));
        assert_eq!([2; 3].map(|at| due(&mut jointly, at)), [sum.clone(), sum, None]);
        assert_eq!(jointly.next.1, 2);
    }

    #[test]
    fn regression_updates_that_leave_in_another_order_end_the_host() {
        let mut jointly = Jointly::default();
        [5, 6, 3, 4].into_iter().for_each(|n| push(&mut jointly, 0, n, 500));
        let mut sums = Vec::new();
        while let Some((joint, _)) = jointly.due(millis(60), Duration::from_millis(130), 1) {
            let mut writer = Writer::new();
            joint.encode(&mut writer);
            assert_eq!(Joint::decode(joint.header, &writer.into_vec().into()), Ok(joint.clone()));
            sums.push(joint.updates.iter().map(|update| update.channel).collect::<Vec<_>>());
        }
        assert_eq!(sums, [[5, 6], [3, 4]]);
    }

    #[test]
    fn regression_an_update_that_was_given_up_spoils_the_sums_of_others() {
        let mut jointly = Jointly::default();
        (1..4).for_each(|n| push(&mut jointly, 0, n, 500));
        jointly.give_up(StreamId(2));
        push(&mut jointly, 1, 4, 500);
        assert_eq!(due(&mut jointly, 2), Some((vec![3, 4], 500)));
        jointly.forget(StreamId(3));
        jointly.give_up(StreamId(3));
        (5..7).for_each(|n| push(&mut jointly, 3, n, 500));
        assert_eq!(due(&mut jointly, 40), Some((vec![4, 5, 6], 500)), "the peer had that one");
    }

    #[test]
    fn a_surface_is_busy_with_three_updates_within_a_time() {
        let mut jointly = Jointly::default();
        let mut is_busy = |at, surface| {
            let header = UpdateHeader { surface: SurfaceId(surface), ..update(1, 1) };
            jointly.is_busy(millis(at), &header, Duration::from_millis(50))
        };
        assert_eq!([0, 17, 33, 51, 90].map(|at| is_busy(at, 1)), [false, false, true, true, false]);
        (0..1000).for_each(|surface| assert!(!is_busy(1000, surface)));
        assert!(jointly.paces.len() <= MAX_PACES);
    }
}
