//! Which compositor's screen is shown: the one that is named, else one of this user's that runs and can be watched.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::error::SessionError;
use crate::tell;

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The socket of a compositor.
    One(PathBuf),
    /// None that can be watched; why not, of those that run.
    None(Vec<Refused>),
}

/// A compositor that runs and cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    name: String,
    /// What it lacks; empty: it does not answer.
    lacks: Vec<&'static str>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lacks[..] {
            [] => write!(f, "`{}` does not answer", self.name),
            lacks => write!(f, "the compositor at `{}` lacks {}", self.name, lacks.join(", ")),
        }
    }
}

/// Looks for a compositor: first at the one that is named, then in `dir`, where this user's compositors have their
/// sockets. `session` is the socket of this session, which is none of them.
///
/// # Errors
/// The system has no thread left.
pub(super) fn find(named: Option<&Path>, dir: &Path, session: &Path) -> Result<Found, SessionError> {
    let named = named.map(|path| dir.join(path));
    let until = Instant::now() + PATIENCE;
    let mut paths: Vec<PathBuf> = named.into_iter().chain(candidates(dir)).collect();
    paths.retain(|path| !is_same(path, session));
    // All at once: one that never answers leaves the others their time.
    let asked: Result<Vec<_>, _> = paths.into_iter().map(|path| Ok((examine(&path)?, path))).collect();
    let mut refused = Vec::new();
    for (answer, path) in asked? {
        match answer.recv_timeout(until.saturating_duration_since(Instant::now())).ok().flatten() {
            Some(lacks) if lacks.is_empty() => {
                tell::step(&format!("the screen is that of {}", path.display()));
                return Ok(Found::One(path));
            }
            lacks => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
                let one = Refused { name, lacks: lacks.unwrap_or_default() };
                tell::step(&one.to_string());
                refused.push(one);
            }
        }
    }
    Ok(Found::None(refused))
}

/// Where this user's compositors have their sockets, as far as this process knows.
pub(crate) fn runtime_dir() -> OsString {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    own.unwrap_or_else(|| format!("/run/user/{}", rustix::process::getuid().as_raw()).into())
}

/// Sockets that compositors make, in the order of their names.
pub(super) fn candidates(dir: &Path) -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("wayland-"))
        .filter(|entry| {
            let data = entry.metadata();
            data.is_ok_and(|data| data.file_type().is_socket() && data.uid() == user)
        })
        .map(|entry| entry.path())
        .take(MAX_CANDIDATES)
        .collect();
    paths.sort();
    paths
}

fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    number(one).is_some_and(|number_of_one| number(other) == Some(number_of_one))
}

/// Asks a compositor; what it lacks comes, or `None` where it is not there.
fn examine(path: &Path) -> Result<Receiver<Option<Vec<&'static str>>>, SessionError> {
    let (path, (give, take)) = (path.to_owned(), mpsc::channel());
    // One that never answers keeps the thread, which ends with the process.
    let ask = move || {
        let socket = UnixStream::connect(path).ok();
        drop(give.send(socket.and_then(|socket| wayferry_screen::examine(socket).ok())));
    };
    let thread = std::thread::Builder::new().name("examine".into()).spawn(ask);
    thread.map_err(|source| SessionError::System { doing: "starting a thread", source })?;
    Ok(take)
}

/// How long all of them may take to say what they have.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sockets that are looked at.
const MAX_CANDIDATES: usize = 32;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn sockets_of_compositors_are_looked_at_and_files_are_not() {
        let dir = RuntimeDir::private().expect("a directory");
        let _first = UnixListener::bind(dir.path().join("wayland-1")).expect("a socket");
        let _second = UnixListener::bind(dir.path().join("wayland-0")).expect("a socket");
        let _other = UnixListener::bind(dir.path().join("pipewire-0")).expect("a socket");
        fs::write(dir.path().join("wayland-1.lock"), "").expect("a file");
        let names = candidates(dir.path());
        let names: Vec<_> = names.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["wayland-0", "wayland-1"]);
    }

    #[test]
    fn the_session_itself_is_no_screen() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("wayland-1");
        let _listener = UnixListener::bind(&path).expect("a socket");
        std::os::unix::fs::symlink(&path, dir.path().join("again")).expect("a link");
        assert!(is_same(&path, &dir.path().join("again")));
        assert!(!is_same(&path, dir.path()));
    }

    #[test]
    fn a_compositor_that_is_gone_is_passed_over() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("wayland-1");
        drop(UnixListener::bind(&path).expect("a socket"));
        assert_eq!(examine(&path).expect("a thread").recv(), Ok(None));
    }
}
