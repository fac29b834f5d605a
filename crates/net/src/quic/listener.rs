//! The app side: accepts displays that show an admitted certificate.
//!
//! What fails its handshake is dropped without a word to the caller: anybody can send packets to a port. Invariant:
//! handshakes and connections that nobody has taken yet are bounded, whoever sends them.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noq::{Connecting, Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, TokioRuntime, VarInt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::config::{CONNECTION_WINDOW, Options};
use super::error::{GIVEN_UP, ListenError, NOT_ADMITTED, SetupError, UNKNOWN_HERE, Warning};
use super::runtime::{Guests, Runtime};
use super::{Connected, Established, Sending, Shared, peer_of, socket};
use crate::identity::{Fingerprint, Identity, server_config};
use crate::peers::Peers;
use crate::wake::Wake;

/// A bound UDP port that accepts connections until it is dropped. Connections live on without it.
pub struct Listener {
    address: SocketAddr,
    fingerprint: Fingerprint,
    warnings: Vec<Warning>,
    arrived: Arc<Arrived>,
    endpoint: Endpoint,
    /// Lets nobody in.
    shut: ServerConfig,
    runtime: Arc<Runtime>,
}

/// Connections that wait to be taken.
struct Arrived {
    queue: Mutex<VecDeque<Established>>,
    wake: Wake,
}

impl Listener {
    /// Binds `address`; with `ports`, the first free port of the range instead of the address's own.
    pub fn bind(
        address: SocketAddr,
        ports: Option<RangeInclusive<u16>>,
        identity: &Identity,
        peers: Peers,
        options: &Options,
    ) -> Result<Self, ListenError> {
        options.prepare()?;
        let tls = server_config(identity, peers.clone(), options.log_keys).map_err(SetupError::from)?;
        let server = options.server(tls)?;
        let (socket, warnings) = bind_one(address, ports, options.udp_buffer)?;
        let arrived = Arrived { queue: Mutex::default(), wake: Wake::new().map_err(SetupError::from)? };
        let runtime = Runtime::start().map_err(SetupError::from)?;
        let endpoint = {
            let _inside = runtime.handle.enter();
            let config = EndpointConfig::default();
            Endpoint::new(config, Some(server.clone()), socket, Arc::new(TokioRuntime))
                .map_err(SetupError::from)?
        };
        runtime.guests.add(endpoint.clone());
        let listener = Self {
            address: endpoint.local_addr().map_err(SetupError::from)?,
            fingerprint: identity.fingerprint(),
            warnings,
            arrived: Arc::new(arrived),
            endpoint,
            shut: shut(&server),
            runtime,
        };
        listener.start(server, peers, options);
        Ok(listener)
    }

    fn start(&self, server: ServerConfig, peers: Peers, options: &Options) {
        let door = Door {
            server,
            peers,
            options: options.clone(),
            arrived: Arc::clone(&self.arrived),
            guests: self.runtime.guests.clone(),
        };
        self.runtime.handle.spawn(door.keep(self.endpoint.clone()));
    }

    /// The address that was bound, with the port that the system chose if that was left open.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What a display has to pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What the user should know; empties the list, so that each is told once.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// The next display whose handshake is complete.
    pub fn poll_accept(&mut self) -> Option<Connected> {
        let established = self.arrived.lock().pop_front()?;
        Some(established.into_connected(Arc::clone(&self.runtime)))
    }

    /// Waits for the next display, at most `patience`.
    pub fn accept(&mut self, patience: Duration) -> Option<Connected> {
        let deadline = Instant::now() + patience;
        loop {
            self.clear_wake();
            if let Some(connected) = self.poll_accept() {
                return Some(connected);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let timeout = Timespec::try_from(left).ok();
            let _ = poll(&mut [PollFd::new(&self.arrived.wake, PollFlags::IN)], timeout.as_ref());
        }
    }

    /// Readable when [`Listener::poll_accept`] has something.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.arrived.wake.as_fd()
    }

    /// Makes [`Listener::wake_fd`] unreadable until the next display; call before [`Listener::poll_accept`].
    pub fn clear_wake(&self) {
        self.arrived.wake.lower();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // New attempts are refused from now on; connections that were taken go on.
        self.endpoint.set_server_config(Some(self.shut.clone()));
        self.arrived.lock().clear();
    }
}

