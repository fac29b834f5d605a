//! Where a site listens.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Who can reach a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This machine, at both of its loopback addresses: `localhost` may be either.
    Here,
    /// All that can send to this machine.
    All,
}

/// A port that cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on `{}`: {}", self.address, self.source)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Listens on this port, or on one that the system chooses for 0; gives it.
///
/// # Errors
/// The port is taken at one of the addresses: another program there would be taken for this one.
pub fn bind(port: u16, reach: Reach) -> Result<(Vec<TcpListener>, u16), BindError> {
    let mut tries = if port == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_all(port, reach) {
            // Free at one address, and taken at the other.
            Err(error) if tries > 0 && error.source.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
}

fn bind_all(port: u16, reach: Reach) -> Result<(Vec<TcpListener>, u16), BindError> {
    let (first, second): (IpAddr, IpAddr) = match reach {
        Reach::Here => (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
        Reach::All => (Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()),
    };
    let bind = |ip, port| {
        let address = SocketAddr::new(ip, port);
        TcpListener::bind(address).map_err(|source| BindError { address, source })
    };
    let (listener, other) = match bind(first, port) {
        Ok(listener) => (listener, second),
        Err(error) if is_missing(&error.source) => return bind(second, port).and_then(alone),
        Err(error) => return Err(error),
    };
    let (mut listeners, port) = alone(listener)?;
    match bind(other, port) {
        Ok(listener) => listeners.push(listener),
        // There is no such address; or the first one takes its connections, too.
        Err(error) if is_missing(&error.source) || reach == Reach::All => {}
        Err(error) => return Err(error),
    }
    Ok((listeners, port))
}

fn alone(listener: TcpListener) -> Result<(Vec<TcpListener>, u16), BindError> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let port = listener.local_addr().map_err(|source| BindError { address, source })?.port();
    Ok((vec![listener], port))
}

/// Whether the machine has no such address, or not that version of IP.
fn is_missing(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    error.kind() == io::ErrorKind::AddrNotAvailable || errno == Some(rustix::io::Errno::AFNOSUPPORT)
}

/// Ports that are tried.
const TRIES: usize = 16;
