//! What went wrong, as the exceptions of `wayferry.quic.errors`.

use std::io;
use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use wayferry_net::endpoint::{By, Failure};

use self::python::{
    ConnectionClosed, DatagramsUnsupported, EarlyDataRejected, QuicError, StreamReset, StreamStopped,
    TlsError, TooLarge, WebTransportRejected,
};

/// The exception that says what `failure` says.
pub(crate) fn exception(failure: Failure) -> PyErr {
    match failure {
        Failure::Closed { code, reason, by } => ConnectionClosed::new_err((code, reason, word(by))),
        Failure::Tls { alert, text } => TlsError::new_err((alert, text)),
        Failure::Reset(code) => StreamReset::new_err(code),
        Failure::Stopped(code) => StreamStopped::new_err(code),
        Failure::StreamGone => PyValueError::new_err("the stream is finished, reset or stopped already"),
        Failure::TooLarge { size, max } => TooLarge::new_err((size, max)),
        Failure::NoDatagrams => DatagramsUnsupported::new_err(()),
        Failure::EarlyDataRejected => EarlyDataRejected::new_err(()),
        Failure::Config(text) => PyValueError::new_err(text),
        Failure::Io(error) => refusal(&error, None),
        Failure::Rejected { status } => WebTransportRejected::new_err(status),
        other => QuicError::new_err(other.to_string()),
    }
}

/// What the system refused, to do with the file `path` if there is one. With these arguments Python finds the class
/// that belongs to the number, as `FileNotFoundError`.
pub(crate) fn refusal(error: &io::Error, path: Option<PathBuf>) -> PyErr {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    match (error.raw_os_error(), path) {
        (Some(number), Some(path)) => PyOSError::new_err((number, text, path.into_os_string())),
        (Some(number), None) => PyOSError::new_err((number, text)),
        (None, _) => PyOSError::new_err(text),
    }
}

/// As `errors.By` spells it.
fn word(by: By) -> &'static str {
    match by {
        By::Local => "local",
        By::Peer => "peer",
        By::Transport => "transport",
        By::Timeout => "timeout",
        By::Reset => "reset",
        By::Refused => "refused",
    }
}

mod python {
    use pyo3::import_exception;

    import_exception!(wayferry.quic.errors, ConnectionClosed);
    import_exception!(wayferry.quic.errors, DatagramsUnsupported);
    import_exception!(wayferry.quic.errors, EarlyDataRejected);
    import_exception!(wayferry.quic.errors, QuicError);
    import_exception!(wayferry.quic.errors, StreamReset);
    import_exception!(wayferry.quic.errors, StreamStopped);
    import_exception!(wayferry.quic.errors, TlsError);
    import_exception!(wayferry.quic.errors, TooLarge);
    import_exception!(wayferry.quic.errors, WebTransportRejected);
}
