//! Repair rows from a block's source.
//!
//! It keeps nothing between calls: a later row is made from the source alone, no matter what rows were made before.

use std::borrow::Cow;
use std::ops::Range;

use crate::field;
use crate::kernel;
use crate::layout::Layout;

/// Repair rows `rows` (0 = plain exclusive or) of a block whose bytes are the concatenation of `source`.
///
/// Each has [`Layout::row`] bytes. Rows that the code has no room for ([`Layout::max_repair`]) are left out. Source
/// bytes past the block's end are not read, and those that are missing before it count as 0.
pub fn encode(layout: Layout, source: &[&[u8]], rows: Range<u8>) -> Vec<Vec<u8>> {
    let rows = rows.start..rows.end.min(layout.max_repair() as u8);
    let sources = whole_rows(layout, source);
    let sources: Vec<&[u8]> = sources.iter().map(|row| &**row).collect();
    let coefficients: Vec<u8> = rows
        .clone()
        .flat_map(|row| (0..sources.len()).map(move |column| field::coefficient(row, column)))
        .collect();
    let mut repair: Vec<Vec<u8>> = rows.map(|_| vec![0; layout.row()]).collect();
    let mut outputs: Vec<&mut [u8]> = repair.iter_mut().map(|row| &mut row[..]).collect();
    kernel::combine(&sources, &coefficients, &mut outputs);
    repair
}

/// The block's rows, each of full length; only those that cross from piece to piece or end early are copied.
fn whole_rows<'a>(layout: Layout, source: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    let mut pieces = source.iter().copied();
    let mut piece: &[u8] = &[];
    let mut rows = Vec::with_capacity(layout.rows());
    for row in 0..layout.rows() {
        let wanted = layout.range(row).len();
        while piece.is_empty() {
            let Some(next) = pieces.next() else { break };
            piece = next;
        }
        if wanted == layout.row() && piece.len() >= wanted {
            rows.push(Cow::Borrowed(&piece[..wanted]));
            piece = &piece[wanted..];
            continue;
        }
        let mut whole = Vec::with_capacity(layout.row());
        while whole.len() < wanted {
            if piece.is_empty() {
                let Some(next) = pieces.next() else { break };
                piece = next;
            }
            let (taken, rest) = piece.split_at(piece.len().min(wanted - whole.len()));
            whole.extend_from_slice(taken);
            piece = rest;
        }
        whole.resize(layout.row(), 0);
        rows.push(Cow::Owned(whole));
    }
    rows
}
