//! Connecting: the first address whose handshake completes wins.
//!
//! Attempts share endpoints, but for those that name a local address. Who sees a first packet can answer it:
//! the keys of Initial packets are no secret (RFC 9001 §5.2), so before the handshake is complete a close, an alert or
//! another version proves nothing. An address that fails so is tried again, a few times: a server that means it says it
//! each time, and its caller should not wait long for that. A wrong certificate disqualifies its address; the others
//! have a moment to do better, and if none does, that is what the caller is told, for a peer that is not the expected
//! one is an error to tell and not one to route around. Invariant: at most one attempt survives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::QuicClientConfig;
use noq::{ConnectionError, Endpoint, ZeroRttAccepted};
use rustls::client::Resumption;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clients::{self, Begun, Kind};
use super::cutting::Cutting;
use super::link::{Link, Side};
use super::probe;
use super::runtime::PromptRuntime;
use super::sockets::Lane;
use super::{By, ClientTls, Config, Connection, Engine, Failure, Pending};
use crate::keylog::KeyLogTo;
use crate::quic::race::local_address;

/// Where to connect to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server's addresses, the preferred one first. Each next one is tried when 250 ms have passed, or those before
    /// it have failed.
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
    let ticket = plan.ticket.clone();
    let won = Box::pin(plan.race(&engine)).await?;
    let side =
        Side::Client { udp_buffer: config.udp_buffer, lane: won.lane.map(Arc::new), runtime: won.runtime };
    let mut link = Link::new(won.connection, engine, won.endpoint, side, config);
    link.ticket = ticket;
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
    /// Whether a ticket has come. Attempts that lose end with their handshake, so it is the winner's.
    ticket: Option<watch::Receiver<bool>>,
    patience: Duration,
    udp_buffer: usize,
}

/// An attempt whose handshake is complete, or whose early data may go.
struct Won {
    connection: noq::Connection,
    endpoint: Endpoint,
    runtime: Arc<PromptRuntime>,
    /// `None`: the endpoint is the connection's own.
    lane: Option<Lane>,
    accepted: Option<ZeroRttAccepted>,
}

