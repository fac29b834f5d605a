//! Tablets: a tool shows a cursor, as a pointer does.

use crate::action::End;
use crate::message::WireId;

use super::super::connection::Connection;
use super::super::handler::Handles;

/// `zwp_tablet_tool_v2`.
pub(super) struct TabletTool;

impl Handles for TabletTool {
    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.forget_cursor(object)
    }
}
