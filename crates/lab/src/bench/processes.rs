//! `wayferry` as processes of their own, as users run it, for the benches that need whole processes.
//!
//! Invariant: a process ends, and is waited for, with its value.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::error::{Error, SessionError};
use wayferry_host::edge::socket::RuntimeDir;

/// A process that is killed and reaped.
pub(super) struct Process(Child);

impl Process {
    pub(super) fn new(child: Child) -> Self {
        Self(child)
    }

    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The host of a session, which is asked to end it: killed, it would leave its programs behind.
pub(super) struct Session(Child);

impl Session {
    pub(super) fn new(child: Child) -> Self {
        Self(child)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The program beside this one, with these words and a directory of its own.
pub(super) fn wayferry(dir: &RuntimeDir, words: &[&str]) -> Command {
    let mut command = Command::new(beside());
    command.args(words).env("TMPDIR", dir.path()).env("XDG_RUNTIME_DIR", dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The program beside this one.
pub(super) fn beside() -> PathBuf {
    let beside = std::env::current_exe().map(|itself| itself.with_file_name("wayferry"));
    beside.unwrap_or_else(|_| "wayferry".into())
}

/// What a process that is piped says first.
pub(super) fn first_line(child: &mut Child) -> Result<String, Error> {
    let out = child.stdout.take().ok_or_else(|| SessionError::Lost("no output".into()))?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(system("reading a ticket"))?;
    Ok(line.trim().to_owned())
}

pub(super) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> SessionError {
    move |source| SessionError::System { doing, source }
}
