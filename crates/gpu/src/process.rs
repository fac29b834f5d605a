//! The reader as a process: what it gives up before it touches a buffer, and what it reads with.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::str::FromStr;

use super::confine::{confine, settle};
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

impl FromStr for How {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "memory" => Ok(Self::Memory),
            path if path.starts_with('/') => Ok(Self::Node(path.into())),
            _ => Err("expected auto, memory or the path of a render node".to_owned()),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Memory => f.write_str("memory"),
            Self::Node(path) => write!(f, "{}", path.display()),
        }
    }
}

impl How {
    /// The command that starts a reader, `None` if it is not worth trying: this program itself or, where that cannot
    /// open libEGL, the one beside it.
    #[must_use]
    pub fn command(&self) -> Option<Vec<OsString>> {
        // The program itself, also when another one has been installed in its place.
        let own = || vec!["/proc/self/exe".into(), "gpu-reader".into()];
        let has_egl = cfg!(feature = "egl");
        let mut command = match (self, helper()) {
            (Self::Auto, _) if nodes().is_empty() => return None,
            (Self::Auto, None) if !has_egl => return None,
            (Self::Auto | Self::Node(_), Some(helper)) if !has_egl => vec![helper.into()],
            // Without EGL, it says so.
            _ => own(),
        };
        command.push(self.to_string().into());
        Some(command)
    }
}

/// The program beside this one that reads GPU buffers for it, if it is there.
#[must_use]
pub fn helper() -> Option<PathBuf> {
    let helper = std::env::current_exe().ok()?.with_file_name(HELPER);
    helper.is_file().then_some(helper)
}

/// Its name.
pub const HELPER: &str = "wayferry-gpu-reader";

/// Reads buffers for the session whose socket is this process's stdin, until that is gone.
pub fn read(how: &How) {
    settle();
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    match how {
        How::Memory => {
            confine();
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
    refuse(socket, format!("this build cannot open libEGL, and {HELPER} is not beside it"));
}

fn refuse(socket: OwnedFd, why: String) {
    // A session that is gone needs no reason.
    let _ = Link::of(socket).send(&FromReader::Unable { why }.encode(), &[]);
}
