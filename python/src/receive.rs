//! A stream to receive on.

use std::sync::Arc;
use std::task::Poll;
use std::vec::Drain;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use wayferry_net::endpoint::{self, Failure};

use crate::buffer::joined;
use crate::failure::exception;
use crate::guard::{self, Kept};
use crate::reactor::{Slot, Turns};
use crate::value::{Code, Kind, Limit, argument};

/// The receiving side of a stream.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct ReceiveStream {
    stream: Kept<endpoint::ReceiveStream>,
    turns: Arc<Turns>,
    slot: Slot,
    kind: Kind,
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    is_early: bool,
    /// Empty between calls; it keeps its memory.
    pieces: Vec<Bytes>,
}

impl ReceiveStream {
    pub(crate) fn new(turns: &Arc<Turns>, stream: endpoint::ReceiveStream, kind: Kind) -> Self {
        let (id, is_early) = (stream.id(), stream.is_early());
        let (slot, turns) = (turns.slot(), Arc::clone(turns));
        Self { stream: Kept::new(stream), turns, slot, kind, id, is_early, pieces: Vec::new() }
    }

    /// What has come: nothing while nothing has, no pieces at the end.
    pub(crate) fn take(&mut self, py: Python<'_>, limit: usize) -> PyResult<Option<Drain<'_, Bytes>>> {
        guard::check()?;
        let (slot, stream, pieces) = (&self.slot, self.stream.inner(), &mut self.pieces);
        match self.turns.ask(py, || stream.poll_read(&mut slot.context(), pieces, limit), size) {
            Poll::Pending => Ok(None),
            Poll::Ready(Err(failure)) => Err(exception(failure)),
            Poll::Ready(Ok(_)) => Ok(Some(self.pieces.drain(..))),
        }
    }

    /// The stream itself, for who takes it from Python.
    pub(crate) fn inner(&mut self) -> &mut endpoint::ReceiveStream {
        self.stream.inner()
    }

    /// Makes the token ready now.
    pub(crate) fn wake(&self) {
        self.slot.wake();
    }
}

fn size(polled: &Poll<Result<usize, Failure>>) -> usize {
    match polled {
        Poll::Ready(Ok(size)) => *size,
        _ => 0,
    }
}

#[pymethods]
impl ReceiveStream {
    #[getter]
    fn t_read(&self) -> u64 {
        self.slot.token
    }

    fn read<'py>(
        &mut self,
        py: Python<'py>,
        limit: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guard::check()?;
        let limit: Limit = argument("n", limit)?;
        let (slot, stream, pieces) = (&self.slot, self.stream.inner(), &mut self.pieces);
        match self.turns.ask(py, || stream.poll_read(&mut slot.context(), pieces, limit.0), size) {
            Poll::Pending => Ok(None),
            Poll::Ready(Err(failure)) => Err(exception(failure)),
            Poll::Ready(Ok(_)) => {
                let data = joined(py, pieces);
                pieces.clear();
                data.map(Some)
            }
        }
    }

    fn unordered<'py>(&mut self, py: Python<'py>, limit: Limit) -> PyResult<Option<Bound<'py, PyTuple>>> {
        guard::check()?;
        let (slot, stream) = (&self.slot, self.stream.inner());
        let ask = || stream.poll_read_unordered(&mut slot.context(), limit.0);
        let len = |polled: &Poll<Result<Option<(u64, Bytes)>, Failure>>| match polled {
            Poll::Ready(Ok(Some((_, data)))) => data.len(),
            _ => 0,
        };
        match self.turns.ask(py, ask, len) {
            Poll::Pending => Ok(None),
            Poll::Ready(Err(failure)) => Err(exception(failure)),
            Poll::Ready(Ok(None)) => Ok(Some(PyTuple::empty(py))),
            Poll::Ready(Ok(Some((offset, data)))) => {
                (offset, PyBytes::new(py, &data)).into_pyobject(py).map(Some)
            }
        }
    }

    fn stop(&mut self, py: Python<'_>, code: &Bound<'_, PyAny>) -> PyResult<()> {
        guard::check()?;
        let code = argument::<Code>("code", code)?.number(self.kind)?;
        let stream = self.stream.inner();
        py.detach(|| stream.stop(code));
        self.slot.wake();
        Ok(())
    }
}
