//! Listening.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use super::{Config, Connection, Engine, Failure, Pending, ServerTls};

/// A bound UDP port that accepts connections until it is closed or dropped. Connections live on when it is dropped.
#[derive(Debug)]
pub struct Listener {}

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
    /// Handshakes under way, or complete and not taken yet.
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
        let _ = (engine, address, tls, config, admission);
        unimplemented!()
    }

    /// The address that was bound, with the port that the system chose if that was left open.
    pub fn local_address(&self) -> SocketAddr {
        unimplemented!()
    }

    /// The next who came in; `None` when the listener was closed and nobody is left.
    pub fn poll_accept(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Accepted>> {
        unimplemented!()
    }

    /// Uses other certificates and trust from now on. Connections that there are stay; tickets of before are worth no
    /// more than a full handshake.
    ///
    /// # Errors
    /// [`Failure::Config`]; the old ones stay in use.
    pub fn reload_tls(&self, tls: &ServerTls) -> Result<(), Failure> {
        let _ = tls;
        unimplemented!()
    }

    /// What it has seen so far.
    pub fn stats(&self) -> ListenerStats {
        unimplemented!()
    }

    /// Closes all its connections with `code` and `reason`, and accepts no more. A second close changes nothing.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let _ = (code, reason);
        unimplemented!()
    }

    /// Refuses new connections; those that there are go on.
    pub fn stop(&self) {
        unimplemented!()
    }

    /// Completes when no connection of its is open any more and the peers were told.
    pub fn idle(&self) -> Pending<()> {
        unimplemented!()
    }
}
