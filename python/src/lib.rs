//! The native module of the Python package: `wayferry.quic._native`.
//!
//! `wayferry_net::endpoint` behind Python objects that are polled. There is nothing asynchronous in it and nothing of
//! asyncio, which is the package's part; `_native.pyi` says what each call means. Invariants: the engine's thread never
//! touches Python; a lock of the engine is only taken while the interpreter is released, except to drop something; no
//! call blocks, but `Reactor.wait`; and a forked child gets `RuntimeError`.

mod address;
mod buffer;
mod config;
mod connecting;
mod connection;
mod facts;
mod failure;
mod guard;
mod listener;
mod outgoing;
mod reactor;
mod receive;
mod send;
mod tls;
mod value;

use pyo3::prelude::*;

/// The compiled half of `wayferry.quic`.
#[pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        config::Config,
        connecting::{Connecting, Waiting, connect, web_connect},
        connection::Connection,
        listener::{Listener, WebRequest, listen},
        reactor::Reactor,
        receive::ReceiveStream,
        send::SendStream,
        tls::{ClientTls, ServerTls, TicketStore, fingerprint, self_signed},
    };

    /// Says that this process is a forked child.
    #[pyfunction]
    fn mark_forked() {
        crate::guard::mark_forked();
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
