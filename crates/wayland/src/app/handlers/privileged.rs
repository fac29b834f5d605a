//! Layers, and lists of the desktop's windows.

use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::standing::Role;

/// `zwlr_layer_shell_v1`.
pub(super) struct LayerShell;

impl Handles for LayerShell {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        _: bool,
    ) -> Result<(), Fault> {
        if let ("get_layer_surface", [Plain::NewId(layer), Plain::Object(surface), ..]) =
            (call.desc.name, args)
        {
            connection.set_role_object(*surface, *layer);
            connection.set_role(Some(*surface), Role::Configured);
            connection.begin_window(Some(*surface), false);
        }
        Ok(())
    }
}

/// `zwlr_layer_surface_v1`.
pub(super) struct LayerSurface;

impl Handles for LayerSurface {
    fn state(
        &self,
        connection: &mut Connection,
        call: Call,
        surface: Option<u32>,
        args: &[Arg],
    ) -> Result<bool, Fault> {
        Ok(connection.acknowledges(call, surface, args))
    }

    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        if call.desc.name == "destroy" { connection.end_role(call.id) } else { Ok(()) }
    }

    fn emitted(
        &self,
        connection: &mut Connection,
        id: u32,
        name: &str,
        serial: Option<u32>,
    ) -> Result<(), Fault> {
        match (name, serial) {
            ("configure", Some(serial)) => connection.configured(id, serial),
            _ => Ok(()),
        }
    }
}

/// `zwlr_foreign_toplevel_manager_v1`.
pub(super) struct WlrToplevels;

impl Handles for WlrToplevels {
    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        end_list(connection, call);
        Ok(())
    }

    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        if call.desc.name != "stop" {
            return Ok(());
        }
        connection.emit(call.id, "finished", Vec::new())?;
        connection.forget(call.id)
    }
}

/// `ext_foreign_toplevel_list_v1`.
pub(super) struct ExtToplevels;

impl Handles for ExtToplevels {
    fn forwarded(&self, connection: &mut Connection, call: Call, _: &[Plain], _: bool) -> Result<(), Fault> {
        end_list(connection, call);
        Ok(())
    }

    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        if call.desc.name == "stop" { connection.emit(call.id, "finished", Vec::new()) } else { Ok(()) }
    }
}

/// A list that is stopped is not asked for again.
fn end_list(connection: &mut Connection, call: Call) {
    let object = connection.objects.of_mut(call.id).filter(|_| call.desc.name == "stop");
    if let Some(object) = object {
        object.past.birth = None;
    }
}
