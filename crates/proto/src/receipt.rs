//! What one side has received of the other's numbered channels, as it crosses the wire.
//!
//! Plain values; what they mean to what a sender keeps is the session's matter. Invariant: as read from the wire,
//! numbers go up, ranges neither touch nor overlap, and there are at most [`MAX_RANGES`] and [`MAX_OPEN`] of them.

use std::ops::RangeInclusive;

use crate::Error;
use crate::wire::{Reader, VARINT_MAX, Writer};

/// Most ranges in a [`Receipt`].
pub const MAX_RANGES: usize = 4096;

/// Most open channels in a [`Receipt`].
pub const MAX_OPEN: usize = 4096;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How many lasting messages of the main channel have come since the session began: snapshots, ends of programs,
    /// and channels given up.
    pub lasting: u64,
    /// Numbers of channels of which nothing more is wanted: delivered to their ends, given up, stopped or refused.
    pub done: Vec<RangeInclusive<u64>>,
    /// Long-lived channels that go on.
    pub open: Vec<Delivered>,
}

/// How much of a long-lived channel has been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// The channel's number.
    pub number: u64,
    /// Bytes of its body, from the beginning.
    pub offset: u64,
}

impl Receipt {
    /// Whether nothing more of a channel is wanted.
    pub fn is_done(&self, number: u64) -> bool {
        let after = self.done.partition_point(|range| *range.start() <= number);
        after.checked_sub(1).is_some_and(|index| self.done[index].contains(&number))
    }

    /// How much of an open channel has been delivered.
    pub fn delivered(&self, number: u64) -> Option<u64> {
        let index = self.open.binary_search_by_key(&number, |delivered| delivered.number).ok()?;
        Some(self.open[index].offset)
    }

    /// The highest number in it; 0 when there is none.
    pub fn highest(&self) -> u64 {
        let done = self.done.last().map_or(0, |range| *range.end());
        done.max(self.open.last().map_or(0, |delivered| delivered.number))
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        writer.varint(self.lasting).varint(self.done.len() as u64);
        // The least that a range can begin with: numbers begin at 1, and ranges do not touch.
        let mut least = 1;
        for range in &self.done {
            writer.varint(range.start() - least).varint(range.end() - range.start());
            least = range.end() + 2;
        }
        writer.varint(self.open.len() as u64);
        let mut least = 1;
        for delivered in &self.open {
            writer.varint(delivered.number - least).varint(delivered.offset);
            least = delivered.number + 1;
        }
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let lasting = reader.varint("a number of messages")?;
        let count = reader.count(MAX_RANGES, "the number of ranges")?;
        let mut done = Vec::with_capacity(count);
        let mut least = 1;
        for _ in 0..count {
            let first = number(least, reader)?;
            let last = number(first, reader)?;
            done.push(first..=last);
            least = last + 2;
        }
        let count = reader.count(MAX_OPEN, "the number of open channels")?;
        let mut open = Vec::with_capacity(count);
        let mut least = 1;
        for _ in 0..count {
            let number = number(least, reader)?;
            open.push(Delivered { number, offset: reader.varint("an offset")? });
            least = number + 1;
        }
        Ok(Self { lasting, done, open })
    }
}

/// Reads how far a number is from the least that it can be.
fn number(least: u64, reader: &mut Reader<'_>) -> Result<u64, Error> {
    let number = least + reader.varint("a channel's number")?;
    if number > VARINT_MAX {
        return Err(Error::OutOfRange { expected: "a channel's number", max: VARINT_MAX, got: number });
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(numbers: &[u64]) -> Result<Receipt, Error> {
        let mut writer = Writer::new();
        for number in numbers {
            writer.varint(*number);
        }
        Receipt::decode(&mut Reader::new(writer.as_slice()))
    }

    #[test]
    fn numbers_are_found() {
        let delivered = |number, offset| Delivered { number, offset };
        let open = vec![delivered(5, 70), delivered(11, 0)];
        let receipt = Receipt { lasting: 0, done: vec![2..=4, 8..=8], open };
        let done: Vec<u64> = (0..=12).filter(|number| receipt.is_done(*number)).collect();
        assert_eq!(done, [2, 3, 4, 8]);
        assert_eq!([5, 11, 6].map(|number| receipt.delivered(number)), [Some(70), Some(0), None]);
        assert_eq!((receipt.highest(), Receipt::default().highest()), (11, 0));
        assert_eq!(decode(&[0, 2, 1, 2, 2, 0, 2, 4, 70, 5, 0]), Ok(receipt));
    }

    #[test]
    fn ranges_end() {
        assert!(decode(&[0, 1, VARINT_MAX, 0, 0]).is_err(), "it begins beyond all numbers");
        assert!(decode(&[0, 1, VARINT_MAX - 1, 1, 0]).is_err(), "it ends there");
        assert!(decode(&[0, 2, VARINT_MAX - 1, 0, 0, 0, 0]).is_err(), "there is no room after the first");
        assert!(decode(&[0, 1, VARINT_MAX - 1, 0, 0]).is_ok());
        assert!(decode(&[0, 0, 2, VARINT_MAX - 1, 0, 0, 0]).is_err());
        let many = |count: u64| [vec![0, count], vec![0; 2 * count as usize + 1]].concat();
        assert!(decode(&many(MAX_RANGES as u64)).is_ok());
        assert!(decode(&many(MAX_RANGES as u64 + 1)).is_err());
        assert!(decode(&[0, 4000, 1, 1]).is_err(), "more announced than there is");
    }
}
