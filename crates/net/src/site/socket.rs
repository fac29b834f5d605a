//! WebSockets of a site's page: how one begins, and who may have one.
//!
//! A browser asks for it as RFC 6455 §4 has it. Its first message shows that the page was opened by a link that is
//! served here, by a digest that is made of the link's ticket and told nowhere else; until then nothing is opened behind
//! it. Invariant: all who cannot show that see the same end.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocket, WebSocketConfig};
use tungstenite::{Message, Utf8Bytes};
use wayferry_proto::Secret;

use super::relay::Relay;
use super::wire::Wire;
use crate::identity::sha256;
use crate::ticket::to_base64url;

/// Which pages may have one, and where it leads.
pub struct Sockets {
    proof: Secret,
    open: Box<dyn Fn(SocketAddr) -> io::Result<Road> + Send + Sync>,
}

/// A way to a session that takes a page on it.
pub struct Road {
    /// Carries bytes in both directions.
    pub socket: OwnedFd,
    /// What goes with it, as a program that has its other end.
    pub keeper: Box<dyn Send>,
}

impl Sockets {
    /// For pages that show this [`proof`]. `open` brings one whose browser is there to its session; it may take a
    /// while, and is called on a thread of its own.
    pub fn new(proof: Secret, open: impl Fn(SocketAddr) -> io::Result<Road> + Send + Sync + 'static) -> Self {
        Self { proof, open: Box::new(open) }
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

/// What a page shows that was opened with this ticket.
pub fn proof(ticket: &str) -> Secret {
    sha256(format!("{LABEL}{ticket}").as_bytes()).into()
}

/// What answers this key (RFC 6455 §4.2.2, 5.4).
pub(super) fn accept(key: &str) -> String {
    let algorithm = &ring::digest::SHA1_FOR_LEGACY_USE_ONLY;
    let digest = ring::digest::digest(algorithm, format!("{key}{GUID}").as_bytes());
    // Of 20 bytes, in the other alphabet.
    to_base64url(digest.as_ref()).replace('-', "+").replace('_', "/") + "="
}

/// Has a WebSocket on this connection, of which `rest` came with the request, until either end is over. `enter` says
/// whether there is a place for another.
pub(super) fn serve(
    wire: impl Wire,
    rest: Vec<u8>,
    sockets: &Sockets,
    enter: impl FnOnce() -> bool,
) -> io::Result<()> {
    let from = wire.timed().stream.peer_addr()?;
    wire.timed().stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * MESSAGE_MAX)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let mut socket = WebSocket::from_partially_read(wire, rest, Role::Server, Some(config));
    if !(shows(&mut socket, sockets.proof) && enter()) {
        let reason = Utf8Bytes::from_static("");
        // Who is gone already need not hear it.
        let _ = socket.close(Some(CloseFrame { code: CloseCode::Policy, reason }));
        return socket.into_inner().end();
    }
    let road = (sockets.open)(SocketAddr::new(from.ip().to_canonical(), from.port()));
    match road {
        Ok(road) => Relay::new(socket, &road)?.run(),
        Err(_) => {
            let _ = socket.close(None);
            socket.into_inner().end()
        }
    }
}

/// Whether the first message is this.
fn shows<S: Wire>(socket: &mut WebSocket<S>, proof: Secret) -> bool {
    loop {
        return match socket.read() {
            Ok(Message::Binary(shown)) => is_it(&shown, proof),
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            _ => false,
        };
    }
}

fn is_it(shown: &Bytes, proof: Secret) -> bool {
    <[u8; 32]>::try_from(&shown[..]).is_ok_and(|shown| Secret::from(shown) == proof)
}

/// Bytes of a message of a page: four frames of its carrier.
pub(super) const MESSAGE_MAX: usize = 64 << 10;
/// Bytes that are read at once.
const READ_BUFFER: usize = 16 << 10;
/// What goes before a ticket: a digest of that alone is told to everybody, so that the page knows its links.
const LABEL: &str = "wayferry socket 1\n";
// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_the_standard_has_it() {
        // RFC 6455 §1.3.
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_proof_is_not_what_everybody_is_told() {
        let ticket = "wf1:abc";
        assert!(proof(ticket) == proof(ticket) && proof(ticket) != proof("wf1:abd"));
        assert!(proof(ticket) != Secret::from(sha256(ticket.as_bytes())));
        let [good, wrong] = [*proof(ticket).expose(), [0; 32]].map(|bytes| Bytes::copy_from_slice(&bytes));
        assert!(is_it(&good, proof(ticket)) && !is_it(&wrong, proof(ticket)));
        assert!(!is_it(&good.slice(1..), proof(ticket)) && !is_it(&Bytes::new(), proof(ticket)));
    }
}
