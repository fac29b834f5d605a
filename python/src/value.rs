//! Arguments that are checked where they come in. What is out of its range is `ValueError`, never `OverflowError`, and
//! an error names the argument.

use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `object` as what the argument `name` has to be.
pub(crate) fn argument<'a, 'py, T>(name: &str, object: &'a Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    object.extract().map_err(|error: PyErr| {
        let py = object.py();
        let text = format!("{name}: {}", error.value(py));
        if error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else if error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            error
        }
    })
}

/// The item `name` of the arguments by keyword, as what it has to be.
pub(crate) fn keyword<T>(arguments: &Bound<'_, PyDict>, name: &str) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>,
{
    let object = arguments.get_item(name)?;
    let object = object.ok_or_else(|| PyTypeError::new_err(format!("{name}: an argument is missing")))?;
    argument(name, &object)
}

/// A whole number that fits into `T`.
#[derive(Clone, Copy)]
pub(crate) struct Whole<T>(pub(crate) T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Whole<T>
where
    T: FromPyObject<'a, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        object.extract().map(Self).map_err(|error| {
            let py = object.py();
            if error.is_instance_of::<PyOverflowError>(py) {
                out_of_range(&object)
            } else if error.is_instance_of::<PyTypeError>(py) {
                not_a("whole number", &object)
            } else {
                error
            }
        })
    }
}

/// An application's error code: 0 to 2^62 − 1 (RFC 9000 §16).
#[derive(Clone, Copy)]
pub(crate) struct Code(u64);

impl Code {
    /// The number, which a WebTransport session has only 32 bits for (draft-ietf-webtrans-http3 §4.4 and §6).
    pub(crate) fn number(self, of: Kind) -> PyResult<u64> {
        match of {
            Kind::Web if self.0 > u64::from(u32::MAX) => {
                Err(PyValueError::new_err(format!("{} is out of range for WebTransport", self.0)))
            }
            _ => Ok(self.0),
        }
    }
}

/// What a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// QUIC itself.
    Raw,
    /// A WebTransport session.
    Web,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Code {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Whole(code) = object.extract::<Whole<u64>>()?;
        if code < 1 << 62 { Ok(Self(code)) } else { Err(out_of_range(&object)) }
    }
}

/// A count of bytes that is not 0.
#[derive(Clone, Copy)]
pub(crate) struct Limit(pub(crate) usize);

impl<'a, 'py> FromPyObject<'a, 'py> for Limit {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Whole(limit) = object.extract::<Whole<usize>>()?;
        if limit > 0 { Ok(Self(limit)) } else { Err(out_of_range(&object)) }
    }
}

/// A time in seconds, 0 or more.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds = object.extract().map_err(|_| not_a("number of seconds", &object))?;
        Duration::try_from_secs_f64(seconds).map(Self).map_err(|_| out_of_range(&object))
    }
}

fn out_of_range(object: &Bound<'_, PyAny>) -> PyErr {
    match object.repr() {
        Ok(text) => PyValueError::new_err(format!("{text} is out of range")),
        Err(error) => error,
    }
}

fn not_a(what: &str, object: &Bound<'_, PyAny>) -> PyErr {
    match object.get_type().qualname() {
        Ok(kind) => PyTypeError::new_err(format!("a {what} is required, not `{kind}`")),
        Err(error) => error,
    }
}
