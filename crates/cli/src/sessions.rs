//! The sessions of this user on this machine: a directory with one control socket each, named as the session.
//!
//! The directory is beside the other temporary ones, not in XDG_RUNTIME_DIR, which goes when its user logs out; a session
//! does not. It has mode 0700, so nobody but its user can speak to a session. What a session that was killed left behind is
//! removed by the next of its name. It knows nothing of what is said on the sockets. Invariant: a name has one living owner.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::run::offer::is_private;
use crate::run::peer;
use crate::run::socket::{Listener, RuntimeDir};

/// Where a session is spoken to, and what it is called. Dropping it takes the socket away.
#[derive(Debug)]
pub(crate) struct Named {
    name: String,
    listener: Listener,
    _lock: Lock,
    // After what is in it.
    directory: Directory,
}

/// The right to a name, for as long as this process lives; goes with it even if that is killed.
#[derive(Debug)]
struct Lock {
    _file: OwnedFd,
    path: PathBuf,
}

impl Lock {
    /// Takes it; `None` if somebody has it.
    fn take(path: PathBuf) -> io::Result<Option<Self>> {
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => return Ok(None),
                result => result?,
            }
            // The one before may have taken the file away between the two calls: then this is a lock of nothing.
            let ours = rustix::fs::fstat(&file)?;
            if rustix::fs::stat(&path)
                .is_ok_and(|there| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino))
            {
                return Ok(Some(Self { _file: file, path }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
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
            let failed = |source| Error::File { path: directory.join(&name), source };
            let Some(lock) = Lock::take(beside(directory, &name, "lock")).map_err(failed)? else { continue };
            // What a session left that was killed: nobody uses it any more.
            let _ = fs::remove_file(beside(directory, &name, WAYLAND));
            let listener = Listener::appearing(directory, &name).map_err(failed)?;
            return Ok(Self { name, listener, _lock: lock, directory: Directory(directory.to_owned()) });
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

    /// Where its programs connect.
    pub(crate) fn wayland(&self) -> PathBuf {
        beside(&self.directory.0, &self.name, WAYLAND)
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
    names.retain(|name| peer::connect_at_once(&directory.join(name)).is_ok());
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
    match peer::connect_at_once(&directory.join(&name)) {
        Ok(socket) if is_private(&directory) => Ok((name, socket)),
        _ => Err(none()),
    }
}

/// A file of a session beside its control socket.
fn beside(directory: &Path, name: &str, suffix: &str) -> PathBuf {
    directory.join(format!(".{name}.{suffix}"))
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
/// What the socket of a session's programs is called, beside its own.
const WAYLAND: &str = "wayland";

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
    fn what_a_killed_session_left_is_no_session_and_its_name_is_free() {
        let dir = RuntimeDir::private().expect("a directory");
        for name in ["dead", ".dead", ".dead.wayland"] {
            drop(std::os::unix::net::UnixListener::bind(dir.path().join(name)).expect("a stale socket"));
        }
        fs::write(dir.path().join(".dead.lock"), "").expect("a file that nobody has locked");
        fs::write(dir.path().join("file"), "").expect("a file");
        assert!(names_in(dir.path()).is_empty());
        let named = Named::claim_in(dir.path(), "dead", true).expect("free");
        assert!(Listener::unlocked(named.wayland()).is_ok());
        assert_eq!(names_in(dir.path()), ["dead"]);
        drop(named);
        let left: Vec<_> = fs::read_dir(dir.path()).expect("it is there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
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
