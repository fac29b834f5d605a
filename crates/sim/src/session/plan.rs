//! What is sent when: the workload as plain values, known to both halves.
//!
//! The bytes of a chunk are a pattern that names the update, the chunk and the place in it, so that an observer of a
//! piece of any stream knows what it is. Invariant: the pattern of eight bytes at a multiple of eight decodes to its
//! place.

use std::time::Duration;

/// A workload; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Lengths in bytes of each update's chunks.
    pub updates: Vec<Vec<usize>>,
    /// What starts an update.
    pub pace: Pace,
    /// Whether each update tells the unit that shows it, and is shown only when those before it are there, or made up
    /// for.
    pub told: bool,
    /// So many updates before it each makes up for, where the link is known to lose; of those that tell their units.
    pub covers: u8,
    /// Lengths of the updates of a window beside, 60 a second from the first request on, which answer nothing.
    pub beside: Vec<usize>,
}

/// What starts an update.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// One request; then the link.
    BackToBack,
    /// One request; then these times after it was heard, one for each update.
    Timed(Vec<Duration>),
    /// A request each, sent when the update before has been whole for this long.
    Asked {
        /// From one update's end to the next one's request.
        pause: Duration,
    },
    /// A request each, sent at these times after the first, no matter what has come.
    Keys(Vec<Duration>),
}

impl Plan {
    /// These updates at this pace and nothing else.
    pub fn of(updates: Vec<Vec<usize>>, pace: Pace) -> Self {
        Self { updates, pace, told: false, covers: 0, beside: Vec::new() }
    }

    /// `count` updates of `chunks` chunks of `length` bytes.
    pub fn uniform(count: usize, chunks: usize, length: usize, pace: Pace) -> Self {
        Self::of(vec![vec![length; chunks]; count], pace)
    }

    /// Bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.updates.iter().flatten().chain(&self.beside).map(|length| *length as u64).sum()
    }

    /// Whether each update is asked for.
    pub fn has_requests(&self) -> bool {
        matches!(self.pace, Pace::Asked { .. } | Pace::Keys(_))
    }

    /// The bytes of an update's chunks.
    pub(super) fn chunks(&self, update: usize) -> Vec<Vec<u8>> {
        let lengths = self.updates.get(update).map(Vec::as_slice).unwrap_or_default();
        lengths
            .iter()
            .enumerate()
            .map(|(chunk, length)| pattern(Place { update, chunk, offset: 0 }, *length))
            .collect()
    }

    /// The chunk before this one, and its length.
    pub(super) fn before(&self, (update, chunk): (usize, usize)) -> Option<((usize, usize), usize)> {
        let before = match chunk.checked_sub(1) {
            Some(chunk) => (update, chunk),
            None => (update.checked_sub(1)?, self.updates.get(update - 1)?.len().checked_sub(1)?),
        };
        Some((before, self.length(before.0, before.1)?))
    }

    /// The chunk after this one, and its length.
    pub(super) fn after(&self, (update, chunk): (usize, usize)) -> Option<((usize, usize), usize)> {
        let next = [(update, chunk + 1), (update + 1, 0)];
        next.into_iter().find_map(|next| Some((next, self.length(next.0, next.1)?)))
    }

    /// The length of a chunk, if there is one.
    pub(super) fn length(&self, update: usize, chunk: usize) -> Option<usize> {
        self.updates.get(update)?.get(chunk).copied()
    }
}

/// A byte of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) update: usize,
    pub(super) chunk: usize,
    /// In the chunk.
    pub(super) offset: usize,
}

impl Place {
    /// What the word at this place is; `offset` is a multiple of eight.
    fn word(self) -> [u8; WORD] {
        let number = (MAGIC << 52)
            | (self.update as u64) << 32
            | (self.chunk as u64) << 20
            | (self.offset / WORD) as u64;
        number.to_be_bytes()
    }

    /// The place whose word this is, if it is one.
    pub(super) fn of(word: [u8; WORD]) -> Option<Self> {
        let number = u64::from_be_bytes(word);
        let field = |shift: u32, bits: u32| (number >> shift & ((1 << bits) - 1)) as usize;
        let place = Self { update: field(32, 20), chunk: field(20, 12), offset: field(0, 20) * WORD };
        (number >> 52 == MAGIC).then_some(place)
    }

    /// Whether the word is what belongs `bytes` after this place.
    pub(super) fn continues(self, bytes: usize, word: [u8; WORD]) -> bool {
        Self { offset: self.offset + bytes, ..self }.word() == word
    }
}

/// `length` bytes of the pattern from `place` on.
pub(super) fn pattern(place: Place, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + WORD);
    for offset in (0..length).step_by(WORD) {
        bytes.extend_from_slice(&Place { offset: place.offset + offset, ..place }.word());
    }
    bytes.truncate(length);
    bytes
}

/// Whether these are the pattern's bytes from `place` on.
pub(super) fn is_pattern(place: Place, bytes: &[u8]) -> bool {
    bytes.chunks(WORD).enumerate().all(|(index, part)| {
        let word = Place { offset: place.offset + index * WORD, ..place }.word();
        word.starts_with(part)
    })
}

/// From one frame to the next at 60 Hz.
pub(crate) const FRAME: Duration = Duration::from_micros(16_667);

/// Length of the pattern's words.
pub(super) const WORD: usize = 8;

/// The first bits of every word.
const MAGIC: u64 = 0xa5c;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_names_its_place() {
        let plan = Plan::uniform(3, 4, 1003, Pace::BackToBack);
        let chunks = plan.chunks(2);
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [1003; 4]);
        let word = chunks[3][800..808].try_into().unwrap();
        assert_eq!(Place::of(word), Some(Place { update: 2, chunk: 3, offset: 800 }));
        assert_eq!(Place::of(*b"anything"), None);
        let place = Place { update: 2, chunk: 3, offset: 0 };
        assert!(is_pattern(place, &chunks[3]));
        assert!(!is_pattern(place, &chunks[2]));
        let mut damaged = chunks[3].clone();
        damaged[1002] ^= 1;
        assert!(!is_pattern(place, &damaged));
        assert_eq!(plan.bytes(), 12_036);
    }
}
