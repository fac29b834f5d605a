//! Events of the compositor: some are consumed, the others are translated and sent to the app side in order.
//!
//! Invariant: every descriptor that comes with an event is handed on or closed, and every object that the compositor
//! makes is known to the app side or destroyed.

use std::os::fd::OwnedFd;

use wayferry_proto::Time;
use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use crate::action::End;
use crate::message::{Request, ToApp, WireArg, WireId};
use crate::policy::{self, Fd};
use crate::wire::{self, Arg, RawMessage};

use super::connection::{Connection, DISPLAY_IMPLEMENTATION};
use super::globals::Global;
use super::handler::{Event, Handles};
use super::handlers;
use super::hold::Need;
use super::meaning;
use super::objects::{Local, Own, Role};

impl Connection {
    /// Handles one event.
    pub(super) fn on_event(&mut self, now: Time, raw: &RawMessage) -> Result<(), End> {
        // The compositor may name an object that it has just forgotten: nothing is known of its arguments.
        let Some(local) = self.objects.local(raw.object) else { return Ok(()) };
        let Some(desc) = local.interface.events.get(usize::from(raw.opcode)) else {
            let what = format!("{} has no event {}", local.interface.name, raw.opcode);
            return Err(End::CompositorError(what));
        };
        let args = wire::decode(desc, local.interface, raw, self.link.input.fds_mut())
            .map_err(|error| End::CompositorError(error.to_string()))?;
        if local.gone {
            return self.on_late_event(local, desc, &args);
        }
        if desc.is_destructor {
            self.objects.ended(raw.object);
        }
        match local.role {
            Role::Own(own) => self.on_own_event(now, own, raw.object, desc, args),
            Role::App(wire) => self.on_app_event(now, local, raw, wire, desc, args),
        }
    }

    /// An event of an object that is destroyed: what it makes is destroyed as well.
    fn on_late_event(&mut self, local: Local, desc: &MessageDesc, args: &[Arg]) -> Result<(), End> {
        let Some(interface) = desc.child_interface else { return Ok(()) };
        for arg in args {
            let Arg::NewId(id) = arg else { continue };
            self.objects.adopt_orphan(*id, interface, local.version.min(interface.version))?;
            if let Some(destroy) = plain_destructor(interface) {
                self.send(*id, destroy, vec![])?;
            }
        }
        Ok(())
    }

