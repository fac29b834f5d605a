//! Frames of a video from the peer.
//!
//! Input: how far the number goes on, less one, and a frame behind its length in two bytes; so on to the end. The
//! region has 72 × 40 pixels.

use wayferry_video::{Decoder, Error, Order, Size};

use crate::Input;

/// The sides of the region.
pub const SIDES: (u32, u32) = (72, 40);

/// A picture has the region's size; after a fault there is none until a key frame, and none at all out of nothing.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut decoder = Decoder::new(Size::new(SIDES.0, SIDES.1).expect("a size"));
    let mut number = 0;
    while !input.is_empty() {
        number += u64::from(input.u8()) + 1;
        let length = usize::from(input.u16());
        let frame = input.take(length);
        let needed = decoder.needs_key();
        match decoder.decode(number, frame) {
            Ok(picture) => {
                let mut rows = 0;
                picture.rows(Order::Bgrx, 255, |y, row| {
                    assert_eq!((y, row.len()), (rows, SIDES.0 as usize * 4), "not the region's rows");
                    rows += 1;
                });
                assert_eq!(rows, SIDES.1, "not the region's height");
                let is_key = frame.get(4).is_some_and(|head| head & 0x1f == 7);
                assert!(is_key || !needed, "a picture out of nothing");
            }
            Err(error) => {
                assert!(!matches!(error, Error::Stale { .. }), "numbers only grow here");
                assert!(decoder.needs_key(), "goes on after {error}");
            }
        }
    }
}
