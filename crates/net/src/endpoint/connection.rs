//! A connection.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::{Drain, Failure, PathInfo, ReceiveStream, SendStream, Stats};

/// A QUIC connection, or the one WebTransport session of one. Clones share it, but each waits for itself. It is closed with
/// code 0 when the last clone and the last of its streams is dropped.
///
/// What waits is woken by the waker of the last poll of its kind on this clone.
#[derive(Clone, Debug)]
pub struct Connection {}

impl Connection {
    /// Opens a stream to send on. Waits until the peer permits one more.
    pub fn poll_open_uni(&mut self, _cx: &mut Context<'_>) -> Poll<Result<SendStream, Failure>> {
        unimplemented!()
    }

    /// Opens a stream both ways. Waits until the peer permits one more.
    pub fn poll_open_bi(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, ReceiveStream), Failure>> {
        unimplemented!()
    }

    /// The next stream that the peer opened to send on. Those that came before the connection's end are still given.
    pub fn poll_accept_uni(&mut self, _cx: &mut Context<'_>) -> Poll<Result<ReceiveStream, Failure>> {
        unimplemented!()
    }

    /// The next stream that the peer opened both ways. Those that came before the connection's end are still given.
    pub fn poll_accept_bi(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, ReceiveStream), Failure>> {
        unimplemented!()
    }

    /// The next datagram. Those that came before the connection's end are still given.
    pub fn poll_datagram(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Bytes, Failure>> {
        unimplemented!()
    }

    /// Sends the datagram in `data`, which is empty afterwards. While this is pending the datagram is kept here too: poll
    /// again with it, or [`Connection::cancel_send_datagram`].
    pub fn poll_send_datagram(
        &mut self,
        _cx: &mut Context<'_>,
        _data: &mut Option<Bytes>,
    ) -> Poll<Result<(), Failure>> {
        unimplemented!()
    }

    /// Gives up the datagram that [`Connection::poll_send_datagram`] waits with.
    pub fn cancel_send_datagram(&mut self) {
        unimplemented!()
    }

    /// Sends a datagram if there is room for it now; whether there was.
    pub fn try_send_datagram(&self, data: Bytes) -> Result<bool, Failure> {
        let _ = data;
        unimplemented!()
    }

    /// Bytes that a datagram may have now. `None`: one of the sides does not do them.
    pub fn max_datagram_size(&self) -> Option<usize> {
        unimplemented!()
    }

    /// Whether the peer took the early data; known when the handshake is over. Without early data it is `false`. May be
    /// polled again, also after a failure.
    pub fn poll_early_data_accepted(&self, _cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        unimplemented!()
    }

    /// Whether the handshake was still going on when this was handed out.
    pub fn is_early(&self) -> bool {
        unimplemented!()
    }

    /// Why the connection is over, as soon as it is. May be polled again.
    pub fn poll_closed(&mut self, _cx: &mut Context<'_>) -> Poll<Failure> {
        unimplemented!()
    }

    /// Why the connection is over, if it is.
    pub fn close_reason(&self) -> Option<Failure> {
        unimplemented!()
    }

    /// Closes the connection; what was not acknowledged may be lost. A second close changes nothing.
    ///
    /// `code` is at most 2^62 − 1 (WebTransport: 2^32 − 1); a larger one counts as that.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let _ = (code, reason);
        unimplemented!()
    }

    /// Completes when the peer has acknowledged everything of the streams that were finished before.
    pub fn drain(&self) -> Drain {
        unimplemented!()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// Its network paths; one, as multipath is not used.
    pub fn paths(&self) -> Vec<PathInfo> {
        unimplemented!()
    }

    /// Goes on from another local address (RFC 9000 §9). The side that connected may do that.
    ///
    /// # Errors
    /// [`Failure::Config`] on the other side, [`Failure::Io`] when the address cannot be had.
    pub fn rebind(&self, address: SocketAddr) -> Result<(), Failure> {
        let _ = address;
        unimplemented!()
    }

    /// Changes the keys of what is sent (RFC 9001 §6). Nothing happens while an earlier change is under way.
    pub fn update_keys(&self) {
        unimplemented!()
    }

    /// Bytes that both sides, and nobody else, derive from the handshake (RFC 8446 §7.5).
    ///
    /// # Errors
    /// [`Failure::Config`] before the handshake is complete, and for more bytes than there are.
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        length: usize,
    ) -> Result<Vec<u8>, Failure> {
        let _ = (label, context, length);
        unimplemented!()
    }

    /// Where the peer is, or was last.
    pub fn remote_address(&self) -> SocketAddr {
        unimplemented!()
    }

    /// Where this side is: the bound address, as exactly as it is known.
    pub fn local_address(&self) -> SocketAddr {
        unimplemented!()
    }

    /// The peer's certificates in DER, its own first. Empty when it has shown none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        unimplemented!()
    }

    /// The application protocol that was agreed on.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        unimplemented!()
    }

    /// On the side that listens: the name that the client asked for.
    pub fn server_name(&self) -> Option<String> {
        unimplemented!()
    }

    /// Whether it is a WebTransport session.
    pub fn is_web(&self) -> bool {
        unimplemented!()
    }
}
