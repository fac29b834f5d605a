//! The settings of connections and listeners.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use wayferry_net::endpoint::{self, Congestion};

use crate::failure::exception;
use crate::value::{Seconds, Whole, keyword};

/// Checked settings.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct Config(pub(crate) endpoint::Config);

#[pymethods]
impl Config {
    #[new]
    #[pyo3(
        signature = (**settings),
        text_signature = "(*, idle_timeout, keep_alive, handshake_timeout, congestion, datagrams, bi_streams, \
            uni_streams, stream_window, connection_window, send_window, datagram_buffer, udp_buffer, half_open, \
            keylog, qlog_dir)"
    )]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let none = PyDict::new(py);
        let settings = settings.unwrap_or(&none);
        let time =
            |name| keyword::<Option<Seconds>>(settings, name).map(|time| time.map(|Seconds(time)| time));
        let small = |name| keyword::<Whole<u32>>(settings, name).map(|Whole(number)| number);
        let large = |name| keyword::<Whole<usize>>(settings, name).map(|Whole(number)| number);
        let config = endpoint::Config {
            idle_timeout: time("idle_timeout")?,
            keep_alive: time("keep_alive")?,
            handshake_timeout: keyword::<Seconds>(settings, "handshake_timeout")?.0,
            congestion: controller(&keyword::<String>(settings, "congestion")?)?,
            datagrams: keyword(settings, "datagrams")?,
            bi_streams: small("bi_streams")?,
            uni_streams: small("uni_streams")?,
            stream_window: small("stream_window")?,
            connection_window: small("connection_window")?,
            send_window: small("send_window")?,
            datagram_buffer: large("datagram_buffer")?,
            udp_buffer: large("udp_buffer")?,
            keylog: keyword(settings, "keylog")?,
            qlog: keyword(settings, "qlog_dir")?,
            half_open: large("half_open")?,
        };
        config.check().map_err(exception)?;
        Ok(Self(config))
    }
}

fn controller(name: &str) -> PyResult<Congestion> {
    match name {
        "cubic" => Ok(Congestion::Cubic),
        "newreno" => Ok(Congestion::NewReno),
        "bbr3" => Ok(Congestion::Bbr3),
        "copa" => Ok(Congestion::Copa),
        _ => {
            let choice = "`cubic`, `newreno`, `bbr3` and `copa`";
            Err(PyValueError::new_err(format!(
                "congestion: there is no controller {name:?}; there are {choice}"
            )))
        }
    }
}
