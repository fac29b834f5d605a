//! Pixels from the peer.
//!
//! Input: width − 1, height − 1, format, then the chunk.

use wayferry_pixels::{Content, Decoder, Format, Size};

use crate::Input;

/// A chunk that is refused changes nothing; one that is applied changes only what it says, and the same again
/// when it comes a second time.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (width, height) = (u32::from(input.u8()) + 1, u32::from(input.u8()) + 1);
    let size = Size::new(width, height).expect("1 to 256 is a size");
    let format = Format::ALL[usize::from(input.u8()) % Format::ALL.len()];
    let mut content = Content::new(size, format);
    content.fill(&[0xA5; 4][..format.bytes_per_pixel()]);
    let before = content.clone();
    let mut decoder = Decoder::new();
    match decoder.apply(&mut content, input.0) {
        Err(_) => assert!(content.pixels() == before.pixels(), "refused, and yet painted"),
        Ok(region) => {
            for y in 0..height {
                for x in 0..width {
                    let inside = region.rects().iter().any(|rect| {
                        (rect.x..rect.right()).contains(&x) && (rect.y..rect.bottom()).contains(&y)
                    });
                    assert!(
                        inside || content.row(y, x, 1) == before.row(y, x, 1),
                        "painted outside of the region"
                    );
                }
            }
            let once = content.clone();
            let again = decoder.apply(&mut content, input.0);
            assert!(again.is_ok() && content.pixels() == once.pixels(), "not the same again");
        }
    }
}
