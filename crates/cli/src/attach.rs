//! `wayferry attach`: the display side of a session that somebody else started.
//!
//! Invariant: the compositor is looked at before the ticket's secret is used, so that a ticket is not spent on a machine
//! that cannot show anything.

use std::net::{SocketAddr, ToSocketAddrs};

use wayferry_net::Ticket;
use wayferry_proto::{Session, Side};

use crate::error::Error;
use crate::flags::{AttachFlags, OwnFlags};
use crate::notice::notice;
use crate::quic;
use crate::run::Clock;
use crate::run::display_side::{Compositor, DisplaySide, Outcome, Watched};
use crate::run::link::Link;
use crate::run::offer::Offer;
use crate::run::signals::Signals;
use crate::session::{session_config, trace_file};
use crate::trace::Half;

/// Shows a host's windows until the session ends; gives the exit code.
pub(crate) fn run(own: &OwnFlags, attach: &AttachFlags) -> Result<u8, Error> {
    let ticket: Ticket = attach.ticket.parse().map_err(|error| Error::Ticket(format!("{error}")))?;
    let addresses = match &attach.via {
        Some(via) => resolve(via)?,
        None => ticket.addresses.clone(),
    };
    let signals = Signals::new()?;
    let clock = Clock::start();
    let trace = trace_file(own, Some(Half::Display))?;
    let watched = Watched::new(Compositor::from_environment()?, clock, Some(&signals))?;
    let identity = quic::identity()?;
    let carrier = quic::connect(own, &addresses, &identity, ticket.fingerprint, attach.timeout, &signals)?;
    let mut config = session_config(Side::Display, own, &clock);
    config.secret = Some(ticket.secret);
    config.session = ticket.session;
    let link = Link::new(Session::new(config), carrier);
    let side =
        DisplaySide::new(watched, clock, link, own.stats).with_allowed(own.allow.clone()).with_trace(trace);
    match side.with_signals(&signals).with_offer(Offer::new(Side::Display)).run()? {
        Outcome::Exit(code) => Ok(code),
        Outcome::HostLeft => {
            notice("the host ended the session");
            Ok(0)
        }
        Outcome::Stopped | Outcome::ConnectionEnded(_) => Ok(0),
    }
}

fn resolve(via: &str) -> Result<Vec<SocketAddr>, Error> {
    let addresses: Vec<SocketAddr> = via
        .to_socket_addrs()
        .map_err(|error| Error::Usage(format!("cannot use `{via}` as HOST:PORT: {error}")))?
        .collect();
    Ok(addresses)
}
