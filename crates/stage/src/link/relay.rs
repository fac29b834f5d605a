//! The thread around two [`Lane`]s: sockets and the clock, nothing else.
//!
//! A client is known by its address; each has a socket of its own towards the target, so that the target can tell
//! them apart. All clients share the two lanes.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use super::config::LinkConfig;
use super::lane::{Lane, LaneStats};
use crate::clock;

/// A running relay; dropping it ends it.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

/// What both directions have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// From the clients to the target.
    pub up: LaneStats,
    /// From the target to the clients.
    pub down: LaneStats,
}

#[derive(Debug)]
struct Shared {
    lanes: Mutex<Lanes>,
    stop: AtomicBool,
    /// How often clients have been moved.
    moves: AtomicU64,
    wake: OwnedFd,
    start: Instant,
}

#[derive(Debug)]
struct Lanes {
    up: Lane<Datagram>,
    down: Lane<Datagram>,
}

/// A datagram and the number of the client it is from or for.
#[derive(Clone, Debug)]
struct Datagram {
    client: u64,
    bytes: Vec<u8>,
}

impl Link {
    /// Starts a relay on 127.0.0.1 that forwards to `target`, both directions by the same settings (the way back
    /// draws from a seed of its own).
    ///
    /// # Errors
    /// No socket or thread can be made.
    pub fn start(config: LinkConfig, target: SocketAddr) -> io::Result<Link> {
        let back = LinkConfig { seed: config.seed ^ BACK_SEED, ..config.clone() };
        Link::start_with(config, back, target)
    }

