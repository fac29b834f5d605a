//! Connecting: the first address whose handshake completes wins.
//!
//! Each attempt has a socket of its own, which moves when its connection does. What TLS says is final: a wrong certificate at one
//! address is an error to tell, not one to route around. Invariant: at most one attempt survives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::QuicClientConfig;
use noq::{Connecting, Endpoint, EndpointConfig, ZeroRttAccepted};
use rustls::client::Resumption;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::link::{Link, Side};
use super::probe;
use super::runtime::PromptRuntime;
use super::sockets::Sockets;
use super::{By, ClientTls, Config, Connection, Engine, Failure, Pending};
use crate::keylog::KeyLogTo;
use crate::quic::race::local_address;
use crate::quic::socket;

/// Where to connect to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server's addresses, the preferred one first. Each next one is tried when 250 ms have passed, or those before it
    /// have failed.
    pub addresses: Vec<SocketAddr>,
    /// The host that was asked for, a name or an address.
    pub server_name: String,
    /// The address to send from. `None`: what the system chooses.
    pub local: Option<SocketAddr>,
    /// Whether to give the connection out before the handshake is complete, if there is a ticket. Then only the first
    /// address is tried. What is sent until then may be sent again by somebody on the path.
    pub early_data: bool,
}

/// Connects; begins at once.
///
/// Of the errors, [`Failure::Tls`] is about the peer or what this side showed it, [`Failure::Closed`] says by whom.
pub fn connect(
    engine: &Engine,
    target: Target,
    tls: ClientTls,
    config: Config,
) -> Pending<Result<Connection, Failure>> {
    let inside = engine.clone();
    engine.spawn(async move {
        let link = connect_link(inside, target, &tls, &config).await?;
        Ok(Connection::new(Arc::new(link)))
    })
}

/// Connects, on the engine's thread.
pub(super) async fn connect_link(
    engine: Engine,
    target: Target,
    tls: &ClientTls,
    config: &Config,
) -> Result<Link, Failure> {
    let plan = Plan::new(target, tls, config)?;
    let won = Box::pin(plan.race(&engine)).await?;
    let side = Side::Client { udp_buffer: config.udp_buffer };
    let mut link = Link::new(won.connection, engine, won.endpoint, side, config);
    if let Some(accepted) = won.accepted {
        link.watch_handshake(accepted, config.handshake_timeout);
    }
    Ok(link)
}

/// All that the attempts need.
struct Plan {
    target: Target,
    name: String,
    noq: noq::ClientConfig,
    early: bool,
    patience: Duration,
    udp_buffer: usize,
}

/// An attempt whose handshake is complete, or whose early data may go.
struct Won {
    connection: noq::Connection,
    endpoint: Endpoint,
    accepted: Option<ZeroRttAccepted>,
}

impl Plan {
    fn new(target: Target, tls: &ClientTls, config: &Config) -> Result<Self, Failure> {
        let transport = Arc::new(config.transport("client")?);
        let first =
            target.addresses.first().ok_or_else(|| Failure::Config("no address to connect to".into()))?;
        let name = tls.server_name.as_ref().unwrap_or(&target.server_name).clone();
        let mut early = false;
        let mut crypto = match &tls.tickets {
            Some(tickets) => {
                let (mut crypto, scope) = tickets.base(tls, &name, first.port())?;
                // A race would use up several; only the first attempt of one without early data gets one.
                early = target.early_data && tickets.has(&scope);
                let alone = early || target.addresses.len() == 1;
                crypto.resumption = Resumption::store(tickets.shelf(scope, alone));
                crypto
            }
            None => tls.base()?,
        };
        crypto.enable_early_data = early;
        if let Some(path) = &config.keylog {
            crypto.key_log = Arc::new(KeyLogTo::open(path)?);
        }
        let crypto =
            QuicClientConfig::try_from(crypto).map_err(|error| Failure::Config(error.to_string()))?;
        let mut noq = noq::ClientConfig::new(Arc::new(crypto));
        noq.transport_config(transport);
        let (patience, udp_buffer) = (config.handshake_timeout, config.udp_buffer);
        Ok(Self { target, name, noq, early, patience, udp_buffer })
    }

