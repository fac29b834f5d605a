//! The sessions of this user on this machine: a directory with one control socket each, named as the session.
//!
//! The directory is beside the other temporary ones, not in XDG_RUNTIME_DIR, which goes when its user logs out; a
//! session does not. Where another user has made one of its name, it is in the user's own state directory. It has mode
//! 0700, so only its user can speak to a session, and is locked and touched now and then, so that what cleans temporary
//! directories leaves it alone. What a session that was killed left behind is removed by the next of its name. It knows
//! nothing of what is said on the sockets. Invariant: a name has one living owner.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use crate::edge::offer::is_private;
use crate::edge::peer;
use crate::edge::socket::{Listener, RuntimeDir};
use crate::error::Error;

/// A session's name and control socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Named {
    name: String,
    listener: Listener,
    lock: Option<Lock>,
    commands: Option<Commands>,
    // Dropped after the files in it.
    directory: Directory,
}

/// A directory of commands that this program answers to in the session. Goes with the value.
#[derive(Debug)]
struct Commands {
    path: PathBuf,
    program: PathBuf,
}

impl Commands {
    /// Makes what is missing of it.
    fn make(&self) -> io::Result<()> {
        private(&self.path)?;
        for name in COMMANDS {
            match std::os::unix::fs::symlink(&self.program, self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        remove_commands(&self.path);
    }
}

/// Removes the links, and then the directory, if nothing else is in it.
fn remove_commands(path: &Path) {
    for name in COMMANDS {
        let _ = fs::remove_file(path.join(name));
    }
    let _ = fs::remove_dir(path);
}

/// The right to a name. The kernel frees it with this process, even if that is killed.
#[derive(Debug)]
struct Lock {
    file: OwnedFd,
    path: PathBuf,
}

impl Lock {
    /// Takes it; `None` if another process has it.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => return Ok(None),
                result => result?,
            }
            // The last owner may have removed the file between the two calls; then this locks a file that is gone.
            let lock = Self { file, path: path.to_owned() };
            if lock.is_there() {
                return Ok(Some(lock));
            }
        }
    }
}

