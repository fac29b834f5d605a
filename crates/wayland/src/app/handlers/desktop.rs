//! What windows ask of the desktop around them.

use wayland_backend::protocol::Interface;

use crate::tables;
use crate::wire::Arg;

use super::super::call::{Call, Plain};
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;
use super::super::object::Data;

/// `zxdg_exporter_v2`.
pub(super) struct Exporter;

impl Handles for Exporter {
    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("export_toplevel", [Plain::NewId(id), ..]) => {
                connection.emit(*id, "handle", vec![Arg::Str(Some(b"wayferry".to_vec()))])
            }
            _ => Ok(()),
        }
    }
}

/// `zxdg_importer_v2`.
pub(super) struct Importer;

impl Handles for Importer {
    fn answer(&self, connection: &mut Connection, call: Call, args: &[Plain]) -> Result<(), Fault> {
        match (call.desc.name, args) {
            ("import_toplevel", [Plain::NewId(id), ..]) => connection.emit(*id, "destroyed", Vec::new()),
            _ => Ok(()),
        }
    }
}

/// `xdg_activation_token_v1`.
pub(super) struct ActivationToken;

impl Handles for ActivationToken {
    fn forwarded(
        &self,
        connection: &mut Connection,
        call: Call,
        _: &[Plain],
        crossed: bool,
    ) -> Result<(), Fault> {
        if call.desc.name == "commit" && crossed {
            connection.objects.set_data(call.id, Data::Token);
        }
        Ok(())
    }

    fn answer(&self, connection: &mut Connection, call: Call, _: &[Plain]) -> Result<(), Fault> {
        if call.desc.name == "commit" { connection.tell_token(call.id) } else { Ok(()) }
    }

    fn note(&self, connection: &mut Connection, id: u32, name: &str, _: &mut [Arg]) -> Result<(), Fault> {
        if name == "done" {
            connection.objects.set_data(id, Data::Plain);
        }
        Ok(())
    }
}

/// `ext_idle_notifier_v1`.
pub(super) struct IdleNotifier;

/// Its first version with notifications that inhibitors do not hold off.
const WITH_INPUT_IDLE: u32 = 2;

impl Handles for IdleNotifier {
    fn opcode_there(&self, connection: &Connection, interface: &Interface, opcode: u16) -> u16 {
        let name = interface.requests.get(usize::from(opcode)).map(|request| request.name);
        // It comes later then, never too early.
        let is_unknown = name == Some("get_input_idle_notification")
            && connection.offering.version("ext_idle_notifier_v1") < WITH_INPUT_IDLE;
        let known = tables::request_opcode(interface, "get_idle_notification").filter(|_| is_unknown);
        known.unwrap_or(opcode)
    }
}