    /// As [`Link::start`], with settings for the way to the target (`up`) and for the way back (`down`).
    ///
    /// # Errors
    /// No socket or thread can be made.
    pub fn start_with(up: LinkConfig, down: LinkConfig, target: SocketAddr) -> io::Result<Link> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        prepare(&front)?;
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            lanes: Mutex::new(Lanes { up: Lane::new(up), down: Lane::new(down) }),
            stop: AtomicBool::new(false),
            moves: AtomicU64::new(0),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            start: Instant::now(),
        });
        let relay =
            Relay { shared: shared.clone(), front, target, clients: Vec::new(), last: 0, used: 0, moved: 0 };
        let thread = thread::Builder::new().name("link".to_owned()).spawn(move || relay.run())?;
        Ok(Link { shared, address, thread: Some(thread) })
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Changes both directions from now on; the seeds stay.
    pub fn set_config(&self, config: LinkConfig) {
        self.set_configs(config.clone(), config);
    }

    /// Changes the two directions from now on; the seeds stay.
    pub fn set_configs(&self, up: LinkConfig, down: LinkConfig) {
        let now = self.shared.now();
        let mut lanes = self.shared.lanes();
        lanes.up.set_config(now, up);
        lanes.down.set_config(now, down);
        drop(lanes);
        self.shared.ring();
    }

    /// Cuts the link, or mends it.
    pub fn set_down(&self, down: bool) {
        let now = self.shared.now();
        let mut lanes = self.shared.lanes();
        lanes.up.set_down(now, down);
        lanes.down.set_down(now, down);
    }

    /// Clients come from other addresses from now on, as through a router that forgot them: what the target sends to
    /// the old ones is lost, and it hears of the new ones when clients send.
    pub fn move_clients(&self) {
        self.shared.moves.fetch_add(1, Ordering::Release);
        self.shared.ring();
    }

    /// What it has done so far.
    pub fn stats(&self) -> LinkStats {
        let lanes = self.shared.lanes();
        LinkStats { up: lanes.up.stats(), down: lanes.down.stats() }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().expect("no thread panics with it")
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

struct Relay {
    shared: Arc<Shared>,
    front: UdpSocket,
    target: SocketAddr,
    clients: Vec<Client>,
    last: u64,
    /// Counts uses, to find the client that was silent longest.
    used: u64,
    /// How many moves of clients have been made.
    moved: u64,
}

struct Client {
    number: u64,
    address: SocketAddr,
    /// Connected to the target.
    socket: UdpSocket,
    used: u64,
}

impl Relay {
    fn run(mut self) {
        let mut buffer = vec![0u8; DATAGRAM_MAX];
        while !self.shared.stop.load(Ordering::Acquire) {
            let mut drained = [0u8; 8];
            let _ = rustix::io::read(&self.shared.wake, &mut drained);
            self.move_clients();
            self.receive_front(&mut buffer);
            self.receive_back(&mut buffer);
            self.deliver();
            self.wait();
        }
    }

    fn move_clients(&mut self) {
        let moves = self.shared.moves.load(Ordering::Acquire);
        if std::mem::replace(&mut self.moved, moves) == moves {
            return;
        }
        for client in &mut self.clients {
            if let Some(socket) = towards(self.target) {
                client.socket = socket;
            }
        }
    }

    fn receive_front(&mut self, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let (length, from) = match self.front.recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => continue,
            };
            let Some(client) = self.client(from) else { continue };
            let datagram = Datagram { client, bytes: buffer[..length].to_vec() };
            let now = self.shared.now();
            self.shared.lanes().up.push(now, length, datagram);
        }
    }

    fn receive_back(&mut self, buffer: &mut [u8]) {
        for client in &self.clients {
            for _ in 0..BATCH {
                let length = match client.socket.recv(buffer) {
                    Ok(length) => length,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => continue,
                };
                let datagram = Datagram { client: client.number, bytes: buffer[..length].to_vec() };
                let now = self.shared.now();
                self.shared.lanes().down.push(now, length, datagram);
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.shared.now() + EARLY;
        loop {
            let mut lanes = self.shared.lanes();
            let (up, down) = (lanes.up.pop(now), lanes.down.pop(now));
            drop(lanes);
            if up.is_none() && down.is_none() {
                return;
            }
            // A full or refused socket is loss, as on any link.
            if let Some(datagram) = up
                && let Some(client) = self.clients.iter().find(|client| client.number == datagram.client)
            {
                let _ = client.socket.send(&datagram.bytes);
            }
            if let Some(datagram) = down
                && let Some(client) = self.clients.iter().find(|client| client.number == datagram.client)
            {
                let _ = self.front.send_to(&datagram.bytes, client.address);
            }
        }
    }

    fn wait(&self) {
        let lanes = self.shared.lanes();
        let due = lanes.up.next_timeout().into_iter().chain(lanes.down.next_timeout()).min();
        drop(lanes);
        let timeout = due.map(|due| clock::timespec(due.saturating_sub(self.shared.now())));
        let mut fds =
            vec![PollFd::new(&self.shared.wake, PollFlags::IN), PollFd::new(&self.front, PollFlags::IN)];
        fds.extend(self.clients.iter().map(|client| PollFd::new(&client.socket, PollFlags::IN)));
        // An interrupted wait is a short one.
        let _ = poll(&mut fds, timeout.as_ref());
    }

    /// The number of the client with this address, which may be new.
    fn client(&mut self, address: SocketAddr) -> Option<u64> {
        self.used += 1;
        if let Some(client) = self.clients.iter_mut().find(|client| client.address == address) {
            client.used = self.used;
            return Some(client.number);
        }
        let socket = towards(self.target)?;
        if self.clients.len() == CLIENTS {
            let oldest = (0..CLIENTS).min_by_key(|index| self.clients[*index].used)?;
            self.clients.swap_remove(oldest);
        }
        self.last += 1;
        self.clients.push(Client { number: self.last, address, socket, used: self.used });
        Some(self.last)
    }
}

/// A new socket connected to `target`, if the system has one.
fn towards(target: SocketAddr) -> Option<UdpSocket> {
    let socket = match target {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = socket.and_then(|socket| socket.connect(target).map(|()| socket)).ok()?;
    prepare(&socket).ok()?;
    Some(socket)
}

fn prepare(socket: &UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    // The kernel clamps what is too much; that is no error.
    let _ = set_socket_recv_buffer_size(socket, SOCKET_BUFFER);
    let _ = set_socket_send_buffer_size(socket, SOCKET_BUFFER);
    Ok(())
}

const BACK_SEED: u64 = 0x5bd1_e995_7b93_a1c5;
const SOCKET_BUFFER: usize = 4 << 20;
const DATAGRAM_MAX: usize = 65_536;
/// Datagrams read from one socket before others have their turn.
const BATCH: usize = 64;
/// Clients that are remembered at once; a further one takes the place of the one silent longest.
const CLIENTS: usize = 64;
/// What is due this soon goes at once: less than a wait's own imprecision.
const EARLY: Duration = Duration::from_micros(30);
