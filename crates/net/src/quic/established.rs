//! A connection that is there: its tasks, and the handle that a run loop gets.
//!
//! How it came to be is the listener's and the race's affair. Invariant: when the handle is dropped, what was handed
//! over still leaves, and then the connection is closed.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use noq::Connection;
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wayferry_mux::Backlog;
use wayferry_proto::admission::NO_PLACE;
use wayferry_proto::{Arrival, CloseReason, LinkState, Transmit};

use super::config::Options;
use super::framing::Framing;
use super::runtime::{Guests, Runtime};
use super::shared::{STEP, Shared};
use super::{intake, probe, pump};
use crate::carrier::Carrier;
use crate::identity::Fingerprint;
use crate::outbox::Feeder;

/// An established connection.
pub struct Connected {
    /// For the run loop.
    pub carrier: Box<dyn Carrier>,
    /// The peer's certificate. Under [`Peers::Secret`](crate::Peers::Secret) it proves only that it stays the same
    /// peer. A page has none.
    pub peer: Option<Fingerprint>,
    /// Where the peer is.
    pub address: SocketAddr,
    /// On the display side: what was to leave early did, and was taken. On the app side: the peer came back with a
    /// ticket, and what it says first may be early data, which somebody on the path may have held back.
    pub early: bool,
}

/// The sending side in use: tells the pump what the run loop hands over.
pub(super) struct Sending {
    /// `None`: nothing comes any more.
    pub(super) kicks: Option<mpsc::UnboundedSender<()>>,
    pub(super) feeder: Feeder,
    pub(super) pump: JoinHandle<()>,
}

impl Sending {
    /// Call inside the runtime.
    pub(super) fn start(
        connection: &Connection,
        framing: Framing,
        shared: &Arc<Shared>,
        guests: &Guests,
        options: &Options,
    ) -> Self {
        let (kicks, kicked) = mpsc::unbounded_channel();
        let (connection, line) = (connection.clone(), Arc::clone(shared));
        let pump = pump::Pump::new(connection, framing, line, kicked, options.open_timeout);
        let pump = tokio::spawn(pump.run(guests.pass()));
        Self { kicks: Some(kicks), feeder: Feeder::new(Arc::clone(&shared.outbox)), pump }
    }

    pub(super) fn transmit(&mut self, transmit: Transmit) {
        if self.feeder.feed(transmit)
            && let Some(kicks) = &self.kicks
        {
            // Fails when the connection is over, which the last arrival tells.
            let _ = kicks.send(());
        }
    }

    pub(super) fn say(&mut self, transmits: &[Transmit]) {
        transmits.iter().cloned().for_each(|transmit| self.transmit(transmit));
    }

    /// Nothing that was handed over counts any more.
    pub(super) async fn abandon(self, shared: &Shared) {
        self.pump.abort();
        let _ = self.pump.await;
        let (_, counted) = shared.outbox.take();
        shared.meter.settle(counted, Backlog::default());
    }
}

/// A connection with its tasks running, not yet in anybody's hands.
pub(super) struct Established {
    pub(super) connection: Connection,
    pub(super) framing: Framing,
    pub(super) shared: Arc<Shared>,
    pub(super) sending: Sending,
    pub(super) peer: Option<Fingerprint>,
    pub(super) address: SocketAddr,
    pub(super) early: bool,
}

impl Established {
    /// Starts the tasks; call inside the runtime.
    pub(super) fn new(
        connection: Connection,
        framing: Framing,
        shared: Arc<Shared>,
        sending: Sending,
        address: SocketAddr,
        early: bool,
        guests: &Guests,
    ) -> Self {
        tokio::spawn(intake::run(connection.clone(), framing.clone(), Arc::clone(&shared)));
        tokio::spawn(probe::run(connection.clone(), guests.clone(), Arc::clone(&shared)));
        let peer = peer_of(&connection);
        Self { connection, framing, shared, sending, peer, address, early }
    }

    /// Ends it before anybody has seen it; call inside the runtime.
    pub(super) fn turn_away(self) {
        let (code, text) = CloseReason::TooMuch(NO_PLACE.into()).to_wire();
        tokio::spawn(async move { self.framing.close(&self.connection, code, &text).await });
    }

    pub(super) fn into_connected(self, runtime: Arc<Runtime>) -> Connected {
        let Self { connection, framing, shared, sending, peer, address, early } = self;
        let carrier = Quic { sending, shared, connection, framing, runtime };
        Connected { carrier: Box::new(carrier), peer, address, early }
    }
}

/// The peer's certificate, as soon as it has proved to hold the key, now or when it got the ticket that it shows.
pub(super) fn peer_of(connection: &Connection) -> Option<Fingerprint> {
    let certificates = connection.peer_identity()?.downcast::<Vec<CertificateDer>>().ok()?;
    certificates.first().map(Fingerprint::of)
}

/// The handle of a QUIC carrier. The order of the fields matters: the runtime goes last.
struct Quic {
    sending: Sending,
    shared: Arc<Shared>,
    connection: Connection,
    framing: Framing,
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
            rtt_deviation: figures.rtt_deviation,
            base_rtt: figures.base_rtt,
            queue_delay: figures.queue_delay,
            payload: Some(figures.payload),
            in_order: !self.framing.is_read_in_any_order(),
            datagram: self.framing.datagram_max(&self.connection),
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
        if before / STEP != bytes / STEP {
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
