//! Listening.
//!
//! Handshakes run side by side on the engine's thread; who has completed one waits to be taken. What fails is counted, and told
//! to nobody: anybody can send packets to a port. Invariant: handshakes under way and connections that nobody has taken are
//! bounded, whoever sends them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, ServerConfig, TokioRuntime};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::link::{Link, Side, canonical, saturate};
use super::{By, Config, Connection, Engine, Failure, Pending, ServerTls};
use crate::quic::socket;

/// A bound UDP port that accepts connections until it is closed or dropped. Connections live on when it is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    arrivals: mpsc::Receiver<Accepted>,
    door: Arc<Door>,
    /// Ends with this.
    _keeper: Pending<()>,
}

/// When clients must show that their address is theirs, which costs them a round trip (RFC 9000 §8.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// When a quarter of [`Config::half_open`] handshakes are under way.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How clients are let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// When addresses are validated.
    pub retry: Retry,
    /// Whether the application protocol `h3` means WebTransport, and is offered beside those of [`ServerTls::alpn`].
    /// Needs the feature `webtransport`.
    pub web: bool,
}

/// Somebody who came in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Accepted {
    /// A connection whose handshake is complete, or which brought early data.
    Raw(Connection),
    /// A client that asks for a WebTransport session.
    #[cfg(feature = "webtransport")]
    Web(super::web::Request),
}

/// What a listener has seen so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Handshakes that were completed.
    pub accepted: u64,
    /// Handshakes that failed.
    pub failed: u64,
    /// Attempts that were refused because too many were under way.
    pub refused: u64,
    /// Attempts that were sent back to validate their address.
    pub retried: u64,
    /// Handshakes under way, or complete with no place in the queue.
    pub half_open: usize,
    /// Connections open.
    pub open: usize,
    /// Why the last few handshakes failed, the newest last.
    pub failures: Vec<String>,
}

impl Listener {
    /// Binds `address`.
    ///
    /// # Errors
    /// [`Failure::Io`] when the port cannot be had, [`Failure::Config`] when a setting or the certificate is wrong.
    pub fn bind(
        engine: &Engine,
        address: SocketAddr,
        tls: &ServerTls,
        config: Config,
        admission: Admission,
    ) -> Result<Self, Failure> {
        let server = server_config(tls, &config, admission.web)?;
        let (socket, _) = socket::bind(address, config.udp_buffer)?;
        let endpoint = {
            let _inside = engine.enter();
            let runtime = Arc::new(TokioRuntime);
            Endpoint::new(EndpointConfig::default(), Some((*server).clone()), socket, runtime)?
        };
        let address = endpoint.local_addr()?;
        let (taken, arrivals) = mpsc::channel(config.half_open.min(QUEUE_MAX));
        let door = Arc::new(Door {
            engine: engine.clone(),
            endpoint,
            config,
            retry: admission.retry,
            web: AtomicBool::new(admission.web),
            server: Mutex::new((tls.clone(), server)),
            counts: Counts::default(),
            stopping: Notify::new(),
            closed: Arc::default(),
        });
        let keeper = engine.spawn(keep(Arc::clone(&door), taken));
        Ok(Self { address, arrivals, door, _keeper: keeper })
    }

