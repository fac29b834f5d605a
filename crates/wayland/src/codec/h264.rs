//! Films of surfaces, as H.264: between the pixels of a content and `wayferry-video`.
//!
//! It decides neither what is a film nor when a frame is due. Built without the feature `video`, `none.rs` is in its place.
//! Invariant: a decoder shows what the encoder of its stream has made, or fails.

use std::time::Duration;

use wayferry_pixels::{Content, Format, Rect};
use wayferry_video::{Order, Picture, Quality, Rate, Size};

/// Whether there is a codec.
pub(crate) const IS_THERE: bool = true;

/// Makes the frames of one film.
#[derive(Debug)]
pub(crate) struct Encoder(wayferry_video::Encoder);

impl Encoder {
    /// For a film there, as good as this at best; `None` if it cannot be made.
    pub(crate) fn new(rect: Rect, quality: u8) -> Option<Self> {
        let size = Size::new(rect.width, rect.height).ok()?;
        Some(Self(wayferry_video::Encoder::new(size, Quality::new(quality))))
    }

    /// The next frame, of so many bits per second when the next one comes after `interval`. `None` when the codec has none.
    pub(crate) fn frame(
        &mut self,
        content: &Content,
        rect: Rect,
        bits_per_second: u64,
        interval: Duration,
    ) -> Option<Vec<u8>> {
        let order = order(content.format())?;
        let row = |y| content.row(rect.y + y, rect.x, rect.width);
        let frame = self.0.encode(order, row, Rate { bits_per_second, interval }, false);
        frame.ok().flatten().map(|frame| frame.data)
    }
}

/// Shows the frames of one film.
#[derive(Debug)]
pub(crate) struct Decoder {
    codec: wayferry_video::Decoder,
    frames: u64,
}

impl Decoder {
    /// For a film there.
    pub(crate) fn new(rect: Rect) -> Result<Self, String> {
        let size = Size::new(rect.width, rect.height).map_err(|error| error.to_string())?;
        Ok(Self { codec: wayferry_video::Decoder::new(size), frames: 0 })
    }

    /// Decodes the next frame.
    pub(crate) fn decode(&mut self, data: &[u8]) -> Result<Shown<'_>, String> {
        self.frames += 1;
        self.codec.decode(self.frames, data).map(Shown).map_err(|error| error.to_string())
    }
}

/// A frame that was decoded.
#[derive(Debug)]
pub(crate) struct Shown<'a>(Picture<'a>);

impl Shown<'_> {
    /// Paints it at the corner of `rect`, which is as large; the fourth channel is `fourth`.
    pub(crate) fn paint(&self, content: &mut Content, rect: Rect, fourth: u8) {
        let Some(order) = order(content.format()) else { return };
        self.0.rows(order, fourth, |y, row| content.write_row(rect.y + y, rect.x, row));
    }
}

/// Whether there are films in contents of this format.
pub(crate) fn shows(format: Format) -> bool {
    order(format).is_some()
}

fn order(format: Format) -> Option<Order> {
    match format {
        Format::Argb8888 | Format::Xrgb8888 => Some(Order::Bgrx),
        Format::Abgr8888 | Format::Xbgr8888 => Some(Order::Rgbx),
        _ => None,
    }
}
