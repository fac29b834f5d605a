//! Descriptors that travel over a Unix socket beside bytes.
//!
//! Invariant: received descriptors are closed on exec, and one call receives at most [`MAX_PASSED`].

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Descriptors that can be passed at once.
pub const MAX_PASSED: usize = 8;

/// Sends `bytes`, at least one, with descriptors attached to the first.
///
/// # Errors
/// The socket takes nothing, or not all of it.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    match sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)? {
        sent if sent == bytes.len() => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// Receives what is there: appends bytes and descriptors; `false` at the end of the stream.
///
/// # Errors
/// `WouldBlock` when nothing is there and the socket does not wait.
pub fn receive(socket: impl AsFd, bytes: &mut Vec<u8>, fds: &mut Vec<OwnedFd>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_PASSED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let slices = &mut [IoSliceMut::new(&mut piece)];
        match recvmsg(&socket, slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(false),
            result => break result?,
        }
    };
    let passed = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(passed) => Some(passed),
        _ => None,
    });
    fds.extend(passed.flatten());
    bytes.extend_from_slice(&piece[..received.bytes]);
    Ok(received.bytes > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_bytes() {
        let (a, b) = UnixStream::pair().expect("a pair");
        let (mut kept, passed) = UnixStream::pair().expect("what is passed");
        send(&a, b"take it\n", &[passed.as_fd()]).expect("sent");
        drop(passed);
        let (mut bytes, mut fds) = (Vec::new(), Vec::new());
        assert!(receive(&b, &mut bytes, &mut fds).expect("received"));
        assert_eq!((bytes.as_slice(), fds.len()), (&b"take it\n"[..], 1));
        let mut arrived = UnixStream::from(fds.remove(0));
        arrived.write_all(b"x").expect("it is open");
        drop(arrived);
        let mut text = String::new();
        kept.read_to_string(&mut text).expect("its end");
        assert_eq!(text, "x");
        drop(a);
        assert!(!receive(&b, &mut bytes, &mut fds).expect("the end"));
    }
}
