//! Lets clients in: the listener's task.
//!
//! Handshakes run side by side. What fails is counted, and told to no caller: anybody can send packets to a port.
//! Invariant: handshakes under way and connections that no caller has taken are bounded, from any peers.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use noq::crypto::rustls::QuicServerConfig;
use noq::{Connecting, Endpoint, Incoming, ServerConfig};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::arrived::Arrived;
use super::cutting::Cutting;
use super::link::{Link, Side, canonical};
use super::runtime::PromptRuntime;
use super::stash::{Stash, Stashed};
use super::{Accepted, Config, Connection, Engine, Failure, Retry, ServerTls};

/// What the listener and its task share.
#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) engine: Engine,
    pub(super) endpoint: Endpoint,
    pub(super) runtime: Arc<PromptRuntime>,
    pub(super) config: Config,
    pub(super) retry: Retry,
    pub(super) web: AtomicBool,
    /// What is in use, and what it was made of.
    pub(super) server: Mutex<(ServerTls, Arc<ServerConfig>)>,
    pub(super) counts: Counts,
    pub(super) stopping: Notify,
    pub(super) closed: Arc<OnceLock<Failure>>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) retried: AtomicU64,
    pub(super) half_open: AtomicUsize,
    pub(super) failures: Mutex<VecDeque<String>>,
}

impl Counts {
    pub(super) fn failures(&self) -> MutexGuard<'_, VecDeque<String>> {
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

pub(super) async fn keep(acceptor: Arc<Acceptor>, taken: mpsc::Sender<Accepted>) {
    let mut handshakes = JoinSet::new();
    loop {
        acceptor.counts.half_open.store(handshakes.len(), Ordering::Relaxed);
        tokio::select! {
            () = acceptor.stopping.notified() => break,
            Some(_) = handshakes.join_next() => {}
            incoming = acceptor.endpoint.accept() => match incoming {
                Some(incoming) => {
                    let begun = acceptor.sift(incoming, handshakes.len()).and_then(|incoming| acceptor.begin(incoming));
                    if let Some((remote, connecting)) = begun {
                        let (acceptor, taken) = (Arc::clone(&acceptor), taken.clone());
                        drop(handshakes.spawn(async move { acceptor.admit(remote, connecting, &taken).await }));
                    }
                }
                None => break,
            },
        }
    }
    // Those that are under way may still come in.
    while handshakes.join_next().await.is_some() {}
    acceptor.counts.half_open.store(0, Ordering::Relaxed);
}

impl Acceptor {
    /// No attempt comes in any more, and those that no caller has looked at are refused.
    pub(super) fn stop(&self) {
        // Without any configuration noq 1.4.0 panics at the next packet of an attempt that waits.
        let mut shut = ServerConfig::clone(&self.server().1);
        shut.max_incoming(0);
        self.endpoint.set_server_config(Some(shut));
        let _inside = self.engine.enter();
        let noop = &mut Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(incoming)) = pin!(self.endpoint.accept()).poll(noop) {
            incoming.refuse();
        }
        self.stopping.notify_one();
        self.engine.detach(self.runtime.sockets.clone().close_when_idle(self.endpoint.clone()));
    }

    pub(super) fn server(&self) -> MutexGuard<'_, (ServerTls, Arc<ServerConfig>)> {
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

    /// From here on it is one of noq's connections, which the sockets stay open for: before anything else can run.
    fn begin(&self, incoming: Incoming) -> Option<(SocketAddr, Connecting)> {
        let remote = canonical(incoming.remote_address());
        let server = Arc::clone(&self.server().1);
        match incoming.accept_with(server) {
            Ok(connecting) => Some((remote, connecting)),
            Err(error) => {
                self.counts.fail(remote, &Failure::of(&error, self.closed.get()));
                None
            }
        }
    }

    async fn admit(&self, remote: SocketAddr, connecting: Connecting, taken: &mpsc::Sender<Accepted>) {
        let patience = self.config.handshake_timeout;
        let shaken = timeout(patience, self.shake(connecting)).await;
        match shaken.unwrap_or_else(|_| Err(Failure::no_answer(patience))) {
            Ok(accepted) => {
                self.counts.accepted.fetch_add(1, Ordering::Relaxed);
                // The listener has gone when this fails, and the connection goes, too.
                let _ = taken.send(accepted).await;
            }
            Err(failure) => self.counts.fail(remote, &failure),
        }
    }

    async fn shake(&self, mut connecting: Connecting) -> Result<Accepted, Failure> {
        let closed = Arc::clone(&self.closed);
        let of = |error: noq::ConnectionError| Failure::of(&error, closed.get());
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
        if self.web.load(Ordering::Relaxed) && super::web::is_asked_for(&link) {
            let Stashed { uni, bi, .. } = stashed;
            return super::web::receive(link, &self.config, uni, bi).await.map(Accepted::Web);
        }
        if !complete {
            link.arrived = Mutex::new(Arrived::new(std::mem::take(&mut stashed.datagrams)));
            link.stash = Stash::new(stashed);
        }
        Ok(Accepted::Raw(Connection::new(Arc::new(link))))
    }
}

pub(super) fn server_config(
    tls: &ServerTls,
    config: &Config,
    web: bool,
) -> Result<Arc<ServerConfig>, Failure> {
    let transport = config.transport("server")?;
    let crypto = QuicServerConfig::try_from(tls.build(web, config)?)
        .map_err(|error| Failure::Config(error.to_string()))?;
    let mut server = ServerConfig::with_crypto(Arc::new(Cutting(crypto)));
    server.transport_config(Arc::new(transport));
    server.max_incoming(config.half_open);
    server.incoming_buffer_size(INCOMING_BYTES).incoming_buffer_size_total(INCOMING_BYTES * 16);
    Ok(Arc::new(server))
}

/// Failures that are remembered.
const FAILURES_MAX: usize = 8;

/// Bytes kept of a handshake that has not been looked at.
const INCOMING_BYTES: u64 = 64 << 10;