    fn on_own_event(
        &mut self,
        now: Time,
        own: Own,
        id: u32,
        desc: &MessageDesc,
        args: Vec<Arg>,
    ) -> Result<(), End> {
        match (own, desc.name) {
            (Own::Display, "error") => self.on_error(&args),
            (Own::Display, "delete_id") => {
                if let [Arg::Uint(id)] = args[..]
                    && let Some(wire) = self.objects.deleted(id)
                {
                    self.tell(&ToApp::Deleted(wire));
                }
                Ok(())
            }
            (Own::Registry, "global") => self.on_global(args),
            (Own::Registry, "global_remove") => {
                if let [Arg::Uint(name)] = args[..] {
                    self.globals.remove(name);
                }
                Ok(())
            }
            (Own::Shm, "format") => {
                if let [Arg::Uint(format)] = args[..] {
                    self.globals.add_format(format);
                }
                Ok(())
            }
            (Own::Presentation, "clock_id") => {
                self.globals.helpers.foreign_clock = !matches!(args[..], [Arg::Uint(CLOCK_MONOTONIC)]);
                Ok(())
            }
            (Own::Start, "done") => self.on_start(now),
            (Own::Memory, "done") => self.on_memory(),
            (Own::Frame(surface), "done") => {
                self.on_frame(now, surface);
                Ok(())
            }
            (Own::Feedback(surface, unit), name) => {
                self.on_feedback(now, surface, unit, name, &args);
                Ok(())
            }
            (Own::Leaf, "release") => self.on_leaf_released(now, id),
            (Own::Buffer(surface), "release") => {
                if let Some(surface) = self.surfaces.get_mut(&surface) {
                    surface.pool.released(id);
                }
                self.holds.meet(Need::Buffer(surface));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn on_error(&mut self, args: &[Arg]) -> Result<(), End> {
        let [Arg::Object(object), Arg::Uint(code), Arg::Str(text)] = args else { return Ok(()) };
        let local = self.objects.local(*object);
        let interface = local.map_or("an unknown object", |local| local.interface.name);
        let text = text.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let text: String = text.chars().filter(|c| !c.is_control()).take(MAX_ERROR_CHARS).collect();
        let ended = format!("{interface}: {text}");
        // The program's library reads the code by the interface of the object that it is told.
        let (object, code, message) = match local.map(|local| local.role) {
            Some(Role::App(wire)) => (wire, *code, text),
            Some(Role::Own(Own::Display)) => (WireId::DISPLAY, *code, text),
            Some(Role::Own(_)) | None => (WireId::DISPLAY, DISPLAY_IMPLEMENTATION, ended.clone()),
        };
        self.tell(&ToApp::Fatal { object, code, message });
        Err(End::CompositorError(ended))
    }

    fn on_global(&mut self, args: Vec<Arg>) -> Result<(), End> {
        let Ok([Arg::Uint(name), Arg::Str(Some(interface)), Arg::Uint(version)]) = <[Arg; 3]>::try_from(args)
        else {
            return Ok(());
        };
        let interface = String::from_utf8_lossy(&interface).into_owned();
        self.globals.add(Global { name, interface, version });
        Ok(())
    }

    fn on_frame(&mut self, now: Time, wire: WireId) {
        let Some(surface) = self.surfaces.get_mut(&wire) else { return };
        self.peer.beat = Some(now);
        let appeared = surface.on_frame();
        let wanted = appeared && surface.ask_again();
        let shown = std::mem::take(&mut surface.awaiting);
        if appeared {
            self.tell(&ToApp::Visible { surface: wire, visible: true });
        }
        if wanted {
            self.tell(&ToApp::Refresh { surface: wire });
        }
        let time_ns = self.clock_ns(now);
        for unit in shown {
            self.tell(&ToApp::Presented {
                surface: wire,
                unit,
                time_ns,
                refresh_ns: 0,
                sequence: 0,
                flags: 0,
            });
        }
    }

    fn on_feedback(&mut self, now: Time, surface: WireId, unit: u64, name: &str, args: &[Arg]) {
        match (name, args) {
            (
                "presented",
                [
                    Arg::Uint(seconds_high),
                    Arg::Uint(seconds_low),
                    Arg::Uint(nanos),
                    Arg::Uint(refresh_ns),
                    Arg::Uint(sequence_high),
                    Arg::Uint(sequence_low),
                    Arg::Uint(flags),
                ],
            ) => {
                let seconds = wide(*seconds_high, *seconds_low);
                let told = seconds.saturating_mul(1_000_000_000).saturating_add(u64::from(*nanos));
                let time_ns = if self.globals.helpers.foreign_clock { self.clock_ns(now) } else { told };
                let sequence = wide(*sequence_high, *sequence_low);
                let (refresh_ns, flags) = (*refresh_ns, *flags);
                self.tell(&ToApp::Presented { surface, unit, time_ns, refresh_ns, sequence, flags });
            }
            ("discarded", _) => self.tell(&ToApp::Discarded { surface, unit }),
            _ => {}
        }
    }

    fn on_app_event(
        &mut self,
        now: Time,
        local: Local,
        raw: &RawMessage,
        wire: WireId,
        desc: &MessageDesc,
        args: Vec<Arg>,
    ) -> Result<(), End> {
        let handler = handlers::of(policy::handler(local.interface.name));
        let event = Event { now, id: raw.object, object: wire, name: desc.name, args: &args };
        handler.event(self, event)?;
        if handler.hides(event) || meaning::is_consumed(local.interface, raw.opcode) {
            return Ok(());
        }
        let names_live = |(kind, arg): (&ArgumentType, &Arg)| match (kind, arg) {
            (ArgumentType::Object(AllowNull::No), Arg::Object(id)) => self.named(*id) != WireId::NULL,
            _ => true,
        };
        if !desc.signature.iter().zip(&args).all(names_live) {
            return Ok(());
        }
        let rule = policy::event(local.interface.name, raw.opcode);
        // A blob's size follows its descriptor.
        let size = args.windows(2).find_map(|pair| match (&rule.fd, pair) {
            (Some(Fd::Blob), [Arg::Fd(_), Arg::Uint(size)]) => Some(*size),
            _ => None,
        });
        let mut translated = Vec::with_capacity(args.len());
        for arg in args {
            match self.translate_event_arg(arg, local, wire, desc, size)? {
                Some(arg) => translated.push(arg),
                None => return Ok(()),
            }
        }
        let message = ToApp::Event(Request { object: wire, opcode: raw.opcode, args: translated });
        if self.state.drags.holds(local.interface.name, wire, desc.name) {
            self.state.drags.hold(wire, desc.name, message.encode());
            self.tell_held();
        } else {
            self.tell(&message);
        }
        Ok(())
    }

    /// One argument with its name between the halves; `None` if the event is not news or cannot be read.
    fn translate_event_arg(
        &mut self,
        arg: Arg,
        local: Local,
        wire: WireId,
        desc: &MessageDesc,
        size: Option<u32>,
    ) -> Result<Option<WireArg>, End> {
        Ok(Some(match arg {
            Arg::Int(value) => WireArg::Int(value),
            Arg::Uint(value) => WireArg::Uint(value),
            Arg::Fixed(value) => WireArg::Fixed(value),
            Arg::Str(text) => WireArg::Str(text),
            Arg::Array(bytes) => WireArg::Array(bytes),
            Arg::Object(id) => WireArg::Object(self.named(id)),
            Arg::NewId(id) => {
                let Some(interface) = desc.child_interface else { return Ok(None) };
                let version = local.version.min(interface.version);
                WireArg::NewId(self.objects.adopt(id, interface, version, wire)?)
            }
            Arg::Fd(fd) => match size {
                Some(size) => {
                    let handler = handlers::of(policy::handler(local.interface.name));
                    return Ok(self.take_blob(handler, wire, &fd, size));
                }
                None => WireArg::Pipe(self.peer.pipe_in(fd)),
            },
        }))
    }

    /// The name of an object that an event mentions; null if the app side does not know it.
    fn named(&self, id: u32) -> WireId {
        let wire = self.objects.wire_of(id).filter(|wire| self.objects.of(*wire).is_some());
        wire.unwrap_or(WireId::NULL)
    }

    fn take_blob(
        &mut self,
        handler: &dyn Handles,
        object: WireId,
        fd: &OwnedFd,
        size: u32,
    ) -> Option<WireArg> {
        let bytes = crate::blob::read(fd, size).ok()?;
        let hash = crate::blob::hash(&bytes);
        if !handler.is_news(self, object, hash) {
            return None;
        }
        self.peer.blob(hash, bytes);
        Some(WireArg::Blob { hash, length: size })
    }

    pub(super) fn clock_ns(&self, now: Time) -> u64 {
        let elapsed = u64::try_from(now.since_start().as_nanos()).unwrap_or(u64::MAX);
        self.config.clock_start_ns.saturating_add(elapsed)
    }
}

/// The clock that the app side expects presentation times of.
const CLOCK_MONOTONIC: u32 = 1;

/// Characters of a compositor's complaint that are passed on.
const MAX_ERROR_CHARS: usize = 1024;

/// The request that destroys an object and takes no arguments.
fn plain_destructor(interface: &Interface) -> Option<u16> {
    let index = interface
        .requests
        .iter()
        .position(|desc| desc.is_destructor && desc.signature.is_empty() && desc.since == 1)?;
    u16::try_from(index).ok()
}

fn wide(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}
