//! Chunks that were made once, and what they show.
//!
//! The pictures are made anew from their formulas; the chunks lie beside this file, written by the test `write_anew`.

use wayferry_pixels::{Content, Decoder, Format, Size};

/// Names, and what is checked.
pub(crate) const CHECKS: &[(&str, fn())] = &[
    ("updates show the picture", || updates(&EXACT)),
    ("lossy updates show it nearly", || updates(&LOSSY)),
    ("a chunk that was changed paints nothing", changed_chunks),
];

/// Two updates of a surface: a picture, and the same moved up.
pub(crate) struct Vector {
    /// Of the file.
    pub(crate) name: &'static str,
    pub(crate) format: Format,
    pub(crate) side: u32,
    /// Bytes for the first update, if it is to be lossy.
    pub(crate) lossy: Option<u64>,
    bytes: &'static [u8],
}

macro_rules! vector {
    ($name:literal, $format:ident, $side:literal, $lossy:expr) => {
        Vector {
            name: $name,
            format: Format::$format,
            side: $side,
            lossy: $lossy,
            bytes: include_bytes!(concat!($name, ".bin")),
        }
    };
}

pub(crate) static EXACT: [Vector; 5] = [
    vector!("plain", Rgb565, 50, None),
    vector!("lz4", Xrgb8888, 256, None),
    vector!("lz4_alpha", Argb8888, 131, None),
    vector!("zstd", Argb2101010, 256, None),
    vector!("zstd_long", Abgr8888, 300, None),
];

pub(crate) static LOSSY: [Vector; 2] =
    [vector!("detail", Xrgb8888, 200, Some(20_000)), vector!("preview", Xbgr8888, 200, Some(1000))];

/// The byte at a place of the picture, which has moved up by so many rows.
pub(crate) fn picture(vector: &Vector, moved: u32) -> Vec<u8> {
    let (side, bytes) = (vector.side, vector.format.bytes_per_pixel());
    let byte = |y: u32, at: u32| {
        let (x, channel) = (at / bytes as u32, at % bytes as u32);
        match (x, y) {
            // Many colours that change slowly.
            _ if vector.lossy.is_some() => [x, y, (x + y) / 2, 7][channel as usize] as u8,
            (_, 200..) => 9,
            (..20, 40..60) => (at * 31 + y * 17 + at * y % 13) as u8,
            _ => [0, 7, 255][((x / 5 + y * 60).wrapping_mul(0x9e37_79b1) >> 28) as usize % 3],
        }
    };
    (moved..moved + side).flat_map(|y| (0..side * bytes as u32).map(move |at| byte(y, at))).collect()
}

/// By how many rows it has moved after each update.
pub(crate) const MOVED: [u32; 2] = [0, 30];

fn updates(vectors: &[Vector]) {
    for vector in vectors {
        let (mut content, mut decoder) = (content(vector), Decoder::new());
        for (chunks, moved) in parse(vector.bytes).into_iter().zip(MOVED) {
            decoder.apply(&mut content, &chunks).expect(vector.name);
            let (shown, wanted) = (content.pixels(), picture(vector, moved));
            let worst = shown.iter().zip(&wanted).map(|(one, other)| one.abs_diff(*other)).max();
            let most = if vector.lossy.is_some() { MOST_OFF } else { 0 };
            assert!(worst <= Some(most), "{} is off by {worst:?} after {moved} rows", vector.name);
        }
    }
}

fn changed_chunks() {
    for vector in EXACT.iter().chain(&LOSSY) {
        for chunk in &parse(vector.bytes)[0] {
            let cut = &chunk[..chunk.len() - 1];
            let mut content = content(vector);
            let before = content.clone();
            assert!(Decoder::new().apply(&mut content, [cut]).is_err(), "{}", vector.name);
            assert!(content.pixels() == before.pixels());
        }
    }
}

fn content(vector: &Vector) -> Content {
    Content::new(Size::new(vector.side, vector.side).expect("a size"), vector.format)
}

/// The chunks of each update: their number, then each behind its length.
fn parse(mut bytes: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut take = |count: usize| {
        let (part, rest) = bytes.split_at(count);
        bytes = rest;
        part
    };
    let mut updates = Vec::new();
    for _ in MOVED {
        let [count] = *take(1) else { unreachable!("one byte was taken") };
        let chunk = |_| {
            let length = u32::from_le_bytes(take(4).try_into().expect("four bytes"));
            take(length as usize)
        };
        updates.push((0..count).map(chunk).collect());
    }
    updates
}

/// What a lossy picture, or the place between two pixels of a preview, may be off by.
const MOST_OFF: u8 = 24;
