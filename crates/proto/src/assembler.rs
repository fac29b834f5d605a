//! Puts the byte ranges of one stream in order, whatever order they come in.
//!
//! It knows nothing of what the bytes mean. Invariants: every byte is given out exactly once and in order; the first
//! copy of a byte wins; ranges that wait are disjoint, and [`Assembler::cost`] is what they take in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::Error;
use crate::wire::VARINT_MAX;

/// What a waiting range costs beside its bytes.
const RANGE_COST: usize = 64;

/// A waiting range shorter than this is copied, so that a few bytes cannot keep a carrier's large buffer alive.
const COPY_BELOW: usize = 4096;

/// The bytes of one stream between arrival and parser.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    /// Everything before this offset has been given out.
    given: u64,
    /// One past the last byte seen.
    highest: u64,
    length: Option<u64>,
    waiting: BTreeMap<u64, Bytes>,
    cost: usize,
}

impl Assembler {
    /// Takes bytes that belong at `offset`.
    pub(crate) fn insert(&mut self, offset: u64, bytes: &Bytes) -> Result<(), Error> {
        let end = offset.saturating_add(bytes.len() as u64);
        let max = self.length.unwrap_or(VARINT_MAX);
        if end > max {
            return Err(Error::OutOfRange { expected: "the end of a stream's bytes", max, got: end });
        }
        self.highest = self.highest.max(end);
        let mut start = offset.max(self.given);
        while start < end {
            let covered = self.waiting.range(..=start).next_back().map(|(at, piece)| at + piece.len() as u64);
            if let Some(covered) = covered.filter(|covered| *covered > start) {
                start = covered;
                continue;
            }
            let gap_end = self.waiting.range(start..end).next().map_or(end, |(at, _)| *at);
            let piece = bytes.slice((start - offset) as usize..(gap_end - offset) as usize);
            let must_wait = start > self.given && piece.len() < COPY_BELOW;
            let piece = if must_wait { Bytes::copy_from_slice(&piece) } else { piece };
            self.cost += piece.len() + RANGE_COST;
            self.waiting.insert(start, piece);
            start = gap_end;
        }
        Ok(())
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
        let entry = self.waiting.first_entry().filter(|entry| *entry.key() == self.given)?;
        let piece = entry.remove();
        self.given += piece.len() as u64;
        self.cost -= piece.len() + RANGE_COST;
        Some(piece)
    }

    /// Whether the length is known and everything has been given out.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.given)
    }

    /// How many bytes have been given out.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// One past the last byte seen.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// The memory that waiting ranges take.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }
}

/// Ids that are over, of a peer that never uses one twice. Bounded: when there are too many holes, the oldest is filled.
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

    fn drain(assembler: &mut Assembler) -> Vec<u8> {
        std::iter::from_fn(|| assembler.pop()).flatten().collect()
    }

    #[test]
    fn the_first_copy_wins_and_nothing_is_given_twice() {
        let mut assembler = Assembler::default();
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
        let mut assembler = Assembler::default();
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
        let mut assembler = Assembler::default();
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
            let mut assembler = Assembler::default();
            let mut out = Vec::new();
            let whole = (0, data.len());
            let cuts = cuts.iter().map(|(at, len)| {
                let at = at.index(data.len());
                (at, (at + len).min(data.len()))
            });
            for (from, to) in cuts.chain([whole]) {
                assembler.insert(from as u64, &data.slice(from..to)).unwrap();
                let waiting: usize = assembler.waiting.values().map(|piece| piece.len() + RANGE_COST).sum();
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
