//! Finds out that no program listens at a port.
//!
//! noq's socket is not connected, so the system does not tell it of ICMP's answers; a connected one is told (udp(7)).
//! It sends single bytes, which no QUIC endpoint takes for a packet. Invariant: it says something only when the host
//! has said it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

use super::link::canonical;

/// Completes when the host of `remote` says that the port is closed; else never.
pub(super) async fn refused(remote: SocketAddr) {
    sleep(PATIENCE).await;
    if ask(remote).await.is_err() {
        // It cannot be asked.
        std::future::pending::<()>().await;
    }
}

async fn ask(remote: SocketAddr) -> io::Result<()> {
    let remote = canonical(remote);
    let any: SocketAddr = if remote.is_ipv6() { ([0u16; 8], 0).into() } else { ([0u8; 4], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(remote).await?;
    let mut pause = PAUSE;
    loop {
        // The second and later ones may be told what became of the first.
        if is_refusal(socket.send(&[0]).await) {
            return Ok(());
        }
        if let Ok(received) = timeout(pause, socket.recv(&mut [0; 1])).await {
            if is_refusal(received) {
                return Ok(());
            }
            // Somebody answered.
            std::future::pending::<()>().await;
        }
        pause *= 2;
    }
}

fn is_refusal(result: io::Result<usize>) -> bool {
    result.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// How long an ordinary handshake takes: it is not disturbed.
const PATIENCE: Duration = Duration::from_millis(100);

/// Until it is asked again; doubles each time. Hosts limit how often they answer.
const PAUSE: Duration = Duration::from_millis(250);
