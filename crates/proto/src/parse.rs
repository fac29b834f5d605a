//! What becomes of a stream's bytes once they are in order: headers and messages, blobs, updates.
//!
//! Push parsers: each takes what it can from the front of a buffer and keeps what is incomplete. Memory grows with the
//! bytes that came, never with a length that was only announced. Invariant: how the bytes are split does not matter.

use bytes::{Buf, Bytes};

use crate::session::{MAX_CHUNK, MAX_CHUNKS, MAX_UPDATE};
use crate::wire::Reader;
use crate::{Error, UpdateHeader};

/// What a list entry costs beside the bytes that it stands for.
const ENTRY_COST: usize = 64;

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

/// An update: a varint count, as many varint lengths, the chunks.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) header: UpdateHeader,
    number: Varint,
    count: Option<usize>,
    lengths: Vec<u32>,
    total: usize,
    chunks: Vec<Bytes>,
    chunk: Exactly,
    done: bool,
    cost: usize,
}

impl Update {
    pub(crate) fn new(header: UpdateHeader) -> Self {
        Self {
            header,
            number: Varint::default(),
            count: None,
            lengths: Vec::new(),
            total: 0,
            chunks: Vec::new(),
            chunk: Exactly::default(),
            done: false,
            cost: 0,
        }
    }

    /// All chunks, once they are there.
    pub(crate) fn feed(&mut self, input: &mut Bytes) -> Result<Option<Vec<Bytes>>, Error> {
        if self.done {
            return nothing_left(input, "an update");
        }
        let Some(count) = self.feed_count(input)? else { return Ok(None) };
        while self.lengths.len() < count {
            let Some(length) = self.number.feed(input) else { return Ok(None) };
            self.take_length(length)?;
        }
        while self.chunks.len() < count {
            let length = self.lengths[self.chunks.len()] as usize;
            let Some(chunk) = self.chunk.feed(length, input) else { return Ok(None) };
            self.cost += chunk.len() + ENTRY_COST;
            self.chunks.push(chunk);
        }
        self.done = true;
        self.lengths = Vec::new();
        self.cost = 0;
        Ok(Some(std::mem::take(&mut self.chunks)))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    pub(crate) fn cost(&self) -> usize {
        self.cost + self.chunk.bytes.len()
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
        self.cost += size_of::<u32>();
        Ok(())
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
    use crate::{ConnectionId, SurfaceId, UpdateSeq};

    fn header() -> UpdateHeader {
        UpdateHeader {
            connection: ConnectionId(1),
            surface: SurfaceId(2),
            seq: UpdateSeq(3),
            size: (4, 5),
            format: 0,
            fresh: false,
        }
    }

    #[test]
    fn messages_come_out_whatever_the_splitting() {
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
        let mut update = Update::new(header());
        assert_eq!(update.feed(&mut writer.into_vec().into()), Ok(None));
        assert!(update.cost() < 100 && update.lengths.capacity() < 100);
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
            Update::new(header()).feed(&mut writer.into_vec().into())
        };
        assert!(matches!(feed(&[MAX_CHUNKS as u64 + 1]), Err(Error::TooMuch { .. })));
        assert!(matches!(feed(&[1, 0]), Err(Error::OutOfRange { got: 0, .. })));
        assert!(matches!(feed(&[1, MAX_CHUNK as u64 + 1]), Err(Error::OutOfRange { .. })));
        assert_eq!(feed(&[0]), Ok(Some(vec![])));
        let full = [&[MAX_CHUNKS as u64][..], &vec![MAX_CHUNK as u64; MAX_CHUNKS][..]].concat();
        assert!(matches!(feed(&full), Err(Error::TooMuch { limit: "bytes of an update", .. })));
    }

    #[test]
    fn nothing_may_follow_what_is_whole() {
        let mut update = Update::new(header());
        assert_eq!(
            update.feed(&mut Bytes::from_static(&[1, 1, 9])),
            Ok(Some(vec![Bytes::from_static(&[9])]))
        );
        assert!(update.is_done());
        assert!(update.feed(&mut Bytes::from_static(&[0])).is_err());
        let mut blob = Blob::new(2);
        assert_eq!(blob.feed(&mut Bytes::from_static(b"ab")), Ok(Some(Bytes::from_static(b"ab"))));
        assert!(blob.feed(&mut Bytes::from_static(b"c")).is_err());
    }
}
