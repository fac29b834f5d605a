//! A block of one stream that is not whole and for which repair rows came.
//!
//! It turns a repair header into a decoder and back into offsets of the stream; it decides nothing about streams.
//! Invariant: what it gives is what the sender wrote, if source and rows are the sender's.

use std::ops::Range;

use bytes::Bytes;
use wayferry_fec::{Decoder, Layout};

use crate::assembler::Assembler;
use crate::{Error, RepairHeader};

/// See the module.
#[derive(Debug)]
pub(crate) struct Rebuild {
    offset: u64,
    layout: Layout,
    decoder: Decoder,
    recovered: bool,
}

impl Rebuild {
    /// The header's block, with what of it came.
    pub(crate) fn new(header: &RepairHeader, assembler: &Assembler) -> Result<Self, Error> {
        let layout = Layout::new(header.length as usize, header.row.into()).map_err(violation)?;
        let mut rebuild =
            Self { offset: header.offset, layout, decoder: Decoder::new(layout), recovered: false };
        for (at, piece) in assembler.pieces(&rebuild.range()) {
            rebuild.source(at, &piece)?;
        }
        Ok(rebuild)
    }

    /// Whether the header's row belongs to it.
    pub(crate) fn fits(&self, header: &RepairHeader) -> bool {
        (self.offset, self.layout.length(), self.layout.row())
            == (header.offset, header.length as usize, header.row.into())
    }

    /// Where in the stream it lies.
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.layout.length() as u64
    }

    /// Takes those of the stream's bytes that belong to it.
    pub(crate) fn source(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let range = self.range();
        let end = offset.saturating_add(bytes.len() as u64).min(range.end);
        let start = offset.max(range.start);
        if start >= end {
            return Ok(());
        }
        let part = &bytes[(start - offset) as usize..(end - offset) as usize];
        self.decoder.source((start - range.start) as usize, part).map_err(violation)
    }

    /// Takes bytes of a repair row.
    pub(crate) fn repair(&mut self, index: u8, at: usize, bytes: &[u8]) -> Result<(), Error> {
        self.decoder.repair(index, at, bytes).map_err(violation)
    }

    /// Ranges of the stream that could be rebuilt since the last call.
    pub(crate) fn recover(&mut self) -> Vec<(u64, Bytes)> {
        let (offset, recovered) = (self.offset, self.decoder.recover());
        self.recovered |= !recovered.is_empty();
        recovered.into_iter().map(|(at, bytes)| (offset + at as u64, bytes.into())).collect()
    }

    /// Whether nothing of it is missing any more.
    pub(crate) fn is_complete(&self) -> bool {
        self.decoder.is_complete()
    }

    /// Whether something had to be rebuilt.
    pub(crate) fn has_recovered(&self) -> bool {
        self.recovered
    }

    /// The memory that it takes.
    pub(crate) fn cost(&self) -> usize {
        self.decoder.cost()
    }
}

/// Drops one row of a block that is whole, rebuilds it from `row`, repair row 0, and compares: a check of sender,
/// receiver and code on real traffic, for debug builds.
pub(crate) fn check(header: &RepairHeader, assembler: &Assembler, row: &[u8]) -> Result<(), Error> {
    let layout = Layout::new(header.length as usize, header.row.into()).map_err(violation)?;
    let block = header.offset..header.offset + u64::from(header.length);
    let dropped = block.start..block.start + layout.row() as u64;
    let mut decoder = Decoder::new(layout);
    for (at, piece) in assembler.pieces(&(dropped.end..block.end)) {
        decoder.source((at - block.start) as usize, &piece).map_err(violation)?;
    }
    decoder.repair(header.index, 0, row).map_err(violation)?;
    let rebuilt: Vec<u8> = decoder.recover().into_iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
    let came: Vec<u8> = assembler.pieces(&dropped).flat_map(|(_, piece)| piece.to_vec()).collect();
    if rebuilt != came {
        let got = format!("a repair row of {header:?} that does not fit its source");
        return Err(Error::Violation { expected: "repair that repairs", got });
    }
    Ok(())
}

fn violation(error: wayferry_fec::Error) -> Error {
    Error::Violation { expected: "a protected block", got: error.to_string() }
}
