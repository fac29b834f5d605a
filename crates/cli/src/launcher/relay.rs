//! The bytes between a caller and a session's control socket, on threads of their own.
//!
//! What they mean is not known here. Invariant: when a caller is gone, the session hears of it.

use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::error::Error;
use crate::host::{AGENT, ssh_server_address};
use crate::pass_on::{copy, output, system};
use wayferry_host::control::{self, Request};
use wayferry_host::passing;
use wayferry_host::sessions;

/// See the module.
pub(super) struct Relay {
    /// Readable when the caller is gone.
    pub(super) over: UnixStream,
    /// Readable when the session has closed its end: it is over, or the display comes another way.
    pub(super) closed: UnixStream,
    /// Programs use the ssh agent that has come with the caller.
    pub(super) brings_agent: bool,
    /// It ends with this.
    _caller: Option<Ending>,
}

/// A socket that is written to, and that ends for all who have it when this does.
struct Ending(UnixStream);

impl Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // One that is over already has ended for all.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Relay {
    /// Asks a session to let the caller attach, or view.
    pub(super) fn start(
        from: OwnedFd,
        to: OwnedFd,
        session: Option<&str>,
        request: impl FnOnce(Option<IpAddr>) -> Request,
    ) -> Result<Self, Error> {
        let (socket, brings_agent) = ask(session, request)?;
        let other = socket.try_clone().map_err(system("dup"))?;
        // To its end: when the session has closed the socket, the caller is still there.
        let over = output(from, socket)?;
        let closed = copy(other, File::from(to))?;
        Ok(Self { over, closed, brings_agent, _caller: None })
    }

    /// The same for one that has been let in before, on two descriptors of one socket: when either end is over, or this
    /// is dropped, both are.
    pub(super) fn beside(from: OwnedFd, to: OwnedFd, session: &str) -> Result<Self, Error> {
        let (socket, brings_agent) = ask(Some(session), Request::Attach)?;
        Self::between(from, to, socket, brings_agent)
    }

    fn between(from: OwnedFd, to: OwnedFd, socket: UnixStream, brings_agent: bool) -> Result<Self, Error> {
        let other = socket.try_clone().map_err(system("dup"))?;
        let caller = Ending(UnixStream::from(to.try_clone().map_err(system("dup"))?));
        let over = copy(File::from(from), Ending(socket))?;
        let closed = copy(other, Ending(UnixStream::from(to)))?;
        Ok(Self { over, closed, brings_agent, _caller: Some(caller) })
    }

    /// Whether both ends are there.
    pub(super) fn is_open(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let is_open = |end: &UnixStream| rustix::net::recv(end, &mut [0; 1], flags) == Err(Errno::AGAIN);
        is_open(&self.over) && is_open(&self.closed)
    }
}

/// Asks a session to let the caller in; gives the socket that leads there, and whether the caller's agent is used.
fn ask(
    session: Option<&str>,
    request: impl FnOnce(Option<IpAddr>) -> Request,
) -> Result<(UnixStream, bool), Error> {
    let (name, socket) = sessions::call(session)?;
    rustix::io::ioctl_fionbio(&socket, false).map_err(|error| system("fcntl")(error.into()))?;
    let address = ssh_server_address();
    let reached = (!address.is_unspecified()).then_some(address);
    let request = request(reached);
    // One that is gone, or no socket, takes no other's place.
    let agent = std::env::var_os(AGENT).filter(|_| matches!(request, Request::Attach(_)));
    let brings_agent = agent.is_some_and(|agent| sessions::point_agent(&name, Path::new(&agent)).is_ok());
    passing::send(&socket, &control::line(&request), &[]).map_err(system("speaking to the session"))?;
    Ok((socket.into(), brings_agent))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn regression_a_relay_beside_ends_at_both_ends_when_either_is_over() {
        for end in 0..3 {
            let (display, from) = UnixStream::pair().expect("a socket");
            let (host, socket) = UnixStream::pair().expect("a socket");
            let relay = Relay::between(from.try_clone().expect("dup").into(), from.into(), socket, false);
            let relay = relay.expect("a relay");
            assert!(relay.is_open());
            let (mut ends, mut relay) = ([Some(display), Some(host)], Some(relay));
            match end {
                2 => drop(relay.take()),
                end => drop(ends[end].take()),
            }
            for mut other in ends.into_iter().flatten() {
                assert_eq!(other.read(&mut [0; 1]).expect("read"), 0, "{end}");
            }
        }
    }
}
