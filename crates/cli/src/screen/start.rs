//! A compositor without a monitor, for where none runs that can be watched.
//!
//! Invariant: it ends with the value, or with this process if that is killed, and so do the programs in it.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::find::{Refused, candidates};
use crate::error::{Error, SessionError};
use crate::pass_on::system;
use crate::{tell, tethered};
use wayferry_host::edge::path;
use wayferry_host::edge::programs::{Place, Program, is_from};
use wayferry_host::edge::signals::Signals;

/// A compositor that this process has started.
pub(super) struct Started {
    /// Ends it.
    _program: Program,
    socket: PathBuf,
}

impl Started {
    /// Starts the first that is installed, and waits until programs can connect.
    ///
    /// # Errors
    /// None is installed, or it ended at once; `refused` are those that run and cannot be watched.
    pub(super) fn new(refused: &[Refused], dir: &Path, signals: &Signals) -> Result<Self, Error> {
        let Some(name) = known() else { return Err(Error::NoScreen { why: none(refused) }) };
        tell::step(&format!("starting {name}: {}", why(refused)));
        let (said, stderr) = io::pipe().map_err(system("making a pipe"))?;
        let words = tethered::words(name);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("WLR_BACKENDS", "headless")
            .env("WLR_LIBINPUT_NO_DEVICES", "1")
            .env("XDG_RUNTIME_DIR", dir)
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("WAYLAND_SOCKET")
            .env_remove("DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        let source = |source| SessionError::Program { program: name.into(), source };
        let mut program = Program::watch(command.spawn().map_err(source)?, Place::Foreground)?;
        drop(command);
        let words = drain(said)?;
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(socket) = socket_of(&program, dir) {
                return Ok(Self { _program: program, socket });
            }
            signals.wait_readable(&[program.as_fd()], Some(LOOK))?;
            let is_over = program.status().is_some();
            if is_over || Instant::now() >= until {
                program.end(LOOK);
                // What it has started may keep the pipe open.
                signals.wait_readable(&[], Some(LAST_WORDS))?;
                let words = String::from_utf8_lossy(&words.lock().unwrap_or_else(PoisonError::into_inner))
                    .into_owned();
                let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
                return Err(Error::NoScreen { why: format!("`{name}` does not run here; it said: {last}") });
            }
        }
    }

    /// Where programs connect.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Reads what the compositor says, so that it never waits for a reader, and keeps the end of it.
fn drain(mut said: PipeReader) -> Result<Arc<Mutex<Vec<u8>>>, SessionError> {
    let words = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&words);
    let read = move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = said.read(&mut piece) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&piece[..count]);
            let surplus = kept.len().saturating_sub(MAX_WORDS);
            kept.drain(..surplus);
        }
    };
    let thread = std::thread::Builder::new().name("compositor".into()).spawn(read);
    thread.map_err(system("starting a thread"))?;
    Ok(words)
}

/// The socket that this program listens on. Any may have made one meanwhile, so the kernel is asked whose it is.
fn socket_of(program: &Program, dir: &Path) -> Option<PathBuf> {
    let is_its = |path: &PathBuf| UnixStream::connect(path).is_ok_and(|socket| is_from(&socket, program));
    candidates(dir).into_iter().find(is_its)
}

/// The first compositor that can be started.
pub(super) fn known() -> Option<&'static str> {
    let own = path::own();
    KNOWN.into_iter().find(|name| path::find(name, &own).is_ok())
}

/// Why there is no screen to show.
pub(super) fn none(refused: &[Refused]) -> String {
    let known = KNOWN.map(|name| format!("`{name}`")).join(" nor ");
    format!("{}, and neither {known} is installed", why(refused))
}

/// Why no screen can be shown of the compositors that run.
pub(super) fn why(refused: &[Refused]) -> String {
    refused.first().map_or_else(|| "no compositor runs here".to_owned(), ToString::to_string)
}

/// Compositors that run without a monitor, the most like a usual desktop first.
const KNOWN: [&str; 2] = ["labwc", "sway"];

/// How long one may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the words of one that has ended may be on their way.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How often its socket is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of what it says that are kept.
const MAX_WORDS: usize = 4096;
