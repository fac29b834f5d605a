//! A wake-up that poll(2) understands: one eventfd, or a pair of sockets where the system has none.
//!
//! Any thread may raise it, one thread polls and lowers it. It carries no count and no reason: the thread that is woken
//! looks at everything that could have happened.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Non-blocking and close-on-exec.
#[derive(Debug)]
pub(crate) struct Wake(Signal);

impl Wake {
    /// Fails only when the process has no file descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        Signal::new().map(Self)
    }

    /// Makes the fd readable. When it is as full as it can be (EAGAIN) it already is.
    pub(crate) fn raise(&self) {
        self.0.raise();
    }

    /// Makes the fd unreadable until the next [`Wake::raise`]. EAGAIN means that it already is.
    pub(crate) fn lower(&self) {
        self.0.lower();
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(target_os = "linux")]
use linux::Signal;
#[cfg(not(target_os = "linux"))]
use sockets::Signal;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::event::{EventfdFlags, eventfd};

    #[derive(Debug)]
    pub(super) struct Signal(OwnedFd);

    impl Signal {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
        }

        pub(super) fn raise(&self) {
            let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
        }

        pub(super) fn lower(&self) {
            let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
        }
    }

    impl AsFd for Signal {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

/// What is built elsewhere is tested here, too.
#[cfg(any(test, not(target_os = "linux")))]
mod sockets {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixStream;

    #[derive(Debug)]
    pub(super) struct Signal {
        raised: UnixStream,
        seen: UnixStream,
    }

    impl Signal {
        pub(super) fn new() -> io::Result<Self> {
            let (raised, seen) = UnixStream::pair()?;
            raised.set_nonblocking(true)?;
            seen.set_nonblocking(true)?;
            Ok(Self { raised, seen })
        }

        pub(super) fn raise(&self) {
            let _ = (&self.raised).write(&[1]);
        }

        pub(super) fn lower(&self) {
            // As many as were raised since; a raise meanwhile may be among them, and is looked at after this.
            while (&self.seen).read(&mut [0; 64]).is_ok_and(|count| count == 64) {}
        }
    }

    impl AsFd for Signal {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.seen.as_fd()
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_raised(fd: &impl AsFd) -> bool {
        poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&Timespec::default())).expect("a poll") == 1
    }

    #[test]
    fn a_pair_of_sockets_does_what_an_eventfd_does() {
        let (wake, pair) = (Wake::new().expect("an fd"), sockets::Signal::new().expect("two"));
        for raises in [0, 1, 63, 64, 65, 100_000] {
            (0..raises).for_each(|_| {
                wake.raise();
                pair.raise();
            });
            assert_eq!((is_raised(&wake), is_raised(&pair)), (raises > 0, raises > 0), "{raises}");
            wake.lower();
            pair.lower();
            assert_eq!((is_raised(&wake), is_raised(&pair)), (false, false), "{raises}");
        }
    }
}
