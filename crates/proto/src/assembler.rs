//! Puts the byte ranges of one stream in order, from any order that they come in.
//!
//! It knows nothing of what the bytes mean. What has been given out can be kept for a while, because a block can only
//! be repaired with the help of those bytes of it that came. Invariants: every byte is given out exactly once and in
//! order; the first copy of a byte wins; ranges are disjoint, and [`Assembler::cost`] is what they take in memory.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use bytes::{Bytes, BytesMut};

use crate::Error;
use crate::wire::VARINT_MAX;

/// What a range costs beside its bytes.
const RANGE_COST: usize = 64;

/// A range that stays and is shorter than this is copied, so that a few bytes cannot keep a carrier's large buffer
/// alive.
const COPY_BELOW: usize = 4096;

/// The bytes of one stream between arrival and parser.
#[derive(Debug)]
pub(crate) struct Assembler {
    /// Everything before this offset has been given out.
    given: u64,
    /// One past the last byte seen.
    highest: u64,
    length: Option<u64>,
    /// Those that wait, and before `given` those that are kept.
    ranges: BTreeMap<u64, Bytes>,
    /// What the ranges before `given` may cost.
    keep: usize,
    /// What they do.
    kept: usize,
    cost: usize,
}

impl Default for Assembler {
    /// Keeps everything until it is told what to keep.
    fn default() -> Self {
        Self {
            given: 0,
            highest: 0,
            length: None,
            ranges: BTreeMap::new(),
            keep: usize::MAX,
            kept: 0,
            cost: 0,
        }
    }
}

impl Assembler {
    /// Keeps those of the ranges given out last that cost no more than `cost` bytes, from now on.
    pub(crate) fn keep(&mut self, cost: usize) {
        self.keep = cost;
        self.trim();
    }

