//! Frames that no encoder of ours has made, or that came to harm: an error each, and a key frame mends it.

#[allow(dead_code, reason = "other tests use the rest")]
mod video;

use std::time::Duration;

use proptest::prelude::*;
use video::Video;
use wayferry_video::{Decoder, Encoder, Error, Frame, Gate, Kind, Order, Quality, Rate, Size};

const SIDES: (u32, u32) = (72, 40);
const RATE: Rate = Rate { bits_per_second: 1_000_000, interval: Duration::from_millis(33) };

fn size() -> Size {
    Size::new(SIDES.0, SIDES.1).unwrap()
}

/// Frames of a stream of this size; the first, the fourth and so on are key frames.
fn frames(size: Size, count: usize) -> Vec<Frame> {
    let (mut encoder, mut video) =
        (Encoder::new(size, Quality::default()), Video::new(size.width(), size.height()));
    let stride = size.width() as usize * 4;
    let mut encode = |at: usize| {
        let picture = video.next();
        let row = |y: u32| &picture[y as usize * stride..][..stride];
        encoder.encode(Order::Bgrx, row, RATE, at.is_multiple_of(3)).unwrap().unwrap()
    };
    (0..count).map(&mut encode).collect()
}

/// Decodes and gives the picture.
fn pixels(decoder: &mut Decoder, number: u64, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut pixels = Vec::new();
    decoder.decode(number, data)?.rows(Order::Bgrx, 255, |_, row| pixels.extend_from_slice(row));
    Ok(pixels)
}

#[test]
fn a_stream_begins_with_a_key_frame() {
    let frames = frames(size(), 4);
    let mut decoder = Decoder::new(size());
    assert!(decoder.needs_key());
    assert_eq!(decoder.decode(1, &frames[1].data).unwrap_err(), Error::NeedKey);
    assert!(decoder.decode(3, &frames[3].data).is_ok());
    assert!(!decoder.needs_key());
}

#[test]
fn a_gap_needs_a_key_frame() {
    let frames = frames(size(), 7);
    let mut decoder = Decoder::new(size());
    decoder.decode(0, &frames[0].data).unwrap();
    assert_eq!(decoder.decode(2, &frames[2].data).unwrap_err(), Error::NeedKey);
    assert_eq!(decoder.decode(5, &frames[5].data).unwrap_err(), Error::NeedKey);
    decoder.decode(6, &frames[6].data).unwrap();
}

#[test]
fn what_passes_a_gate_is_what_a_decoder_takes() {
    let frames = frames(size(), 7);
    let mut gate = Gate::new(size());
    assert_eq!(gate.pass(&frames[1].data), Err(Error::NeedKey));
    assert_eq!(gate.pass(&frames[0].data), Ok(Kind::Key));
    assert_eq!(gate.pass(&frames[1].data), Ok(Kind::Delta));
    assert_eq!(gate.pass(&[1; 40]), Err(Error::FrameShape));
    assert_eq!(gate.pass(&frames[2].data), Err(Error::NeedKey));
    assert_eq!(gate.pass(&frames[3].data), Ok(Kind::Key));
    assert_eq!(gate.pass(&frames[6].data), Ok(Kind::Key));
    let mut other = Gate::new(Size::new(200, 40).unwrap());
    assert!(matches!(other.pass(&frames[0].data), Err(Error::FrameSize { .. })));
}

#[test]
fn key_frames_may_skip_what_is_missing() {
    let frames = frames(size(), 5);
    let mut decoder = Decoder::new(size());
    decoder.decode(0, &frames[0].data).unwrap();
    decoder.decode(3, &frames[3].data).unwrap();
    decoder.decode(4, &frames[4].data).unwrap();
}

#[test]
fn a_stale_frame_changes_nothing() {
    let frames = frames(size(), 3);
    let mut decoder = Decoder::new(size());
    decoder.decode(0, &frames[0].data).unwrap();
    decoder.decode(1, &frames[1].data).unwrap();
    assert_eq!(decoder.decode(1, &frames[1].data).unwrap_err(), Error::Stale { number: 1, last: 1 });
    assert_eq!(decoder.decode(0, &frames[0].data).unwrap_err(), Error::Stale { number: 0, last: 1 });
    decoder.decode(2, &frames[2].data).unwrap();
}

#[test]
fn numbers_may_end() {
    let frames = frames(size(), 2);
    let mut decoder = Decoder::new(size());
    decoder.decode(u64::MAX, &frames[0].data).unwrap();
    assert!(matches!(decoder.decode(0, &frames[1].data), Err(Error::Stale { .. })));
}

