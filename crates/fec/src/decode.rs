//! A block's bytes, from what of its source and repair has arrived.
//!
//! Columns in which the same rows are missing are solved together ([`columns`](crate::columns)). Neighbouring segments
//! share their syndromes, computed over the rows at once; then one small inverse for each segment. A column is solved
//! at most once, so the work for a block is bounded, however it arrives.
//!
//! It waits for nothing and asks for nothing. The one invariant: what is marked known is what arrived first, or follows
//! from it.

use std::mem::size_of;
use std::ops::Range;

use crate::columns::{self, Segment};
use crate::error::Error;
use crate::field;
use crate::kernel;
use crate::layout::Layout;
use crate::runs::Runs;

/// Takes pieces of source and repair in any order and finds what is missing.
#[derive(Debug)]
pub struct Decoder {
    layout: Layout,
    /// The block with its last row filled up; bytes that are not known are 0.
    block: Vec<u8>,
    known: Runs,
    /// Ascending by number.
    repair: Vec<Repair>,
    /// Whether anything came since the last attempt.
    changed: bool,
}

/// What is known of one repair row; the rest is 0.
#[derive(Debug)]
struct Repair {
    number: u8,
    bytes: Vec<u8>,
    known: Runs,
}

impl Decoder {
    /// A decoder for one block, of which nothing is known.
    pub fn new(layout: Layout) -> Self {
        let block = vec![0; layout.rows() * layout.row()];
        Self { layout, block, known: Runs::default(), repair: Vec::new(), changed: false }
    }

    /// The block's layout.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Takes source bytes at `offset` of the block; of bytes that come twice the first copy counts.
    ///
    /// # Errors
    /// [`Error::PastEnd`] and [`Error::TooManyRuns`]; nothing is taken then.
    pub fn source(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let range = checked(offset, bytes, self.layout.length())?;
        if self.known.is_apart(&range) && self.runs() >= MAX_RUNS {
            return Err(Error::TooManyRuns);
        }
        let (block, changed) = (&mut self.block, &mut self.changed);
        self.known.insert(range, |fresh| {
            block[fresh.clone()].copy_from_slice(&bytes[fresh.start - offset..fresh.end - offset]);
            *changed = true;
        });
        Ok(())
    }

    /// Takes bytes at `offset` of repair row `row`; of bytes that come twice the first copy counts.
    ///
    /// # Errors
    /// [`Error::NoSuchRow`], [`Error::PastEnd`] and [`Error::TooManyRuns`]; nothing is taken then.
    pub fn repair(&mut self, row: u8, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        let limit = self.layout.max_repair();
        if usize::from(row) >= limit {
            return Err(Error::NoSuchRow { row, limit });
        }
        let range = checked(offset, bytes, self.layout.row())?;
        if range.is_empty() || self.is_complete() {
            return Ok(());
        }
        let full = self.runs() >= MAX_RUNS;
        let place = self.repair.binary_search_by_key(&row, |repair| repair.number);
        let is_apart = place.is_err() || place.is_ok_and(|index| self.repair[index].known.is_apart(&range));
        if full && is_apart {
            return Err(Error::TooManyRuns);
        }
        let index = place.unwrap_or_else(|index| {
            let bytes = vec![0; self.layout.row()];
            self.repair.insert(index, Repair { number: row, bytes, known: Runs::default() });
            index
        });
        let repair = &mut self.repair[index];
        let changed = &mut self.changed;
        repair.known.insert(range, |fresh| {
            repair.bytes[fresh.clone()].copy_from_slice(&bytes[fresh.start - offset..fresh.end - offset]);
            *changed = true;
        });
        Ok(())
    }

    /// Source bytes recovered since the last call, with their offsets: those of every column of which at least k bytes
    /// are known. Ranges are disjoint and ascending; bytes that were received are not among them.
    ///
    /// Cheap when nothing can be recovered. A block in so many runs that [`MAX_RUNS`] is passed is left as it is.
    pub fn recover(&mut self) -> Vec<(usize, Vec<u8>)> {
        if !std::mem::take(&mut self.changed) || self.repair.is_empty() || self.is_complete() {
            return Vec::new();
        }
        let repair: Vec<&Runs> = self.repair.iter().map(|repair| &repair.known).collect();
        let segments = columns::solvable(self.layout, &self.known, &repair);
        let mut found = Runs::default();
        for span in segments.chunk_by(|left, right| left.columns.end == right.columns.start) {
            if self.runs() + found.count() > MAX_RUNS {
                break;
            }
            self.solve(span, &mut found);
        }
        for range in found.iter() {
            self.known.insert(range.clone(), |_| ());
        }
        if self.is_complete() {
            self.repair = Vec::new();
        }
        found.iter().map(|range| (range.start, self.block[range.clone()].to_vec())).collect()
    }

