//! Coming back to an app side: what a display keeps for it, and attempts that run in the background.
//!
//! The first connection through a [`Reconnect`] is like any other. Later ones show a TLS ticket that came with an
//! earlier one, and what the caller marks as safe to replay leaves with the first packet, so that the answer is there
//! after one round trip instead of two. Everything else waits until the peer has proved who it is. The app side takes a
//! ticket once, so early data arrives at most once by itself; but somebody on the path may hold it back, and the caller
//! must not mind. A ticket is good for as long as the app side remembers it, a day at most; certificates, names and
//! dates are looked at again only when there is none. Nothing here tells a user anything.
//!
//! Invariant: a ticket is used for the identity and the trust that it was got with, and for no others.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::sleep;
use wayferry_proto::Transmit;

use super::config::Options;
use super::error::{ConnectError, SetupError, Warning};
use super::established::Connected;
use super::race::{Plan, Race, Won};
use super::roam::Ways;
use super::runtime::{Guests, Runtime};
use crate::identity::{Identity, client_config};
use crate::tickets::Tickets;
use crate::trust::Trust;
use crate::wake::Wake;

/// Connects to the app side that `trust` describes (a pinned [`Fingerprint`](crate::Fingerprint) will do) at whichever
/// address answers first, within `patience`.
///
/// Blocks the caller. It returns as soon as the app side has proved who it is; whether *it* accepts this side's
/// certificate shows one round trip later, and if not, [`CloseReason::TlsRefused`] is the first and last arrival.
///
/// [`CloseReason::TlsRefused`]: wayferry_proto::CloseReason::TlsRefused
pub fn connect(
    addresses: &[SocketAddr],
    identity: &Identity,
    trust: impl Into<Trust>,
    patience: Duration,
    options: &Options,
) -> Result<(Connected, Vec<Warning>), ConnectError> {
    Reconnect::new(addresses, identity, trust, options)?.connect(Vec::new(), patience)
}

/// How to come back to an app side. Clones share its tickets and what is known of its addresses.
#[derive(Clone)]
pub struct Reconnect {
    tls: rustls::ClientConfig,
    tickets: Arc<Tickets>,
    trust: Trust,
    /// The one that worked last comes first.
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    options: Options,
}

impl Reconnect {
    /// For the app side that `trust` describes, at these addresses, with this identity each time.
    pub fn new(
        addresses: &[SocketAddr],
        identity: &Identity,
        trust: impl Into<Trust>,
        options: &Options,
    ) -> Result<Self, SetupError> {
        let (trust, tickets) = (trust.into(), Arc::new(Tickets::default()));
        Ok(Self {
            tls: client_config(identity, &trust, Arc::clone(&tickets), options.log_keys)?,
            tickets,
            trust,
            addresses: Arc::new(Mutex::new(addresses.to_vec())),
            options: options.clone(),
        })
    }

    /// Whether the next attempt can begin with early data.
    pub fn has_ticket(&self) -> bool {
        !self.tickets.is_empty()
    }

