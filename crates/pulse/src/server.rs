//! All clients, and what is mixed of them.

use std::time::Duration;

use wayferry_audio::{CHANNELS, FrameSize};
use wayferry_proto::Time;

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// See the crate.
#[derive(Debug, Default)]
pub struct Server {
    clients: u32,
}

impl Server {
    /// Without clients.
    pub fn new() -> Self {
        Self::default()
    }

    /// A program connected; `None` if there are too many.
    pub fn connect(&mut self) -> Option<ClientId> {
        self.clients += 1;
        Some(ClientId(self.clients))
    }

    /// The caller lost the connection.
    pub fn disconnect(&mut self, client: ClientId) {
        let _ = client;
    }

    /// Bytes came from a client, as many as its socket gave.
    pub fn receive(&mut self, now: Time, client: ClientId, bytes: &[u8]) {
        let _ = (now, client, bytes);
    }

    /// What is to be written to a client; [`Self::written`] takes it away.
    pub fn unwritten(&self, client: ClientId) -> &[u8] {
        let _ = client;
        &[]
    }

    /// So many bytes of [`Self::unwritten`] were written.
    pub fn written(&mut self, client: ClientId, bytes: usize) {
        let _ = (client, bytes);
    }

    /// Whether its socket is to be read: not while it leaves its answers unread, or its sound is not played yet.
    pub fn is_read(&self, client: ClientId) -> bool {
        let _ = client;
        true
    }

    /// Why a client's connection is to be closed, once all has been written.
    pub fn end(&self, client: ClientId) -> Option<&str> {
        let _ = client;
        None
    }

    /// Whether a stream is playing, so that [`Self::mix`] is to be called every 10 ms.
    pub fn is_playing(&self) -> bool {
        false
    }

    /// Mixes the next 10 ms, and lets clients send as much more.
    pub fn mix(&mut self, now: Time, out: &mut [f32; FrameSize::Ms10.frames() * CHANNELS]) {
        let _ = now;
        out.fill(0.0);
    }

    /// How long sound takes from [`Self::mix`] until it is heard; clients are told.
    pub fn set_latency(&mut self, latency: Duration) {
        let _ = latency;
    }
}