    /// Fills in the missing bytes of neighbouring segments, and adds where they are to `found`.
    fn solve(&mut self, span: &[Segment], found: &mut Runs) {
        let syndromes = Syndromes::new(self, span);
        for segment in span {
            let window = syndromes.window(segment);
            let skipped = segment.columns.start - window.start;
            let missing = syndromes.solve(self, segment);
            for (&row, bytes) in segment.erased.iter().zip(missing.chunks(window.len())) {
                let start = row * self.layout.row() + segment.columns.start;
                let range = start..start + segment.columns.len();
                self.block[range.clone()].copy_from_slice(&bytes[skipped..][..segment.columns.len()]);
                found.insert(range, |_| ());
            }
        }
    }

    /// Whether all source bytes are known, received or recovered.
    pub fn is_complete(&self) -> bool {
        self.known.is_full(self.layout.length())
    }

    /// The block's bytes, once it is complete.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.is_complete().then(|| &self.block[..self.layout.length()])
    }

    /// Memory held, in bytes: about (k + repair rows seen) · row.
    pub fn cost(&self) -> usize {
        let repair: usize = self.repair.iter().map(|repair| repair.bytes.len() + size_of::<Repair>()).sum();
        size_of::<Self>() + self.block.len() + repair + self.runs() * size_of::<Range<usize>>()
    }

    /// Runs of known bytes, in source and repair together.
    fn runs(&self) -> usize {
        self.known.count() + self.repair.iter().map(|repair| repair.known.count()).sum::<usize>()
    }
}

/// What the known source bytes leave of the repair rows, for the columns of one span: the share of the missing ones.
struct Syndromes {
    /// The first column.
    start: usize,
    /// Which repair rows, as indices into the decoder's; ascending.
    repair: Vec<usize>,
    /// From one row to the next: the span's columns, filled up to a multiple of [`ALIGNMENT`].
    stride: usize,
    bytes: Vec<u8>,
}

impl Syndromes {
    fn new(decoder: &Decoder, span: &[Segment]) -> Self {
        let (Some(first), Some(last)) = (span.first(), span.last()) else {
            return Self { start: 0, repair: Vec::new(), stride: ALIGNMENT, bytes: Vec::new() };
        };
        let columns = first.columns.start..last.columns.end;
        let mut repair: Vec<usize> = span.iter().flat_map(|segment| segment.repair.iter().copied()).collect();
        repair.sort_unstable();
        repair.dedup();
        let stride = columns.len().next_multiple_of(ALIGNMENT);
        let mut bytes = vec![0; repair.len() * stride];
        let mut rows: Vec<&mut [u8]> =
            bytes.chunks_mut(stride).map(|row| &mut row[..columns.len()]).collect();
        let sources: Vec<&[u8]> =
            decoder.block.chunks(decoder.layout.row()).map(|row| &row[columns.clone()]).collect();
        let coefficients: Vec<u8> = repair
            .iter()
            .map(|&index| decoder.repair[index].number)
            .flat_map(|number| (0..sources.len()).map(move |row| field::coefficient(number, row)))
            .collect();
        kernel::combine(&sources, &coefficients, &mut rows);
        for (row, &index) in rows.iter_mut().zip(&repair) {
            for (byte, &other) in row.iter_mut().zip(&decoder.repair[index].bytes[columns.clone()]) {
                *byte ^= other;
            }
        }
        Self { start: columns.start, repair, stride, bytes }
    }

    /// The columns that are solved for a segment: more than it has, so that kernels see no scraps.
    fn window(&self, segment: &Segment) -> Range<usize> {
        let width = segment.columns.len().next_multiple_of(ALIGNMENT);
        let start = segment.columns.start.min(self.start + self.stride - width);
        start..start + width
    }

    /// The missing bytes of one segment for all columns of its window, row by row in the order of its erased rows.
    fn solve(&self, decoder: &Decoder, segment: &Segment) -> Vec<u8> {
        let window = self.window(segment);
        let place = |index: &usize| self.repair.binary_search(index).map_or(0, |row| row * self.stride);
        let first = window.start - self.start;
        let sources: Vec<&[u8]> =
            segment.repair.iter().map(|index| &self.bytes[place(index) + first..][..window.len()]).collect();
        let numbers: Vec<u8> = segment.repair.iter().map(|&index| decoder.repair[index].number).collect();
        let inverse = field::inverse(&numbers, &segment.erased);
        let mut missing = vec![0; segment.erased.len() * window.len()];
        let mut outputs: Vec<&mut [u8]> = missing.chunks_mut(window.len()).collect();
        kernel::combine(&sources, &inverse, &mut outputs);
        missing
    }
}

/// Where a piece lies, if it ends in time.
fn checked(offset: usize, bytes: &[u8], end: usize) -> Result<Range<usize>, Error> {
    match offset.checked_add(bytes.len()) {
        Some(last) if last <= end => Ok(offset..last),
        _ => Err(Error::PastEnd { offset, length: bytes.len(), end }),
    }
}

/// The most runs that what is known of one block may fall into. A stream in order has as many as packets were lost; noq
/// itself ends a connection over a stream in more pieces than this.
pub const MAX_RUNS: usize = 1024;

/// Syndromes are filled up to a multiple of this many columns: the longest step of a kernel.
const ALIGNMENT: usize = 64;
