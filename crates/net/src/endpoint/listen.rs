//! Listening, as programs see it; `acceptor` does the work.
//!
//! Invariant: when a listener is gone no new peer comes in, and those that are in stay.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use noq::{Endpoint, EndpointConfig};
use tokio::sync::{Notify, mpsc};

use super::acceptor::{Acceptor, Counts, keep, server_config};
use super::link::saturate;
use super::runtime::PromptRuntime;
use super::{By, Config, Connection, Engine, Failure, Pending, Ready, ServerTls};
use crate::quic::socket;

/// A bound UDP port that accepts connections until it is closed or dropped. Connections live on when it is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    arrivals: mpsc::Receiver<Accepted>,
    acceptor: Arc<Acceptor>,
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
    pub web: bool,
}

/// Somebody who came in.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "there is one per connection, and it is taken apart at once")]
pub enum Accepted {
    /// A connection whose handshake is complete, or which brought early data.
    Raw(Connection),
    /// A client that asks for a WebTransport session.
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
        let runtime = Arc::<PromptRuntime>::default();
        let endpoint = {
            let _inside = engine.enter();
            Endpoint::new(EndpointConfig::default(), Some((*server).clone()), socket, runtime.clone())?
        };
        let address = endpoint.local_addr()?;
        let (taken, arrivals) = mpsc::channel(config.half_open.min(QUEUE_MAX));
        let acceptor = Arc::new(Acceptor {
            engine: engine.clone(),
            endpoint,
            runtime,
            config,
            retry: admission.retry,
            web: AtomicBool::new(admission.web),
            server: Mutex::new((tls.clone(), server)),
            counts: Counts::default(),
            stopping: Notify::new(),
            closed: Arc::default(),
        });
        let keeper = engine.spawn(keep(Arc::clone(&acceptor), taken));
        Ok(Self { address, arrivals, acceptor, _keeper: keeper })
    }

    /// The address that was bound, with the port that the system chose if that was left open.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Its connections, and those that come, belong to the loop that drains `ready`, which reads the socket itself
    /// while it has little to do.
    pub fn belong_to(&self, ready: &Arc<Ready>) {
        self.acceptor.runtime.belong_to(ready.lease());
    }

    /// The next who came in; `None` when the listener was closed or stopped, or the system has failed its socket, and
    /// no peer is left.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Option<Accepted>> {
        self.arrivals.poll_recv(cx)
    }

    /// Uses other certificates and trust from now on. Connections that there are stay; tickets of before are worth no
    /// more than a full handshake.
    ///
    /// # Errors
    /// [`Failure::Config`]; the old ones stay in use.
    pub fn reload_tls(&self, tls: &ServerTls) -> Result<(), Failure> {
        let server = server_config(tls, &self.acceptor.config, self.acceptor.web.load(Ordering::Relaxed))?;
        *self.acceptor.server() = (tls.clone(), server);
        Ok(())
    }

    /// Changes [`Admission::web`] for connections that come from now on.
    ///
    /// # Errors
    /// [`Failure::Config`] when this build has no WebTransport; nothing changes.
    pub fn set_web(&self, web: bool) -> Result<(), Failure> {
        let mut server = self.acceptor.server();
        let built = server_config(&server.0, &self.acceptor.config, web)?;
        server.1 = built;
        self.acceptor.web.store(web, Ordering::Relaxed);
        Ok(())
    }

    /// What it has seen so far.
    pub fn stats(&self) -> ListenerStats {
        let Acceptor { counts, endpoint, .. } = &*self.acceptor;
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
        if self.acceptor.closed.set(Failure::closed(By::Local, code.into_inner(), text)).is_ok() {
            self.acceptor.endpoint.close(code, reason);
        }
        self.stop();
    }

    /// Refuses new connections; those that there are go on.
    pub fn stop(&self) {
        self.acceptor.stop();
    }

    /// Completes when no connection of its is open any more and the peers were told.
    pub fn idle(&self) -> Pending<()> {
        let endpoint = self.acceptor.endpoint.clone();
        self.acceptor.engine.spawn(async move { endpoint.wait_all_draining().await })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.acceptor.stop();
    }
}

/// Complete connections that no caller has taken; further ones count as half open.
const QUEUE_MAX: usize = 64;
