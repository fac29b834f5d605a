//! The endpoints of the side that connects, which its connections share.
//!
//! An endpoint is a socket, a buffer of 3 MB and a task: much for one short connection. So those that name no local
//! address share one, at most [`SHARE`] at a time, as all share one socket's buffer. Each still has its own way out,
//! and may take another. Invariant: an endpoint that is given out is open, and is closed once it is idle.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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
    runtime: Arc<PromptRuntime>,
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
    pub(super) runtime: Arc<PromptRuntime>,
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
        all.retain(|shared| shared.open_connections().is_some());
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
        match all.iter().position(|shared| lane.is_of(shared.sockets())) {
            Some(index) if all[index].open_connections().is_some_and(|count| count > 1) => false,
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
                if shared.open_connections().is_none_or(|count| count == 0) || looked && at_once {
                    all.retain(|other| !other.sockets().is(shared.sockets()));
                    shared.sockets().close();
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
    let shared = Shared::open(kind)?;
    let begun = shared.connect(connect);
    if begun.is_ok() {
        engine.detach(shared.sockets().clone().close_when_idle(shared.endpoint.clone()));
    }
    Ok(begun.map(|connecting| Begun {
        connecting,
        endpoint: shared.endpoint,
        runtime: shared.runtime,
        lane: None,
    }))
}

impl Shared {
    fn open(kind: Kind) -> std::io::Result<Self> {
        let (socket, _) = socket::bind(kind.local, kind.udp_buffer)?;
        let runtime = Arc::<PromptRuntime>::default();
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime.clone())?;
        Ok(Self { kind, endpoint, runtime })
    }

    fn sockets(&self) -> &Sockets {
        &self.runtime.sockets
    }

    fn has_room(&self) -> bool {
        self.open_connections().is_some_and(|count| count < SHARE)
    }

    /// `None`: a thread panicked in the endpoint, and noq panics in each that comes after it.
    fn open_connections(&self) -> Option<usize> {
        catch_unwind(AssertUnwindSafe(|| self.endpoint.open_connections())).ok()
    }

    fn begin(
        &self,
        connect: impl Fn(&Endpoint) -> Result<Connecting, ConnectError>,
    ) -> Result<Begun, ConnectError> {
        let (connecting, lane) = self.sockets().lane(|| self.connect(connect));
        let (endpoint, runtime) = (self.endpoint.clone(), Arc::clone(&self.runtime));
        Ok(Begun { connecting: connecting?, endpoint, runtime, lane })
    }

    /// Where `connect` panics, nothing is sent or received here any more.
    fn connect(
        &self,
        connect: impl Fn(&Endpoint) -> Result<Connecting, ConnectError>,
    ) -> Result<Connecting, ConnectError> {
        self.runtime.undriven(|| connect(&self.endpoint)).unwrap_or_else(|panic| {
            // noq panics in the destructor of the last but the task's.
            std::mem::forget(self.endpoint.clone());
            self.sockets().close();
            resume_unwind(panic)
        })
    }
}

/// When an endpoint that is idle and has connections is looked at again.
const AGAIN: Duration = Duration::from_millis(100);

/// One that has a connection which the system has not failed is not idle so soon: to close takes longer.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Connections that share an endpoint. A burst for one takes room in the socket's buffer from the others, and when one
/// takes another way all change their connection ids and send a PING.
const SHARE: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use noq::ClientConfig;
    use noq_proto::crypto::{ClientConfig as Crypto, Session};
    use noq_proto::transport_parameters::TransportParameters;

    use super::super::{ClientTls, ServerTrust};
    use super::*;

    /// A mistake within noq, while it holds its lock.
    struct Mistake;

    impl Crypto for Mistake {
        fn start_session(
            &self,
            _: u32,
            _: &str,
            _: &TransportParameters,
        ) -> Result<Box<dyn Session>, ConnectError> {
            panic!("on purpose")
        }
    }

    #[test]
    fn regression_an_endpoint_that_panicked_took_all_later_connections_with_it() {
        let engine = Engine::start().expect("an engine");
        let _inside = engine.enter();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let kind = Kind { local: (Ipv4Addr::LOCALHOST, 0).into(), udp_buffer: 64 << 10 };
        let tls = ClientTls {
            trust: ServerTrust::Insecure,
            identity: None,
            alpn: Vec::new(),
            tickets: None,
            server_name: None,
        };
        let crypto = tls.base().expect("a configuration");
        let crypto = noq::crypto::rustls::QuicClientConfig::try_from(crypto).expect("TLS 1.3");
        let begin = |config: ClientConfig| {
            let connect = |endpoint: &Endpoint| endpoint.connect_with(config.clone(), address, "localhost");
            engine.clients().begin(&engine, kind, connect).expect("a socket").expect("a connection")
        };
        let good = ClientConfig::new(Arc::new(crypto));
        let first = begin(good.clone());
        let its = first.endpoint.local_addr().expect("an address");
        let bad = ClientConfig::new(Arc::new(Mistake));
        assert!(catch_unwind(AssertUnwindSafe(|| begin(bad))).is_err());
        // What noq would be woken by, and panic.
        let stranger = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        stranger.send_to(b"hello", its).expect("room");
        let (tell, told) = std::sync::mpsc::channel();
        engine.detach(async move {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let _ = tell.send(());
        });
        told.recv().expect("the engine runs");
        drop(first);
        let _second = begin(good);
        assert_eq!(engine.clients().lock().len(), 1);
    }
}
