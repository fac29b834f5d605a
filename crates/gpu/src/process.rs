//! The reader as a process: what it gives up before it touches a buffer, and what it reads with.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::set_no_new_privs;

use super::cpu::Cpu;
use super::link::Link;
use super::node::nodes;
use super::reader::serve;
use super::wire::{FromReader, Means};

/// What buffers are read with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// The first GPU that can.
    Auto,
    /// The GPU of this render node.
    Node(PathBuf),
    /// No GPU: those that lie in ordinary memory are mapped.
    Memory,
}

impl How {
    /// Whether it is worth trying: a process is started for it.
    #[must_use]
    pub fn may_read(&self) -> bool {
        match self {
            Self::Auto => cfg!(feature = "egl") && !nodes().is_empty(),
            Self::Node(_) | Self::Memory => true,
        }
    }
}

/// Reads buffers for the session whose socket is this process's stdin, until that is gone.
pub fn read(how: &How) {
    // Without these it is no less right, only less contained.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_no_new_privs(true);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // Each buffer takes a descriptor, and the session passes the limit on that it has found.
    let open = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: open.maximum, ..open });
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    match how {
        How::Memory => {
            let means = Means {
                name: "memory".to_owned(),
                device: None,
                lacks_fences: false,
                pairs: Cpu::pairs().collect(),
            };
            serve(socket, means, Cpu);
        }
        How::Auto => read_on_gpu(socket, None),
        How::Node(node) => read_on_gpu(socket, Some(node)),
    }
}

#[cfg(feature = "egl")]
fn read_on_gpu(socket: OwnedFd, node: Option<&PathBuf>) {
    match super::egl::Gpu::open(node.map(PathBuf::as_path)) {
        Ok((gpu, means)) => serve(socket, means, gpu),
        Err(why) => refuse(socket, why),
    }
}

#[cfg(not(feature = "egl"))]
fn read_on_gpu(socket: OwnedFd, _: Option<&PathBuf>) {
    refuse(socket, "this build has no EGL".to_owned());
}

fn refuse(socket: OwnedFd, why: String) {
    // A session that is gone needs no reason.
    let _ = Link::of(socket).send(&FromReader::Unable { why }.encode(), &[]);
}
