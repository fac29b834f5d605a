//! How the display side reaches the compositor, and what it looks at before a session begins.
//!
//! It does not serve programs. Invariant: a compositor that does not answer is given up after [`COMPOSITOR_PATIENCE`].

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::{Control, Session, Time};
use wayferry_wayland::display::Watcher;
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::wire::{InBuffer, ReadState, Socket};
use wayferry_wayland::{Action, End};

use super::interest;
use crate::clock::Clock;
use crate::edge::signals::Signals;
use crate::edge::socket;
use crate::edge::wait::Interests;
use crate::error::Error;

/// How to reach the compositor.
#[derive(Debug)]
pub enum Compositor {
    /// By connecting to this socket, once per program.
    At(PathBuf),
    /// Through one inherited connection, which serves one program.
    Only(OwnedFd),
}

/// The session's own connection to the compositor, with the first snapshot taken.
pub struct Watched {
    pub(super) compositor: Compositor,
    pub(super) watcher: Option<(Socket, Watcher)>,
    pub(super) first: Bytes,
    pub(super) blobs: Vec<(u128, Vec<u8>)>,
    /// The session has been told of the first snapshot.
    pub(super) is_told: bool,
}

impl Compositor {
    /// The compositor that WAYLAND_DISPLAY names.
    pub fn from_environment() -> Result<Self, Error> {
        let name = std::env::var_os("WAYLAND_DISPLAY").filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(Error::NoCompositor { tried: "WAYLAND_DISPLAY is not set".into(), source: None });
        };
        let path = PathBuf::from(&name);
        if path.is_absolute() {
            return Ok(Self::At(path));
        }
        match std::env::var_os("XDG_RUNTIME_DIR") {
            Some(dir) => Ok(Self::At(PathBuf::from(dir).join(path))),
            None => Err(Error::NoCompositor { tried: "XDG_RUNTIME_DIR is not set".into(), source: None }),
        }
    }

    pub(super) fn connect(&self) -> io::Result<Socket> {
        match self {
            Self::At(path) => Socket::new(socket::connect(path)?),
            Self::Only(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Watched {
    /// Connects to the compositor and waits for its first snapshot.
    ///
    /// # Errors
    /// No compositor, one that lacks what windows need, or one that does not answer.
    pub fn new(compositor: Compositor, clock: Clock, signals: Option<&Signals>) -> Result<Self, Error> {
        let socket = match &compositor {
            Compositor::Only(fd) => fd.try_clone().and_then(Socket::new),
            Compositor::At(_) => compositor.connect(),
        };
        let socket = socket.map_err(|source| match &compositor {
            Compositor::At(path) => {
                Error::NoCompositor { tried: path.display().to_string(), source: Some(source) }
            }
            Compositor::Only(_) => {
                Error::NoCompositor { tried: "WAYLAND_SOCKET".into(), source: Some(source) }
            }
        })?;
        let mut watcher = Watcher::new();
        let deadline = clock.now() + COMPOSITOR_PATIENCE;
        let first = loop {
            if let Some(snapshot) = turn_watcher(&socket, &mut watcher, clock.now())? {
                break snapshot;
            }
            let now = clock.now();
            if now >= deadline {
                return Err(Error::NoCompositor { tried: "it does not answer".into(), source: None });
            }
            let mut interests = Interests::default();
            interests.add(&socket, interest(watcher.output()));
            if let Some(signals) = signals {
                interests.read(signals);
            }
            interests.until(Some(deadline));
            interests.wait(now)?;
            signals.map_or(Ok(()), Signals::check)?;
        };
        let blobs = watcher_blobs(&mut watcher);
        Ok(Self { compositor, watcher: Some((socket, watcher)), first, blobs, is_told: false })
    }

    /// Tells the session of the first snapshot, before there is a display side.
    pub fn tell(&mut self, session: &mut Session) {
        // Cannot fail: the encoder keeps it below the limit.
        let _ = session.control(&Control::Snapshot(self.first.clone()));
        self.is_told = true;
    }

    /// What the compositor offers: interfaces with their versions, in its own order.
    pub fn globals(&self) -> Vec<(String, u32)> {
        // What was encoded here can be decoded.
        let globals = Snapshot::decode(&self.first).map(|snapshot| snapshot.globals).unwrap_or_default();
        globals.into_iter().map(|global| (global.interface, global.version)).collect()
    }
}

/// Moves the watcher's bytes; gives the encoded snapshot when there is a new one.
pub(super) fn turn_watcher(
    socket: &Socket,
    watcher: &mut Watcher,
    now: Time,
) -> Result<Option<Bytes>, Error> {
    let mut newest = None;
    for _ in 0..MAX_READS {
        let state = read(socket, watcher.input());
        if let Some(snapshot) = watcher.process(now) {
            newest = Some(snapshot.encode().into());
        }
        if let Some(end) = watcher.end() {
            return Err(watcher_error(end));
        }
        match state {
            ReadState::Progress => {}
            ReadState::WouldBlock => break,
            ReadState::Closed => return Err(Error::Compositor("it closed the connection".into())),
        }
    }
    let _ = socket.flush(watcher.output());
    Ok(newest)
}

fn read(socket: &Socket, input: &mut InBuffer) -> ReadState {
    socket.read_into(input).unwrap_or(ReadState::Closed)
}

pub(super) fn watcher_blobs(watcher: &mut Watcher) -> Vec<(u128, Vec<u8>)> {
    let actions = std::iter::from_fn(|| watcher.poll_action());
    actions
        .filter_map(|action| match action {
            Action::Blob { hash, bytes } => Some((hash, bytes)),
            _ => None,
        })
        .collect()
}

fn watcher_error(end: &End) -> Error {
    match end {
        // The watcher's own words for the two things that a user can do something about.
        End::CompositorError(text) if text.starts_with("it lacks ") => {
            Error::MissingGlobals(text.trim_start_matches("it lacks ").to_owned())
        }
        End::CompositorError(text) if text.starts_with("its keymap ") => Error::Keymap(text.clone()),
        End::CompositorError(text) => Error::Compositor(text.clone()),
        end => Error::Compositor(end.to_string()),
    }
}

/// How long the compositor may take to send its globals and their state.
const COMPOSITOR_PATIENCE: Duration = Duration::from_secs(10);
/// Reads of one socket in one turn: 64 KiB.
pub(super) const MAX_READS: usize = 16;
