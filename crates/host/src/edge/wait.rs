//! One poll(2) over everything that a run loop waits for.
//!
//! Descriptors are listed before it and looked up after it, so nothing stays borrowed. A descriptor that was closed
//! meanwhile, and whose number is another's now, makes that one look ready: so all are read without blocking.
//! Invariant: a descriptor that is not listed is never ready.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use wayferry_proto::Time;

use crate::clock::earlier;
use crate::error::Error;

/// Descriptors with what to wait for, and until when.
#[derive(Debug, Default)]
pub struct Interests<'a> {
    set: Vec<PollFd<'a>>,
    deadline: Option<Time>,
}

impl<'a> Interests<'a> {
    /// Waits for input of `fd`.
    pub fn read(&mut self, fd: &'a impl AsFd) {
        self.add(fd, PollFlags::IN);
    }

    /// Waits for `fd`; errors and hang-ups are reported even when `flags` is empty.
    pub fn add(&mut self, fd: &'a impl AsFd, flags: PollFlags) {
        self.add_borrowed(fd.as_fd(), flags);
    }

    /// The same.
    pub fn add_borrowed(&mut self, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.set.push(PollFd::from_borrowed_fd(fd, flags));
    }

    /// Waits no longer than to this time, if any.
    pub fn until(&mut self, at: Option<Time>) {
        self.deadline = earlier(self.deadline, at);
    }

    /// What is polled.
    #[cfg(test)]
    pub fn polled(&mut self) -> impl Iterator<Item = &mut PollFd<'a>> {
        self.set.iter_mut()
    }

    /// Waits until something is ready, or the earliest of the times has come.
    ///
    /// # Errors
    /// poll(2) fails.
    pub fn wait(mut self, now: Time) -> Result<Ready, Error> {
        // Rounded up: waking a little early would only mean another turn for nothing.
        let timeout = self
            .deadline
            .map(|at| if at <= now { Duration::ZERO } else { (at - now) + Duration::from_micros(50) });
        poll(&mut self.set, timeout)?;
        let mut ready = Ready::default();
        for fd in self.set.iter().filter(|fd| !fd.revents().is_empty()) {
            *ready.0.entry(fd.as_fd().as_raw_fd()).or_insert(PollFlags::empty()) |= fd.revents();
        }
        Ok(ready)
    }
}

/// What is ready.
#[derive(Debug, Default)]
pub struct Ready(HashMap<RawFd, PollFlags>);

impl Ready {
    /// Whether something is to be read, or has gone wrong.
    pub fn has(&self, fd: &impl AsFd) -> bool {
        !self.flags(fd.as_fd()).is_empty()
    }

    /// What poll(2) said of a descriptor.
    pub fn flags(&self, fd: BorrowedFd<'_>) -> PollFlags {
        self.0.get(&fd.as_raw_fd()).copied().unwrap_or(PollFlags::empty())
    }
}

/// Waits for the descriptors; an interruption counts as a wake-up for nothing.
pub fn poll(set: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<(), Error> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match rustix::event::poll(set, timeout.as_ref()) {
        Ok(_) => Ok(()),
        Err(Errno::INTR) => {
            set.iter_mut().for_each(PollFd::clear_revents);
            Ok(())
        }
        Err(error) => Err(Error::System { doing: "poll", source: error.into() }),
    }
}
