//! Damage mapping against a model that looks at every pixel: the surface is built from the buffer as
//! the protocol says, sample by sample, and every buffer pixel touched must be in the mapped damage.

use proptest::prelude::*;
use wayferry_pixels::map::{Crop, Mapping, SurfaceRect, Transform};
use wayferry_pixels::{Rect, Size};

/// Where pixel (x, y) of a turned buffer of width × height comes from: the buffer holds the surface
/// mirrored, then turned by quarters counter-clockwise.
fn to_buffer(
    transform: Transform,
    (mut x, y): (u32, u32),
    (mut width, mut height): (u32, u32),
) -> (u32, u32) {
    let index = Transform::ALL.iter().position(|other| *other == transform).unwrap();
    if index >= 4 {
        x = width - 1 - x;
    }
    let mut point = (x, y);
    for _ in 0..index % 4 {
        // the right edge becomes the top edge
        point = (point.1, width - 1 - point.0);
        (width, height) = (height, width);
    }
    point
}

/// Size of the turned buffer.
fn turned(mapping: &Mapping) -> (u32, u32) {
    let (width, height) = (mapping.buffer.width(), mapping.buffer.height());
    if mapping.transform.swaps_sides() { (height, width) } else { (width, height) }
}

/// Crop in turned buffer pixels and size in surface coordinates, per axis.
struct Visible {
    start: [f64; 2],
    source: [f64; 2],
    surface: [f64; 2],
    /// Whether surface pixels are whole turned buffer pixels.
    exact: [bool; 2],
}

fn shown(mapping: &Mapping) -> Visible {
    let (width, height) = turned(mapping);
    let scale = f64::from(mapping.scale);
    let (start, source) = match mapping.crop {
        Some(crop) => {
            let fixed = |value: i32| f64::from(value) / 256.0 * scale;
            ([fixed(crop.x), fixed(crop.y)], [fixed(crop.width), fixed(crop.height)])
        }
        None => ([0.0; 2], [f64::from(width), f64::from(height)]),
    };
    let surface = match mapping.destination {
        Some((width, height)) => [f64::from(width), f64::from(height)],
        None => [source[0] / scale, source[1] / scale],
    };
    let whole = |value: f64| value.fract() == 0.0;
    let exact = [0, 1].map(|axis: usize| whole(start[axis]) && whole(source[axis] / surface[axis]));
    Visible { start, source, surface, exact }
}

/// The turned buffer pixels that a surface pixel may show along an axis.
fn touched(shown: &Visible, axis: usize, pixel: i32, limit: u32) -> Vec<u32> {
    let mut taps = Vec::new();
    // an output may have any resolution: samples lie all over the pixel, and close to its edges
    for part in [0.001, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999] {
        let position = f64::from(pixel) + part;
        let at = shown.start[axis] + position * shown.source[axis] / shown.surface[axis];
        let spread = if shown.exact[axis] { 0.0 } else { 0.5 };
        for tap in [at - spread, at + spread] {
            taps.push(tap.floor().clamp(0.0, f64::from(limit - 1)) as u32);
        }
    }
    taps.sort_unstable();
    taps.dedup();
    taps
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let sizes = (1..40u32, 1..40u32, 1..4i32, 0..8usize);
    let viewport = (any::<bool>(), any::<bool>(), [any::<u16>(), any::<u16>(), any::<u16>(), any::<u16>()]);
    (sizes, viewport, 1..60i32, 1..60i32, any::<bool>()).prop_map(
        |((width, height, scale, transform), (crop, resize, cut), to_width, to_height, whole)| {
            let buffer = Size::new(width * scale as u32, height * scale as u32).unwrap();
            let mut mapping =
                Mapping { transform: Transform::ALL[transform], scale, ..Mapping::plain(buffer) };
            let (width, height) = turned(&mapping);
            mapping.crop = crop.then(|| {
                let (x, columns) = cut_axis(cut[0], cut[1], width / scale as u32, whole || !resize);
                let (y, rows) = cut_axis(cut[2], cut[3], height / scale as u32, whole || !resize);
                Crop { x, y, width: columns, height: rows }
            });
            mapping.destination = resize.then_some((to_width, to_height));
            mapping
        },
    )
}

