//! The session between the two halves of Wayferry, without any I/O.
//!
//! A [`Session`] takes what a carrier received ([`Arrival`]) and the time, and gives what the carrier is to send
//! ([`Transmit`]), what the caller should know ([`Event`]) and when it wants to be woken. It multiplexes prioritised
//! channels, each a stream of the carrier with a short typed header, or frames inside the main channel where streams
//! are not to be had. It knows no sockets, no clock, no threads, no randomness, no Wayland and no pixels.
//!
//! The run loop, in this order until nothing is left: [`Session::receive`] for each arrival, [`Session::on_timeout`]
//! when [`Session::next_timeout`] has passed, [`Session::poll_event`] until `None`, then [`Session::poll_transmit`]
//! until `None`. The one invariant: nothing of one channel can stall or corrupt another, and everything that the peer
//! can make this side store has a named limit.

pub mod admission;
mod assembler;
mod candidate;
mod carrier;
mod channel;
mod clock;
mod control;
mod error;
pub mod fence;
mod file;
mod joint;
pub mod note;
mod parse;
mod places;
mod rebuild;
mod receipt;
mod session;
pub mod succession;
mod time;
pub mod tray;
pub mod trunk;
pub mod wire;

pub use candidate::Candidate;
pub use carrier::{Arrival, LinkState, Transmit};
pub use channel::{
    ChannelId, Class, ConnectionId, Header, JointHeader, Kind, Kinds, Label, MAX_BLOB, MAX_COVERED, MAX_EDGE,
    MAX_HEADER, MAX_JOINT, MAX_ROW, MAX_ROW_DATAGRAM, MAX_ROWS, MAX_SOUND, Priority, RemoteChannelId,
    RepairHeader, Route, Side, StreamId, SurfaceId, UnitHead, UpdateHeader, UpdateSeq, route,
};
pub use clock::ClockMap;
pub use control::{
    Capabilities, Compression, Control, Digest, Hello, Listen, MAX_CONTROL, MAX_ERROR_TEXT, MAX_MESSAGE,
    MAX_SNAPSHOT, MAX_SOFTWARE, MAX_STOPPED, MAX_URL, Resume, Secret, SessionId, UrlFate, Versions,
};
pub use error::{CloseReason, ClosedBy, Error, MAX_REASON, sanitise};
pub use file::{FILES, FileFate, FileOffer, MAX_FILE_NAME, MAX_FILE_PATH};
pub use note::{Note, NoteAction, NoteEnd, Urgency};
pub use places::{Places, Source};
pub use receipt::{Delivered, MAX_OPEN, MAX_RANGES, Receipt};
pub use session::{
    Config, Event, Limits, Loss, MAX_CHUNK, MAX_CHUNKS, MAX_FLUSH, MAX_SECRETS, MAX_UPDATE, PIPE_WINDOW,
    Repair, RepairCounts, SMALL_UPDATE, STREAM_CANCELLED, STREAM_REFUSED, Session, Worth,
};
pub use time::{HostTime, Time};
pub use tray::{
    TrayAct, TrayCategory, TrayEntry, TrayIcon, TrayItem, TrayMenu, TrayPicture, TrayStatus, TrayToggle,
};
pub use wayferry_fec::LossPrior;
