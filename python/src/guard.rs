//! What a forked child may do: nothing.
//!
//! `fork` copies the memory of the engine and its locks, but not its thread, so in the child every lock may be held
//! for ever. Each entry into this module asks [`check`] first, and each object of the engine lives in [`Kept`], which
//! leaks it in the child instead of dropping it. A child of a process that never started the engine is free to go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Says that there is something now which a child must not touch.
pub(crate) fn mark_used() {
    USED.store(true, Ordering::Relaxed);
}

/// Says that this process is a forked child.
#[pyfunction]
pub(crate) fn mark_forked() {
    if USED.load(Ordering::Relaxed) {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// `RuntimeError` in a forked child.
pub(crate) fn check() -> PyResult<()> {
    if !is_forked() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "wayferry.quic does not survive os.fork(); start children with the `spawn` method of multiprocessing, \
         or fork before the first use",
    ))
}

/// Whether this process is a forked child that must not touch what there is.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// A value that is leaked, not dropped, in a forked child. Only an exclusive borrow leads to it, so that it may be
/// part of a Python class without being `Sync`.
pub(crate) struct Kept<T>(Option<Mutex<T>>);

impl<T> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(Mutex::new(value)))
    }

    pub(crate) fn inner(&mut self) -> &mut T {
        let value = self.0.as_mut().expect("only dropping empties it");
        value.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        if is_forked() {
            std::mem::forget(value);
        }
    }
}

static USED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
