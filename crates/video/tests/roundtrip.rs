//! What comes back of what went in, in quality, bytes and kinds of frames.

mod video;

use std::time::Duration;

use video::{Video, psnr};
use wayferry_video::{Decoded, Decoder, Encoder, Error, Frame, Layout, Order, Quality, Rate, Size};

const RATE: Rate = Rate { bits_per_second: 2_000_000, interval: Duration::from_nanos(1_000_000_000 / 30) };

/// One stream, there and back.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
    number: u64,
}

impl Pair {
    fn new(width: u32, height: u32) -> Self {
        let size = Size::new(width, height).unwrap();
        Self { encoder: Encoder::new(size, Quality::default()), decoder: Decoder::new(size), number: 0 }
    }

    fn encode(&mut self, picture: &[u8], rate: Rate, key: bool) -> Frame {
        let stride = self.encoder.size().width() as usize * 4;
        let row = |y: u32| &picture[y as usize * stride..][..stride];
        self.encoder.encode(Order::Bgrx, row, rate, key).unwrap().expect("no frame is left out")
    }

    fn decode(&mut self, frame: &Frame) -> Vec<u8> {
        let mut back = Vec::new();
        let picture = self.decoder.decode(self.number, &frame.data).unwrap();
        picture.rows(Order::Bgrx, 255, |y, row| {
            assert_eq!(y as usize * row.len(), back.len(), "rows come from the top");
            back.extend_from_slice(row);
        });
        self.number += 1;
        back
    }
}

#[test]
fn planes_from_elsewhere_make_the_same_pixels() {
    for (width, height) in [(1, 1), (33, 31), (101, 67), (320, 180)] {
        let (mut pair, mut video) = (Pair::new(width, height), Video::new(width, height));
        let frame = pair.encode(&video.next(), RATE, false);
        let size = pair.decoder.size();
        let picture = pair.decoder.decode(0, &frame.data).unwrap();
        for layout in [Layout::I420, Layout::Nv12] {
            let planes = picture.planes(layout);
            assert_eq!(planes.len(), Decoded::length(size));
            assert!(Decoded::new(size, layout, planes[1..].to_vec()).is_none());
            let other = Decoded::new(size, layout, planes).unwrap();
            let (mut pixels, mut others) = (Vec::new(), Vec::new());
            picture.rows(Order::Rgbx, 7, |_, row| pixels.extend_from_slice(row));
            other.picture().rows(Order::Rgbx, 7, |_, row| others.extend_from_slice(row));
            assert!(pixels == others, "{layout:?} of {width} x {height}");
        }
    }
}

#[test]
fn pictures_of_any_size_come_back() {
    for (width, height) in [(1, 1), (2, 3), (15, 17), (16, 16), (33, 31), (101, 67), (320, 180), (3840, 9)] {
        let (mut pair, mut video) = (Pair::new(width, height), Video::new(width, height));
        for _ in 0..5 {
            let picture = video.next();
            let frame = pair.encode(&picture, RATE, false);
            let back = pair.decode(&frame);
            assert_eq!(back.len(), picture.len(), "{width}x{height}");
            assert!(back.iter().skip(3).step_by(4).all(|&fill| fill == 255));
            let quality = psnr(&picture, &back);
            assert!(quality > 30.0, "{width}x{height}: {quality:.1} dB");
        }
    }
}

#[test]
fn the_rate_is_obeyed() {
    for (bits_per_second, frames_per_second) in [(250_000, 30), (1_000_000, 30), (500_000, 60), (250_000, 10)]
    {
        let (mut pair, mut video) = (Pair::new(320, 180), Video::new(320, 180));
        let rate = Rate { bits_per_second, interval: Duration::from_secs(1) / frames_per_second };
        let bytes: usize = (0..60).map(|_| pair.encode(&video.next(), rate, false).data.len()).sum();
        let actual = bytes as f64 * 8.0 * f64::from(frames_per_second) / 60.0;
        let share = actual / bits_per_second as f64;
        assert!(
            (0.8..1.2).contains(&share),
            "{actual:.0} of {bits_per_second} bit/s at {frames_per_second}/s"
        );
    }
}

