//! Which interpreter this is.
//!
//! The module keeps its classes and its engine in the process, not in an interpreter, so that only one can use them:
//! the main one. Whether a module is refused elsewhere is not left to Python, as old versions and shared locks let it
//! in.

#![allow(unsafe_code, reason = "nothing safe tells interpreters apart")]

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// `ImportError` but in the main interpreter.
pub(crate) fn check(_attached: Python<'_>) -> PyResult<()> {
    // SAFETY: both calls need no more than that this thread is attached to an interpreter, which the token shows; then
    // the first one's result is never null.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err("wayferry.quic works in the main interpreter only, not in subinterpreters"))
}

/// The number that every process begins with.
const MAIN: i64 = 0;
