//! The kernel that runs everywhere: two look-ups of four bits for each byte.

use crate::field::NIBBLES;

/// See [`Kernel`](super::Kernel).
pub(super) fn group(sources: &[&[u8]], coefficients: &[u8], outputs: &mut [&mut [u8]]) {
    for (row, output) in coefficients.chunks(sources.len()).zip(outputs) {
        output.fill(0);
        for (source, &coefficient) in sources.iter().zip(row) {
            let (low, high) = NIBBLES[usize::from(coefficient)].split_at(16);
            for (byte, &other) in output.iter_mut().zip(*source) {
                *byte ^= low[usize::from(other & 0xF)] ^ high[usize::from(other >> 4)];
            }
        }
    }
}
