//! The settings of connections and listeners.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wayferry_net::endpoint::{self, Congestion};

use crate::failure::exception;
use crate::value::{Seconds, Whole};

/// Checked settings.
#[pyclass(module = "wayferry.quic._native", frozen)]
pub(crate) struct Config(pub(crate) endpoint::Config);

#[pymethods]
impl Config {
    #[new]
    #[pyo3(signature = (*, idle_timeout, keep_alive, handshake_timeout, congestion, datagrams, bi_streams, uni_streams,
        stream_window, connection_window, send_window, datagram_buffer, udp_buffer, half_open, keylog, qlog_dir))]
    #[expect(clippy::too_many_arguments, reason = "all by keyword, from one place in the package")]
    fn new(
        idle_timeout: Option<Seconds>,
        keep_alive: Option<Seconds>,
        handshake_timeout: Seconds,
        congestion: &str,
        datagrams: bool,
        bi_streams: Whole<u32>,
        uni_streams: Whole<u32>,
        stream_window: Whole<u32>,
        connection_window: Whole<u32>,
        send_window: Whole<u32>,
        datagram_buffer: Whole<usize>,
        udp_buffer: Whole<usize>,
        half_open: Whole<usize>,
        keylog: Option<PathBuf>,
        qlog_dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let config = endpoint::Config {
            idle_timeout: idle_timeout.map(|Seconds(time)| time),
            keep_alive: keep_alive.map(|Seconds(time)| time),
            handshake_timeout: handshake_timeout.0,
            congestion: controller(congestion)?,
            datagrams,
            bi_streams: bi_streams.0,
            uni_streams: uni_streams.0,
            stream_window: stream_window.0,
            connection_window: connection_window.0,
            send_window: send_window.0,
            datagram_buffer: datagram_buffer.0,
            udp_buffer: udp_buffer.0,
            keylog,
            qlog: qlog_dir,
            half_open: half_open.0,
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
                "there is no congestion controller {name:?}; there are {choice}"
            )))
        }
    }
}
