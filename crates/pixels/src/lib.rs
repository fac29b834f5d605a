//! Surface content: damage, comparison, chunk codec, apply.
//!
//! The app side keeps one [`Draft`] per surface. [`Draft::absorb`] reads the damaged part of a new buffer,
//! keeps what differs and what was there before; an [`Encoder`] turns all that into the chunks of an update.
//! The display side keeps a [`Content`] of the same size and format and feeds it the chunks of one update
//! after the other, those of each in any order, through a [`Decoder`]. [`map`] turns surface damage into
//! buffer damage and [`convert`] rewrites rows for compositors that lack a format.
//!
//! Updates have three kinds of parts: copies of what the display has already, solid or few-coloured
//! rectangles, and pictures. Where a link is too slow for that at once, an update may show pictures, or everything,
//! lossily at first; [`Encoder::improve`] and [`Encoder::refine`] then say more, until all is exact. What changes all
//! the time crosses as a [`video`], by a codec of the caller's. This crate knows no Wayland objects, no sockets and no
//! streams; buffers are read through a callback and chunks are plain bytes. Nothing here waits, and no compressor
//! remembers anything: a chunk can be decoded without any other, from the content before its update. Those of videos
//! alone are not painted here.
//!
//! The one invariant: after every update has been applied, in sequence, the two contents are equal byte for
//! byte, the unused bits of pixels included, wherever the draft does not count them as lossy.
//!
//! Without the feature `encode` there are no drafts and no encoders, and nothing needs a C++ compiler: what a page in a
//! browser uses. Without `turbojpeg` lossy pictures are read by code that is Rust alone, a few values off.

#![cfg_attr(
    not(feature = "encode"),
    allow(dead_code, reason = "what both sides need has parts that encoders alone call")
)]

mod chunk;
mod classify;
#[cfg(feature = "encode")]
mod compose;
mod content;
pub mod convert;
mod decode;
#[cfg(feature = "encode")]
mod draft;
#[cfg(feature = "encode")]
mod encode;
mod error;
mod fidelity;
mod format;
mod geometry;
#[cfg(feature = "encode")]
mod hashes;
mod in_place;
mod jpeg;
#[cfg(feature = "encode")]
mod making;
pub mod map;
mod motion;
mod octets;
mod palette;
mod picture;
mod region;
#[cfg(feature = "encode")]
mod scroll;
mod shared;
mod streams;
mod tighten;
mod tiles;
#[cfg(feature = "encode")]
mod triage;
pub mod video;

pub use chunk::{MAX_CHUNK, MAX_CHUNK_BODY, MAX_CHUNK_COPIES, MAX_CHUNK_RECTS};
pub use content::{Content, Layout};
pub use decode::{Decoder, Opened};
#[cfg(feature = "encode")]
pub use draft::{Draft, Wants};
#[cfg(feature = "encode")]
pub use encode::{Compression, Encoder, Watch, Workspace};
pub use error::Error;
pub use format::Format;
pub use geometry::{MAX_PIXELS, MAX_SIDE, Rect, Size};
pub use motion::{MAX_VIDEOS, Video};
pub use region::{MAX_RECTS, Region};
pub use streams::Streams;
#[cfg(feature = "encode")]
pub use triage::Allowance;
