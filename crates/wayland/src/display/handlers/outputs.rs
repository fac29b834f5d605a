//! Outputs: their scale is the one for which this side draws.

use crate::action::End;
use crate::message::WireId;
use crate::wire::Arg;

use super::super::connection::Connection;
use super::super::handler::{Event, Handles};

/// `wl_output`.
pub(super) struct Output;

impl Handles for Output {
    fn event(&self, connection: &mut Connection, event: Event<'_>) -> Result<(), End> {
        if let ("scale", [Arg::Int(scale)]) = (event.name, event.args) {
            connection.state.cursors.set_scale(event.object, *scale);
        }
        Ok(())
    }

    fn ended(&self, connection: &mut Connection, object: WireId) -> Result<(), End> {
        connection.state.cursors.forget_output(object);
        Ok(())
    }
}
