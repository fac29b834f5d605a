//! Where a site listens.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

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

/// Listens on this port, or on one that the system chooses for 0, at both of this machine's loopback addresses, as
/// `localhost` and the names below it may be either; gives the port.
///
/// # Errors
/// The port is taken at one of the addresses: another program there would be taken for this one.
pub fn bind(port: u16) -> Result<(Vec<TcpListener>, u16), BindError> {
    let mut tries = if port == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_both(port) {
            // Free at one address, and taken at the other.
            Err(error) if tries > 0 && error.source.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
}

/// Listens on this port, or on one that the system chooses for 0, at all addresses of this machine; gives the port.
///
/// # Errors
/// The port is taken, or none that this user may have.
pub fn bind_everywhere(port: u16) -> Result<(Vec<TcpListener>, u16), BindError> {
    let address = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
    let bound = match listen_for_both(address) {
        Err(source) if is_missing(&source) => bind_one(Ipv4Addr::UNSPECIFIED.into(), port),
        bound => bound.map_err(|source| BindError { address, source }),
    };
    bound.map(|(listener, port)| (vec![listener], port))
}

/// A listener at this address of IPv6 that hears IPv4, too, also where the system's default is another; and its port.
fn listen_for_both(address: SocketAddr) -> io::Result<(TcpListener, u16)> {
    let (family, kind) = (AddressFamily::INET6, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    // As the standard library does: what is left of earlier connections does not keep the port taken.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    let listener = TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn bind_both(port: u16) -> Result<(Vec<TcpListener>, u16), BindError> {
    let first = match bind_one(Ipv4Addr::LOCALHOST.into(), port) {
        Ok(first) => first,
        Err(error) if is_missing(&error.source) => {
            let (listener, port) = bind_one(Ipv6Addr::LOCALHOST.into(), port)?;
            return Ok((vec![listener], port));
        }
        Err(error) => return Err(error),
    };
    let (listener, port) = first;
    match bind_one(Ipv6Addr::LOCALHOST.into(), port) {
        Ok((other, _)) => Ok((vec![listener, other], port)),
        Err(error) if is_missing(&error.source) => Ok((vec![listener], port)),
        Err(error) => Err(error),
    }
}

/// A listener, and its port.
fn bind_one(ip: IpAddr, port: u16) -> Result<(TcpListener, u16), BindError> {
    let address = SocketAddr::new(ip, port);
    let bind = || {
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    bind().map_err(|source| BindError { address, source })
}

/// Whether the machine has no such address, or not that version of IP.
fn is_missing(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    error.kind() == io::ErrorKind::AddrNotAvailable || errno == Some(rustix::io::Errno::AFNOSUPPORT)
}

/// Ports that are tried.
const TRIES: usize = 16;
/// Callers that the system has answered and who wait until they are accepted.
const BACKLOG: i32 = 128;
