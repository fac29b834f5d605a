//! A connection, raw or a WebTransport session: what may be opened, accepted, sent and known.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use wayferry_net::endpoint::web::{Head, Request};
use wayferry_net::endpoint::{self, Failure};

use crate::address::{Address, pair};
use crate::buffer::contents;
use crate::config::Config;
use crate::connecting::Waiting;
use crate::facts;
use crate::failure::exception;
use crate::guard::{self, Kept};
use crate::http3::Http3Reader;
use crate::listener::WebRequest;
use crate::outgoing::owned;
use crate::reactor::{Slot, Turns};
use crate::receive::ReceiveStream;
use crate::send::SendStream;
use crate::value::{Code, Kind, Limit, argument};

/// One connection.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct Connection {
    turns: Arc<Turns>,
    connection: Kept<endpoint::Connection>,
    slots: Slots,
    /// The datagram of a `send_datagram` that is pending.
    waiting: Option<Bytes>,
    /// Whether the program knows that it is over; for the streams.
    over: Arc<AtomicBool>,
    #[pyo3(get)]
    url: Option<String>,
}

struct Slots {
    open_uni: Slot,
    open_bi: Slot,
    accept_uni: Slot,
    accept_bi: Slot,
    datagram: Slot,
    send_datagram: Slot,
    closed: Slot,
    early: Slot,
}

impl Connection {
    pub(crate) fn new(turns: Arc<Turns>, connection: endpoint::Connection, url: Option<String>) -> Self {
        let slots = Slots {
            open_uni: turns.slot(),
            open_bi: turns.slot(),
            accept_uni: turns.slot(),
            accept_bi: turns.slot(),
            datagram: turns.slot(),
            send_datagram: turns.slot(),
            closed: turns.slot(),
            early: turns.slot(),
        };
        let over = Arc::new(AtomicBool::new(false));
        connection.belong_to(turns.ready());
        Self { turns, connection: Kept::new(connection), slots, waiting: None, over, url }
    }

    fn kind(&self) -> Kind {
        if self.url.is_some() { Kind::Web } else { Kind::Raw }
    }

    fn both(&self, streams: (endpoint::SendStream, endpoint::ReceiveStream)) -> (SendStream, ReceiveStream) {
        (self.sending(streams.0), self.receiving(streams.1))
    }

    fn sending(&self, stream: endpoint::SendStream) -> SendStream {
        SendStream::new(&self.turns, stream, self.kind(), Arc::clone(&self.over))
    }

    fn receiving(&self, stream: endpoint::ReceiveStream) -> ReceiveStream {
        ReceiveStream::new(&self.turns, stream, self.kind())
    }

    /// What `ask` gives, or `None` while it is pending; then the token of `slot` becomes ready later.
    fn poll<T: Send>(
        &mut self,
        py: Python<'_>,
        slot: fn(&Slots) -> &Slot,
        ask: impl FnOnce(&mut endpoint::Connection, &mut Context<'_>) -> Poll<Result<T, Failure>> + Send,
    ) -> PyResult<Option<T>> {
        guard::check()?;
        let (slot, connection) = (slot(&self.slots), self.connection.inner());
        let polled = self.turns.ask(py, || ask(connection, &mut slot.context()), |_| 0);
        self.answer(polled)
    }

    /// What Python is given for `polled`.
    fn answer<T>(&self, polled: Poll<Result<T, Failure>>) -> PyResult<Option<T>> {
        match polled {
            Poll::Pending => Ok(None),
            Poll::Ready(Ok(value)) => Ok(Some(value)),
            Poll::Ready(Err(failure)) => {
                let over = matches!(failure, Failure::Closed { .. } | Failure::Tls { .. });
                self.over.fetch_or(over, Ordering::Relaxed);
                Err(exception(failure))
            }
        }
    }

    /// What `ask` gives, with the interpreter released.
    fn known<T: Send>(
        &mut self,
        py: Python<'_>,
        ask: impl FnOnce(&mut endpoint::Connection) -> T + Send,
    ) -> PyResult<T> {
        guard::check()?;
        let connection = self.connection.inner();
        Ok(py.detach(|| ask(connection)))
    }
}

/// What waits.
#[pymethods]
impl Connection {
    fn open_uni(&mut self, py: Python<'_>) -> PyResult<Option<SendStream>> {
        let opened = self.poll(py, |slots| &slots.open_uni, endpoint::Connection::poll_open_uni)?;
        Ok(opened.map(|stream| self.sending(stream)))
    }

