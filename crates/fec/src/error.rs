//! What can be wrong with a layout or with bytes for a decoder.

use std::fmt;

use crate::decode::MAX_RUNS;
use crate::layout::MAX_ROWS;

/// A refused layout or piece of a block.
///
/// What names them came from the peer, so every variant is the peer's fault, unless a caller computed it wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A block is empty, has rows of nothing, or has more than [`MAX_ROWS`] of them.
    Layout {
        /// The block's length given, in bytes.
        length: usize,
        /// The length of a row given, in bytes.
        row: usize,
    },
    /// A piece reaches past the end of the block or of the repair row.
    PastEnd {
        /// Where the piece begins, in bytes.
        offset: usize,
        /// How many bytes it has.
        length: usize,
        /// Where the block or row ends, in bytes.
        end: usize,
    },
    /// A repair row has a number that the code has no room for.
    NoSuchRow {
        /// The row's number.
        row: u8,
        /// How many repair rows the block can have.
        limit: usize,
    },
    /// What is known of a block would fall into more than [`MAX_RUNS`] separate runs of bytes.
    TooManyRuns,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Layout { length, row } => {
                write!(f, "{length} bytes in rows of {row} are not 1 to {MAX_ROWS} rows")
            }
            Self::PastEnd { offset, length, end } => {
                write!(f, "{length} bytes at {offset} reach past the end at {end}")
            }
            Self::NoSuchRow { row, limit } => write!(f, "repair row {row} where {limit} are possible"),
            Self::TooManyRuns => write!(f, "block arrives in more than {MAX_RUNS} separate runs of bytes"),
        }
    }
}

impl std::error::Error for Error {}
