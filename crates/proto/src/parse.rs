//! What becomes of a stream's bytes once they are in order: headers and messages, blobs, updates.
//!
//! Push parsers: each takes what it can from the front of a buffer and keeps what is incomplete. Memory grows with the
//! bytes that came, never with a length that was only announced. Invariant: how the bytes are split does not matter.

use std::ops::Range;

use bytes::{Buf, Bytes};

use crate::Error;
use crate::assembler::Assembler;
use crate::session::{MAX_CHUNK, MAX_CHUNKS, MAX_UPDATE};
use crate::wire::Reader;

/// Pieces shorter than this are copied, so that a few bytes cannot keep a carrier's large buffer alive.
const COPY_BELOW: usize = 4096;

/// Collects one varint.
#[derive(Debug, Default)]
struct Varint {
    bytes: [u8; 8],
    filled: usize,
}

impl Varint {
    /// The number, once it is whole.
    fn feed(&mut self, input: &mut Bytes) -> Option<u64> {
        while !input.is_empty() {
            self.bytes[self.filled] = input.get_u8();
            self.filled += 1;
            if self.filled == 1 << (self.bytes[0] >> 6) {
                let value = Reader::new(&self.bytes[..self.filled]).varint("a whole varint");
                self.filled = 0;
                return value.ok();
            }
        }
        None
    }
}

/// Collects a number of bytes that is known.
#[derive(Debug, Default)]
struct Exactly {
    bytes: Vec<u8>,
}

impl Exactly {
    /// The `length` bytes, once they are all there. Those that come in one piece are not copied unless few.
    fn feed(&mut self, length: usize, input: &mut Bytes) -> Option<Bytes> {
        if self.bytes.is_empty() && input.len() >= length {
            let whole = input.split_to(length);
            return Some(if length < COPY_BELOW { Bytes::copy_from_slice(&whole) } else { whole });
        }
        let part = input.split_to(input.len().min(length - self.bytes.len()));
        self.bytes.extend_from_slice(&part);
        (self.bytes.len() == length).then(|| std::mem::take(&mut self.bytes).into())
    }
}

/// Messages: a varint length each, then the bytes.
#[derive(Debug)]
pub(crate) struct Frames {
    what: &'static str,
    max: usize,
    prefix: Varint,
    length: Option<usize>,
    body: Exactly,
}

impl Frames {
    pub(crate) fn new(what: &'static str, max: usize) -> Self {
        Self { what, max, prefix: Varint::default(), length: None, body: Exactly::default() }
    }

    /// The next message, once it is whole.
    pub(crate) fn feed(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Error> {
        let length = match self.length {
            Some(length) => length,
            None => match self.prefix.feed(input) {
                Some(got) if got > self.max as u64 => {
                    return Err(Error::OutOfRange { expected: self.what, max: self.max as u64, got });
                }
                Some(got) => *self.length.insert(got as usize),
                None => return Ok(None),
            },
        };
        let message = self.body.feed(length, input);
        if message.is_some() {
            self.length = None;
        }
        Ok(message)
    }

    /// Whether the last message is complete.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.length.is_none() && self.prefix.filled == 0
    }

    pub(crate) fn cost(&self) -> usize {
        self.body.bytes.len()
    }
}

/// A blob: as many bytes as its header says.
#[derive(Debug)]
pub(crate) struct Blob {
    length: usize,
    body: Exactly,
    done: bool,
}

impl Blob {
    pub(crate) fn new(length: u32) -> Self {
        Self { length: length as usize, body: Exactly::default(), done: false }
    }

