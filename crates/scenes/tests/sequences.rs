//! What the sequences are like: their figures, and that they are the same everywhere and always.

use wayferry_scenes::{Canvas, Digest, Scene, Sequence, Statistics, changed, photograph};

/// The figures of each frame.
struct Means {
    each: Vec<Statistics>,
}

impl Means {
    fn of(sequence: Sequence, frames: usize) -> Self {
        let mut scene = Scene::new(sequence, 1);
        let mut old = scene.frame().pixels.to_vec();
        let each = (0..frames).map(|_| {
            scene.step();
            let frame = scene.frame();
            let statistics = Statistics::new(&old, &frame);
            let inside = frame.damage.iter().map(|rect| changed(frame.width, &old, frame.pixels, *rect));
            assert_eq!(
                inside.sum::<u64>(),
                statistics.changed,
                "changes lie inside the damage, which has no overlaps"
            );
            old.copy_from_slice(frame.pixels);
            statistics
        });
        let means = Self { each: each.collect() };
        println!(
            "{:<10} rects {:>5.1}, damaged {:>9.0}, changed {:>9.0} ({} to {}), residual {:>9.0}, its area {:>9.0}",
            sequence.name(),
            means.mean(|one| one.rects as u64),
            means.mean(|one| one.damaged),
            means.mean(|one| one.changed),
            means.least(|one| one.changed),
            means.most(|one| one.changed),
            means.mean(|one| one.residual),
            means.mean(|one| one.residual_area),
        );
        means
    }

    fn mean(&self, figure: impl Fn(&Statistics) -> u64) -> f64 {
        self.each.iter().map(figure).sum::<u64>() as f64 / self.each.len() as f64
    }

    fn least(&self, figure: impl Fn(&Statistics) -> u64) -> u64 {
        self.each.iter().map(figure).min().unwrap_or(0)
    }

    fn most(&self, figure: impl Fn(&Statistics) -> u64) -> u64 {
        self.each.iter().map(figure).max().unwrap_or(0)
    }
}

fn near(value: f64, wanted: f64, percent: f64) {
    assert!((value / wanted - 1.0).abs() <= percent / 100.0, "{value} is not {wanted} to {percent} %");
}

#[test]
fn typing_changes_300_to_1700_pixels() {
    let means = Means::of(Sequence::Type, 60);
    assert!(means.least(|one| one.changed) >= 300 && means.most(|one| one.changed) <= 1700);
    assert!(means.most(|one| one.rects as u64) <= 4 && means.most(|one| one.damaged) < 4000);
    let whole = Means::of(Sequence::TypeWhole, 10);
    assert!(whole.each.iter().zip(&means.each).all(|(one, other)| one.changed == other.changed));
    assert_eq!(whole.least(|one| one.damaged), 1920 * 1080);
}

#[test]
fn widgets_change_4600_pixels_in_8_rectangles() {
    let means = Means::of(Sequence::Gtk, 60);
    near(means.mean(|one| one.changed), 4600.0, 10.0);
    assert_eq!(means.mean(|one| one.rects as u64), 8.0);
}

#[test]
fn a_terminal_changes_117_000_pixels_of_which_19_000_are_new() {
    let means = Means::of(Sequence::Term, 60);
    near(means.mean(|one| one.changed), 117_000.0, 10.0);
    near(means.mean(|one| one.residual), 19_000.0, 10.0);
}

/// 22 000 are those from the first to the last new pixel of each row; nearly half of them were the same before by
/// chance.
#[test]
fn a_page_changes_407_000_pixels_of_which_22_000_are_new() {
    let means = Means::of(Sequence::Page, 60);
    near(means.mean(|one| one.changed), 407_000.0, 10.0);
    near(means.mean(|one| one.residual_area), 22_000.0, 20.0);
    assert_eq!(means.least(|one| one.changed), 0, "a wheel that is at rest changes nothing");
}

