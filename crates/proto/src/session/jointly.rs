//! What of small updates follows from repair rows that stand for several of them.
//!
//! It keeps the last updates that are whole, for a sum says nothing without them, and sums of which rows are missing.
//! It knows no streams: what is there of an update that is not whole it is told. Invariants: it keeps no more than
//! [`MAX_WHOLE`] updates and [`MAX_OPEN`] sums; what it combines is no more than [`WORTH`] times the bytes that came,
//! so that a peer cannot keep it busy with little.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use wayferry_fec::sliding::{self, Row, Sum};

use crate::joint::{Joint, MAX_MEMBER, Member};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Jointly {
    /// By number of their channels.
    whole: BTreeMap<u64, Bytes>,
    open: VecDeque<Joint>,
    /// Their updates.
    members: HashSet<u64>,
    /// What it takes to look what follows from them, about as many bytes as are combined in that time.
    work: usize,
    /// A sum came, or an update of one is whole, since it was last looked.
    is_due: bool,
    /// Work that what came has paid for, or owes still.
    paid: isize,
}

/// What there is of an update that is not whole.
#[derive(Debug)]
pub(super) enum There {
    /// These pieces of its stream, the first of them.
    Pieces(Vec<(u64, Bytes)>),
    /// Nothing, and there will be nothing: it is over.
    Over,
}

/// Bytes of an update that were missing.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) member: Member,
    /// Where in its stream they begin.
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
}

/// What is known of an update.
struct Known {
    member: Member,
    bytes: Vec<u8>,
    missing: Vec<Range<usize>>,
}

impl Jointly {
    /// An update is whole.
    pub(super) fn keep(&mut self, channel: u64, stream: Bytes) {
        if stream.len() > MAX_MEMBER {
            return;
        }
        self.is_due |= self.members.contains(&channel);
        self.whole.insert(channel, stream);
        if self.whole.len() > MAX_WHOLE {
            self.whole.pop_first();
        }
    }

    /// Bytes came.
    pub(super) fn earn(&mut self, bytes: usize) {
        self.paid = (self.paid + (bytes.min(MAX_PAID) * WORTH) as isize).min(MAX_PAID as isize);
    }

    /// A sum came.
    pub(super) fn add(&mut self, joint: Joint) {
        let Self { open, whole, .. } = self;
        // Those of rows of another length do not go together.
        open.retain(|open| open.header.row == joint.header.row && lacks(whole, open));
        if lacks(whole, &joint) {
            if open.len() >= MAX_OPEN {
                open.pop_front();
            }
            open.push_back(joint);
            self.is_due = true;
        }
        self.count();
    }

    /// Whether there may be something that follows, and it may be looked for.
    pub(super) fn is_due(&self) -> bool {
        self.is_due && self.paid >= self.work.min(MAX_PAID) as isize
    }

    /// What follows from all that is here, where `there` says what is of an update that is not whole. Sums of which
    /// nothing is missing, or that can never help, are forgotten.
    pub(super) fn solve(&mut self, there: impl Fn(&Member) -> There) -> Vec<Found> {
        self.is_due = false;
        self.paid -= self.work as isize;
        let mut known: BTreeMap<u64, Option<Known>> = BTreeMap::new();
        for member in self.open.iter().flat_map(|joint| &joint.updates) {
            known.entry(member.channel).or_insert_with(|| self.known(member, &there));
        }
        self.open.retain(|joint| {
            let updates = || joint.updates.iter().map(|member| known.get(&member.channel)?.as_ref());
            let fit = updates().zip(&joint.updates).all(|(known, member)| {
                known.is_some_and(|known| {
                    (known.member.stream, known.member.length) == (member.stream, member.length)
                })
            });
            fit && updates().flatten().any(|known| !known.missing.is_empty())
        });
        self.count();
        let mut rows = Rows::default();
        let sums: Vec<Sum<'_>> = self.open.iter().map(|joint| rows.sum(joint, &known)).collect();
        let pieces: usize = rows.rows.iter().map(|row| row.missing.len()).sum();
        self.paid -= (sums.len() * sums.len() * pieces.min(CHARGED_PIECES) * WORK_OF_PIECE) as isize;
        let found = sliding::solve(&rows.rows, &sums);
        let found = found.into_iter().map(|found| {
            let (member, start) = rows.places[found.row];
            Found { member, offset: (start + found.at) as u64, bytes: found.bytes.into() }
        });
        found.collect()
    }

