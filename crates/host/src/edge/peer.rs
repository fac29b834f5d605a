//! Which user is at the other end of a Unix socket.
//!
//! A path in a directory that others may write to says nothing about who listens there, and a socket's mode can be
//! changed by its owner. The kernel knows, so it is asked. It says nothing about peers on other machines. Invariant:
//! not a byte is sent to, or read from, a peer that is neither this user nor root.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Another user, who may not use a socket of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// The user's number on this machine.
    pub uid: u32,
    /// The socket.
    pub path: PathBuf,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {} has the socket `{}`", self.uid, self.path.display())
    }
}

impl std::error::Error for Stranger {}

impl From<Stranger> for io::Error {
    fn from(stranger: Stranger) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, stranger)
    }
}

/// Connects to the socket at `path`, if this user or root made it and listens there. Waits for a peer whose queue is
/// full.
///
/// # Errors
/// [`Stranger`], as the error's inner value, when somebody else does; otherwise what `connect` says.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    connect_with(path, SocketFlags::CLOEXEC)
}

/// The same, for a socket that never blocks: a peer that is stopped is an error.
///
/// # Errors
/// See [`connect`].
pub fn connect_at_once(path: &Path) -> io::Result<OwnedFd> {
    connect_with(path, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

fn connect_with(path: &Path, flags: SocketFlags) -> io::Result<OwnedFd> {
    // In a sticky directory only its owner can replace the file, so the socket that is connected to is this one. A link
    // of another user's could lead to another service of this user's.
    let owner = std::fs::symlink_metadata(path)?.uid();
    trust(owner, path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    trust(uid(&socket)?, path)?;
    Ok(socket)
}

/// Whether this user or root is at the other end of a connection that was accepted at `path`.
///
/// # Errors
/// See [`connect`].
pub fn check(socket: &impl AsFd, path: &Path) -> io::Result<()> {
    Ok(trust(uid(socket)?, path)?)
}

/// Who listened, or connected (`SO_PEERCRED`, unix(7)).
fn uid(socket: &impl AsFd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(socket)?.uid.as_raw())
}

fn trust(uid: u32, path: &Path) -> Result<(), Stranger> {
    let own = rustix::process::geteuid().as_raw();
    // Root may do everything here anyway.
    if uid == own || uid == 0 { Ok(()) } else { Err(Stranger { uid, path: path.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::socket::{Listener, RuntimeDir};

    #[test]
    fn this_user_is_no_stranger() {
        let dir = RuntimeDir::private().expect("a directory");
        let listener = Listener::new(&dir, Some("w")).expect("a listener");
        assert!(connect(listener.path()).is_ok());
        assert!(listener.accept().expect("accepted").is_some());
    }

    #[test]
    fn everybody_else_but_root_is_one() {
        let own = rustix::process::geteuid().as_raw();
        let path = Path::new("/tmp/s");
        assert_eq!((trust(own, path), trust(0, path)), (Ok(()), Ok(())));
        let stranger = Stranger { uid: own + 1, path: path.to_owned() };
        assert_eq!(trust(own + 1, path), Err(stranger.clone()));
        let error = io::Error::from(stranger.clone());
        assert_eq!(error.get_ref().and_then(|inner| inner.downcast_ref()), Some(&stranger));
    }
}
