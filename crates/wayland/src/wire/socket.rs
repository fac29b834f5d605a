//! The only I/O of the wire format: one non-blocking Unix stream socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::{Error, InBuffer, MAX_FDS_PER_SEND, MAX_MESSAGE_LEN, OutBuffer};

/// A Wayland peer's socket. Never blocks; poll it through [`AsFd`].
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// Something was added to the buffer; there may be more.
    Progress,
    /// Nothing to read now, or no room in the buffer before its messages are taken.
    WouldBlock,
    /// The peer has closed the connection; what it sent before is in the buffer.
    Closed,
}

impl Socket {
    /// Takes over a connected stream socket and makes it non-blocking.
    ///
    /// # Errors
    /// If the descriptor refuses to become non-blocking.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&fd, true)?;
        Ok(Self(fd))
    }

    /// Reads once into `buffer`.
    ///
    /// # Errors
    /// Any I/O error but an interruption, and `InvalidData` with an [`Error`] inside when the peer sent more
    /// descriptors than it may; all received descriptors are closed then, and so should be the connection.
    pub fn read_into(&self, buffer: &mut InBuffer) -> io::Result<ReadState> {
        if !buffer.has_room() {
            return Ok(ReadState::WouldBlock);
        }
        let mut bytes = [0; MAX_MESSAGE_LEN];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS_PER_SEND))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let slices = &mut [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, slices, &mut control, RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(ReadState::WouldBlock),
                Err(Errno::CONNRESET) => return Ok(ReadState::Closed),
                result => break result?,
            }
        };
        let fds: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        // The space is a little larger than what it is asked for.
        if received.flags.contains(ReturnFlags::CTRUNC) || fds.len() > MAX_FDS_PER_SEND {
            return Err(invalid(Error::TooManyFds { limit: MAX_FDS_PER_SEND }));
        }
        if received.bytes == 0 {
            return Ok(ReadState::Closed);
        }
        buffer.push(&bytes[..received.bytes], fds).map_err(invalid)?;
        Ok(ReadState::Progress)
    }

    /// Writes as much of `buffer` as the socket takes; returns whether it is empty now.
    ///
    /// # Errors
    /// Any I/O error but an interruption. After `BrokenPipe` there may still be something to read, such as
    /// the peer's last `wl_display.error`.
    pub fn flush(&self, buffer: &mut OutBuffer) -> io::Result<bool> {
        while !buffer.is_empty() {
            let (bytes, fds) = buffer.front();
            match self.send(&bytes, &fds) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                result => {
                    let (sent, fds) = (result?, fds.len());
                    buffer.advance(sent, fds);
                }
            }
        }
        Ok(true)
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS_PER_SEND))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let fits = control.push(SendAncillaryMessage::ScmRights(fds));
            debug_assert!(fits, "`OutBuffer::front` hands out at most {MAX_FDS_PER_SEND}");
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
