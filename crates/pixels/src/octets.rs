//! Pictures whose four channels are bytes: the prediction of [`picture`](crate::picture) for them, in few instructions.
//!
//! A row is kept as it lies in memory, pixel by pixel in the format's order, with red and blue relative to green; so
//! a register holds several channels, and several pixels where none waits for another. Only residuals are put
//! into planes. This module does not know the bounds of surfaces and writes no chunks.
//!
//! The one invariant: residuals are those that [`picture`](crate::picture) defines, bit for bit.

use crate::content::Content;
use crate::geometry::Rect;

/// Rows of channels, kept from picture to picture: a pixel of zeros, the pixels, and room for a register to reach
/// beyond the last one.
#[derive(Default)]
pub(crate) struct Rows {
    above: Vec<u8>,
    row: Vec<u8>,
    residuals: Vec<u8>,
}

impl Rows {
    fn start(&mut self, width: usize) {
        for row in [&mut self.above, &mut self.row, &mut self.residuals] {
            row.clear();
            row.resize(width * PIXEL + LANES, 0);
        }
    }

    fn next(&mut self) {
        std::mem::swap(&mut self.above, &mut self.row);
    }
}

/// Writes residuals behind planes: green, the lower and the higher one of red and blue, and the fourth channel unless
/// that is left out.
pub(crate) fn predict(content: &Content, rect: Rect, rows: &mut Rows, planes: [Option<&mut Vec<u8>>; 4]) {
    let (width, mut planes) = (rect.width as usize, planes);
    rows.start(width);
    for y in rect.y..rect.bottom() {
        relate(content.row(y, rect.x, rect.width), &mut rows.row[PIXEL..]);
        let ends = PIXEL + width * PIXEL;
        subtract(&rows.above[..ends], &rows.row[..ends], &mut rows.residuals);
        let residuals = rows.residuals.as_chunks::<PIXEL>().0;
        for (plane, shift) in planes.iter_mut().zip(SHIFTS) {
            let Some(plane) = plane else { continue };
            let start = plane.len();
            plane.resize(start + width, 0);
            for (target, residual) in plane[start..].iter_mut().zip(residuals) {
                *target = (u32::from_le_bytes(*residual) >> shift) as u8;
            }
        }
        rows.next();
    }
}

/// Paints a picture from its residuals, a plane for each channel; of the fourth one, a value instead if it is the same
/// everywhere.
pub(crate) fn restore(
    content: &mut Content,
    rect: Rect,
    rows: &mut Rows,
    planes: [&[u8]; 4],
    constant: Option<u8>,
) {
    let width = rect.width as usize;
    rows.start(width);
    if let Some(value) = constant {
        rows.above.as_chunks_mut::<PIXEL>().0[1..].iter_mut().for_each(|pixel| pixel[3] = value);
    }
    for y in rect.y..rect.bottom() {
        let start = (y - rect.y) as usize * width;
        let plane = |channel: usize| &planes[channel][start..start + width];
        let residuals = &mut rows.residuals;
        match constant {
            Some(_) => join_three(plane(0), plane(1), plane(2), residuals),
            None => join_four([plane(0), plane(1), plane(2), plane(3)], residuals),
        }
        add(&rows.above[PIXEL..], residuals, &mut rows.row[PIXEL..], width);
        separate(&rows.row[PIXEL..], content.row_mut(y, rect.x, rect.width));
        rows.next();
    }
}

/// Takes red and blue relative to green: half of the range is no difference.
fn relate(pixels: &[u8], target: &mut [u8]) {
    for (pixel, target) in pixels.as_chunks::<PIXEL>().0.iter().zip(target.as_chunks_mut().0) {
        let pixel = u32::from_le_bytes(*pixel);
        let green = pixel >> 8 & 0xff;
        // what is borrowed stays in the bytes between, which are left out
        let others = (pixel & OTHERS | !OTHERS).wrapping_sub(green << 16 | green) ^ HALVES;
        *target = (others & OTHERS | pixel & !OTHERS).to_le_bytes();
    }
}