impl Arrived {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Established>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A configuration with which no attempt comes in. Without any, noq 1.4.0 panics at the next packet of one that waits.
fn shut(server: &ServerConfig) -> ServerConfig {
    let mut shut = server.clone();
    shut.max_incoming(0);
    shut
}

fn bind_one(
    address: SocketAddr,
    ports: Option<RangeInclusive<u16>>,
    buffer: usize,
) -> Result<(UdpSocket, Vec<Warning>), ListenError> {
    let in_range = ports.clone();
    for port in ports.unwrap_or(address.port()..=address.port()) {
        let address = SocketAddr::new(address.ip(), port);
        match socket::bind(address, buffer) {
            Ok(bound) => return Ok(bound),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(source) => return Err(ListenError::Bind { address, source }),
        }
    }
    Err(match in_range {
        Some(ports) => ListenError::NoFreePort { ports },
        None => ListenError::PortInUse { address },
    })
}

/// Lets handshakes in.
struct Door {
    server: ServerConfig,
    peers: Peers,
    options: Options,
    arrived: Arc<Arrived>,
    guests: Guests,
}

impl Door {
    async fn keep(self, endpoint: Endpoint) {
        let door = Arc::new(self);
        let places = Arc::new(Semaphore::new(HANDSHAKES_MAX));
        while let Some(incoming) = endpoint.accept().await {
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                incoming.refuse();
                continue;
            };
            let door = Arc::clone(&door);
            tokio::spawn(async move {
                door.admit(incoming).await;
                drop(place);
            });
        }
    }

    async fn admit(&self, incoming: Incoming) {
        let address = incoming.remote_address();
        let Ok(shared) = Shared::new() else {
            return incoming.refuse();
        };
        let config = self.options.server_connection(&self.server, Arc::clone(&shared.meter));
        let Ok(connecting) = incoming.accept_with(config) else {
            return;
        };
        let _ = timeout(HANDSHAKE_PATIENCE, self.shake(connecting, shared, address)).await;
    }

    /// A peer that comes back with a ticket is known by its first packet, and is handed over at once: what it says may be
    /// early, and the answer should be, too. All others are handed over when the handshake is complete.
    async fn shake(&self, mut connecting: Connecting, shared: Arc<Shared>, address: SocketAddr) {
        if connecting.handshake_data().await.is_err() {
            return;
        }
        // On this side that is always possible.
        let Ok((connection, complete)) = connecting.into_0rtt() else { return };
        let mut complete = Some(complete);
        let guard = Guard(Some(connection.clone()));
        let early = peer_of(&connection).is_some();
        if !early && let Some(complete) = complete.take() {
            complete.await;
        }
        // TLS looks at the list only in a whole handshake.
        if !peer_of(&connection).is_some_and(|peer| self.peers.admit(peer)) {
            // A close that comes before the end of the handshake cannot say why.
            if let Some(complete) = complete {
                complete.await;
            }
            return connection.close(VarInt::from_u32(NOT_ADMITTED), UNKNOWN_HERE.as_bytes());
        }
        // It may be over already: what was said before its end still counts.
        self.hand_over(&connection, shared, address, early);
        if let Some(complete) = complete {
            complete.await;
        }
        if connection.close_reason().is_none() {
            connection.set_receive_window(CONNECTION_WINDOW);
            guard.pass();
        }
    }

    fn hand_over(&self, connection: &Connection, shared: Arc<Shared>, address: SocketAddr, early: bool) {
        let mut queue = self.arrived.lock();
        if queue.len() < ARRIVED_MAX {
            let sending = Sending::start(connection, &shared, &self.guests, &self.options);
            let connection = connection.clone();
            queue.push_back(Established::new(connection, shared, sending, address, early, &self.guests));
            self.arrived.wake.raise();
        }
    }
}

/// Closes a connection whose handshake does not come to its end, whoever has it by then.
struct Guard(Option<Connection>);

impl Guard {
    fn pass(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.close(VarInt::from_u32(GIVEN_UP), b"no handshake");
        }
    }
}

/// Handshakes at a time; the next ones are refused.
const HANDSHAKES_MAX: usize = 32;

/// Complete connections that nobody has taken; the next ones are closed.
const ARRIVED_MAX: usize = 16;

/// How long a handshake may take.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
