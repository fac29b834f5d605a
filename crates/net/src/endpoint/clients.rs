//! The endpoints of the side that connects, which its connections share.
//!
//! An endpoint is a socket, a buffer of 3 MB and a task: much for one short connection. So those that name no local
//! address share one, at most [`SHARE`] at a time, as all share one socket's buffer. Each still has its own way out,
//! and may take another. Invariant: an endpoint that is given out is open, and is closed once it is idle.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq::{ConnectError, Connecting, Endpoint, EndpointConfig};
use tokio::time::sleep;

use super::Engine;
use super::runtime::PromptRuntime;
use super::sockets::{Lane, Sockets};
use crate::quic::socket;

/// The endpoints of one engine that have room for more connections, or had.
#[derive(Clone, Debug, Default)]
pub(super) struct Clients(Arc<Mutex<Vec<Shared>>>);

#[derive(Clone, Debug)]
struct Shared {
    kind: Kind,
    endpoint: Endpoint,
    sockets: Sockets,
}

/// What connections must have in common to share an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// The address to send from, with port 0.
    pub(super) local: SocketAddr,
    /// Bytes of the socket's buffers.
    pub(super) udp_buffer: usize,
}

/// A connection that was begun, and where.
pub(super) struct Begun {
    pub(super) connecting: Connecting,
    pub(super) endpoint: Endpoint,
    /// Where other connections may be, too: the way of this one.
    pub(super) lane: Option<Lane>,
}

impl Clients {
    /// Has `connect` begin a connection on an endpoint of this kind.
    ///
    /// # Errors
    /// The system gives no socket; within, what `connect` says.
    pub(super) fn begin(
        &self,
        engine: &Engine,
        kind: Kind,
        connect: impl Fn(&Endpoint) -> Result<Connecting, ConnectError>,
    ) -> std::io::Result<Result<Begun, ConnectError>> {
        let mut all = self.lock();
        let found = all.iter().position(|shared| shared.kind == kind && shared.has_room());
        if let Some(index) = found {
            match all[index].begin(&connect) {
                // The system has failed it.
                Err(ConnectError::EndpointStopping) => drop(all.swap_remove(index)),
                begun => return Ok(begun),
            }
        }
        let shared = Shared::open(kind)?;
        let begun = shared.begin(&connect);
        if begun.is_ok() {
            all.push(shared.clone());
            drop(all);
            self.close_when_idle(engine, shared);
        }
        Ok(begun)
    }

    /// Whether the connection of `lane` has its endpoint for itself; from now on no other begins there then.
    pub(super) fn is_alone(&self, lane: &Lane) -> bool {
        let mut all = self.lock();
        match all.iter().position(|shared| lane.is_of(&shared.sockets)) {
            Some(index) if all[index].endpoint.open_connections() > 1 => false,
            Some(index) => {
                all.swap_remove(index);
                true
            }
            None => true,
        }
    }

    fn close_when_idle(&self, engine: &Engine, shared: Shared) {
        let clients = self.clone();
        engine.detach(async move {
            let mut looked = false;
            loop {
                let asked = Instant::now();
                shared.endpoint.wait_idle().await;
                let at_once = asked.elapsed() < AT_ONCE;
                // None can begin meanwhile.
                let mut all = clients.lock();
                // Where the system has failed the socket, noq is idle and has connections for ever.
                if shared.endpoint.open_connections() == 0 || looked && at_once {
                    all.retain(|other| !other.sockets.is(&shared.sockets));
                    shared.sockets.close();
                    return;
                }
                drop(all);
                // Else one has just begun.
                looked = true;
                sleep(AGAIN).await;
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has `connect` begin a connection on an endpoint of its own.
///
/// # Errors
/// As [`Clients::begin`].
pub(super) fn alone(
    engine: &Engine,
    kind: Kind,
    connect: impl Fn(&Endpoint) -> Result<Connecting, ConnectError>,
) -> std::io::Result<Result<Begun, ConnectError>> {
    let Shared { endpoint, sockets, .. } = Shared::open(kind)?;
    let begun = connect(&endpoint);
    if begun.is_ok() {
        sockets.close_when_idle(engine, &endpoint);
    }
    Ok(begun.map(|connecting| Begun { connecting, endpoint, lane: None }))
}

impl Shared {
    fn open(kind: Kind) -> std::io::Result<Self> {
        let (socket, _) = socket::bind(kind.local, kind.udp_buffer)?;
        let sockets = Sockets::default();
        let runtime = Arc::new(PromptRuntime(sockets.clone()));
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime)?;
        Ok(Self { kind, endpoint, sockets })
    }

    fn has_room(&self) -> bool {
        self.endpoint.open_connections() < SHARE
    }

    fn begin(
        &self,
        connect: impl Fn(&Endpoint) -> Result<Connecting, ConnectError>,
    ) -> Result<Begun, ConnectError> {
        let (connecting, lane) = self.sockets.lane(|| connect(&self.endpoint));
        Ok(Begun { connecting: connecting?, endpoint: self.endpoint.clone(), lane })
    }
}

/// When an endpoint that is idle and has connections is looked at again.
const AGAIN: Duration = Duration::from_millis(100);

/// One that has a connection which the system has not failed is not idle so soon: to close takes longer.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Connections that share an endpoint. A burst for one takes room in the socket's buffer from the others, and when one
/// takes another way all change their connection ids and send a PING.
const SHARE: usize = 64;