    /// The address that was bound, with the port that the system chose if that was left open.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// The next who came in; `None` when the listener was closed or stopped and nobody is left.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Option<Accepted>> {
        self.arrivals.poll_recv(cx)
    }

    /// Uses other certificates and trust from now on. Connections that there are stay; tickets of before are worth no
    /// more than a full handshake.
    ///
    /// # Errors
    /// [`Failure::Config`]; the old ones stay in use.
    pub fn reload_tls(&self, tls: &ServerTls) -> Result<(), Failure> {
        let server = server_config(tls, &self.door.config, self.door.web.load(Ordering::Relaxed))?;
        *self.door.server() = (tls.clone(), server);
        Ok(())
    }

    /// Changes [`Admission::web`] for connections that come from now on.
    ///
    /// # Errors
    /// [`Failure::Config`] when this build has no WebTransport; nothing changes.
    pub fn set_web(&self, web: bool) -> Result<(), Failure> {
        let mut server = self.door.server();
        let built = server_config(&server.0, &self.door.config, web)?;
        server.1 = built;
        self.door.web.store(web, Ordering::Relaxed);
        Ok(())
    }

    /// What it has seen so far.
    pub fn stats(&self) -> ListenerStats {
        let Door { counts, endpoint, .. } = &*self.door;
        ListenerStats {
            accepted: counts.accepted.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            retried: counts.retried.load(Ordering::Relaxed),
            half_open: counts.half_open.load(Ordering::Relaxed),
            open: endpoint.open_connections(),
            failures: counts.failures().iter().cloned().collect(),
        }
    }

    /// Closes all its connections with `code` and `reason`, and accepts no more. A second close changes nothing.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let code = saturate(code);
        let text = super::failure::clean(&String::from_utf8_lossy(reason));
        if self.door.closed.set(Failure::closed(By::Local, code.into_inner(), text)).is_ok() {
            self.door.endpoint.close(code, reason);
        }
        self.stop();
    }

    /// Refuses new connections; those that there are go on.
    pub fn stop(&self) {
        self.door.stop();
    }

    /// Completes when no connection of its is open any more and the peers were told.
    pub fn idle(&self) -> Pending<()> {
        let endpoint = self.door.endpoint.clone();
        self.door.engine.spawn(async move { endpoint.wait_all_draining().await })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.door.stop();
    }
}

/// What came with early data, before the connection was handed out.
#[derive(Debug, Default)]
pub(super) struct Stash(Mutex<Option<Box<Stashed>>>);

#[derive(Debug, Default)]
struct Stashed {
    uni: VecDeque<RecvStream>,
    bi: VecDeque<(SendStream, RecvStream)>,
    datagrams: VecDeque<Bytes>,
}

impl Stash {
    pub(super) fn uni(&self) -> Option<RecvStream> {
        self.lock().as_mut()?.uni.pop_front()
    }

    pub(super) fn bi(&self) -> Option<(SendStream, RecvStream)> {
        self.lock().as_mut()?.bi.pop_front()
    }

    pub(super) fn datagram(&self) -> Option<Bytes> {
        self.lock().as_mut()?.datagrams.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Stashed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the listener and its task share.
#[derive(Debug)]
struct Door {
    engine: Engine,
    endpoint: Endpoint,
    config: Config,
    retry: Retry,
    web: AtomicBool,
    /// What is in use, and what it was made of.
    server: Mutex<(ServerTls, Arc<ServerConfig>)>,
    counts: Counts,
    stopping: Notify,
    closed: Arc<OnceLock<Failure>>,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    retried: AtomicU64,
    half_open: AtomicUsize,
    failures: Mutex<VecDeque<String>>,
}

impl Counts {
    fn failures(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, remote: SocketAddr, failure: &Failure) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.failures();
        failures.push_back(format!("{remote}: {failure}"));
        if failures.len() > FAILURES_MAX {
            failures.pop_front();
        }
    }
}

async fn keep(door: Arc<Door>, taken: mpsc::Sender<Accepted>) {
    let mut handshakes = JoinSet::new();
    loop {
        door.counts.half_open.store(handshakes.len(), Ordering::Relaxed);
        tokio::select! {
            () = door.stopping.notified() => break,
            Some(_) = handshakes.join_next() => {}
            incoming = door.endpoint.accept() => match incoming {
                Some(incoming) => {
                    if let Some(incoming) = door.sift(incoming, handshakes.len()) {
                        let (door, taken) = (Arc::clone(&door), taken.clone());
                        drop(handshakes.spawn(async move { door.admit(incoming, &taken).await }));
                    }
                }
                None => break,
            },
        }
    }
    // Those that are under way may still come in.
    while handshakes.join_next().await.is_some() {}
    door.counts.half_open.store(0, Ordering::Relaxed);
}

impl Door {
    fn stop(&self) {
        self.endpoint.set_server_config(None);
        self.stopping.notify_one();
    }