    /// Brings up to date what follows from the sums that are kept.
    fn count(&mut self) {
        let members = self.open.iter().flat_map(|joint| &joint.updates);
        self.members = members.map(|member| member.channel).collect();
        self.work = self.open.iter().map(work).sum();
    }

    fn known(&self, member: &Member, there: impl Fn(&Member) -> There) -> Option<Known> {
        let pieces = match self.whole.get(&member.channel) {
            Some(whole) => vec![(0, whole.clone())],
            None => match there(member) {
                There::Pieces(pieces) => pieces,
                There::Over => return None,
            },
        };
        let (mut bytes, mut missing, mut at) = (vec![0; member.length], Vec::new(), 0);
        for (start, piece) in pieces {
            let start = usize::try_from(start).ok().filter(|start| *start < member.length);
            let Some(start) = start else { break };
            let piece = &piece[..piece.len().min(member.length - start)];
            if start > at {
                missing.push(at..start);
            }
            bytes[start..start + piece.len()].copy_from_slice(piece);
            at = start + piece.len();
        }
        if at < member.length {
            missing.push(at..member.length);
        }
        Some(Known { member: *member, bytes, missing })
    }
}

/// The rows of all sums, each once.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// Of which update each is, and where in that it begins.
    places: Vec<(Member, usize)>,
    by_place: BTreeMap<(u64, usize), usize>,
}

impl Rows {
    fn sum<'a>(&mut self, joint: &'a Joint, known: &BTreeMap<u64, Option<Known>>) -> Sum<'a> {
        let rows = joint.rows().filter_map(|(member, number, range)| {
            let known = known.get(&member.channel)?.as_ref()?;
            Some((self.row(known, range), number))
        });
        Sum { number: joint.header.number, rows: rows.collect(), bytes: &joint.sum }
    }

    fn row(&mut self, known: &Known, range: Range<usize>) -> usize {
        let Self { rows, places, by_place } = self;
        *by_place.entry((known.member.channel, range.start)).or_insert_with(|| {
            let missing = known.missing.iter().map(|missing| {
                let (start, end) = (missing.start.max(range.start), missing.end.min(range.end));
                start.saturating_sub(range.start)..end.saturating_sub(range.start)
            });
            let missing = missing.filter(|missing| !missing.is_empty()).collect();
            rows.push(Row { bytes: known.bytes[range.clone()].to_vec(), missing });
            places.push((known.member, range.start));
            rows.len() - 1
        })
    }
}

/// Whether anything of a sum's updates may be missing.
fn lacks(whole: &BTreeMap<u64, Bytes>, joint: &Joint) -> bool {
    let is_whole =
        |member: &Member| whole.get(&member.channel).is_some_and(|whole| whole.len() == member.length);
    !joint.updates.iter().all(is_whole)
}

/// What a sum adds to the work of looking.
fn work(joint: &Joint) -> usize {
    let row = usize::from(joint.header.row);
    let rows: usize = joint.updates.iter().map(|update| update.length.div_ceil(row)).sum();
    rows * (joint.sum.len() + WORK_OF_ROW) + joint.updates.len() * WORK_OF_ROW
}

/// Updates that are kept: those of a round trip and a quarter, of two busy windows at 60 Hz and 400 ms.
const MAX_WHOLE: usize = 64;

/// Sums that are kept: as many as leave in half that time.
const MAX_OPEN: usize = 12;

