//! UDP sockets with large buffers.
//!
//! A stall of 300 ms at 50 Mbit/s is 1.9 MB; the kernel's default of about 200 kB would lose most of it. Invariant:
//! a socket that got less than was asked for never goes unmentioned.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, sockopt};

use super::error::{Buffer, Warning};

/// Binds a non-blocking UDP socket with buffers of `buffer` bytes each way.
pub(crate) fn bind(address: SocketAddr, buffer: usize) -> io::Result<(UdpSocket, Vec<Warning>)> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = open(family)?;
    if address.is_ipv6() {
        // `[::]` takes IPv4 too; where the system forbids that, IPv6 alone is still worth having.
        let _ = sockopt::set_ipv6_v6only(&socket, false);
    }
    let warnings = enlarge(&socket, buffer)?;
    rustix::net::bind(&socket, &address)?;
    Ok((UdpSocket::from(socket), warnings))
}

#[cfg(target_os = "linux")]
fn open(family: AddressFamily) -> io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};

    Ok(socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?)
}

#[cfg(not(target_os = "linux"))]
fn open(family: AddressFamily) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(family, SocketType::DGRAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

fn enlarge(socket: &OwnedFd, wanted: usize) -> io::Result<Vec<Warning>> {
    let mut warnings = Vec::new();
    let _ = sockopt::set_socket_recv_buffer_size(socket, wanted);
    let _ = sockopt::set_socket_send_buffer_size(socket, wanted);
    force(socket, wanted)?;
    let receive = granted(sockopt::socket_recv_buffer_size(socket)?);
    let send = granted(sockopt::socket_send_buffer_size(socket)?);
    for (buffer, granted) in [(Buffer::Receive, receive), (Buffer::Send, send)] {
        if granted < wanted {
            warnings.push(Warning::BufferClamped { buffer, wanted, granted });
        }
    }
    Ok(warnings)
}

/// Forcing needs a capability; without it the limit of the sysctl holds.
#[cfg(target_os = "linux")]
fn force(socket: &OwnedFd, wanted: usize) -> io::Result<()> {
    if granted(sockopt::socket_recv_buffer_size(socket)?) < wanted {
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, wanted);
    }
    if granted(sockopt::socket_send_buffer_size(socket)?) < wanted {
        let _ = sockopt::set_socket_send_buffer_size_force(socket, wanted);
    }
    Ok(())
}

/// Elsewhere no program can.
#[cfg(not(target_os = "linux"))]
fn force(_: &OwnedFd, _: usize) -> io::Result<()> {
    Ok(())
}

/// Linux doubles what is set, for its own book-keeping, and reports the double (socket(7)).
fn granted(reported: usize) -> usize {
    if cfg!(target_os = "linux") { reported / 2 } else { reported }
}

#[cfg(test)]
mod tests {
    use super::super::config::Options;
    use super::*;

    /// Where the kernel grants less, the user is told; see the test below.
    #[test]
    fn a_stall_of_300_ms_at_50_mbits_loses_nothing() {
        let (receiver, warnings) = bind(([127, 0, 0, 1], 0).into(), Options::default().udp_buffer).unwrap();
        let (sender, _) = bind(([127, 0, 0, 1], 0).into(), 64 << 10).unwrap();
        let (datagram, count) = ([7; 1250], 50_000_000 * 3 / 10 / 8 / 1250);
        for _ in 0..count {
            // Loopback delivers at once; no reader takes any meanwhile.
            sender.send_to(&datagram, receiver.local_addr().unwrap()).unwrap();
        }
        let mut buffer = [0; 2000];
        let received = std::iter::from_fn(|| receiver.recv(&mut buffer).ok()).count();
        let clamped =
            |warning: &Warning| matches!(warning, Warning::BufferClamped { buffer: Buffer::Receive, .. });
        assert!(received == count || warnings.iter().any(clamped), "{received} of {count}");
    }

    #[test]
    fn a_modest_buffer_is_granted_and_an_absurd_one_reported() {
        let (socket, warnings) = bind(([127, 0, 0, 1], 0).into(), 64 << 10).unwrap();
        assert_eq!(warnings, []);
        assert!(granted(sockopt::socket_recv_buffer_size(&socket).unwrap()) >= 64 << 10);
        // Above what the kernel can represent even when forced.
        let wanted = (i32::MAX as usize) / 2 + 1;
        let (_, warnings) = bind(([127, 0, 0, 1], 0).into(), wanted).unwrap();
        let Some(Warning::BufferClamped { buffer: Buffer::Receive, granted, .. }) = warnings.first() else {
            panic!("no warning: {warnings:?}");
        };
        assert!(*granted < wanted);
        assert!(warnings[0].to_string().contains("sysctl -w net.core.rmem_max="));
    }
}
