//! What every stream of one direction sent first, and which repair rows belong to which.
//!
//! A byte counts when it is sent for the first time: what QUIC sends again is the delay that is to be explained.

use std::collections::BTreeMap;
use std::ops::Range;

use super::packet::{Frame, Packet, Reader};

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) packets: Vec<Packet>,
    streams: BTreeMap<u64, Line>,
}

/// A stream.
#[derive(Debug, Default)]
struct Line {
    /// The session's kind; 0 while unknown.
    kind: u64,
    /// Where its body begins.
    body: u64,
    /// Of a repair row: the streams that it repairs, and where.
    repairs: Vec<(u64, Range<u64>)>,
    /// First transmissions, and whether they were lost.
    firsts: Vec<(Range<u64>, bool)>,
}

/// How many of some packets were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) lost: u64,
    pub(crate) of: u64,
}

impl Lost {
    pub(crate) fn all(self) -> bool {
        self.lost == self.of
    }

    fn add(&mut self, lost: bool) {
        self.of += 1;
        self.lost += u64::from(lost);
    }
}

impl Traffic {
    pub(crate) fn new(packets: Vec<Packet>) -> Self {
        let mut streams: BTreeMap<u64, Line> = BTreeMap::new();
        for packet in &packets {
            for frame in &packet.frames {
                if let Frame::Stream { number, offset, bytes, .. } = frame {
                    streams.entry(*number).or_default().add(*offset, bytes, packet.lost);
                }
            }
        }
        Self { packets, streams }
    }

    /// The streams of a kind, in the order in which they were opened.
    pub(crate) fn of_kind(&self, kind: u64) -> Vec<u64> {
        self.streams.iter().filter(|(_, line)| line.kind == kind).map(|(number, _)| *number).collect()
    }

    /// A stream's kind.
    pub(crate) fn kind(&self, stream: u64) -> u64 {
        self.streams.get(&stream).map_or(0, |line| line.kind)
    }

    /// Where message number `index` of so many bytes each lies, its frame included.
    pub(crate) fn message(&self, stream: u64, index: usize, length: usize) -> Range<u64> {
        let framed = length as u64 + if length < 64 { 1 } else { 2 };
        let start = self.streams.get(&stream).map_or(0, |line| line.body) + index as u64 * framed;
        start..start + framed
    }

    /// What of the first transmissions of these bytes was lost.
    pub(crate) fn source(&self, stream: u64, range: &Range<u64>) -> Lost {
        let mut sum = Lost::default();
        let firsts = self.streams.get(&stream).into_iter().flat_map(|line| &line.firsts);
        firsts.filter(|(sent, _)| touch(sent, range)).for_each(|(_, lost)| sum.add(*lost));
        sum
    }

    /// What of the rows and copies was lost that stand for these bytes; a row of two packets is lost with either.
    pub(crate) fn rows(&self, stream: u64, range: &Range<u64>) -> Lost {
        let mut sum = Lost::default();
        for line in self.streams.values() {
            if line.repairs.iter().any(|(of, block)| *of == stream && touch(block, range)) {
                sum.add(line.firsts.iter().any(|(_, lost)| *lost));
            }
        }
        sum
    }

    /// What a stream is, for a timeline.
    pub(crate) fn name(&self, stream: u64) -> String {
        let kind = KINDS.get(self.kind(stream) as usize).copied().unwrap_or("other");
        match self.streams.get(&stream).map_or(&[][..], |line| &line.repairs) {
            [] => format!("{kind} #{stream}"),
            [(of, block)] => format!("repair of #{of} {}+{}", block.start, block.end - block.start),
            [(first, _), .., (last, _)] => format!("repair of #{first} to #{last}"),
        }
    }
}

impl Line {
    fn add(&mut self, offset: u64, bytes: &[u8], lost: bool) {
        let range = offset..offset + bytes.len() as u64;
        if offset == 0 && self.kind == 0 {
            let _ = self.read_head(bytes);
        }
        if !self.firsts.iter().any(|(sent, _)| touch(sent, &range)) {
            self.firsts.push((range, lost));
        }
    }

    fn read_head(&mut self, bytes: &[u8]) -> Option<()> {
        let mut reader = Reader(bytes);
        let length = reader.varint()?;
        self.body = (bytes.len() - reader.0.len()) as u64 + length;
        self.kind = reader.varint()?;
        // A window beside is not what is explained.
        if self.kind == UPDATE && reader.varint().and_then(|_| reader.varint())? != 1 {
            self.kind = OTHER;
        }
        if self.kind == REPAIR {
            let [_, stream, offset, length] = [0; 4].map(|_: u8| reader.varint().unwrap_or_default());
            self.repairs = vec![(stream, offset..offset + length)];
        }
        if self.kind == JOINT {
            let [_, _, _] = [0; 3].map(|_: u8| reader.varint().unwrap_or_default());
            let (count, mut next) = (*reader.0.first()?, 0);
            reader.0 = &reader.0[1..];
            for _ in 0..count {
                let [_, gap, length] = [0; 3].map(|_: u8| reader.varint().unwrap_or_default());
                self.repairs.push((next + gap, 0..length));
                next += gap + 1;
            }
        }
        Some(())
    }
}

fn touch(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The session's kinds of streams.
pub(crate) const EVENTS: u64 = 3;
pub(crate) const UPDATE: u64 = 4;
const REPAIR: u64 = 8;
const JOINT: u64 = 9;
const OTHER: u64 = KINDS.len() as u64;
const KINDS: [&str; 10] =
    ["stream", "control", "wayland", "events", "update", "pipe", "blob", "sound", "repair", "joint"];
