//! The ways back to a session whose carrier is lost.
//!
//! The run loop tries QUIC. This module retries the other way by which the two sides first met, if it needs no input
//! from a user, on a thread of its own and with growing pauses. What happens on the new carrier is not decided here.
//! Invariant: dropping a detour ends it, with every process that it started.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wayferry_net::quic::Reconnect;
use wayferry_net::{ByteStream, Carrier, Identity};
use wayferry_proto::Secret;

use crate::bootstrap::{Choice, Line, hear_past, say};
use crate::clock::Clock;
use crate::control::{self, Request};
use crate::edge::programs::start_on_socket;
use crate::edge::programs::{Program, exit_code};
use crate::edge::socket::random_bytes;
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
    talk: Talk,
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.talk.end();
        // What has been found is not needed, and its end is not waited for here.
        if let Ok(Ok(Back { login: Some(login), .. })) = self.found.try_recv() {
            login.end_aside();
        }
    }
}

/// What a detour's thread speaks on, while it does: it is ended with the detour.
#[derive(Debug, Clone, Default)]
struct Talk(Arc<Mutex<Spoken>>);

#[derive(Debug, Default)]
enum Spoken {
    #[default]
    Nothing,
    On(OwnedFd),
    /// No more is to be said.
    Over,
}

impl Talk {
    /// The thread begins to speak on a duplicate of this.
    fn begin(&self, socket: &OwnedFd) -> Result<(), Error> {
        let dup = socket.try_clone().map_err(speaking)?;
        let mut spoken = self.lock();
        if matches!(*spoken, Spoken::Over) {
            return Err(Error::Lost("the search for a way back was ended".into()));
        }
        *spoken = Spoken::On(dup);
        Ok(())
    }

    /// The socket is the carrier's now, or has been given up.
    fn rest(&self) {
        let mut spoken = self.lock();
        if matches!(*spoken, Spoken::On(_)) {
            *spoken = Spoken::Nothing;
        }
    }

    fn end(&self) {
        if let Spoken::On(socket) = std::mem::replace(&mut *self.lock(), Spoken::Over) {
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Spoken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Detour {
    fn begin(
        search: impl FnOnce(&Receiver<()>, &Talk) -> Option<Result<Back, Error>> + Send + 'static,
    ) -> Result<Self, Error> {
        let fail = |source| Error::System { doing: "starting to reconnect", source };
        let (over, running) = UnixStream::pair().map_err(fail)?;
        let (tell, found) = mpsc::channel();
        let (wanted, told) = mpsc::channel();
        let talk = Talk::default();
        let spoken = talk.clone();
        let work = move || {
            if let Some(result) = search(&told, &spoken) {
                let _ = tell.send(result);
            }
            drop(running);
        };
        std::thread::Builder::new().name("reconnect".into()).spawn(work).map_err(fail)?;
        Ok(Self { found, over, _wanted: wanted, talk })
    }

    /// Readable when [`Detour::result`] has something.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// A carrier; or why there will never be one.
    pub fn result(&self) -> Option<Result<Back, Error>> {
        match self.found.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err(Error::Lost("the search for a way back ended".into())))
            }
        }
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
        Detour::begin(move |wanted, talk| other.search(&identity, patience, wanted, talk)).map(Some)
    }

    /// Meets the session on a socket that it has come to by itself.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(crate) fn meet(&self, socket: OwnedFd) -> Result<Detour, Error> {
        let identity = Arc::clone(&self.identity);
        let kept = socket.try_clone().map_err(speaking)?;
        Detour::begin(move |_, talk| {
            let met = meet(&identity, socket, talk);
            Some(met.map(|carrier| Back { carrier, login: None, socket: Some(kept) }))
        })
    }
}

impl Other {
    /// Searches until a carrier is found or not wanted any more.
    fn search(
        &self,
        identity: &Identity,
        mut pause: Duration,
        wanted: &Receiver<()>,
        talk: &Talk,
    ) -> Option<Result<Back, Error>> {
        while wanted.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = (pause * 2).min(LAST_PAUSE);
            match self.go(identity, talk) {
                Ok(back) => return Some(Ok(back)),
                Err(error @ Error::NoSession(_)) => return Some(Err(error)),
                // It may go better at the next attempt.
                Err(_) => {}
            }
        }
        None
    }

    fn go(&self, identity: &Identity, talk: &Talk) -> Result<Back, Error> {
        match self {
            Self::Here(name, request) => {
                let (_, socket) = sessions::call(Some(name))?;
                passing::send(&socket, &control::line(request), &[]).map_err(speaking)?;
                Ok(Back { carrier: meet(identity, socket, talk)?, login: None, socket: None })
            }
            Self::Command(words) => {
                let (mut program, socket) = start_on_socket(words)?;
                let kept = socket.try_clone().map_err(speaking)?;
                match meet(identity, socket, talk) {
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
fn meet(identity: &Identity, socket: OwnedFd, talk: &Talk) -> Result<Box<dyn Carrier>, Error> {
    talk.begin(&socket)?;
    let met = agree(identity, &socket);
    talk.rest();
    met?;
    ByteStream::spawn_on_socket(socket).map_err(speaking)
}

/// The lines of that.
fn agree(identity: &Identity, socket: &OwnedFd) -> Result<(), Error> {
    let clock = Clock::start();
    let deadline = clock.now() + COMMAND_PATIENCE;
    // It shows what it began with; this one is for a display that is not known.
    let secret = Secret::from(random_bytes::<32>());
    say(socket, &Line::Greeting { fingerprint: identity.fingerprint(), secret })?;
    match hear_past(socket, &clock, deadline, None)? {
        Line::Ticket { .. } => {}
        other => return Err(other.is_no_ticket()),
    }
    say(socket, &Line::Choice(Choice::Stream))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_login_that_is_not_needed_any_more_goes_on() {
        let file = std::env::temp_dir().join(format!("wayferry-login-{}", std::process::id()));
        // It says its number, and nothing that belongs here.
        let script = format!("echo $$ > {0}.new && mv {0}.new {0}; exec tail -f /dev/null", file.display());
        let other = Some(Other::Command(vec!["sh".into(), "-c".into(), script.into()]));
        let identity = Arc::new(Identity::ephemeral().expect("an identity"));
        let ways = Ways { identity, quic: None, other };
        let detour = ways.detour(Hope::Open).expect("a thread").expect("a way");
        let pid = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) => break text.trim().to_owned(),
                Err(_) => std::thread::yield_now(),
            }
        };
        drop(detour);
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            std::thread::yield_now();
        }
        let _ = std::fs::remove_file(&file);
    }
}
