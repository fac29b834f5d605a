//! The display side: tries all addresses at once and takes the first that answers.
//!
//! What TLS says is final: a wrong certificate on one address ends the race at once, because a peer that is not the
//! expected one is an error to tell, not one to route around. Only the first address gets a ticket: what leaves as early
//! data should not arrive twice. As the peer may have taken what was said there for what it is, another one wins only where
//! that stays without an answer. Invariant: at most one attempt survives.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use noq::{
    ConnectError as NoqConnectError, Connecting, Connection, ConnectionError, Endpoint, EndpointConfig,
    TokioRuntime, ZeroRttAccepted,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use wayferry_proto::Transmit;

use super::config::Options;
use super::error::{ConnectError, SetupError, Warning, connect_error};
use super::runtime::Guests;
use super::standing::Standing;
use super::{Established, Sending, Shared, roam, socket};
use crate::tickets::Tickets;
use crate::trust::Trust;

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
    failure: ConnectError,
}

/// The winner.
pub(super) struct Won {
    pub(super) established: Established,
    /// What the user should know of its socket.
    pub(super) warnings: Vec<Warning>,
}

/// What became of an attempt.
type Tried = (SocketAddr, Result<Answered, ConnectionError>);

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
            failure: ConnectError::NoAddress,
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
            None => Err(ConnectError::TimedOut { after: patience }),
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
                self.failure = ConnectError::Unreachable { address, reason: error.to_string() };
                return Ok(());
            }
        };
        for &address in addresses {
            let contender = Contender {
                address,
                endpoint: endpoint.clone(),
                shared: Shared::new(Standing::of_app(self.plan.options.streams)).map_err(SetupError::from)?,
                guests: self.guests.clone(),
                plan: self.plan.clone(),
            };
            let early = !self.plan.early.is_empty() && self.plan.addresses.first() == Some(&address);
            let speaks = early && !self.plan.tickets.is_empty();
            match contender.start(early)? {
                Ok(connecting) => {
                    self.spoken = speaks.then_some(address).or(self.spoken);
                    drop(self.attempts.spawn(contender.run(connecting)));
                }
                Err(error) => self.failure = unusable(address, &error),
            }
        }
        Ok(())
    }

    fn endpoint(&mut self, addresses: &[SocketAddr]) -> std::io::Result<Endpoint> {
        let (socket, warnings) = socket::bind(local_address(addresses), self.plan.options.udp_buffer)?;
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
        loop {
            let tried = match &self.faster {
                Some((_, until)) => timeout_at(*until, self.attempts.join_next()).await.unwrap_or(None),
                None => self.attempts.join_next().await,
            };
            match tried {
                Some(Ok((address, Err(error)))) => self.fail(address, &error)?,
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
            None => Err(std::mem::replace(&mut self.failure, ConnectError::NoAddress)),
        }
    }

    /// An attempt failed; gives what ends the race.
    fn fail(&mut self, address: SocketAddr, error: &ConnectionError) -> Result<(), ConnectError> {
        self.spoken = self.spoken.filter(|spoken| *spoken != address);
        let error = connect_error(address, error, self.patience);
        if error.is_verdict() {
            return Err(error);
        }
        self.failure = error;
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
            let mut sending = Sending::start(&connection, &shared, self.guests, options);
            sending.say(early);
            (sending, false)
        });
        Established::new(connection, shared, sending, address, taken, self.guests)
    }
}

/// One address of a race.
struct Contender {
    address: SocketAddr,
    endpoint: Endpoint,
    shared: Arc<Shared>,
    guests: Guests,
    plan: Plan,
}

impl Contender {
    /// Sends the first packet; with a ticket, if there is one and it is wanted.
    fn start(&self, with_ticket: bool) -> Result<Result<Connecting, NoqConnectError>, SetupError> {
        let Plan { tls, tickets, options, trust, .. } = &self.plan;
        let config = options.client(tls.clone(), Arc::clone(&self.shared.meter))?;
        tickets.allow(with_ticket);
        let connecting = self.endpoint.connect_with(config, self.address, trust.server_name());
        tickets.allow(false);
        Ok(connecting)
    }

    async fn run(self, connecting: Connecting) -> Tried {
        let result = match connecting.into_0rtt() {
            Ok((connection, accepted)) => self.say_early(connection, accepted).await,
            // There was no ticket.
            Err(connecting) => connecting.await.map(|connection| Begun { connection, said: None }),
        };
        let Self { address, endpoint, shared, .. } = self;
        (address, result.map(|begun| Answered { address, endpoint, shared, begun }))
    }

    /// Says what is safe to replay at once; again, if the peer did not take it, once it has proved who it is.
    async fn say_early(
        &self,
        connection: Connection,
        accepted: ZeroRttAccepted,
    ) -> Result<Begun, ConnectionError> {
        let Plan { options, early, .. } = &self.plan;
        let mut sending = Sending::start(&connection, &self.shared, &self.guests, options);
        sending.say(early);
        let taken = accepted.await;
        // It may have failed meanwhile, which is not told otherwise.
        if let Some(error) = connection.close_reason() {
            return Err(error);
        }
        if !taken {
            sending.abandon(&self.shared).await;
            sending = Sending::start(&connection, &self.shared, &self.guests, options);
            sending.say(early);
        }
        Ok(Begun { connection, said: Some((sending, taken)) })
    }
}

/// Loopback stays on loopback; anything else leaves through whatever the routes say.
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

/// How much later than another address the one may answer to which early data has gone. Where it never does, coming back takes so
/// much longer.
const GRACE: Duration = Duration::from_millis(200);
