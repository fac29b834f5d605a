//! Processes that know a session's display, and so may still connect to it.
//!
//! A program that forks and exits, or has a daemon start another, leaves processes that are not its children any more;
//! what they have in common is their environment. Invariant: only processes of this user are looked at, and none is
//! touched.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the processes do that were started with a session's display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remaining {
    /// There is none.
    Gone,
    /// All sleep: they may be servers that show nothing.
    Asleep,
    /// One runs, or waits for a processor or a disk: it may be about to connect.
    Busy,
}

/// Looks for processes that were started with this `WAYLAND_DISPLAY`.
pub(crate) fn remaining(display: &OsStr) -> Remaining {
    let entry = [b"WAYLAND_DISPLAY=", display.as_bytes()].concat();
    let knows = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|other| other == entry)
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
    let ours = processes.filter(|process| knows(process));
    let state = |process: &Path| match is_asleep(process) {
        true => Remaining::Asleep,
        false => Remaining::Busy,
    };
    ours.map(|process| state(&process)).max().unwrap_or(Remaining::Gone)
}

/// Whether the process with this directory in `/proc` waits for anything but a processor or a disk (proc(5)).
fn is_asleep(process: &Path) -> bool {
    let stat = fs::read(process.join("stat")).unwrap_or_default();
    // The name of the program stands before the state, in parentheses that it may itself contain.
    let name_ends = stat.iter().rposition(|byte| *byte == b')');
    let state = name_ends.and_then(|end| stat.get(end + 2));
    !matches!(state, Some(b'R' | b'D'))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn start(display: &str, words: &[&str]) -> Child {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .env("WAYLAND_DISPLAY", display)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command.spawn().expect("it starts")
    }

    #[test]
    fn a_process_is_known_by_its_display_and_forgotten_with_its_end() {
        let display = format!("remaining-{}", std::process::id());
        assert_eq!(remaining(OsStr::new(&display)), Remaining::Gone);
        let mut child = start(&display, &["cat"]);
        assert!(remaining(OsStr::new(&display)) > Remaining::Gone);
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert_eq!(remaining(OsStr::new(&display)), Remaining::Gone);
    }

    #[test]
    fn one_that_computes_is_told_from_one_that_waits() {
        let display = format!("busy-{}", std::process::id());
        // One that has read a line waits for the next.
        let mut waiting = start(&display, &["cat"]);
        std::io::Write::write_all(&mut waiting.stdin.as_ref().expect("a pipe"), b"x").expect("it reads");
        std::io::Read::read_exact(waiting.stdout.as_mut().expect("a pipe"), &mut [0]).expect("it writes");
        let asleep = || (0..1000).any(|_| remaining(OsStr::new(&display)) == Remaining::Asleep);
        assert!(asleep(), "it waits for its input");
        let computing = start(&display, &["sh", "-c", "while :; do :; done"]);
        assert!((0..1000).any(|_| remaining(OsStr::new(&display)) == Remaining::Busy), "it computes");
        for mut child in [computing, waiting] {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
    }
}