    fn server(&self) -> MutexGuard<'_, (ServerTls, Arc<ServerConfig>)> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends attempts away that are too many, or back.
    fn sift(&self, incoming: Incoming, busy: usize) -> Option<Incoming> {
        if busy >= self.config.half_open {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            incoming.refuse();
            return None;
        }
        let retry = match self.retry {
            Retry::Auto => busy >= (self.config.half_open / 4).max(1),
            Retry::Always => true,
            Retry::Never => false,
        };
        if retry && !incoming.remote_address_validated() {
            self.counts.retried.fetch_add(1, Ordering::Relaxed);
            // It is always possible where the address is not validated.
            let _ = incoming.retry();
            return None;
        }
        Some(incoming)
    }

    async fn admit(&self, incoming: Incoming, taken: &mpsc::Sender<Accepted>) {
        let remote = canonical(incoming.remote_address());
        let patience = self.config.handshake_timeout;
        let shaken = timeout(patience, self.shake(incoming)).await;
        match shaken.unwrap_or_else(|_| Err(Failure::no_answer(patience))) {
            Ok(accepted) => {
                self.counts.accepted.fetch_add(1, Ordering::Relaxed);
                // Whoever listened has gone when this fails, and the connection goes, too.
                let _ = taken.send(accepted).await;
            }
            Err(failure) => self.counts.fail(remote, &failure),
        }
    }

    async fn shake(&self, incoming: Incoming) -> Result<Accepted, Failure> {
        let server = Arc::clone(&self.server().1);
        let closed = Arc::clone(&self.closed);
        let of = |error: noq::ConnectionError| Failure::of(&error, closed.get());
        let mut connecting = incoming.accept_with(server).map_err(of)?;
        connecting.handshake_data().await.map_err(of)?;
        // On this side that is always possible.
        let Ok((connection, mut accepted)) = connecting.into_0rtt() else {
            return Err(Failure::Protocol("a listener cannot wait for the handshake".into()));
        };
        let mut stashed = Stashed::default();
        let complete = tokio::select! {
            biased;
            _ = &mut accepted => true,
            // Nothing can come before the handshake is complete but early data.
            Ok(stream) = connection.accept_uni() => {
                stashed.uni.push_back(stream);
                false
            }
            Ok(stream) = connection.accept_bi() => {
                stashed.bi.push_back(stream);
                false
            }
            Ok(datagram) = connection.read_datagram() => {
                stashed.datagrams.push_back(datagram);
                false
            }
        };
        if complete && let Some(error) = connection.close_reason() {
            // What was said before a close that came at once is still to be heard.
            if !matches!(error, noq::ConnectionError::ApplicationClosed(_)) {
                return Err(of(error));
            }
        }
        let side = Side::Server { closed: Arc::clone(&self.closed) };
        let mut link = Link::new(connection, self.engine.clone(), self.endpoint.clone(), side, &self.config);
        if !complete {
            link.watch_handshake(accepted, self.config.handshake_timeout);
        }
        #[cfg(feature = "webtransport")]
        if self.web.load(Ordering::Relaxed) && super::web::is_asked_for(&link) {
            let Stashed { uni, bi, .. } = stashed;
            return super::web::receive(link, &self.config, uni, bi).await.map(Accepted::Web);
        }
        link.stash = Stash(Mutex::new((!complete).then(|| Box::new(stashed))));
        Ok(Accepted::Raw(Connection::new(Arc::new(link))))
    }
}

fn server_config(tls: &ServerTls, config: &Config, web: bool) -> Result<Arc<ServerConfig>, Failure> {
    if web && !cfg!(feature = "webtransport") {
        return Err(Failure::Config("this build has no WebTransport".into()));
    }
    let transport = config.transport("server")?;
    let crypto = QuicServerConfig::try_from(tls.build(web, config)?)
        .map_err(|error| Failure::Config(error.to_string()))?;
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    server.transport_config(Arc::new(transport));
    server.max_incoming(config.half_open);
    server.incoming_buffer_size(INCOMING_BYTES).incoming_buffer_size_total(INCOMING_BYTES * 16);
    Ok(Arc::new(server))
}

/// Complete connections that nobody has taken; further ones count as half open.
const QUEUE_MAX: usize = 64;

/// Failures that are remembered.
const FAILURES_MAX: usize = 8;

/// Bytes kept of a handshake that has not been looked at.
const INCOMING_BYTES: u64 = 64 << 10;
