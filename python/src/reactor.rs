//! The list of tokens that are ready, and the descriptor that an event loop watches for it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Instant;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use wayferry_net::endpoint::{self, Cork, Ready, Token};

use crate::value::Seconds;
use crate::{calling, guard};

/// What the objects of one event loop share.
pub(crate) struct Turns {
    ready: Arc<Ready>,
    begun: Instant,
    /// When something was last asked to be sent; microseconds since `begun`.
    touched: AtomicU64,
    turn: AtomicU64,
    /// The turn after the last one in which something was sent.
    sent: AtomicU64,
    /// Holds back the small things of a turn.
    cork: Cork,
    /// Bytes that QUIC was handed, or gave, since the cork began to hold or was last let go.
    handed: AtomicUsize,
    /// How often something was handed to QUIC in this turn after its first.
    followed: AtomicUsize,
    /// Whether that was often in the turn before.
    busy: AtomicBool,
    /// Whether this turn's things are held back.
    holds: AtomicBool,
    /// Since when; microseconds since `begun`.
    since: AtomicU64,
    /// Has the loop end this turn soon; what it calls does not keep the reactor.
    end_soon: Py<PyAny>,
    /// What the end of the turn raises.
    failed: Mutex<Option<PyErr>>,
    closed: AtomicBool,
    /// Of tokens that are not as important as others, 0. Locked with the interpreter attached only.
    priorities: Mutex<HashMap<u64, i32>>,
}

impl Turns {
    /// A number for the loop's present turn. One ends when the list is drained, by [`Turns::end`], or when nothing was
    /// sent for [`QUIET`]: a program that only sends drains nothing.
    pub(crate) fn turn(&self) -> u64 {
        let now = self.now();
        if now.saturating_sub(self.touched.swap(now, Ordering::Relaxed)) > QUIET {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
        self.turn.load(Ordering::Relaxed)
    }

    /// Runs `send`, with the interpreter released, which hands `bytes` to QUIC. When that is little, and the first of
    /// this turn, it leaves on this thread, before the engine's would have woken up; all else of the turn is held back
    /// until its end, or until it is much, or late.
    pub(crate) fn hand_over<T: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        send: impl FnOnce() -> T + Send,
    ) -> T {
        let first = self.is_first();
        let begins = !first && !self.holds.load(Ordering::Relaxed);
        let output = py.detach(|| {
            self.sent.store(self.turn() + 1, Ordering::Relaxed);
            if first && bytes <= PROMPT_MAX {
                return self.promptly(send);
            }
            if first {
                let output = send();
                self.let_go(false);
                return output;
            }
            if begins {
                self.hold();
            }
            self.followed.fetch_add(1, Ordering::Relaxed);
            let output = send();
            self.count(bytes);
            output
        });
        if begins {
            self.end_soon(py);
        }
        output
    }

    /// Runs `send`; what that gives the connection to do leaves before this returns, with what waits.
    pub(crate) fn promptly<T>(&self, send: impl FnOnce() -> T) -> T {
        let output = endpoint::promptly(send);
        self.let_go(true);
        output
    }

    /// Whether nothing was handed to QUIC in this turn, and its first need not wait for others.
    pub(crate) fn is_first(&self) -> bool {
        self.sent.load(Ordering::Relaxed) != self.turn() + 1
    }

    /// Runs `ask`, with the interpreter released, which may give QUIC something to do that is in no hurry, as who reads
    /// permits more: it is held back until the end of the turn. `size` gives the bytes that were read.
    pub(crate) fn ask<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce() -> T + Send,
        size: impl FnOnce(&T) -> usize + Send,
    ) -> T {
        let begins = !self.holds.load(Ordering::Relaxed);
        let (output, begins) = py.detach(|| {
            if begins {
                self.cork.hold();
            }
            let output = ask();
            let begins = begins && self.cork.keeps_holding();
            if begins {
                self.note_held();
            }
            self.count(size(&output));
            (output, begins)
        });
        if begins {
            self.end_soon(py);
        }
        output
    }

    /// Counts what this turn has handed to QUIC or taken from it; what is much or late goes to the engine's thread.
    fn count(&self, bytes: usize) {
        let handed = self.handed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let holds = self.holds.load(Ordering::Relaxed);
        if holds && self.now().saturating_sub(self.since.load(Ordering::Relaxed)) > LATE {
            // The turn is long, or nothing ends it: what comes next begins anew, and asks for the end.
            self.holds.store(false, Ordering::Relaxed);
            self.let_go(false);
        } else if holds && handed > CORK_MAX {
            self.let_go(false);
        }
    }

    /// Has the loop end this turn soon. What was asked for is done by now, so that no error may hide its outcome:
    /// what is to end the program is raised by the end of the turn, and the rest reported.
    fn end_soon(&self, py: Python<'_>) {
        let Err(mut error) = calling::call(py, &self.end_soon) else { return };
        if !error.is_instance_of::<PyException>(py) {
            *self.failed() = Some(error);
            let Err(other) = calling::call(py, &self.end_soon) else { return };
            error = self.failed().take().unwrap_or(other);
        }
        py.detach(|| self.end());
        error.write_unraisable(py, None);
    }

    /// Holds back what this turn hands to QUIC until [`Turns::end`]; the first too, if the turn before was busy.
    fn hold(&self) {
        if self.busy.load(Ordering::Relaxed) {
            self.sent.store(self.turn() + 1, Ordering::Relaxed);
        }
        self.note_held();
        self.cork.hold();
    }

    fn note_held(&self) {
        self.holds.store(true, Ordering::Relaxed);
        self.handed.store(0, Ordering::Relaxed);
        self.since.store(self.now(), Ordering::Relaxed);
    }

    /// Lets go what waits, and holds back what comes if it did before. `here`: on this thread.
    fn let_go(&self, here: bool) {
        self.handed.store(0, Ordering::Relaxed);
        self.cork.release(here);
        if self.holds.load(Ordering::Relaxed) {
            self.cork.hold();
        }
    }

    /// Lets go what waits for the end of the turn, on this thread. Another begins, unless this one was busy: then the
    /// next is too, as a rule, and its first waits for others.
    pub(crate) fn end(&self) {
        let busy = self.followed.swap(0, Ordering::Relaxed) >= BUSY;
        self.busy.store(busy, Ordering::Relaxed);
        self.turn.fetch_add(u64::from(!busy), Ordering::Relaxed);
        self.holds.store(false, Ordering::Relaxed);
        // No more: another thread, which drops a connection, may be here while the loop's begins a turn.
        self.cork.release(true);
    }

    /// No caller will end a turn any more.
    fn close(&self) {
        self.ready.close();
        self.holds.store(false, Ordering::Relaxed);
        self.cork.release(false);
    }

    /// Has `slot` drained before those with a lower priority that became ready with it, so that it gets the room that
    /// they wait for.
    pub(crate) fn prefer(&self, slot: &Slot, priority: i32) {
        let mut priorities = self.priorities();
        if priority == 0 {
            priorities.remove(&slot.token);
        } else {
            priorities.insert(slot.token, priority);
        }
    }

    /// Microseconds since `begun`.
    fn now(&self) -> u64 {
        self.begun.elapsed().as_micros() as u64
    }

    fn failed(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn priorities(&self) -> MutexGuard<'_, HashMap<u64, i32>> {
        self.priorities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the loop drains, for those that belong to it.
    pub(crate) fn ready(&self) -> &Arc<Ready> {
        &self.ready
    }

    /// A fresh token.
    pub(crate) fn slot(&self) -> Slot {
        let token = self.ready.token();
        Slot { token: token.0, waker: self.ready.waker(token) }
    }
}

