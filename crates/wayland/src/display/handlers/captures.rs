//! Pictures of what the compositor shows.

use crate::action::End;
use crate::message::WireId;

use super::super::connection::Connection;
use super::super::handler::{Event, Handles};

/// `zwlr_screencopy_frame_v1`.
pub(super) struct ScreencopyFrame;

impl Handles for ScreencopyFrame {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        match event.name {
            "buffer" => connection.on_capture_told(event.object, event.args),
            "ready" => return connection.on_capture_ready(event.object),
            "failed" => return connection.forget_capture(event.object),
            _ => {}
        }
        Ok(())
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.forget_capture(object)
    }
}
