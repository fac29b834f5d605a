//! Processes that know a session's display, and so may still connect to it.
//!
//! A program that forks and exits, or has a daemon start another, leaves processes that are not its children any more;
//! what they have in common is their environment. Invariant: only processes of this user are looked at, and none is
//! touched.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Whether a process lives that was started with this `WAYLAND_DISPLAY`.
pub(crate) fn any_for(display: &OsStr) -> bool {
    let entry = [b"WAYLAND_DISPLAY=", display.as_bytes()].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut environments = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    environments.any(|environment| environment.split(|byte| *byte == 0).any(|other| other == entry))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_display_and_forgotten_with_its_end() {
        let display = format!("remaining-{}", std::process::id());
        assert!(!any_for(OsStr::new(&display)));
        let mut command = Command::new("cat");
        command.env("WAYLAND_DISPLAY", &display).stdin(Stdio::piped());
        let mut child = command.spawn().expect("cat");
        assert!(any_for(OsStr::new(&display)));
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert!(!any_for(OsStr::new(&display)));
    }
}
