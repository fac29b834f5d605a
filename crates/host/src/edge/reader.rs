//! The process that reads GPU buffers for a session.
//!
//! It may hang in a driver, so nothing here waits for it: not for its answers, and not for its end. Invariant: it has
//! no descriptors of the session's but its end of the socket, and few of its environment variables.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use wayferry_gpu::{Link, Received};

use super::descriptors;

/// See the module.
#[derive(Debug)]
pub(crate) struct Reader {
    child: Child,
    link: Link,
}

impl Reader {
    /// Starts it by this command.
    pub(crate) fn start(command: &[OsString]) -> io::Result<Self> {
        let (link, end) = Link::pair()?;
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
        // Drivers say much that no user asked for.
        command.stdin(end).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = descriptors::with_limit_found(|| command.spawn())?;
        Ok(Self { child, link })
    }

    /// What it says next.
    pub(crate) fn receive(&self) -> Received {
        self.link.receive()
    }

    /// The socket to it.
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Ends it; gives the process, to be reaped once it is gone.
    pub(crate) fn kill(mut self) -> Child {
        // It is gone already, then.
        let _ = self.child.kill();
        self.child
    }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.link.as_fd()
    }
}

/// Whether a driver may need a variable of the environment.
fn is_kept(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    ["PATH", "HOME", "LANG"].contains(&&*name) || DRIVERS.iter().any(|prefix| name.starts_with(prefix))
}

/// With these begin the names of variables that choose drivers and tell where they are.
const DRIVERS: [&str; 9] =
    ["LD_LIBRARY_PATH", "LIBGL_", "MESA_", "GALLIUM_", "EGL_", "GBM_", "DRI_", "__EGL_", "__GLX_"];
