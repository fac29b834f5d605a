//! The session: handshake, channels, timers.
//!
//! It does not know what the messages of Wayland and event channels, chunks and snapshots mean. Invariant: after the
//! end, nothing is stored and nothing more comes out but [`Transmit::Close`] and [`Event::Closed`], once each.

mod config;
mod event;

use std::time::Duration;

use bytes::Bytes;

pub use config::{Config, Limits};
pub use event::Event;

use crate::{
    Arrival, ChannelId, ClockMap, CloseReason, Compression, Control, Error, Header, Hello, LinkState,
    RemoteChannelId, Time, Transmit, UpdateHeader,
};

/// Updates of fewer bytes go before larger ones.
pub const SMALL_UPDATE: usize = 16 << 10;

/// Largest chunk of an update in bytes: 64 KiB of pixels that did not compress, and room for what is around them.
pub const MAX_CHUNK: usize = (64 << 10) + 1024;

/// Most chunks of an update.
pub const MAX_CHUNKS: usize = 1 << 16;

/// Largest update in bytes. A surface can have more new pixels than that (1 GiB at most); they are sent as several
/// updates, and the unit waits for the last.
pub const MAX_UPDATE: usize = 320 << 20;

/// Bytes of a pipe that may be on their way or with a reader that has not taken them.
pub const PIPE_WINDOW: usize = 256 << 10;

/// One side of a session. See the crate's documentation for the run loop.
#[derive(Debug)]
pub struct Session {
    clock: ClockMap,
}

impl Session {
    /// Starts a session: the control stream and the hello are queued at once.
    pub fn new(_config: Config) -> Self {
        unimplemented!()
    }

    /// Takes what the carrier tells. A mistake of the peer refuses its stream or ends the session.
    pub fn receive(&mut self, _now: Time, _arrival: Arrival) {
        unimplemented!()
    }

    /// What the carrier has to do next. Poll until `None`: small messages queued meanwhile become one piece.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        unimplemented!()
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<Event> {
        unimplemented!()
    }

    /// When [`Session::on_timeout`] is to be called; `None` after the end. May change with every other call.
    pub fn next_timeout(&self) -> Option<Time> {
        unimplemented!()
    }

    /// Does what is due at `now`: pings, deadlines. Harmless when nothing is.
    pub fn on_timeout(&mut self, _now: Time) {
        unimplemented!()
    }

    /// Opens a long-lived channel ([`Header::Wayland`], [`Header::Events`], [`Header::Pipe`]) or one for a
    /// [`Header::Blob`]. May be called before the peer's hello: the channel then waits for it.
    ///
    /// # Panics
    /// For [`Header::Control`] and [`Header::Update`], and for a kind that this side does not open.
    pub fn open(&mut self, _header: Header) -> ChannelId {
        unimplemented!()
    }

    /// Sends a message of at most [`MAX_MESSAGE`](crate::MAX_MESSAGE) bytes on a Wayland or event channel. Does nothing
    /// when the channel is gone.
    ///
    /// # Errors
    /// The message is too long.
    pub fn send(&mut self, _channel: ChannelId, _message: &[u8]) -> Result<(), Error> {
        unimplemented!()
    }

    /// Appends raw bytes to a pipe or blob. Does nothing when the channel is gone. What exceeds
    /// [`Session::pipe_room`] waits here for the reader.
    pub fn write(&mut self, _channel: ChannelId, _bytes: Bytes) {
        unimplemented!()
    }

    /// Ends a channel after what has been sent on it. The handle is void afterwards.
    pub fn finish(&mut self, _channel: ChannelId) {
        unimplemented!()
    }

    /// Gives a channel up. The handle is void afterwards.
    pub fn reset(&mut self, _channel: ChannelId, _code: u32) {
        unimplemented!()
    }

    /// Does not want a channel of the peer any more. The handle is void afterwards; no event follows.
    pub fn stop(&mut self, _channel: RemoteChannelId, _code: u32) {
        unimplemented!()
    }

    /// The reader of a pipe has taken `bytes` more out of memory: the peer may send as many again.
    pub fn consumed(&mut self, _channel: RemoteChannelId, _bytes: usize) {
        unimplemented!()
    }

    /// How many bytes of a pipe can be on their way now; 0 when the channel is gone.
    pub fn pipe_room(&self, _channel: ChannelId) -> usize {
        unimplemented!()
    }

    /// Sends an update on a stream of its own and returns its length in bytes.
    ///
    /// # Errors
    /// It exceeds [`MAX_UPDATE`], [`MAX_CHUNKS`] or [`MAX_CHUNK`]; nothing is sent.
    pub fn send_update(&mut self, _header: UpdateHeader, _chunks: Vec<Vec<u8>>) -> Result<u64, Error> {
        unimplemented!()
    }

    /// Sends a message of the main channel: [`Control::Snapshot`], [`Control::AppClosed`] or [`Control::Exit`]. They go
    /// out even before the peer's hello has come.
    ///
    /// # Errors
    /// It is too long, or the session's own.
    pub fn control(&mut self, _message: Control) -> Result<(), Error> {
        unimplemented!()
    }

    /// Ends the session. What the carrier has not delivered may be lost: agree on the end first.
    pub fn close(&mut self, _reason: CloseReason) {
        unimplemented!()
    }

    /// The peer's hello, once it has come.
    pub fn peer(&self) -> Option<&Hello> {
        unimplemented!()
    }

    /// The protocol version in use, once the peer's hello has come.
    pub fn version(&self) -> Option<u32> {
        unimplemented!()
    }

    /// The first compression of our list that the peer understands; [`Compression::None`] when there is none.
    pub fn compression(&self) -> Compression {
        unimplemented!()
    }

    /// Maps times of the two hosts.
    pub fn clock(&self) -> &ClockMap {
        &self.clock
    }

    /// How long ago the peer was last heard.
    pub fn contact_age(&self, _now: Time) -> Duration {
        unimplemented!()
    }

    /// Whether the session is over.
    pub fn is_closed(&self) -> bool {
        unimplemented!()
    }

    /// How many bytes of content and bulk may be handed over now, so that no more than about one window of them waits
    /// in the carrier: max(window, 64 KiB) − unsent − what is queued here.
    pub fn content_budget(&self, _link: &LinkState) -> u64 {
        unimplemented!()
    }
}