#[test]
fn a_video_changes_nearly_all_of_its_window() {
    let means = Means::of(Sequence::Video, 10);
    near(means.mean(|one| one.damaged), 1280.0 * 720.0, 0.0);
    near(means.mean(|one| one.changed), 1280.0 * 720.0, 5.0);
}

#[test]
fn screens_differ_and_the_same_one_does_not() {
    assert!(Means::of(Sequence::Switch, 10).least(|one| one.changed) > 500_000);
    assert!(Means::of(Sequence::Photo, 2).least(|one| one.changed) > 2_000_000);
    assert_eq!(Means::of(Sequence::Same, 2).most(|one| one.changed), 0);
}

/// Bytes per pixel of a lossless coder that predicts each plane by the gradient, green taken from red and blue.
fn predicted_cost(picture: &Canvas) -> f64 {
    let width = picture.width() as usize;
    let plane = |of: fn([u8; 4]) -> u8| picture.pixels().iter().map(|pixel| of(*pixel)).collect::<Vec<u8>>();
    let planes = [
        plane(|pixel| pixel[1]),
        plane(|pixel| pixel[2].wrapping_sub(pixel[1])),
        plane(|pixel| pixel[0].wrapping_sub(pixel[1])),
    ];
    let residuals = |plane: &Vec<u8>| {
        let above = |index: usize, back: usize| if index >= back { plane[index - back] } else { 0 };
        let predicted = |index: usize| {
            let (left, up, corner) = (above(index, 1), above(index, width), above(index, width + 1));
            let gradient = i16::from(left) + i16::from(up) - i16::from(corner);
            gradient.clamp(i16::from(left.min(up)), i16::from(left.max(up))) as u8
        };
        (0..plane.len()).map(|index| plane[index].wrapping_sub(predicted(index))).collect::<Vec<u8>>()
    };
    let bytes: Vec<u8> = planes.iter().flat_map(residuals).collect();
    let mut packed = vec![0; zstd_safe::compress_bound(bytes.len())];
    let length = zstd_safe::compress(&mut packed[..], &bytes, 1).expect("there is room");
    length as f64 / picture.pixels().len() as f64
}

#[test]
fn photographs_need_three_quarters_of_a_byte_per_pixel() {
    for seed in 1..3 {
        let cost = predicted_cost(&photograph(1280, 720, seed));
        println!("photograph {seed}: {cost:.3} bytes per pixel");
        near(cost, 0.75, 5.0);
    }
}

/// Figures of different days are of the same pixels as long as this passes; who changes a generator changes these, too.
#[test]
fn the_same_seed_gives_the_same_pixels_everywhere() {
    let digest = |sequence, seed| {
        let mut scene = Scene::new(sequence, seed);
        let mut digest = Digest::default();
        for _ in 0..3 {
            digest.add(&scene.frame());
            scene.step();
        }
        digest.value()
    };
    let found: Vec<_> =
        Sequence::ALL.into_iter().map(|sequence| (sequence.name(), digest(sequence, 1))).collect();
    assert_eq!(found, DIGESTS, "{found:#x?}");
    assert_ne!(digest(Sequence::Type, 2), found[0].1);
}

const DIGESTS: [(&str, u64); 10] = [
    ("type", 0xb73f_a13b_46f8_404c),
    ("type-whole", 0xedb2_9c73_f868_3078),
    ("gtk", 0x71da_9395_32e8_1dc6),
    ("term", 0x05a3_ce83_1d22_4419),
    ("page", 0xf129_eaa8_591b_400d),
    ("video", 0x56b2_94ae_d9cf_41d2),
    ("switch", 0x6505_7f2c_ea59_ac73),
    ("photo", 0xee57_0f66_4b8e_3431),
    ("same", 0x1f1a_910c_2afa_5fcd),
    ("same-4k", 0xb666_ef89_cfbf_3bb1),
];
