//! Pictures as what prediction leaves of their channels.
//!
//! Red and blue are taken relative to green. Each channel is predicted from the pixels to the left, above,
//! and above left (the median of the first two and of left + above − above left), and what is left of it
//! goes to a plane of its own, a byte per pixel. Channels of 10 bits need a second plane for the upper bits.
//! All arithmetic is modulo the channel's range, so any bytes are some picture. Nothing is compressed here.
//!
//! The one invariant: [`restore`] gives what [`predict`] was given, bit for bit.

use crate::content::Content;
use crate::format::Format;
use crate::geometry::Rect;
use crate::octets;

/// How the channels of a format lie in a pixel.
#[derive(Clone, Copy)]
pub(crate) struct Channels {
    /// Green, the lower and the higher one of red and blue, alpha (or unused).
    shift: [u32; 4],
    bits: [u32; 4],
    /// 4, or 3 when every bit belongs to a colour.
    count: usize,
}

impl Channels {
    pub(crate) fn of(format: Format) -> Self {
        match format {
            Format::Rgb565 => Self { shift: [5, 0, 11, 0], bits: [6, 5, 5, 0], count: 3 },
            Format::Argb8888 | Format::Xrgb8888 | Format::Abgr8888 | Format::Xbgr8888 => {
                Self { shift: [8, 0, 16, 24], bits: [8; 4], count: 4 }
            }
            _ => Self { shift: [10, 0, 20, 30], bits: [10, 10, 10, 2], count: 4 },
        }
    }

    /// Whether there is a fourth channel.
    pub(crate) fn has_fourth(self) -> bool {
        self.count == 4
    }

    /// Planes of a picture without its fourth channel.
    pub(crate) fn colour_planes(self) -> usize {
        if self.is_deep() { 6 } else { 3 }
    }

    /// The fourth channel of a pixel, which fits a byte.
    pub(crate) fn fourth(self, pixel: u32) -> u8 {
        (pixel >> self.shift[3] & self.mask(3)) as u8
    }

    fn is_deep(self) -> bool {
        self.bits[0] > 8
    }

    /// Whether every channel is a byte of the pixel.
    fn are_bytes(self) -> bool {
        self.bits == [8; 4]
    }

    fn mask(self, channel: usize) -> u32 {
        (1 << self.bits[channel]) - 1
    }

    /// What green is shifted by to be on the scale of the others.
    fn green_step(self) -> u32 {
        self.bits[0] - self.bits[1]
    }

    /// The channels of a pixel, red and blue relative to green: half of the range is no difference.
    fn split(self, pixel: u32) -> [i16; 4] {
        let channel = |index: usize| pixel >> self.shift[index] & self.mask(index);
        let green = channel(0) >> self.green_step();
        let relative = |index: usize| {
            (channel(index).wrapping_sub(green).wrapping_add(1 << (self.bits[index] - 1)) & self.mask(index))
                as i16
        };
        let fourth = if self.has_fourth() { channel(3) as i16 } else { 0 };
        [channel(0) as i16, relative(1), relative(2), fourth]
    }

    fn join(self, samples: [i16; 4]) -> u32 {
        let green = samples[0] as u32 >> self.green_step();
        let absolute = |index: usize| {
            let half = 1 << (self.bits[index] - 1);
            ((samples[index] as u32).wrapping_add(green).wrapping_sub(half) & self.mask(index))
                << self.shift[index]
        };
        let fourth = if self.has_fourth() { (samples[3] as u32) << self.shift[3] } else { 0 };
        (samples[0] as u32) << self.shift[0] | absolute(1) | absolute(2) | fourth
    }
}

/// Planes of residuals: green, then the lower and the higher one of red and blue, then their upper bits if they
/// have more than 8, then the fourth channel.
pub(crate) type Planes = [Vec<u8>; 7];

/// The plane of the fourth channel.
pub(crate) const FOURTH: usize = 6;

/// Rows of samples, kept from picture to picture.
#[derive(Default)]
pub(crate) struct Samples {
    above: [Vec<i16>; 4],
    row: [Vec<i16>; 4],
    /// Those of channels that are bytes.
    bytes: octets::Rows,
}

impl Samples {
    fn start(&mut self, width: usize) {
        for rows in [&mut self.above, &mut self.row] {
            for samples in rows {
                samples.clear();
                samples.resize(width, 0);
            }
        }
    }
}

