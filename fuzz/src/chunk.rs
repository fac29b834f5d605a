//! Pixels from the peer.
//!
//! Input: width − 1, height − 1, format, then the chunks of an update, each behind its length in two bytes; what is
//! left over is one more.

use wayferry_pixels::video;
use wayferry_pixels::{Content, Decoder, Error, Format, MAX_CHUNK_BODY, MAX_CHUNK_RECTS, Region, Size};

use crate::Input;

/// Frames of videos lie inside the surface and apart, no matter what is in them. An update that is refused changes
/// nothing, and is refused in any order of its chunks; one that is applied changes only what it says.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (width, height) = (u32::from(input.u8()) + 1, u32::from(input.u8()) + 1);
    let size = Size::new(width, height).expect("1 to 256 is a size");
    let format = Format::ALL[usize::from(input.u8()) % Format::ALL.len()];
    let mut before = Content::new(size, format);
    before.fill(&[0xA5; 4][..format.bytes_per_pixel()]);
    let all = chunks(input.0);
    let mut chunks = all.clone();
    if let Ok((frames, others)) = video::split(&all, size) {
        let rects: Vec<_> = frames.iter().map(|frame| frame.video.rect).collect();
        assert!(rects.iter().all(|rect| size.rect().contains(*rect)), "a video outside");
        let apart = |index: usize| rects[index + 1..].iter().all(|other| !rects[index].intersects(*other));
        assert!((0..rects.len()).all(apart), "videos in each other's way");
        let mut again = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut again));
        assert_eq!(video::split(&again, size), Ok((frames, Vec::new())), "not as they were");
        chunks = others.into_iter().copied().collect();
    }
    let bodies = chunks.len() as u64 * MAX_CHUNK_BODY as u64;
    let effort: u64 = chunks.iter().map(|chunk| Decoder::effort(size, chunk)).sum();
    let most = 4 * MAX_CHUNK_RECTS as u64 * (size.rect().area() + (1 << 14));
    assert!(effort <= bodies + chunks.len() as u64 * most, "more than can be listed");
    let (content, result) = apply(&before, &chunks);
    chunks.reverse();
    let (_, reversed) = apply(&before, &chunks);
    assert_eq!(result.is_ok(), reversed.is_ok(), "the order decides");
    let Ok(region) = result else {
        return assert!(content.pixels() == before.pixels(), "refused, and yet painted");
    };
    for y in 0..height {
        for x in 0..width {
            let inside = region
                .rects()
                .iter()
                .any(|rect| (rect.x..rect.right()).contains(&x) && (rect.y..rect.bottom()).contains(&y));
            assert!(inside || content.row(y, x, 1) == before.row(y, x, 1), "painted outside of the region");
        }
    }
}

fn apply(before: &Content, chunks: &[&[u8]]) -> (Content, Result<Region, Error>) {
    let mut content = before.clone();
    let result = Decoder::new().apply(&mut content, chunks);
    (content, result)
}

fn chunks(mut data: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length));
        let (chunk, behind) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk);
        data = behind;
    }
    chunks
}