    fn open_bi(&mut self, py: Python<'_>) -> PyResult<Option<(SendStream, ReceiveStream)>> {
        let opened = self.poll(py, |slots| &slots.open_bi, endpoint::Connection::poll_open_bi)?;
        Ok(opened.map(|streams| self.both(streams)))
    }

    fn accept_uni(&mut self, py: Python<'_>) -> PyResult<Option<ReceiveStream>> {
        let accepted = self.poll(py, |slots| &slots.accept_uni, endpoint::Connection::poll_accept_uni)?;
        Ok(accepted.map(|stream| self.receiving(stream)))
    }

    fn accept_bi(&mut self, py: Python<'_>) -> PyResult<Option<(SendStream, ReceiveStream)>> {
        let accepted = self.poll(py, |slots| &slots.accept_bi, endpoint::Connection::poll_accept_bi)?;
        Ok(accepted.map(|streams| self.both(streams)))
    }

    fn datagrams<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let mut batch = Vec::new();
        let come = self.poll(
            py,
            |slots| &slots.datagram,
            |connection, context| connection.poll_datagrams(context, &mut batch, most),
        )?;
        Ok(come.map(|()| batch.iter().map(|data| PyBytes::new(py, data)).collect()))
    }

    fn send_datagram(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let mut waiting = match self.waiting.take() {
            Some(waiting) => Some(waiting),
            None => Some(owned(contents(data)?)),
        };
        guard::check()?;
        let len = waiting.as_ref().map_or(0, Bytes::len);
        let (slot, connection) = (&self.slots.send_datagram, self.connection.inner());
        let send = || connection.poll_send_datagram(&mut slot.context(), &mut waiting);
        let polled = self.turns.hand_over(py, len, send);
        self.waiting = waiting;
        Ok(self.answer(polled)?.is_some())
    }

    fn cancel_send_datagram(&mut self, py: Python<'_>) -> PyResult<()> {
        self.waiting = None;
        self.known(py, endpoint::Connection::cancel_send_datagram)
    }

    fn send_datagram_nowait(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        guard::check()?;
        let data = owned(contents(data)?);
        let connection = self.connection.inner();
        self.turns.hand_over(py, data.len(), || connection.try_send_datagram(data)).map_err(exception)
    }

    /// Why it ended, as a value: a new exception each time.
    fn closed(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        guard::check()?;
        let (slot, connection) = (&self.slots.closed, self.connection.inner());
        match py.detach(|| connection.poll_closed(&mut slot.context())) {
            Poll::Ready(failure) => {
                self.over.store(true, Ordering::Relaxed);
                Ok(Some(exception(failure).into_value(py).into_any()))
            }
            Poll::Pending => Ok(None),
        }
    }

    fn early_data_accepted(&mut self, py: Python<'_>) -> PyResult<Option<bool>> {
        self.poll(
            py,
            |slots| &slots.early,
            |connection, context| connection.poll_early_data_accepted(context),
        )
    }

    fn ticket(&mut self, py: Python<'_>) -> PyResult<Waiting> {
        let come = self.known(py, |connection| connection.ticket())?;
        Ok(Waiting::new(&self.turns, come))
    }

    fn drain(&mut self, py: Python<'_>) -> PyResult<Waiting> {
        let over = self.known(py, |connection| connection.drain())?;
        Ok(Waiting::new(&self.turns, over))
    }

    fn close(&mut self, py: Python<'_>, code: &Bound<'_, PyAny>, reason: &[u8]) -> PyResult<()> {
        let code = argument::<Code>("code", code)?.number(self.kind())?;
        self.over.store(true, Ordering::Relaxed);
        let turns = Arc::clone(&self.turns);
        self.known(py, |connection| {
            connection.close(code, reason);
            // The program may end before the turn does.
            turns.end();
        })
    }

