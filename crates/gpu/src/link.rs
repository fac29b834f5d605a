//! The socket between a session and its reader.
//!
//! Of type SOCK_SEQPACKET: packets are whole, and their descriptors come with them. Invariant: a descriptor that comes
//! with a packet that is refused is closed.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::wire::{MAX_FDS, MAX_PACKET};

/// One end. Waits or not as its descriptor does.
#[derive(Debug)]
pub struct Link(OwnedFd);

/// What has come.
#[derive(Debug)]
pub enum Received {
    /// A packet with its descriptors.
    Packet(Vec<u8>, Vec<OwnedFd>),
    /// Nothing yet.
    Nothing,
    /// The other end is gone.
    End,
}

impl Link {
    /// Both ends: the session's, which does not wait, and the reader's, which does.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn pair() -> Result<(Self, OwnedFd), Errno> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self(ours), theirs))
    }

    /// The reader's end.
    #[must_use]
    pub fn of(end: OwnedFd) -> Self {
        Self(end)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if there is no room now; any other if the other end is gone.
    pub fn send(&self, packet: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::TOOMANYREFS);
        }
        loop {
            match sendmsg(&self.0, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                outcome => return outcome.map(drop),
            }
        }
    }

    /// Receives the next packet. One that is cut is of no use, and the end of the connection.
    pub fn receive(&self) -> Received {
        self.receive_with(RecvFlags::empty())
    }

    /// The same, without waiting.
    pub fn receive_now(&self) -> Received {
        self.receive_with(RecvFlags::DONTWAIT)
    }

    fn receive_with(&self, flags: RecvFlags) -> Received {
        let mut packet = vec![0; MAX_PACKET];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let message = loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut packet)], &mut control, flags) {
                Ok(message) => break message,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(_) => return Received::End,
            }
        };
        let messages = control.drain();
        let fds = messages.flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let fds: Vec<OwnedFd> = fds.collect();
        if message.bytes == 0 || message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Received::End;
        }
        packet.truncate(message.bytes);
        Received::Packet(packet, fds)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_whole_and_bring_their_descriptors() {
        let (ours, theirs) = Link::pair().expect("a pair");
        let theirs = Link::of(theirs);
        assert!(matches!(ours.receive(), Received::Nothing));
        let (pipe, _other) = std::io::pipe().expect("a pipe");
        theirs.send(&[1; 9], &[pipe.as_fd(), pipe.as_fd()]).expect("room");
        theirs.send(&[2; MAX_PACKET], &[]).expect("room");
        let Received::Packet(packet, fds) = ours.receive() else { panic!("a packet") };
        assert_eq!((packet, fds.len()), (vec![1; 9], 2));
        let Received::Packet(packet, fds) = ours.receive() else { panic!("a packet") };
        assert_eq!((packet.len(), fds.len()), (MAX_PACKET, 0));
        drop(theirs);
        assert!(matches!(ours.receive(), Received::End));
    }

    #[test]
    fn a_packet_that_is_cut_is_the_end() {
        let (ours, theirs) = Link::pair().expect("a pair");
        Link::of(theirs).send(&[2; MAX_PACKET + 1], &[]).expect("room");
        assert!(matches!(ours.receive(), Received::End));
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let (ours, _theirs) = Link::pair().expect("a pair");
        let full = (0..10_000).find_map(|_| ours.send(&[0; 1000], &[]).err());
        assert_eq!(full, Some(Errno::AGAIN));
    }
}
