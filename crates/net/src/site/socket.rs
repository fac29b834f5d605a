//! WebSockets of a site's page: how one begins, and who may have one.
//!
//! A browser asks for it as RFC 6455 §4 has it. Its first message shows that the page was opened by the link that is
//! served here, by a digest of the link's ticket that is told nowhere else; until then nothing is opened behind it. The
//! answer shows the same of this server, for another may have the port by now, and says that the session is behind it.
//! Invariant: all who cannot show that see the same end.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocket, WebSocketConfig};
use tungstenite::{Message, Utf8Bytes};
use wayferry_proto::Secret;

use super::place::place;
use super::relay::Relay;
use super::wire::Wire;
use crate::identity::sha256;
use crate::ticket::to_base64url;

/// Which pages may have one, and where it leads.
pub struct Sockets {
    ticket: String,
    open: Box<Open>,
}

type Open = dyn Fn(&Caller<'_>) -> io::Result<Road> + Send + Sync;

/// A browser whose page has shown the ticket, and waits for its way to the session.
///
/// It has nothing to say before it is answered: its descriptor is readable when it goes, or when the server ends.
#[derive(Debug)]
pub struct Caller<'a> {
    address: SocketAddr,
    stream: &'a TcpStream,
}

/// A way to a session that takes a page on it.
pub struct Road {
    /// Carries bytes in both directions.
    pub socket: OwnedFd,
    /// What goes with it, as a program that has its other end.
    pub keeper: Box<dyn Send>,
}

impl Sockets {
    /// For pages that were opened with this ticket. `open` brings one to its session, on a thread of its own; it may
    /// take a while, and is to end soon when its caller goes: until then that keeps its place.
    pub fn new(
        ticket: String,
        open: impl Fn(&Caller<'_>) -> io::Result<Road> + Send + Sync + 'static,
    ) -> Self {
        Self { ticket, open: Box::new(open) }
    }

    /// What answers a page that shows in its first message that it has the ticket.
    fn answer(&self, shown: &[u8]) -> Option<[u8; 32]> {
        let (proof, nonce) = shown.split_at_checked(32)?;
        let proof = Secret::from(<[u8; 32]>::try_from(proof).ok()?);
        let nonce = <[u8; 32]>::try_from(nonce).ok()?;
        let ticket = self.ticket.as_bytes();
        let is_it = proof == Secret::from(sha256(&[PAGE, ticket].concat()));
        is_it.then(|| sha256(&[SERVER, &nonce, ticket].concat()))
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").finish_non_exhaustive()
    }
}

impl<'a> Caller<'a> {
    fn on(stream: &'a TcpStream) -> io::Result<Self> {
        let from = stream.peer_addr()?;
        Ok(Self { address: SocketAddr::new(from.ip().to_canonical(), from.port()), stream })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What counts as one place, so that it has no more than others: its address, or its network of IPv6 (/64). All
    /// addresses of this machine's loopback device are one.
    pub fn place(&self) -> IpAddr {
        place(self.address.ip())
    }

    /// Whether it waits no more.
    pub fn is_gone(&self) -> bool {
        self.is_gone_within(Duration::ZERO)
    }

    /// Waits until it waits no more, and at most for `patience`; gives whether that is so.
    pub fn is_gone_within(&self, patience: Duration) -> bool {
        let Ok(patience) = Timespec::try_from(patience) else { return false };
        let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Caller<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
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
    wire.timed().stream.set_nodelay(true)?;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(4 * MESSAGE_MAX)
        .max_message_size(Some(MESSAGE_MAX))
        .max_frame_size(Some(MESSAGE_MAX));
    let mut socket = WebSocket::from_partially_read(wire, rest, Role::Server, Some(config));
    let Some(answer) = hear(&mut socket, sockets).filter(|_| enter()) else {
        let reason = Utf8Bytes::from_static("");
        socket.get_mut().timed_mut().until = Instant::now() + ANSWER_PATIENCE;
        // Who is gone already need not hear it.
        let _ = socket.close(Some(CloseFrame { code: CloseCode::Policy, reason }));
        return socket.into_inner().end();
    };
    let road = (sockets.open)(&Caller::on(&socket.get_ref().timed().stream)?);
    match road {
        Ok(road) => {
            socket.get_mut().timed_mut().until = Instant::now() + ANSWER_PATIENCE;
            socket.send(Message::Binary(answer.to_vec().into())).map_err(io::Error::other)?;
            Relay::new(socket, &road)?.run()
        }
        Err(_) => {
            socket.get_mut().timed_mut().until = Instant::now() + ANSWER_PATIENCE;
            let _ = socket.close(None);
            socket.into_inner().end()
        }
    }
}

/// The answer to the first message, if that is the right one.
fn hear<S: Wire>(socket: &mut WebSocket<S>, sockets: &Sockets) -> Option<[u8; 32]> {
    loop {
        match socket.read().ok()? {
            Message::Binary(shown) => return sockets.answer(&shown),
            Message::Ping(_) | Message::Pong(_) => {}
            _ => return None,
        }
    }
}

/// Bytes of a message of a page: four frames of its carrier.
pub(super) const MESSAGE_MAX: usize = 64 << 10;
/// Bytes that are read at once.
const READ_BUFFER: usize = 16 << 10;
/// How long the answer may take, or that there is none.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// What goes before a ticket in what a page shows: a digest of the ticket alone is told to everybody.
const PAGE: &[u8] = b"wayferry socket 1 page\n";
/// What goes before the page's number and the ticket in what answers that.
const SERVER: &[u8] = b"wayferry socket 1 server\n";
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
    fn a_page_shows_the_ticket_and_is_shown_it_and_no_other_is() {
        let sockets = |ticket: &str| Sockets::new(ticket.to_owned(), |_| Err(io::ErrorKind::NotFound.into()));
        let shown = |label: &[u8], ticket: &[u8], nonce: &[u8]| {
            [&sha256(&[label, ticket].concat())[..], nonce].concat()
        };
        let good = shown(PAGE, b"wf1:abc", &[1; 32]);
        let answer = sockets("wf1:abc").answer(&good).expect("an answer");
        assert_eq!(answer, sha256(&[SERVER, &[1; 32], b"wf1:abc"].concat()));
        for (wrong, why) in [
            (shown(PAGE, b"wf1:abd", &[1; 32]), "another ticket"),
            (shown(b"", b"wf1:abc", &[1; 32]), "what all are told"),
            (shown(SERVER, b"wf1:abc", &[1; 32]), "another word"),
            (shown(PAGE, b"wf1:abc", &[1; 31]), "too short"),
            (shown(PAGE, b"wf1:abc", &[1; 33]), "too long"),
            (good[..32].to_vec(), "no number"),
            (Vec::new(), "nothing"),
        ] {
            assert_eq!(sockets("wf1:abc").answer(&wrong), None, "{why}");
        }
        let other = shown(PAGE, b"wf1:abc", &[2; 32]);
        assert_ne!(sockets("wf1:abc").answer(&other), Some(answer), "no answer is good twice");
    }
}
