//! Texts in Huffman's code (RFC 7541 §5.2 and Appendix B), read only: what this side writes is plain.
//!
//! The code is canonical: of two codes of the same length that of the symbol which stands first in [`SYMBOLS`] is
//! smaller, and shorter codes are smaller than longer ones. So the lengths are the whole code.

/// What the bytes stand for, or nothing when that is more than `limit` bytes or they are not in the code.
pub(crate) fn decode(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity((bytes.len() * 8 / 5).min(limit));
    let mut input = bytes.iter();
    // Bits that have not been looked at, at the upper end.
    let (mut bits, mut count) = (0_u64, 0);
    loop {
        while count <= 56
            && let Some(byte) = input.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        let Some((symbol, length)) = first(bits, count) else { break };
        // What is no byte is the end-of-string symbol, which must not be there.
        text.push(u8::try_from(symbol).ok()?);
        if text.len() > limit {
            return None;
        }
        bits <<= length;
        count -= length;
    }
    // RFC 7541 §5.2: the padding has fewer than 8 bits, all of them 1.
    let padding = u64::MAX.checked_shl(64 - count).unwrap_or(0);
    (count < 8 && bits == padding).then_some(text)
}

/// The first symbol of `count` bits at the upper end, and how many bits it takes.
fn first(bits: u64, count: u32) -> Option<(u16, u32)> {
    let (mut start, mut code) = (0, 0_u64);
    for (length, symbols) in LENGTHS {
        // Halved, as the last code's end is 2^64.
        let next = code + (u64::from(symbols) << (63 - length));
        if bits >> 1 < next {
            let index = start + (((bits >> 1) - code) >> (63 - length)) as usize;
            return (length <= count).then(|| (SYMBOLS[index], length));
        }
        code = next;
        start += symbols as usize;
    }
    None
}

/// Lengths of codes in bits, and how many symbols have such.
const LENGTHS: [(u32, u32); 21] = [
    (5, 10),
    (6, 26),
    (7, 32),
    (8, 6),
    (10, 5),
    (11, 3),
    (12, 2),
    (13, 6),
    (14, 2),
    (15, 3),
    (19, 3),
    (20, 8),
    (21, 13),
    (22, 26),
    (23, 29),
    (24, 12),
    (25, 4),
    (26, 15),
    (27, 19),
    (28, 29),
    (30, 4),
];

/// The symbols by the lengths of their codes; 256 is the end of a string.
#[rustfmt::skip]
const SYMBOLS: [u16; 257] = [
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116,
    32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57, 61, 65, 95, 98, 100, 102, 103, 104, 108, 109, 110, 112,
    114, 117,
    58, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106,
    107, 113, 118, 119, 120, 121, 122,
    38, 42, 44, 59, 88, 90,
    33, 34, 40, 41, 63,
    39, 43, 124,
    35, 62,
    0, 36, 64, 91, 93, 126,
    94, 125,
    60, 96, 123,
    92, 195, 208,
    128, 130, 131, 162, 184, 194, 224, 226,
    153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230,
    129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189,
    190, 196, 198, 228, 232, 233,
    1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175,
    180, 182, 183, 188, 191, 197, 231, 239,
    9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237,
    199, 207, 234, 235,
    192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255,
    203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254,
    2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127,
    220, 249,
    10, 13, 22, 256,
];
