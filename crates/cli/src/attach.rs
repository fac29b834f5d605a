//! `wayferry attach`: a session that runs already, shown here.
//!
//! It is one of this machine, one of another that ssh reaches, or that of a ticket. Invariant: the compositor is looked at before
//! the ticket's secret is used, so that a ticket is not spent on a machine that cannot show anything.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};

use wayferry_net::Ticket;

use crate::control::{self, Request};
use crate::error::Error;
use crate::flags::{AttachFlags, OwnFlags, Which};
use crate::manage::remote_line;
use crate::notice::notice;
use crate::passing;
use crate::quic;
use crate::run::display_side::Outcome;
use crate::run::signals::Signals;
use crate::sessions;
use crate::ssh::ssh_again;
use crate::through::{finish, no_more, start};
use crate::viewer::{Prefer, Viewer};
use crate::wayback::Other;

/// Shows a session's windows until it ends or lets this display go; gives the exit code.
pub(crate) fn run(own: &OwnFlags, attach: &AttachFlags) -> Result<u8, Error> {
    if attach.tls_name.is_some() && !matches!(attach.which, Some(Which::Ticket(_))) {
        return Err(Error::Usage(
            "`--tls-name` goes with a ticket: sessions are otherwise found through ssh".into(),
        ));
    }
    match &attach.which {
        None => here(own, None, attach.view),
        Some(Which::Here(name)) => here(own, name.as_deref(), attach.view),
        Some(Which::There { host, session }) => there(own, host, session.as_deref(), attach.view),
        Some(Which::Ticket(ticket)) => redeem(own, attach, ticket),
    }
}

/// A session of this machine.
fn here(own: &OwnFlags, name: Option<&str>, view: bool) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let (_, socket) = sessions::call(name)?;
    let viewer = Viewer::new(own, &signals)?.looking_on(view);
    let request = if view { Request::View(None) } else { Request::Attach(None) };
    passing::send(&socket, &control::line(&request), &[])
        .map_err(|source| Error::System { doing: "speaking to the session", source })?;
    code(&viewer.meet(socket, Prefer::Socket, false, no_more, |name| Some(Other::Here(name, request)))?)
}

/// A session of another machine.
fn there(own: &OwnFlags, host: &str, session: Option<&str>, view: bool) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let viewer = Viewer::new(own, &signals)?.looking_on(view);
    let mut words = vec!["meet".to_owned()];
    words.extend(view.then(|| "--view".to_owned()));
    words.extend(session.map(str::to_owned));
    let command = [own.ssh_bin.clone(), "--".into(), OsString::from(host), remote_line(own, &words)];
    let (mut ssh, socket) = start(&command)?;
    let again = |name: String| Some(Other::Command(ssh_again(own, &[], OsStr::new(host), &name, view)));
    let result = viewer.meet(socket, Prefer::Quic, true, no_more, again);
    finish(&mut ssh, result, &signals)
}

/// The session of a ticket.
fn redeem(own: &OwnFlags, attach: &AttachFlags, ticket: &str) -> Result<u8, Error> {
    let ticket: Ticket = ticket.parse().map_err(|error| Error::Ticket(format!("{error}")))?;
    let addresses = match &attach.via {
        Some(via) => resolve(via)?,
        None => ticket.addresses.clone(),
    };
    let trust = quic::trust(attach, ticket.fingerprint)?;
    let signals = Signals::new()?;
    let viewer = Viewer::new(own, &signals)?.looking_on(attach.view);
    code(&viewer.redeem(&ticket, trust, &addresses, attach.timeout)?)
}

fn code(outcome: &Outcome) -> Result<u8, Error> {
    match outcome {
        Outcome::Exit(code) => Ok(*code),
        Outcome::HostLeft => {
            notice("the session let this display go, or has ended; `wayferry list` knows");
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
