//! Images read by zune-jpeg, which is Rust alone: where there is no C compiler, as for a browser.
//!
//! Its pixels differ from libjpeg-turbo's by a few values, which a lossy picture may.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::{Codec, Order};

/// See the module.
#[derive(Default)]
pub(super) struct Zune;

impl Codec for Zune {
    fn read(
        &mut self,
        jpeg: &[u8],
        (width, height): (usize, usize),
        order: Order,
        pixels: &mut [u8],
    ) -> bool {
        let colours = match order {
            Order::Bgr => ColorSpace::BGRA,
            Order::Rgb => ColorSpace::RGBA,
        };
        let options = DecoderOptions::default()
            .set_max_width(width)
            .set_max_height(height)
            .set_strict_mode(true)
            .jpeg_set_out_colorspace(colours);
        JpegDecoder::new_with_options(ZCursor::new(jpeg), options).decode_into(pixels).is_ok()
    }
}
