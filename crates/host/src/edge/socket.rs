//! The Wayland socket that programs connect to, and the directory that it lives in.
//!
//! The socket is made in XDG_RUNTIME_DIR, or, where there is none, in a private directory of mode 0700 that is
//! removed at the end. A lock file beside it, as libwayland makes one, keeps two owners of one name apart and tells
//! a stale socket from a live one. Invariant: what was made is removed when the value is dropped, and nothing else is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::peer;
use crate::error::Error;

/// A directory for sockets: the session's own XDG_RUNTIME_DIR, or a private one.
#[derive(Debug)]
pub struct RuntimeDir {
    path: PathBuf,
    private: bool,
}

impl RuntimeDir {
    /// XDG_RUNTIME_DIR when it can be used, otherwise a new private directory.
    pub fn new() -> Result<Self, Error> {
        match Self::of_user() {
            Some(path) => Ok(Self { path, private: false }),
            None => Self::private(),
        }
    }

    /// XDG_RUNTIME_DIR, when it can be used.
    pub fn of_user() -> Option<PathBuf> {
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| usable(path))
    }

    /// Where temporary things are; a socket's path, which is longer, must fit in 108 bytes.
    pub fn temporary() -> PathBuf {
        let named = std::env::var_os("TMPDIR").map(PathBuf::from);
        let fits = |path: &PathBuf| path.is_absolute() && path.as_os_str().len() <= 40;
        named.filter(fits).unwrap_or_else(|| PathBuf::from("/tmp"))
    }

    /// A new directory that only this user can enter, removed on drop with all that is in it.
    pub fn private() -> Result<Self, Error> {
        let path = Self::temporary().join(format!("wayferry-{}", random_name()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self { path, private: true }),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it was made for this session, so that programs must be told about it.
    pub fn is_private(&self) -> bool {
        self.private
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        if self.private {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A listening Unix socket with its lock.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and inode of the file.
    node: (u64, u64),
    lock: Option<(File, PathBuf)>,
    name: OsString,
}

impl Listener {
    /// Listens under `name` (a name in `dir`, or an absolute path), or under a fresh random name.
    pub fn new(dir: &RuntimeDir, name: Option<&str>) -> Result<Self, Error> {
        let name = name.map_or_else(|| format!("wayferry-{}", random_name()), str::to_owned);
        let path = dir.path().join(&name);
        Self::at(path, &name).map_err(|source| Error::Display { name, source })
    }

    fn at(path: PathBuf, name: &str) -> io::Result<Self> {
        let lock_path = PathBuf::from(format!("{}.lock", path.display()));
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::open(&lock_path, flags, Mode::RUSR | Mode::WUSR)?;
        if let Err(error) = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            return Err(if error == Errno::WOULDBLOCK {
                io::ErrorKind::AddrInUse.into()
            } else {
                error.into()
            });
        }
        // We hold the lock: a socket that stands there has lost its owner.
        match fs::symlink_metadata(&path) {
            Ok(metadata) if !std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type()) => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Ok(_) => fs::remove_file(&path)?,
            Err(_) => {}
        }
        let made = listen(&path);
        if made.is_err() {
            let _ = fs::remove_file(&lock_path);
        }
        let fd = made?;
        let node = node(&path)?;
        Ok(Self { fd, path, node, lock: Some((File::from(lock), lock_path)), name: name.into() })
    }

    /// Listens at a path of which the caller knows that no other process uses it.
    pub fn unlocked(path: PathBuf) -> Result<Self, Error> {
        match listen(&path).and_then(|fd| Ok((fd, node(&path)?))) {
            Ok((fd, node)) => Ok(Self { fd, name: path.clone().into(), path, node, lock: None }),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// Listens at a path of which the caller knows that no other process uses it. A dead owner's socket is replaced,
    /// and the new one appears only once it listens, so every caller that finds it gets an answer.
    pub fn appearing(directory: &Path, name: &str) -> io::Result<Self> {
        let (path, hidden) = (directory.join(name), directory.join(format!(".{name}")));
        let _ = fs::remove_file(&hidden);
        let fd = listen(&hidden)?;
        if let Err(error) = fs::rename(&hidden, &path) {
            let _ = fs::remove_file(&hidden);
            return Err(error);
        }
        let node = node(&path)?;
        Ok(Self { fd, path, node, lock: None, name: name.into() })
    }

    /// Whether the socket that stands at its path is still this one.
    pub fn is_there(&self) -> bool {
        node(&self.path).is_ok_and(|node| node == self.node)
    }

    /// What programs find in WAYLAND_DISPLAY.
    pub fn name(&self) -> &OsString {
        &self.name
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next peer that connected, without blocking. Other users than this one and root are turned away.
    pub fn accept(&self) -> io::Result<Option<OwnedFd>> {
        loop {
            match rustix::net::accept_with(&self.fd, SocketFlags::CLOEXEC) {
                Ok(fd) if peer::check(&fd, &self.path).is_ok() => return Ok(Some(fd)),
                Ok(_) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another may stand there if this one was cleaned away.
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
        if let Some((_lock, path)) = self.lock.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Connects to a Unix socket, no matter who listens there; see [`peer::connect`] for one of ours.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Sixteen characters that cannot be guessed.
pub fn random_name() -> String {
    random_bytes::<8>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from the kernel's generator.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // Fails only when interrupted before the pool is ready, at boot.
        if let Ok(count) =
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
        {
            filled += count;
        }
    }
    bytes
}

/// Which file a path leads to: its device and inode.
fn node(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Makes the socket so that at no moment another user can connect.
fn listen(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &address)?;
    let ready =
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR).and_then(|()| rustix::net::listen(&socket, BACKLOG));
    if let Err(error) = ready {
        let _ = fs::remove_file(path);
        return Err(error.into());
    }
    Ok(socket)
}

/// A directory of this user's own, in which a socket can be made, and where others can neither make nor replace one.
fn usable(path: &Path) -> bool {
    path.is_absolute()
        && fs::metadata(path).is_ok_and(|metadata| {
            let own = metadata.uid() == rustix::process::geteuid().as_raw();
            metadata.is_dir() && own && metadata.mode() & OTHERS_WRITE == 0
        })
        && rustix::fs::access(path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
        && path.as_os_str().len() <= MAX_DIR
}

/// Group and others may write.
const OTHERS_WRITE: u32 = 0o022;
/// Longest directory in which a socket of ours still has a path of less than 108 bytes.
const MAX_DIR: usize = 75;

/// Programs that connect at once: more than ever start in one millisecond.
const BACKLOG: i32 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_its_directory_vanish_with_their_owner() {
        let dir = RuntimeDir::private().expect("dir");
        let path = dir.path().to_owned();
        assert_eq!(fs::metadata(&path).expect("made").mode() & 0o777, 0o700);
        let listener = Listener::new(&dir, Some("w")).expect("listener");
        let program = connect(listener.path()).expect("connect");
        assert!(listener.accept().expect("accept").is_some());
        drop((program, listener));
        assert_eq!(fs::read_dir(&path).expect("still there").count(), 0);
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn a_name_has_one_owner() {
        let dir = RuntimeDir::private().expect("dir");
        let first = Listener::new(&dir, Some("w")).expect("first");
        let second = Listener::new(&dir, Some("w"));
        assert!(matches!(&second, Err(error) if error.code() == 77), "{second:?}");
        assert!(first.path().exists(), "the loser must not remove the winner's socket");
        assert!(connect(first.path()).is_ok());
    }

    #[test]
    fn a_stale_socket_is_replaced_but_a_file_is_not() {
        let dir = RuntimeDir::private().expect("dir");
        let stale = listen(&dir.path().join("w")).expect("stale");
        drop(stale);
        assert!(Listener::new(&dir, Some("w")).is_ok());
        fs::write(dir.path().join("f"), "precious").expect("file");
        assert!(Listener::new(&dir, Some("f")).is_err());
        assert_eq!(fs::read_to_string(dir.path().join("f")).expect("kept"), "precious");
    }
}
