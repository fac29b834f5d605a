//! The display side: follows this host from one network to the next.
//!
//! The kernel tells when links, addresses and routes come and go. Each time, the way towards the peer is looked up;
//! when it is another one, the connection goes on from a new socket, which also asks the peer at once, so that it
//! learns where to send. The socket is a new one even where the old one would do: a router or firewall that remembers
//! its port may go on sending what comes from it the old way. What is lost until then QUIC sends again; whether the
//! peer answers is [`super::probe`]'s to watch, and when it has not for long, a new socket is tried, too.
//!
//! Invariant: at most one move in each [`PAUSE`], however restless the network is.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use noq::{Connection, Endpoint};
use tokio::time::sleep;

use super::changes::Changes;
use super::shared::Shared;
use super::socket;

/// Runs until the connection is over, or for no time at all where the kernel tells nothing.
pub(super) async fn run(
    connection: Connection,
    endpoint: Endpoint,
    peer: SocketAddr,
    buffer: usize,
    shared: Arc<Shared>,
) {
    let Ok(mut ways) = Ways::open(&[peer]) else { return };
    let mut closed = pin!(connection.closed());
    loop {
        tokio::select! {
            changed = ways.changed() => if changed.is_err() { return },
            () = shared.stuck.notified() => {}
            _ = closed.as_mut() => return,
        }
        if ways.are_there() {
            move_socket(&endpoint, buffer);
            sleep(PAUSE).await;
        }
    }
}

/// The ways from this host to some peers: for each, the address that it would send from.
pub(super) struct Ways {
    changes: Changes,
    known: Vec<(SocketAddr, Option<IpAddr>)>,
}

impl Ways {
    /// Call inside the runtime. Fails where the system has no rtnetlink for this process.
    pub(super) fn open(peers: &[SocketAddr]) -> io::Result<Self> {
        // First the socket, so that no change falls between the two.
        let changes = Changes::open()?;
        Ok(Self { changes, known: peers.iter().map(|peer| (*peer, source_towards(*peer))).collect() })
    }

    /// Waits until one of them is another one. What changes elsewhere, as much as that may be, is passed over.
    pub(super) async fn changed(&mut self) -> io::Result<()> {
        loop {
            self.changes.next().await?;
            let mut other = false;
            for (peer, known) in &mut self.known {
                let found = source_towards(*peer);
                other |= *known != found;
                *known = found;
            }
            if other {
                return Ok(());
            }
        }
    }

    fn are_there(&self) -> bool {
        self.known.iter().any(|(_, source)| source.is_some())
    }
}

/// Without a new socket the old one has to do; asking the peer is worth it either way.
fn move_socket(endpoint: &Endpoint, buffer: usize) {
    let moved = endpoint.local_addr().and_then(|old| {
        let address = SocketAddr::new(unspecified(old), 0);
        // The user has heard of clamped buffers when the connection was made.
        let (socket, _) = socket::bind(address, buffer)?;
        endpoint.rebind(socket)
    });
    if moved.is_err() {
        endpoint.handle_network_change(None);
    }
}

/// The address that this host would now send from to `peer`; `None` when there is no way.
///
/// Connecting a UDP socket sends nothing.
fn source_towards(peer: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((unspecified(peer), 0)).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn unspecified(family: SocketAddr) -> IpAddr {
    if family.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Between two moves.
const PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_from_loopback() {
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        assert_eq!(source_towards(peer), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