impl Lock {
    /// Whether the file that stands at its path is still this one.
    fn is_there(&self) -> bool {
        let there = rustix::fs::stat(&self.path);
        let ours = rustix::fs::fstat(&self.file);
        there.is_ok_and(|there| {
            ours.is_ok_and(|ours| (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino))
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // It may have been cleaned away, and another session have made its own.
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The directory of all sessions; goes with the last.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// What cleans temporary directories passes over one that is locked (tmpfiles.d(5)).
    lock: Option<OwnedFd>,
}

impl Directory {
    fn hold(path: &Path) -> Self {
        let mut directory = Self { path: path.to_owned(), lock: None };
        directory.lock();
        directory
    }

    fn lock(&mut self) {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(&self.path, flags, Mode::empty()).ok();
        // A file system without locks is no reason to do without a session.
        self.lock =
            lock.filter(|lock| rustix::fs::flock(lock, FlockOperation::NonBlockingLockShared).is_ok());
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Fails while something is in it.
        let _ = fs::remove_dir(&self.path);
    }
}

impl Named {
    /// Takes `name`, or if another session has it and it need not be that one, the first free one of `name-2`, `name-3`
    /// …
    ///
    /// # Errors
    /// [`Error::SessionName`] when it is taken, [`Error::File`] when nothing can be made there.
    pub fn claim(name: &str, exactly: bool) -> Result<Self, Error> {
        for _ in 1..ATTEMPTS {
            match Self::claim_in(&made()?, &directories(), name, exactly) {
                // The last session that ended has just taken the directory away.
                Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                claimed => return claimed,
            }
        }
        Self::claim_in(&made()?, &directories(), name, exactly)
    }

    /// Takes a name in `directory`, which is one of `all`; no session in any of them has it.
    pub(crate) fn claim_in(
        directory: &Path,
        all: &[PathBuf],
        name: &str,
        exactly: bool,
    ) -> Result<Self, Error> {
        let most = if exactly { 1 } else { MAX_SESSIONS };
        for number in 1..=most {
            let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let failed = |source| Error::File { path: directory.join(&name), source };
            let Some(lock) = Lock::take(&beside(directory, &name, LOCK)).map_err(failed)? else { continue };
            // Its lock may have been cleaned away, or it may be where sessions were made while another user had this
            // directory.
            if reach(all, &name).is_some() {
                continue;
            }
            // Left by a session that was killed; no process uses it.
            let _ = fs::remove_file(beside(directory, &name, WAYLAND));
            let _ = fs::remove_file(beside(directory, &name, DESK));
            let _ = fs::remove_file(beside(directory, &name, AGENT));
            remove_commands(&beside(directory, &name, BIN));
            let listener = Listener::appearing(directory, &name).map_err(failed)?;
            let directory = Directory::hold(directory);
            return Ok(Self { name, listener, lock: Some(lock), commands: None, directory });
        }
        Err(Error::SessionName(format!("the session `{name}` runs already")))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its control socket.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Where its programs connect.
    pub fn wayland(&self) -> PathBuf {
        beside(&self.directory.path, &self.name, WAYLAND)
    }

    /// Where the session's programs find the ssh agent that [`Named::point_agent`] or [`point_agent`] names.
    pub fn agent(&self) -> PathBuf {
        beside(&self.directory.path, &self.name, AGENT)
    }

    /// Lets the session's programs use this ssh agent.
    ///
    /// # Errors
    /// It is no socket at an absolute path, or the link cannot be made.
    pub fn point_agent(&self, agent: &Path) -> io::Result<()> {
        link_agent(&self.directory.path, &self.name, agent)
    }

    /// Makes a directory for the session's PATH, in which `wayferry` and `xdg-open` are `program`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn add_commands(&mut self, program: PathBuf) -> io::Result<PathBuf> {
        let path = beside(&self.directory.path, &self.name, BIN);
        let commands = Commands { path: path.clone(), program };
        commands.make()?;
        self.commands = Some(commands);
        Ok(path)
    }

    /// Its control socket's place.
    pub fn socket(&self) -> PathBuf {
        self.directory.path.join(&self.name)
    }

    /// Shows that the session's files are in use, and makes its control socket anew if that was cleaned away. To be
    /// called every [`REFRESH`].
    ///
    /// # Errors
    /// The socket is gone and cannot be made.
    pub fn refresh(&mut self) -> io::Result<()> {
        let directory = self.directory.path.clone();
        let socket = directory.join(&self.name);
        let files = [beside(&directory, &self.name, LOCK), beside(&directory, &self.name, WAYLAND), socket];
        for file in files.iter().chain([&directory]) {
            let _ = touch(file);
        }
        if let Some(commands) = &self.commands {
            let links = COMMANDS.iter().map(|name| commands.path.join(name));
            links.chain([commands.path.clone()]).for_each(|file| drop(touch(&file)));
        }
        if self.listener.is_there() {
            return Ok(());
        }
        private(&directory)?;
        self.directory.lock();
        self.commands.iter().try_for_each(Commands::make)?;
        // Before the new one is made: dropping it removes the file of its name.
        self.lock = None;
        match Lock::take(&beside(&directory, &self.name, LOCK))? {
            Some(lock) if peer::connect_at_once(&directory.join(&self.name)).is_err() => {
                self.lock = Some(lock);
                self.listener = Listener::appearing(&directory, &self.name)?;
                Ok(())
            }
            // Another session has taken the name meanwhile; this one goes on unnamed.
            _ => Err(io::ErrorKind::AddrInUse.into()),
        }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        for kind in [DESK, AGENT] {
            let _ = fs::remove_file(beside(&self.directory.path, &self.name, kind));
        }
    }
}

/// Makes a file look used now.
fn touch(path: &Path) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Names of the sessions that answer, in order.
pub fn names() -> Vec<String> {
    let private = directories().into_iter().filter(|directory| is_private(directory));
    let mut names: Vec<String> = private.flat_map(|directory| names_in(&directory)).collect();
    names.sort_unstable();
    names.dedup();
    names
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
pub fn call(name: Option<&str>) -> Result<(String, OwnedFd), Error> {
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
    reach(&directories(), &name).map(|socket| (name.clone(), socket)).ok_or_else(none)
}

/// Puts a socket that leads to a session's display beside the session's own, where only this user comes to it and where
/// it goes with the session at the latest. Gives its new place.
///
/// # Errors
/// There is no such session, or the socket is in another file system.
pub fn keep(name: &str, socket: &Path) -> io::Result<PathBuf> {
    let place = beside(&directory_of(name)?, name, DESK);
    fs::rename(socket, &place)?;
    Ok(place)
}

/// Lets the programs of a session that runs use this ssh agent, in place of the one before.
///
/// # Errors
/// There is no such session, it is no socket at an absolute path, or the link cannot be made.
pub fn point_agent(name: &str, agent: &Path) -> io::Result<()> {
    link_agent(&directory_of(name)?, name, agent)
}

/// The directory in which a session runs.
fn directory_of(name: &str) -> io::Result<PathBuf> {
    let is_here =
        |directory: &PathBuf| is_private(directory) && peer::connect_at_once(&directory.join(name)).is_ok();
    directories().into_iter().find(is_here).ok_or(io::ErrorKind::NotFound.into())
}

/// Replaces the link at once: a program finds the one or the other.
fn link_agent(directory: &Path, name: &str, agent: &Path) -> io::Result<()> {
    if !agent.is_absolute() || !fs::metadata(agent)?.file_type().is_socket() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let place = beside(directory, name, AGENT);
    // A session's own agent again, which was started from a program of it: it is there already.
    if agent == place {
        return Ok(());
    }
    let fresh = beside(directory, name, FRESH_AGENT);
    let _ = fs::remove_file(&fresh);
    std::os::unix::fs::symlink(agent, &fresh)?;
    fs::rename(&fresh, &place)
}

/// A connection to the session of this name, in whichever of these directories it is.
fn reach(directories: &[PathBuf], name: &str) -> Option<OwnedFd> {
    let private = directories.iter().filter(|directory| is_private(directory));
    private.map(|directory| directory.join(name)).find_map(|path| peer::connect_at_once(&path).ok())
}

/// A file of a session beside its control socket.
fn beside(directory: &Path, name: &str, suffix: &str) -> PathBuf {
    directory.join(format!(".{name}.{suffix}"))
}

/// The name of a session that shows a whole screen and was given no command.
pub const SCREEN: &str = "desktop";

/// The default name of a session: its program's.
pub fn name_of(program: Option<&OsStr>) -> String {
    let last = |text: &str| {
        text.split_whitespace().next().and_then(|word| word.rsplit('/').next()).map(str::to_owned)
    };
    let name =
        program.map(OsStr::to_string_lossy).and_then(|text| last(&text)).unwrap_or_else(|| "shell".into());
    let name: String =
        name.chars().filter(|character| is_plain(*character)).take(MAX_NAME - SUFFIX).collect();
    if check(&name).is_ok() { name } else { "session".into() }
}

/// Checks a session's name.
///
/// # Errors
/// What a name must be like.
pub fn check(name: &str) -> Result<(), String> {
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

/// Where they are, whether or not it exists: beside other temporary files, or, where another user has taken that name,
/// below the user's own directory.
fn directories() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let temporary = RuntimeDir::temporary().join(format!("wayferry-{user}"));
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    // A home may be on several machines, each with sessions of its own.
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = state.map(|state| state.join("wayferry").join(machine));
    let fits = |path: &PathBuf| path.as_os_str().len() + MAX_NAME + BESIDE < MAX_PATH;
    [Some(temporary), own].into_iter().flatten().filter(fits).collect()
}

/// The directory of new sessions, made if need be.
fn made() -> Result<PathBuf, Error> {
    let mut first = None;
    for path in directories() {
        match private(&path) {
            Ok(()) => return Ok(path),
            Err(source) => drop(first.get_or_insert(Error::File { path, source })),
        }
    }
    let nowhere =
        || Error::File { path: RuntimeDir::temporary(), source: io::ErrorKind::InvalidFilename.into() };
    Err(first.unwrap_or_else(nowhere))
}

/// Makes a directory that only this user can enter, or finds that it is one.
fn private(path: &Path) -> io::Result<()> {
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ if is_private(path) => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "not a private directory of this user")),
    }
}

/// Longest name of a session; its sockets' paths must fit in 108 bytes.
const MAX_NAME: usize = 32;
/// Room for the suffix that makes a name unique.
const SUFFIX: usize = 5;
/// How often a directory that vanishes is made again.
const ATTEMPTS: u32 = 5;
/// Sessions of one user on one machine.
const MAX_SESSIONS: usize = 999;
/// A link to the ssh agent of a session's programs, and what it is called before it takes its place.
const AGENT: &str = "agent";
const FRESH_AGENT: &str = "agent+";
/// The socket that leads to a session's display through ssh.
const DESK: &str = "desk";
/// What the socket of a session's programs is called, beside its own.
const WAYLAND: &str = "wayland";
/// And the file that keeps the name.
const LOCK: &str = "lock";
/// And the directory of the session's own commands.
const BIN: &str = "bin";
/// What is in it.
const COMMANDS: [&str; 2] = ["wayferry", "xdg-open"];
/// Bytes added to a name: a separator, dots, the longer of the two.
const BESIDE: usize = 3 + WAYLAND.len();
/// Bytes of a socket's path (unix(7)).
const MAX_PATH: usize = 108;
/// Cleaners of temporary directories wait for days, so an hour is enough.
pub const REFRESH: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(directory: &Path, name: &str, exactly: bool) -> Result<Named, Error> {
        Named::claim_in(directory, &[directory.to_owned()], name, exactly)
    }

