//! Figures of connections, as dictionaries. Times are in seconds, sizes in bytes.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wayferry_net::endpoint::{PathInfo, Stats};

use crate::address::pair;

/// What a connection has done so far.
pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("rtt", stats.rtt.as_secs_f64())?;
    let numbers = [
        ("congestion_window", stats.congestion_window),
        ("mtu", u64::from(stats.mtu)),
        ("sent_datagrams", stats.sent_datagrams),
        ("sent_bytes", stats.sent_bytes),
        ("received_datagrams", stats.received_datagrams),
        ("received_bytes", stats.received_bytes),
        ("sent_packets", stats.sent_packets),
        ("lost_packets", stats.lost_packets),
        ("lost_bytes", stats.lost_bytes),
        ("congestion_events", stats.congestion_events),
        ("sent_stream_frames", stats.sent_stream_frames),
        ("received_stream_frames", stats.received_stream_frames),
        ("sent_datagram_frames", stats.sent_datagram_frames),
        ("received_datagram_frames", stats.received_datagram_frames),
        ("dropped_datagrams", stats.dropped_datagrams),
        ("acks_received", stats.acks_received),
    ];
    for (name, number) in numbers {
        facts.set_item(name, number)?;
    }
    Ok(facts)
}

/// What one path is like.
pub(crate) fn path<'py>(py: Python<'py>, path: &PathInfo) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("remote_addr", pair(path.remote))?;
    facts.set_item("rtt", path.rtt.as_secs_f64())?;
    let numbers = [
        ("id", path.id),
        ("congestion_window", path.congestion_window),
        ("mtu", u64::from(path.mtu)),
        ("sent_bytes", path.sent_bytes),
        ("received_bytes", path.received_bytes),
        ("lost_packets", path.lost_packets),
    ];
    for (name, number) in numbers {
        facts.set_item(name, number)?;
    }
    Ok(facts)
}
