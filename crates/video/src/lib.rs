//! Moving pictures: H.264 of a region of a surface, there and back.
//!
//! A region that changes as a whole, all the time, costs too much without loss. The side that has the pixels keeps one
//! [`Encoder`] per region and makes a [`Frame`] of each picture; the other side keeps a [`Decoder`] of the same
//! [`Size`], feeds it the frames in their order and gets [`Picture`]s. Both are OpenH264, built from its source, or,
//! with the feature `ffmpeg`, FFmpeg's libavcodec where that can make and take the same streams.
//!
//! Where something else decodes, as a browser does for its pages, a [`Gate`] says of each frame whether it may see it,
//! and what it gives is a picture once it is [`Decoded`]. That is all there is without the feature `openh264`, and it
//! needs no C++.
//!
//! This crate knows no Wayland and no network, which regions are videos, or when to send: the caller numbers the
//! frames, says how many bits a frame may take, and asks for a key frame when one was lost. No frame waits for another:
//! there are no B frames, one reference, no threads and no clock.
//!
//! The invariant: a picture is given only when every frame since its key frame has been decoded without a fault, so
//! what is shown is what the encoder has made, or nothing.

#![cfg_attr(
    not(feature = "openh264"),
    allow(dead_code, reason = "what both ways need has parts that encoders alone call")
)]

mod bits;
#[cfg(feature = "ffmpeg")]
mod codec;
mod color;
#[cfg(feature = "openh264")]
mod decode;
mod elsewhere;
#[cfg(feature = "openh264")]
mod encode;
mod error;
#[cfg(feature = "ffmpeg")]
mod ffmpeg;
#[cfg(feature = "openh264")]
mod in_use;
#[cfg(feature = "openh264")]
mod native;
mod picture;
mod planes;
mod size;
mod stream;

#[cfg(all(feature = "openh264", not(feature = "ffmpeg")))]
use native as codec;

#[cfg(all(test, feature = "ffmpeg"))]
#[path = "../tests/video/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod video;

pub use color::Order;
#[cfg(feature = "openh264")]
pub use decode::Decoder;
pub use elsewhere::{Decoded, Gate, Layout};
#[cfg(feature = "openh264")]
pub use encode::{Encoder, Frame, Quality, Rate};
pub use error::Error;
#[cfg(feature = "openh264")]
pub use in_use::{InUse, choose_encoder, encoder_in_use, look_for_encoder};
pub use picture::Picture;
pub use size::{MAX_PIXELS, MAX_SIDE, Size};
pub use stream::Kind;
