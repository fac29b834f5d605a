//! The app side: accepts displays that show an admitted certificate.
//!
//! What fails its handshake is dropped without a word to the caller: everyone can send packets to a port. From a
//! quarter of the places on, a peer has to show that its address is its own before it gets one (RFC 9000 §8.1.2). The
//! newest always gets a place, and the source that holds most of them loses one ([`Places`]); displays that show a
//! ticket have places of their own, pages stand among the strangers. Invariant: handshakes, and connections that the
//! caller has not taken yet, are bounded, from any peers.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq::{Connecting, Connection, Endpoint, EndpointConfig, Incoming, ServerConfig, VarInt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::oneshot;
use tokio::time::sleep;
use wayferry_proto::{Places, Source};

use super::config::{EARLY_WINDOW, Options};
use super::error::{GIVEN_UP, ListenError, NOT_ADMITTED, SetupError, UNKNOWN_HERE, Warning};
use super::established::{Connected, Established, Sending, peer_of};
use super::framing::Framing;
use super::page;
use super::pages::{PageOrigin, Pages};
use super::runtime::{Guests, Runtime};
use super::shared::Shared;
use super::socket;
use super::standing::Standing;
use crate::http3::NO_ERROR;
use crate::identity::{ALPN, Fingerprint, Identity, Returns, server_config};
use crate::peers::Peers;
use crate::udp::UdpRuntime;
use crate::wake::Wake;

/// A bound UDP port that accepts connections until it is dropped. Connections live on without it.
pub struct Listener {
    address: SocketAddr,
    fingerprint: Fingerprint,
    warnings: Vec<Warning>,
    arrived: Arc<Arrived>,
    endpoint: Endpoint,
    /// Lets no peer in.
    shut: ServerConfig,
    tls: rustls::ServerConfig,
    pages: Arc<Pages>,
    runtime: Arc<Runtime>,
}

/// Connections that wait to be taken.
struct Arrived {
    /// Attempts at any, of which packets have come.
    attempts: AtomicU64,
    queue: Mutex<Lanes<Established>>,
    wake: Wake,
}

/// Places for strangers, and for displays that were let in before or that ssh brings.
struct Lanes<T> {
    strangers: Places<T>,
    known: Places<T>,
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
        let server = options.server(tls.clone())?;
        let (socket, warnings) = bind_one(address, ports, options.udp_buffer)?;
        let queue = Mutex::new(Lanes::new(ARRIVED_MAX));
        let arrived =
            Arrived { attempts: AtomicU64::new(0), queue, wake: Wake::new().map_err(SetupError::from)? };
        let runtime = Runtime::start().map_err(SetupError::from)?;
        let endpoint = {
            let _inside = runtime.handle.enter();
            let config = EndpointConfig::default();
            Endpoint::new(config, Some(server.clone()), socket, Arc::new(UdpRuntime))
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
            tls,
            pages: Arc::default(),
            runtime,
        };
        listener.start(server, peers, options);
        Ok(listener)
    }

    fn start(&self, server: ServerConfig, peers: Peers, options: &Options) {
        let acceptor = Acceptor {
            server,
            tls: self.tls.clone(),
            pages: Arc::clone(&self.pages),
            peers,
            options: options.clone(),
            arrived: Arc::clone(&self.arrived),
            guests: self.runtime.guests.clone(),
            handshakes: Mutex::new(Lanes::new(HANDSHAKES_MAX)),
        };
        self.runtime.handle.spawn(acceptor.keep(self.endpoint.clone()));
    }

    /// The address that was bound, with the port that the system chose if that was left open.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What a display has to pin.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The certificate that pages have to pin, which is valid for a week at least. From the first call on, browsers are
    /// answered; they may come with [`Self::admit_pages`].
    ///
    /// # Errors
    /// There is no randomness for a certificate.
    pub fn page_certificate(&self) -> Result<Fingerprint, SetupError> {
        self.pages.certificate(&self.tls)
    }

    /// Lets pages of these origins come from now on by WebTransport, and no others; those that are here stay. Displays
    /// are admitted as before; a page has no certificate ([`Connected::peer`]), so what it shows to the session decides
    /// alone.
    pub fn admit_pages(&self, origins: Vec<PageOrigin>) {
        self.pages.admit(origins);
    }

    /// Whether pages of this origin may come.
    pub fn admits(&self, origin: &PageOrigin) -> bool {
        self.pages.contains(origin.as_str())
    }

    /// How often somebody has begun a handshake here, whether or not an answer has reached them.
    pub fn attempts(&self) -> u64 {
        self.arrived.attempts.load(Ordering::Relaxed)
    }

    /// What the user should know; empties the list, so that each is told once.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// The next display whose handshake is complete.
    pub fn poll_accept(&mut self) -> Option<Connected> {
        let established = self.arrived.lock().pop()?;
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
        *self.arrived.lock() = Lanes::new(ARRIVED_MAX);
    }
}