/// Writes the residuals of a rectangle behind the planes. The fourth channel is left out when it is the same
/// everywhere; then its value is returned.
pub(crate) fn predict(
    content: &Content,
    rect: Rect,
    samples: &mut Samples,
    planes: &mut Planes,
) -> Option<u8> {
    let channels = Channels::of(content.format());
    let constant = constant_fourth(content, rect, channels);
    if channels.are_bytes() {
        let [green, low, high, _, _, _, fourth] = planes;
        let fourth = constant.is_none().then_some(fourth);
        octets::predict(content, rect, &mut samples.bytes, [Some(green), Some(low), Some(high), fourth]);
        return constant;
    }
    let count = if channels.has_fourth() && constant.is_none() { 4 } else { 3 };
    samples.start(rect.width as usize);
    for y in rect.y..rect.bottom() {
        let row = content.row(y, rect.x, rect.width);
        match content.format() {
            Format::Rgb565 => split_row::<2>(row, channels, samples),
            _ => split_row::<4>(row, channels, samples),
        }
        for channel in 0..count {
            let (above, row) = (&samples.above[channel], &samples.row[channel]);
            let mask = channels.mask(channel) as i16;
            if channel < 3 && channels.is_deep() {
                let (low, high) = planes.split_at_mut(3);
                residuals(above, row, |residual| {
                    let folded = fold(residual, mask);
                    low[channel].push(folded as u8);
                    high[channel].push((folded >> 8) as u8);
                });
            } else {
                byte_residuals(above, row, mask, &mut planes[if channel < 3 { channel } else { FOURTH }]);
            }
        }
        std::mem::swap(&mut samples.above, &mut samples.row);
    }
    constant
}

/// The fourth channel's value if all pixels have the same (or there is none).
fn constant_fourth(content: &Content, rect: Rect, channels: Channels) -> Option<u8> {
    if !channels.has_fourth() {
        return Some(0);
    }
    let (mut any, mut all) = (0, u32::MAX);
    for y in rect.y..rect.bottom() {
        for pixel in content.row(y, rect.x, rect.width).as_chunks::<4>().0 {
            let pixel = u32::from_le_bytes(*pixel);
            (any, all) = (any | pixel, all & pixel);
        }
    }
    (channels.fourth(any) == channels.fourth(all)).then(|| channels.fourth(all))
}

fn split_row<const PIXEL: usize>(row: &[u8], channels: Channels, samples: &mut Samples) {
    for (x, colour) in crate::palette::colours::<PIXEL>(row).enumerate() {
        let split = channels.split(colour);
        for (channel, sample) in samples.row.iter_mut().zip(split) {
            channel[x] = sample;
        }
    }
}

/// What is left of a row, sample by sample.
fn residuals(above: &[i16], row: &[i16], mut each: impl FnMut(i16)) {
    each(row[0] - above[0]);
    for x in 1..row.len() {
        each(row[x] - median(row[x - 1], above[x], above[x - 1]));
    }
}

/// As [`residuals`], a byte each.
fn byte_residuals(above: &[i16], row: &[i16], mask: i16, plane: &mut Vec<u8>) {
    let length = row.len();
    plane.push(((row[0] - above[0]) & mask) as u8);
    let (left, row) = (&row[..length - 1], &row[1..]);
    let (corner, above) = (&above[..length - 1], &above[1..]);
    let around = left.iter().zip(above).zip(corner);
    plane.extend(
        row.iter().zip(around).map(|(sample, ((left, above), corner))| {
            ((sample - median(*left, *above, *corner)) & mask) as u8
        }),
    );
}

fn median(left: i16, above: i16, corner: i16) -> i16 {
    let (low, high) = (left.min(above), left.max(above));
    (left + above - corner).min(high).max(low)
}

/// Small differences of either sign to small numbers.
fn fold(residual: i16, mask: i16) -> i16 {
    let half = mask / 2 + 1;
    let signed = ((residual + half) & mask) - half;
    if signed < 0 { -2 * signed - 1 } else { 2 * signed }
}

fn unfold(folded: i16) -> i16 {
    if folded & 1 == 0 { folded >> 1 } else { -(folded >> 1) - 1 }
}

/// Where the residuals of a picture lie.
pub(crate) struct Residuals<'a> {
    /// As [`Planes`]; those that are not there are empty.
    pub(crate) planes: [&'a [u8]; 7],
    /// The fourth channel if it is the same everywhere.
    pub(crate) constant: Option<u8>,
}

