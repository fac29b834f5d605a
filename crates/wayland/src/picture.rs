//! Pictures that are used outside surfaces, packed as the chunks of an update that begins anew: icons in blobs, and
//! what a compositor was asked to copy of its screen.
//!
//! An icon larger than [`MAX_SIDE`] stays where it is: there are no larger ones, and nothing depends on one. Knows
//! pixels, no Wayland messages. Invariant: `unpack(pack(content)) == content`; of what a peer packed, nothing is opened
//! beyond the size that it announced.

use wayferry_pixels::{Content, Decoder, Draft, Encoder, Format, Size};
use wayferry_proto::Error;
use wayferry_proto::wire::{Reader, Writer};

/// Pixels of the longer side of an icon that crosses.
pub(crate) const MAX_SIDE: u32 = 1024;

/// Whether an icon of that size crosses.
pub(crate) fn crosses(size: Size) -> bool {
    size.width() <= MAX_SIDE && size.height() <= MAX_SIDE
}

/// The blob for a content.
pub(crate) fn pack(encoder: &mut Encoder, content: Content) -> Vec<u8> {
    let mut draft = Draft::new(content.size(), content.format());
    draft.replace(content);
    let mut out = Writer::new();
    for chunk in encoder.encode(&mut draft) {
        out.bytes(&chunk);
    }
    out.into_vec()
}

/// The content of a blob.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn unpack(blob: &[u8], size: Size, format: Format) -> Result<Content, String> {
    let mut reader = Reader::new(blob);
    let mut chunks = Vec::new();
    while reader.remaining() > 0 {
        if chunks.len() >= wayferry_proto::MAX_CHUNKS {
            return Err("too many chunks".to_owned());
        }
        let chunk = reader.bytes(wayferry_proto::MAX_CHUNK, "a chunk");
        chunks.push(chunk.map_err(|error| error.to_string())?);
    }
    let mut content = Content::new(size, format);
    Decoder::new().apply(&mut content, &chunks).map_err(|error| error.to_string())?;
    Ok(content)
}

/// Comes behind the chunks of a picture that comes in pieces, one of which may have none: an empty chunk.
pub(crate) const LAST: &[u8] = &[0];

/// A picture that comes in pieces, each of which is opened when it is there.
#[derive(Debug)]
pub(crate) struct Unpacker {
    content: Content,
    decoder: Decoder,
    /// The beginning of a chunk.
    rest: Vec<u8>,
    is_whole: bool,
}

impl Unpacker {
    /// For a picture of this size and format.
    pub(crate) fn new(size: Size, format: Format) -> Self {
        Self {
            content: Content::new(size, format),
            decoder: Decoder::new(),
            rest: Vec::new(),
            is_whole: false,
        }
    }

    /// Another piece.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), String> {
        self.rest.extend_from_slice(piece);
        let mut reader = Reader::new(&self.rest);
        let mut opened = 0;
        loop {
            match reader.bytes(wayferry_proto::MAX_CHUNK, "a chunk") {
                Ok(_) if self.is_whole => return Err("a chunk behind the last".to_owned()),
                Ok(chunk) => {
                    if chunk.is_empty() {
                        self.is_whole = true;
                    } else {
                        self.decoder.apply(&mut self.content, [chunk]).map_err(|error| error.to_string())?;
                    }
                    opened = self.rest.len() - reader.remaining();
                }
                Err(Error::Truncated { .. }) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        self.rest.drain(..opened);
        Ok(())
    }

    /// The picture, if it is whole.
    pub(crate) fn finish(self) -> Option<Content> {
        (self.rest.is_empty() && self.is_whole).then_some(self.content)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wayferry_pixels::Compression;

    use super::*;

    proptest! {
        #[test]
        fn a_picture_is_unpacked_as_it_was_packed(side in 1u32..40, pixels in proptest::collection::vec(any::<u32>(), 1..50)) {
            let size = Size::new(side, side).unwrap();
            let mut content = Content::new(size, Format::Argb8888);
            let mut pixels = pixels.into_iter().cycle();
            for y in 0..side {
                let row: Vec<u8> = pixels.by_ref().take(side as usize).flat_map(u32::to_le_bytes).collect();
                content.write_row(y, 0, &row);
            }
            let blob = pack(&mut Encoder::new(Compression::Lz4), content.clone());
            let unpacked = unpack(&blob, size, Format::Argb8888).unwrap();
            prop_assert_eq!(unpacked.pixels(), content.pixels());
            let other = unpack(&blob[..blob.len() / 2], size, Format::Argb8888);
            prop_assert!(other.is_err() || other.unwrap().pixels() != content.pixels());
        }

        #[test]
        fn pieces_make_the_same_picture(pixels in proptest::collection::vec(any::<u32>(), 900), cut in 1usize..500) {
            let size = Size::new(30, 30).unwrap();
            let mut content = Content::new(size, Format::Argb8888);
            for (y, row) in (0..).zip(pixels.chunks(30)) {
                let row: Vec<u8> = row.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
                content.write_row(y, 0, &row);
            }
            let blob = [&pack(&mut Encoder::new(Compression::Lz4), content.clone())[..], LAST].concat();
            let mut unpacker = Unpacker::new(size, Format::Argb8888);
            for piece in blob.chunks(cut) {
                prop_assert_eq!(unpacker.push(piece), Ok(()));
            }
            prop_assert_eq!(unpacker.finish().map(|whole| whole.pixels().to_vec()), Some(content.pixels().to_vec()));
            let mut short = Unpacker::new(size, Format::Argb8888);
            prop_assert!(short.push(&blob[..blob.len() - 1]).is_err() || short.finish().is_none());
        }

        #[test]
        fn any_input_of_a_peer_unpacks_or_is_refused(blob in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&blob, Size::new(8, 8).unwrap(), Format::Argb8888);
            let _ = Unpacker::new(Size::new(8, 8).unwrap(), Format::Argb8888).push(&blob);
        }
    }
}
