//! Processes that know a session's display, and so may still connect to it.
//!
//! A program that forks and exits, or has a daemon start another, leaves processes that are not its children any more;
//! what they have in common is their environment. Invariant: only processes of this user are looked at, and none is
//! touched.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the processes do that were started with a session's display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remaining {
    /// There is none.
    Gone,
    /// None is known, but one is just beginning a program, which may be one.
    Unclear,
    /// All sleep: they may be servers that show nothing.
    Asleep,
    /// One runs, or waits for a processor or a disk: it may be about to connect.
    Busy,
}

/// Looks for processes that were started with this `WAYLAND_DISPLAY`.
pub(crate) fn remaining(display: &OsStr) -> Remaining {
    let entry = [b"WAYLAND_DISPLAY=", display.as_bytes()].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
    processes.filter_map(|process| state(&process, &entry)).max().unwrap_or(Remaining::Gone)
}

/// What the process of this directory does, if its environment has this entry, or may have it.
fn state(process: &Path, entry: &[u8]) -> Option<Remaining> {
    let environment = environment(process)?;
    if environment.is_empty() {
        // So it looks for a moment in execve(2); and always, where a program was given none. A thread of the kernel runs
        // no file.
        return (is_busy(process) && process.join("exe").read_link().is_ok()).then_some(Remaining::Unclear);
    }
    let knows = environment.split(|byte| *byte == 0).any(|other| other == entry);
    knows.then(|| if is_busy(process) { Remaining::Busy } else { Remaining::Asleep })
}

/// The beginning of its environment, in one read(2): between two the process may have begun another program.
fn environment(process: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MAX_ENVIRONMENT];
    let length = File::open(process.join("environ")).and_then(|mut file| file.read(&mut bytes)).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Whether a thread of this process runs, or waits for a processor or a disk (proc(5)).
fn is_busy(process: &Path) -> bool {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| fs::read(thread.path().join("stat")).ok()).any(|stat| {
        // The name of the program stands before the state, in parentheses that it may itself contain.
        let name_ends = stat.iter().rposition(|byte| *byte == b')');
        matches!(name_ends.and_then(|end| stat.get(end + 2)), Some(b'R' | b'D'))
    })
}

/// As much of an environment is looked at, in bytes; what execve(2) takes with usual settings is 2 MiB, arguments too.
const MAX_ENVIRONMENT: usize = 256 << 10;

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

    /// What they do, once that is clear: processes of other tests begin programs, too.
    fn seen(display: &str) -> Remaining {
        let mut looks = std::iter::repeat_with(|| remaining(OsStr::new(display)));
        looks.find(|seen| *seen != Remaining::Unclear).expect("it has no end")
    }

    #[test]
    fn a_process_is_known_by_its_display_and_forgotten_with_its_end() {
        let display = format!("remaining-{}", std::process::id());
        assert_eq!(seen(&display), Remaining::Gone);
        let mut child = start(&display, &["cat"]);
        assert_ne!(seen(&display), Remaining::Gone);
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert_eq!(seen(&display), Remaining::Gone);
    }

    #[test]
    fn one_that_computes_is_told_from_one_that_waits() {
        let display = format!("busy-{}", std::process::id());
        // One that has read a line waits for the next.
        let mut waiting = start(&display, &["cat"]);
        std::io::Write::write_all(&mut waiting.stdin.as_ref().expect("a pipe"), b"x").expect("it reads");
        Read::read_exact(waiting.stdout.as_mut().expect("a pipe"), &mut [0]).expect("it writes");
        let asleep = || (0..1000).any(|_| remaining(OsStr::new(&display)) == Remaining::Asleep);
        assert!(asleep(), "it waits for its input");
        let computing = start(&display, &["sh", "-c", "while :; do :; done"]);
        assert!((0..1000).any(|_| remaining(OsStr::new(&display)) == Remaining::Busy), "it computes");
        for mut child in [computing, waiting] {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
    }

    #[test]
    fn regression_a_process_that_begins_another_program_is_there() {
        let display = format!("exec-{}", std::process::id());
        let again = r#"exec sh -c "$0" "$0""#;
        let mut child = start(&display, &["sh", "-c", again, again]);
        let gone = (0..1000).filter(|_| remaining(OsStr::new(&display)) == Remaining::Gone).count();
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!(gone, 0, "of 1000 looks");
    }
}