/// What [`relate`] was given.
fn separate(source: &[u8], pixels: &mut [u8]) {
    for (pixel, source) in pixels.as_chunks_mut().0.iter_mut().zip(source.as_chunks::<PIXEL>().0) {
        let source = u32::from_le_bytes(*source);
        let green = source >> 8 & 0xff;
        let others = ((source ^ HALVES) & OTHERS) + (green << 16 | green);
        *pixel = (others & OTHERS | source & !OTHERS).to_le_bytes();
    }
}

/// What is left of a row's bytes once they are predicted; both rows begin with a pixel that is the same in both.
fn subtract(above: &[u8], row: &[u8], residuals: &mut [u8]) {
    let length = row.len() - PIXEL;
    let (left, row) = (&row[..length], &row[PIXEL..]);
    let (corner, above) = (&above[..length], &above[PIXEL..]);
    let around = left.iter().zip(above).zip(corner);
    for (target, (sample, ((left, above), corner))) in residuals.iter_mut().zip(row.iter().zip(around)) {
        let (low, step) = median(*left, *above, *corner);
        *target = sample.wrapping_sub(low).wrapping_sub(step);
    }
}

/// The bytes of a row of `width` pixels from what is left of them: a register of which only the first pixel counts,
/// because the next one waits for it.
fn add(above: &[u8], residuals: &[u8], row: &mut [u8], width: usize) {
    let (mut left, mut corner) = ([0; LANES], [0; LANES]);
    for x in (0..width * PIXEL).step_by(PIXEL) {
        let (Some(above), Some(residual)) = (above[x..].first_chunk(), residuals[x..].first_chunk()) else {
            return;
        };
        left = next(&left, above, &corner, residual);
        corner = *above;
        if let Some(target) = row[x..].first_chunk_mut::<PIXEL>() {
            target.copy_from_slice(&left[..PIXEL]);
        }
    }
}

#[inline(always)]
fn next(
    left: &[u8; LANES],
    above: &[u8; LANES],
    corner: &[u8; LANES],
    residual: &[u8; LANES],
) -> [u8; LANES] {
    std::array::from_fn(|lane| {
        let (low, step) = median(left[lane], above[lane], corner[lane]);
        low.wrapping_add(residual[lane]).wrapping_add(step)
    })
}

/// The median of left, above, and left + above − corner, as the sum of two bytes.
#[inline(always)]
fn median(left: u8, above: u8, corner: u8) -> (u8, u8) {
    let (low, high) = (left.min(above), left.max(above));
    (low, high.saturating_sub(corner.max(low)))
}

fn join_three(green: &[u8], low: &[u8], high: &[u8], target: &mut [u8]) {
    let sources = green.iter().zip(low).zip(high);
    for (target, ((green, low), high)) in target.as_chunks_mut::<PIXEL>().0.iter_mut().zip(sources) {
        *target = (u32::from(*low) | u32::from(*green) << 8 | u32::from(*high) << 16).to_le_bytes();
    }
}

fn join_four([green, low, high, fourth]: [&[u8]; 4], target: &mut [u8]) {
    let sources = green.iter().zip(low).zip(high).zip(fourth);
    for (target, (((green, low), high), fourth)) in target.as_chunks_mut::<PIXEL>().0.iter_mut().zip(sources)
    {
        let colours = u32::from(*low) | u32::from(*green) << 8 | u32::from(*high) << 16;
        *target = (colours | u32::from(*fourth) << 24).to_le_bytes();
    }
}

/// Bytes of a pixel.
const PIXEL: usize = 4;

/// Bytes of a register.
const LANES: usize = 16;

/// Where green, the lower and the higher one of red and blue, and the fourth channel lie in a pixel.
const SHIFTS: [u32; 4] = [8, 0, 16, 24];

