//! A directory with a runtime directory in it, for one test's programs, and the user that owns both.
//!
//! Invariant: when a `Home` is dropped, no process that was started in it lives, and the directory is gone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::program::Launch;
use super::until;

/// See the module.
pub(crate) struct Home {
    path: PathBuf,
}

impl Home {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wf-{}-{number}", std::process::id()));
        let home = Self { path };
        fs::create_dir_all(home.runtime()).expect("a directory for the test");
        for directory in [home.path(), &home.runtime()] {
            fs::set_permissions(directory, Permissions::from_mode(0o700)).expect("a private directory");
            home.give(directory);
        }
        home
    }

    /// The user's home directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `XDG_RUNTIME_DIR` of everything that is started here. Short, because a socket's path may have 107 bytes.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.path.join("run")
    }

    /// A file of this home.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that the programs own.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        // A program may wait for it, and take it away at once.
        let (path, unfinished) = (self.file(name), self.file(&format!("{name}.unfinished")));
        fs::write(&unfinished, content).expect("a file for the test");
        self.give(&unfinished);
        fs::rename(&unfinished, &path).expect("a file for the test");
        path
    }

    /// The content of a file, once it is there and `enough` says so.
    pub(crate) fn read_when(&self, name: &str, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        until(&format!("file `{name}`"), || fs::read(self.file(name)).ok().filter(|content| enough(content)))
    }

    /// Prepares a program as the unprivileged user.
    pub(crate) fn launch(&self, program: &str) -> Launch {
        Launch::new(self, program)
    }

    /// Prepares the `wayferry` program that this build made.
    pub(crate) fn wayferry(&self) -> Launch {
        let binary = self.bring(Path::new(env!("CARGO_BIN_EXE_wayferry")));
        self.launch(binary.to_str().expect("a plain path")).with_events()
    }

    /// The same with the laboratory beside it.
    pub(crate) fn wayferry_and_lab(&self) -> Launch {
        self.bring(&Path::new(env!("CARGO_BIN_EXE_wayferry")).with_file_name("wayferry-lab"));
        let binary = self.bring(Path::new(env!("CARGO_BIN_EXE_wayferry")));
        // The laboratory has no events.
        self.launch(binary.to_str().expect("a plain path"))
    }

    /// Brings a program here, because the unprivileged user may not be able to reach the checkout.
    fn bring(&self, built: &Path) -> PathBuf {
        let binary = self.file(&built.file_name().expect("a name").to_string_lossy());
        if !binary.exists() {
            // By a program of its own: were it open for writing here, a child that another test starts meanwhile would
            // hold it open for a moment too, and it could not be run.
            let copied = fs::hard_link(built, &binary).is_ok()
                || Command::new("cp").arg(built).arg(&binary).status().is_ok_and(|status| status.success());
            assert!(copied, "`{}` could not be copied", built.display());
        }
        binary
    }

    /// Processes that were started here and still live, no matter which process is their parent now.
    pub(crate) fn living(&self) -> Vec<Pid> {
        let mark = format!("{MARK}={}", self.path.display()).into_bytes();
        let carries = |pid: Pid| {
            fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
                .is_ok_and(|all| all.split(|&byte| byte == 0).any(|entry| entry == mark))
        };
        processes().into_iter().filter(|&pid| carries(pid)).collect()
    }

    /// Hands a path to the user that the programs run as.
    pub(crate) fn give(&self, path: &Path) {
        if let Some(user) = unprivileged() {
            chown(path, Some(user), Some(user)).expect("the right to give files away");
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in self.living() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whom to run programs as; `None` when the tests have no privilege to drop. sway refuses to run as root.
pub(crate) fn unprivileged() -> Option<u32> {
    geteuid().is_root().then_some(NOBODY)
}

/// All processes of the machine.
pub(crate) fn processes() -> Vec<Pid> {
    fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// The environment variable by which a process that left its parent is found again.
pub(crate) const MARK: &str = "WAYFERRY_TEST_HOME";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The user and group `nobody`.
const NOBODY: u32 = 65534;