    /// Takes bytes that belong at `offset`; gives where those lie that were not there.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &Bytes) -> Result<Vec<Range<u64>>, Error> {
        let end = offset.saturating_add(bytes.len() as u64);
        let max = self.length.unwrap_or(VARINT_MAX);
        if end > max {
            return Err(Error::OutOfRange { expected: "the end of a stream's bytes", max, got: end });
        }
        self.highest = self.highest.max(end);
        let gaps = self.gaps(offset.max(self.given)..end);
        for gap in &gaps {
            let piece = bytes.slice((gap.start - offset) as usize..(gap.end - offset) as usize);
            let stays = gap.start > self.given || self.keep > 0;
            let piece =
                if stays && piece.len() < COPY_BELOW { Bytes::copy_from_slice(&piece) } else { piece };
            self.add(gap.start, piece);
        }
        Ok(gaps)
    }

    /// Takes the stream's length.
    pub(crate) fn finish(&mut self, length: u64) -> Result<(), Error> {
        if self.highest > length || self.length.is_some_and(|known| known != length) {
            let got = format!("a length of {length} after {} of {:?}", self.highest, self.length);
            return Err(Error::Violation { expected: "one length of a stream, not before its bytes", got });
        }
        self.length = Some(length);
        Ok(())
    }

    /// The next bytes in order.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let piece = self.ranges.get(&self.given)?.clone();
        self.given += piece.len() as u64;
        self.kept += piece.len() + RANGE_COST;
        self.trim();
        Some(piece)
    }

    /// Those parts of `range` that are not there: never came, or came and were not kept.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (start, end) in self.overlapping(&range).map(|(start, piece)| (start, start + piece.len() as u64))
        {
            if start > at {
                gaps.push(at..start);
            }
            at = at.max(end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Those parts of `range` that are there.
    pub(crate) fn pieces(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, Bytes)> {
        let (from, to) = (range.start, range.end);
        self.overlapping(range).map(move |(start, piece)| {
            let end = (start + piece.len() as u64).min(to);
            let first = start.max(from);
            (first, piece.slice((first - start) as usize..(end - start) as usize))
        })
    }

    /// The bytes of `range` in one piece, if they are all there. They stay. For streams of which everything is kept.
    pub(crate) fn read(&mut self, range: &Range<u64>) -> Option<Bytes> {
        if !self.gaps(range.clone()).is_empty() {
            return None;
        }
        if let Some((at, piece)) = self.overlapping(range).next()
            && at + piece.len() as u64 >= range.end
        {
            let slice = piece.slice((range.start - at) as usize..(range.end - at) as usize);
            return Some(if slice.len() < COPY_BELOW { Bytes::copy_from_slice(&slice) } else { slice });
        }
        let mut whole = BytesMut::with_capacity((range.end - range.start) as usize);
        for (_, piece) in self.pieces(range) {
            whole.extend_from_slice(&piece);
        }
        let whole = whole.freeze();
        self.replace(range, whole.clone());
        Some(whole)
    }

    /// Whether the length is known and everything has been given out.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.given)
    }

    /// The length, once it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// How many bytes have been given out.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// One past the last byte seen.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether everything that was given out is still here, and counted.
    pub(crate) fn keeps_all(&self) -> bool {
        self.keep == usize::MAX
    }

    /// The memory that the ranges take which wait, and all where everything is kept.
    pub(crate) fn cost(&self) -> usize {
        self.cost - self.kept()
    }

    /// The memory that those take which are kept for a while.
    pub(crate) fn kept(&self) -> usize {
        if self.keeps_all() { 0 } else { self.kept }
    }

    /// The ranges that share bytes with `range`.
    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, &Bytes)> {
        let before = self.ranges.range(..range.start).next_back();
        let before = before.filter(|(at, piece)| *at + piece.len() as u64 > range.start);
        let inside = (range.start < range.end).then(|| self.ranges.range(range.clone()));
        before.into_iter().chain(inside.into_iter().flatten()).map(|(at, piece)| (*at, piece))
    }

    /// Puts one piece in the place of those that make up `range`.
    fn replace(&mut self, range: &Range<u64>, whole: Bytes) {
        let old: Vec<_> = self.overlapping(range).map(|(at, piece)| (at, piece.clone())).collect();
        for (at, piece) in old {
            self.ranges.remove(&at);
            self.cost -= piece.len() + RANGE_COST;
            let end = at + piece.len() as u64;
            if at < range.start {
                self.add(at, piece.slice(..(range.start - at) as usize));
            }
            if end > range.end {
                self.add(range.end, piece.slice((range.end - at) as usize..));
            }
        }
        self.add(range.start, whole);
    }

    fn add(&mut self, at: u64, piece: Bytes) {
        self.cost += piece.len() + RANGE_COST;
        self.ranges.insert(at, piece);
    }

    /// Drops what need not be kept.
    fn trim(&mut self) {
        while self.kept > self.keep
            && let Some((_, piece)) = self.ranges.pop_first()
        {
            let cost = piece.len() + RANGE_COST;
            self.cost -= cost;
            self.kept -= cost;
        }
    }
}

/// Ids that are over, of a peer that never uses one twice. Bounded: when there are too many holes, the oldest is
/// filled.
#[derive(Debug, Default)]
pub(crate) struct IdSet {
    /// First → last id of each run; runs neither touch nor overlap.
    runs: BTreeMap<u64, u64>,
}