    #[test]
    fn regression_a_name_is_taken_in_both_directories() {
        let (temporary, own) =
            (RuntimeDir::private().expect("a directory"), RuntimeDir::private().expect("a directory"));
        let all = [temporary.path().to_owned(), own.path().to_owned()];
        let first = Named::claim_in(own.path(), &all, "foot", true).expect("free");
        let second = Named::claim_in(temporary.path(), &all, "foot", false).expect("another name");
        assert_eq!((first.name(), second.name()), ("foot", "foot-2"));
        assert!(matches!(Named::claim_in(temporary.path(), &all, "foot", true), Err(Error::SessionName(_))));
    }

    #[test]
    fn a_name_has_one_owner_and_is_free_after_it() {
        let dir = RuntimeDir::private().expect("a directory");
        let first = claim(dir.path(), "foot", false).expect("free");
        let second = claim(dir.path(), "foot", false).expect("another name");
        assert_eq!((first.name(), second.name()), ("foot", "foot-2"));
        assert!(matches!(claim(dir.path(), "foot", true), Err(Error::SessionName(_))));
        assert_eq!(names_in(dir.path()), ["foot", "foot-2"]);
        drop(first);
        assert_eq!(names_in(dir.path()), ["foot-2"]);
        assert_eq!(claim(dir.path(), "foot", true).expect("free again").name(), "foot");
        drop(second);
        assert!(!dir.path().exists(), "it goes with the last");
    }

