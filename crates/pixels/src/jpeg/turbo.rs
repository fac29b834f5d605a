//! Images read by libjpeg-turbo: the fastest.

use turbojpeg::{Image, PixelFormat};

use super::{Codec, Order};

/// See the module.
#[derive(Default)]
pub(super) struct Turbo {
    jpeg: Option<turbojpeg::Decompressor>,
}

impl Codec for Turbo {
    fn read(
        &mut self,
        jpeg: &[u8],
        (width, height): (usize, usize),
        order: Order,
        pixels: &mut [u8],
    ) -> bool {
        let format = match order {
            Order::Bgr => PixelFormat::BGRX,
            Order::Rgb => PixelFormat::RGBX,
        };
        if self.jpeg.is_none() {
            self.jpeg = turbojpeg::Decompressor::new().ok();
        }
        let image = Image { pixels, width, pitch: width * 4, height, format };
        self.jpeg.as_mut().is_some_and(|reader| reader.decompress(jpeg, image).is_ok())
    }
}
