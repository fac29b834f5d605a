//! `wayferry desktop`: the screen of a compositor as a window of a session.
//!
//! The session's program is this one again, as `wayferry screen`: a client of the session and of a compositor that runs
//! there, or that it starts. What lies between the two is [`wayferry_screen`]'s. Invariant: a compositor that was
//! started here ends with it, and so does the user's command.

mod find;
mod start;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::error::{Error, SessionError};
use crate::flags::{HostFlags, ScreenFlags};
use find::Found;
use start::Started;
use wayferry_host::display_side::Compositor;
use wayferry_host::edge::programs::{Environment, Launch, PATIENCE, Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_screen::Ended;

/// What a session's program is where the whole screen is to be shown.
pub(crate) fn launch(host: &HostFlags) -> Launch {
    // The program itself, also when another one has been installed in its place.
    let mut words: Vec<OsString> = vec!["/proc/self/exe".into(), "screen".into()];
    // Both are others in the session.
    if let Some(name) = named() {
        words.extend(["--of".into(), name]);
    }
    words.extend(["--runtime-dir".into(), find::runtime_dir()]);
    if let Some(line) = &host.shell_line {
        words.extend(["--shell-line".into(), line.into()]);
    } else if !host.command.is_empty() {
        words.push("--".into());
        words.extend(host.command.iter().cloned());
    }
    Launch::Command(words)
}

/// The compositor that this process was started in.
fn named() -> Option<OsString> {
    std::env::var_os("WAYLAND_DISPLAY").filter(|name| !name.is_empty())
}

/// What `wayferry desktop` would show of this machine; why nothing, where it would show nothing.
///
/// # Errors
/// The system has no thread left.
pub(crate) fn look() -> Result<Result<String, String>, SessionError> {
    let named = named().map(PathBuf::from);
    Ok(match find::find(named.as_deref(), Path::new(&find::runtime_dir()), Path::new(""))? {
        Found::One(path) => Ok(format!("the screen of the compositor at `{}` can be shown", path.display())),
        Found::None(refused) => match start::known() {
            Some(name) => {
                Ok(format!("`{name}` would be started without a monitor: {}", start::why(&refused)))
            }
            None => Err(start::none(&refused)),
        },
    })
}

/// Shows the screen until something ends; gives the exit code.
pub(crate) fn run(flags: &ScreenFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let Compositor::At(session) = Compositor::from_environment()? else {
        unreachable!("it is not inherited")
    };
    let connected = UnixStream::connect(&session).map_err(|source| SessionError::NoCompositor {
        tried: session.display().to_string(),
        source: Some(source),
    })?;
    let mut started = None;
    // Without a login manager there is none but the session's own.
    let own =
        || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|_| !flags.runtime_dir.is_dir());
    let dir = own().unwrap_or_else(|| flags.runtime_dir.clone());
    let there = match find::find(flags.of.as_deref(), &dir, &session)? {
        Found::One(path) => path,
        Found::None(refused) => {
            let new = Started::new(&refused, &dir, &signals)?;
            let path = new.socket().to_owned();
            started = Some(new);
            path
        }
    };
    let mut command = wanted(flags).map(|launch| in_screen(&launch, &there)).transpose()?;
    let ended = show(&there, connected, command.as_ref(), &signals);
    let status = command.as_mut().and_then(Program::status).map(exit_code);
    if let Some(command) = &mut command {
        command.end(PATIENCE);
    }
    drop(started);
    match ended? {
        Ended::Stopped if status.is_none() => signals.check().map(|()| 0).map_err(Error::from),
        _ => Ok(status.unwrap_or(0)),
    }
}

/// What the user wants to run in the screen.
fn wanted(flags: &ScreenFlags) -> Option<Launch> {
    match &flags.shell_line {
        Some(line) => Some(Launch::ShellLine(line.clone())),
        None if flags.command.is_empty() => None,
        None => Some(Launch::Command(flags.command.clone())),
    }
}

/// Starts the user's command in the screen.
fn in_screen(launch: &Launch, there: &Path) -> Result<Program, SessionError> {
    let environment = Environment {
        set: vec![("WAYLAND_DISPLAY".into(), there.into())],
        unset: vec!["WAYLAND_SOCKET".into(), "DISPLAY".into()],
    };
    Program::start(launch, &environment, Place::Foreground, None)
}

fn show(
    there: &Path,
    session: UnixStream,
    command: Option<&Program>,
    signals: &Signals,
) -> Result<Ended, Error> {
    let there = UnixStream::connect(there);
    let there = there.map_err(|source| SessionError::System { doing: "connecting to the screen", source })?;
    let title = format!("Desktop of {}", rustix::system::uname().nodename().to_string_lossy());
    let stops: Vec<_> = [signals.as_fd()].into_iter().chain(command.map(AsFd::as_fd)).collect();
    let ended = wayferry_screen::show(there, session, &title, &stops);
    ended.map_err(|error| Error::NoScreen { why: error.to_string() })
}
