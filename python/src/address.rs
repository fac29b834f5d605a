//! Socket addresses as Python writes them: a host, which is a literal address here, and a port.
//!
//! A link-local address has its zone behind a `%`, as a number (RFC 4007 §11).

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::value::{Whole, argument};

/// An address that came from Python.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl<'a, 'py> FromPyObject<'a, 'py> for Address {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let (host, port): (String, Bound<'py, PyAny>) = object.extract()?;
        let Whole(port) = argument("port", &port)?;
        parse(&host, port)
            .map(Self)
            .ok_or_else(|| PyValueError::new_err(format!("expected an IP address, got {host:?}")))
    }
}

/// As a pair for Python.
pub(crate) fn pair(address: SocketAddr) -> (String, u16) {
    let host = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        _ => address.ip().to_string(),
    };
    (host, address.port())
}

fn parse(host: &str, port: u16) -> Option<SocketAddr> {
    if let Some((ip, zone)) = host.split_once('%') {
        return Some(SocketAddrV6::new(ip.parse().ok()?, port, 0, zone.parse().ok()?).into());
    }
    host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}