#[test]
fn streams_of_other_sizes_are_refused() {
    for (width, height) in [(72, 64), (128, 40), (3840, 2160)] {
        let other = Size::new(width, height).unwrap();
        let mut encoder = Encoder::new(other, Quality::new(1));
        let black = vec![0; width as usize * 4];
        let frame = encoder.encode(Order::Bgrx, |_| &black, RATE, true).unwrap().unwrap();
        // What it says first is enough; the whole of the largest would be too long.
        let start = &frame.data[..frame.data.len().min(1000)];
        let error = Decoder::new(size()).decode(0, start).unwrap_err();
        assert_eq!(error, Error::FrameSize { across: width.div_ceil(16), down: height.div_ceil(16) });
    }
}

#[test]
fn too_long_frames_are_refused() {
    let mut frame = frames(size(), 1).remove(0);
    frame.data.resize(100_000, 0xff);
    let error = Decoder::new(size()).decode(0, &frame.data).unwrap_err();
    assert!(matches!(error, Error::FrameTooLong { length: 100_000, .. }));
}

#[test]
fn frames_of_other_shapes_are_refused() {
    let frame = frames(size(), 1).remove(0).data;
    let starts: Vec<usize> =
        (0..frame.len() - 3).filter(|&at| frame[at..].starts_with(&[0, 0, 0, 1])).collect();
    let [sequence, picture, slice] = starts[..] else { panic!("three units, not {starts:?}") };
    let (sequence, picture, slice) = (&frame[sequence..picture], &frame[picture..slice], &frame[slice..]);
    let mut high = sequence.to_vec();
    high[5] = 100;
    let mut many_references = sequence.to_vec();
    many_references[8] ^= 0xff;
    let mut subset = sequence.to_vec();
    subset[4] = subset[4] & 0xe0 | 15;
    for (name, parts) in [
        ("nothing", vec![]),
        ("no start", vec![&frame[4..]]),
        ("no sequence", vec![picture, slice]),
        ("no picture parameters", vec![sequence, slice]),
        ("no slice", vec![sequence, picture]),
        ("two slices", vec![sequence, picture, slice, slice]),
        ("wrong order", vec![picture, sequence, slice]),
        ("another profile", vec![&high, picture, slice]),
        ("other references", vec![&many_references, picture, slice]),
        ("a scalable stream", vec![&subset, picture, slice]),
        ("an empty unit", vec![sequence, picture, &[0, 0, 0, 1]]),
        ("a key slice alone", vec![slice]),
    ] {
        let error = Decoder::new(size()).decode(0, &parts.concat()).unwrap_err();
        assert_eq!(error, Error::FrameShape, "{name}");
    }
    assert!(Decoder::new(size()).decode(0, &[sequence, picture, slice].concat()).is_ok());
}

#[test]
fn a_truncated_frame_needs_a_key_frame() {
    let frames = frames(size(), 4);
    for length in [0, 3, 5, frames[1].data.len() / 2, frames[1].data.len() - 4] {
        let mut decoder = Decoder::new(size());
        decoder.decode(0, &frames[0].data).unwrap();
        assert!(decoder.decode(1, &frames[1].data[..length]).is_err(), "{length} bytes");
        assert_eq!(decoder.decode(2, &frames[2].data).unwrap_err(), Error::NeedKey);
        decoder.decode(3, &frames[3].data).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn garbage_is_an_error(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Decoder::new(size()).decode(0, &data).is_err());
    }

    /// After any damage to a frame, the next key frame is shown as if nothing had been.
    #[test]
    fn a_key_frame_mends_everything(
        at in 0..6_usize,
        harm in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut frames = frames(size(), 9);
        let mut untouched = Decoder::new(size());
        let expected = pixels(&mut untouched, 6, &frames[6].data).unwrap();
        for (place, byte) in harm {
            let data = &mut frames[at].data;
            let place = place.index(data.len());
            data[place] = byte;
        }
        let mut decoder = Decoder::new(size());
        for (number, frame) in frames.iter().enumerate().take(6) {
            let result = pixels(&mut decoder, number as u64, &frame.data);
            prop_assert!(result.is_err() || result.unwrap().len() == (SIDES.0 * SIDES.1 * 4) as usize);
        }
        prop_assert_eq!(pixels(&mut decoder, 6, &frames[6].data).unwrap(), expected);
        prop_assert!(decoder.decode(7, &frames[7].data).is_ok());
    }
}
