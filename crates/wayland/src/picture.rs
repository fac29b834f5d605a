//! Pictures that are used outside surfaces (icons), packed into blobs: chunks as of an update that begins anew.
//!
//! A picture larger than [`MAX_SIDE`] stays where it is: there are no larger icons, and nothing depends on one.
//! Knows pixels and blobs, no Wayland messages. Invariant: `unpack(pack(content)) == content`; of what a peer packed, nothing
//! is opened beyond the size that it announced.

use wayferry_pixels::{Content, Decoder, Draft, Encoder, Format, Size};
use wayferry_proto::wire::{Reader, Writer};

/// Pixels of the longer side of a picture that crosses.
pub(crate) const MAX_SIDE: u32 = 1024;

/// Whether a picture of that size crosses.
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
        fn any_input_of_a_peer_unpacks_or_is_refused(blob in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&blob, Size::new(8, 8).unwrap(), Format::Argb8888);
        }
    }
}
