//! Surface content: damage, comparison, chunk codec, apply.
//!
//! The app side keeps one [`Content`] per surface. [`Content::absorb`] reads the damaged part of a
//! new buffer, keeps what differs and says where; an [`Encoder`] turns any such [`Region`] into
//! chunks. The display side keeps a `Content` of the same size and format and feeds it the chunks,
//! in any order, through a [`Decoder`]. [`map`] turns surface damage into buffer damage and
//! [`convert`] rewrites rows for compositors that lack a format.
//!
//! This crate knows no Wayland objects, no sockets and no streams; buffers are read through a
//! callback and chunks are plain bytes. Nothing here waits, and nothing here keeps history: a chunk
//! can be decoded without any other.
//!
//! The one invariant: after every chunk that was encoded for a region has been applied, the two
//! contents are equal byte for byte inside that region.

mod apply;
mod chunk;
mod content;
pub mod convert;
mod encode;
mod error;
mod format;
mod geometry;
pub mod map;
mod region;
mod tighten;

pub use apply::Decoder;
pub use chunk::{MAX_CHUNK, MAX_CHUNK_PIXELS, MAX_CHUNK_RECTS};
pub use content::{Content, Layout};
pub use encode::{Compression, Encoder, Watch};
pub use error::Error;
pub use format::Format;
pub use geometry::{MAX_PIXELS, MAX_SIDE, Rect, Size};
pub use region::{MAX_RECTS, Region};
