//! A block's source and repair from the peer.
//!
//! Input: length − 1 and row − 1 (two bytes each), whether the peer lies, then pieces: a repair row or 255 for source,
//! offset (two bytes), length (one byte).

use wayferry_fec::{Decoder, Layout, encode};

use crate::Input;

/// For any input, memory stays that of the rows seen; and if the input is the truth, all that is recovered is.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (length, row) = (usize::from(input.u16()) + 1, usize::from(input.u16()) + 1);
    let Ok(layout) = Layout::new(length, row) else { return };
    let lies = input.u8() % 2 == 1;
    let block: Vec<u8> = (0..length).map(|at| (at * at / 7) as u8).collect();
    let repair = encode(layout, &[&block], 0..4.min(layout.max_repair() as u8));
    let mut decoder = Decoder::new(layout);
    let mut recovered = vec![false; length];
    for _ in 0..MOST_PIECES {
        if input.is_empty() {
            break;
        }
        feed(&mut decoder, &mut input, &block, &repair, lies);
        for (offset, bytes) in decoder.recover() {
            let range = offset..offset + bytes.len();
            assert!(lies || bytes == block[range.clone()], "recovered other bytes");
            assert!(!recovered[range.clone()].contains(&true), "recovered twice");
            recovered[range].fill(true);
        }
        assert!(
            decoder.cost() <= (layout.rows() + 256) * (layout.row() + 64) + 100_000,
            "takes too much memory"
        );
    }
    assert!(lies || decoder.bytes().is_none_or(|bytes| bytes == block), "complete with other bytes");
}

/// Hands in one piece: cut from the truth, or where that has none, refused as it must be, or a lie.
fn feed(decoder: &mut Decoder, input: &mut Input<'_>, block: &[u8], repair: &[Vec<u8>], lies: bool) {
    let kind = input.u8();
    let (offset, length) = (usize::from(input.u16()), usize::from(input.u8()));
    let truth = if kind == SOURCE { Some(block) } else { repair.get(usize::from(kind)).map(|row| &row[..]) };
    let truth = truth.and_then(|bytes| bytes.get(offset..offset + length));
    let lie = [0x5A; 255];
    let bytes = match truth {
        Some(bytes) if !lies => bytes,
        _ => &lie[..length],
    };
    let exists = kind == SOURCE || usize::from(kind) < repair.len();
    if !lies && truth.is_none() && exists {
        let result =
            if kind == SOURCE { decoder.source(offset, bytes) } else { decoder.repair(kind, offset, bytes) };
        assert!(result.is_err(), "took bytes past the end");
    } else if kind == SOURCE {
        let _ = decoder.source(offset, bytes);
    } else if lies || exists {
        let _ = decoder.repair(kind, offset, bytes);
    }
}

/// What a piece is of if it is not of a repair row.
pub const SOURCE: u8 = 255;

/// An input has no more pieces than this, for the sake of time.
const MOST_PIECES: usize = 256;