impl<T> Lanes<T> {
    /// So many of each.
    fn new(limit: usize) -> Self {
        Self { strangers: Places::new(limit), known: Places::new(limit) }
    }

    /// The one that has waited longest; those that are known first.
    fn pop(&mut self) -> Option<T> {
        self.known.pop().or_else(|| self.strangers.pop())
    }

    fn leave(&mut self, number: u64) -> Option<(Source, T)> {
        self.strangers.leave(number).or_else(|| self.known.leave(number))
    }
}

impl Arrived {
    fn lock(&self) -> MutexGuard<'_, Lanes<Established>> {
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
struct Acceptor {
    server: ServerConfig,
    tls: rustls::ServerConfig,
    pages: Arc<Pages>,
    peers: Peers,
    options: Options,
    arrived: Arc<Arrived>,
    guests: Guests,
    handshakes: Mutex<Lanes<Place>>,
}

/// Dropped when the handshake's place goes to a newer one, which ends it.
type Place = oneshot::Sender<()>;

/// A handshake that has begun.
struct Handshake {
    number: u64,
    connecting: Connecting,
    shared: Arc<Shared>,
    address: SocketAddr,
    /// It may be a page's.
    page: bool,
}

impl Acceptor {
    async fn keep(self, endpoint: Endpoint) {
        let acceptor = Arc::new(self);
        let mut number = 0;
        while let Some(incoming) = endpoint.accept().await {
            acceptor.arrived.attempts.fetch_add(1, Ordering::Relaxed);
            let busy = acceptor.handshakes().strangers.len();
            if busy >= HANDSHAKES_MAX / 4 && !incoming.remote_address_validated() {
                // Always possible where the address is not validated.
                let _ = incoming.retry();
                continue;
            }
            number += 1;
            let Some(handshake) = acceptor.begin(number, incoming) else { continue };
            let (place, lost) = oneshot::channel();
            // One that loses its place ends.
            drop(acceptor.handshakes().strangers.enter(number, handshake.address.ip().into(), place));
            let acceptor = Arc::clone(&acceptor);
            tokio::spawn(async move {
                let shake = async {
                    match handshake.page {
                        true => acceptor.shake_page(handshake).await,
                        false => acceptor.shake(handshake).await,
                    }
                };
                tokio::select! {
                    () = shake => {}
                    _ = lost => {}
                    () = sleep(HANDSHAKE_PATIENCE) => {}
                }
                acceptor.handshakes().leave(number);
            });
        }
    }

    fn begin(&self, number: u64, incoming: Incoming) -> Option<Handshake> {
        let address = incoming.remote_address();
        let pages = self.pages.tls().filter(|_| !is_of_display(&incoming));
        let page = pages.is_some();
        let (standing, tls) = match pages {
            Some(tls) => (Standing::of_page(self.options.streams), tls),
            None => {
                let (returns, tls) = Returns::of_connection(&self.tls);
                (Standing::of_stranger(self.options.streams, returns), tls)
            }
        };
        let Ok(shared) = Shared::new(standing) else {
            incoming.refuse();
            return None;
        };
        let (server, meter) = (&self.server, &shared.meter);
        let config = match page {
            true => self.options.page_connection(server, tls, meter),
            false => self.options.server_connection(server, tls, meter),
        };
        let connecting = incoming.accept_with(config.ok()?).ok()?;
        Some(Handshake { number, connecting, shared, address, page })
    }