#[test]
fn the_rate_changes_without_a_key_frame() {
    let (mut pair, mut video) = (Pair::new(320, 180), Video::new(320, 180));
    let mut bytes = |bits_per_second| {
        let rate = Rate { bits_per_second, ..RATE };
        // Ten frames to get there, 20 that count.
        let frames: Vec<_> = (0..30).map(|_| pair.encode(&video.next(), rate, false)).collect();
        assert!(frames.iter().skip(1).all(|frame| !frame.key));
        frames.iter().skip(10).map(|frame| frame.data.len()).sum::<usize>()
    };
    let (rich, poor, rich_again) = (bytes(1_000_000), bytes(250_000), bytes(1_000_000));
    assert!(poor * 3 < rich && poor * 3 < rich_again, "{rich}, {poor}, {rich_again}");
}

#[test]
fn a_key_frame_comes_when_it_is_asked_for() {
    let (mut pair, mut video) = (Pair::new(320, 180), Video::new(320, 180));
    let keys: Vec<_> = (0..9).map(|at| pair.encode(&video.next(), RATE, at == 5).key).collect();
    assert_eq!(keys, [true, false, false, false, false, true, false, false, false]);
}

#[test]
fn a_new_scene_is_a_key_frame() {
    let (mut pair, mut video) = (Pair::new(320, 180), Video::new(320, 180));
    // The codec does not look for one within 16 frames of the last key frame.
    for at in 0..20 {
        assert_eq!(pair.encode(&video.next(), RATE, false).key, at == 0);
    }
    let other: Vec<u8> = video.next().iter().map(|channel| 255 - channel).collect();
    assert!(pair.encode(&other, RATE, false).key);
}

#[test]
fn a_lower_quality_takes_fewer_bytes() {
    let sum = |quality| {
        let (mut pair, mut video) = (Pair::new(320, 180), Video::new(320, 180));
        pair.encoder = Encoder::new(pair.encoder.size(), Quality::new(quality));
        (0..10).map(|_| pair.encode(&video.next(), RATE, false).data.len()).sum::<usize>()
    };
    let (poor, good) = (sum(1), sum(100));
    assert!(poor * 2 < good, "{poor} bytes for the poorest, {good} for the best");
}

#[test]
fn both_orders_of_bytes_mean_the_same() {
    let size = Size::new(50, 40).unwrap();
    let picture = Video::new(50, 40).next();
    let mut swapped = picture.clone();
    swapped.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
    let frame = |order, picture: &[u8]| {
        let mut encoder = Encoder::new(size, Quality::default());
        encoder.encode(order, |y| &picture[y as usize * 200..], RATE, false).unwrap().unwrap()
    };
    let (bgrx, rgbx) = (frame(Order::Bgrx, &picture), frame(Order::Rgbx, &swapped));
    assert_eq!(bgrx, rgbx);
    let mut decoder = Decoder::new(size);
    let shown = decoder.decode(0, &bgrx.data).unwrap();
    let rows = |order| {
        let mut all = Vec::new();
        shown.rows(order, 9, |_, row| all.extend_from_slice(row));
        all
    };
    let (bgrx, mut rgbx) = (rows(Order::Bgrx), rows(Order::Rgbx));
    rgbx.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
    assert_eq!(bgrx, rgbx);
}

#[test]
fn after_a_short_row_comes_a_key_frame() {
    let (mut pair, mut video) = (Pair::new(64, 64), Video::new(64, 64));
    pair.encode(&video.next(), RATE, false);
    let short = pair.encoder.encode(Order::Bgrx, |_| &[0; 255], RATE, false);
    assert_eq!(short, Err(Error::Row { length: 255, least: 256 }));
    assert!(pair.encode(&video.next(), RATE, false).key);
}