/// Pieces of an update that are looked at; it has few packets.
pub(super) const MAX_PIECES: usize = 16;

/// Work that a byte pays for. Of busy surfaces that draw little, a sum takes half of what it and the updates since the
/// last one pay.
const WORTH: usize = 32;

/// Work that can be paid for in advance: a few milliseconds'.
const MAX_PAID: usize = 8 << 20;

/// The work that a row of a sum takes besides its bytes, and that one of its updates takes.
const WORK_OF_ROW: usize = 384;

/// The work that a missing piece takes for every two sums, up to so many pieces: with more nothing is solved.
const WORK_OF_PIECE: usize = 128;
const CHARGED_PIECES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JointHeader, MAX_ROW, StreamId};

    fn joint(number: u64, updates: &[(u64, Bytes)]) -> Joint {
        let rows: Vec<(u64, &[u8])> = updates.iter().map(|(channel, bytes)| (*channel, &bytes[..])).collect();
        let member = |(channel, bytes): &(u64, Bytes)| Member {
            channel: *channel,
            stream: StreamId(*channel + 100),
            length: bytes.len(),
        };
        let header = JointHeader { number, first: updates[0].0, row: 1000, updates: updates.len() as u8 };
        Joint {
            header,
            sum: sliding::mix(number, &rows).into(),
            updates: updates.iter().map(member).collect(),
        }
    }

    fn update(channel: u64) -> (u64, Bytes) {
        (channel, vec![channel as u8; 100 + channel as usize].into())
    }

    fn nothing(_: &Member) -> There {
        There::Pieces(Vec::new())
    }

    #[test]
    fn two_sums_give_two_updates() {
        let mut jointly = Jointly::default();
        [1, 2, 5].map(update).into_iter().for_each(|(channel, bytes)| jointly.keep(channel, bytes));
        jointly.add(joint(1, &[1, 2, 3].map(update)));
        jointly.add(joint(2, &[1, 2, 3, 4, 5].map(update)));
        let found = jointly.solve(nothing);
        let bytes = |channel| {
            let of_it = found.iter().filter(|found| found.member.channel == channel);
            (channel, of_it.flat_map(|found| found.bytes.clone()).collect::<Bytes>())
        };
        assert_eq!([3, 4].map(bytes), [3, 4].map(update));
        [3, 4].map(update).into_iter().for_each(|(channel, bytes)| jointly.keep(channel, bytes));
        assert!(jointly.solve(nothing).is_empty() && jointly.open.is_empty(), "nothing is missing any more");
        jointly.add(joint(3, &[1, 2, 3, 4, 5].map(update)));
        assert!(jointly.open.is_empty() && !jointly.is_due(), "all of them are here");
    }

    #[test]
    fn what_is_there_of_an_update_helps() {
        let mut jointly = Jointly::default();
        let (channel, bytes) = update(2);
        jointly.keep(1, update(1).1);
        jointly.add(joint(1, &[1, 2].map(update)));
        let found = jointly.solve(|_| There::Pieces(vec![(0, bytes.slice(..10)), (50, bytes.slice(50..80))]));
        let found: Vec<_> =
            found.iter().map(|found| (found.member.channel, found.offset, found.bytes.len())).collect();
        assert_eq!(found, [(channel, 10, 40), (channel, 80, 22)]);
    }

    #[test]
    fn a_sum_of_what_is_gone_is_forgotten() {
        let mut jointly = Jointly::default();
        jointly.add(joint(1, &[1, 2].map(update)));
        assert!(jointly.solve(|_| There::Over).is_empty());
        assert!(jointly.open.is_empty());
    }

    #[test]
    fn no_more_is_kept_than_the_limits() {
        let mut jointly = Jointly::default();
        for number in 0..200 {
            jointly.keep(number, update(number % 50).1);
            jointly.add(joint(number, &[update(1000 + number % 50)]));
        }
        assert_eq!((jointly.whole.len(), jointly.open.len()), (MAX_WHOLE, MAX_OPEN));
        assert_eq!((jointly.paid, jointly.is_due()), (0, false), "nothing came that would pay for it");
    }

    #[test]
    fn regression_a_peer_keeps_a_display_busy_with_a_byte_here_and_there() {
        let mut jointly = Jointly::default();
        let (mut came, mut looked) = (0, 0);
        for number in 0..12 {
            let row = Bytes::from(vec![1; 1000]);
            let rows: Vec<(u64, &[u8])> = (0..160).map(|row_number| (row_number, &row[..])).collect();
            let member = |n| Member { channel: n + 1, stream: StreamId(101 + n), length: 5000 };
            let joint = Joint {
                header: JointHeader { number, first: 0, row: 1000, updates: 32 },
                updates: (0..32).map(|n| member(32 * number + n)).collect(),
                sum: sliding::mix(number, &rows).into(),
            };
            jointly.earn(joint.sum.len());
            came += joint.sum.len();
            jointly.add(joint);
        }
        for n in 0..400_000 {
            // One update after the other is whole, but does not fit.
            jointly.keep(1 + n % 384, Bytes::from_static(&[1]));
            jointly.earn(1);
            came += 1;
            if jointly.is_due() {
                looked +=
                    jointly.open.iter().flat_map(Joint::rows).map(|(_, _, range)| range.len()).sum::<usize>();
                let pieces = (0..MAX_PIECES).map(|at| (2 * at as u64, Bytes::from_static(&[1])));
                assert!(jointly.solve(|_| There::Pieces(pieces.clone().collect())).is_empty());
            }
        }
        assert!((1..came * WORTH).contains(&looked), "{looked} bytes for {came}");
    }

    #[test]
    fn what_a_small_busy_surface_sends_pays_for_its_sums() {
        let mut jointly = Jointly::default();
        let update = |channel: u64| (channel, Bytes::from(vec![channel as u8; 100]));
        for number in 1..=20 {
            let last = 3 * number;
            for channel in last - 2..=last {
                jointly.earn(100);
                // Two in a row are missing, of each nine updates.
                if ![4, 5].contains(&(channel % 9)) {
                    jointly.keep(channel, update(channel).1);
                }
            }
            let updates: Vec<_> = (last.saturating_sub(7).max(1)..=last).map(update).collect();
            jointly.earn(100);
            jointly.add(joint(number, &updates));
            if jointly.is_due() {
                let found = jointly.solve(nothing);
                found.into_iter().for_each(|found| jointly.keep(found.member.channel, found.bytes));
            } else {
                let all = jointly.open.iter().all(|joint| !lacks(&jointly.whole, joint));
                assert!(all, "sum {number} is not paid for: {} for {}", jointly.paid, jointly.work);
            }
        }
        let missing: Vec<u64> = (1..=54).filter(|channel| !jointly.whole.contains_key(channel)).collect();
        assert_eq!(missing, []);
    }

    #[test]
    fn sums_of_the_longest_rows_are_solved_as_well() {
        let mut jointly = Jointly { paid: MAX_PAID as isize, ..Jointly::default() };
        let row = Bytes::from(vec![1; MAX_ROW]);
        let rows: Vec<(u64, &[u8])> = (0..160).map(|number| (number, &row[..])).collect();
        for number in 0..12 {
            let member = |n| Member { channel: n, stream: StreamId(100 + n), length: 4 * MAX_ROW };
            let header = JointHeader { number, first: 0, row: MAX_ROW as u16, updates: 40 };
            let updates = (1..=40).map(member).collect();
            jointly.add(Joint { header, updates, sum: sliding::mix(number, &rows).into() });
        }
        (2..=40).for_each(|channel| jointly.keep(channel, vec![1; 4 * MAX_ROW].into()));
        assert!(jointly.is_due());
        let found = jointly.solve(nothing);
        assert_eq!(found.iter().map(|found| found.bytes.len()).sum::<usize>(), 4 * MAX_ROW);
    }
}
