//! Calls of Python from native code.
//!
//! A thread that runs Python while the main one ends the interpreter is ended, by Pythons before 3.14, where it wants
//! the interpreter back: `pthread_exit` unwinds its stack, and the process aborts where that meets Rust. PyO3 keeps
//! such a thread where it attaches again by itself; what Python does inside a call is left to this. Invariant: nothing
//! of this module returns on a thread that is being ended.

#![allow(unsafe_code, reason = "PyO3 declares its calls as ones that never unwind")]

use pyo3::ffi;
use pyo3::prelude::*;

// As Python's headers declare it, in the stable ABI from 3.10 on.
unsafe extern "C-unwind" {
    fn PyObject_CallNoArgs(callable: *mut ffi::PyObject) -> *mut ffi::PyObject;
}

/// Calls `callable` without arguments. A thread that is ended meanwhile stays here for ever.
pub(crate) fn call(py: Python<'_>, callable: &Py<PyAny>) -> PyResult<()> {
    let stay = Stay;
    // SAFETY: the token shows that this thread is attached, and the reference that the callable lives.
    let result = unsafe { PyObject_CallNoArgs(callable.as_ptr()) };
    std::mem::forget(stay);
    // SAFETY: the result is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }.map(drop)
}

/// Does not let the end of a thread pass.
struct Stay;

impl Drop for Stay {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}
