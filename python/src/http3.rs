//! HTTP/3's framing and field sections on a stream that is received (RFC 9114, RFC 9204).
//!
//! What goes with every byte is done here; what HTTP means by it, in `python/wayferry/http3/`. The crate `h3` does not
//! fit between the two: its operations are futures that borrow each other, so one that Python gave up would lose what
//! it had begun, and its tasks would run where no call of Python's polls them. So the modules below are pure: bytes in,
//! frames out.

mod fault;
mod fields;
mod frames;
mod huffman;
mod table;

use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use self::fault::Fault;
use self::fields::{Kind, Section};
use self::frames::{Frame, Frames, Phase};
use crate::buffer::joined;
use crate::receive::ReceiveStream;

/// Takes the frames from one stream.
#[pyclass(module = "wayferry.quic._native")]
pub(crate) struct Http3Reader {
    frames: Frames,
    kind: Kind,
    limit: usize,
    ended: bool,
}

#[pymethods]
impl Http3Reader {
    #[new]
    fn new(of: &str, limit: usize) -> PyResult<Self> {
        let (phase, kind, from_server) = match of {
            "request" => (Phase::Headers, Kind::Request, false),
            "response" => (Phase::Headers, Kind::Response, true),
            "client" => (Phase::Settings, Kind::Trailers, false),
            "server" => (Phase::Settings, Kind::Trailers, true),
            _ => return Err(PyValueError::new_err(format!("there is no stream of a {of:?}"))),
        };
        Ok(Self { frames: Frames::new(phase, from_server, limit), kind, limit, ended: false })
    }

    fn poll(
        &mut self,
        py: Python<'_>,
        stream: &Bound<'_, ReceiveStream>,
        most: usize,
    ) -> PyResult<Option<Py<PyAny>>> {
        let mut stream = stream.try_borrow_mut()?;
        for _ in 0..ROUNDS {
            if let Some(frame) = self.frames.next().map_err(exception)? {
                return self.told(py, frame).map(Some);
            }
            if self.ended {
                self.frames.end().map_err(exception)?;
                return Ok(Some(PyBytes::new(py, b"").into_any().unbind()));
            }
            let Some(pieces) = stream.take(py, most.max(1))? else { return Ok(None) };
            self.ended = pieces.len() == 0;
            pieces.for_each(|piece| self.frames.give(piece));
        }
        // So much that says nothing must not keep the loop from others.
        stream.wake();
        Ok(None)
    }

    fn expect_headers(&mut self) {
        self.frames.expect_headers();
    }
}

impl Http3Reader {
    /// What was read behind the last frame.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        self.frames.rest()
    }

    fn told(&self, py: Python<'_>, frame: Frame) -> PyResult<Py<PyAny>> {
        Ok(match frame {
            Frame::Data(pieces) => joined(py, &pieces)?.into_any().unbind(),
            Frame::Section(section, trailers) => {
                let kind = if trailers { Kind::Trailers } else { self.kind };
                let section = fields::decode(&section, kind, self.limit).map_err(exception)?;
                told(py, &section, trailers)?.into_any().unbind()
            }
            Frame::Settings(settings) => {
                let told = PyDict::new(py);
                settings.into_iter().try_for_each(|(id, value)| told.set_item(id, value))?;
                told.into_any().unbind()
            }
            Frame::GoAway(id) => id.into_pyobject(py)?.into_any().unbind(),
        })
    }
}

/// A field section as it is written, `limit` being the size that the peer takes (RFC 9114 §4.2.2).
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what is borrowed of Python's has to be kept by itself")]
pub(crate) fn http3_section<'py>(
    py: Python<'py>,
    fields: Vec<(PyBackedBytes, PyBackedBytes)>,
    limit: Option<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut size = 0;
    for (name, value) in &fields {
        fields::check(name, value)
            .map_err(|wrong| PyValueError::new_err(format!("{}: {wrong}", name.escape_ascii())))?;
        size += (name.len() + value.len() + fields::LINE) as u64;
    }
    if limit.is_some_and(|limit| size > limit) {
        return Err(PyValueError::new_err(format!(
            "the fields have {size} bytes, and the peer takes {}",
            limit.unwrap_or_default()
        )));
    }
    let section = fields::encode(fields.iter().map(|(name, value)| (&**name, &**value)));
    Ok(PyBytes::new(py, &section))
}

/// What a frame begins with: its type and its length.
pub(crate) fn frame_head(kind: u64, length: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(16);
    frames::put_number(&mut head, kind);
    frames::put_number(&mut head, length);
    head
}

fn told<'py>(py: Python<'py>, section: &Section, trailers: bool) -> PyResult<Bound<'py, PyTuple>> {
    let pseudo = PyDict::new(py);
    for (name, value) in &section.pseudo {
        pseudo.set_item(name, PyBytes::new(py, value))?;
    }
    let fields: Vec<_> = section
        .fields
        .iter()
        .map(|(name, value)| (PyBytes::new(py, name), PyBytes::new(py, value)))
        .collect();
    (pseudo, fields, trailers).into_pyobject(py)
}

fn exception(fault: Fault) -> PyErr {
    python::ProtocolError::new_err((fault.code, fault.text))
}

mod python {
    use pyo3::import_exception;

    import_exception!(wayferry.http3.errors, ProtocolError);
}

/// Times that a poll looks for more bytes when those that came say nothing.
const ROUNDS: u32 = 16;