/// A crop inside `length` surface units, in 1/256, whole units if wanted.
fn cut_axis(start: u16, size: u16, length: u32, whole: bool) -> (i32, i32) {
    let (length, unit) = if whole { (length as i32, 256) } else { (length as i32 * 256, 1) };
    let start = i32::from(start) % length;
    let size = 1 + i32::from(size) % (length - start);
    (start * unit, size * unit)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_touched_pixel_is_inside(
        mapping in mapping(), x in -3..40i32, y in -3..40i32, width in 0..20i32, height in 0..20i32,
    ) {
        let shown = shown(&mapping);
        let limits = turned(&mapping);
        let mapped = mapping.rect(SurfaceRect { x, y, width, height });
        prop_assert!(mapped.is_none_or(|rect| !rect.is_empty() && mapping.buffer.rect().contains(rect)));
        let mut touched_by_model: Option<Rect> = None;
        for row in y.max(0)..(y + height).min(shown.surface[1] as i32) {
            for column in x.max(0)..(x + width).min(shown.surface[0] as i32) {
                for across in touched(&shown, 0, column, limits.0) {
                    for down in touched(&shown, 1, row, limits.1) {
                        let (x, y) = to_buffer(mapping.transform, (across, down), limits);
                        let pixel = Rect::new(x, y, 1, 1);
                        prop_assert!(mapped.is_some_and(|rect| rect.contains(pixel)), "{pixel:?} not in {mapped:?}");
                        touched_by_model = Some(touched_by_model.map_or(pixel, |known| around(known, pixel)));
                    }
                }
            }
        }
        let inside = x >= 0 && y >= 0 && f64::from(x + width) <= shown.surface[0] && f64::from(y + height) <= shown.surface[1];
        if let (true, Some(model), Some(rect)) = (inside, touched_by_model, mapped) {
            let waste = if shown.exact == [true; 2] { 0 } else { 4 };
            prop_assert!(rect.width <= model.width + waste && rect.height <= model.height + waste, "{rect:?} for {model:?}");
        }
    }

    #[test]
    fn any_state_gives_a_rect_inside(
        width in 1..9000u32, height in 1..7000u32, transform in 0..8usize, scale: i32,
        crop: Option<[i32; 4]>, destination: Option<(i32, i32)>, damage: [i32; 4],
    ) {
        let buffer = Size::new(width, height).unwrap();
        let crop = crop.map(|[x, y, width, height]| Crop { x, y, width, height });
        let mapping = Mapping { buffer, transform: Transform::ALL[transform], scale, crop, destination };
        let [x, y, width, height] = damage;
        let mapped = mapping.rect(SurfaceRect { x, y, width, height });
        prop_assert!(mapped.is_none_or(|rect| !rect.is_empty() && buffer.rect().contains(rect)));
    }
}

fn around(a: Rect, b: Rect) -> Rect {
    let (x, y) = (a.x.min(b.x), a.y.min(b.y));
    Rect::new(x, y, a.right().max(b.right()) - x, a.bottom().max(b.bottom()) - y)
}

#[test]
fn damage_without_bounds_is_the_whole_buffer() {
    let buffer = Size::new(64, 48).unwrap();
    let everything = SurfaceRect { x: 0, y: 0, width: i32::MAX, height: i32::MAX };
    for transform in Transform::ALL {
        for destination in [None, Some((7, 9))] {
            let mapping = Mapping { transform, scale: 2, destination, ..Mapping::plain(buffer) };
            assert_eq!(mapping.region([everything]).rects(), [buffer.rect()]);
        }
    }
}

#[test]
fn doubtful_state_is_the_whole_buffer() {
    let buffer = Size::new(64, 48).unwrap();
    let plain = Mapping::plain(buffer);
    let pixel = SurfaceRect { x: 1, y: 1, width: 1, height: 1 };
    let fraction = Crop { x: 0, y: 0, width: 300, height: 300 };
    let empty = Crop { x: 0, y: 0, width: 0, height: -1 };
    for mapping in [
        Mapping { scale: 0, ..plain },
        Mapping { scale: -1, ..plain },
        Mapping { crop: Some(fraction), ..plain },
        Mapping { crop: Some(empty), ..plain },
        Mapping { destination: Some((0, 0)), ..plain },
        Mapping { crop: Some(Crop { x: -256, y: -256, width: 512, height: 512 }), ..plain },
    ] {
        assert_eq!(mapping.rect(pixel), Some(buffer.rect()), "{mapping:?}");
    }
    assert_eq!(plain.rect(pixel), Some(Rect::new(1, 1, 1, 1)));
    assert_eq!(plain.rect(SurfaceRect { width: 0, ..pixel }), None);
}

/// A portrait surface on a buffer turned for a landscape output: its right edge is the buffer's top.
#[test]
fn a_quarter_turn_goes_counter_clockwise() {
    let buffer = Size::new(200, 100).unwrap();
    let mapping = Mapping { transform: Transform::Rotated90, ..Mapping::plain(buffer) };
    let upper_right = SurfaceRect { x: 90, y: 0, width: 10, height: 20 };
    assert_eq!(mapping.rect(upper_right), Some(Rect::new(0, 0, 20, 10)));
}
