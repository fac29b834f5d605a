//! A few shapes for programs that want to look good: gradients, discs, rounded cards. All colours are opaque.

use crate::font::mix;
use crate::image::Image;

/// A vertical gradient over the whole picture.
pub(crate) fn gradient(image: &mut Image, top: u32, bottom: u32) {
    let last = image.height().saturating_sub(1).max(1);
    for y in 0..image.height() {
        let colour = mix(top, bottom, y * 255 / last);
        image.row_mut(y).fill(colour);
    }
}

/// A disc with a smooth edge.
pub(crate) fn disc(image: &mut Image, (x, y): (f64, f64), radius: f64, colour: u32) {
    let reach = radius.ceil() as i32 + 1;
    for row in y as i32 - reach..=y as i32 + reach {
        for column in x as i32 - reach..=x as i32 + reach {
            let distance = (f64::from(column) + 0.5 - x).hypot(f64::from(row) + 0.5 - y);
            cover(image, (column, row), colour, radius - distance + 0.5);
        }
    }
}

/// A rectangle with smooth round corners.
pub(crate) fn card(image: &mut Image, (x, y, width, height): (i32, i32, i32, i32), radius: i32, colour: u32) {
    image.fill_rect(x, y + radius, width, height - 2 * radius, colour);
    image.fill_rect(x + radius, y, width - 2 * radius, radius, colour);
    image.fill_rect(x + radius, y + height - radius, width - 2 * radius, radius, colour);
    for (left, top) in corners((x, y, width, height), radius) {
        for row in top..top + radius {
            for column in left..left + radius {
                let coverage = corner_coverage((x, y, width, height), radius, (column, row));
                cover(image, (column, row), colour, coverage);
            }
        }
    }
}

/// Lays `below` back over the corners of a rectangle of `image`, so that it looks round.
pub(crate) fn round_off(image: &mut Image, below: &Image, area: (i32, i32, i32, i32), radius: i32) {
    for (left, top) in corners(area, radius) {
        for row in top..top + radius {
            for column in left..left + radius {
                let coverage = corner_coverage(area, radius, (column, row));
                if let Some(pixel) = below.pixel(column as u32, row as u32) {
                    cover(image, (column, row), pixel, 1.0 - coverage);
                }
            }
        }
    }
}

/// The four squares that hold the corners' curves.
fn corners((x, y, width, height): (i32, i32, i32, i32), radius: i32) -> [(i32, i32); 4] {
    let (right, bottom) = (x + width - radius, y + height - radius);
    [(x, y), (right, y), (x, bottom), (right, bottom)]
}

/// How much of a pixel in a corner is inside of the curve; 1 and more is all of it.
fn corner_coverage(area: (i32, i32, i32, i32), radius: i32, (column, row): (i32, i32)) -> f64 {
    let (x, y, width, height) = area;
    let centre = |at: i32, start: i32, length: i32| {
        f64::from(at) + 0.5 - f64::from(at.clamp(start + radius, start + length - radius - 1)) - 0.5
    };
    let distance = centre(column, x, width).hypot(centre(row, y, height));
    f64::from(radius) - distance + 0.5
}

/// Draws a pixel by coverage, 0 to 1.
fn cover(image: &mut Image, (column, row): (i32, i32), colour: u32, coverage: f64) {
    let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) else { return };
    if let Some(below) = image.pixel(column, row) {
        image.set(column, row, mix(below, colour, (coverage.clamp(0.0, 1.0) * 255.0) as u32));
    }
}
