//! The room that a page has for windows: its only output.
//!
//! Plain values. Invariant: sides in units and in pixels are from 1 to 2¹⁴, and the scale is from 1 to 4.

use wayferry_message::snapshot::{Mode, Output};

/// Size and scale of the part of a page that windows fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    width: i32,
    height: i32,
    scale: u32,
}

impl Area {
    /// Width and height in units; `scale` is how many pixels there are for a unit, in 120ths. What is out of range
    /// becomes the nearest that is not.
    pub fn new(width: u32, height: u32, scale: u32) -> Self {
        let scale = scale.clamp(SCALE_ONE, MAX_SCALE * SCALE_ONE);
        let most = MAX_SIDE * SCALE_ONE / scale;
        // At most 2¹⁴.
        let side = |side: u32| side.clamp(1, most) as i32;
        Self { width: side(width), height: side(height), scale }
    }

    /// Width and height in units.
    pub fn size(self) -> (i32, i32) {
        (self.width, self.height)
    }

    /// Pixels for a unit, in 120ths.
    pub fn scale(self) -> u32 {
        self.scale
    }

    pub(crate) fn output(self, global: u32) -> Output {
        let pixels = |side: i32| (side.unsigned_abs() * self.scale / SCALE_ONE) as i32;
        let (width, height) = (pixels(self.width), pixels(self.height));
        Output {
            global,
            make: "wayferry".to_owned(),
            model: "page".to_owned(),
            modes: vec![Mode { flags: CURRENT_AND_PREFERRED, width, height, refresh: REFRESH }],
            // At most 4.
            scale: self.scale.div_ceil(SCALE_ONE) as i32,
            name: "PAGE-1".to_owned(),
            description: "A page in a browser".to_owned(),
            logical: (0, 0, self.width, self.height),
            ..Output::default()
        }
    }
}

impl Default for Area {
    fn default() -> Self {
        Self::new(1280, 800, SCALE_ONE)
    }
}

const SCALE_ONE: u32 = 120;
/// Pixels for a unit.
const MAX_SCALE: u32 = 4;
/// Pixels of a side: no content is larger.
const MAX_SIDE: u32 = 1 << 14;

/// `wl_output.mode`.
const CURRENT_AND_PREFERRED: u32 = 3;
/// mHz. A page is not told how fast its screen is.
const REFRESH: i32 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_has_the_pixels_of_its_area() {
        let output = Area::new(1000, 600, 180).output(7);
        let mode = output.modes[0];
        assert_eq!((mode.width, mode.height, output.scale), (1500, 900, 2));
        assert_eq!((output.logical, output.global), ((0, 0, 1000, 600), 7));
    }

    #[test]
    fn what_is_out_of_range_becomes_the_nearest() {
        assert_eq!(Area::new(0, u32::MAX, 0), Area { width: 1, height: 1 << 14, scale: 120 });
        assert_eq!(Area::new(5, u32::MAX, u32::MAX), Area { width: 5, height: 1 << 12, scale: 480 });
    }
}