    #[test]
    fn a_session_whose_files_were_cleaned_away_is_found_again() {
        let dir = RuntimeDir::private().expect("a directory");
        let sessions = dir.path().join("sessions");
        private(&sessions).expect("made");
        let mut named = claim(&sessions, "foot", true).expect("free");
        fs::remove_dir_all(&sessions).expect("cleaned");
        named.refresh().expect("made anew");
        assert_eq!(names_in(&sessions), ["foot"]);
        assert!(matches!(claim(&sessions, "foot", true), Err(Error::SessionName(_))));
        named.refresh().expect("nothing to do");
        assert_eq!(names_in(&sessions), ["foot"]);
        drop(named);
        assert!(!sessions.exists());
    }

    #[test]
    fn a_session_whose_lock_was_cleaned_away_keeps_its_name() {
        let dir = RuntimeDir::private().expect("a directory");
        let first = claim(dir.path(), "foot", true).expect("free");
        fs::remove_file(beside(dir.path(), "foot", LOCK)).expect("cleaned");
        let second = claim(dir.path(), "foot", false).expect("another name");
        assert_eq!(second.name(), "foot-2");
        assert_eq!(names_in(dir.path()), ["foot", "foot-2"], "the first can still be reached");
        drop((first, second));
    }

    #[test]
    fn what_is_in_use_is_locked_and_looks_used() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut named = claim(dir.path(), "foot", true).expect("free");
        let open = fs::File::open(dir.path()).expect("a directory");
        let lock = rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(lock, Err(Errno::WOULDBLOCK), "a cleaner would not pass over it");
        let socket = dir.path().join("foot");
        let old = Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = Timestamps { last_access: old, last_modification: old };
        rustix::fs::utimensat(CWD, &socket, &times, AtFlags::empty()).expect("its times");
        named.refresh().expect("refreshed");
        let modified = fs::metadata(&socket).and_then(|metadata| metadata.modified()).expect("a time");
        assert!(modified > std::time::UNIX_EPOCH + Duration::from_secs(1));
    }

    #[test]
    fn what_a_killed_session_left_is_no_session_and_its_name_is_free() {
        let dir = RuntimeDir::private().expect("a directory");
        for name in ["dead", ".dead", ".dead.wayland", ".dead.desk"] {
            drop(std::os::unix::net::UnixListener::bind(dir.path().join(name)).expect("a stale socket"));
        }
        fs::write(dir.path().join(".dead.lock"), "").expect("a file that is not locked");
        fs::write(dir.path().join("file"), "").expect("a file");
        assert!(names_in(dir.path()).is_empty());
        let named = claim(dir.path(), "dead", true).expect("free");
        assert!(Listener::unlocked(named.wayland()).is_ok());
        assert_eq!(names_in(dir.path()), ["dead"]);
        drop(named);
        let left: Vec<_> = fs::read_dir(dir.path()).expect("it is there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn programs_find_the_agent_that_was_named_last_and_none_when_the_session_is_over() {
        let dir = RuntimeDir::private().expect("a directory");
        let named = claim(dir.path(), "s", true).expect("free");
        let agents = ["a", "b"].map(|agent| dir.path().join(agent));
        let sockets =
            agents.each_ref().map(|agent| std::os::unix::net::UnixListener::bind(agent).expect("one"));
        for agent in agents.iter().chain([&agents[0]]) {
            named.point_agent(agent).expect("a link");
            assert_eq!(fs::read_link(named.agent()).expect("a link"), *agent);
        }
        fs::write(dir.path().join("file"), "").expect("a file");
        for wrong in [dir.path().join("file"), dir.path().join("none"), "relative".into(), named.agent()] {
            let _ = named.point_agent(&wrong);
            assert_eq!(fs::read_link(named.agent()).expect("a link"), agents[0], "{wrong:?}");
        }
        let place = named.agent();
        drop((named, sockets));
        assert!(fs::symlink_metadata(place).is_err());
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
