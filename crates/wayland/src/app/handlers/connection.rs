//! The connection: registries, `sync`, callbacks.

use crate::wire::Arg;

use super::super::call::Call;
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;

/// `wl_display`.
pub(super) struct Display;

impl Handles for Display {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("sync", [Arg::NewId(id)]) => connection.sync(*id),
            ("get_registry", [Arg::NewId(id)]) => connection.get_registry(*id),
            _ => Ok(()),
        }
    }
}

/// `wl_registry`.
pub(super) struct Registry;

impl Handles for Registry {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        connection.bind(call.id, &args)
    }
}

/// `wl_fixes`.
pub(super) struct Fixes;

impl Handles for Fixes {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("destroy_registry", [Arg::Object(registry)]) => connection.forget(*registry),
            _ => Ok(()),
        }
    }
}

/// `wl_callback`, of a `sync` that was sent on.
pub(super) struct Callback;

impl Handles for Callback {
    fn emitted(&self, connection: &mut Connection, id: u32, _: &str, _: Option<u32>) -> Result<(), Fault> {
        connection.line.sync().on_done(id);
        Ok(())
    }
}
