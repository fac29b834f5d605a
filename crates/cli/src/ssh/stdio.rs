//! The user's stdin, stdout and stderr, where ssh's own carry more than the command's.
//!
//! They may block, and other processes may have them, so each is left to a thread, behind a pipe. Invariant: nothing is
//! read of the user's stdin while ssh may be asking there.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::SSH_PATIENCE;
use crate::error::Error;
use crate::pass_on::{copy, output, system};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::trunk::Trunk;

/// Where what the program writes goes.
pub(super) struct Output {
    ends: [OwnedFd; 2],
    /// Readable when all of it has been written.
    over: [UnixStream; 2],
}

impl Output {
    /// Starts the threads that write it.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(super) fn new() -> Result<Self, Error> {
        let (from_stdout, stdout) = pipe()?;
        let (from_stderr, stderr) = pipe()?;
        let over = [output(from_stdout, io::stdout())?, output(from_stderr, io::stderr())?];
        Ok(Self { ends: [stdout, stderr], over })
    }

    /// The ends into which it is written.
    pub(super) fn ends(&self) -> io::Result<[OwnedFd; 2]> {
        let [stdout, stderr] = &self.ends;
        Ok([stdout.try_clone()?, stderr.try_clone()?])
    }

    /// ssh has ended: waits a moment until all has been written.
    pub(super) fn finish(self, signals: &Signals) {
        drop(self.ends);
        for over in &self.over {
            // A user who has enough says so by a signal.
            let _ = signals.wait_readable(&[over.as_fd()], Some(SSH_PATIENCE));
        }
    }
}

/// Gives the program the user's stdin, now that ssh asks nothing any more.
///
/// # Errors
/// The system has no thread or descriptor left.
pub(super) fn feed(trunk: &Trunk) -> Result<(), Error> {
    let (read, write) = pipe()?;
    trunk.read_stdin(read);
    // A thread that waits in `read` ends with the process.
    copy(Stdin, File::from(write)).map(drop)
}

/// The user's stdin. It is not read in the background: there a terminal stops its reader, and the windows with it.
struct Stdin;

impl Read for Stdin {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        loop {
            poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None)?;
            if !is_in_background(&stdin) {
                return Ok(rustix::io::read(&stdin, &mut *piece)?);
            }
            std::thread::sleep(BACKGROUND);
        }
    }
}

/// Whether this terminal is another job's. What is no terminal of ours is not.
fn is_in_background(stdin: &io::Stdin) -> bool {
    rustix::termios::tcgetpgrp(stdin).is_ok_and(|job| job != rustix::process::getpgrp())
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    let pipe = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from);
    Ok(pipe.map_err(system("making a pipe"))?)
}

/// How often a job in the background looks whether it still is.
const BACKGROUND: Duration = Duration::from_millis(500);
