//! Chunks from a peer that means harm: refused or bounded, never a panic, never a pixel elsewhere.

use proptest::prelude::*;
use wayferry_pixels::{
    Compression, Content, Decoder, Encoder, Error, Format, MAX_CHUNK, MAX_CHUNK_PIXELS, Rect, Region, Size,
};

fn content(width: u32, height: u32) -> Content {
    let mut content = Content::new(Size::new(width, height).unwrap(), Format::Xrgb8888);
    content.fill(&[1, 2, 3, 4]);
    content
}

/// Applies a chunk and checks that nothing but the region returned has changed.
fn check(decoder: &mut Decoder, before: &Content, chunk: &[u8]) -> Result<(), Error> {
    let mut after = before.clone();
    let result = decoder.apply(&mut after, chunk);
    let painted = result.clone().unwrap_or_default();
    assert!(painted.rects().iter().all(|rect| before.size().rect().contains(*rect)));
    for y in 0..before.size().height() {
        for x in 0..before.size().width() {
            let same = before.row(y, x, 1) == after.row(y, x, 1);
            assert!(same || painted.intersects(Rect::new(x, y, 1, 1)), "{x},{y} changed");
        }
    }
    result.map(drop)
}

proptest! {
    #[test]
    fn noise_is_harmless(chunk in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = check(&mut Decoder::new(), &content(40, 30), &chunk);
    }

    #[test]
    fn nearly_right_headers_are_harmless(
        codec in 0..4u8, count in 0..3u8, fields in prop::collection::vec(0..30u8, 0..12),
        payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let chunk = [vec![codec, count], fields, payload].concat();
        let _ = check(&mut Decoder::new(), &content(40, 30), &chunk);
    }

    #[test]
    fn damaged_chunks_are_harmless(
        lz4: bool, at: prop::sample::Index, value: u8, cut: prop::sample::Index,
    ) {
        let source = content(40, 30);
        let compression = if lz4 { Compression::Lz4 } else { Compression::Zstd(1) };
        let mut region = Region::from(Rect::new(3, 4, 20, 9));
        region.add(Rect::new(30, 20, 7, 10));
        let mut chunk = Encoder::new(compression).encode(&source, &region).remove(0);
        let mut decoder = Decoder::new();
        check(&mut decoder, &content(40, 30), &chunk).unwrap();
        check(&mut decoder, &content(40, 30), &chunk[..cut.index(chunk.len())]).unwrap_err();
        let at = at.index(chunk.len());
        chunk[at] = value;
        let _ = check(&mut decoder, &content(40, 30), &chunk);
    }
}

#[test]
fn each_fault_is_named() {
    let mut decoder = Decoder::new();
    let target = content(40, 30);
    let mut refused = |chunk: &[u8]| check(&mut decoder, &target, chunk).unwrap_err();
    let pixel = [0, 0, 0, 0, 0, 0];
    assert_eq!(refused(&[]), Error::ChunkTruncated);
    assert_eq!(refused(&[0, 0, 0, 0, 0]), Error::ChunkTruncated);
    assert_eq!(refused(&[3, 0, 0, 0, 0, 0]), Error::ChunkCodec { code: 3 });
    assert_eq!(refused(&[0, 0, 0x80, 0, 0, 0]), Error::ChunkField);
    assert_eq!(refused(&[0, 0x41, 0]), Error::ChunkRects { count: 257 });
    assert_eq!(refused(&vec![0; MAX_CHUNK + 1]), Error::ChunkTooLong { length: MAX_CHUNK + 1 });
    assert_eq!(
        refused(&[0, 0, 39, 0, 1, 0]),
        Error::ChunkOutside { rect: Rect::new(39, 0, 2, 1), size: target.size() }
    );
    assert_eq!(refused(&pixel), Error::ChunkPayload { expected: 4, got: Some(0) });
    assert_eq!(refused(&[&pixel[..], &[9; 5]].concat()), Error::ChunkPayload { expected: 4, got: Some(5) });
    assert_eq!(refused(&[2, 0, 0, 0, 0, 0, 1, 2, 3]), Error::ChunkPayload { expected: 4, got: None });
    assert_eq!(check(&mut decoder, &target, &[&pixel[..], &[9; 4]].concat()), Ok(()));
}

/// A chunk says that the same large area comes 256 times.
#[test]
fn the_decompressed_size_is_bounded() {
    let mut target = content(256, 256);
    let mut chunk = vec![2, 0x40, 255];
    chunk.extend([0, 0, 0x40, 255, 0x40, 255].repeat(256));
    let refused = Decoder::new().apply(&mut target, &chunk).unwrap_err();
    assert_eq!(refused, Error::ChunkPixels { bytes: 2 * MAX_CHUNK_PIXELS });
}

/// A frame that is valid but gives more than the rectangles need.
#[test]
fn too_many_pixels_are_refused() {
    let large = content(200, 200);
    let chunk = Encoder::new(Compression::Zstd(1)).encode(&large, &Region::full(large.size())).remove(0);
    assert_eq!(chunk[0], 2);
    let payload = chunk.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    let short = [&[2, 0, 0, 0, 0, 0], &chunk[payload..]].concat();
    let refused = check(&mut Decoder::new(), &content(40, 30), &short).unwrap_err();
    assert_eq!(refused, Error::ChunkPayload { expected: 4, got: None });
}
