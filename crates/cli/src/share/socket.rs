//! Guests' pages on WebSockets: each is brought to the session that the link is of, as a page and nothing else.
//!
//! A session of this machine is called on its control socket, one of another through ssh, which asks the user nothing:
//! a guest's coming is no time for that. Nor is it run more often than a [`Gate`] lets it, for which guests wait in
//! turn, or for longer than a page waits. Invariant: what the session takes before the page's own bytes is said here.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wayferry_host::bootstrap;
use wayferry_host::clock::Clock;
use wayferry_host::control::{self, Request};
use wayferry_host::edge::programs::start_on_socket;
use wayferry_host::edge::socket::random_name;
use wayferry_host::passing;
use wayferry_host::sessions;
use wayferry_net::site::{Caller, Road, Sockets};

use super::gate::{End, Gate, Passage, Turn};
use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, Which};
use crate::remote;
use crate::tell::notice;

/// Those of pages that were opened with this ticket.
pub(super) fn sockets(own: &OwnFlags, which: &Which, ticket: &str) -> Sockets {
    let way = Way::to(own, which);
    Sockets::new(ticket.to_owned(), move |caller| {
        way.open(caller).map_err(|none| {
            if let NoRoad::Failed(error) = none {
                let from = caller.address();
                notice(&format!("a page at {from} is not brought to the session: {error}"));
            }
            io::ErrorKind::NotConnected.into()
        })
    })
}

/// How a session is reached.
enum Way {
    /// By its name, or as the only one of this machine.
    Here(Option<String>),
    There(Box<There>),
}

/// A session of another machine.
struct There {
    own: OwnFlags,
    host: String,
    session: Option<String>,
    gate: Mutex<Gate>,
    clock: Clock,
}

/// Why a page is brought nowhere.
enum NoRoad {
    Failed(Error),
    /// The page has gone.
    Left,
    /// It was tried too often already.
    Rests,
}

impl Way {
    fn to(own: &OwnFlags, which: &Which) -> Self {
        match which {
            Which::There { host, session } => {
                let (own, host, session) = (own.clone(), host.clone(), session.clone());
                let (gate, clock) = (Mutex::default(), Clock::start());
                Self::There(Box::new(There { own, host, session, gate, clock }))
            }
            Which::Here(name) => Self::Here(name.clone()),
            // No link is made of these.
            Which::Ticket(_) | Which::Stdin => Self::Here(None),
        }
    }

    fn open(&self, caller: &Caller<'_>) -> Result<Road, NoRoad> {
        match self {
            Self::Here(name) => open_here(name.as_deref(), caller).map_err(|error| no_road(caller, error)),
            Self::There(there) => there.open(caller),
        }
    }
}

fn no_road(caller: &Caller<'_>, error: Error) -> NoRoad {
    if caller.is_gone() { NoRoad::Left } else { NoRoad::Failed(error) }
}

fn open_here(name: Option<&str>, caller: &Caller<'_>) -> Result<Road, Error> {
    let (_, socket) = sessions::call(name)?;
    let doing = "speaking to the session";
    passing::send(&socket, &control::line(&Request::Page(caller.address())), &[])
        .map_err(|source| SessionError::System { doing, source })?;
    let clock = Clock::start();
    bootstrap::hear_taken(&socket, &clock, clock.now() + PATIENCE, None, caller)?;
    Ok(Road { socket, keeper: Box::new(()) })
}

impl There {
    fn open(&self, caller: &Caller<'_>) -> Result<Road, NoRoad> {
        let passage = self.wait(caller)?;
        let road = self.reach(caller).map_err(|error| no_road(caller, error));
        let end = match &road {
            Ok(_) => End::Open,
            Err(NoRoad::Left) => End::Left,
            Err(_) => End::Failed,
        };
        self.gate().leave(self.clock.now(), passage, end);
        road
    }

    /// Waits until it is the caller's turn, or he has gone.
    fn wait(&self, caller: &Caller<'_>) -> Result<Passage, NoRoad> {
        let number = self.gate().ask(caller.place());
        let deadline = self.clock.now() + PATIENCE;
        loop {
            let now = self.clock.now();
            let turn = self.gate().turn(now, number);
            match turn {
                Turn::Now(passage) => return Ok(passage),
                Turn::Never => return Err(NoRoad::Rests),
                Turn::Later => {}
            }
            let is_gone = caller.is_gone_within(LOOK_EVERY);
            if is_gone || now >= deadline {
                self.gate().give_up(number);
                return Err(if is_gone { NoRoad::Left } else { NoRoad::Rests });
            }
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has ssh reach it, which has ended where there is an error.
    fn reach(&self, caller: &Caller<'_>) -> Result<Road, Error> {
        let mark = random_name();
        let (ssh, socket) = start_on_socket(&self.command(&mark, caller.address()))?;
        let deadline = self.clock.now() + PATIENCE;
        bootstrap::hear_taken(&socket, &self.clock, deadline, Some(&mark), caller)?;
        Ok(Road { socket, keeper: Box::new(ssh) })
    }

    fn command(&self, mark: &str, from: SocketAddr) -> Vec<OsString> {
        let Self { own, host, session, .. } = self;
        let mut words = vec!["meet".to_owned(), "--page".to_owned(), from.to_string()];
        words.extend(session.clone());
        let line = remote::marked_line(own, mark, &words);
        let mut command = vec![own.reach.ssh()];
        command.extend(SSH_OPTIONS.iter().flat_map(|option| ["-o".into(), option.into()]));
        command.extend(own.reach.ssh_options.iter().cloned());
        command.extend(["-T".into(), "--".into(), OsString::from(host), line.into()]);
        command
    }
}

/// It asks nothing and gives up when a page would; and it is ended with its page, so that no other may depend on it.
const SSH_OPTIONS: [&str; 3] = ["BatchMode=yes", "ConnectTimeout=10", "ControlMaster=no"];
/// How long a session may take to be reached, and how long a guest may wait before that.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one that waits looks whether it is his turn. There are few, and what waits for his going can wait for
/// nothing else.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_asks_nothing_gives_up_in_time_and_carries_no_other() {
        let which = "user@host:foot".parse().expect("a session");
        let Way::There(there) = Way::to(&OwnFlags::default(), &which) else { panic!("it is elsewhere") };
        let command = there.command("mark", "192.0.2.7:5".parse().expect("an address"));
        let words: Vec<_> = command.iter().map(|word| word.to_str().expect("text")).collect();
        let (line, before) = words.split_last().expect("words");
        let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ControlMaster=no"];
        assert_eq!(before[1..], [&options[..], &["-T", "--", "user@host"]].concat());
        assert!(line.contains("echo") && line.ends_with("mark meet --page 192.0.2.7:5 foot"), "{line}");
    }
}
