//! A stream to send on, which joins small writes.
//!
//! A write is taken whole or not at all. The first one of a turn of the loop goes to QUIC at once, so that a lone
//! message waits for nothing; what follows is collected in [`Outgoing`], and goes when that is full, or with the flush
//! that the caller owes at the end of the turn. Invariant: once something failed, what was collected is gone, and every
//! later write says why.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use wayferry_net::endpoint::{self, Failure};

use crate::buffer::contents;
use crate::failure::exception;
use crate::guard::{self, Kept};
use crate::http3::frame_head;
use crate::outgoing::{LIMIT, Outgoing};
use crate::reactor::{Slot, Turns};
use crate::value::{Code, Kind, Whole, argument};

/// The sending side of a stream.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct SendStream {
    stream: Kept<endpoint::SendStream>,
    turns: Arc<Turns>,
    write: Slot,
    stopped: Slot,
    kind: Kind,
    #[pyo3(get)]
    id: u64,
    #[pyo3(get)]
    priority: i32,
    state: State,
    outgoing: Outgoing,
    /// Whether the caller was told to flush, and has not yet.
    owed: bool,
    /// The turn in which a write went to QUIC at once.
    turn: Option<u64>,
    /// Whether that was the first of its turn, which leaves at once.
    first: bool,
    failed: Option<Failure>,
    /// Whether the program knows that the connection is over.
    over: Arc<AtomicBool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// `finish` was called, and waits for what is collected.
    Finishing,
    Finished,
    Reset,
}

impl SendStream {
    pub(crate) fn new(
        turns: &Arc<Turns>,
        stream: endpoint::SendStream,
        kind: Kind,
        over: Arc<AtomicBool>,
    ) -> Self {
        Self {
            id: stream.id(),
            stream: Kept::new(stream),
            turns: Arc::clone(turns),
            write: turns.slot(),
            stopped: turns.slot(),
            kind,
            priority: 0,
            state: State::Open,
            outgoing: Outgoing::default(),
            owed: false,
            turn: None,
            first: false,
            failed: None,
            over,
        }
    }

    /// The stream itself, for who takes it from Python.
    pub(crate) fn inner(&mut self) -> &mut endpoint::SendStream {
        self.stream.inner()
    }

    fn writable(&self) -> PyResult<()> {
        guard::check()?;
        match (self.state, &self.failed) {
            (State::Finishing | State::Finished, _) => Err(PyValueError::new_err("write after finish")),
            (State::Reset, _) => Err(PyValueError::new_err("write after reset")),
            (State::Open, Some(failure)) => Err(exception(failure.clone())),
            (State::Open, None) => Ok(()),
        }
    }

    /// Whether the next write should go to QUIC without waiting for others.
    fn goes_at_once(&self) -> bool {
        let first = self.outgoing.is_empty() && !self.owed && self.turn != Some(self.turns.turn());
        // After the end QUIC has the answer to every write.
        first || self.over.load(Ordering::Relaxed)
    }

    /// A write of this turn goes to QUIC at once.
    fn mark_turn(&mut self) {
        self.first = self.turns.is_first();
        self.turn = Some(self.turns.turn());
    }

    /// Hands over what QUIC takes. Whenever something stays behind, the token becomes ready later.
    fn push(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let (slot, stream, outgoing) = (&self.write, self.stream.inner(), &mut self.outgoing);
        let (len, state) = (outgoing.len(), &mut self.state);
        let push = || {
            while !outgoing.is_empty() {
                match stream.poll_write_chunks(&mut slot.context(), outgoing.chunks()) {
                    Poll::Ready(Ok(taken)) => outgoing.taken(taken),
                    Poll::Ready(Err(failure)) => return Err(failure),
                    Poll::Pending => break,
                }
            }
            // With the last bytes, so that the end needs no packet of its own.
            if *state == State::Finishing && outgoing.is_empty() {
                stream.finish()?;
                *state = State::Finished;
            }
            Ok(())
        };
        let pushed = self.turns.hand_over(py, len, push);
        pushed.map_err(|failure| self.fail(failure))
    }

    fn fail(&mut self, failure: Failure) -> PyErr {
        self.outgoing.clear();
        self.failed = Some(failure.clone());
        exception(failure)
    }

    /// As `push`; afterwards there is room, or the token becomes ready later.
    fn make_room(&mut self, py: Python<'_>) -> PyResult<bool> {
        if !self.outgoing.has_room() {
            self.push(py)?;
        }
        Ok(self.outgoing.has_room())
    }

    /// Takes what there is room for, and hands it over when it goes at once or is much.
    fn take(&mut self, py: Python<'_>, data: Cow<'_, [u8]>, at_once: bool) -> PyResult<u8> {
        if at_once {
            self.mark_turn();
            self.outgoing.push_alone(data);
        } else {
            self.outgoing.push(data);
        }
        if at_once || !self.outgoing.has_room() {
            self.push(py)?;
        }
        Ok(if self.owes() { TAKEN_FLUSH_OWED } else { TAKEN })
    }

    /// Whether the caller has to be told now that it owes a flush.
    fn owes(&mut self) -> bool {
        let news = !self.owed && !self.outgoing.is_empty();
        self.owed |= news;
        news
    }

