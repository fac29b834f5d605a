//! `wayferry attach`: a session that runs already, shown here.
//!
//! It is one of this machine, one of another that ssh reaches, or that of a ticket. Invariant: the compositor is looked
//! at before the ticket's secret is used, so that a ticket is not spent on a machine that cannot show anything.

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};

use wayferry_net::Ticket;

use crate::error::{Error, SessionError};
use crate::flags::{AttachFlags, OwnFlags, Which};
use crate::leaving::Leaving;
use crate::remote::{self, BROKEN, MISSING, again};
use crate::ssh::ssh_again;
use crate::tell::{OwnEvent, notice, tell};
use crate::through::{finish, no_more};
use crate::ticket_file;
use crate::trust;
use crate::viewer::{Meeting, Viewer};
use wayferry_host::control::{self, Request};
use wayferry_host::display_side::Outcome;
use wayferry_host::edge::programs::start_on_socket;
use wayferry_host::edge::signals::Signals;
use wayferry_host::passing;
use wayferry_host::reconnect::Other;
use wayferry_host::sessions;

/// Shows a session's windows until it ends or lets this display go; gives the exit code.
pub(crate) fn run(own: &OwnFlags, attach: &AttachFlags) -> Result<u8, Error> {
    let ticket = ticket(attach)?;
    if attach.tls_name.is_some() && ticket.is_none() {
        return Err(Error::usage(
            "`--tls-name` goes with a ticket: sessions are otherwise found through ssh",
        ));
    }
    match (ticket, &attach.which) {
        (Some(ticket), _) => redeem(own, attach, &ticket),
        (None, Some(Which::There { host, session })) => there(own, host, session.as_deref(), attach.view),
        (None, Some(Which::Here(name))) => here(own, name.as_deref(), attach.view),
        (None, _) => here(own, None, attach.view),
    }
}

/// The ticket that was given, wherever it stands.
fn ticket(attach: &AttachFlags) -> Result<Option<String>, Error> {
    match (&attach.ticket_file, &attach.which) {
        (Some(path), _) => ticket_file::read(path).map(Some),
        (None, Some(Which::Stdin)) => ticket_file::from_stdin().map(Some),
        (None, Some(Which::Ticket(ticket))) => {
            notice(
                "other users of this machine can see a ticket on a command line; `wayferry attach -` reads it from stdin",
            );
            Ok(Some(ticket.clone()))
        }
        (None, _) => Ok(None),
    }
}

/// A session of this machine.
fn here(own: &OwnFlags, name: Option<&str>, view: bool) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let (_, socket) = sessions::call(name)?;
    let viewer = Viewer::new(own, &signals)?.view_only(view);
    let request = if view { Request::View(None) } else { Request::Attach(None) };
    passing::send(&socket, &control::line(&request), &[])
        .map_err(|source| SessionError::System { doing: "speaking to the session", source })?;
    let leaving = Leaving::here();
    let again = |name: String| {
        let place = leaving.met(&name, None);
        (Other::Here(name, request), Some(place))
    };
    let meeting = Meeting { socket, begun: None, login: false, quic: None, standby: None };
    let outcome = viewer.meet(meeting, again);
    leaving.tell(&outcome);
    code(&outcome?)
}

/// A session of another machine.
fn there(own: &OwnFlags, host: &str, session: Option<&str>, view: bool) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let viewer = Viewer::new(own, &signals)?.view_only(view).of(host);
    let mut words = vec!["meet".to_owned()];
    words.extend(view.then(|| "--view".to_owned()));
    words.extend(session.map(str::to_owned));
    let options = &own.reach.ssh_options;
    let line = remote::plain_line(own, &words);
    let mut command = vec![own.reach.ssh()];
    command.extend(options.iter().cloned());
    command.extend(["-T".into(), "--".into(), OsString::from(host), line.into()]);
    let (mut ssh, socket) = start_on_socket(&command)?;
    let leaving = Leaving::new(options, OsStr::new(host));
    let other = |name: String| {
        let again = ssh_again(own, options, OsStr::new(host), &name, view);
        (Other::Command(again), Some(leaving.met(&name, None)))
    };
    let meeting = Meeting { socket, begun: None, login: true, quic: Some(Box::new(no_more)), standby: None };
    let result = viewer.meet(meeting, other);
    leaving.tell(&result);
    match finish(&mut ssh, result, &signals)? {
        // A program of a session that was met may end with the same code.
        MISSING if !leaving.has_met() => {
            let which = Which::There { host: host.to_owned(), session: session.map(str::to_owned) };
            Err(remote::missing(own, host, &format!("attach {}", again(own, &which))))
        }
        BROKEN if !leaving.has_met() => Err(remote::broken(own, host)),
        code => Ok(code),
    }
}

/// The session of a ticket.
fn redeem(own: &OwnFlags, attach: &AttachFlags, ticket: &str) -> Result<u8, Error> {
    let ticket: Ticket = ticket.parse().map_err(|error| Error::Ticket(format!("{error}")))?;
    let addresses = match &attach.via {
        Some(via) => resolve(via)?,
        None => ticket.addresses.clone(),
    };
    let trust = trust::trust(attach, ticket.fingerprint)?;
    let signals = Signals::new()?;
    let viewer = Viewer::new(own, &signals)?.view_only(attach.view);
    code(&viewer.redeem(&ticket, trust, &addresses, attach.timeout)?)
}

fn code(outcome: &Outcome) -> Result<u8, Error> {
    match outcome {
        Outcome::Exit(code) => Ok(*code),
        Outcome::HostLeft => {
            tell(&OwnEvent::SessionLeft);
            Ok(0)
        }
        Outcome::Stopped | Outcome::ConnectionEnded(_) => Ok(0),
    }
}

fn resolve(via: &str) -> Result<Vec<SocketAddr>, Error> {
    let addresses: Vec<SocketAddr> = via
        .to_socket_addrs()
        .map_err(|error| Error::usage(format!("cannot use `{via}` as HOST:PORT: {error}")))?
        .collect();
    Ok(addresses)
}
