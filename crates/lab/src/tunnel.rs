//! A link that the kernel's own TCP and QUIC can both be sent through: a TUN device in a network namespace.
//!
//! There is one device, with one address of ours. What is sent to the other address passes the lane of its direction,
//! and comes back with both addresses exchanged: the two ends of a connection are in this process, and each sees the
//! other at the other address. Checksums stay right, since they are sums. Servers listen on ports below
//! [`FIRST_CLIENT_PORT`]; what goes to one is on its way up.
//!
//! Invariant: device, thread and all that is on its way go with the value.

mod namespace;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use wayferry_stage::{Beyond, Lane, LinkConfig, tun};

pub(crate) use namespace::enter;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tunnel {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    lanes: Mutex<Lanes>,
    stop: AtomicBool,
    wake: OwnedFd,
    start: Instant,
}

#[derive(Debug)]
struct Lanes {
    up: Lane<Vec<u8>>,
    down: Lane<Vec<u8>>,
    /// Bytes that came down, by the server's port.
    bytes: BTreeMap<u16, u64>,
}

/// What is known of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    from: u16,
    to: u16,
}

impl Tunnel {
    /// Makes the device. The process is in a namespace of its own: see [`enter`].
    pub(crate) fn open(up: LinkConfig, down: LinkConfig) -> io::Result<Self> {
        let device = tun(HERE)?;
        let shared = Arc::new(Shared {
            lanes: Mutex::new(Lanes { up: Lane::new(up), down: Lane::new(down), bytes: BTreeMap::new() }),
            stop: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            start: Instant::now(),
        });
        let theirs = Arc::clone(&shared);
        let run = move || theirs.run(device);
        let thread = std::thread::Builder::new().name("tunnel".into()).spawn(run)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Bytes of IP packets that came down from the server on this port.
    pub(crate) fn bytes(&self, port: u16) -> u64 {
        self.shared.lanes().bytes.get(&port).copied().unwrap_or(0)
    }

    /// Cuts the way up, or mends it: nothing that comes down is acknowledged any more.
    pub(crate) fn set_up_down(&self, down: bool) {
        let now = self.shared.start.elapsed();
        self.shared.lanes().up.set_down(now, down);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Fails only when it is readable already.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, mut device: std::fs::File) {
        let mut packet = vec![0; 65_536];
        while !self.stop.load(Ordering::Acquire) {
            self.wait(&device);
            for _ in 0..PACKETS_IN_A_TURN {
                match device.read(&mut packet) {
                    Ok(length) => self.take(&packet[..length]),
                    Err(_) => break,
                }
            }
            self.give(&mut device);
        }
    }

    fn wait(&self, device: &std::fs::File) {
        let lanes = self.lanes();
        let next = [lanes.up.next_timeout(), lanes.down.next_timeout()].into_iter().flatten().min();
        drop(lanes);
        let left = next.map(|at| at.saturating_sub(self.start.elapsed()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut set = [
            PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
        ];
        // An interruption, the only error that it can have, is a turn without an effect.
        let _ = poll(&mut set, left.as_ref());
    }

    /// A packet that the kernel sent.
    fn take(&self, packet: &[u8]) {
        let Some((reflected, ports)) = reflect(packet) else { return };
        let now = self.start.elapsed();
        let mut lanes = self.lanes();
        // The lane counts 28 bytes of headers itself.
        let payload = packet.len().saturating_sub(28);
        match ports.to < FIRST_CLIENT_PORT {
            true => lanes.up.push(now, payload, reflected),
            false => lanes.down.push(now, payload, reflected),
        }
    }

    /// Hands the kernel what is through.
    fn give(&self, device: &mut std::fs::File) {
        let now = self.start.elapsed();
        let mut through = Vec::new();
        let mut lanes = self.lanes();
        while let Some(packet) = lanes.up.pop(now) {
            through.push(packet);
        }
        while let Some(packet) = lanes.down.pop(now) {
            if let Some(ports) = ports(&packet) {
                *lanes.bytes.entry(ports.from).or_default() += packet.len() as u64;
            }
            through.push(packet);
        }
        drop(lanes);
        for packet in through {
            // What the kernel has no room for is lost, as by a network.
            let _ = device.write(&packet);
        }
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address of servers, as they know it.
pub(crate) fn here(port: u16) -> SocketAddr {
    (HERE, port).into()
}

/// The same, as clients reach it.
pub(crate) fn there(port: u16) -> SocketAddr {
    (THERE, port).into()
}

/// Both ends of a TCP connection through the tunnel, the server's first.
pub(crate) fn tcp(port: u16, patience: Duration) -> io::Result<(OwnedFd, OwnedFd)> {
    let listener = TcpListener::bind(here(port))?;
    let far = TcpStream::connect_timeout(&there(port), patience)?;
    // It is connected, so this does not wait for long: the last of the handshake is on its way.
    let (near, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near.into(), far.into()))
}

/// The packet with its addresses exchanged; `None` of what is not TCP or UDP over IPv4, whole and in one piece.
fn reflect(packet: &[u8]) -> Option<(Vec<u8>, Ports)> {
    let ports = ports(packet)?;
    let mut reflected = packet.to_vec();
    let (source, target) = (packet.get(12..16)?, packet.get(16..20)?);
    reflected.get_mut(12..16)?.copy_from_slice(target);
    reflected.get_mut(16..20)?.copy_from_slice(source);
    Some((reflected, ports))
}

/// RFC 791 §3.1: version and length of the header, protocol; then the ports of RFC 768 or RFC 9293.
fn ports(packet: &[u8]) -> Option<Ports> {
    let first = *packet.first()?;
    let header = usize::from(first & 0x0f) * 4;
    let protocol = *packet.get(9)?;
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff;
    if first >> 4 != 4 || header < 20 || !matches!(protocol, 6 | 17) || fragment != 0 {
        return None;
    }
    let port = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    Some(Ports { from: port(header)?, to: port(header + 2)? })
}

/// Ports of clients, which the kernel chooses, begin above.
const FIRST_CLIENT_PORT: u16 = 10_000;

/// Ours, and the one that leads through the tunnel.
const HERE: Ipv4Addr = Beyond::HERE;
const THERE: Ipv4Addr = Beyond::ADDRESS;

/// Packets read before those that are through are written.
const PACKETS_IN_A_TURN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet of four bytes, from 10.9.0.1:40000 to 10.9.0.2:7001.
    const PACKET: [u8; 32] = [
        0x45, 0, 0, 32, 0, 1, 0x40, 0, 64, 17, 0x26, 0xb9, 10, 9, 0, 1, 10, 9, 0, 2, 0x9c, 0x40, 0x1b, 0x59,
        0, 12, 0, 0, 1, 2, 3, 4,
    ];

    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_packet_comes_back_from_where_it_went() {
        let (reflected, ports) = reflect(&PACKET).unwrap();
        assert_eq!(ports, Ports { from: 40_000, to: 7001 });
        assert_eq!((&reflected[12..16], &reflected[16..20]), (&PACKET[16..20], &PACKET[12..16]));
        assert_eq!((&reflected[..12], &reflected[20..]), (&PACKET[..12], &PACKET[20..]));
        assert_eq!(sum(&reflected[..20]), sum(&PACKET[..20]));
    }

    #[test]
    fn what_is_no_whole_packet_is_dropped() {
        assert!((0..24).all(|length| reflect(&PACKET[..length]).is_none()));
        for (at, byte) in [(0, 0x65), (0, 0x44), (0, 0x4f), (9, 1), (6, 0x20), (7, 1)] {
            let mut packet = PACKET;
            packet[at] = byte;
            assert_eq!(reflect(&packet), None, "byte {at} is {byte}");
        }
        assert_eq!(reflect(&[0xff; 4]), None);
    }
}
