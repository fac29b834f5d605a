//! The side that listens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use wayferry_net::endpoint::web::Request;
use wayferry_net::endpoint::{self, Accepted, Admission, By, Failure, Retry};

use crate::address::{Address, pair};
use crate::config::Config;
use crate::connecting::{Connecting, Waiting, engine};
use crate::connection::Connection;
use crate::failure::exception;
use crate::guard::{self, Kept};
use crate::reactor::{Reactor, Slot, Turns};
use crate::tls::ServerTls;
use crate::value::{Code, Kind, Whole, argument};

/// Binds a port.
#[pyfunction]
pub(crate) fn listen(
    py: Python<'_>,
    reactor: &Bound<'_, Reactor>,
    address: Address,
    tls: &Bound<'_, ServerTls>,
    config: &Bound<'_, Config>,
    retry: &str,
) -> PyResult<Listener> {
    let admission = Admission { retry: policy(retry)?, web: false };
    let engine = engine(py)?;
    let (tls, config) = (&tls.get().0, config.get().0.clone());
    let listener = py
        .detach(|| endpoint::Listener::bind(&engine, address.0, tls, config, admission))
        .map_err(exception)?;
    let turns = reactor.get().turns();
    listener.belong_to(turns.ready());
    Ok(Listener { slot: turns.slot(), turns, listener: Kept::new(listener), closed: None, stopped: false })
}

/// A bound port.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct Listener {
    turns: Arc<Turns>,
    slot: Slot,
    listener: Kept<endpoint::Listener>,
    /// What it was closed with.
    closed: Option<(u64, String)>,
    /// Whether the program wants no more peers.
    stopped: bool,
}

#[pymethods]
impl Listener {
    #[getter]
    fn token(&self) -> u64 {
        self.slot.token
    }

    #[getter]
    fn local_addr(&mut self) -> PyResult<(String, u16)> {
        guard::check()?;
        Ok(pair(self.listener.inner().local_address()))
    }

    fn poll_accept(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        guard::check()?;
        let (slot, listener) = (&self.slot, self.listener.inner());
        let turns = || Arc::clone(&self.turns);
        match py.detach(|| listener.poll_accept(&mut slot.context())) {
            Poll::Pending => Ok(None),
            Poll::Ready(Some(Accepted::Raw(connection))) => {
                Ok(Some(Py::new(py, Connection::new(turns(), connection, None))?.into_any()))
            }
            Poll::Ready(Some(Accepted::Web(request))) => {
                Ok(Some(Py::new(py, WebRequest::new(turns(), request))?.into_any()))
            }
            Poll::Ready(Some(_)) => Err(PyValueError::new_err("a peer of an unknown kind came in")),
            Poll::Ready(None) if !self.stopped => {
                Err(PyOSError::new_err("the system has failed the UDP socket"))
            }
            Poll::Ready(None) => {
                let (code, reason) = self.closed.clone().unwrap_or_default();
                Err(exception(Failure::Closed { code, reason, by: By::Local }))
            }
        }
    }

    fn reload_tls(&mut self, py: Python<'_>, tls: &Bound<'_, ServerTls>) -> PyResult<()> {
        guard::check()?;
        let (listener, tls) = (self.listener.inner(), &tls.get().0);
        py.detach(|| listener.reload_tls(tls)).map_err(exception)
    }

    fn set_web(&mut self, py: Python<'_>, on: bool) -> PyResult<()> {
        guard::check()?;
        let listener = self.listener.inner();
        py.detach(|| listener.set_web(on)).map_err(exception)
    }

    fn stats(&mut self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, u64>> {
        guard::check()?;
        let listener = self.listener.inner();
        let stats = py.detach(|| listener.stats());
        Ok(BTreeMap::from([
            ("accepted", stats.accepted),
            ("failed", stats.failed),
            ("refused", stats.refused),
            ("retried", stats.retried),
            ("half_open", stats.half_open as u64),
            ("open", stats.open as u64),
        ]))
    }

    fn failures(&mut self, py: Python<'_>) -> PyResult<Vec<String>> {
        guard::check()?;
        let listener = self.listener.inner();
        Ok(py.detach(|| listener.stats()).failures)
    }

    fn stop(&mut self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        self.stopped = true;
        let listener = self.listener.inner();
        py.detach(|| listener.stop());
        Ok(())
    }

    fn close(&mut self, py: Python<'_>, code: &Bound<'_, PyAny>, reason: &[u8]) -> PyResult<()> {
        guard::check()?;
        let code = argument::<Code>("code", code)?.number(Kind::Raw)?;
        self.stopped = true;
        self.closed.get_or_insert_with(|| (code, String::from_utf8_lossy(reason).into_owned()));
        let listener = self.listener.inner();
        let turns = &self.turns;
        py.detach(|| {
            listener.close(code, reason);
            turns.end();
        });
        Ok(())
    }

    fn idle(&mut self, py: Python<'_>) -> PyResult<Waiting> {
        guard::check()?;
        let listener = self.listener.inner();
        let over = py.detach(|| listener.idle());
        Ok(Waiting::new(&self.turns, over))
    }
}

/// A client that asks for a WebTransport session.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct WebRequest {
    turns: Arc<Turns>,
    #[pyo3(get)]
    path: String,
    #[pyo3(get)]
    authority: String,
    #[pyo3(get)]
    headers: Vec<(String, String)>,
    #[pyo3(get)]
    remote_addr: (String, u16),
    request: Kept<Option<Request>>,
}

impl WebRequest {
    pub(crate) fn new(turns: Arc<Turns>, request: Request) -> Self {
        Self {
            turns,
            path: request.path().to_owned(),
            authority: request.authority().to_owned(),
            headers: request.headers().to_vec(),
            remote_addr: pair(request.remote_address()),
            request: Kept::new(Some(request)),
        }
    }

    fn answer(&mut self) -> PyResult<Request> {
        guard::check()?;
        self.request.inner().take().ok_or_else(|| PyValueError::new_err("the request was answered already"))
    }
}

#[pymethods]
impl WebRequest {
    fn accept(&mut self, py: Python<'_>) -> PyResult<Connecting> {
        let request = self.answer()?;
        let url = format!("https://{}{}", self.authority, self.path);
        let pending = py.detach(|| request.accept());
        Ok(Connecting::new(Arc::clone(&self.turns), pending, Some(url)))
    }

    fn reject(&mut self, py: Python<'_>, status: &Bound<'_, PyAny>) -> PyResult<()> {
        let status: Whole<u16> = argument("status", status)?;
        // RFC 9110 §15.5 and §15.6. A wrong one must not use the request up.
        if !(400..600).contains(&status.0) {
            return Err(PyValueError::new_err(format!(
                "expected a status from 400 to 599, got {}",
                status.0
            )));
        }
        let request = self.answer()?;
        py.detach(|| request.reject(status.0)).map_err(exception)
    }
}

fn policy(name: &str) -> PyResult<Retry> {
    match name {
        "auto" => Ok(Retry::Auto),
        "always" => Ok(Retry::Always),
        "never" => Ok(Retry::Never),
        _ => Err(PyValueError::new_err(format!("expected `auto`, `always` or `never`, got {name:?}"))),
    }
}
