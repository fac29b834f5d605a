//! The native module of the Python package: `wayferry.quic._native`.
//!
//! `wayferry_net::endpoint` behind Python objects that are polled. There is nothing asynchronous in it and nothing of
//! asyncio, which is the package's part; `_native.pyi` says what each call means. Invariants: the engine's thread never
//! touches Python; a lock of the engine is only taken while the interpreter is released, except to drop something; no
//! call blocks, but `Reactor.wait`; and a forked child gets `RuntimeError`.

mod address;
mod buffer;
mod calling;
mod config;
mod connecting;
mod connection;
mod facts;
mod failure;
mod guard;
mod http3;
mod interpreter;
mod listener;
mod outgoing;
mod reactor;
mod receive;
mod send;
mod tls;
mod value;

use pyo3::prelude::*;

use self::connecting::{Connecting, Waiting};
use self::listener::{Listener, WebRequest};
use self::tls::{ClientTls, ServerTls, TicketStore};

/// The compiled half of `wayferry.quic`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // First: to add a class makes it belong to this interpreter.
    interpreter::check(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<config::Config>()?;
    module.add_class::<ClientTls>()?;
    module.add_class::<ServerTls>()?;
    module.add_class::<TicketStore>()?;
    module.add_class::<reactor::Reactor>()?;
    module.add_class::<Connecting>()?;
    module.add_class::<Waiting>()?;
    module.add_class::<Listener>()?;
    module.add_class::<WebRequest>()?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<send::SendStream>()?;
    module.add_class::<receive::ReceiveStream>()?;
    module.add_class::<http3::Http3Reader>()?;
    module.add_function(wrap_pyfunction!(http3::http3_section, module)?)?;
    module.add_function(wrap_pyfunction!(connecting::connect, module)?)?;
    module.add_function(wrap_pyfunction!(connecting::web_connect, module)?)?;
    module.add_function(wrap_pyfunction!(listener::listen, module)?)?;
    module.add_function(wrap_pyfunction!(tls::self_signed, module)?)?;
    module.add_function(wrap_pyfunction!(tls::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(guard::mark_forked, module)?)
}
