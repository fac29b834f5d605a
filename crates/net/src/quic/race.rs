//! The display side: tries all addresses at once and takes the first that answers.
//!
//! Everyone who sees a first packet can answer it: the keys of Initial packets are no secret (RFC 9001 §5.2), so before
//! the handshake is complete a close, an alert or another version proves nothing. An address that fails so is tried
//! again, for as long as the caller has patience, and so is one that does not go on. A wrong certificate disqualifies
//! its address; the others have a moment to do better, and if none does, that is what the caller is told, for a peer
//! that is not the expected one is an error to tell and not one to route around. Only the first address gets a ticket:
//! what leaves as early data should not arrive twice, and is not said again in the same race. As the peer may have
//! taken what was said there for what it is, another one wins only where that stays without an answer. Invariant: at
//! most one attempt survives.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::{
    ConnectError as NoqConnectError, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig,
    ZeroRttAccepted,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use wayferry_proto::Transmit;

use super::config::Options;
use super::error::{ConnectError, SetupError, Warning, connect_error};
use super::established::{Established, Sending};
use super::framing::Framing;
use super::runtime::Guests;
use super::shared::Shared;
use super::standing::Standing;
use super::{roam, socket};
use crate::tickets::Tickets;
use crate::trust::Trust;
use crate::udp::UdpRuntime;

/// Where to go, whom to meet there, and what to say first.
#[derive(Clone)]
pub(super) struct Plan {
    /// The first one is where early data goes.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) trust: Trust,
    pub(super) tls: rustls::ClientConfig,
    pub(super) tickets: Arc<Tickets>,
    pub(super) early: Vec<Transmit>,
    pub(super) options: Options,
}

/// One try of all addresses.
pub(super) struct Race<'a> {
    plan: &'a Plan,
    guests: &'a Guests,
    patience: Duration,
    warnings: Vec<Warning>,
    attempts: JoinSet<Tried>,
    /// Where early data has gone, while there is no answer.
    spoken: Option<SocketAddr>,
    /// One that answered before that, and until when it waits.
    faster: Option<(Answered, Instant)>,
    /// Until when the others may do better than an address that is out of the race.
    grace: Option<Instant>,
    ways: BTreeMap<SocketAddr, Way>,
}

/// One address, as it has gone so far.
struct Way {
    endpoint: Option<Endpoint>,
    tries: u32,
    failure: Option<ConnectError>,
}

/// The winner.
pub(super) struct Won {
    pub(super) established: Established,
    /// What the user should know of its socket.
    pub(super) warnings: Vec<Warning>,
}

/// What became of an attempt; no error if it only took too long.
type Tried = (SocketAddr, Result<Answered, Option<ConnectError>>);

/// One that can win.
struct Answered {
    address: SocketAddr,
    endpoint: Endpoint,
    shared: Arc<Shared>,
    begun: Begun,
}

/// A connection whose handshake is complete.
struct Begun {
    connection: Connection,
    /// Where what should leave early has been said, and whether it was taken as early data.
    said: Option<(Sending, bool)>,
}

impl<'a> Race<'a> {
    pub(super) fn new(plan: &'a Plan, guests: &'a Guests, patience: Duration) -> Self {
        Self {
            plan,
            guests,
            patience,
            warnings: Vec::new(),
            attempts: JoinSet::new(),
            spoken: None,
            faster: None,
            grace: None,
            ways: BTreeMap::new(),
        }
    }

    /// The first that answers.
    pub(super) async fn run(mut self) -> Result<Won, ConnectError> {
        for family in [SocketAddr::is_ipv4, SocketAddr::is_ipv6] {
            let addresses: Vec<_> = self.plan.addresses.iter().copied().filter(family).collect();
            if !addresses.is_empty() {
                self.start(&addresses)?;
            }
        }
        let patience = self.patience;
        let first = timeout(patience, self.first()).await;
        let established = first.unwrap_or_else(|_| match self.faster.take() {
            Some((answered, _)) => Ok(self.settle(answered)),
            None => Err(self.failure()),
        })?;
        Ok(Won { established, warnings: self.warnings })
    }

