//! Pictures of what the compositor shows.

use crate::action::End;
use crate::message::{WireArg, WireId};

use super::super::connection::Connection;
use super::super::handler::{Asked, Event, Handles};

/// `zwlr_screencopy_manager_v1`.
pub(super) struct ScreencopyManager;

impl Handles for ScreencopyManager {
    fn swallowed(&self, connection: &mut Connection, asked: Asked<'_>) -> Result<(), End> {
        if let Some(WireArg::NewId(frame)) = asked.request.args.first() {
            connection.fail_capture(*frame);
        }
        Ok(())
    }
}

/// `zwlr_screencopy_frame_v1`.
pub(super) struct ScreencopyFrame;

impl Handles for ScreencopyFrame {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        match event.name {
            "buffer" => connection.on_capture_told(event.object, event.args),
            "ready" => return connection.on_capture_over(event.object, true),
            "failed" => return connection.on_capture_over(event.object, false),
            _ => {}
        }
        Ok(())
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.forget_capture(object)
    }
}
