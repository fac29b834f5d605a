//! The ways back to a session whose carrier is lost.
//!
//! The run loop tries QUIC. This module retries the other way by which the two sides first met, if it needs no input
//! from a user, on a thread of its own and with growing pauses. What happens on the new carrier is not decided here.
//! Invariant: dropping a detour ends it, with every process that it started.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::Duration;

use wayferry_net::quic::Reconnect;
use wayferry_net::{ByteStream, Carrier, Identity};

use crate::bootstrap::{Choice, Line, hear_past, say};
use crate::clock::Clock;
use crate::control::{self, Request};
use crate::edge::programs::start_on_socket;
use crate::edge::programs::{Program, exit_code};
use crate::error::Error;
use crate::moving::Hope;
use crate::passing;
use crate::sessions;

/// How a session can be reached again.
pub struct Ways {
    /// Who this display is.
    pub identity: Arc<Identity>,
    /// Over QUIC, where it was reached.
    pub quic: Option<Reconnect>,
    /// Beside that.
    pub other: Option<Other>,
}

/// A way that is not QUIC.
#[derive(Debug, Clone)]
pub enum Other {
    /// A command that meets the session, with its stdin and stdout.
    Command(Vec<OsString>),
    /// It runs on this machine, under this name; the display says this to its control socket.
    Here(String, Request),
}

/// A new carrier.
pub struct Back {
    /// Carries the session from now on.
    pub carrier: Box<dyn Carrier>,
    /// The command that it goes through.
    pub login: Option<Login>,
    /// What it reads and writes, if no command does.
    pub socket: Option<OwnedFd>,
}

/// A command that carries the session, or did. It ends when this is dropped, and not before: what came with it, as an
/// ssh agent, stays for as long.
pub struct Login {
    program: Program,
    /// Its end would end the command.
    _socket: OwnedFd,
}

impl Login {
    /// Ends it without waiting for that.
    pub(crate) fn end_aside(self) {
        // Without a thread it is waited for.
        let _ = std::thread::Builder::new().name("login".into()).spawn(move || drop(self.program));
    }
}

/// The search for a carrier that is not QUIC.
pub struct Detour {
    found: Receiver<Result<Back, Error>>,
    /// Readable when the search is over.
    over: UnixStream,
    /// Its end tells the thread that its result is not wanted any more.
    _wanted: Sender<()>,
    /// What the thread speaks on, until it has come to an end.
    socket: Option<OwnedFd>,
}

impl Drop for Detour {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}

impl Detour {
    fn begin(
        search: impl FnOnce(&Receiver<()>) -> Option<Result<Back, Error>> + Send + 'static,
    ) -> Result<Self, Error> {
        let fail = |source| Error::System { doing: "starting to reconnect", source };
        let (over, running) = UnixStream::pair().map_err(fail)?;
        let (tell, found) = mpsc::channel();
        let (wanted, told) = mpsc::channel();
        let work = move || {
            if let Some(result) = search(&told) {
                let _ = tell.send(result);
            }
            drop(running);
        };
        std::thread::Builder::new().name("reconnect".into()).spawn(work).map_err(fail)?;
        Ok(Self { found, over, _wanted: wanted, socket: None })
    }

    /// Readable when [`Detour::result`] has something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// A carrier; or why there will never be one.
    pub fn result(&mut self) -> Option<Result<Back, Error>> {
        let result = match self.found.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(Error::Lost("the search for a way back ended".into())),
        };
        // It is the carrier's now.
        self.socket = None;
        Some(result)
    }
}

impl Ways {
    /// Begins to search for a carrier that is not QUIC, if there is such a way. QUIC has a head start where it is
    /// likely to answer: it is better, and costs the other side less than a login.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(crate) fn detour(&self, hope: Hope) -> Result<Option<Detour>, Error> {
        let Some(other) = self.other.clone() else { return Ok(None) };
        let identity = Arc::clone(&self.identity);
        let patience = if hope == Hope::Likely { HEAD_START } else { FIRST_PAUSE };
        Detour::begin(move |wanted| other.search(&identity, patience, wanted)).map(Some)
    }

    /// Meets the session on a socket that it has come to by itself.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(crate) fn meet(&self, socket: OwnedFd) -> Result<Detour, Error> {
        let identity = Arc::clone(&self.identity);
        let dup = || socket.try_clone().map_err(speaking);
        let (spoken_on, kept) = (dup()?, dup()?);
        let mut detour = Detour::begin(move |_| {
            let met = meet(&identity, socket);
            Some(met.map(|carrier| Back { carrier, login: None, socket: Some(kept) }))
        })?;
        detour.socket = Some(spoken_on);
        Ok(detour)
    }
}

impl Other {
    /// Searches until a carrier is found or not wanted any more.
    fn search(
        &self,
        identity: &Identity,
        mut pause: Duration,
        wanted: &Receiver<()>,
    ) -> Option<Result<Back, Error>> {
        while wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = (pause * 2).min(LAST_PAUSE);
            match self.go(identity) {
                Ok(back) => return Some(Ok(back)),
                Err(error @ Error::NoSession(_)) => return Some(Err(error)),
                // It may go better at the next attempt.
                Err(_) => {}
            }
        }
        None
    }

    fn go(&self, identity: &Identity) -> Result<Back, Error> {
        match self {
            Self::Here(name, request) => {
                let (_, socket) = sessions::call(Some(name))?;
                passing::send(&socket, &control::line(request), &[]).map_err(speaking)?;
                Ok(Back { carrier: meet(identity, socket)?, login: None, socket: None })
            }
            Self::Command(words) => {
                let (mut program, socket) = start_on_socket(words)?;
                let kept = socket.try_clone().map_err(speaking)?;
                match meet(identity, socket) {
                    Ok(carrier) => {
                        let login = Some(Login { program, _socket: kept });
                        Ok(Back { carrier, login, socket: None })
                    }
                    Err(error) => {
                        drop(kept);
                        program.end(COMMAND_PATIENCE);
                        let gone = program.status().map(exit_code) == Some(GONE);
                        Err(if gone { Error::NoSession("the session is over".into()) } else { error })
                    }
                }
            }
        }
    }
}

/// Meets the session on a socket, which then carries it.
fn meet(identity: &Identity, socket: OwnedFd) -> Result<Box<dyn Carrier>, Error> {
    let clock = Clock::start();
    let deadline = clock.now() + COMMAND_PATIENCE;
    say(&socket, &Line::Greeting(identity.fingerprint().to_string()))?;
    match hear_past(&socket, &clock, deadline, None)? {
        Line::Ticket { .. } => {}
        other => return Err(Error::Bootstrap(format!("unexpected line `{}`", other.encode().trim_end()))),
    }
    say(&socket, &Line::Choice(Choice::Stream))?;
    ByteStream::spawn_on_socket(socket).map_err(speaking)
}

fn speaking(source: std::io::Error) -> Error {
    Error::System { doing: "speaking to the session", source }
}

/// Pause after the first attempt that failed; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// How long QUIC alone is tried.
const HEAD_START: Duration = Duration::from_secs(6);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(10);
/// How long the other side may take for its line: ssh has to come up first.
const COMMAND_PATIENCE: Duration = Duration::from_secs(20);
/// Exit code of a command that found no such session.
const GONE: u8 = 82;