/// The bits of red and blue, and half of the range of each.
const OTHERS: u32 = 0x00ff_00ff;
const HALVES: u32 = 0x0080_0080;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::Format;
    use crate::geometry::Size;

    /// A content, a rectangle of it, and whether its fourth channel is the same everywhere.
    fn picture() -> impl Strategy<Value = (Content, Rect, bool)> {
        let span = |length: u32| (0..length).prop_flat_map(move |start| (Just(start), 1..=length - start));
        (1..40u32, 1..6u32, any::<bool>(), any::<bool>()).prop_flat_map(
            move |(width, height, smooth, same)| {
                let bytes = prop::collection::vec(any::<u8>(), (width * height * 4) as usize);
                (bytes, span(width), span(height)).prop_map(move |(mut bytes, (x, columns), (y, rows))| {
                    for index in 4..bytes.len() {
                        if smooth {
                            bytes[index] = bytes[index - 4].wrapping_add(bytes[index] & 3);
                        }
                        if same && index % 4 == 3 {
                            bytes[index] = bytes[3];
                        }
                    }
                    let size = Size::new(width, height).unwrap();
                    let mut content = Content::new(size, Format::Argb8888);
                    content.write(size.rect(), &bytes);
                    (content, Rect::new(x, y, columns, rows), same)
                })
            },
        )
    }

    /// A channel of a pixel, as [`picture`](crate::picture) defines it; 0 beyond the rectangle's edges.
    fn channel(content: &Content, rect: Rect, channel: usize, (x, y): (i32, i32)) -> i32 {
        if x < 0 || y < 0 {
            return 0;
        }
        let pixel = content.row(rect.y + y as u32, rect.x + x as u32, 1);
        match SHIFTS[channel] as usize / 8 {
            place if channel == 0 || channel == 3 => i32::from(pixel[place]),
            place => (i32::from(pixel[place]) - i32::from(pixel[1]) + 128).rem_euclid(256),
        }
    }

    fn residual(content: &Content, rect: Rect, index: usize, (x, y): (i32, i32)) -> u8 {
        let at = |x, y| channel(content, rect, index, (x, y));
        let mut around = [at(x - 1, y), at(x, y - 1), at(x - 1, y) + at(x, y - 1) - at(x - 1, y - 1)];
        around.sort_unstable();
        let predicted = if x == 0 { at(x, y - 1) } else { around[1] };
        (at(x, y) - predicted).rem_euclid(256) as u8
    }

    proptest! {
        #[test]
        fn residuals_are_those_defined_and_give_the_picture_back((content, rect, same) in picture()) {
            let mut planes: [Vec<u8>; 4] = std::array::from_fn(|channel| vec![channel as u8]);
            let mut rows = Rows::default();
            let [green, low, high, fourth] = &mut planes;
            let fourth = (!same).then_some(fourth);
            predict(&content, rect, &mut rows, [Some(green), Some(low), Some(high), fourth]);
            for (index, plane) in planes.iter().enumerate().take(if same { 3 } else { 4 }) {
                let places = (0..rect.height as i32)
                    .flat_map(|y| (0..rect.width as i32).map(move |x| (x, y)));
                let wanted: Vec<u8> = places.map(|place| residual(&content, rect, index, place)).collect();
                prop_assert_eq!(plane[0], index as u8, "what was there stays");
                prop_assert_eq!(&plane[1..], &wanted[..]);
            }

            let constant = same.then(|| content.row(rect.y, rect.x, 1)[3]);
            let mut restored = content.clone();
            for y in rect.y..rect.bottom() {
                restored.row_mut(y, rect.x, rect.width).fill(0x55);
            }
            let planes = planes.each_ref().map(|plane| &plane[1..]);
            restore(&mut restored, rect, &mut rows, planes, constant);
            prop_assert_eq!(restored.pixels(), content.pixels());
        }
    }
}
