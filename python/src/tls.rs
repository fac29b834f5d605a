//! Whom to trust and what to prove, from files or from memory. No key is ever shown.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wayferry_net::endpoint::{self, Clients, ServerTrust};
use wayferry_net::{Fingerprint, Identity, Origin, Roots};

use crate::failure::{exception, refusal};
use crate::guard;
use crate::value::{Limit, Whole, argument};

/// How a client knows its server.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct ClientTls(pub(crate) endpoint::ClientTls);

#[pymethods]
impl ClientTls {
    #[new]
    #[pyo3(signature = (*, pins, roots, insecure, client_cert, alpn, server_name, tickets))]
    fn new(
        pins: Option<Vec<String>>,
        roots: Option<Pem>,
        insecure: bool,
        client_cert: Option<(Pem, Pem)>,
        alpn: Vec<Vec<u8>>,
        server_name: Option<String>,
        tickets: Option<&Bound<'_, TicketStore>>,
    ) -> PyResult<Self> {
        let trust = match (pins, roots, insecure) {
            (Some(pins), None, false) => ServerTrust::Pins(fingerprints(&pins)?),
            (None, Some(roots), false) => ServerTrust::Roots(authorities(roots)?),
            (None, None, true) => ServerTrust::Insecure,
            _ => return Err(PyValueError::new_err("expected one of pins, roots and insecure")),
        };
        let identity = client_cert.map(|(chain, key)| identity(chain, key)).transpose()?;
        let tickets = tickets.map(|store| store.get().0.clone());
        Ok(Self(endpoint::ClientTls { trust, identity, alpn: protocols(alpn)?, tickets, server_name }))
    }
}

/// How a server proves itself, and whom it lets in.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct ServerTls(pub(crate) endpoint::ServerTls);

#[pymethods]
impl ServerTls {
    #[new]
    #[pyo3(signature = (*, cert, key, client_pins, client_roots, alpn, early_data))]
    fn new(
        cert: Pem,
        key: Pem,
        client_pins: Option<Vec<String>>,
        client_roots: Option<Pem>,
        alpn: Vec<Vec<u8>>,
        early_data: bool,
    ) -> PyResult<Self> {
        let clients = match (client_pins, client_roots) {
            (None, None) => Clients::Anyone,
            (Some(pins), None) => Clients::Pins(fingerprints(&pins)?),
            (None, Some(roots)) => Clients::Roots(authorities(roots)?),
            _ => return Err(PyValueError::new_err("expected client_pins or client_roots, not both")),
        };
        let identity = identity(cert, key)?;
        Ok(Self(endpoint::ServerTls { identity, clients, alpn: protocols(alpn)?, early_data }))
    }

    fn with_alpn(&self, alpn: Vec<Vec<u8>>) -> PyResult<Self> {
        Ok(Self(endpoint::ServerTls { alpn: protocols(alpn)?, ..self.0.clone() }))
    }

    #[getter]
    fn fingerprint(&self) -> String {
        self.0.identity.fingerprint().to_string()
    }
}

/// What a client needs to come back to a server quickly.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct TicketStore(endpoint::TicketStore);

#[pymethods]
impl TicketStore {
    #[new]
    fn new(limit: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(endpoint::TicketStore::new(argument::<Limit>("limit", limit)?.0)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        guard::check()?;
        Ok(py.detach(|| self.0.len()))
    }
}

/// A certificate for `names` that no authority vouches for, and its key.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "nothing of Python's can be borrowed with the interpreter released"
)]
pub(crate) fn self_signed<'py>(
    py: Python<'py>,
    names: Vec<String>,
    days: &Bound<'_, PyAny>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let Whole(days) = argument("days", days)?;
    let (chain, key) = py.detach(|| endpoint::self_signed(&names, days)).map_err(exception)?;
    Ok((PyBytes::new(py, chain.as_bytes()), PyBytes::new(py, key.as_bytes())))
}

/// What to pin for the first certificate of a PEM file.
#[pyfunction]
pub(crate) fn fingerprint(cert: Pem) -> PyResult<String> {
    let text = cert.read()?;
    Fingerprint::from_pem(&text).map(|found| found.to_string()).map_err(|error| wrong(&error))
}

/// A path, or what a PEM file holds.
#[derive(FromPyObject)]
pub(crate) enum Pem {
    Text(Vec<u8>),
    Path(PathBuf),
}

impl Pem {
    fn read(self) -> PyResult<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Path(path) => std::fs::read(&path).map_err(|error| refusal(&error, Some(path))),
        }
    }
}

fn identity(chain: Pem, key: Pem) -> PyResult<Arc<Identity>> {
    let identity = Identity::from_pem(&chain.read()?, &key.read()?).map_err(|error| wrong(&error))?;
    identity.check().map_err(|fault| wrong(&fault))?;
    Ok(Arc::new(identity))
}

fn authorities(roots: Pem) -> PyResult<Roots> {
    match &roots {
        Pem::Path(path) if path == Path::new("webpki") => Ok(Roots::built_in()),
        Pem::Path(path) if path == Path::new("system") => {
            let found = Roots::load(None).map_err(|error| wrong(&error))?;
            match found.origin() {
                Origin::Platform => Ok(found),
                _ => Err(PyValueError::new_err(
                    "this system has no certificate authorities; `webpki` is a list of them",
                )),
            }
        }
        _ => Roots::from_pem(&roots.read()?).map_err(|error| wrong(&error)),
    }
}

fn fingerprints(pins: &[String]) -> PyResult<Vec<Fingerprint>> {
    if pins.is_empty() {
        return Err(PyValueError::new_err("an empty list of pins trusts nobody"));
    }
    pins.iter().map(|pin| pin.parse().map_err(|error| wrong(&error))).collect()
}

/// RFC 7301 §3.1: a name has 1 to 255 bytes.
fn protocols(alpn: Vec<Vec<u8>>) -> PyResult<Vec<Vec<u8>>> {
    match alpn.iter().find(|name| name.is_empty() || name.len() > 255) {
        None => Ok(alpn),
        Some(name) => Err(PyValueError::new_err(format!(
            "an ALPN name has 1 to 255 bytes, one here has {}",
            name.len()
        ))),
    }
}

fn wrong(error: &dyn Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
