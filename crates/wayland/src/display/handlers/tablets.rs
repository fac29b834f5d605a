//! Tablets: a tool shows a cursor, as a pointer does, and touches.

use crate::action::End;
use crate::message::WireId;

use super::super::connection::Connection;
use super::super::handler::{Event, Handles};

/// `zwp_tablet_tool_v2`.
pub(super) struct TabletTool;

impl Handles for TabletTool {
    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.forget_cursor(object)
    }

    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        let touches = ["down", "button"].contains(&event.name);
        if touches { connection.disturb_predictions(event.now) } else { Ok(()) }
    }
}
