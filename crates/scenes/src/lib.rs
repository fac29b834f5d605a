//! Deterministic screen contents and plain codecs, to measure the pixel codec by.
//!
//! A [`Scene`] plays one of a few [`Sequence`]s: what a program would paint, commit after commit, with the damage that
//! it would give. Everything is made from a seed, fonts and photographs too, so that two machines measure the same
//! bytes. [`codec`] holds the codecs that ours is compared with, written from what is publicly said about their kind.
//!
//! Nothing here knows Wayland, the network, our own codec or the time. Formats other than XRGB8888 do not occur.
//!
//! The one invariant: a frame depends on the sequence, the seed and its number alone, and differs from the frame before
//! it inside its damage only.

mod canvas;
pub mod codec;
mod font;
mod picture;
mod random;
mod scene;
mod sequence;
mod statistics;
mod text;

pub use canvas::{Canvas, Color, Rect};
pub use picture::photograph;
pub use scene::{Frame, Scene, Scroll};
pub use sequence::Sequence;
pub use statistics::{Digest, Statistics, changed};
