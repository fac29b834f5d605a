//! Requests of the program: checked on arrival, perhaps held, then sent under ids of the compositor.
//!
//! Nothing here knows single protocols but by the tables and by [`super::meaning`]; what needs code of its own is in
//! [`Connection::after`] and in the modules that it calls. Invariant: a request is checked in full when it arrives;
//! what a check has accepted can be sent later, because destructors wait for whatever is held before them.

use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;
use wayferry_pixels::{Format, Size, convert};
use wayland_backend::protocol::{AllowNull, ArgumentType, MessageDesc};

use crate::action::End;
use crate::message::{Request, ToApp, WireArg, WireId};
use crate::picture;
use crate::policy::{self, Class, Subject};
use crate::value::{Image, Positioner, RegionOp};
use crate::wire::Arg;

use super::buffers::{Memory, Spec};
use super::connection::{Connection, MAX_WAITING_PIPES, known};
use super::hold::{Claim, Key, Need};
use super::meaning;
use super::objects::{Object, Own, Presence};
use super::ops;
use super::shm::{Part, Told};
use super::surface::Surface;
use super::units::Waiting;

/// How far an object's origins are followed: no protocol nests deeper.
const MAX_ORIGIN_DEPTH: usize = 8;

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On its own in the channel.
    Channel,
    /// In the state of a unit.
    Unit,
}

impl Connection {
    /// Takes in one request: checks it, declares what it makes, then sends or holds it.
    pub(super) fn accept_request(&mut self, request: Request) -> Result<(), End> {
        let desc = self.check_request(&request, Place::Channel)?;
        self.declare_new(&request, desc)?;
        if desc.is_destructor {
            self.objects.doom(request.object);
            // What a commit of the surface above shows is shown first, with all that is in it; and so is what its children show
            // by its own, and what something held builds upon.
            let surface = request.object;
            let is_needed = || {
                self.tree.is_part(surface) || self.applies_children(surface) || self.is_built_upon(surface)
            };
            if self.surfaces.contains_key(&surface) && !is_needed() {
                self.cancel_units(surface);
            }
        }
        let claim = self.claim_request(&request, desc);
        self.note_tree(&request, desc);
        if self.holds.must_wait(&claim) {
            self.hold(claim, Waiting::Request(request));
            return Ok(());
        }
        self.perform(&request)
    }

    /// Whether a held request names a surface, or is not about it and comes between its commits all the same: what is seen of
    /// a child that leaves its window, or of a dialog, depends on them.
    fn is_built_upon(&self, surface: WireId) -> bool {
        let requests = |key| {
            self.holds.keeping(key).filter_map(|held| match held {
                Waiting::Request(request) => Some(request),
                _ => None,
            })
        };
        requests(Key::Use(surface)).any(|request| objects_in(request).any(|id| id == surface))
            || requests(Key::Order(surface)).any(|request| self.surface_of(request.object) != Some(surface))
    }

    /// Whether a request must wait for the compositor to read, for the run loop to take pipes that others have opened in this
    /// turn, or for a turn with time to unpack a picture.
    pub(super) fn lacks_turn(&mut self, request: &Request) -> bool {
        let opens = request.args.iter().any(|arg| matches!(arg, WireArg::Pipe(_)));
        let copies = request.args.iter().any(|arg| matches!(arg, WireArg::Image(_)));
        let lacks = self.is_clogged()
            || (opens && self.waiting_pipes >= MAX_WAITING_PIPES)
            || (copies && self.room.paint == 0);
        self.turn_is_over |= lacks;
        lacks
    }

