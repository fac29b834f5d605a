//! What a program says, kept for another display: births of objects, requests that last, committed state.
//!
//! Says nothing to any display itself. Invariant: what is kept names only objects that the app side named, since the
//! names that a display gives away end with it.

use crate::message::{Request, ToDisplay, WireArg, WireId};
use crate::policy::{self, Again, Handler, Keep, Subject};
use crate::tables;

use super::birth::{Lasting, MAX_KEPT, Message, Past, Tombstone, names};
use super::call::{Call, nullable};
use super::connection::Connection;
use super::fault::Fault;
use super::handlers;
use super::object::{Data, Object, Wanted};
use super::unsent::{Kind, Unsent};

/// Memory that a connection keeps for another display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// The last pixels of all surfaces.
    pub pixels: u64,
    /// Everything else: how objects came to be, and their state.
    pub state: u64,
}

impl Connection {
    /// How much is kept for another display: nothing of it is of use to this one but the pixels.
    pub fn kept(&self) -> Kept {
        let pixels = self.surfaces.values().map(|surface| surface.painter.bytes()).sum();
        let objects: usize = self.objects.iter().map(|(_, object)| object.past.bytes()).sum();
        let surfaces: usize = self.surfaces.values().map(|surface| surface.committed.bytes()).sum();
        Kept { pixels, state: (objects + surfaces + self.keeping.bytes()) as u64 }
    }

    /// [`Kept::state`] of [`Self::kept`].
    pub fn kept_bytes(&self) -> u64 {
        self.kept().state
    }