/// A cork that is dropped wakes what it holds, which takes locks of the engine, and so does the list, which also tells
/// the system whose sockets it watches; in a forked child the locks may be held for ever, and the parent has the
/// sockets.
impl Drop for Turns {
    fn drop(&mut self) {
        if guard::is_forked() {
            std::mem::forget((std::mem::take(&mut self.cork), Arc::clone(&self.ready)));
        }
    }
}

/// One kind of waiting of one object.
pub(crate) struct Slot {
    /// What names it.
    pub(crate) token: u64,
    waker: Waker,
}

impl Slot {
    /// What an operation is polled with, so that it makes the token ready later.
    pub(crate) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Makes the token ready now.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }
}

/// The tokens of one event loop.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct Reactor(Arc<Turns>);

impl Reactor {
    pub(crate) fn turns(&self) -> Arc<Turns> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Reactor {
    #[new]
    fn new(end_soon: Py<PyAny>) -> PyResult<Self> {
        guard::check()?;
        guard::mark_used();
        Ok(Self(Arc::new(Turns {
            ready: Ready::new()?,
            begun: Instant::now(),
            touched: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            cork: Cork::default(),
            handed: AtomicUsize::new(0),
            followed: AtomicUsize::new(0),
            busy: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            since: AtomicU64::new(0),
            end_soon,
            failed: Mutex::default(),
            closed: AtomicBool::new(false),
            priorities: Mutex::default(),
        })))
    }

    fn fileno(&self) -> PyResult<RawFd> {
        guard::check()?;
        Ok(self.0.ready.as_fd().as_raw_fd())
    }

    fn drain(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        guard::check()?;
        self.0.turn.fetch_add(1, Ordering::Relaxed);
        let mut tokens = Vec::new();
        py.detach(|| {
            self.0.ready.drain(&mut tokens);
            if tokens.len() > 1 {
                self.0.hold();
            }
        });
        let priorities = self.0.priorities();
        if !priorities.is_empty() {
            tokens.sort_by_key(|Token(token)| Reverse(priorities.get(token).copied().unwrap_or(0)));
        }
        Ok(tokens.into_iter().map(|Token(token)| token).collect())
    }

    fn hold(&self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        py.detach(|| self.0.hold());
        Ok(())
    }

    fn end_turn(&self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        py.detach(|| self.0.end());
        let failed = self.0.failed().take();
        failed.map_or(Ok(()), Err)
    }

    fn wait(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<bool> {
        guard::check()?;
        let woken = py.detach(|| self.0.ready.wait(timeout.map(|Seconds(time)| time)));
        Ok(woken && !self.0.closed.load(Ordering::Acquire))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guard::check()?;
        self.0.closed.store(true, Ordering::Release);
        py.detach(|| self.0.close());
        Ok(())
    }
}

/// No caller can drain it any more, and tokens on the list would keep the list alive.
impl Drop for Reactor {
    fn drop(&mut self) {
        if guard::check().is_ok() {
            self.0.close();
        }
    }
}

/// Bytes that a loop's thread encrypts and sends itself: a few packets.
const PROMPT_MAX: usize = 4 << 10;
/// Bytes of one turn from which on the engine's thread encrypts and sends beside this one, which goes on writing.
const CORK_MAX: usize = 64 << 10;
/// Things that follow the first of a turn which is busy.
const BUSY: usize = 8;
/// Microseconds after which what is held back goes to the engine's thread: the turn is long.
const LATE: u64 = 5000;
/// Microseconds: the writes of one turn are closer to each other, as a rule, and those of a program that sends by a
/// clock are not.
const QUIET: u64 = 1000;
