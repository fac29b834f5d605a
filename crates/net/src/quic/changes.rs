//! What Linux tells of links, addresses and routes (rtnetlink(7)).
//!
//! Only that it tells something is looked at: the truth is in the routes themselves, and a message may be lost.
//! Invariant: what came is taken, so that the socket does not stay readable.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

/// A socket that tells them.
pub(super) struct Changes(AsyncFd<OwnedFd>);

impl Changes {
    /// Call inside the runtime. Fails where the system has no rtnetlink for this process.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // NETLINK_ROUTE is the protocol number 0, of which rustix makes none.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        #[allow(
            deprecated,
            reason = "sound for an `OwnedFd`, which closes when it is dropped and not before"
        )]
        let socket = AsyncFd::new(socket)?;
        Ok(Self(socket))
    }

    /// Waits for a change, then for what comes with it: an address is told before its route is.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        let mut ready = self.0.readable().await?;
        sleep(SETTLE).await;
        let mut buffer = [0; 4096];
        for _ in 0..MESSAGES_MAX {
            match recv(self.0.get_ref(), &mut buffer[..], RecvFlags::empty()) {
                // Too many at once: some were lost, which is a change all the same.
                Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    ready.clear_ready();
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE of rtnetlink(7). Links are
/// among them because the routes that go with one are not told.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Between the first message of a change and a look at what became of it.
const SETTLE: Duration = Duration::from_millis(10);

/// Messages taken in one turn, so that a storm of them keeps no other task from the thread.
const MESSAGES_MAX: usize = 256;
