//! Bytes out of Python objects and into them, each with one copy.
//!
//! Anything with the buffer protocol is taken. Nothing of an object is held after the call, so that the caller may
//! change a `bytearray` at once, and no object of Python's is ever dropped by another thread.

use std::borrow::Cow;

use bytes::Bytes;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};

/// The bytes of a bytes-like object; borrowed when it is `bytes`.
///
/// # Errors
///
/// `TypeError` when the object has no buffer, in the words that Python has for it.
pub(crate) fn contents<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let py = data.py();
    if let Ok(buffer) = PyBuffer::<u8>::get(data) {
        return buffer.to_vec(py).map(Cow::Owned);
    }
    // Elements that are no bytes, as those of an array of numbers.
    let Ok(view) = PyMemoryView::from(data) else { return Err(no_buffer(data)) };
    let copy = view.call_method0("tobytes")?;
    Ok(Cow::Owned(copy.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// The pieces as one `bytes` object.
pub(crate) fn joined<'py>(py: Python<'py>, pieces: &[Bytes]) -> PyResult<Bound<'py, PyBytes>> {
    if let [only] = pieces {
        return Ok(PyBytes::new(py, only));
    }
    PyBytes::new_with(py, pieces.iter().map(Bytes::len).sum(), |mut room| {
        for piece in pieces {
            let (place, rest) = room.split_at_mut(piece.len());
            place.copy_from_slice(piece);
            room = rest;
        }
        Ok(())
    })
}

fn no_buffer(data: &Bound<'_, PyAny>) -> PyErr {
    let hint = if data.is_instance_of::<PyString>() { "; text.encode() gives one" } else { "" };
    match data.get_type().qualname() {
        Ok(kind) => PyTypeError::new_err(format!("a bytes-like object is required, not `{kind}`{hint}")),
        Err(error) => error,
    }
}
