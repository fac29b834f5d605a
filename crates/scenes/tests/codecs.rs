//! The plain codecs: every picture arrives as it was, and no message can do harm.

use proptest::prelude::*;
use wayferry_scenes::codec::{Codec, Diff, Method, Whole};
use wayferry_scenes::{Frame, Rect};

const METHODS: [Method; 4] = [Method::None, Method::Lz4, Method::Zstd(1), Method::Zstd(3)];

fn codec(kind: usize, width: u32, height: u32) -> Box<dyn Codec> {
    let method = METHODS[kind % METHODS.len()];
    if kind < METHODS.len() {
        Box::new(Diff::new("diff", method, width, height))
    } else {
        Box::new(Whole::new("whole", method, width, height))
    }
}

/// A commit: bands of damage, and what is painted into them.
#[derive(Clone, Debug)]
struct Paint {
    /// Top and height of each band, in eighths of the surface; left and width likewise.
    bands: Vec<(u32, u32, u32)>,
    seed: u32,
    /// Of eight pixels of a band, how many change.
    density: u32,
}

fn paints() -> impl Strategy<Value = Vec<Paint>> {
    let band = (0..8u32, 0..8u32, 1..8u32);
    let paint = (prop::collection::vec(band, 0..4), any::<u32>(), 0..=8u32);
    prop::collection::vec(paint.prop_map(|(bands, seed, density)| Paint { bands, seed, density }), 1..6)
}

impl Paint {
    /// Rectangles that do not overlap: of several bands in one eighth of the height the first counts.
    fn damage(&self, width: u32, height: u32) -> Vec<Rect> {
        let mut taken = [false; 8];
        let mut rects = Vec::new();
        for (row, left, wide) in &self.bands {
            if !std::mem::replace(&mut taken[*row as usize], true) {
                let (top, bottom) = (row * height / 8, (row + 1) * height / 8);
                let (left, right) = (left * width / 8, ((left + wide) * width / 8).min(width));
                rects.push(Rect::new(left, top, right - left, bottom - top));
            }
        }
        rects
    }

    fn apply(&self, picture: &mut [[u8; 4]], width: u32, damage: &[Rect]) {
        let mut state = self.seed;
        for rect in damage {
            for y in rect.y..rect.bottom() {
                for x in rect.x..rect.right() {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if (state >> 16) % 8 < self.density {
                        picture[(y * width + x) as usize] = state.to_le_bytes();
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn every_picture_arrives_as_it_was(
        paints in paints(), width in 1..90u32, height in 1..50u32, kind in 0..2 * METHODS.len(),
    ) {
        let mut codec = codec(kind, width, height);
        let mut picture = vec![[0; 4]; (width * height) as usize];
        for paint in paints {
            let damage = paint.damage(width, height);
            let before = picture.clone();
            paint.apply(&mut picture, width, &damage);
            let frame = Frame { width, height, pixels: &picture, damage: &damage, scroll: None };
            let mut touched = Vec::new();
            for message in codec.encode(&frame) {
                touched.extend(codec.decode(&message).unwrap());
            }
            prop_assert!(codec.shown() == picture.as_flattened());
            for (index, (old, new)) in before.iter().zip(&picture).enumerate() {
                let place = Rect::new(index as u32 % width, index as u32 / width, 1, 1);
                prop_assert!(old == new || touched.iter().any(|rect| rect.within(place).area() == 1));
            }
        }
    }

    #[test]
    fn no_message_does_harm(
        message in prop::collection::vec(any::<u8>(), 0..200), kind in 0..2 * METHODS.len(), claim in 0..300u32,
    ) {
        let mut honest = claim.to_le_bytes().to_vec();
        honest.extend(&message);
        for bytes in [&message, &honest] {
            let mut codec = codec(kind, 7, 5);
            let _ = codec.decode(bytes);
            prop_assert_eq!(codec.shown().len(), 7 * 5 * 4);
        }
    }
}

#[test]
fn nothing_is_sent_where_nothing_changed() {
    let picture = vec![[1, 2, 3, 255]; 64 * 64];
    let damage = [Rect::new(0, 0, 64, 64)];
    let frame = Frame { width: 64, height: 64, pixels: &picture, damage: &damage, scroll: None };
    let mut diff = Diff::new("diff", Method::Lz4, 64, 64);
    assert_eq!(diff.encode(&frame).len(), 1);
    assert!(diff.encode(&frame).is_empty());
    assert!(Whole::new("whole", Method::Lz4, 64, 64).encode(&Frame { damage: &[], ..frame }).is_empty());
}

/// Two runs that lie nearer than a header is long are one.
#[test]
fn near_runs_are_merged() {
    let mut picture = vec![[0; 4]; 100];
    for index in [3, 10, 40] {
        picture[index] = [9; 4];
    }
    let damage = [Rect::new(0, 0, 100, 1)];
    let frame = Frame { width: 100, height: 1, pixels: &picture, damage: &damage, scroll: None };
    let messages = Diff::new("diff", Method::None, 100, 1).encode(&frame);
    assert_eq!(messages[0].len(), 4 + (8 + 8 * 4) + (8 + 4));
}