    /// So many bytes more are kept.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        if self.keeping.grow(bytes) {
            while self.kept_bytes() > MAX_KEPT as u64 {
                if !self.forget_older_pictures() {
                    return Err(Fault::TooMuch("bytes kept for another display"));
                }
            }
        }
        Ok(())
    }

    /// Forgets the older half of the pictures that are kept: windows at another display get no icon then. Returns
    /// whether there were any.
    fn forget_older_pictures(&mut self) -> bool {
        let pasts = self.objects.iter().map(|(_, object)| &object.past).chain(self.keeping.pasts());
        let mut ages: Vec<u64> = pasts.flat_map(Past::pictures).collect();
        ages.sort_unstable();
        let Some(until) = ages.get(ages.len().saturating_sub(1) / 2).copied() else { return false };
        let pasts = self.objects.iter_mut().map(|(_, object)| &mut object.past);
        pasts.chain(self.keeping.pasts_mut()).for_each(|past| past.forget_pictures(until));
        true
    }

    /// Keeps a request: as the birth of what it makes, or because its effect lasts.
    pub(super) fn remember_request(
        &mut self,
        call: Call,
        new_ids: &[u32],
        request: &Request,
    ) -> Result<(), Fault> {
        let blob = self.keeping.take_blob();
        if !names(request).all(WireId::is_app) {
            return Ok(());
        }
        let born = call.desc.child_interface.is_some_and(|child| policy::again(child.name) == Again::Born);
        let slot = match call.rule.keep {
            Keep::Nothing if !born => return Ok(()),
            Keep::Last(slot) => Some(slot),
            Keep::Nothing | Keep::All => None,
        };
        let message = Message::new(&ToDisplay::Request(request.clone()));
        let bytes = message.bytes() + blob.as_ref().map_or(0, |(_, blob)| blob.len());
        for id in new_ids.iter().filter(|_| born) {
            if let Some(object) = self.objects.of_mut(*id) {
                object.past.birth = Some(message.clone());
            }
        }
        if call.rule.keep != Keep::Nothing {
            let keeper = match call.rule.keeper {
                Subject::This => Some(call.id),
                Subject::Arg(index) => match request.args.get(usize::from(index)) {
                    Some(WireArg::Object(name)) => self.objects.by_name(*name),
                    _ => None,
                },
                Subject::Above => None,
            };
            let kept = self.keeping.newest(slot, message, blob);
            if let Some(object) = keeper.and_then(|id| self.objects.of_mut(id)) {
                object.past.keep(kept);
            }
        }
        self.grow(bytes)
    }

    /// Keeps the state of a commit that is applied, its children's included.
    pub(super) fn remember(&mut self, id: u32, unsent: &Unsent) -> Result<(), Fault> {
        for (child, unsent) in &unsent.children {
            self.remember(*child, unsent)?;
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        unsent.stack.iter().for_each(|newer| surface.committed.stack.follow(newer));
        let lasting = unsent.state.iter().filter(|(_, kind)| *kind == Kind::Replaces);
        let bytes = lasting.map(|(request, _)| surface.committed.add(request)).sum();
        self.grow(bytes)
    }

    /// The program destroys an object: what living ones came from is kept as long as they need it.
    pub(super) fn leave_tombstone(&mut self, id: u32) -> Result<(), Fault> {
        let Some(object) = self.objects.of_mut(id) else { return Ok(()) };
        let past = std::mem::take(&mut object.past);
        let Object { interface, handler, version, name, .. } = *object;
        let global = matches!(past.birth.as_ref().and_then(Message::get), Some(ToDisplay::Bind { .. }));
        let needed = global || handler == Handler::Icon;
        let Some(name) = name.filter(|_| needed && past.birth.is_some()) else { return Ok(()) };
        self.grow(past.bytes())?;
        if self.keeping.leave_tombstone(name, Tombstone { interface, version, past }) {
            let living = self.objects.iter().filter(|(_, object)| object.alive);
            self.keeping.sweep(living.flat_map(|(_, object)| object.past.needs()));
        }
        Ok(())
    }

    /// The request as the attached display can take it: what it lacks is null where that may be, else it gets none.
    pub(super) fn addressed(&self, mut request: Request) -> Option<Request> {
        let interface = self.interface_there(request.object)?;
        request.opcode =
            handlers::of(policy::handler(interface.name)).opcode_there(self, interface, request.opcode);
        let desc = interface.requests.get(usize::from(request.opcode))?;
        for (arg, kind) in request.args.iter_mut().zip(desc.signature) {
            if let WireArg::Object(name) = arg
                && *name != WireId::NULL
                && self.interface_there(*name).is_none()
            {
                if !nullable(*kind) {
                    return None;
                }
                *name = WireId::NULL;
            }
        }
        Some(request)
    }

    /// The interface of an object that the attached display has.
    pub(super) fn interface_there(
        &self,
        name: WireId,
    ) -> Option<&'static wayland_backend::protocol::Interface> {
        let living = || self.objects.by_wire(name).and_then(|id| self.objects.alive(id));
        self.keeping.revived(name).or_else(|| living().map(|object| object.interface))
    }

    /// A window's object ends that is not the surface's own.
    pub(super) fn end_role(&mut self, id: u32) -> Result<(), Fault> {
        let surface = self.objects.of(id).and_then(|object| object.surface);
        surface.map_or(Ok(()), |surface| self.revive(surface))
    }

    /// Requests that offer a source are void: it was replaced.
    pub(super) fn unkeep(&mut self, source: WireId) {
        let selects = |kept: &Lasting| {
            let request = kept.message.request().filter(|_| kept.slot.is_some());
            request.is_some_and(|request| request.args.contains(&WireArg::Object(source)))
        };
        for (_, object) in self.objects.iter_mut() {
            object.past.kept.retain(|kept| !selects(kept));
        }
    }

    /// The display has configured a window: what the user made of it there, another display is asked for.
    pub(super) fn note_wanted(&mut self, id: u32, wanted: Wanted) {
        let Some(object) = self.objects.of_mut(id) else { return };
        let before = match object.data {
            Data::Toplevel(before) => before,
            _ => Wanted::default(),
        };
        object.data = Data::Toplevel(wanted);
        let Some(name) = object.name else { return };
        for (slot, before, after, requests) in [
            ("maximized", before.maximized, wanted.maximized, ["unset_maximized", "set_maximized"]),
            ("fullscreen", before.fullscreen, wanted.fullscreen, ["unset_fullscreen", "set_fullscreen"]),
        ] {
            let request = requests[usize::from(after)];
            let Some(opcode) = tables::request_opcode(object.interface, request) else { continue };
            let last = object.past.last(slot);
            // A configure that was on its way when the program asked says nothing.
            if before == after || last.as_ref().is_some_and(|last| last.opcode == opcode) {
                continue;
            }
            let args =
                if request == "set_fullscreen" { vec![WireArg::Object(WireId::NULL)] } else { Vec::new() };
            let message = Message::new(&ToDisplay::Request(Request { object: name, opcode, args }));
            object.past.keep(self.keeping.newest(Some(slot), message, None));
        }
    }

    /// Another one of a role's objects is made for a surface; `over` if no display will ever show it.
    pub(super) fn begin_window(&mut self, surface: Option<u32>, over: bool) {
        let Some(surface) = surface.and_then(|id| self.surfaces.get_mut(&id)) else { return };
        surface.standing.begin(over);
    }
}