    fn finish_if_empty(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.state == State::Finishing && self.outgoing.is_empty() {
            // A reader that waits for a message waits for its end: it leaves on the thread on which the message did.
            let prompt = self.first && self.turn == Some(self.turns.turn());
            let stream = self.stream.inner();
            let finish = || stream.finish();
            let finished = if prompt {
                py.detach(|| self.turns.promptly(finish))
            } else {
                self.turns.hand_over(py, 0, finish)
            };
            finished.map_err(|failure| self.fail(failure))?;
            self.state = State::Finished;
        }
        Ok(())
    }
}

#[pymethods]
impl SendStream {
    #[getter]
    fn t_write(&self) -> u64 {
        self.write.token
    }

    #[getter]
    fn t_stopped(&self) -> u64 {
        self.stopped.token
    }

    #[getter]
    fn buffered(&self) -> usize {
        self.outgoing.len()
    }

    fn write(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u8> {
        self.writable()?;
        if !self.make_room(py)? {
            return Ok(NO_ROOM);
        }
        let at_once = self.goes_at_once();
        let data = contents(data)?;
        self.take(py, data, at_once)
    }

    fn write_last(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<u8> {
        self.writable()?;
        if !self.make_room(py)? {
            return Ok(NO_ROOM);
        }
        let at_once = self.goes_at_once();
        let data = contents(data)?;
        self.state = State::Finishing;
        self.take(py, data, at_once)
    }

    fn write_frame(&mut self, py: Python<'_>, kind: u64, data: &Bound<'_, PyAny>) -> PyResult<u8> {
        self.writable()?;
        if !self.make_room(py)? {
            return Ok(NO_ROOM);
        }
        let data = contents(data)?;
        let (at_once, head) = (self.goes_at_once(), frame_head(kind, data.len() as u64));
        if data.len() < JOINED_MAX {
            return self.take(py, Cow::Owned([&head, &*data].concat()), at_once);
        }
        self.outgoing.push(Cow::Owned(head));
        self.take(py, data, at_once)
    }

    fn write_nowait(&mut self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.writable()?;
        let data = contents(data)?;
        let at_once = self.goes_at_once();
        let mut taken = 0;
        while taken < data.len() && self.make_room(py)? {
            let end = data.len().min(taken + LIMIT - self.outgoing.len());
            self.outgoing.push(data[taken..end].into());
            taken = end;
        }
        if at_once {
            self.mark_turn();
            self.push(py)?;
        }
        Ok(taken)
    }

    fn flush(&mut self, py: Python<'_>) -> PyResult<bool> {
        guard::check()?;
        self.owed = false;
        if self.state == State::Reset {
            return Ok(true);
        }
        if let Some(failure) = &self.failed {
            return Err(exception(failure.clone()));
        }
        self.push(py)?;
        self.finish_if_empty(py)?;
        Ok(self.outgoing.is_empty())
    }

    fn room(&mut self, py: Python<'_>) -> PyResult<bool> {
        guard::check()?;
        // The caller that writes next is told what is wrong.
        Ok(self.writable().is_err() || self.make_room(py).unwrap_or(true))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        match self.state {
            State::Open => {}
            State::Finishing | State::Finished => return Err(PyValueError::new_err("finish after finish")),
            State::Reset => return Err(PyValueError::new_err("finish after reset")),
        }
        self.writable()?;
        self.state = State::Finishing;
        self.push(py)?;
        self.finish_if_empty(py)
    }

    fn reset(&mut self, py: Python<'_>, code: &Bound<'_, PyAny>) -> PyResult<()> {
        guard::check()?;
        let code = argument::<Code>("code", code)?.number(self.kind)?;
        self.outgoing.clear();
        self.state = State::Reset;
        let stream = self.stream.inner();
        py.detach(|| stream.reset(code));
        self.write.wake();
        Ok(())
    }

    fn set_priority(&mut self, py: Python<'_>, priority: &Bound<'_, PyAny>) -> PyResult<()> {
        guard::check()?;
        let Whole(priority) = argument("priority", priority)?;
        let stream = self.stream.inner();
        py.detach(|| stream.set_priority(priority)).map_err(exception)?;
        self.priority = priority;
        self.turns.prefer(&self.write, priority);
        Ok(())
    }

    fn stopped<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        guard::check()?;
        let (slot, stream) = (&self.stopped, self.stream.inner());
        match py.detach(|| stream.poll_stopped(&mut slot.context())) {
            Poll::Pending => Ok(None),
            Poll::Ready(Err(failure)) => Err(exception(failure)),
            Poll::Ready(Ok(None)) => Ok(Some(PyTuple::empty(py))),
            Poll::Ready(Ok(Some(code))) => {
                if self.state != State::Finished {
                    // Who knows that must not be able to write on.
                    self.outgoing.clear();
                    self.failed.get_or_insert(Failure::Stopped(code));
                }
                (code,).into_pyobject(py).map(Some)
            }
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.priority != 0 && guard::check().is_ok() {
            self.turns.prefer(&self.write, 0);
        }
    }
}

/// Bytes of a frame's content that are copied behind its head once more, so that they are one piece.
const JOINED_MAX: usize = 16 << 10;

const NO_ROOM: u8 = 0;
const TAKEN: u8 = 1;
const TAKEN_FLUSH_OWED: u8 = 2;