    fn handshakes(&self) -> MutexGuard<'_, Lanes<Place>> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A peer that comes back with a ticket is known by its first packet, and is handed over at once: what it says may
    /// be early, and the answer should be, too. All others are handed over when the handshake is complete.
    async fn shake(&self, handshake: Handshake) {
        let Handshake { number, mut connecting, shared, address, .. } = handshake;
        if connecting.handshake_data().await.is_err() {
            return;
        }
        // On this side that is always possible.
        let Ok((connection, complete)) = connecting.into_0rtt() else { return };
        let mut complete = Some(complete);
        let guard = Guard(Some(connection.clone()), GIVEN_UP);
        let early = peer_of(&connection).is_some();
        if early {
            self.know(number);
            connection.set_receive_window(EARLY_WINDOW);
        } else if let Some(complete) = complete.take() {
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
        if complete.is_none() {
            self.prove(&connection, &shared);
        }
        // It may be over already: what was said before its end still counts.
        self.hand_over(number, &connection, Framing::Plain, Arc::clone(&shared), address, early);
        if let Some(complete) = complete {
            complete.await;
        }
        if connection.close_reason().is_none() {
            self.prove(&connection, &shared);
            guard.pass();
        }
    }

    /// A page is handed over when it has asked for a session.
    async fn shake_page(&self, handshake: Handshake) {
        let Handshake { number, connecting, shared, address, .. } = handshake;
        let Ok(connection) = connecting.await else { return };
        let guard = Guard(Some(connection.clone()), NO_ERROR);
        shared.standing.prove(&connection);
        let Some(session) = page::Session::meet(&connection, &self.pages, &shared).await else { return };
        let framing = Framing::Page(Arc::new(session));
        self.hand_over(number, &connection, framing, shared, address, false);
        guard.pass();
    }

    /// Only displays that were let in have tickets: they need not stand among strangers.
    fn know(&self, number: u64) {
        let mut handshakes = self.handshakes();
        if let Some((source, place)) = handshakes.strangers.leave(number) {
            drop(handshakes.known.enter(number, source, place));
        }
    }

    /// The handshake is complete. Where certificates are known before, that is all that is asked of a peer.
    fn prove(&self, connection: &Connection, shared: &Shared) {
        if connection.close_reason().is_some() {
            return;
        }
        shared.standing.prove(connection);
        if !matches!(self.peers, Peers::Secret) {
            shared.welcome(connection);
        }
    }

    fn hand_over(
        &self,
        number: u64,
        connection: &Connection,
        framing: Framing,
        shared: Arc<Shared>,
        address: SocketAddr,
        early: bool,
    ) {
        let by_certificate = matches!(framing, Framing::Plain) && !matches!(self.peers, Peers::Secret);
        let sending = Sending::start(connection, framing.clone(), &shared, &self.guests, &self.options);
        let (connection, source) = (connection.clone(), address.ip().into());
        let established =
            Established::new(connection, framing, shared, sending, address, early, &self.guests);
        let mut queue = self.arrived.lock();
        let known = early || by_certificate;
        let lane = if known { &mut queue.known } else { &mut queue.strangers };
        let lost = lane.enter(number, source, established);
        drop(queue);
        if let Some(lost) = lost {
            lost.turn_away();
        }
        self.arrived.wake.raise();
    }
}

/// Whether it is the first packet of a display, which is short enough to say so: a browser's may be spread over several
/// packets, and is not looked for.
fn is_of_display(incoming: &Incoming) -> bool {
    let mut protocols = incoming.decrypt().and_then(|first| first.alpns()).into_iter().flatten();
    protocols.any(|protocol| protocol.is_ok_and(|protocol| *protocol == *ALPN))
}

/// Closes a connection whose handshake does not come to its end, no matter which task has it by then, with this code.
struct Guard(Option<Connection>, u32);

impl Guard {
    fn pass(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.close(VarInt::from_u32(self.1), b"no handshake");
        }
    }
}

/// Handshakes of strangers at a time, and as many of displays with a ticket. One costs some 50 kB and a descriptor.
const HANDSHAKES_MAX: usize = 128;

/// Complete connections of each kind that the caller has not taken.
const ARRIVED_MAX: usize = 64;

/// How long a handshake may take: two lost packets on a slow link.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
