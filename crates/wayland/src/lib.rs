//! Both halves of the Wayland proxy.
//!
//! The app side ([`app`]) is the compositor of a program, the display side ([`display`]) a program of the compositor;
//! between them travel the messages of [`message`], pixels as updates, and little else. Everything protocol-specific
//! comes from two tables: the published interface descriptions ([`tables`]) and what each message means to a proxy
//! ([`policy`]).
//!
//! This crate opens no sockets, runs no loop and knows no transport: bytes, messages and time come in through calls,
//! and what a half wants done comes out as [`Action`]. Invariant: for any input of a program, a compositor or the other
//! half, only that one connection can end.

mod action;
pub mod app;
pub mod blob;
#[cfg_attr(not(feature = "video"), path = "codec/none.rs")]
#[cfg_attr(feature = "video", path = "codec/h264.rs")]
mod codec;
pub mod display;
pub mod encoder;
pub mod fuse;
mod mapping;
mod picture;
pub mod policy;
mod predicted;
mod session_management;
pub mod tables;
pub mod trace;
pub mod wire;
pub mod workers;

pub use action::{Action, DragStep, End, Piece, Update};
pub use predicted::PredictFigures;
pub use wayferry_message::{self as message, snapshot, value};

/// Whether videos can be made and shown: built with the feature `video`.
pub const HAS_VIDEO: bool = codec::IS_THERE;
