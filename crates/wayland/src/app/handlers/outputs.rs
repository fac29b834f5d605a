//! Outputs, as the snapshot tells them.

use crate::wire::Arg;

use super::super::call::Call;
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::Data;

/// `wl_output`.
pub(super) struct Output;

impl Handles for Output {
    fn bound(&self, name: u32) -> Data {
        Data::Output(name)
    }

    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.tell_output(id)
    }
}

/// `zxdg_output_manager_v1`.
pub(super) struct XdgOutputManager;

impl Handles for XdgOutputManager {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("get_xdg_output", [Arg::NewId(id), Arg::Object(output)]) => {
                connection.get_xdg_output(*id, *output)
            }
            _ => Ok(()),
        }
    }
}
