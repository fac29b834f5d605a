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

use rustix::process::Pid;

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

/// Looks for processes that were started with this `WAYLAND_DISPLAY`. Those of the group `servers`, which a bus has
/// started, count only while they run: they wait for ever to be asked for something. Those of the groups that are
/// `known` never do.
pub(crate) fn remaining(display: &OsStr, servers: Option<Pid>, known: &[Pid]) -> Remaining {
    let entry = [b"WAYLAND_DISPLAY=", display.as_bytes()].concat();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
    processes.filter_map(|process| state(&process, &entry, servers, known)).max().unwrap_or(Remaining::Gone)
}

/// What the process of this directory does, if its environment has this entry, or may have it.
fn state(process: &Path, entry: &[u8], servers: Option<Pid>, known: &[Pid]) -> Option<Remaining> {
    let environment = environment(process)?;
    if environment.is_empty() {
        // So it looks for a moment in execve(2); and always, where a program was given none. A thread of the kernel
        // runs no file.
        return (is_busy(process) && process.join("exe").read_link().is_ok()).then_some(Remaining::Unclear);
    }
    let knows = environment.split(|byte| *byte == 0).any(|other| other == entry);
    let group = group(process);
    let counts = knows && !group.is_some_and(|group| known.contains(&group));
    match (counts, is_busy(process)) {
        (false, _) => None,
        (true, true) => Some(Remaining::Busy),
        (true, false) if servers.is_some() && group == servers => None,
        (true, false) => Some(Remaining::Asleep),
    }
}

/// The beginning of its environment, in one read(2): between two the process may have begun another program.
fn environment(process: &Path) -> Option<Vec<u8>> {
    let mut bytes = vec![0; MAX_ENVIRONMENT];
    let length = File::open(process.join("environ")).and_then(|mut file| file.read(&mut bytes)).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

/// Whether every thread of this process waits for something to do.
pub(super) fn is_at_rest(process: Pid) -> bool {
    !is_busy(Path::new(&format!("/proc/{}", process.as_raw_nonzero())))
}

/// Whether a thread of this process runs, or waits for a processor or a disk (proc(5)).
fn is_busy(process: &Path) -> bool {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| stat(&thread.path()))
        .any(|stat| matches!(stat.as_bytes().first(), Some(b'R' | b'D')))
}

/// Its process group.
fn group(process: &Path) -> Option<Pid> {
    Pid::from_raw(stat(process)?.split(' ').nth(2)?.parse().ok()?)
}

/// What the kernel says of a process or a thread, from its state on.
fn stat(of: &Path) -> Option<String> {
    let stat = fs::read(of.join("stat")).ok()?;
    // The name of the program stands before that, in parentheses that it may itself contain.
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    Some(String::from_utf8_lossy(stat.get(name_ends + 2..)?).into_owned())
}

/// As much of an environment is looked at, in bytes; what execve(2) takes with usual settings is 2 MiB, arguments too.
const MAX_ENVIRONMENT: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
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
        let mut looks = std::iter::repeat_with(|| remaining(OsStr::new(display), None, &[]));
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
    fn what_serves_the_others_does_not_count() {
        use std::os::unix::process::CommandExt;
        let display = format!("known-{}", std::process::id());
        let mut command = Command::new("cat");
        let command = command.env("WAYLAND_DISPLAY", &display).stdin(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("it starts");
        let known = [Pid::from_child(&child)];
        let looks = || (0..1000).map(|_| remaining(OsStr::new(&display), None, &known));
        assert_ne!(seen(&display), Remaining::Gone);
        assert!(looks().all(|seen| seen <= Remaining::Unclear), "it is in a known group");
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }

    #[test]
    fn one_that_computes_is_told_from_one_that_waits() {
        let display = format!("busy-{}", std::process::id());
        // One that has read a line waits for the next.
        let mut waiting = start(&display, &["cat"]);
        std::io::Write::write_all(&mut waiting.stdin.as_ref().expect("a pipe"), b"x").expect("it reads");
        Read::read_exact(waiting.stdout.as_mut().expect("a pipe"), &mut [0]).expect("it writes");
        let asleep = || (0..1000).any(|_| remaining(OsStr::new(&display), None, &[]) == Remaining::Asleep);
        assert!(asleep(), "it waits for its input");
        assert!((0..1000).any(|_| is_at_rest(Pid::from_child(&waiting))));
        let computing = start(&display, &["sh", "-c", "while :; do :; done"]);
        assert!(
            (0..1000).any(|_| remaining(OsStr::new(&display), None, &[]) == Remaining::Busy),
            "it computes"
        );
        assert!((0..1000).any(|_| !is_at_rest(Pid::from_child(&computing))));
        for mut child in [computing, waiting] {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
    }

    #[test]
    fn servers_that_a_bus_has_started_count_only_while_they_run() {
        let display = format!("servers-{}", std::process::id());
        let start = |line: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", line])
                .env("WAYLAND_DISPLAY", &display)
                .stdin(Stdio::piped())
                .process_group(0);
            command.spawn().expect("it starts")
        };
        let (mut waiting, mut computing) = (start("read line"), start("while :; do :; done"));
        let [server, other] = [&waiting, &computing].map(|child| Some(Pid::from_child(child)));
        let look = |servers| remaining(OsStr::new(&display), servers, &[]);
        assert!((0..1000).any(|_| look(server) == Remaining::Busy), "another computes");
        assert!((0..1000).any(|_| look(other) == Remaining::Busy), "a server that computes");
        computing.kill().and_then(|()| computing.wait()).expect("it ends");
        assert!((0..1000).any(|_| look(other) == Remaining::Asleep), "no server waits");
        assert!((0..1000).any(|_| look(server) == Remaining::Gone), "a server waits");
        waiting.kill().and_then(|()| waiting.wait()).expect("it ends");
    }

    #[test]
    fn regression_a_process_that_begins_another_program_is_there() {
        let display = format!("exec-{}", std::process::id());
        let again = r#"exec sh -c "$0" "$0""#;
        let mut child = start(&display, &["sh", "-c", again, again]);
        let gone =
            (0..1000).filter(|_| remaining(OsStr::new(&display), None, &[]) == Remaining::Gone).count();
        child.kill().and_then(|()| child.wait()).expect("it ends");
        assert_eq!(gone, 0, "of 1000 looks");
    }
}