    #[expect(clippy::too_many_arguments, reason = "from one place in the package")]
    fn web_request(
        &mut self,
        py: Python<'_>,
        send: &Bound<'_, SendStream>,
        receive: &Bound<'_, ReceiveStream>,
        reader: &Bound<'_, Http3Reader>,
        path: String,
        authority: String,
        headers: Vec<(String, String)>,
        config: &Bound<'_, Config>,
    ) -> PyResult<WebRequest> {
        let (mut send, mut receive) = (send.try_borrow_mut()?, receive.try_borrow_mut()?);
        let Some(early) = reader.try_borrow_mut()?.rest() else {
            return Err(PyValueError::new_err("the request is not all of what was begun to be read"));
        };
        let (head, config) = (Head { path, authority, headers }, &config.get().0);
        let (send, receive) = (send.inner(), receive.inner());
        let request =
            self.known(py, |connection| Request::on(connection, (send, receive), head, &early, config))?;
        Ok(WebRequest::new(Arc::clone(&self.turns), request.map_err(exception)?))
    }

    fn rebind(&mut self, py: Python<'_>, address: Address) -> PyResult<()> {
        self.known(py, |connection| connection.rebind(address.0))?.map_err(exception)
    }

    fn change_id(&mut self, py: Python<'_>) -> PyResult<()> {
        self.known(py, |connection| connection.change_id())?.map_err(exception)
    }

    fn ping(&mut self, py: Python<'_>) -> PyResult<()> {
        self.known(py, |connection| connection.ping())
    }

    fn update_keys(&mut self, py: Python<'_>) -> PyResult<()> {
        self.known(py, |connection| connection.update_keys())
    }

    fn export_keying_material<'py>(
        &mut self,
        py: Python<'py>,
        label: &[u8],
        context: &[u8],
        length: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length: Limit = argument("length", length)?;
        let exported =
            self.known(py, |connection| connection.export_keying_material(label, context, length.0))?;
        Ok(PyBytes::new(py, &exported.map_err(exception)?))
    }

    fn stats<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        facts::stats(py, &self.known(py, |connection| connection.stats())?)
    }

    fn paths<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let paths = self.known(py, |connection| connection.paths())?;
        paths.iter().map(|path| facts::path(py, path)).collect()
    }

    #[getter]
    fn max_datagram_size(&mut self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.known(py, |connection| connection.max_datagram_size())
    }

    #[getter]
    fn remote_addr(&mut self, py: Python<'_>) -> PyResult<(String, u16)> {
        self.known(py, |connection| pair(connection.remote_address()))
    }

    #[getter]
    fn local_addr(&mut self, py: Python<'_>) -> PyResult<(String, u16)> {
        self.known(py, |connection| pair(connection.local_address()))
    }

    #[getter]
    fn alpn<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let alpn = self.known(py, |connection| connection.alpn())?;
        Ok(alpn.map(|name| PyBytes::new(py, &name)))
    }

    #[getter]
    fn peer_certificates<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let chain = self.known(py, |connection| connection.peer_certificates())?;
        Ok(chain.iter().map(|certificate| PyBytes::new(py, certificate)).collect())
    }

    #[getter]
    fn server_name(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        self.known(py, |connection| connection.server_name())
    }

    #[getter]
    fn has_ticket(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.known(py, |connection| connection.has_ticket())
    }

    #[getter]
    fn is_early(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.known(py, |connection| connection.is_early())
    }

    #[getter]
    fn t_open_uni(&self) -> u64 {
        self.slots.open_uni.token
    }

    #[getter]
    fn t_open_bi(&self) -> u64 {
        self.slots.open_bi.token
    }

    #[getter]
    fn t_accept_uni(&self) -> u64 {
        self.slots.accept_uni.token
    }

    #[getter]
    fn t_accept_bi(&self) -> u64 {
        self.slots.accept_bi.token
    }

    #[getter]
    fn t_datagram(&self) -> u64 {
        self.slots.datagram.token
    }

    #[getter]
    fn t_send_datagram(&self) -> u64 {
        self.slots.send_datagram.token
    }

    #[getter]
    fn t_closed(&self) -> u64 {
        self.slots.closed.token
    }

    #[getter]
    fn t_early(&self) -> u64 {
        self.slots.early.token
    }
}
