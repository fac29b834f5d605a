//! The sessions of this user on this machine: a directory with one control socket each, named as the session.
//!
//! The directory is beside the other temporary ones, not in XDG_RUNTIME_DIR, which goes when its user logs out; a session
//! does not. It has mode 0700, so nobody but its user can speak to a session. What a session that was killed left behind is
//! removed by whoever meets it. It knows nothing of what is said on the sockets. Invariant: a name has one living owner.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::Error;
use crate::run::offer::is_private;
use crate::run::socket::{Listener, RuntimeDir};

/// Where a session is spoken to, and what it is called. Dropping it takes the socket away.
#[derive(Debug)]
pub(crate) struct Named {
    name: String,
    listener: Listener,
    // After the socket in it.
    directory: Directory,
}

/// The directory of all sessions; goes with the last.
#[derive(Debug)]
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // Fails while something is in it.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Named {
    /// Takes `name`, or if another session has it and it need not be that one, the first free one of `name-2`, `name-3` …
    ///
    /// # Errors
    /// [`Error::SessionName`] when it is taken, [`Error::File`] when nothing can be made there.
    pub(crate) fn claim(name: &str, exactly: bool) -> Result<Self, Error> {
        for _ in 1..ATTEMPTS {
            match Self::claim_in(&made()?, name, exactly) {
                // The last session that ended has just taken the directory away.
                Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                claimed => return claimed,
            }
        }
        Self::claim_in(&made()?, name, exactly)
    }

    fn claim_in(directory: &Path, name: &str, exactly: bool) -> Result<Self, Error> {
        let most = if exactly { 1 } else { MAX_SESSIONS };
        for number in 1..=most {
            let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            if call_in(directory, &name).is_ok() {
                continue;
            }
            let failed = |source| Error::File { path: directory.join(&name), source };
            let listener = Listener::appearing(directory, &name).map_err(failed)?;
            return Ok(Self { name, listener, directory: Directory(directory.to_owned()) });
        }
        Err(Error::SessionName(format!("the session `{name}` runs already")))
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Who speaks to it comes here.
    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The next to it, for sockets that live as long as the session.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.0.join(format!("{HIDDEN}{}.{suffix}", self.name))
    }
}

/// Names of the sessions that answer, in order.
pub(crate) fn names() -> Vec<String> {
    let directory = directory();
    if is_private(&directory) { names_in(&directory) } else { Vec::new() }
}

fn names_in(directory: &Path) -> Vec<String> {
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().filter(is_socket);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| check(name).is_ok()).take(MAX_SESSIONS).collect();
    names.retain(|name| call_in(directory, name).is_ok());
    names.sort_unstable();
    names
}

/// Connects to a session; to the only one, if no name is given.
///
/// # Errors
/// [`Error::NoSession`] when there is none of that name, or none or several and no name.
pub(crate) fn call(name: Option<&str>) -> Result<(String, OwnedFd), Error> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => match &names()[..] {
            [only] => only.clone(),
            [] => return Err(Error::NoSession("no session runs here".into())),
            names => return Err(Error::NoSession(format!("several sessions run: {}", names.join(", ")))),
        },
    };
    let none = || Error::NoSession(format!("no session `{name}` runs here"));
    check(&name).map_err(|_| none())?;
    let directory = directory();
    match call_in(&directory, &name) {
        Ok(socket) if is_private(&directory) => Ok((name, socket)),
        _ => Err(none()),
    }
}

/// Connects without waiting for a session that is stopped; removes what a dead one left.
fn call_in(directory: &Path, name: &str) -> Result<OwnedFd, Errno> {
    let path = directory.join(name);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(&path)?) {
        Ok(()) => Ok(socket),
        Err(error) => {
            if error == Errno::CONNREFUSED {
                let _ = fs::remove_file(path);
            }
            Err(error)
        }
    }
}

/// What a session is called whose user does not say: as its program.
pub(crate) fn name_of(program: Option<&OsStr>) -> String {
    let last = |text: &str| {
        text.split_whitespace().next().and_then(|word| word.rsplit('/').next()).map(str::to_owned)
    };
    let name =
        program.map(OsStr::to_string_lossy).and_then(|text| last(&text)).unwrap_or_else(|| "shell".into());
    let name: String =
        name.chars().filter(|character| is_plain(*character)).take(MAX_NAME - SUFFIX).collect();
    if check(&name).is_ok() { name } else { "session".into() }
}

/// Whether a session can be called so.
///
/// # Errors
/// Says what it would have to be.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let first = name.chars().next().is_some_and(char::is_alphanumeric);
    if first && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        Ok(())
    } else {
        Err(format!(
            "expected 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`, of which the first is a letter or digit"
        ))
    }
}

fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.')
}

/// Where they are, whether or not it exists.
fn directory() -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    RuntimeDir::temporary().join(format!("wayferry-{user}"))
}

/// The directory, made if need be.
fn made() -> Result<PathBuf, Error> {
    let path = directory();
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(Error::File { path, source }),
        _ if is_private(&path) => Ok(path),
        _ => {
            let source =
                io::Error::new(io::ErrorKind::PermissionDenied, "not a private directory of this user");
            Err(Error::File { path, source })
        }
    }
}

/// Longest name of a session; its sockets' paths must fit in 108 bytes.
const MAX_NAME: usize = 32;
/// Room for what makes a name another.
const SUFFIX: usize = 5;
/// How often a directory that vanishes is made again.
const ATTEMPTS: u32 = 5;
/// Sessions of one user on one machine.
const MAX_SESSIONS: usize = 999;
/// What stands before names that are none of sessions.
const HIDDEN: char = '.';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_owner_and_is_free_after_it() {
        let dir = RuntimeDir::private().expect("a directory");
        let first = Named::claim_in(dir.path(), "foot", false).expect("free");
        let second = Named::claim_in(dir.path(), "foot", false).expect("another name");
        assert_eq!((first.name(), second.name()), ("foot", "foot-2"));
        assert!(matches!(Named::claim_in(dir.path(), "foot", true), Err(Error::SessionName(_))));
        assert_eq!(names_in(dir.path()), ["foot", "foot-2"]);
        drop(first);
        assert_eq!(names_in(dir.path()), ["foot-2"]);
        assert_eq!(Named::claim_in(dir.path(), "foot", true).expect("free again").name(), "foot");
        drop(second);
        assert!(!dir.path().exists(), "it goes with the last");
    }

    #[test]
    fn what_a_dead_session_left_is_removed() {
        let dir = RuntimeDir::private().expect("a directory");
        drop(std::os::unix::net::UnixListener::bind(dir.path().join("dead")).expect("a stale socket"));
        fs::write(dir.path().join("file"), "").expect("a file");
        assert!(names_in(dir.path()).is_empty());
        assert!(!dir.path().join("dead").exists() && dir.path().join("file").exists());
    }

    #[test]
    fn sessions_are_called_as_their_programs() {
        let name = |text: &str| name_of(Some(OsStr::new(text)));
        assert_eq!(name("/usr/bin/foot"), "foot");
        assert_eq!(name("weston-terminal --shell=/bin/sh"), "weston-terminal");
        assert_eq!(name("'odd name'"), "odd");
        assert_eq!(name("../.."), "session");
        assert_eq!(name_of(None), "shell");
        assert!(name(&"x".repeat(100)).len() < MAX_NAME);
    }

    #[test]
    fn names() {
        for name in ["foot", "a", "work_2.x-y", "7"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", ".hidden", "-x", "a b", "a/b", "ä", &"x".repeat(MAX_NAME + 1)] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
