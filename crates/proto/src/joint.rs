//! A repair row of several small updates: the body of a [joint](crate::Kind::Joint) stream.
//!
//! It says which updates, and how long each is; the rows of all of them, one after the other, are the rows of the sum.
//! It looks at no bytes of updates. Invariant: what is decoded has rows, no more than a sum can have, and is as long as
//! the longest of them.

use std::ops::Range;

use bytes::Bytes;
use wayferry_fec::sliding;

use crate::wire::{Reader, Writer};
use crate::{Error, JointHeader, MAX_JOINT, MAX_ROW, SMALL_UPDATE, StreamId};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Joint {
    pub(crate) header: JointHeader,
    pub(crate) updates: Vec<Member>,
    pub(crate) sum: Bytes,
}

/// One of its updates: all of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its channel, by number.
    pub(crate) channel: u64,
    /// The stream that carries it, as its sender counts them.
    pub(crate) stream: StreamId,
    /// Bytes of the stream.
    pub(crate) length: usize,
}

impl Joint {
    /// Appends the body.
    pub(crate) fn encode(&self, writer: &mut Writer) {
        let (mut channel, mut stream) = (0, 0);
        for update in &self.updates {
            writer.varint(update.channel - channel).varint(update.stream.0 - stream);
            writer.varint(update.length as u64);
            (channel, stream) = (update.channel + 1, update.stream.0 + 1);
        }
        writer.raw(&self.sum);
    }

    /// Reads all of a body.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn decode(header: JointHeader, body: &Bytes) -> Result<Self, Error> {
        let mut reader = Reader::new(body);
        let (mut channel, mut stream) = (0u64, 0u64);
        let mut updates = Vec::with_capacity(header.updates.into());
        for _ in 0..header.updates {
            channel = channel.saturating_add(reader.varint("a channel's number")?);
            stream = stream.saturating_add(reader.varint("a stream")?);
            let length = reader.varint_max(MAX_MEMBER as u64, "an update's length")? as usize;
            updates.push(Member { channel, stream: StreamId(stream), length });
            (channel, stream) = (channel.saturating_add(1), stream.saturating_add(1));
        }
        let sum = body.slice(body.len() - reader.remaining()..);
        let joint = Self { header, updates, sum };
        let rows = joint.rows().count() as u64;
        if rows == 0 || rows > sliding::SPAN {
            return Err(Error::OutOfRange { expected: "rows of a sum", max: sliding::SPAN, got: rows });
        }
        let longest = joint.rows().map(|(_, _, range)| range.len()).max().unwrap_or_default();
        if joint.sum.len() != longest {
            let got = format!("one of {} bytes", joint.sum.len());
            return Err(Error::Violation { expected: "a sum as long as its longest row", got });
        }
        Ok(joint)
    }

    /// Its rows: of which update, by which number, and where in the update.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Member, u64, Range<usize>)> {
        let row = usize::from(self.header.row);
        let ranges = self.updates.iter().flat_map(move |update| {
            let starts = (0..update.length).step_by(row);
            starts.map(move |start| (update, start..(start + row).min(update.length)))
        });
        let first = self.header.first;
        ranges.zip(0..).map(move |((update, range), count)| (update, first.wrapping_add(count), range))
    }
}

/// Bytes of the stream of an update that can be one of several: a small one, and its header.
pub(crate) const MAX_MEMBER: usize = SMALL_UPDATE + 512;

/// Bytes of a body.
pub(crate) const MAX_BODY: usize = MAX_ROW + MAX_JOINT * 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joint() -> Joint {
        let member = |channel, stream, length| Member { channel, stream: StreamId(stream), length };
        let updates = vec![member(5, 70, 300), member(6, 72, 1500), member(300, 900, 1)];
        let header = JointHeader { number: 7, first: 40, row: 1000, updates: 3 };
        Joint { header, updates, sum: vec![9; 1000].into() }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::new();
        joint().encode(&mut writer);
        let body = writer.into_vec();
        assert_eq!(body[..16], [5, 64, 70, 65, 44, 0, 1, 69, 220, 65, 37, 67, 59, 1, 9, 9]);
        assert_eq!(Joint::decode(joint().header, &body.into()), Ok(joint()));
        let joint = joint();
        let rows: Vec<_> =
            joint.rows().map(|(update, number, range)| (update.channel, number, range)).collect();
        assert_eq!(rows, [(5, 40, 0..300), (6, 41, 0..1000), (6, 42, 1000..1500), (300, 43, 0..1)]);
    }

    #[test]
    fn a_sum_of_other_rows_is_none() {
        let body = |joint: &Joint| {
            let mut writer = Writer::new();
            joint.encode(&mut writer);
            Bytes::from(writer.into_vec())
        };
        let header = joint().header;
        let short = Joint { sum: vec![9; 999].into(), ..joint() };
        assert!(Joint::decode(header, &body(&short)).is_err());
        let mut empty = joint();
        empty.updates.iter_mut().for_each(|update| update.length = 0);
        empty.sum = Bytes::new();
        assert!(Joint::decode(header, &body(&empty)).is_err());
        assert!(Joint::decode(JointHeader { row: 1, ..header }, &body(&joint())).is_err(), "1801 rows");
        assert!(Joint::decode(header, &Bytes::from_static(&[5, 64])).is_err());
    }

    proptest! {
        #[test]
        fn garbage_is_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            first in any::<u64>(),
            row in 1..=MAX_ROW as u16,
            updates in 1..=MAX_JOINT as u8,
        ) {
            let header = JointHeader { number: 1, first, row, updates };
            if let Ok(joint) = Joint::decode(header, &bytes.into()) {
                prop_assert!(joint.rows().all(|(update, _, range)| range.end <= update.length));
            }
        }
    }
}
