//! Pictures of what the display shows.

use crate::message::WireArg;
use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;

/// `zwlr_screencopy_manager_v1`.
pub(super) struct ScreencopyManager;

impl Handles for ScreencopyManager {
    fn answer(&self, connection: &mut Connection, _: Call, args: &[Plain]) -> Result<(), Fault> {
        match args.first() {
            Some(Plain::NewId(frame)) => connection.emit(*frame, "failed", Vec::new()),
            _ => Ok(()),
        }
    }
}

/// `zwlr_screencopy_frame_v1`.
pub(super) struct ScreencopyFrame;

impl Handles for ScreencopyFrame {
    fn before(&self, connection: &mut Connection, call: Call, args: &mut [Arg]) -> Result<(), Fault> {
        if call.rule.fills.is_some() { connection.check_copy(call, args) } else { Ok(()) }
    }

    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        if call.rule.fills.is_some() { connection.emit(call.id, "failed", Vec::new()) } else { Ok(()) }
    }

    fn hear(&self, connection: &mut Connection, id: u32, name: &str, args: &[WireArg]) -> bool {
        match name {
            "buffer" => connection.on_capture_told(id, args),
            "failed" => return connection.on_capture_failed(id),
            "ready" => {
                connection.on_capture_ready(id, args);
                return false;
            }
            _ => {}
        }
        true
    }
}