    /// Starts an attempt at each address of one family, all from one socket.
    fn start(&mut self, addresses: &[SocketAddr]) -> Result<(), ConnectError> {
        let address = addresses[0];
        let endpoint = match self.endpoint(addresses) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                // A host without IPv6 can still reach the others.
                let failure = Some(ConnectError::Unreachable { address, reason: error.to_string() });
                self.ways.insert(address, Way { endpoint: None, tries: 0, failure });
                return Ok(());
            }
        };
        for &address in addresses {
            let way = Way { endpoint: Some(endpoint.clone()), tries: 0, failure: None };
            self.ways.insert(address, way);
            let early = !self.plan.early.is_empty() && self.plan.addresses.first() == Some(&address);
            let speaks = early && !self.plan.tickets.is_empty();
            let contender = self.contender(address, endpoint.clone())?;
            match contender.start(early)? {
                Ok(connecting) => {
                    self.spoken = speaks.then_some(address).or(self.spoken);
                    drop(self.attempts.spawn(contender.run(connecting)));
                }
                Err(error) => self.note(address, Some(unusable(address, &error))),
            }
        }
        Ok(())
    }

    fn contender(&self, address: SocketAddr, endpoint: Endpoint) -> Result<Contender, SetupError> {
        let tries = self.ways.get(&address).map_or(0, |way| way.tries);
        Ok(Contender {
            address,
            endpoint,
            shared: Shared::new(Standing::of_app(self.plan.options.streams))?,
            guests: self.guests.clone(),
            plan: self.plan.clone(),
            patience: self.patience,
            limit: FIRST_TRY * 2u32.saturating_pow(tries),
        })
    }

    fn note(&mut self, address: SocketAddr, failure: Option<ConnectError>) {
        if let (Some(way), Some(failure)) = (self.ways.get_mut(&address), failure) {
            way.failure = Some(failure);
        }
    }

    /// Tries an address again, after a pause.
    fn again(&mut self, address: SocketAddr) -> Result<(), SetupError> {
        let Some(way) = self.ways.get_mut(&address) else { return Ok(()) };
        let Some(endpoint) = way.endpoint.clone() else { return Ok(()) };
        let pause = (FIRST_PAUSE * 2u32.saturating_pow(way.tries)).min(LONGEST_PAUSE);
        way.tries += 1;
        let contender = self.contender(address, endpoint)?;
        self.attempts.spawn(async move {
            sleep(pause).await;
            match contender.start(false) {
                Ok(Ok(connecting)) => contender.run(connecting).await,
                Ok(Err(error)) => (address, Err(Some(unusable(address, &error)))),
                Err(error) => (address, Err(Some(error.into()))),
            }
        });
        Ok(())
    }

    /// What the caller is told when no address was right: the most telling of their failures.
    fn failure(&mut self) -> ConnectError {
        let failures = std::mem::take(&mut self.ways).into_values().filter_map(|way| way.failure);
        let most = failures.max_by_key(ConnectError::weight);
        let silent = ConnectError::TimedOut { after: self.patience };
        let none = if self.plan.addresses.is_empty() { ConnectError::NoAddress } else { silent };
        match most {
            Some(failure) if self.attempts.is_empty() || failure.weight() > none.weight() => failure,
            _ => none,
        }
    }

    fn endpoint(&mut self, addresses: &[SocketAddr]) -> std::io::Result<Endpoint> {
        let (socket, warnings) = socket::bind(local_address(addresses), self.plan.options.udp_buffer)?;
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(UdpRuntime))?;
        self.guests.add(endpoint.clone());
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        Ok(endpoint)
    }

    async fn first(&mut self) -> Result<Established, ConnectError> {
        loop {
            let until = self.faster.iter().map(|(_, until)| *until).chain(self.grace).min();
            let tried = match until {
                Some(until) => timeout_at(until, self.attempts.join_next()).await.unwrap_or(None),
                None => self.attempts.join_next().await,
            };
            match tried {
                Some(Ok((address, Err(failure)))) => self.fail(address, failure)?,
                Some(Ok((address, Ok(answered)))) => {
                    if self.spoken.is_none_or(|spoken| spoken == address) {
                        return Ok(self.settle(answered));
                    }
                    self.faster.get_or_insert((answered, Instant::now() + GRACE));
                }
                Some(Err(_)) => {}
                None => break,
            }
            if self.spoken.is_none() && self.faster.is_some() {
                break;
            }
        }
        match self.faster.take() {
            Some((answered, _)) => Ok(self.settle(answered)),
            None => Err(self.failure()),
        }
    }

    /// An attempt failed; gives what ends the race.
    fn fail(&mut self, address: SocketAddr, failure: Option<ConnectError>) -> Result<(), ConnectError> {
        let spoke = self.spoken == Some(address);
        if spoke {
            self.spoken = None;
        }
        match failure {
            // The right peer says so: another one cannot, after the handshake.
            Some(error @ (ConnectError::Rejected { .. } | ConnectError::Setup(_))) => return Err(error),
            Some(error) if spoke || error.is_verdict() => {
                self.grace.get_or_insert(Instant::now() + VERDICT_GRACE);
                self.note(address, Some(error));
            }
            failure => {
                self.note(address, failure);
                self.again(address)?;
            }
        }
        Ok(())
    }

    /// Takes one, and gives the others up.
    fn settle(&mut self, answered: Answered) -> Established {
        let Answered { address, endpoint, shared, begun: Begun { connection, said } } = answered;
        self.attempts.abort_all();
        let Plan { options, early, .. } = self.plan;
        let roamer = Arc::clone(&shared);
        tokio::spawn(roam::run(connection.clone(), endpoint, address, options.udp_buffer, roamer));
        let (sending, taken) = said.unwrap_or_else(|| {
            let mut sending = Sending::start(&connection, Framing::Plain, &shared, self.guests, options);
            sending.say(early);
            (sending, false)
        });
        Established::new(connection, Framing::Plain, shared, sending, address, taken, self.guests)
    }
}