    /// The blob, once it is whole; at once when it is empty.
    pub(crate) fn feed(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Error> {
        if self.done {
            return nothing_left(input, "a blob");
        }
        let blob = self.body.feed(self.length, input);
        self.done = blob.is_some();
        Ok(blob)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn cost(&self) -> usize {
        self.body.bytes.len()
    }
}

/// The chunk table of an update: a varint count, then as many varint lengths.
#[derive(Debug, Default)]
pub(crate) struct Table {
    number: Varint,
    count: Option<usize>,
    lengths: Vec<u32>,
    total: usize,
}

impl Table {
    /// The chunks' lengths, once all are there.
    pub(crate) fn feed(&mut self, input: &mut Bytes) -> Result<Option<Vec<u32>>, Error> {
        let Some(count) = self.feed_count(input)? else { return Ok(None) };
        while self.lengths.len() < count {
            let Some(length) = self.number.feed(input) else { return Ok(None) };
            self.take_length(length)?;
        }
        Ok(Some(std::mem::take(&mut self.lengths)))
    }

    pub(crate) fn cost(&self) -> usize {
        self.lengths.len() * size_of::<u32>()
    }

    fn feed_count(&mut self, input: &mut Bytes) -> Result<Option<usize>, Error> {
        if self.count.is_none() {
            self.count = match self.number.feed(input) {
                Some(got) if got > MAX_CHUNKS as u64 => {
                    return Err(Error::TooMuch { limit: "chunks of an update", max: MAX_CHUNKS as u64 });
                }
                got => got.map(|count| count as usize),
            };
        }
        Ok(self.count)
    }

    fn take_length(&mut self, length: u64) -> Result<(), Error> {
        // An empty chunk says nothing, and would cost more memory than bytes.
        if length == 0 || length > MAX_CHUNK as u64 {
            return Err(Error::OutOfRange {
                expected: "a chunk's length from 1",
                max: MAX_CHUNK as u64,
                got: length,
            });
        }
        self.total += length as usize;
        if self.total > MAX_UPDATE {
            return Err(Error::TooMuch { limit: "bytes of an update", max: MAX_UPDATE as u64 });
        }
        self.lengths.push(length as u32);
        Ok(())
    }
}

/// The chunks of an update, which come in any order.
#[derive(Debug)]
pub(crate) struct Chunks {
    /// Where in the stream each begins, and where the last one ends.
    starts: Vec<u64>,
    chunks: Vec<Bytes>,
    /// How many bytes each lacks.
    lacks: Vec<u32>,
    missing: usize,
}

impl Chunks {
    /// None is there; the first begins at `begin`.
    pub(crate) fn new(begin: u64, lengths: &[u32]) -> Self {
        let ends = lengths.iter().scan(begin, |end, length| {
            *end += u64::from(*length);
            Some(*end)
        });
        Self {
            starts: std::iter::once(begin).chain(ends).collect(),
            chunks: vec![Bytes::new(); lengths.len()],
            lacks: lengths.to_vec(),
            missing: lengths.len(),
        }
    }

    /// Takes those that are whole with `range`, no byte of which was there before; gives their numbers.
    pub(crate) fn take(&mut self, assembler: &mut Assembler, range: &Range<u64>) -> Vec<usize> {
        let first = self.starts.partition_point(|start| *start <= range.start).saturating_sub(1);
        let last = self.starts.partition_point(|start| *start < range.end).min(self.chunks.len());
        let mut whole = Vec::new();
        for index in first..last {
            let (start, end) = (self.starts[index], self.starts[index + 1]);
            let came = end.min(range.end).saturating_sub(start.max(range.start));
            self.lacks[index] = self.lacks[index].saturating_sub(came as u32);
            if came > 0
                && self.lacks[index] == 0
                && let Some(bytes) = assembler.read(&(start..end))
            {
                self.chunks[index] = bytes;
                self.missing -= 1;
                whole.push(index);
            }
        }
        whole
    }

    /// One that has been taken.
    pub(crate) fn get(&self, index: usize) -> Bytes {
        self.chunks[index].clone()
    }

    /// All of them, if none is missing.
    pub(crate) fn whole(&mut self) -> Option<Vec<Bytes>> {
        (self.missing == 0).then(|| std::mem::take(&mut self.chunks))
    }

    /// Where the stream must end.
    pub(crate) fn end(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Beside the chunks themselves, which the assembler counts.
    pub(crate) fn cost(&self) -> usize {
        self.starts.len() * (size_of::<u64>() + size_of::<u32>() + size_of::<Bytes>())
    }
}

fn nothing_left<T>(input: &Bytes, after: &'static str) -> Result<Option<T>, Error> {
    match input.len() {
        0 => Ok(None),
        bytes => Err(Error::Trailing { after, bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;

    #[test]
    fn messages_come_out_of_any_splitting() {
        let messages: [&[u8]; 4] = [b"one", b"", &[7; 300], &[8; 20_000]];
        let mut writer = Writer::new();
        for message in messages {
            writer.bytes(message);
        }
        let stream = Bytes::from(writer.into_vec());
        for step in [1, 2, 3, 100, 299, 5000, stream.len()] {
            let mut frames = Frames::new("a message", 20_000);
            let mut out: Vec<Bytes> = Vec::new();
            for start in (0..stream.len()).step_by(step) {
                let mut input = stream.slice(start..(start + step).min(stream.len()));
                while let Some(message) = frames.feed(&mut input).unwrap() {
                    out.push(message);
                }
                assert!(input.is_empty());
            }
            assert!(frames.is_between_messages());
            assert_eq!(out, messages);
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_refused_by_its_length() {
        let mut frames = Frames::new("a message", 255);
        let mut input = Bytes::from_static(&[0x41, 0x00]);
        assert_eq!(
            frames.feed(&mut input),
            Err(Error::OutOfRange { expected: "a message", max: 255, got: 256 })
        );
    }

    #[test]
    fn announced_lengths_take_no_memory() {
        let mut writer = Writer::new();
        writer.varint(MAX_CHUNKS as u64).varint(MAX_CHUNK as u64);
        let mut table = Table::default();
        assert_eq!(table.feed(&mut writer.into_vec().into()), Ok(None));
        assert!(table.cost() < 100 && table.lengths.capacity() < 100);
        let mut frames = Frames::new("a message", 1 << 16);
        assert_eq!(frames.feed(&mut Bytes::from_static(&[0x80, 0, 0xff, 0xff, 1])), Ok(None));
        assert!(frames.body.bytes.capacity() < 100);
    }

    #[test]
    fn updates_are_bounded() {
        let feed = |numbers: &[u64]| {
            let mut writer = Writer::new();
            for number in numbers {
                writer.varint(*number);
            }
            Table::default().feed(&mut writer.into_vec().into())
        };
        assert!(matches!(feed(&[MAX_CHUNKS as u64 + 1]), Err(Error::TooMuch { .. })));
        assert!(matches!(feed(&[1, 0]), Err(Error::OutOfRange { got: 0, .. })));
        assert!(matches!(feed(&[1, MAX_CHUNK as u64 + 1]), Err(Error::OutOfRange { .. })));
        assert_eq!(feed(&[0]), Ok(Some(vec![])));
        let full = [&[MAX_CHUNKS as u64][..], &vec![MAX_CHUNK as u64; MAX_CHUNKS][..]].concat();
        assert!(matches!(feed(&full), Err(Error::TooMuch { limit: "bytes of an update", .. })));
    }

    #[test]
    fn chunks_come_in_any_order_and_once() {
        let bytes = Bytes::from_static(b"..aaabbbbc");
        let mut assembler = Assembler::default();
        let mut chunks = Chunks::new(2, &[3, 4, 1]);
        let mut arrive = |range: Range<usize>| {
            let new = assembler.insert(range.start as u64, &bytes.slice(range)).unwrap();
            new.iter().flat_map(|range| chunks.take(&mut assembler, range)).collect::<Vec<_>>()
        };
        assert_eq!(arrive(8..10), [2]);
        assert!(arrive(0..4).is_empty());
        assert_eq!(arrive(4..8), [0, 1]);
        assert!(arrive(8..9).is_empty());
        assert!(arrive(0..10).is_empty());
        assert_eq!(chunks.end(), 10);
        assert_eq!(chunks.whole().unwrap(), ["aaa", "bbbb", "c"]);
    }

    #[test]
    fn nothing_may_follow_what_is_whole() {
        let mut blob = Blob::new(2);
        assert_eq!(blob.feed(&mut Bytes::from_static(b"ab")), Ok(Some(Bytes::from_static(b"ab"))));
        assert!(blob.feed(&mut Bytes::from_static(b"c")).is_err());
    }
}