impl IdSet {
    /// Most runs. Open streams and stream numbers that a carrier leaves out make holes between them.
    const MAX_RUNS: usize = 1 << 15;

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.runs.range(..=id).next_back().is_some_and(|(_, last)| *last >= id)
    }

    pub(crate) fn insert(&mut self, id: u64) {
        if self.contains(id) {
            return;
        }
        let (mut first, mut last) = (id, id);
        if let Some((at, end)) = self.runs.range(..id).next_back().map(|(at, end)| (*at, *end))
            && end + 1 == id
        {
            first = at;
        }
        if let Some(end) = id.checked_add(1).and_then(|next| self.runs.remove(&next)) {
            last = end;
        }
        self.runs.insert(first, last);
        if self.runs.len() > Self::MAX_RUNS {
            self.fill_oldest_hole();
        }
    }

    /// Its runs, first to last id.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RangeInclusive<u64>> {
        self.runs.iter().map(|(first, last)| *first..=*last)
    }

    /// Takes the first `max` runs out.
    pub(crate) fn take(&mut self, max: usize) -> Vec<RangeInclusive<u64>> {
        let runs = std::iter::from_fn(|| self.runs.pop_first().map(|(first, last)| first..=last));
        runs.take(max).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn fill_oldest_hole(&mut self) {
        let Some((first, _)) = self.runs.pop_first() else { return };
        if let Some((_, last)) = self.runs.pop_first() {
            self.runs.insert(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forgetful() -> Assembler {
        let mut assembler = Assembler::default();
        assembler.keep(0);
        assembler
    }

    fn drain(assembler: &mut Assembler) -> Vec<u8> {
        std::iter::from_fn(|| assembler.pop()).flatten().collect()
    }

    #[test]
    fn the_first_copy_wins_and_nothing_is_given_twice() {
        let mut assembler = forgetful();
        assembler.insert(2, &Bytes::from_static(b"cd")).unwrap();
        assert_eq!(drain(&mut assembler), b"");
        assembler.insert(0, &Bytes::from_static(b"abXXef")).unwrap();
        assert_eq!(drain(&mut assembler), b"abcdef");
        assembler.insert(0, &Bytes::from_static(b"again!")).unwrap();
        assert_eq!(drain(&mut assembler), b"");
        assert_eq!(assembler.cost(), 0);
    }

    #[test]
    fn lengths_must_agree() {
        let mut assembler = forgetful();
        assembler.insert(0, &Bytes::from_static(b"abc")).unwrap();
        assert!(assembler.finish(2).is_err());
        assembler.finish(3).unwrap();
        assembler.finish(3).unwrap();
        assert!(assembler.finish(4).is_err());
        assert!(assembler.insert(2, &Bytes::from_static(b"cd")).is_err());
        assert!(assembler.insert(u64::MAX, &Bytes::from_static(b"cd")).is_err());
        assert!(!assembler.is_complete());
        drain(&mut assembler);
        assert!(assembler.is_complete());
    }

    #[test]
    fn tiny_ranges_do_not_keep_large_buffers() {
        let large = Bytes::from(vec![7; 1 << 16]);
        let mut assembler = forgetful();
        assembler.insert(9, &large.slice(9..10)).unwrap();
        assert!(large.is_unique());
        assert_eq!(assembler.cost(), 65);
    }

    proptest! {
        #[test]
        fn any_cover_in_any_order_gives_the_bytes(
            data in proptest::collection::vec(any::<u8>(), 1..200),
            cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..50), 0..60),
        ) {
            let data = Bytes::from(data);
            let mut assembler = forgetful();
            let mut out = Vec::new();
            let whole = (0, data.len());
            let cuts = cuts.iter().map(|(at, len)| {
                let at = at.index(data.len());
                (at, (at + len).min(data.len()))
            });
            for (from, to) in cuts.chain([whole]) {
                assembler.insert(from as u64, &data.slice(from..to)).unwrap();
                let waiting: usize = assembler.ranges.values().map(|piece| piece.len() + RANGE_COST).sum();
                prop_assert_eq!(assembler.cost(), waiting);
                out.extend(drain(&mut assembler));
                prop_assert_eq!(&out[..], &data[..out.len()]);
            }
            assembler.finish(data.len() as u64).unwrap();
            prop_assert_eq!(&out[..], &data[..]);
            prop_assert!(assembler.is_complete());
            prop_assert_eq!(assembler.cost(), 0);
        }

        #[test]
        fn id_sets_are_sets(ids in proptest::collection::vec(0_u64..64, 0..80)) {
            let mut set = IdSet::default();
            for id in &ids {
                set.insert(*id);
            }
            for id in 0..64 {
                prop_assert_eq!(set.contains(id), ids.contains(&id));
            }
            let runs: Vec<_> = set.runs.into_iter().collect();
            prop_assert!(runs.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }

    #[test]
    fn id_sets_are_bounded() {
        let mut set = IdSet::default();
        for id in 0..(IdSet::MAX_RUNS as u64 + 1000) {
            set.insert(id * 4);
        }
        assert_eq!(set.runs.len(), IdSet::MAX_RUNS);
        assert!(set.contains(1) && set.contains(4 * IdSet::MAX_RUNS as u64));
        assert!(!set.contains(4 * IdSet::MAX_RUNS as u64 + 1));
        set.insert(u64::MAX);
        assert!(set.contains(u64::MAX));
    }
}
