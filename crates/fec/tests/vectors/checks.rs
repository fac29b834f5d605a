//! Repair rows that are the same on every machine, and blocks found again from them.

use wayferry_fec::{Decoder, Layout, encode};

/// Names, and what is checked.
pub(crate) const CHECKS: &[(&str, fn())] = &[
    ("the known answer", known_answer),
    ("rows have the digests that were written down", digests),
    ("lost rows are found again", found_again),
];

/// Computed by hand-written arithmetic outside this crate.
fn known_answer() {
    let block: Vec<u8> = (1..=11).collect();
    let layout = Layout::new(block.len(), 4).expect("a layout");
    let repair = encode(layout, &[&block], 0..4);
    let known = [
        [0x0D, 0x0E, 0x0F, 0x0C],
        [0xDF, 0x77, 0xE6, 0xF3],
        [0x69, 0xE6, 0x6A, 0xB8],
        [0x56, 0xAD, 0x0D, 0x4C],
    ];
    assert_eq!(repair, known);
}

/// Lengths that fill vectors of bytes, and lengths that do not.
fn digests() {
    for (length, row, digest) in DIGESTS {
        let block = bytes(length);
        let layout = Layout::new(length, row).expect("a layout");
        let rows = encode(layout, &[&block], 0..5).concat();
        assert_eq!(fnv(&rows), digest, "{length} in rows of {row}");
    }
}

fn found_again() {
    for (length, row) in [(9, 9), (5000, 1424), (20_000, 333), (100_003, 1400)] {
        let block = bytes(length);
        let layout = Layout::new(length, row).expect("a layout");
        let lost = layout.rows().min(3);
        let mut decoder = Decoder::new(layout);
        decoder.source((lost * row).min(length), &block[(lost * row).min(length)..]).expect("source");
        for (index, repair) in (1..).zip(encode(layout, &[&block], 1..lost as u8 + 1)) {
            decoder.repair(index, 0, &repair).expect("repair");
        }
        let found: Vec<u8> = decoder.recover().into_iter().flat_map(|(_, bytes)| bytes.to_vec()).collect();
        assert!(found == block[..(lost * row).min(length)], "{length} in rows of {row}");
    }
}

/// Bytes that look random and are always the same.
fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| step()).collect()
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Length, length of a row, and digest of the first five repair rows; computed outside this crate, by shifts and
/// additions.
const DIGESTS: [(usize, usize, u64); 6] = [
    (1, 1, 0x4d82_3720_8252_047a),
    (63, 16, 0x9042_d47d_a0d5_0a62),
    (1000, 17, 0x4768_a0bc_4ccb_e975),
    (5000, 1424, 0xd10d_bdbe_b487_3535),
    (100_000, 1400, 0x139e_4465_bc33_f29f),
    (249 * 65, 65, 0x49dc_ce8e_6965_b2a4),
];
