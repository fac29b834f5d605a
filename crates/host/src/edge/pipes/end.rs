//! A descriptor that a program has handed over, and how to use it without ever waiting.
//!
//! It knows no pipes. Invariant: no call here waits, no matter what the program does to its own descriptor.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use wayferry_wayland::fuse;

/// A descriptor and how to use it without ever waiting.
#[derive(Debug)]
pub(super) struct End {
    pub(super) fd: OwnedFd,
    pub(super) kind: EndKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndKind {
    /// Opened anew without waiting: what the program does to its own descriptor never makes ours block.
    Fifo,
    /// Read and written with MSG_DONTWAIT.
    Socket,
    /// Terminal, file or device: after poll(2), a few bytes at a time.
    Other,
    /// It has no reader, or could block: not touched.
    Refused,
}

impl End {
    /// A FIFO gets an open file description of our own: the program shares the other and may make it block again.
    pub(super) fn new(fd: OwnedFd) -> Self {
        match fuse::file_type(&fd) {
            Ok(FileType::Fifo) => match reopened(&fd) {
                Ok(own) => Self { fd: own, kind: EndKind::Fifo },
                // No reader is left.
                Err(Errno::NXIO) => Self { fd, kind: EndKind::Refused },
                Err(_) => Self { fd, kind: EndKind::Other },
            },
            Ok(FileType::Socket) => Self { fd, kind: EndKind::Socket },
            // An eventfd and its kin block on some values in spite of poll.
            Ok(FileType::Unknown) | Err(_) => Self { fd, kind: EndKind::Refused },
            // poll(2) calls each regular file ready; one of FUSE is when a program says so, which may be never.
            Ok(_) if fuse::may_wait(&fd) => Self::without(fd),
            Ok(_) => Self { fd, kind: EndKind::Other },
        }
    }

    /// In place of a file that is not touched, such as one of FUSE.
    fn without(fd: OwnedFd) -> Self {
        match rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(nothing) => {
                fuse::close(fd);
                Self { fd: nothing, kind: EndKind::Refused }
            }
            Err(_) => Self { fd, kind: EndKind::Refused },
        }
    }

    pub(super) fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Socket => {
                rustix::net::recv(&self.fd, bytes, RecvFlags::DONTWAIT).map(|(count, _)| count)
            }
            EndKind::Fifo | EndKind::Other => rustix::io::read(&self.fd, bytes),
            EndKind::Refused => Err(Errno::INVAL),
        }
    }

    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            EndKind::Fifo => rustix::io::write(&self.fd, bytes),
            EndKind::Refused => Err(Errno::PIPE),
            EndKind::Socket => rustix::net::send(&self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            EndKind::Other => {
                let ready = &mut [rustix::event::PollFd::new(&self.fd, PollFlags::OUT)];
                rustix::event::poll(ready, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))?;
                match ready[0].revents() {
                    flags if flags.contains(PollFlags::OUT) => {
                        rustix::io::write(&self.fd, &bytes[..bytes.len().min(CAREFUL_PIECE)])
                    }
                    flags if flags.is_empty() => Err(Errno::AGAIN),
                    _ => Err(Errno::PIPE),
                }
            }
        }
    }
}

/// The same FIFO, opened anew and without waiting.
fn reopened(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let access = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

/// Bytes written at once where a write could wait: a terminal is writable when at least this much fits.
const CAREFUL_PIECE: usize = 256;
