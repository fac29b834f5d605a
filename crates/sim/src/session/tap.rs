//! Listens to the pieces of streams as they come and says when all bytes of a chunk were there, no matter what holds
//! them back.
//!
//! In a session over one ordered stream the chunk becomes visible only when everything before it has come; the
//! difference is what the evaluation calls blocking. The tap recognises the pattern of [`plan`](super::plan) in any
//! piece of any stream. Up to seven bytes at the edge of a piece are taken to belong to what is next to them.
//! Invariant: a chunk is reported once.

use std::collections::BTreeMap;

use super::plan::{Place, Plan, WORD};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// What has come of the chunks that are not complete, as ranges that neither touch nor overlap.
    partial: BTreeMap<(usize, usize), BTreeMap<usize, usize>>,
}

/// What a piece brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The first byte of a chunk.
    First(usize, usize),
    /// The last byte that was missing of a chunk.
    All(usize, usize),
}

impl Tap {
    /// A piece of some stream came.
    pub(super) fn piece(&mut self, plan: &Plan, bytes: &[u8], mut seen: impl FnMut(Seen)) {
        let (mut at, mut done, mut last) = (0, 0, None);
        while let Some(word) = word(bytes, at) {
            let Some(run) = Run::at(plan, bytes, at, word) else {
                at += 1;
                continue;
            };
            let gap = at - done;
            if run.place.offset == 0
                && let Some((chunk, whole)) = plan.before(run.chunk())
            {
                // The end of a word that was cut.
                self.add(chunk, (whole.saturating_sub(gap.min(WORD - 1)), whole), whole, &mut seen);
            }
            let start = run.place.offset - run.place.offset.min(gap);
            self.add(run.chunk(), (start, run.place.offset + run.length), run.whole, &mut seen);
            at += run.length;
            done = at;
            last = Some(run);
        }
        // The beginning of a word that is cut.
        if let Some(run) = last.filter(|run| run.place.offset + run.length == run.whole)
            && let Some((chunk, whole)) = plan.after(run.chunk())
        {
            self.add(chunk, (0, (bytes.len() - done).min(WORD - 1)), whole, &mut seen);
        }
    }

    fn add(&mut self, key: (usize, usize), range: (usize, usize), whole: usize, seen: &mut impl FnMut(Seen)) {
        if range.0 == range.1 {
            return;
        }
        let ranges = self.partial.entry(key).or_default();
        if ranges.is_empty() {
            seen(Seen::First(key.0, key.1));
        }
        let (mut start, mut end) = range;
        while let Some((&from, &to)) = ranges.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            start = start.min(from);
            end = end.max(to);
            ranges.remove(&from);
        }
        ranges.insert(start, end);
        // Remembered as reported by a range that no chunk has.
        if start == 0 && end >= whole && ranges.insert(usize::MAX, usize::MAX).is_none() {
            seen(Seen::All(key.0, key.1));
        }
    }
}

/// Consecutive bytes of one chunk inside a piece.
struct Run {
    place: Place,
    length: usize,
    /// Of the chunk.
    whole: usize,
}

impl Run {
    fn chunk(&self) -> (usize, usize) {
        (self.place.update, self.place.chunk)
    }

    fn at(plan: &Plan, bytes: &[u8], at: usize, first: [u8; WORD]) -> Option<Self> {
        let place = Place::of(first)?;
        let whole = plan.length(place.update, place.chunk).filter(|whole| place.offset < *whole)?;
        let fits = (whole - place.offset).min(bytes.len() - at);
        let last = fits.saturating_sub(WORD) / WORD * WORD;
        let matches =
            |offset: usize| word(bytes, at + offset).is_some_and(|word| place.continues(offset, word));
        if matches(last) {
            return Some(Self { place, length: fits, whole });
        }
        // Something lies in between: the head of a frame.
        let words = (0..last).step_by(WORD).take_while(|offset| matches(*offset)).count();
        Some(Self { place, length: words.max(1) * WORD, whole })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<[u8; WORD]> {
    bytes.get(at..at + WORD)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::plan::Pace;
    use super::*;

    fn feed(pieces: &[&[u8]], plan: &Plan) -> Vec<Seen> {
        let (mut tap, mut all) = (Tap::default(), Vec::new());
        for piece in pieces {
            tap.piece(plan, piece, |seen| all.push(seen));
        }
        all
    }

    #[test]
    fn a_chunk_in_pieces_out_of_order_is_there_with_its_last_piece() {
        let plan = Plan::uniform(1, 1, 3001, Pace::BackToBack);
        let chunk = plan.chunks(0).remove(0);
        let (a, b, c) = (&chunk[..1003], &chunk[1003..2000], &chunk[2000..]);
        assert_eq!(feed(&[c, a], &plan), [Seen::First(0, 0)]);
        assert_eq!(feed(&[c, a, b, b], &plan), [Seen::First(0, 0), Seen::All(0, 0)]);
    }

    #[test]
    fn frames_in_between_do_not_hide_chunks() {
        let plan = Plan::uniform(2, 2, 500, Pace::BackToBack);
        let mut stream = b"head".to_vec();
        for update in 0..2 {
            for chunk in plan.chunks(update) {
                stream.extend_from_slice(&chunk[..123]);
                stream.extend_from_slice(b"another frame");
                stream.extend_from_slice(&chunk[123..]);
            }
        }
        let whole = |seen: &Seen| matches!(seen, Seen::All(..));
        assert_eq!(feed(&[&stream], &plan).into_iter().filter(whole).count(), 4);
        let pieces: Vec<&[u8]> = stream.chunks(77).collect();
        assert_eq!(feed(&pieces, &plan).into_iter().filter(whole).count(), 4);
        let without_one: Vec<&[u8]> =
            pieces.iter().enumerate().filter(|it| it.0 != 9).map(|it| *it.1).collect();
        assert_eq!(feed(&without_one, &plan).into_iter().filter(whole).count(), 3);
    }
}
