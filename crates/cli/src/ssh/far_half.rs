//! The half of a trace that is written on the other machine: brought here when the display leaves.
//!
//! It lies there in the directory where ssh runs commands: the user's home, where no other user can have put a file of
//! that name. It is removed when it has been read. Here it lies beside the half of this machine, where `wayferry trace`
//! finds it. Invariant: ssh is reaped, asks the user for nothing, and brings a bounded number of bytes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::quote;
use crate::error::SessionError;
use crate::flags::OwnFlags;
use crate::tell::notice;
use wayferry_host::edge::programs::{Place, Program, exit_code};
use wayferry_host::edge::socket::random_name;
use wayferry_host::edge::wait::poll;
use wayferry_host::trace::MAX_FILE;

/// See the module.
#[derive(Debug)]
pub(super) struct FarHalf {
    ours: PathBuf,
    there: String,
}

impl FarHalf {
    /// For a session that is to be traced. What an earlier session left beside the half here is removed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(super) fn new(own: &OwnFlags) -> Result<Option<Self>, SessionError> {
        let Some(ours) = own.side.trace.clone() else { return Ok(None) };
        let path = beside(&ours);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(SessionError::File { path, source })
            }
            _ => Ok(Some(Self { ours, there: format!(".wayferry-{}.trace", random_name()) })),
        }
    }

    /// What the session there is told.
    pub(super) fn option(&self) -> String {
        format!("--trace={}", self.there)
    }

    /// Brings it here, as far as it is written, and says how it went.
    pub(super) fn fetch(&self, own: &OwnFlags, options: &[OsString], host: &OsStr) {
        let mark = random_name();
        let mut command = Command::new(own.reach.ssh());
        command.args(["-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=5"]).args(options);
        command.arg("-T").arg("--").arg(host).arg(self.line(&mark));
        let here = beside(&self.ours);
        match bring(command, &mark, &here, PATIENCE) {
            Ok(()) => {
                notice(&format!("`wayferry trace {}` shows both halves of the trace", self.ours.display()))
            }
            Err(why) => {
                // A part of a trace could not be told from the whole.
                let _ = fs::remove_file(&here);
                let words = options.iter().map(OsString::as_os_str).chain([host]);
                let words: Vec<_> = words.map(|word| quote(&word.to_string_lossy())).collect();
                notice(&format!(
                    "the half of the trace that {} has is missing here ({why}): `ssh {} cat {} > {}` brings it",
                    host.to_string_lossy(),
                    words.join(" "),
                    self.there,
                    quote(&here.to_string_lossy())
                ));
            }
        }
    }

    /// What ssh runs: what a login prints comes before the mark.
    fn line(&self, mark: &str) -> String {
        let script = "echo \"$1\"; cat \"$2\" && rm -f \"$2\"";
        let words = ["sh", "-c", script, "wayferry", mark, &self.there];
        words.map(quote).join(" ")
    }
}

/// Where the half of the other machine lies, beside the one of this machine.
pub(crate) fn beside(ours: &Path) -> PathBuf {
    let mut path = ours.as_os_str().to_owned();
    path.push(".there");
    path.into()
}

fn bring(mut command: Command, mark: &str, here: &Path, patience: Duration) -> io::Result<()> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = child.stdout.take();
    // It is ended when this returns before its end.
    let mut ssh = Program::watch(child, Place::Foreground).map_err(io::Error::other)?;
    let copied = stdout.map_or(Ok(0), |from| copy(Patient { from, patience }, mark, here))?;
    // More than may come is not waited for.
    if copied > MAX_FILE {
        return Err(io::Error::other("it is too long"));
    }
    readable(&ssh, patience)?;
    match ssh.status() {
        Some(status) if status.success() && copied > 0 => Ok(()),
        Some(status) => Err(io::Error::other(format!("ssh ended with {}", exit_code(status)))),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Output that must not pause for longer.
struct Patient {
    from: ChildStdout,
    patience: Duration,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        readable(&self.from, self.patience)?;
        self.from.read(into)
    }
}

/// Waits until something can be read.
///
/// # Errors
/// Nothing came in this time.
fn readable(from: &impl AsFd, patience: Duration) -> io::Result<()> {
    let late = Instant::now() + patience;
    loop {
        let left = late.saturating_duration_since(Instant::now());
        let mut set = [PollFd::new(from, PollFlags::IN)];
        poll(&mut set, Some(left)).map_err(io::Error::other)?;
        if !set[0].revents().is_empty() {
            return Ok(());
        }
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing comes"));
        }
    }
}

/// Copies what follows the line with `mark`; how many bytes that were.
fn copy(stdout: Patient, mark: &str, here: &Path) -> io::Result<u64> {
    let mut output = BufReader::new(stdout.take(MAX_LOGIN));
    let mut line = Vec::new();
    while line.trim_ascii() != mark.as_bytes() {
        line.clear();
        if output.read_until(b'\n', &mut line)? == 0 {
            return Ok(0);
        }
    }
    // One byte more tells what is too long.
    output.get_mut().set_limit(MAX_FILE + 1);
    io::copy(&mut output, &mut File::create(here)?)
}

/// How long ssh and the other machine may be silent.
const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that a login may print.
const MAX_LOGIN: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_host::edge::socket::RuntimeDir;

    /// Runs what ssh would, in this directory.
    fn brought(dir: &Path, half: &FarHalf, mark: &str) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.current_dir(dir).arg("-c").arg(format!("echo Welcome; {}", half.line(mark)));
        bring(command, mark, &beside(&half.ours), PATIENCE)
    }

    #[test]
    fn it_comes_without_what_the_login_printed_and_is_gone_there() {
        let dir = RuntimeDir::private().expect("a directory");
        let half = FarHalf { ours: dir.path().join("a.trace"), there: "it's there".into() };
        fs::write(dir.path().join("it's there"), "rows\nmark\n").expect("a file");
        brought(dir.path(), &half, "mark").expect("it comes");
        assert_eq!(fs::read(dir.path().join("a.trace.there")).expect("a file"), b"rows\nmark\n");
        assert!(!dir.path().join("it's there").exists());
        brought(dir.path(), &half, "mark").expect_err("it is not there twice");
    }

    #[test]
    fn a_host_that_falls_silent_is_not_waited_for() {
        let dir = RuntimeDir::private().expect("a directory");
        for script in [
            "exec tail -f /dev/null",
            "echo mark; echo rows; exec tail -f /dev/null",
            "echo mark; echo rows; exec tail -f /dev/null >/dev/null",
        ] {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(script);
            let here = dir.path().join("here");
            let error = bring(command, "mark", &here, Duration::from_millis(50)).expect_err(script);
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}: {error}");
        }
    }

    #[test]
    fn an_old_half_does_not_stay_beside_a_new_one() {
        let dir = RuntimeDir::private().expect("a directory");
        let mut own = OwnFlags::default();
        assert!(FarHalf::new(&own).expect("nothing to do").is_none());
        own.side.trace = Some(dir.path().join("a.trace"));
        fs::write(dir.path().join("a.trace.there"), "old").expect("a file");
        let half = FarHalf::new(&own).expect("it goes").expect("a trace was asked for");
        assert!(!dir.path().join("a.trace.there").exists());
        assert!(half.option().starts_with("--trace=.wayferry-"), "{}", half.option());
    }
}
