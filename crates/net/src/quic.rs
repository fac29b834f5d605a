//! The QUIC carrier: noq behind a handle for a run loop.
//!
//! A [`Listener`] is the app side, [`connect`] the display side, [`Reconnect`] one that comes back. Both pin the peer's certificate; beyond that nobody
//! is let in. All connections of a listener, and each `connect`, share one thread with a small async runtime, which
//! nothing outside sees. This module decides nothing about what is sent when: the session does, by priorities and
//! by what [`LinkState`] tells. Loss repair and congestion control of our own are not here either.
//!
//! Invariant: what one stream waits for (flow control, a lost packet, a slow reader) no other stream waits for.

pub(crate) mod config;
pub(crate) mod error;
mod insist;
mod intake;
mod listener;
mod meter;
mod pump;
pub(crate) mod race;
mod reconnect;
mod roam;
mod runtime;
pub(crate) mod socket;
mod standing;

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use noq::{Connection, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use wayferry_proto::admission::NO_PLACE;
use wayferry_proto::{Arrival, CloseReason, LinkState, Transmit};

pub use self::config::{Congestion, Options};
pub use self::error::{Buffer, CertificateFault, ConnectError, ListenError, SetupError, Warning};
use self::intake::Stops;
pub use self::listener::Listener;
use self::meter::Meter;
pub use self::reconnect::{Attempt, Reconnect, connect};
use self::runtime::{Guests, Runtime};
use self::standing::Standing;
use crate::carrier::{Backlog, Carrier};
use crate::identity::Fingerprint;
use crate::inbox::{Drain, Inbox};
use crate::outbox::{Feeder, Outbox};
use crate::wake::Wake;

/// An established connection.
pub struct Connected {
    /// For the run loop.
    pub carrier: Box<dyn Carrier>,
    /// The peer's certificate. Under [`Peers::Secret`](crate::Peers::Secret) it proves only that it stays the same
    /// peer.
    pub peer: Fingerprint,
    /// Where the peer is.
    pub address: SocketAddr,
    /// On the display side: what was to leave early did, and was taken. On the app side: the peer came back with a
    /// ticket, and what it says first may be early data, which somebody on the path may have held back.
    pub early: bool,
}

/// What the handle and the tasks of one connection share.
struct Shared {
    inbox: Inbox,
    outbox: Arc<Outbox>,
    wake: Arc<Wake>,
    meter: Arc<Meter>,
    stops: Stops,
    /// The inbox holds a [`intake::STEP`] more or less: for the one who widens and narrows the window.
    level: Arc<Notify>,
    /// Another socket is worth a try: for the side that may move.
    stuck: Notify,
    /// The inbox has room again: for the readers.
    room: Arc<Notify>,
    /// Why this side closed the connection.
    ours: Mutex<Option<CloseReason>>,
    standing: Standing,
    /// Bytes that wait in the session.
    held: AtomicU64,
}

impl Shared {
    fn new(standing: Standing) -> std::io::Result<Arc<Self>> {
        let (wake, level, room) = (Arc::new(Wake::new()?), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let outbox = Arc::new(Outbox::new(Arc::clone(&wake)));
        let call = Box::new({
            let (level, room) = (Arc::clone(&level), Arc::clone(&room));
            move || {
                level.notify_one();
                room.notify_waiters();
            }
        });
        let drain = Drain { step: intake::STEP, when_empty: false, call };
        Ok(Arc::new(Self {
            inbox: Inbox::new(Arc::clone(&wake), drain),
            meter: Meter::new(Arc::clone(&outbox)),
            outbox,
            wake,
            stops: Stops::default(),
            level,
            stuck: Notify::new(),
            room,
            ours: Mutex::default(),
            standing,
            held: AtomicU64::new(0),
        }))
    }

    /// The peer is let in: the readers that waited go on.
    fn welcome(&self, connection: &Connection) {
        self.standing.welcome(connection);
        self.room.notify_waiters();
    }
}

/// The sending side in use: tells the pump what the run loop hands over.
struct Sending {
    /// `None`: nothing comes any more.
    kicks: Option<mpsc::UnboundedSender<()>>,
    feeder: Feeder,
    pump: JoinHandle<()>,
}

impl Sending {
    /// Call inside the runtime.
    fn start(connection: &Connection, shared: &Arc<Shared>, guests: &Guests, options: &Options) -> Self {
        let (kicks, kicked) = mpsc::unbounded_channel();
        let pump = pump::Pump::new(connection.clone(), Arc::clone(shared), kicked, options.open_timeout);
        let pump = tokio::spawn(pump.run(guests.pass()));
        Self { kicks: Some(kicks), feeder: Feeder::new(Arc::clone(&shared.outbox)), pump }
    }

    fn transmit(&mut self, transmit: Transmit) {
        if self.feeder.feed(transmit)
            && let Some(kicks) = &self.kicks
        {
            // Fails when the connection is over, which the last arrival tells.
            let _ = kicks.send(());
        }
    }

    fn say(&mut self, transmits: &[Transmit]) {
        transmits.iter().cloned().for_each(|transmit| self.transmit(transmit));
    }

    /// Nothing that was handed over counts any more.
    async fn abandon(self, shared: &Shared) {
        self.pump.abort();
        let _ = self.pump.await;
        let (_, counted) = shared.outbox.take();
        shared.meter.settle(counted, Backlog::default());
    }
}

/// A connection with its tasks running, not yet in anybody's hands.
struct Established {
    connection: Connection,
    shared: Arc<Shared>,
    sending: Sending,
    peer: Fingerprint,
    address: SocketAddr,
    early: bool,
}

impl Established {
    /// Starts the tasks; call inside the runtime.
    fn new(
        connection: Connection,
        shared: Arc<Shared>,
        sending: Sending,
        address: SocketAddr,
        early: bool,
        guests: &Guests,
    ) -> Self {
        tokio::spawn(intake::run(connection.clone(), Arc::clone(&shared)));
        tokio::spawn(insist::run(connection.clone(), guests.clone(), Arc::clone(&shared)));
        // Both sides demand a certificate, so there is one.
        let peer = peer_of(&connection).unwrap_or(Fingerprint([0; 32]));
        Self { connection, shared, sending, peer, address, early }
    }

    /// Ends it before anybody has seen it.
    fn turn_away(self) {
        let (code, text) = CloseReason::TooMuch(NO_PLACE.into()).to_wire();
        self.connection.close(VarInt::from_u32(code), text.as_bytes());
    }

    fn into_connected(self, runtime: Arc<Runtime>) -> Connected {
        let Self { connection, shared, sending, peer, address, early } = self;
        let carrier = Quic { sending, shared, connection, runtime };
        Connected { carrier: Box::new(carrier), peer, address, early }
    }
}

/// The peer's certificate, as soon as it has proved to hold the key, now or when it got the ticket that it shows.
fn peer_of(connection: &Connection) -> Option<Fingerprint> {
    let certificates = connection.peer_identity()?.downcast::<Vec<CertificateDer>>().ok()?;
    certificates.first().map(Fingerprint::of)
}

/// The handle of a QUIC carrier. The order of the fields matters: the runtime goes last.
struct Quic {
    sending: Sending,
    shared: Arc<Shared>,
    connection: Connection,
    runtime: Arc<Runtime>,
}

impl Carrier for Quic {
    fn transmit(&mut self, transmit: Transmit) {
        self.sending.transmit(transmit);
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        self.shared.inbox.pop().inspect(|arrival| self.sending.feeder.observe(arrival))
    }

    fn link(&self) -> LinkState {
        let (figures, stats) = (self.shared.meter.figures(), self.connection.stats());
        LinkState {
            rtt: figures.rtt,
            base_rtt: figures.base_rtt,
            queue_delay: figures.queue_delay,
            payload: Some(figures.payload),
            window: figures.window,
            unsent: self.shared.outbox.unsent(),
            idle: self.shared.outbox.is_idle(),
            rate: figures.rate,
            sent_bytes: stats.udp_tx.bytes,
            received_bytes: stats.udp_rx.bytes,
            lost_packets: figures.lost_packets,
            lost_runs: figures.lost_runs,
            sent_packets: figures.sent_packets,
            acked_packets: figures.acked_packets,
        }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    fn clear_wake(&self) {
        self.shared.wake.lower();
    }

    fn hold(&self, bytes: u64) {
        let before = self.shared.held.swap(bytes, Ordering::AcqRel);
        if before / intake::STEP != bytes / intake::STEP {
            self.shared.level.notify_one();
        }
    }

    fn welcome(&self) {
        self.shared.welcome(&self.connection);
    }

    fn abandon(self: Box<Self>) {
        // A listener's is not this carrier's to leave.
        if Arc::strong_count(&self.runtime) == 1 {
            self.runtime.leave();
        }
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        // The pump sees the end of the kicks and closes the connection.
        self.sending.kicks = None;
    }
}
