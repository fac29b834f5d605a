//! Chunks from a peer that means harm: refused or bounded, never a panic, never a pixel elsewhere.

use proptest::prelude::*;
use wayferry_pixels::{
    Compression, Content, Decoder, Draft, Encoder, Error, Format, Layout, MAX_CHUNK, MAX_CHUNK_BODY, Rect,
    Region, Size,
};

fn content(width: u32, height: u32) -> Content {
    let mut content = Content::new(Size::new(width, height).unwrap(), Format::Xrgb8888);
    content.fill(&[1, 2, 3, 4]);
    content
}

/// Applies an update and checks that nothing but the region returned has changed.
fn check<C: AsRef<[u8]>>(before: &Content, chunks: &[C]) -> Result<(), Error> {
    let mut after = before.clone();
    // Of what is no chunk, too.
    for chunk in chunks {
        let _ = Decoder::effort(before.size(), chunk.as_ref());
    }
    let result = Decoder::new().apply(&mut after, chunks);
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

/// An update with every kind of part, as one chunk: text, a picture, a solid rectangle, and copies.
fn update(format: Format, compression: Compression) -> (Content, Vec<u8>) {
    let size = Size::new(200, 320).unwrap();
    let pixel = format.bytes_per_pixel();
    let mut draft = Draft::new(size, format);
    let mut encoder = Encoder::new(compression);
    let mut picture: Vec<u8> = (0..200 * 320 * pixel).map(noise).collect();
    let layout = Layout::new(0, 200 * pixel as u64, size, format).unwrap();
    let absorb = |draft: &mut Draft, picture: &[u8]| {
        let read = |offset: u64, target: &mut [u8]| {
            target.copy_from_slice(&picture[offset as usize..][..target.len()]);
            Ok::<(), std::convert::Infallible>(())
        };
        draft.absorb(&layout, &Region::full(size), read).unwrap();
    };
    absorb(&mut draft, &picture);
    encoder.encode(&mut draft);
    let before = draft.content().clone();
    picture.drain(..200 * 40 * pixel);
    picture.extend((0..200 * 20 * pixel).map(|index| [0, 9, 9, 40][index / pixel % 4]));
    picture.extend((0..200 * 10 * pixel).map(|index| noise(index * 3)));
    picture.extend([7].repeat(200 * 10 * pixel));
    absorb(&mut draft, &picture);
    let mut chunks = encoder.encode(&mut draft);
    assert_eq!(chunks.len(), 1);
    (before, chunks.remove(0))
}

fn noise(index: usize) -> u8 {
    ((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29).wrapping_mul(0xbf58_476d) as u8
}

/// A chunk with this body, not compressed.
fn plain(body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let length = (body.len() as u32 | 0x8000_0000).to_be_bytes();
    [&[0], &length[..], &body].concat()
}

proptest! {
    #[test]
    fn noise_is_harmless(chunk in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = check(&content(40, 30), &[chunk]);
    }

    #[test]
    fn nearly_right_bodies_are_harmless(
        copies in prop::collection::vec(prop::collection::vec(0..30u8, 6), 0..3),
        rects in prop::collection::vec((0..6u8, prop::collection::vec(0..9u8, 4)), 0..4),
        rest in prop::collection::vec(0..4u8, 0..600),
    ) {
        let rects: Vec<Vec<u8>> = rects.into_iter().map(|(class, rect)| [vec![class], rect].concat()).collect();
        let body = [&[copies.len() as u8], &copies.concat()[..], &[rects.len() as u8], &rects.concat(), &rest];
        // what is left over or missing is found by trying
        for length in 0..rest.len() {
            let body = body.concat();
            let _ = check(&content(40, 30), &[plain(&[&body[..body.len() - length]])]);
            if length > 3 && rest.len() > 60 { break }
        }
    }

    #[test]
    fn damaged_chunks_are_harmless(
        format in 0..Format::ALL.len(), compression in 0..3usize, at: prop::sample::Index, value: u8,
        cut: prop::sample::Index,
    ) {
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][compression];
        let (before, mut chunk) = update(Format::ALL[format], compression);
        prop_assert_eq!(check(&before, &[&chunk]), Ok(()));
        prop_assert!(check(&before, &[&chunk[..cut.index(chunk.len())]]).is_err());
        let at = at.index(chunk.len());
        chunk[at] = value;
        let _ = check(&before, &[&chunk]);
    }
}

#[test]
fn few_bytes_that_take_long_to_open_are_known_before() {
    let size = Size::new(800, 600).unwrap();
    let picture = |class| [0, 1, class, 0, 0, 0x43, 0x1f, 0x42, 0x57, 255, 1, 1];
    let effort = |body: &[u8]| Decoder::effort(size, &plain(&[body]));
    let pixels = u64::from(size.width() * size.height());
    assert!((4 * pixels..5 * pixels).contains(&effort(&picture(5))));
    assert!((pixels / 4..pixels / 2).contains(&effort(&picture(6))), "a quarter of each side");
    assert_eq!(effort(&picture(5)[..8]), 8, "cut off");
    assert_eq!(effort(&picture(0)), 12, "one colour");
    assert_eq!(Decoder::effort(size, &[2, 0x80, 7, 0, 0]), 458_752, "compressed: its body");
}

#[test]
fn each_fault_is_named() {
    let target = content(40, 30);
    let refused = |chunk: &[u8]| check(&target, &[chunk]).unwrap_err();
    let body = |body: &[u8]| refused(&plain(&[body]));
    assert_eq!(refused(&[]), Error::ChunkTruncated);
    assert_eq!(refused(&[0, 0x80, 0]), Error::ChunkTruncated);
    assert_eq!(refused(&[3, 0]), Error::ChunkCodec { code: 3 });
    assert_eq!(refused(&[0, 0xc0, 0, 0, 0]), Error::ChunkField);
    assert_eq!(refused(&vec![0; MAX_CHUNK + 1]), Error::ChunkTooLong { length: MAX_CHUNK + 1 });
    assert_eq!(refused(&[2, 0x80, 8, 0, 1]), Error::ChunkBody { length: MAX_CHUNK_BODY + 1 });
    assert_eq!(refused(&[0, 2, 0]), Error::ChunkPayload { expected: 2, got: Some(1) });
    assert_eq!(refused(&[2, 4, 1, 2, 3]), Error::ChunkPayload { expected: 4, got: None });
    assert_eq!(refused(&[1, 4, 0xf0]), Error::ChunkPayload { expected: 4, got: None });
    assert_eq!(body(&[0x45, 0]), Error::ChunkCopies { count: 1280 });
    assert_eq!(body(&[0, 0x50, 1]), Error::ChunkRects { count: 4097 });
    assert_eq!(body(&[0, 1, 0, 0x80, 0, 0, 0]), Error::ChunkField);
    let outside = |rect| Error::ChunkOutside { rect, size: target.size() };
    assert_eq!(body(&[0, 1, 0, 39, 0, 1, 0, 9, 9, 9, 9]), outside(Rect::new(39, 0, 2, 1)));
    assert_eq!(body(&[1, 0, 0, 1, 0, 2, 30, 0]), outside(Rect::new(2, 30, 2, 1)));
    assert_eq!(body(&[0, 1, 0, 0, 0, 0, 0, 9, 9, 9]), Error::ChunkTruncated);
    assert_eq!(body(&[0, 1, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9]), Error::ChunkRest { bytes: 1 });
    assert_eq!(body(&[0, 1, 7, 0, 0, 0, 0, 9, 9, 9, 9]), Error::ChunkField, "no such class");
    let corner = Rect::new(0, 0, 1, 1);
    assert_eq!(body(&[0, 1, 5, 0, 0, 0, 0, 9, 2, 1, 1]), Error::ChunkImage { rect: corner });
    assert_eq!(body(&[0, 1, 6, 0, 0, 0, 0, 9, 2, 1]), Error::ChunkTruncated);
    // Of one pixel each; a block of 16 a side is read of all the same.
    let pictures = [&[0, 0x42, 0][..], &[5, 0, 0, 0, 0].repeat(512), &[0; 2 * 512]].concat();
    assert_eq!(body(&pictures), Error::ChunkImages { pixels: 410 * 1280 });
    assert_eq!(body(&[0, 1, 1, 0, 0, 0, 0, 0]), Error::ChunkField, "no palette before it");
    assert_eq!(body(&[0, 1, 2, 0, 0, 0, 0, 250]), Error::ChunkField, "too many colours");
    let few = [0, 1, 2, 0, 0, 1, 0, 0, 9, 9, 9, 9, 0, 1];
    assert_eq!(body(&few), Error::ChunkNumber { number: 1, count: 1 });
    assert_eq!(check(&target, &[plain(&[&[0, 1, 0, 0, 0, 0, 0, 9, 9, 9, 9]])]), Ok(()));
    let small = Content::new(target.size(), Format::Rgb565);
    assert_eq!(check(&small, &[plain(&[&[0, 1, 4, 0, 0, 0, 0, 1, 2, 3]])]), Err(Error::ChunkField));
    assert_eq!(check(&small, &[plain(&[&[0, 1, 5, 0, 0, 0, 0, 9, 0]])]), Err(Error::ChunkField));
    assert_eq!(check(&small, &[plain(&[&[0, 1, 3, 0, 0, 0, 0, 1, 2, 3]])]), Ok(()));
}

/// An update that paints, or copies, everything over and over.
#[test]
fn the_area_is_bounded() {
    let mut target = content(64, 64);
    let solid = [0, 0, 0, 63, 63];
    let copy = [0, 0, 63, 63, 0, 0];
    let twice = Error::UpdateArea { pixels: 2 * 64 * 64, size: target.size() };
    let paints = plain(&[&[0, 2], &solid, &solid, &[1, 2, 3, 4], &[5, 6, 7, 8]]);
    assert_eq!(check(&target, &[paints]), Err(twice));
    assert_eq!(check(&target, &[plain(&[&[2], &copy, &copy, &[0]])]), Err(twice));
    let once = plain(&[&[1], &copy, &[1], &solid, &[1, 2, 3, 4]]);
    assert_eq!(check(&target, &[&once, &once]), Err(twice));
    assert!(Decoder::new().apply(&mut target, [&once]).is_ok());
}

/// Chunks that take memory without painting anything to speak of.
#[test]
fn the_memory_is_bounded() {
    let mut target = content(40, 30);
    let palette = [&[249][..], &[0; 1000]].concat();
    let count = 500u16;
    let rects = [2, 0, 0, 0, 0].repeat(usize::from(count));
    let colours = palette.repeat(usize::from(count));
    let head = (count | 0x4000).to_be_bytes();
    let body = [&[0][..], &head, &rects, &colours, &[0; 500]].concat();
    let length = (body.len() as u32 | 0x8000_0000).to_be_bytes();
    let packed = zstd_safe::CCtx::create();
    let chunk = {
        let mut packed = packed;
        let mut out = vec![0; MAX_CHUNK];
        let written = packed.compress(&mut out[..], &body[..], 1).unwrap();
        [&[2], &length[..], &out[..written]].concat()
    };
    assert!(chunk.len() < 10_000);
    let refused = Decoder::new().apply(&mut target, vec![chunk; 1000]).unwrap_err();
    assert!(matches!(refused, Error::UpdateMemory { bytes, most } if bytes < most + (2 << 20)), "{refused}");
}

/// A frame that is valid but gives more than the chunk announces.
#[test]
fn too_many_bytes_are_refused() {
    let (before, mut chunk) = update(Format::Xrgb8888, Compression::Zstd(1));
    assert_eq!(chunk[0], 2);
    let frame = chunk.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    chunk.splice(1..frame, [7]);
    assert_eq!(check(&before, &[&chunk]), Err(Error::ChunkPayload { expected: 7, got: None }));
}

/// Copies take from the content before the update, no matter what overlaps what.
#[test]
fn copies_are_carried_out_at_once() {
    let size = Size::new(40, 30).unwrap();
    let mut target = Content::new(size, Format::Rgb565);
    let pixels: Vec<u8> = (0..size.rect().area() as u32 * 2).map(|index| (index * 37 / 11) as u8).collect();
    let layout = Layout::new(0, 80, size, Format::Rgb565).unwrap();
    let read = |offset: u64, into: &mut [u8]| {
        into.copy_from_slice(&pixels[offset as usize..][..into.len()]);
        Ok::<(), std::convert::Infallible>(())
    };
    target.absorb(&layout, &Region::full(size), read).unwrap();
    let before = target.clone();
    // two halves change places, one of them also moves sideways, and a third one goes over them
    let copies = [[0, 0, 19, 14, 18, 15], [18, 15, 19, 14, 0, 0], [30, 0, 5, 9, 28, 3]];
    let chunks = copies.map(|copy| plain(&[&[1], &copy[..], &[0]]));
    for order in [[0, 1, 2], [2, 0, 1], [1, 0, 2]] {
        let mut target = before.clone();
        Decoder::new().apply(&mut target, order.map(|index| &chunks[index])).unwrap();
        for [x, y, width, height, from_x, from_y] in copies.map(|copy| copy.map(u32::from)) {
            for row in 0..=height {
                let moved = before.row(from_y + row, from_x, width + 1);
                assert_eq!(target.row(y + row, x, width + 1), moved, "row {row}");
            }
        }
    }
}
