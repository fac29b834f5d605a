//! What a session's program writes, on its way to the launcher that started the session.
//!
//! The program has pipes of the session's own for its stdin, stdout and stderr, and so outlives the terminal or the ssh
//! behind them. The launcher copies the output; once it is gone, the output is discarded here, so that the program
//! neither blocks nor gets SIGPIPE for want of a reader. Invariant: nothing is read here while the launcher may read.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use wayferry_proto::Time;

use super::part::{Hub, Part};
use super::wait::{Interests, Ready};
use crate::error::Error;

/// The program's ends of its pipes: stdin, stdout and stderr.
pub type Stdio = [OwnedFd; 3];

/// The session's ends of stdout and stderr.
#[derive(Debug)]
pub struct Outlets {
    ends: Vec<OwnedFd>,
    drains: bool,
}

impl Outlets {
    /// New pipes: for the program, for the launcher, and what is kept here.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<(Stdio, Stdio, Self)> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let ((stdin_read, stdin_write), (stdout_read, stdout_write), (stderr_read, stderr_write)) =
            (pipe()?, pipe()?, pipe()?);
        let ends = vec![stdout_read.try_clone()?, stderr_read.try_clone()?];
        Ok((
            [stdin_read, stdout_write, stderr_write],
            [stdin_write, stdout_read, stderr_read],
            Self { ends, drains: false },
        ))
    }

    /// The launcher reads no more.
    pub fn drain(&mut self) {
        self.drains = true;
    }

    /// What is read here, once there is no other reader.
    fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ends.iter().filter(|_| self.drains).map(AsFd::as_fd)
    }

    /// Discards a bounded amount of one end's output; says whether more may come. O_NONBLOCK is not set, as the program
    /// shares the pipe.
    fn throw_away(end: &OwnedFd) -> bool {
        match rustix::io::read(end, &mut [0u8; PIECE]) {
            Ok(0) => false,
            Ok(_) | Err(Errno::INTR) => true,
            Err(_) => false,
        }
    }
}

impl Part for Outlets {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        self.fds().for_each(|fd| interests.add_borrowed(fd, PollFlags::IN));
    }

    fn turn(&mut self, _now: Time, _hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        if self.drains {
            self.ends.retain(|end| !ready.has(end) || !is_readable(end) || Self::throw_away(end));
        }
        Ok(())
    }
}

/// Whether a read does not block; polled anew, because the number may have been another descriptor's at the last poll.
fn is_readable(end: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(end, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)) == Ok(1)
}

/// Bytes of a read: what a pipe holds.
const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use super::super::part::alone;
    use super::*;

    #[test]
    fn what_nobody_reads_is_thrown_away_and_the_writer_lives() {
        let (program, owner, mut outlets) = Outlets::new().expect("pipes");
        let (mut hub, _) = alone::base();
        let mut turn = |outlets: &mut Outlets| alone::turn(outlets, Time::ZERO, &mut hub);
        let [_, stdout, _] = program.map(File::from);
        let mut writer = stdout;
        writer.write_all(b"first").expect("room");
        assert_eq!(turn(&mut outlets), 0, "somebody else reads");
        let [_, mut read, _] = owner.map(File::from);
        let mut bytes = [0; 5];
        read.read_exact(&mut bytes).expect("it was left to the owner");
        drop(read);
        outlets.drain();
        for _ in 0..4 {
            writer.write_all(&[7; PIECE]).expect("without a reader, and yet it is no broken pipe");
            turn(&mut outlets);
        }
        assert_eq!(turn(&mut outlets), 1, "the other writers are gone");
        drop(writer);
        assert_eq!(turn(&mut outlets), 0);
    }
}
