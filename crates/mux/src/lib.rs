//! Many streams on one stream of bytes: ssh's stdio, a Unix socket, a WebSocket of a page.
//!
//! [`Mux`] takes a session's transmits and the peer's bytes, and gives bytes and arrivals; what moves those is the
//! caller's. It authenticates no peer and closes nothing. Invariant: what a peer sends costs no more memory than one
//! frame and what it has opened.

mod backlog;
mod frame;
mod mux;
mod window;

pub use self::backlog::{Backlog, is_content};
pub use self::frame::MuxError;
pub use self::mux::{Mux, Output};
pub use self::window::Window;
