//! Signals as something that poll(2) sees.
//!
//! SIGINT, SIGTERM and SIGHUP are turned into a readable descriptor, so that the run loop ends in its own order and
//! everything it made is removed. Invariant: after [`Signals::new`] none of them kills the process by itself.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use wayferry_proto::Time;

use super::part::{Hub, Part};
use super::wait::{Interests, Ready};
use crate::error::Error;

/// The receiving end. Once it is dropped, the signals are ignored.
pub struct Signals {
    read: UnixStream,
    last: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Starts to catch the signals.
    pub fn new() -> Result<Self, Error> {
        let fail = |source| Error::System { doing: "catching signals", source };
        let (read, write) = UnixStream::pair().map_err(fail)?;
        let last = Arc::new(AtomicUsize::new(0));
        let mut handlers = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The flag first: handlers run in the order of registration, and the pipe wakes the reader of the flag.
            let value = usize::try_from(signal).unwrap_or(0);
            handlers.push(signal_hook::flag::register_usize(signal, Arc::clone(&last), value).map_err(fail)?);
            let write = write.try_clone().map_err(fail)?;
            handlers.push(signal_hook::low_level::pipe::register(signal, write).map_err(fail)?);
        }
        // A write beyond the user's limit of file sizes (ulimit -f) is an error, and no end.
        handlers.push(signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(fail)?);
        Ok(Self { read, last, handlers })
    }

    /// The signal that arrived, if one did.
    pub fn caught(&self) -> Option<i32> {
        match self.last.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }

    /// Ends by error when a signal arrived.
    pub fn check(&self) -> Result<(), Error> {
        self.caught().map_or(Ok(()), |signal| Err(Error::Signal(signal)))
    }

    /// Waits until `fd` is readable, a signal arrives or `timeout` is over; says whether `fd` is readable.
    pub fn wait_readable(
        &self,
        fds: &[BorrowedFd<'_>],
        timeout: Option<std::time::Duration>,
    ) -> Result<Vec<bool>, Error> {
        let mut set: Vec<_> = fds
            .iter()
            .chain([&self.as_fd()])
            .map(|fd| rustix::event::PollFd::from_borrowed_fd(*fd, rustix::event::PollFlags::IN))
            .collect();
        crate::edge::wait::poll(&mut set, timeout)?;
        self.check()?;
        Ok(set[..fds.len()].iter().map(|fd| !fd.revents().is_empty()).collect())
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

impl Part for &Signals {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(*self);
    }

    fn turn(&mut self, _now: Time, _hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        self.check()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_makes_the_descriptor_readable_and_is_named() {
        let signals = Signals::new().expect("handlers");
        assert_eq!(signals.caught(), None);
        signal_hook::low_level::raise(SIGHUP).expect("raise");
        let waited = signals.wait_readable(&[], None);
        assert!(matches!(waited, Err(Error::Signal(SIGHUP))), "{waited:?}");
    }
}
