//! One file descriptor that is readable while one of several is.
//!
//! epoll's, on Linux. Elsewhere there is only the first of them, and no other can join it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::wake::Wake;

/// A wake-up, and what joined it.
#[derive(Debug)]
pub(crate) struct Watch(Several);

impl Watch {
    /// # Errors
    /// The process has no file descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        Several::new(Wake::new()?).map(Self)
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.0.wake
    }

    /// Has `fd` among the others until what this gives is dropped.
    ///
    /// # Errors
    /// The system cannot do that.
    pub(crate) fn join<T: AsFd>(self: &Arc<Self>, fd: T) -> io::Result<Joined<T>> {
        self.0.add(fd.as_fd())?;
        Ok(Joined { watch: Arc::clone(self), fd })
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One that joined.
#[derive(Debug)]
pub(crate) struct Joined<T: AsFd> {
    watch: Arc<Watch>,
    fd: T,
}

impl<T: AsFd> Drop for Joined<T> {
    fn drop(&mut self) {
        self.watch.0.remove(self.fd.as_fd());
    }
}

#[cfg(target_os = "linux")]
use linux::Several;
#[cfg(not(target_os = "linux"))]
use one::Several;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    use rustix::event::epoll::{CreateFlags, EventData, EventFlags, add, create, delete};

    use crate::wake::Wake;

    #[derive(Debug)]
    pub(super) struct Several {
        pub(super) wake: Wake,
        epoll: OwnedFd,
    }

    impl Several {
        pub(super) fn new(wake: Wake) -> io::Result<Self> {
            let several = Self { wake, epoll: create(CreateFlags::CLOEXEC)? };
            several.add(several.wake.as_fd())?;
            Ok(several)
        }

        pub(super) fn add(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
            Ok(add(&self.epoll, fd, EventData::new_u64(0), EventFlags::IN)?)
        }

        pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
            let _ = delete(&self.epoll, fd);
        }
    }

    impl AsFd for Several {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.epoll.as_fd()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod one {
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd};

    use crate::wake::Wake;

    #[derive(Debug)]
    pub(super) struct Several {
        pub(super) wake: Wake,
    }

    impl Several {
        pub(super) fn new(wake: Wake) -> io::Result<Self> {
            Ok(Self { wake })
        }

        pub(super) fn add(&self, _fd: BorrowedFd<'_>) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn remove(&self, _fd: BorrowedFd<'_>) {}
    }

    impl AsFd for Several {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.wake.as_fd()
        }
    }
}