impl Plan {
    fn new(target: Target, tls: &ClientTls, config: &Config) -> Result<Self, Failure> {
        let transport = Arc::new(config.transport("client")?);
        let first =
            target.addresses.first().ok_or_else(|| Failure::Config("no address to connect to".into()))?;
        let name = tls.server_name.as_ref().unwrap_or(&target.server_name).clone();
        let (mut early, mut ticket) = (false, None);
        let mut crypto = match &tls.tickets {
            Some(tickets) => {
                let (mut crypto, scope) = tickets.base(tls, &name, first.port())?;
                // A race would use up several; only the first attempt of one without early data gets one.
                early = target.early_data && tickets.has(&scope);
                let alone = early || target.addresses.len() == 1;
                let (shelf, known) = tickets.shelf(scope, alone);
                ticket = Some(known);
                crypto.resumption = Resumption::store(shelf);
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
        let mut noq = noq::ClientConfig::new(Arc::new(Cutting(crypto)));
        noq.transport_config(transport);
        let (patience, udp_buffer) = (config.handshake_timeout, config.udp_buffer);
        Ok(Self { target, name, noq, early, ticket, patience, udp_buffer })
    }

    async fn race(self, engine: &Engine) -> Result<Won, Failure> {
        let plan = Arc::new(self);
        let mut deadline = Instant::now() + plan.patience;
        let mut waiting = plan.target.addresses.iter().copied();
        let mut attempts = JoinSet::new();
        let (mut failure, mut fault) = (Failure::no_answer(plan.patience), None);
        loop {
            let next = waiting.next().filter(|_| !plan.early || attempts.is_empty());
            match next {
                Some(address) => drop(attempts.spawn(persist(Arc::clone(&plan), engine.clone(), address))),
                None if attempts.is_empty() => return Err(fault.unwrap_or(failure)),
                None => {}
            }
            let more = !plan.early && waiting.len() > 0;
            tokio::select! {
                () = sleep_until(deadline) => {
                    return Err(fault.unwrap_or_else(|| Failure::no_answer(plan.patience)));
                }
                () = sleep(STAGGER), if more => {}
                Some(tried) = attempts.join_next() => match tried {
                    Ok(Ok(won)) => return Ok(won),
                    Ok(Err(error @ Failure::Config(_))) => return Err(error),
                    // The caller is told this, also where the other addresses fail in another way.
                    Ok(Err(error)) if error.is_verdict() => {
                        deadline = deadline.min(Instant::now() + VERDICT_GRACE);
                        fault.get_or_insert(error);
                    }
                    // A host without IPv6 can still reach the others.
                    Ok(Err(error)) => failure = error,
                    Err(_) => {}
                }
            }
        }
    }

    /// One attempt at one address; within, how it ended that was begun.
    async fn try_once(
        &self,
        address: SocketAddr,
        engine: &Engine,
    ) -> Result<Result<Won, ConnectionError>, Failure> {
        let begun = self.start(address, engine)?;
        attempt(begun, address, self.early).await
    }

    /// Sends the first packet to one address.
    fn start(&self, address: SocketAddr, engine: &Engine) -> Result<Begun, Failure> {
        let connect = |endpoint: &Endpoint| endpoint.connect_with(self.noq.clone(), address, &self.name);
        let kind = |local| Kind { local, udp_buffer: self.udp_buffer };
        let begun = match self.target.local {
            Some(local) => clients::alone(engine, kind(local), connect)?,
            None => engine.clients().begin(engine, kind(local_address(&[address])), connect)?,
        };
        begun.map_err(|error| match error {
            noq::ConnectError::InvalidServerName(name) => {
                Failure::Config(format!("`{name}` is neither a host name nor an address"))
            }
            error => Failure::Io(Arc::new(std::io::Error::other(error.to_string()))),
        })
    }
}

/// Tries one address, again if what ended the attempt can have been said by anybody, or may have stopped one of the
/// two.
async fn persist(plan: Arc<Plan>, engine: Engine, address: SocketAddr) -> Result<Won, Failure> {
    let mut limit = FIRST_TRY;
    for pause in PAUSES {
        match timeout(limit, plan.try_once(address, &engine)).await {
            Ok(tried) => match tried? {
                Ok(won) => return Ok(won),
                Err(error) if is_fault(&error) => return Err(Failure::of(&error, None)),
                Err(_) => {}
            },
            Err(_) => limit *= 2,
        }
        sleep(pause).await;
    }
    plan.try_once(address, &engine).await?.map_err(|error| Failure::of(&error, None))
}

/// Whether this side has found fault with the peer's certificate.
fn is_fault(error: &ConnectionError) -> bool {
    let ConnectionError::TransportError(error) = error else { return false };
    let tls = error.crypto.as_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

async fn attempt(
    begun: Begun,
    address: SocketAddr,
    early: bool,
) -> Result<Result<Won, ConnectionError>, Failure> {
    let Begun { connecting, endpoint, runtime, lane } = begun;
    if !early {
        return attempt_whole(Begun { connecting, endpoint, runtime, lane }, address).await;
    }
    match connecting.into_0rtt() {
        Ok((connection, accepted)) => {
            Ok(Ok(Won { connection, endpoint, runtime, lane, accepted: Some(accepted) }))
        }
        // The ticket has expired.
        Err(connecting) => attempt_whole(Begun { connecting, endpoint, runtime, lane }, address).await,
    }
}

async fn attempt_whole(begun: Begun, address: SocketAddr) -> Result<Result<Won, ConnectionError>, Failure> {
    let Begun { mut connecting, endpoint, runtime, lane } = begun;
    let began = Instant::now();
    let connected = tokio::select! {
        connected = &mut connecting => connected,
        () = probe::refused(address) => {
            // A peer that answers the handshake and not the probe has as long again.
            match timeout(began.elapsed(), connecting).await {
                Ok(connected) => connected,
                Err(_) => {
                    let reason = format!("nobody listens at UDP port {} of `{}`", address.port(), address.ip());
                    return Err(Failure::closed(By::Refused, 0, reason));
                }
            }
        }
    };
    Ok(connected.map(|connection| Won { connection, endpoint, runtime, lane, accepted: None }))
}

/// How long a handshake may take before it is begun anew, for the first time.
const FIRST_TRY: Duration = Duration::from_secs(3);

/// How long to wait before an address is tried again.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200)];

/// How much later than one with a wrong certificate another address may answer.
const VERDICT_GRACE: Duration = Duration::from_millis(900);

/// How long an attempt is alone (RFC 8305 §8).
const STAGGER: Duration = Duration::from_millis(250);