/// One address of a race.
struct Contender {
    address: SocketAddr,
    endpoint: Endpoint,
    shared: Arc<Shared>,
    guests: Guests,
    plan: Plan,
    /// The caller's.
    patience: Duration,
    /// How long the handshake may take: one packet that somebody invented may have stopped the peer.
    limit: Duration,
}

impl Contender {
    /// Sends the first packet; with a ticket, if there is one and it is wanted.
    fn start(&self, with_ticket: bool) -> Result<Result<Connecting, NoqConnectError>, SetupError> {
        let Plan { tls, tickets, options, trust, .. } = &self.plan;
        let config = options.client(tls.clone(), &self.shared.meter)?;
        tickets.allow(with_ticket);
        let connecting = self.endpoint.connect_with(config, self.address, trust.server_name());
        tickets.allow(false);
        Ok(connecting)
    }

    async fn run(self, connecting: Connecting) -> Tried {
        let result = match connecting.into_0rtt() {
            Ok((connection, accepted)) => self.say_early(connection, accepted).await.map_err(Some),
            // There was no ticket.
            Err(connecting) => match timeout(self.limit, connecting).await {
                Ok(Ok(connection)) => alive(connection).map_err(Some),
                Ok(Err(error)) => Err(Some(error)),
                Err(_) => Err(None),
            },
        };
        let Self { address, endpoint, shared, patience, .. } = self;
        let result = result.map(|begun| Answered { address, endpoint, shared, begun });
        (address, result.map_err(|error| error.map(|error| connect_error(address, &error, patience))))
    }

    /// Says what is safe to replay at once; again, if the peer did not take it, once it has proved who it is.
    async fn say_early(
        &self,
        connection: Connection,
        accepted: ZeroRttAccepted,
    ) -> Result<Begun, ConnectionError> {
        let Plan { options, early, .. } = &self.plan;
        let mut sending = Sending::start(&connection, Framing::Plain, &self.shared, &self.guests, options);
        sending.say(early);
        let taken = accepted.await;
        // It may have failed meanwhile, which is not told otherwise.
        if let Some(error) = connection.close_reason() {
            return Err(error);
        }
        if !taken {
            sending.abandon(&self.shared).await;
            sending = Sending::start(&connection, Framing::Plain, &self.shared, &self.guests, options);
            sending.say(early);
        }
        Ok(Begun { connection, said: Some((sending, taken)) })
    }
}

/// A connection whose handshake is complete, unless it is over already. An Initial packet that comes with the last one
/// of the handshake is still heard, from any sender; afterwards only the peer can end the connection.
fn alive(connection: Connection) -> Result<Begun, ConnectionError> {
    match connection.close_reason() {
        Some(error @ (ConnectionError::ConnectionClosed(_) | ConnectionError::TransportError(_))) => {
            Err(error)
        }
        _ => Ok(Begun { connection, said: None }),
    }
}

/// Loopback stays on loopback; anything else leaves as the routes say.
pub(crate) fn local_address(addresses: &[SocketAddr]) -> SocketAddr {
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

/// How much later than another address the one may answer to which early data has gone. Where it never does, coming
/// back takes so much longer.
const GRACE: Duration = Duration::from_millis(200);

/// How much later than one that is out of the race another address may answer: a long round trip, or a lost packet and
/// a short one, and less than a user notices.
const VERDICT_GRACE: Duration = Duration::from_millis(900);

/// How long a handshake may take before it is begun anew beside all that it may have met; each later one twice as long.
const FIRST_TRY: Duration = Duration::from_secs(3);

/// The pause before an address is tried again; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