/// Paints a picture. The planes have a byte for each pixel of `rect`, which lies inside the content.
pub(crate) fn restore(content: &mut Content, rect: Rect, samples: &mut Samples, residuals: &Residuals<'_>) {
    let channels = Channels::of(content.format());
    if channels.are_bytes() {
        let [green, low, high, _, _, _, fourth] = residuals.planes;
        let planes = [green, low, high, fourth];
        return octets::restore(content, rect, &mut samples.bytes, planes, residuals.constant);
    }
    let width = rect.width as usize;
    samples.start(width);
    if let Some(fourth) = residuals.constant {
        samples.row[3].fill(i16::from(fourth));
        samples.above[3].fill(i16::from(fourth));
    }
    for y in rect.y..rect.bottom() {
        let start = (y - rect.y) as usize * width;
        let planes = residuals.planes.map(|plane| plane.get(start..start + width).unwrap_or_default());
        if channels.is_deep() {
            restore_deep(samples, planes, channels.mask(0) as i16);
        } else {
            let masks = [0, 1, 2].map(|channel| channels.mask(channel) as i16);
            restore_three(samples, [planes[0], planes[1], planes[2]], masks);
        }
        if residuals.constant.is_none() {
            restore_one(samples, 3, planes[FOURTH], channels.mask(3) as i16);
        }
        let target = content.row_mut(y, rect.x, rect.width);
        match channels.has_fourth() {
            true => join_row::<4>(samples, channels, target),
            false => join_row::<2>(samples, channels, target),
        }
        std::mem::swap(&mut samples.above, &mut samples.row);
    }
}

/// The three colours of a row at once: each sample waits for the one before it, but not for the other colours.
fn restore_three(samples: &mut Samples, planes: [&[u8]; 3], masks: [i16; 3]) {
    let [above0, above1, above2, _] = &samples.above;
    let [row0, row1, row2, _] = &mut samples.row;
    let mut left = [above0[0], above1[0], above2[0]];
    let mut corner = left;
    let sources = planes[0].iter().zip(planes[1]).zip(planes[2]);
    let above = above0.iter().zip(above1).zip(above2);
    let targets = row0.iter_mut().zip(row1).zip(row2);
    for ((((r0, r1), r2), ((a0, a1), a2)), ((t0, t1), t2)) in sources.zip(above).zip(targets) {
        let (residual, above) = ([*r0, *r1, *r2], [*a0, *a1, *a2]);
        for index in 0..3 {
            let predicted = median(left[index], above[index], corner[index]);
            left[index] = (predicted + i16::from(residual[index])) & masks[index];
        }
        corner = above;
        (*t0, *t1, *t2) = (left[0], left[1], left[2]);
    }
}

fn restore_one(samples: &mut Samples, channel: usize, plane: &[u8], mask: i16) {
    let (above, row) = (&samples.above[channel], &mut samples.row[channel]);
    let (mut left, mut corner) = (above[0], above[0]);
    for ((residual, above), target) in plane.iter().zip(above).zip(row) {
        left = (median(left, *above, corner) + i16::from(*residual)) & mask;
        corner = *above;
        *target = left;
    }
}

fn restore_deep(samples: &mut Samples, planes: [&[u8]; 7], mask: i16) {
    for channel in 0..3 {
        let (above, row) = (&samples.above[channel], &mut samples.row[channel]);
        let (mut left, mut corner) = (above[0], above[0]);
        let sources = planes[channel].iter().zip(planes[channel + 3]);
        for (((low, high), above), target) in sources.zip(above).zip(row) {
            let residual = unfold((i16::from(*high) << 8 | i16::from(*low)) & mask);
            left = (median(left, *above, corner) + residual) & mask;
            corner = *above;
            *target = left;
        }
    }
}

fn join_row<const PIXEL: usize>(samples: &Samples, channels: Channels, target: &mut [u8]) {
    let [green, low, high, fourth] = &samples.row;
    for (x, pixel) in target.as_chunks_mut::<PIXEL>().0.iter_mut().enumerate() {
        let colour = channels.join([green[x], low[x], high[x], fourth[x]]).to_le_bytes();
        pixel.copy_from_slice(&colour[..PIXEL]);
    }
}
