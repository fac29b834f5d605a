//! How the bytes of a protected block are laid out in rows.

use std::ops::Range;

use crate::error::Error;

/// How a protected block is laid out: `length` bytes in rows of `row` bytes.
///
/// The last row may be shorter: its missing bytes count as 0 and are never sent. A block that is shorter than a row is
/// one row of its own length, so its repair is as short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    length: usize,
    row: usize,
}

impl Layout {
    /// Lays out `length` bytes in rows of `row` bytes, or of `length` if that is less.
    ///
    /// # Errors
    /// [`Error::Layout`] if either is 0 or there would be more than [`MAX_ROWS`] rows.
    pub fn new(length: usize, row: usize) -> Result<Self, Error> {
        if length == 0 || row == 0 || length.div_ceil(row) > MAX_ROWS {
            return Err(Error::Layout { length, row });
        }
        Ok(Self { length, row: row.min(length) })
    }

    /// Bytes in the block.
    pub fn length(self) -> usize {
        self.length
    }

    /// Bytes in a row, repair rows included; only the last source row may have fewer.
    pub fn row(self) -> usize {
        self.row
    }

    /// Source rows: k, from 1 to [`MAX_ROWS`].
    pub fn rows(self) -> usize {
        self.length.div_ceil(self.row)
    }

    /// How many repair rows the code has for this block: 255 − k.
    pub fn max_repair(self) -> usize {
        MAX_ROWS + 1 - self.rows()
    }

    /// Where in the block source row `row` lies.
    pub(crate) fn range(self, row: usize) -> Range<usize> {
        let start = row * self.row;
        start..(start + self.row).min(self.length)
    }
}

/// The most source rows a block can have; one repair row is then possible.
pub const MAX_ROWS: usize = 254;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_with_the_short_one() {
        let layout = Layout::new(2401, 1200).unwrap();
        assert_eq!((layout.rows(), layout.row(), layout.max_repair()), (3, 1200, 252));
        assert_eq!((layout.range(0), layout.range(2)), (0..1200, 2400..2401));
    }

    #[test]
    fn a_block_shorter_than_a_row_is_its_own_row() {
        let layout = Layout::new(7, 1200).unwrap();
        assert_eq!((layout.rows(), layout.row(), layout.max_repair()), (1, 7, 254));
    }

    #[test]
    fn limits() {
        assert_eq!(Layout::new(254 * 3, 3).unwrap().max_repair(), 1);
        for (length, row) in [(0, 1), (1, 0), (254 * 3 + 1, 3), (usize::MAX, 1)] {
            assert_eq!(Layout::new(length, row), Err(Error::Layout { length, row }));
        }
    }
}
