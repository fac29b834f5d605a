//! What a half asks of the run loop around it.
//!
//! Both halves are state machines that never touch a socket or the session; everything that has to leave them is
//! an [`Action`]. The run loop performs actions in the order in which it gets them.

use std::os::fd::OwnedFd;

use bytes::Bytes;
use wayferry_pixels::{Format, Size};
use wayferry_proto::{ConnectionId, SurfaceId, UnitHead, UpdateHeader, UpdateSeq, Worth};

/// One thing that a half wants done.
#[derive(Debug)]
pub enum Action {
    /// Send this encoded message on the connection's own channel.
    Message(Vec<u8>),
    /// Send new pixels of a surface on a stream of their own.
    Update(Update),
    /// Read `fd` and send its bytes on pipe channel `pipe` until the end of file; if the peer stops, close `fd`.
    PipeOut {
        /// Number of the pipe inside the connection.
        pipe: u64,
        /// Where the bytes come from.
        fd: OwnedFd,
    },
    /// Write to `fd` what arrives on pipe channel `pipe`; close it at the end; stop the channel when the reader is
    /// gone.
    PipeIn {
        /// Number of the pipe inside the connection.
        pipe: u64,
        /// Where the bytes go.
        fd: OwnedFd,
    },
    /// Hand over what arrives on pipe channel `pipe`, as [`Piece`]s.
    Collect {
        /// Number of the pipe inside the connection.
        pipe: u64,
    },
    /// Something has happened to what is dragged over the program's window: what it asks for as a list of addresses is
    /// the run loop's to give, on pipes. Only the display side does this.
    Drag {
        /// Number of the drag inside the connection.
        drag: u64,
        /// What has happened.
        step: DragStep,
    },
    /// Send this blob unless the session already has sent one with the same hash.
    Blob {
        /// Name of the content, see [`crate::blob`].
        hash: u128,
        /// The content.
        bytes: Vec<u8>,
    },
}

/// What happens to a drag.
#[derive(Debug)]
pub enum DragStep {
    /// Its list comes out of this pipe, from the program at the desk that gives it. The first step.
    List(OwnedFd),
    /// The program asks for the list on this pipe channel.
    Wanted {
        /// Number of the pipe inside the connection.
        pipe: u64,
    },
    /// The user has dropped it: the program hears of that with
    /// [`Connection::on_drag_ready`](crate::display::Connection::on_drag_ready).
    Dropped,
    /// It has left the window, or the program is through with it. The last step.
    Over,
}

/// What comes of a pipe that is collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These bytes, next.
    Bytes(Bytes),
    /// The end: that was all.
    Whole,
    /// The end: there is more, which does not come.
    Broken,
}

/// New pixels of one surface, on their way out.
#[derive(Debug, Clone)]
pub struct Update {
    /// The surface.
    pub surface: SurfaceId,
    /// Position among the updates of that surface, from 1.
    pub seq: UpdateSeq,
    /// Size of the whole content after the update, buffer pixels.
    pub size: Size,
    /// Pixel format of the content.
    pub format: Format,
    /// The content starts from zero pixels, not from the update before.
    pub fresh: bool,
    /// So many updates before it need not be there.
    pub covers: u8,
    /// The unit that shows it, if no message says that.
    pub unit: Option<UnitHead>,
    /// What it is to the user.
    pub worth: Worth,
    /// Encoded chunks, each decodable by itself.
    pub chunks: Vec<Vec<u8>>,
}

impl Update {
    /// What goes before its chunks, as an update of this connection.
    pub fn header(&self, connection: ConnectionId) -> UpdateHeader {
        UpdateHeader {
            connection,
            surface: self.surface,
            seq: self.seq,
            size: (self.size.width(), self.size.height()),
            format: self.format.code(),
            fresh: self.fresh,
            covers: self.covers,
            unit: self.unit,
        }
    }
}

/// Why a connection is over. The session and the other connections live on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The program, or the compositor, closed its socket.
    Closed,
    /// The program broke the Wayland protocol; it was told so with a `wl_display.error`.
    AppViolation(String),
    /// The compositor ended the connection or broke the protocol.
    CompositorError(String),
    /// The other half sent something malformed.
    PeerViolation(String),
    /// A named limit was hit.
    TooMuch(&'static str),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::AppViolation(what) => write!(f, "the program broke the Wayland protocol: {what}"),
            Self::CompositorError(what) => write!(f, "the compositor ended the connection: {what}"),
            Self::PeerViolation(what) => write!(f, "the other side sent a malformed message: {what}"),
            Self::TooMuch(limit) => write!(f, "limit exceeded: {limit}"),
        }
    }
}