    /// Whether a request may be sent at all, at this place.
    pub(super) fn check_request(&self, request: &Request, place: Place) -> Result<&'static MessageDesc, End> {
        let Some(object) = self.objects.usable(request.object) else {
            return Err(wrong(format!(
                "request {} to object {}, which does not exist",
                request.opcode, request.object.0
            )));
        };
        let interface = object.interface;
        let Some(desc) = interface.requests.get(usize::from(request.opcode)) else {
            return Err(wrong(format!("{} has no request {}", interface.name, request.opcode)));
        };
        let fault = |what: String| wrong(format!("{}.{}: {what}", interface.name, desc.name));
        if !meaning::crosses(interface, request.opcode, place) {
            let place = if place == Place::Unit { "in a unit's state" } else { "outside a unit" };
            return Err(fault(format!("is not sent {place}")));
        }
        if request.args.len() != desc.signature.len() {
            return Err(fault(format!(
                "{} arguments, expected {}",
                request.args.len(),
                desc.signature.len()
            )));
        }
        let mut interfaces = desc.arg_interfaces.iter();
        for (index, (kind, arg)) in desc.signature.iter().zip(&request.args).enumerate() {
            let expected = match kind {
                ArgumentType::Object(_) => interfaces.next().map(|interface| interface.name),
                _ => None,
            };
            self.check_arg(*kind, expected, arg)
                .map_err(|what| fault(format!("argument {index}: {what}")))?;
            // The compositor maps as much as it is told.
            if let (WireArg::Blob { length, .. }, Some(told)) = (arg, request.args.get(index + 1))
                && *told != WireArg::Uint(*length)
            {
                return Err(fault(format!(
                    "argument {index}: a blob of {length} bytes announced as {told:?}"
                )));
            }
        }
        Ok(desc)
    }

    fn check_arg(&self, kind: ArgumentType, expected: Option<&str>, arg: &WireArg) -> Result<(), String> {
        match (kind, arg) {
            (ArgumentType::Int, WireArg::Int(_))
            | (ArgumentType::Uint, WireArg::Uint(_))
            | (ArgumentType::Fixed, WireArg::Fixed(_))
            | (ArgumentType::Str(AllowNull::Yes), WireArg::Str(None))
            | (ArgumentType::Array, WireArg::Array(_))
            | (ArgumentType::NewId, WireArg::NewId(_))
            | (ArgumentType::Object(AllowNull::Yes), WireArg::Object(WireId::NULL))
            | (ArgumentType::Fd, WireArg::Blob { .. }) => Ok(()),
            (ArgumentType::Str(_), WireArg::Str(Some(text))) if !text.contains(&0) => Ok(()),
            (ArgumentType::Fd, WireArg::Pipe(pipe)) if pipe & 1 == 0 => Ok(()),
            (ArgumentType::Object(_), WireArg::Region(_)) if expected == Some("wl_region") => Ok(()),
            (ArgumentType::Object(_), WireArg::Positioner(_)) if expected == Some("xdg_positioner") => Ok(()),
            (ArgumentType::Object(_), WireArg::Image(image)) if expected == Some("wl_buffer") => {
                let size = Size::new(image.width, image.height).map_err(|error| error.to_string())?;
                if !picture::crosses(size) {
                    return Err(format!("a picture of {}x{}", image.width, image.height));
                }
                Format::from_wl_shm(image.format).ok_or("an unknown pixel format")?;
                Ok(())
            }
            (ArgumentType::Object(_), WireArg::Object(id)) => match self.objects.usable(*id) {
                Some(object)
                    if expected.is_none_or(|name| name == object.interface.name || name == "<anonymous>") =>
                {
                    Ok(())
                }
                Some(object) => {
                    Err(format!("a {}, expected a {}", object.interface.name, expected.unwrap_or_default()))
                }
                None => Err(format!("object {}, which does not exist", id.0)),
            },
            _ => Err(format!("expected {kind:?}")),
        }
    }

    fn declare_new(&mut self, request: &Request, desc: &MessageDesc) -> Result<(), End> {
        let Some(interface) = desc.child_interface else { return Ok(()) };
        let Some(object) = self.objects.usable(request.object) else { return Ok(()) };
        let version = object.version.min(interface.version);
        let presence = if self.is_swallowed(request, desc) { Presence::Inert } else { Presence::Awaited };
        let origin: Vec<WireId> = std::iter::once(request.object).chain(objects_in(request)).collect();
        for arg in &request.args {
            if let WireArg::NewId(id) = arg {
                let origin = origin.clone();
                self.objects.declare(*id, Object { interface, version, presence, doomed: false, origin })?;
            }
        }
        Ok(())
    }

    /// Whether the compositor cannot be asked this: it lacks the object, something that the request needs, or the
    /// request itself.
    fn is_swallowed(&self, request: &Request, desc: &MessageDesc) -> bool {
        let inert = |id| self.objects.of(id).is_none_or(|object| object.presence == Presence::Inert);
        let Some(object) = self.objects.of(request.object) else { return true };
        if object.presence == Presence::Inert || desc.since > object.version {
            return true;
        }
        desc.signature.iter().zip(&request.args).any(|(kind, arg)| match (kind, arg) {
            (ArgumentType::Object(AllowNull::No), WireArg::Object(id)) => inert(*id),
            _ => false,
        })
    }

    /// How a request relates to what is held.
    fn claim_request(&mut self, request: &Request, desc: &MessageDesc) -> Claim {
        let needs = request.args.iter().filter_map(|arg| self.blob_need(arg)).collect();
        let mut claim = Claim { needs, ..Claim::default() };
        if self.lacks_turn(request) {
            claim.needs.push(Need::Turn);
        }
        if self.holds.is_empty() && claim.needs.is_empty() {
            return claim;
        }
        let Some(object) = self.objects.of(request.object) else { return claim };
        let named: Vec<WireId> = std::iter::once(request.object).chain(objects_in(request)).collect();
        claim.waits.extend(named.iter().map(|id| Key::Make(*id)));
        // Held requests to what this one names come first; commits of surfaces only where the table says so.
        let is_surface = |id: &&WireId| self.surfaces.contains_key(id);
        claim.waits.extend(named.iter().filter(|id| !is_surface(id)).map(|id| Key::Order(*id)));
        claim.keeps.push(Key::Order(request.object));
        claim.keeps.extend(named.iter().map(|id| Key::Use(*id)));
        for arg in &request.args {
            if let WireArg::NewId(id) = arg {
                claim.keeps.extend([Key::Make(*id), Key::Reply]);
            }
        }
        let rule = policy::request(object.interface.name, request.opcode);
        let after: Vec<WireId> = rule.after.iter().flat_map(|s| self.subject_surfaces(request, *s)).collect();
        // Order has two sides: what comes behind these commits comes before later ones.
        claim.waits.extend(after.iter().map(|id| Key::Order(*id)));
        claim.keeps.extend(after.iter().map(|id| Key::Order(*id)));
        // What is held for a surface must not be overtaken by its commits.
        let own = self.surface_of(request.object);
        let made = rule.surface.and_then(|subject| self.subject_surfaces(request, subject).pop());
        claim.keeps.extend(made.or(own).map(Key::Order));
        claim.waits.extend(made.map(Key::End));
        claim.waits.extend(named.iter().filter_map(|id| self.surface_of(*id)).map(Key::Unmap));
        if desc.is_destructor {
            claim.waits.push(Key::Use(request.object));
            claim.keeps.extend(own.map(Key::End));
            claim.keeps.extend(object.origin.iter().map(|id| Key::Use(*id)));
            if let ("xdg_toplevel" | "xdg_popup", Some(xdg_surface)) =
                (object.interface.name, object.origin.first())
            {
                // A popup names what it is on by its `xdg_surface`, and must go before that one's role.
                claim.waits.push(Key::Use(*xdg_surface));
            }
        }
        if rule.class == Class::Reply {
            claim.keeps.push(Key::Reply);
        }
        if object.interface.name == "wp_cursor_shape_device_v1" {
            let pointers = object.origin.iter().map(|id| Key::Order(*id));
            claim.waits.extend(pointers.clone());
            claim.keeps.extend(pointers);
        }
        if request.object == WireId::DISPLAY {
            claim.waits = vec![Key::Reply];
        }
        if object.interface.name.starts_with("xdg_toplevel_icon") {
            self.loosen(&mut claim);
        }
        claim
    }

    /// An icon waits for its pixels; windows, other icons and `sync` do not wait for an icon. One whose window has gone by then
    /// is not set.
    fn loosen(&self, claim: &mut Claim) {
        let interface = |id| self.objects.of(id).map(|object| object.interface.name);
        let is_icon = |id| interface(id) == Some("xdg_toplevel_icon_v1");
        let orders = |key: &Key| matches!(key, Key::Order(id) if !is_icon(*id));
        claim.waits.retain(|key| !orders(key));
        let keeps_window = |key: &Key| matches!(key, Key::Use(id) if interface(*id) == Some("xdg_toplevel"));
        claim.keeps.retain(|key| *key != Key::Reply && !orders(key) && !keeps_window(key));
    }

    /// Keeps in mind what is a subsurface of what.
    fn note_tree(&mut self, request: &Request, desc: &MessageDesc) {
        let Some(object) = self.objects.of(request.object) else { return };
        match (object.interface.name, desc.name, request.args.as_slice()) {
            ("wl_subcompositor", "get_subsurface", [_, WireArg::Object(child), WireArg::Object(parent)]) => {
                self.tree.adopt(*child, *parent);
            }
            ("wl_subsurface", "set_sync" | "set_desync", _) => {
                let child = object.origin.get(1).into_iter();
                child.for_each(|child| self.tree.synchronise(*child, desc.name == "set_sync"));
            }
            ("wl_subsurface", "destroy", _) => {
                object.origin.get(1).into_iter().for_each(|child| self.tree.orphan(*child));
            }
            ("wl_surface", "destroy", _) => self.tree.forget(request.object),
            _ => {}
        }
    }

    fn subject_surfaces(&self, request: &Request, subject: Subject) -> Vec<WireId> {
        let one = match subject {
            Subject::This => Some(request.object),
            Subject::Arg(index) => match request.args.get(usize::from(index)) {
                Some(WireArg::Object(id)) => Some(*id),
                _ => None,
            },
            Subject::Above => {
                let surface = self.surface_of(request.object);
                return surface.map(|surface| self.tree.above(surface).collect()).unwrap_or_default();
            }
        };
        one.and_then(|object| self.surface_of(object)).into_iter().collect()
    }

    fn blob_need(&self, arg: &WireArg) -> Option<Need> {
        let hash = match arg {
            WireArg::Blob { hash, .. } => *hash,
            WireArg::Image(image) => image.hash,
            _ => return None,
        };
        self.blobs.of(hash).is_none().then_some(Need::Blob(hash))
    }

    /// The `wl_surface` that an object is, or belongs to by the request that made it.
    pub(super) fn surface_of(&self, object: WireId) -> Option<WireId> {
        self.surface_within(object, MAX_ORIGIN_DEPTH)
    }

    fn surface_within(&self, id: WireId, depth: usize) -> Option<WireId> {
        let object = self.objects.of(id)?;
        if object.interface.name == "wl_surface" {
            return Some(id);
        }
        let depth = depth.checked_sub(1)?;
        object.origin.iter().find_map(|origin| self.surface_within(*origin, depth))
    }

    /// Sends a checked request, with everything that belongs to it.
    pub(super) fn perform(&mut self, request: &Request) -> Result<(), End> {
        let Some(object) = self.objects.of(request.object) else { return Ok(()) };
        let interface = object.interface;
        let Some(desc) = interface.requests.get(usize::from(request.opcode)) else { return Ok(()) };
        let (Some(id), false) = (self.objects.live(request.object), self.is_swallowed(request, desc)) else {
            return self.swallow(request, desc);
        };
        if request.args.iter().any(|arg| self.blob_need(arg).is_some()) {
            // It was here, and has gone because others came.
            return self.swallow(request, desc);
        }
        if self.is_too_much(request) {
            return self.swallow(request, desc);
        }
        let mut temporary = Vec::new();
        // The compositor must see new ids in the order in which they are given away: helpers before the new object.
        let mut args = Vec::with_capacity(request.args.len());
        for arg in &request.args {
            args.push(match arg {
                WireArg::NewId(_) => Arg::NewId(0),
                arg => self.translate(request, arg, &mut temporary)?,
            });
        }
        for (arg, wire) in args.iter_mut().zip(&request.args) {
            if matches!(wire, WireArg::NewId(_)) {
                *arg = self.translate(request, wire, &mut temporary)?;
            }
        }
        self.send(id, request.opcode, args)?;
        for (id, destroy) in temporary {
            self.send(id, destroy, vec![])?;
            self.objects.own_destroyed(id);
        }
        self.after(request, desc)
    }

    /// One argument as the compositor is to see it; objects that stand for values are made first.
    fn translate(
        &mut self,
        request: &Request,
        arg: &WireArg,
        temporary: &mut Vec<(u32, u16)>,
    ) -> Result<Arg, End> {
        Ok(match arg {
            WireArg::Int(value) => Arg::Int(*value),
            WireArg::Uint(value) => Arg::Uint(*value),
            WireArg::Fixed(value) => Arg::Fixed(*value),
            WireArg::Str(text) => Arg::Str(text.clone()),
            WireArg::Array(bytes) => Arg::Array(bytes.clone()),
            // An inert or vanished object is no object; where there must be one, the request was swallowed.
            WireArg::Object(id) => Arg::Object(self.objects.live(*id).unwrap_or(0)),
            WireArg::NewId(id) => Arg::NewId(self.objects.place(*id)?),
            WireArg::Pipe(pipe) => Arg::Fd(self.open_pipe(*pipe)?),
            WireArg::Blob { hash, length } => Arg::Fd(self.blob_fd(*hash, *length)?),
            WireArg::Region(region) => {
                let id = self.make_region(region)?;
                temporary.push((id, ops::REGION_DESTROY));
                Arg::Object(id)
            }
            WireArg::Positioner(positioner) => {
                let id = self.make_positioner(request.object, positioner)?;
                temporary.push((id, ops::POSITIONER_DESTROY));
                Arg::Object(id)
            }
            WireArg::Image(image) => Arg::Object(self.image_buffer(request.object, image)?),
        })
    }

    /// What follows a request that was sent.
    fn after(&mut self, request: &Request, desc: &MessageDesc) -> Result<(), End> {
        for arg in &request.args {
            let WireArg::NewId(id) = arg else { continue };
            let Some(object) = self.objects.of(*id) else { continue };
            match object.interface.name {
                "wl_surface" => {
                    self.updates.create(*id)?;
                    self.surfaces.insert(*id, Surface::new(object.version));
                    self.meet_updates(*id);
                }
                "wl_keyboard" => self.keyboards.add(*id),
                _ => {}
            }
        }
        self.after_placing(request, desc);
        if desc.is_destructor { self.after_destructor(request.object) } else { Ok(()) }
    }

    /// A surface became a subsurface, is placed elsewhere, or is one no longer.
    fn after_placing(&mut self, request: &Request, desc: &MessageDesc) {
        let Some(object) = self.objects.of(request.object) else { return };
        let (child, parent) = match (object.interface.name, desc.name, &object.origin[..]) {
            ("wl_subcompositor", "get_subsurface", _) => match request.args[..] {
                [_, WireArg::Object(child), WireArg::Object(parent)] => (child, Some(parent)),
                _ => return,
            },
            ("wl_subsurface", "destroy", [_, child, ..]) => (*child, None),
            ("wl_subsurface", "set_position" | "place_above" | "place_below", [_, child, parent]) => {
                (*child, Some(*parent))
            }
            _ => return,
        };
        let Some(mut surface) = self.surfaces.remove(&child) else { return };
        self.uncover(&surface);
        surface.parent = parent;
        self.surfaces.insert(child, surface);
    }

    fn after_destructor(&mut self, object: WireId) -> Result<(), End> {
        if let Some(mut surface) = self.surfaces.remove(&object) {
            self.uncover(&surface);
            self.updates.destroy(object);
            self.put_off.retain(|put_off| !put_off.is_of(object));
            for unit in std::mem::take(&mut surface.awaiting) {
                self.tell(&ToApp::Discarded { surface: object, unit });
            }
            for (buffer, busy) in surface.pool.clear() {
                if busy { self.abandon_buffer(buffer)? } else { self.destroy_buffer(buffer)? }
            }
        }
        for buffer in self.images.remove(object) {
            self.abandon_buffer(buffer)?;
        }
        self.keyboards.remove(object);
        self.cursors_forget(object)?;
        if self.objects.destroyed(object) {
            self.tell(&ToApp::Deleted(object));
        }
        Ok(())
    }

    /// Does what a request owes although the compositor never sees it.
    fn swallow(&mut self, request: &Request, desc: &MessageDesc) -> Result<(), End> {
        for arg in &request.args {
            match arg {
                WireArg::NewId(id) => self.objects.make_inert(*id),
                // The program waits for the end of what nobody will write.
                WireArg::Pipe(pipe) => drop(self.open_pipe(*pipe)?),
                _ => {}
            }
        }
        if desc.is_destructor {
            self.cursors_forget(request.object)?;
            self.keyboards.remove(request.object);
            self.objects.abandon(request.object);
            self.tell(&ToApp::Deleted(request.object));
            return Ok(());
        }
        self.emulate(request, desc)
    }

    /// Destroys a buffer that the compositor does not hold.
    pub(super) fn destroy_buffer(&mut self, id: u32) -> Result<(), End> {
        self.send(id, ops::BUFFER_DESTROY, vec![])?;
        self.objects.own_destroyed(id);
        self.shm.give_back(id);
        self.meet_memory();
        Ok(())
    }

    /// Destroys a buffer that the compositor holds, or may: it looks at it until it has heard what was said before.
    fn abandon_buffer(&mut self, id: u32) -> Result<(), End> {
        self.send(id, ops::BUFFER_DESTROY, vec![])?;
        self.objects.own_destroyed(id);
        self.shm.leave(id);
        self.ask_for_memory()
    }

    fn ask_for_memory(&mut self) -> Result<(), End> {
        if !self.shm.ask() {
            return Ok(());
        }
        let callback = self.objects.own(known("wl_callback"), 1, Own::Memory)?;
        self.send(1, ops::DISPLAY_SYNC, vec![Arg::NewId(callback)])
    }

    /// The compositor has heard that buffers are gone.
    pub(super) fn on_memory(&mut self) -> Result<(), End> {
        self.shm.answered();
        self.meet_memory();
        self.ask_for_memory()
    }

    /// There may be room for another buffer.
    pub(super) fn meet_memory(&mut self) {
        if self.shm.has_room() {
            self.holds.meet_buffers();
        }
    }

    /// A pipe whose reading end feeds the app side; gives the writing end.
    fn open_pipe(&mut self, pipe: u64) -> Result<OwnedFd, End> {
        let (read, write) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|_| End::TooMuch("open file descriptors"))?;
        self.pipe_out(pipe, read);
        Ok(write)
    }

    fn blob_fd(&self, hash: u128, length: u32) -> Result<OwnedFd, End> {
        let bytes = self.blobs.of(hash).ok_or_else(|| wrong("a blob that never came".to_owned()))?;
        if bytes.len() != length as usize {
            return Err(wrong(format!("a blob of {} bytes, expected {length}", bytes.len())));
        }
        let filled = Memory::new(bytes.len()).and_then(|memory| {
            memory.write(0, bytes)?;
            memory.share()
        });
        filled.map_err(no_memory)
    }

    fn make_region(&mut self, region: &[RegionOp]) -> Result<u32, End> {
        let version = self.helpers.compositor_version.min(1);
        let id = self.objects.own(known("wl_region"), version, Own::Helper)?;
        self.send(self.helpers.compositor, ops::COMPOSITOR_CREATE_REGION, vec![Arg::NewId(id)])?;
        for op in region {
            let (opcode, x, y, width, height) = match *op {
                RegionOp::Add(x, y, width, height) => (ops::REGION_ADD, x, y, width, height),
                RegionOp::Subtract(x, y, width, height) => (ops::REGION_SUBTRACT, x, y, width, height),
            };
            self.send(id, opcode, ints(&[x, y, width, height]))?;
        }
        Ok(id)
    }

    /// Makes a positioner by the `xdg_wm_base` that the user's object comes from.
    fn make_positioner(&mut self, user: WireId, positioner: &Positioner) -> Result<u32, End> {
        let shell = self.origin_named(user, "xdg_wm_base", MAX_ORIGIN_DEPTH);
        let found =
            shell.and_then(|shell| Some((self.objects.live(shell)?, self.objects.of(shell)?.version)));
        let Some((shell, version)) = found else {
            return Err(wrong("a positioner without an xdg_wm_base".to_owned()));
        };
        let id = self.objects.own(known("xdg_positioner"), version, Own::Helper)?;
        self.send(shell, ops::WM_BASE_CREATE_POSITIONER, vec![Arg::NewId(id)])?;
        let Positioner { size, anchor_rect, anchor, gravity, constraint_adjustment, offset, .. } =
            *positioner;
        if let Some((width, height)) = size {
            self.send(id, ops::POSITIONER_SET_SIZE, ints(&[width, height]))?;
        }
        if let Some((x, y, width, height)) = anchor_rect {
            self.send(id, ops::POSITIONER_SET_ANCHOR_RECT, ints(&[x, y, width, height]))?;
        }
        let values = [
            (ops::POSITIONER_SET_ANCHOR, anchor),
            (ops::POSITIONER_SET_GRAVITY, gravity),
            (ops::POSITIONER_SET_CONSTRAINT_ADJUSTMENT, constraint_adjustment),
        ];
        for (opcode, value) in values {
            if let Some(value) = value {
                self.send(id, opcode, vec![Arg::Uint(value)])?;
            }
        }
        if let Some((x, y)) = offset {
            self.send(id, ops::POSITIONER_SET_OFFSET, ints(&[x, y]))?;
        }
        // xdg-shell, version 3
        if version >= 3 {
            self.set_positioner_3(id, positioner)?;
        }
        Ok(id)
    }

    fn set_positioner_3(&mut self, id: u32, positioner: &Positioner) -> Result<(), End> {
        if positioner.reactive {
            self.send(id, ops::POSITIONER_SET_REACTIVE, vec![])?;
        }
        if let Some((width, height)) = positioner.parent_size {
            self.send(id, ops::POSITIONER_SET_PARENT_SIZE, ints(&[width, height]))?;
        }
        if let Some(serial) = positioner.parent_configure {
            self.send(id, ops::POSITIONER_SET_PARENT_CONFIGURE, vec![Arg::Uint(serial)])?;
        }
        Ok(())
    }

    fn origin_named(&self, id: WireId, interface: &str, depth: usize) -> Option<WireId> {
        let object = self.objects.of(id)?;
        if object.interface.name == interface {
            return Some(id);
        }
        let depth = depth.checked_sub(1)?;
        object.origin.iter().find_map(|origin| self.origin_named(*origin, interface, depth))
    }

    /// A buffer with the pixels of a blob.
    pub(super) fn make_image(&mut self, image: &Image) -> Result<u32, End> {
        let size = Size::new(image.width, image.height).map_err(|error| wrong(error.to_string()))?;
        let Some(format) = Format::from_wl_shm(image.format) else {
            return Err(wrong(format!("pixel format {:#x} is unknown", image.format)));
        };
        let blob = self.blobs.of(image.hash).ok_or_else(|| wrong("an image without its blob".to_owned()))?;
        let content =
            picture::unpack(blob, size, format).map_err(|error| wrong(format!("an image: {error}")))?;
        let (pixels, shown) = (content.pixels(), self.shown_format(format));
        if shown == format {
            return self.make_static_buffer(size, shown, pixels);
        }
        let mut converted = vec![0; size.width() as usize * size.height() as usize * 4];
        convert::row(format, pixels, &mut converted);
        self.make_static_buffer(size, shown, &converted)
    }

    /// A buffer whose pixels never change.
    pub(super) fn make_static_buffer(
        &mut self,
        size: Size,
        format: Format,
        pixels: &[u8],
    ) -> Result<u32, End> {
        let stride = size.width() as usize * format.bytes_per_pixel();
        let (id, part) =
            self.make_buffer(Own::Helper, &Spec { size, format, length: pixels.len(), stride })?;
        part.write(0, pixels).map_err(no_memory)?;
        Ok(id)
    }

    /// A `wl_buffer`, and its part of the memory.
    pub(super) fn make_buffer(&mut self, own: Own, spec: &Spec) -> Result<(u32, Part), End> {
        let (part, told) = self.shm.take(spec.length).map_err(no_memory)?;
        // Sizes are below 2³¹: everything fits.
        match told {
            Told::Nothing => {}
            Told::Begins(fd, size) => {
                let pool = self.objects.own(known("wl_shm_pool"), 1, Own::Helper)?;
                self.shm.begin(&part, pool);
                let args = vec![Arg::NewId(pool), Arg::Fd(fd), Arg::Int(size as i32)];
                self.send(self.helpers.shm, ops::SHM_CREATE_POOL, args)?;
            }
            Told::Grows(size) => {
                self.send(self.shm.pool(&part), ops::SHM_POOL_RESIZE, ints(&[size as i32]))?;
            }
        }
        let id = self.objects.own(known("wl_buffer"), 1, own)?;
        let (pool, offset) = self.shm.name(id, &part);
        let (width, height) = (spec.size.width(), spec.size.height());
        let mut args = vec![Arg::NewId(id)];
        args.extend(ints(&[offset as i32, width as i32, height as i32, spec.stride as i32]));
        args.push(Arg::Uint(spec.format.to_wl_shm()));
        self.send(pool, ops::SHM_POOL_CREATE_BUFFER, args)?;
        Ok((id, part))
    }

    /// The format in which the compositor is given such content.
    pub(super) fn shown_format(&self, format: Format) -> Format {
        if self.formats.contains(&format.to_wl_shm()) { format } else { format.fallback() }
    }
}

/// The objects among a request's arguments.
pub(super) fn objects_in(request: &Request) -> impl Iterator<Item = WireId> {
    request.args.iter().filter_map(|arg| match arg {
        WireArg::Object(id) if *id != WireId::NULL => Some(*id),
        _ => None,
    })
}

pub(super) fn ints(values: &[i32]) -> Vec<Arg> {
    values.iter().map(|value| Arg::Int(*value)).collect()
}

pub(super) fn wrong(what: String) -> End {
    End::PeerViolation(what)
}

pub(super) fn no_memory(_: std::io::Error) -> End {
    End::TooMuch("shared memory for buffers")
}
