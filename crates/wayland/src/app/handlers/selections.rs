//! Clipboard, primary selection, drag and drop.

use crate::wire::Arg;

use super::super::announced::Announced;
use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::standing::Role;

/// `wl_data_device`.
pub(super) struct DataDevice;

impl Handles for DataDevice {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        crossed: bool,
    ) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("start_drag", [Plain::Object(source), _, Plain::Object(icon), _]) => {
                connection.set_role(Some(*icon), Role::Cursor);
                if crossed {
                    let source = connection.objects.name(*source);
                    connection.devices.clipboard().drag(source);
                }
            }
            ("set_selection", [Plain::Object(source), _]) if crossed => select(connection, call, *source),
            _ => {}
        }
        Ok(())
    }

    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        match call.desc.name {
            "set_selection" | "start_drag" => cancel(connection, args),
            _ => Ok(()),
        }
    }

    fn tell(&self, announced: &mut Announced, id: u32, name: &str, _: &[Arg]) {
        if name == "drop" {
            announced.end_all(id);
        }
    }
}

/// `zwp_primary_selection_device_v1`.
pub(super) struct PrimaryDevice;

impl Handles for PrimaryDevice {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        args: &[Plain],
        crossed: bool,
    ) -> Result<(), Fault> {
        if let ("set_selection", [Plain::Object(source), _], true) = (call.desc.name, args, crossed) {
            select(connection, call, *source);
        }
        Ok(())
    }

    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        if call.desc.name == "set_selection" { cancel(connection, args) } else { Ok(()) }
    }
}

fn select(connection: &mut Connection, call: Call, source: u32) {
    let (device, source) = (connection.objects.name(call.id), connection.objects.name(source));
    device.into_iter().for_each(|device| connection.devices.clipboard().select(device, source));
}

/// A selection or a drag that no display has got.
fn cancel(connection: &mut Connection, args: &[Plain]) -> Result<(), Fault> {
    match args.first() {
        Some(Plain::Object(source)) if *source != 0 => connection.emit(*source, "cancelled", Vec::new()),
        _ => Ok(()),
    }
}

/// Every kind of source.
pub(super) struct Source;

impl Handles for Source {
    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        if matches!(name, "cancelled" | "dnd_finished")
            && let Some(name) = connection.objects.name(id)
        {
            connection.devices.clipboard().forget(name);
            connection.unkeep(name);
        }
        Ok(())
    }
}
