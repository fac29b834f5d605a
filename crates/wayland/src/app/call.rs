//! A request of the program, or an argument of one, as its handlers get it.
//!
//! Checked already, see `request`.

use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use crate::policy::{Handler, Rule};
use crate::wire::Arg;

/// A request whose object, opcode and arguments have been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) id: u32,
    pub(super) interface: &'static Interface,
    pub(super) handler: Handler,
    pub(super) desc: &'static MessageDesc,
    pub(super) opcode: u16,
    pub(super) version: u32,
    pub(super) rule: &'static Rule,
}

impl Call {
    /// Interface and message, for people.
    pub(super) fn name(&self) -> (&'static str, &'static str) {
        (self.interface.name, self.desc.name)
    }
}

/// An argument that can be looked at after the request has left.
#[derive(Debug, Clone, Copy)]
pub(super) enum Plain {
    NewId(u32),
    Object(u32),
    Uint(u32),
    Other,
}

pub(super) fn plain(arg: &Arg) -> Plain {
    match arg {
        Arg::NewId(id) => Plain::NewId(*id),
        Arg::Object(id) => Plain::Object(*id),
        Arg::Uint(value) => Plain::Uint(*value),
        _ => Plain::Other,
    }
}

/// Whether null may stand for an object.
pub(super) fn nullable(kind: ArgumentType) -> bool {
    matches!(kind, ArgumentType::Object(AllowNull::Yes))
}
