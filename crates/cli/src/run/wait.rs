//! One poll(2) over everything that a run loop waits for.
//!
//! The caller lists descriptors with a token each; what is ready comes back by token, so that nothing stays borrowed.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use wayferry_proto::Time;

use crate::run::Error;

/// Descriptors with what to wait for, and whose they are.
#[derive(Debug)]
pub(crate) struct Interests<'a, T> {
    set: Vec<PollFd<'a>>,
    tokens: Vec<T>,
}

impl<'a, T: Copy> Interests<'a, T> {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { set: Vec::new(), tokens: Vec::new() }
    }

    /// Waits for `fd` too; errors and hang-ups are reported even when `flags` is empty.
    pub(crate) fn add(&mut self, fd: BorrowedFd<'a>, flags: PollFlags, token: T) {
        self.set.push(PollFd::from_borrowed_fd(fd, flags));
        self.tokens.push(token);
    }

    /// Waits until something is ready or `deadline`, the earliest of the cores' timeouts, has come.
    pub(crate) fn wait(mut self, now: Time, deadline: Option<Time>) -> Result<Vec<(T, PollFlags)>, Error> {
        // Rounded up: waking a little early would only mean another turn for nothing.
        let timeout = deadline
            .map(|at| if at <= now { Duration::ZERO } else { (at - now) + Duration::from_micros(50) });
        super::poll(&mut self.set, timeout)?;
        let ready = self.set.iter().zip(&self.tokens).map(|(fd, token)| (*token, fd.revents()));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }
}