    async fn race(self, engine: &Engine) -> Result<Won, Failure> {
        let deadline = Instant::now() + self.patience;
        let mut waiting = self.target.addresses.iter().copied();
        let mut attempts = JoinSet::new();
        let mut failure = Failure::no_answer(self.patience);
        loop {
            let next = waiting.next().filter(|_| !self.early || attempts.is_empty());
            match next.map(|address| self.start(address, engine)) {
                Some(Ok((connecting, endpoint, address))) => {
                    drop(attempts.spawn(attempt(connecting, endpoint, address, self.early)));
                }
                Some(Err(error @ Failure::Config(_))) => return Err(error),
                // A host without IPv6 can still reach the others.
                Some(Err(error)) => failure = error,
                None if attempts.is_empty() => return Err(failure),
                None => {}
            }
            let more = !self.early && waiting.len() > 0;
            if attempts.is_empty() {
                continue;
            }
            tokio::select! {
                () = sleep_until(deadline) => return Err(Failure::no_answer(self.patience)),
                () = sleep(STAGGER), if more => {}
                Some(tried) = attempts.join_next() => match tried {
                    Ok(Ok(won)) => return Ok(won),
                    Ok(Err(error)) if error.is_verdict() => return Err(error),
                    Ok(Err(error)) => failure = error,
                    Err(_) => {}
                }
            }
        }
    }

    /// Sends the first packet to one address.
    fn start(
        &self,
        address: SocketAddr,
        engine: &Engine,
    ) -> Result<(Connecting, Endpoint, SocketAddr), Failure> {
        let local = self.target.local.unwrap_or_else(|| local_address(&[address]));
        let (socket, _) = socket::bind(local, self.udp_buffer)?;
        let sockets = Sockets::default();
        let runtime = Arc::new(PromptRuntime(sockets.clone()));
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, runtime)?;
        match endpoint.connect_with(self.noq.clone(), address, &self.name) {
            Ok(connecting) => {
                sockets.close_when_idle(engine, &endpoint);
                Ok((connecting, endpoint, address))
            }
            Err(noq::ConnectError::InvalidServerName(name)) => {
                Err(Failure::Config(format!("`{name}` is neither a host name nor an address")))
            }
            Err(error) => Err(Failure::Io(Arc::new(std::io::Error::other(error.to_string())))),
        }
    }
}

async fn attempt(
    connecting: Connecting,
    endpoint: Endpoint,
    address: SocketAddr,
    early: bool,
) -> Result<Won, Failure> {
    if !early {
        return attempt_whole(connecting, endpoint, address).await;
    }
    match connecting.into_0rtt() {
        Ok((connection, accepted)) => Ok(Won { connection, endpoint, accepted: Some(accepted) }),
        // The ticket has expired.
        Err(connecting) => attempt_whole(connecting, endpoint, address).await,
    }
}

async fn attempt_whole(
    mut connecting: Connecting,
    endpoint: Endpoint,
    address: SocketAddr,
) -> Result<Won, Failure> {
    let began = Instant::now();
    let connected = tokio::select! {
        connected = &mut connecting => connected,
        () = probe::refused(address) => {
            // Whoever answers the handshake and not the probe has as long again.
            match tokio::time::timeout(began.elapsed(), connecting).await {
                Ok(connected) => connected,
                Err(_) => {
                    let reason = format!("nobody listens at UDP port {} of `{}`", address.port(), address.ip());
                    return Err(Failure::closed(By::Refused, 0, reason));
                }
            }
        }
    };
    let connection = connected.map_err(|error| Failure::of(&error, None))?;
    Ok(Won { connection, endpoint, accepted: None })
}

/// How long an attempt is alone (RFC 8305 §8).
const STAGGER: Duration = Duration::from_millis(250);
