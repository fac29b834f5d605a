//! Moving pictures: H.264 of a region of a surface, there and back.
//!
//! A region that changes as a whole, all the time, costs too much without loss. The side that has the pixels keeps one
//! [`Encoder`] per region and makes a [`Frame`] of each picture; the other side keeps a [`Decoder`] of the same
//! [`Size`], feeds it the frames in their order and gets [`Picture`]s. Both are OpenH264, built from its source, or,
//! with the feature `ffmpeg`, FFmpeg's libavcodec where that can make and take the same streams.
//!
//! This crate knows no Wayland and no network, which regions are videos, or when to send: the caller numbers the
//! frames, says how many bits a frame may take, and asks for a key frame when one was lost. No frame waits for another:
//! there are no B frames, one reference, no threads and no clock.
//!
//! The invariant: a picture is given only when every frame since its key frame has been decoded without a fault, so
//! what is shown is what the encoder has made, or nothing.

mod bits;
#[cfg(feature = "ffmpeg")]
mod codec;
mod color;
mod decode;
mod encode;
mod error;
#[cfg(feature = "ffmpeg")]
mod ffmpeg;
mod native;
mod planes;
mod size;
mod stream;

#[cfg(not(feature = "ffmpeg"))]
use native as codec;

#[cfg(all(test, feature = "ffmpeg"))]
#[path = "../tests/video/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod video;

/// What makes H.264 on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Its name, as libavcodec's or `openh264`.
    pub name: &'static str,
    /// Whether it has ever been seen to work: those of GPUs have not.
    pub tried: bool,
}

/// Looks for the encoder that will be used, with the feature `ffmpeg` for a second perhaps. The first frame waits for
/// that if it was not done before.
pub fn look_for_encoder() {
    codec::look();
}

/// The encoder in use, once it has been looked for.
#[must_use]
pub fn encoder_in_use() -> Option<InUse> {
    codec::in_use()
}

/// Uses this encoder, or OpenH264 if it does not work on this machine, in place of the first that does. Of use before
/// the first frame only. Says whether there is one of that name.
#[must_use]
pub fn choose_encoder(name: &str) -> bool {
    codec::choose(name)
}

pub use color::Order;
pub use decode::{Decoder, Picture};
pub use encode::{Encoder, Frame, Quality, Rate};
pub use error::Error;
pub use size::{MAX_PIXELS, MAX_SIDE, Size};
