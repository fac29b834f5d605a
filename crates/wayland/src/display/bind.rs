//! The start of a connection, and globals that are bound: for this side itself, and for the program.
//!
//! Invariant: a program's messages are handled only once the compositor has listed its globals and its formats.

use wayferry_proto::Time;

use crate::action::End;
use crate::message::WireId;
use crate::tables::{self, Access};
use crate::wire::Arg;

use super::connection::Connection;
use super::globals::{Global, Stage};
use super::objects::{Object, Own, Presence};
use super::ops::{self, known};

impl Connection {
    pub(super) fn begin(&mut self) -> Result<(), End> {
        let registry = self.objects.own(known("wl_registry"), 1, Own::Registry)?;
        self.globals.helpers.registry = registry;
        self.send(1, ops::DISPLAY_GET_REGISTRY, vec![Arg::NewId(registry)])?;
        self.sync_start()
    }

    fn sync_start(&mut self) -> Result<(), End> {
        let callback = self.objects.own(known("wl_callback"), 1, Own::Start)?;
        self.send(1, ops::DISPLAY_SYNC, vec![Arg::NewId(callback)])
    }

    /// A step of the start is over.
    pub(super) fn on_start(&mut self, now: Time) -> Result<(), End> {
        match self.globals.stage {
            Stage::Registry => {
                self.bind_helpers()?;
                self.globals.stage = Stage::Formats;
                self.sync_start()
            }
            Stage::Formats => {
                self.globals.stage = Stage::Running;
                while let Some((cost, message)) = self.intake.undefer() {
                    self.handle(now, cost, message)?;
                }
                Ok(())
            }
            Stage::Running => Ok(()),
        }
    }

    fn bind_helpers(&mut self) -> Result<(), End> {
        let lacks = |name: &str| End::CompositorError(format!("it has no {name}"));
        let compositor = self.bind_own("wl_compositor", 4, Own::Helper)?;
        (self.globals.helpers.compositor, self.globals.helpers.compositor_version) =
            compositor.ok_or_else(|| lacks("wl_compositor"))?;
        (self.globals.helpers.shm, _) =
            self.bind_own("wl_shm", 1, Own::Shm)?.ok_or_else(|| lacks("wl_shm"))?;
        let presentation = self.bind_own("wp_presentation", 1, Own::Presentation)?;
        self.globals.helpers.presentation = presentation.map(|(id, _)| id);
        let subcompositor = self.bind_own("wl_subcompositor", 1, Own::Helper)?;
        self.globals.helpers.subcompositor = subcompositor.map(|(id, _)| id);
        let viewporter = self.bind_own("wp_viewporter", 1, Own::Helper)?;
        self.globals.helpers.viewporter = viewporter.map(|(id, _)| id);
        Ok(())
    }

    /// Binds a global for the display side's own use; gives its id and version.
    fn bind_own(&mut self, name: &str, cap: u32, own: Own) -> Result<Option<(u32, u32)>, End> {
        let Some(global) = self.globals.of(name).cloned() else {
            return Ok(None);
        };
        let version = cap.min(global.version);
        let id = self.objects.own(known(name), version, own)?;
        self.send_bind(&global, version, id)?;
        Ok(Some((id, version)))
    }

    fn send_bind(&mut self, global: &Global, version: u32, id: u32) -> Result<(), End> {
        let interface = global.interface.clone().into_bytes();
        let args =
            vec![Arg::Uint(global.name), Arg::Str(Some(interface)), Arg::Uint(version), Arg::NewId(id)];
        self.send(self.globals.helpers.registry, ops::REGISTRY_BIND, args)
    }

    pub(super) fn bind(&mut self, name: u32, interface: &str, version: u32, id: WireId) -> Result<(), End> {
        let Some(known) = tables::global(interface) else {
            return Err(End::PeerViolation(format!("`{}` is no known global", printable(interface))));
        };
        let table = known.interface();
        let mut object = Object::new(table, version, Presence::Inert, Vec::new());
        let found = self.globals.named(name, interface).filter(|_| self.may_bind(known));
        let Some(global) = found.cloned() else { return self.objects.declare(id, object) };
        object.version = version.clamp(1, global.version.min(table.version));
        object.presence = Presence::Awaited;
        let version = object.version;
        self.objects.declare(id, object)?;
        let local = self.objects.place(id)?;
        self.send_bind(&global, version, local)
    }

    fn may_bind(&self, global: &tables::Global) -> bool {
        match global.access {
            Access::Offered => true,
            Access::Privileged => {
                self.config.allow.as_ref().is_none_or(|allow| allow.iter().any(|name| name == global.name()))
            }
            Access::Withheld => false,
        }
    }
}

/// Text of the peer, fit for a message to people.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
