//! Tablets: a tool shows a cursor, as a pointer does.

use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::standing::Role;

/// `zwp_tablet_tool_v2`.
pub(super) struct TabletTool;

impl Handles for TabletTool {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        if let ("set_cursor", [_, Plain::Object(surface), ..]) = (call.desc.name, args) {
            connection.set_role(Some(*surface), Role::Cursor);
        }
        Ok(())
    }

    fn end_group(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        let time = connection.clock_ms();
        connection.emit(id, "frame", vec![Arg::Uint(time)])
    }
}
