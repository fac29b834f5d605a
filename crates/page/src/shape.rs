//! How the pixels of a surface become what is to be seen.
//!
//! Plain values, checked when they are read. Invariant: no size that is computed here is negative.

use wayferry_pixels::Size;

/// How a surface's content is shown: turned by [`Self::transform`], of that the part [`Self::crop`], in the size
/// [`Self::destination`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pixels per unit of the surface, from 1.
    pub scale: i32,
    /// `wl_output.transform`: 0 to 7.
    pub transform: u8,
    /// x, y, width, height of the part that is shown, in 1/256 of a unit of the surface; all of it without.
    pub crop: Option<[i32; 4]>,
    /// Width and height of the surface; that of the pixels without.
    pub destination: Option<(i32, i32)>,
}

impl Shape {
    /// Of a surface that has just been made.
    pub const NEW: Self = Self { scale: 1, transform: 0, crop: None, destination: None };

    /// Width and height of a surface with so many pixels, in its own units.
    pub fn size(&self, pixels: Size) -> (i32, i32) {
        let part = self.crop.map(|[_, _, width, height]| (width.max(0) >> 8, height.max(0) >> 8));
        self.destination.or(part).unwrap_or_else(|| self.whole(pixels))
    }

    /// As [`Self::size`], were all of it shown in its own size.
    fn whole(&self, pixels: Size) -> (i32, i32) {
        // Sides are at most 2¹⁴.
        let sides = (pixels.width() as i32, pixels.height() as i32);
        // Turns by a quarter have odd numbers.
        let (width, height) = if self.transform % 2 == 1 { (sides.1, sides.0) } else { sides };
        (width / self.scale.max(1), height / self.scale.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_pixels_unless_it_is_told() {
        let pixels = Size::new(300, 200).unwrap();
        let shape = Shape { scale: 2, transform: 5, ..Shape::NEW };
        assert_eq!(Shape::NEW.size(pixels), (300, 200));
        assert_eq!(shape.size(pixels), (100, 150));
        let cropped = Shape { crop: Some([256, 0, 50 << 8, 40 << 8]), ..shape };
        assert_eq!(cropped.size(pixels), (50, 40));
        assert_eq!(Shape { destination: Some((7, 9)), ..cropped }.size(pixels), (7, 9));
    }
}
