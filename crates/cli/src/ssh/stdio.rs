//! The user's stdin, stdout and stderr, where ssh's own carry more than the command's.
//!
//! They may block, and other processes may have them, so each is left to a thread, behind a pipe. Invariant: nothing is
//! read of the user's stdin while ssh may be asking there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::SSH_PATIENCE;
use crate::error::Error;
use crate::pass_on::{Patient, copy, system};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::trunk::Trunk;

/// Where what the program writes goes.
pub(super) struct Output {
    ends: [OwnedFd; 2],
    /// Readable when all of it has been written, or has no reader any more.
    over: [UnixStream; 2],
    beats: [Beat; 2],
}

/// How often writing has begun and ended: odd while it goes on.
#[derive(Clone, Default)]
struct Beat(Arc<AtomicU64>);

impl Beat {
    fn strike(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether more has been written since the count was `since`, or a reader is waited for.
    fn goes_on(&self, since: u64) -> bool {
        let now = self.count();
        now != since || now % 2 == 1
    }
}

/// Writes with a beat.
struct Beating<W>(W, Beat);

impl<W: Write> Write for Beating<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.strike();
        let written = self.0.write(bytes);
        self.1.strike();
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Output {
    /// Starts the threads that write it.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub(super) fn new() -> Result<Self, Error> {
        let (from_stdout, stdout) = pipe()?;
        let (from_stderr, stderr) = pipe()?;
        let beats: [Beat; 2] = Default::default();
        let [out, err] = beats.clone();
        // Without a reader the pipe breaks, which the other machine is told.
        let over = [
            copy(File::from(from_stdout), Beating(Patient::of(io::stdout())?, out))?,
            copy(File::from(from_stderr), Beating(Patient::of(io::stderr())?, err))?,
        ];
        Ok(Self { ends: [stdout, stderr], over, beats })
    }

    /// What has been written by now, for [`Output::goes_on`].
    pub(super) fn beat(&self) -> [u64; 2] {
        self.beats.each_ref().map(Beat::count)
    }

    /// Whether more has been written since, or a reader is waited for.
    pub(super) fn goes_on(&self, since: [u64; 2]) -> bool {
        self.beats.iter().zip(since).any(|(beat, since)| beat.goes_on(since))
    }

    /// The ends into which it is written.
    pub(super) fn ends(&self) -> io::Result<[OwnedFd; 2]> {
        let [stdout, stderr] = &self.ends;
        Ok([stdout.try_clone()?, stderr.try_clone()?])
    }

    /// ssh has ended: waits until all has been written. A user who has enough says so by a signal.
    pub(super) fn finish(self, signals: &Signals) {
        let Self { ends, over, beats } = self;
        drop(ends);
        for (over, beat) in over.iter().zip(&beats) {
            loop {
                let before = beat.count();
                match signals.wait_readable(&[over.as_fd()], Some(SSH_PATIENCE)) {
                    Ok(is_over) if is_over[0] => break,
                    Ok(_) if beat.goes_on(before) => {}
                    _ => break,
                }
            }
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
