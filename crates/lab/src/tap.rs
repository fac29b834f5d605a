//! What crosses the link, looked at on its way: the demo's picture when the compositor is not ours to look at.
//!
//! It keeps a copy of each surface's content by applying the same updates. Invariant: it never disturbs what it looks
//! at; an update that does not apply is left out.

use std::collections::BTreeMap;

use bytes::Bytes;
use wayferry_pixels::{Content, Decoder, Format, Size, convert, video};
use wayferry_proto::{ConnectionId, SurfaceId, UpdateHeader};
use wayferry_stage::Image;

/// Copies of the surfaces' contents.
pub(crate) struct Tap {
    decoder: Decoder,
    contents: BTreeMap<(ConnectionId, SurfaceId), Content>,
}

impl Tap {
    /// Nothing seen yet.
    pub(crate) fn new() -> Self {
        Self { decoder: Decoder::new(), contents: BTreeMap::new() }
    }

    /// Looks at an update.
    pub(crate) fn look(&mut self, header: &UpdateHeader, chunks: &[Bytes]) {
        let (Ok(size), Some(format)) =
            (Size::new(header.size.0, header.size.1), Format::from_code(header.format))
        else {
            return;
        };
        let key = (header.connection, header.surface);
        let kept = self
            .contents
            .get(&key)
            .is_some_and(|content| content.size() == size && content.format() == format);
        if header.fresh || !kept {
            self.contents.insert(key, Content::new(size, format));
        }
        let Some(content) = self.contents.get_mut(&key) else { return };
        // Videos are not looked at; they become exact when they rest.
        if let Ok((_, others)) = video::split(chunks, size) {
            let _ = self.decoder.apply(content, others);
        }
    }

    /// The largest surface that was seen.
    pub(crate) fn picture(&self) -> Option<Image> {
        let area = |content: &Content| u64::from(content.size().width()) * u64::from(content.size().height());
        let content = self.contents.values().max_by_key(|content| area(content))?;
        let (width, height) = (content.size().width(), content.size().height());
        let mut image = Image::new(width, height, 0);
        let mut row = vec![0; width as usize * 4];
        let opaque = if content.format().has_alpha() { 0 } else { 0xff00_0000 };
        for y in 0..height {
            convert::row(content.format(), content.row(y, 0, width), &mut row);
            for (pixel, bytes) in image.row_mut(y).iter_mut().zip(row.chunks_exact(4)) {
                *pixel = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) | opaque;
            }
        }
        Some(image)
    }
}
