//! The display side: tries all addresses at once and takes the first that answers.
//!
//! What TLS says is final: a wrong certificate on one address ends the race at once, because a peer that is not the
//! expected one is an error to tell, not one to route around. Invariant: at most one attempt survives.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::{
    ConnectError as NoqConnectError, Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::config::Options;
use super::error::{ConnectError, SetupError, Warning, connect_error};
use super::runtime::{Guests, Runtime};
use super::{Connected, Established, Shared, roam, socket};
use crate::identity::{Identity, client_config};
use crate::trust::Trust;

/// Connects to the app side that `trust` describes (a pinned [`Fingerprint`](crate::Fingerprint) will do) at whichever address answers first, within `patience`.
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
    options.prepare()?;
    let runtime = Runtime::start().map_err(SetupError::from)?;
    let trust = trust.into();
    let mut race = Race {
        tls: client_config(identity, &trust, options.log_keys).map_err(SetupError::from)?,
        trust,
        options: options.clone(),
        guests: runtime.guests.clone(),
        patience,
        warnings: Vec::new(),
        attempts: JoinSet::new(),
        failure: ConnectError::NoAddress,
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    let addresses = addresses.to_vec();
    runtime.handle.spawn(async move {
        let result = race.run(&addresses).await;
        let _ = sender.send((result, race.warnings));
    });
    // The sender is dropped without a word only when the runtime dies.
    let lost = |_| (Err(SetupError::System(std::io::ErrorKind::BrokenPipe.into()).into()), Vec::new());
    let (result, warnings) = receiver.recv().unwrap_or_else(lost);
    result.map(|established| (established.into_connected(runtime), warnings))
}

struct Race {
    trust: Trust,
    tls: rustls::ClientConfig,
    options: Options,
    guests: Guests,
    patience: Duration,
    warnings: Vec<Warning>,
    attempts: JoinSet<Tried>,
    failure: ConnectError,
}

/// What became of an attempt.
struct Tried {
    address: SocketAddr,
    endpoint: Endpoint,
    shared: Arc<Shared>,
    result: Result<Connection, ConnectionError>,
}

impl Race {
    async fn run(&mut self, addresses: &[SocketAddr]) -> Result<Established, ConnectError> {
        for family in [SocketAddr::is_ipv4, SocketAddr::is_ipv6] {
            let addresses: Vec<_> = addresses.iter().copied().filter(family).collect();
            if !addresses.is_empty() {
                self.start(&addresses)?;
            }
        }
        let patience = self.patience;
        timeout(patience, self.first()).await.unwrap_or(Err(ConnectError::TimedOut { after: patience }))
    }

    /// Starts an attempt at each address of one family, all from one socket.
    fn start(&mut self, addresses: &[SocketAddr]) -> Result<(), ConnectError> {
        let address = addresses[0];
        let endpoint = match self.endpoint(addresses) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                // A host without IPv6 can still reach the others.
                self.failure = ConnectError::Unreachable { address, reason: error.to_string() };
                return Ok(());
            }
        };
        for &address in addresses {
            let shared = Shared::new().map_err(SetupError::from)?;
            let config = self.options.client(self.tls.clone(), Arc::clone(&shared.meter))?;
            match endpoint.connect_with(config, address, self.trust.server_name()) {
                Ok(connecting) => {
                    let endpoint = endpoint.clone();
                    self.attempts
                        .spawn(async move { Tried { address, endpoint, shared, result: connecting.await } });
                }
                Err(error) => self.failure = unusable(address, &error),
            }
        }
        Ok(())
    }

    fn endpoint(&mut self, addresses: &[SocketAddr]) -> std::io::Result<Endpoint> {
        let (socket, warnings) = socket::bind(local_address(addresses), self.options.udp_buffer)?;
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
        self.guests.add(endpoint.clone());
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        Ok(endpoint)
    }

    async fn first(&mut self) -> Result<Established, ConnectError> {
        while let Some(attempt) = self.attempts.join_next().await {
            let Ok(Tried { address, endpoint, shared, result }) = attempt else { continue };
            match result {
                Ok(connection) => {
                    self.attempts.abort_all();
                    let buffer = self.options.udp_buffer;
                    tokio::spawn(roam::run(connection.clone(), endpoint, address, buffer));
                    return Ok(Established::new(connection, shared, address, &self.guests, &self.options));
                }
                Err(error) => {
                    let error = connect_error(address, &error, self.patience);
                    if error.is_verdict() {
                        return Err(error);
                    }
                    self.failure = error;
                }
            }
        }
        Err(std::mem::replace(&mut self.failure, ConnectError::NoAddress))
    }
}

/// Loopback stays on loopback; anything else leaves through whatever the routes say.
fn local_address(addresses: &[SocketAddr]) -> SocketAddr {
    let ip: IpAddr =
        match (addresses[0].is_ipv6(), addresses.iter().all(|address| address.ip().is_loopback())) {
            (false, true) => Ipv4Addr::LOCALHOST.into(),
            (false, false) => Ipv4Addr::UNSPECIFIED.into(),
            (true, true) => Ipv6Addr::LOCALHOST.into(),
            (true, false) => Ipv6Addr::UNSPECIFIED.into(),
        };
    SocketAddr::new(ip, 0)
}

fn unusable(address: SocketAddr, error: &NoqConnectError) -> ConnectError {
    ConnectError::Unreachable { address, reason: error.to_string() }
}