    /// Where the app side may be: the address that worked last comes first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.lock().clone()
    }

    /// Tries other addresses from now on; those that are known already keep their order.
    pub fn add_addresses(&self, addresses: &[SocketAddr]) {
        let mut known = self.lock();
        for address in addresses {
            if !known.contains(address) {
                known.push(*address);
            }
        }
    }

    /// Connects as [`connect`] does, and blocks the caller. The transmits in `early`, which open streams and write to
    /// them, go before all others: as early data where there is a ticket, else after the handshake; in either case
    /// they arrive, and must not be given to the carrier again. They must be safe to replay, so never input.
    pub fn connect(
        &self,
        early: Vec<Transmit>,
        patience: Duration,
    ) -> Result<(Connected, Vec<Warning>), ConnectError> {
        self.attempt(early, patience)?.wait()
    }

    /// The same in the background.
    pub fn attempt(&self, early: Vec<Transmit>, patience: Duration) -> Result<Attempt, SetupError> {
        self.start(early, Some(patience))
    }

    /// The same again and again, until it succeeds, TLS refuses, or it is dropped. The pauses grow from 100 ms to 5 s;
    /// a change of this host's way to one of the addresses begins a new try at once.
    pub fn persist(&self, early: Vec<Transmit>) -> Result<Attempt, SetupError> {
        self.start(early, None)
    }

    fn start(&self, early: Vec<Transmit>, patience: Option<Duration>) -> Result<Attempt, SetupError> {
        self.options.prepare()?;
        let (runtime, wake) = (Runtime::start()?, Arc::new(Wake::new()?));
        let (sender, receiver) = channel();
        let teller = Teller { sender: Some(sender), wake: Arc::clone(&wake) };
        let (guests, reconnect) = (runtime.guests.clone(), self.clone());
        let work = runtime.handle.spawn(async move {
            let result = match patience {
                Some(patience) => Race::new(&reconnect.plan(early), &guests, patience).run().await,
                None => reconnect.try_on(early, &guests).await,
            };
            if let Ok(won) = &result {
                reconnect.prefer(won.established.address);
            }
            teller.tell(result);
        });
        Ok(Attempt { result: receiver, wake, work: work.abort_handle(), runtime: Some(runtime) })
    }

    async fn try_on(&self, early: Vec<Transmit>, guests: &Guests) -> Result<Won, ConnectError> {
        let mut ways = Ways::open(&self.addresses()).ok();
        let mut pause = FIRST_PAUSE;
        loop {
            let plan = self.plan(early.clone());
            tokio::select! {
                result = Race::new(&plan, guests, TRY).run() => match result {
                    Err(error) if error.is_verdict() || matches!(error, ConnectError::Setup(_)) => {
                        return Err(error);
                    }
                    Err(_) => {}
                    won => return won,
                },
                () = changed(&mut ways) => pause = FIRST_PAUSE,
            }
            guests.dismiss();
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = changed(&mut ways) => pause = FIRST_PAUSE,
            }
        }
    }

    fn plan(&self, early: Vec<Transmit>) -> Plan {
        let Self { tls, tickets, trust, options, .. } = self.clone();
        Plan { addresses: self.addresses(), trust, tls, tickets, early, options }
    }

    fn prefer(&self, address: SocketAddr) {
        let mut addresses = self.lock();
        addresses.retain(|known| *known != address);
        addresses.insert(0, address);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for a change; for ever where the kernel tells none.
async fn changed(ways: &mut Option<Ways>) {
    if let Some(open) = ways
        && open.changed().await.is_ok()
    {
        return;
    }
    *ways = None;
    std::future::pending::<()>().await;
}

/// Where the end of an attempt is told, even if that is a panic.
struct Teller {
    sender: Option<Sender<Result<Won, ConnectError>>>,
    wake: Arc<Wake>,
}

impl Teller {
    fn tell(self, result: Result<Won, ConnectError>) {
        if let Some(sender) = &self.sender {
            // Fails when the attempt was dropped.
            let _ = sender.send(result);
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.sender = None;
        self.wake.raise();
    }
}

/// An attempt to connect that runs in the background. Dropping it cancels it, and waits for nothing.
pub struct Attempt {
    result: Receiver<Result<Won, ConnectError>>,
    wake: Arc<Wake>,
    work: AbortHandle,
    runtime: Option<Arc<Runtime>>,
}

impl Attempt {
    /// The end of the attempt, once; `None` before and after that. Never blocks.
    pub fn poll(&mut self) -> Option<Result<(Connected, Vec<Warning>), ConnectError>> {
        let result = match self.result.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(lost()),
        };
        if let (Err(_), Some(runtime)) = (&result, &self.runtime) {
            // The sockets of a failure take up to half a second to close; a run loop must not wait for them.
            runtime.leave();
        }
        self.take(result)
    }

    /// Readable when [`Attempt::poll`] has something.
    pub fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Blocks until the end.
    fn wait(mut self) -> Result<(Connected, Vec<Warning>), ConnectError> {
        let result = self.result.recv().unwrap_or_else(|_| Err(lost()));
        self.take(result).unwrap_or_else(|| Err(lost()))
    }

    fn take(
        &mut self,
        result: Result<Won, ConnectError>,
    ) -> Option<Result<(Connected, Vec<Warning>), ConnectError>> {
        let runtime = self.runtime.take()?;
        Some(result.map(|won| (won.established.into_connected(runtime), won.warnings)))
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(runtime) = &self.runtime {
            self.work.abort();
            runtime.leave();
        }
    }
}

/// The runtime died.
fn lost() -> ConnectError {
    SetupError::System(std::io::ErrorKind::BrokenPipe.into()).into()
}

/// How long one try of several lasts. Each takes a ticket with it, so that they should not be many.
const TRY: Duration = Duration::from_secs(10);

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
