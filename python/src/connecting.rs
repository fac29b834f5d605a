//! Things that are under way and give one answer: a connection, or only that they are over.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use wayferry_net::endpoint::{self, By, Engine, Failure, Pending, Target, web};

use crate::address::Address;
use crate::config::Config;
use crate::connection::Connection;
use crate::failure::exception;
use crate::guard::{self, Kept};
use crate::reactor::{Reactor, Slot, Turns};
use crate::tls::ClientTls;

/// Connects to the first of `addresses` that answers.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "from one place in the package")]
pub(crate) fn connect(
    py: Python<'_>,
    reactor: &Bound<'_, Reactor>,
    addresses: Vec<Address>,
    server_name: String,
    local: Option<Address>,
    tls: &Bound<'_, ClientTls>,
    config: &Bound<'_, Config>,
    early_data: bool,
) -> PyResult<Connecting> {
    let target = target(addresses, server_name, local, early_data)?;
    let engine = engine(py)?;
    let (tls, config) = (tls.get().0.clone(), config.get().0.clone());
    let pending = py.detach(|| endpoint::connect(&engine, target, tls, config));
    Ok(Connecting::new(reactor.get().turns(), pending, None))
}

/// Connects and asks for a WebTransport session.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "from one place in the package")]
pub(crate) fn web_connect(
    py: Python<'_>,
    reactor: &Bound<'_, Reactor>,
    addresses: Vec<Address>,
    server_name: String,
    local: Option<Address>,
    tls: &Bound<'_, ClientTls>,
    config: &Bound<'_, Config>,
    url: String,
) -> PyResult<Connecting> {
    let target = target(addresses, server_name, local, false)?;
    let engine = engine(py)?;
    let (tls, config) = (tls.get().0.clone(), config.get().0.clone());
    let pending = py.detach(|| web::connect(&engine, target, &url, tls, config));
    Ok(Connecting::new(reactor.get().turns(), pending, Some(url)))
}

/// The engine of the process, started now if it was not.
pub(crate) fn engine(py: Python<'_>) -> PyResult<Engine> {
    guard::check()?;
    guard::mark_used();
    ENGINE.get_or_try_init(py, Engine::start).cloned().map_err(PyErr::from)
}

/// A connection on its way.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct Connecting {
    turns: Arc<Turns>,
    slot: Slot,
    url: Option<String>,
    pending: Kept<Option<Pending<Result<endpoint::Connection, Failure>>>>,
}

impl Connecting {
    pub(crate) fn new(
        turns: Arc<Turns>,
        pending: Pending<Result<endpoint::Connection, Failure>>,
        url: Option<String>,
    ) -> Self {
        Self { slot: turns.slot(), turns, url, pending: Kept::new(Some(pending)) }
    }
}

#[pymethods]
impl Connecting {
    #[getter]
    fn token(&self) -> u64 {
        self.slot.token
    }

    fn poll(&mut self, py: Python<'_>) -> PyResult<Option<Connection>> {
        guard::check()?;
        let (slot, pending) = (&self.slot, self.pending.inner());
        let Some(future) = pending else { return Err(exception(cancelled())) };
        let Poll::Ready(outcome) = py.detach(|| Pin::new(future).poll(&mut slot.context())) else {
            return Ok(None);
        };
        *pending = None;
        let connection = outcome.map_err(exception)?;
        Ok(Some(Connection::new(Arc::clone(&self.turns), connection, self.url.take())))
    }

    fn cancel(&mut self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        let pending = self.pending.inner().take();
        py.detach(|| drop(pending));
        self.slot.wake();
        Ok(())
    }
}

/// Something that will be over.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct Waiting {
    slot: Slot,
    pending: Kept<Option<Over>>,
}

type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Waiting {
    pub(crate) fn new(turns: &Turns, over: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { slot: turns.slot(), pending: Kept::new(Some(Box::pin(over))) }
    }
}

#[pymethods]
impl Waiting {
    #[getter]
    fn token(&self) -> u64 {
        self.slot.token
    }

    fn poll(&mut self, py: Python<'_>) -> PyResult<bool> {
        guard::check()?;
        let (slot, pending) = (&self.slot, self.pending.inner());
        let over = match pending {
            None => true,
            Some(future) => py.detach(|| future.as_mut().poll(&mut slot.context())).is_ready(),
        };
        if over {
            *pending = None;
        }
        Ok(over)
    }
}

fn target(
    addresses: Vec<Address>,
    server_name: String,
    local: Option<Address>,
    early_data: bool,
) -> PyResult<Target> {
    if addresses.is_empty() {
        return Err(PyValueError::new_err("there is no address to connect to"));
    }
    let addresses = addresses.into_iter().map(|Address(address)| address).collect();
    Ok(Target { addresses, server_name, local: local.map(|Address(address)| address), early_data })
}

fn cancelled() -> Failure {
    Failure::Closed { code: 0, reason: "cancelled".into(), by: By::Local }
}

static ENGINE: PyOnceLock<Engine> = PyOnceLock::new();
