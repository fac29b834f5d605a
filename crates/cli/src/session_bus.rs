//! The bus of a session: dbus-daemon, which ends with the session even if that is killed.
//!
//! The session starts this program, which asks the kernel for a signal at the session's end and becomes the daemon.
//! Nothing here speaks D-Bus. Invariant: the daemon has no other parent than the session.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, set_parent_process_death_signal};
use wayferry_host::edge::path;

use crate::error::{Error, SessionError};
use crate::tell;

/// What becomes the daemon, without the path of its configuration; `None` where none is installed.
pub(crate) fn command() -> Option<Vec<OsString>> {
    if path::find(DAEMON, &path::own()).is_err() {
        tell::step(
            "no `dbus-daemon` is installed here: notifications of programs are not shown at the display",
        );
        return None;
    }
    // The program itself, also when another one has been installed in its place.
    Some(vec!["/proc/self/exe".into(), "session-bus".into()])
}

/// Becomes the daemon; returns if it cannot.
pub(crate) fn run(configuration: &Path) -> Error {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let mut file = OsString::from("--config-file=");
    file.push(configuration);
    let mut command = Command::new(DAEMON);
    // The third is stdout, where the session waits for it.
    command.args(["--nofork", "--nopidfile", "--print-address=1"]).arg(file);
    let source = command.exec();
    SessionError::Program { program: DAEMON.into(), source }.into()
}

const DAEMON: &str = "dbus-daemon";
