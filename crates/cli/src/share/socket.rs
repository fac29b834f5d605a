//! Guests' pages on WebSockets: each is brought to the session that the link is of, as a page and nothing else.
//!
//! A session of this machine is called on its control socket, one of another through ssh, which asks the user nothing:
//! a guest's coming is no time for that. Invariant: what the session takes before the page's own bytes is said here.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_host::bootstrap;
use wayferry_host::clock::Clock;
use wayferry_host::control::{self, Request};
use wayferry_host::edge::programs::start_on_socket;
use wayferry_host::passing;
use wayferry_host::sessions;
use wayferry_net::site::{Road, Sockets};

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, Which};
use crate::remote;
use crate::tell::notice;

/// Those of pages that were opened with this ticket.
pub(super) fn sockets(own: &OwnFlags, which: &Which, ticket: &str) -> Sockets {
    let way = Way::to(own, which);
    Sockets::new(ticket.to_owned(), move |from| {
        way.open(from).map_err(|error| {
            notice(&format!("a page at {from} is not brought to the session: {error}"));
            io::Error::other(error.to_string())
        })
    })
}

/// How a session is reached.
enum Way {
    /// By its name, or as the only one of this machine.
    Here(Option<String>),
    /// By this command, but for where the browser is, and the session.
    There(Box<OwnFlags>, String, Option<String>),
}

impl Way {
    fn to(own: &OwnFlags, which: &Which) -> Self {
        match which {
            Which::There { host, session } => {
                Self::There(Box::new(own.clone()), host.clone(), session.clone())
            }
            Which::Here(name) => Self::Here(name.clone().or_else(only)),
            // No link is made of these.
            Which::Ticket(_) | Which::Stdin => Self::Here(None),
        }
    }

    fn open(&self, from: SocketAddr) -> Result<Road, Error> {
        let (socket, keeper): (OwnedFd, Box<dyn Send>) = match self {
            Self::Here(name) => {
                let (_, socket) = sessions::call(name.as_deref())?;
                let doing = "speaking to the session";
                passing::send(&socket, &control::line(&Request::Page(from)), &[])
                    .map_err(|source| SessionError::System { doing, source })?;
                (socket, Box::new(()))
            }
            Self::There(own, host, session) => {
                let (ssh, socket) = start_on_socket(&command(own, host, session.as_deref(), from))?;
                (socket, Box::new(ssh))
            }
        };
        let clock = Clock::start();
        bootstrap::hear_taken(&socket, &clock, clock.now() + PATIENCE)?;
        Ok(Road { socket, keeper })
    }
}

/// The session that is meant where none was named: others may come while it is shared.
fn only() -> Option<String> {
    match &sessions::names()[..] {
        [name] => Some(name.clone()),
        _ => None,
    }
}

fn command(own: &OwnFlags, host: &str, session: Option<&str>, from: SocketAddr) -> Vec<OsString> {
    let mut words = vec!["meet".to_owned(), "--page".to_owned(), from.to_string()];
    words.extend(session.map(str::to_owned));
    let line = remote::plain_line(own, &words);
    let mut command = vec![own.reach.ssh(), "-o".into(), "BatchMode=yes".into()];
    command.extend(own.reach.ssh_options.iter().cloned());
    command.extend(["-T".into(), "--".into(), OsString::from(host), line.into()]);
    command
}

/// How long a session may take to be reached.
const PATIENCE: Duration = Duration::from_secs(30);
