//! Requests of the program: checked on arrival, perhaps held, then sent under ids of the compositor.
//!
//! Nothing here knows single protocols but by the tables and by [`super::meaning`]; what needs code of its own is in
//! the [`handlers`]. Invariant: a request is checked in full when it arrives; what a check has accepted can be sent
//! later, because destructors wait for what is held before them.

use wayferry_pixels::{Format, Size};
use wayland_backend::protocol::{AllowNull, ArgumentType, MessageDesc};

use crate::action::End;
use crate::message::{Request, ToApp, WireArg, WireId};
use crate::picture;
use crate::policy::{self, Class, Handler, Subject};
use crate::wire::Arg;

use super::connection::{Connection, wrong};
use super::handler::{Asked, Handles};
use super::handlers;
use super::hold::{Claim, Key, Need};
use super::meaning::{self, Place};
use super::objects::{Object, Presence};
use super::ops;
use super::waiting::Waiting;

/// How far an object's origins are followed: no protocol nests deeper.
const MAX_ORIGIN_DEPTH: usize = 8;

impl Connection {
    /// Takes in one request: checks it, declares what it makes, then sends or holds it.
    pub(super) fn accept_request(&mut self, request: Request) -> Result<(), End> {
        let desc = self.check_request(&request, Place::Channel)?;
        self.declare_new(&request, desc)?;
        if desc.is_destructor {
            self.objects.doom(request.object);
        }
        let asked = Asked { request: &request, desc };
        let claim = self.claim_request(asked);
        self.handler_of(request.object).accepted(self, asked);
        if self.holds.must_wait(&claim) {
            self.hold(claim, Waiting::Request(request));
            return Ok(());
        }
        self.perform(&request)
    }

    /// Whether a request must wait for the compositor to read, for the run loop to take pipes that others have opened
    /// in this turn, or for a turn with time to unpack a picture.
    pub(super) fn lacks_turn(&mut self, request: &Request) -> bool {
        let opens = request.args.iter().any(|arg| matches!(arg, WireArg::Pipe(_)));
        let copies = request.args.iter().any(|arg| matches!(arg, WireArg::Image(_)));
        let lacks = self.is_clogged()
            || (opens && self.peer.has_enough_pipes())
            || (copies && self.turn.room.paint == 0);
        self.turn.is_over |= lacks;
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
            let is_filled = |arg: &WireArg| matches!(arg, WireArg::Pipe(pipe) if pipe & 1 == 0);
            if self.fills(request) && expected == Some("wl_buffer") {
                is_filled(arg).then_some(()).ok_or_else(|| fault(format!("argument {index}: not filled")))?;
                continue;
            }
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

    /// Whether the compositor is to fill the buffer that a request names.
    fn fills(&self, request: &Request) -> bool {
        let object = self.objects.of(request.object);
        object.is_some_and(|object| policy::request(object.interface.name, request.opcode).fills.is_some())
    }

    fn declare_new(&mut self, request: &Request, desc: &MessageDesc) -> Result<(), End> {
        let Some(interface) = desc.child_interface else { return Ok(()) };
        let Some(object) = self.objects.usable(request.object) else { return Ok(()) };
        let version = object.version.min(interface.version);
        let presence = if self.is_swallowed(request, desc) { Presence::Inert } else { Presence::Awaited };
        let origin: Vec<WireId> = std::iter::once(request.object).chain(request.objects()).collect();
        for arg in &request.args {
            if let WireArg::NewId(id) = arg {
                let origin = origin.clone();
                self.objects.declare(*id, Object::new(interface, version, presence, origin))?;
            }
        }
        Ok(())
    }

    /// Whether the compositor cannot be asked this: it lacks the object, something that the request needs, or the
    /// request itself.
    fn is_swallowed(&self, request: &Request, desc: &MessageDesc) -> bool {
        let inert = |id| self.objects.of(id).is_none_or(|object| object.presence == Presence::Inert);
        let Some(object) = self.objects.of(request.object) else { return true };
        let is_over = self.fills(request) && self.state.captures.is_over(request.object);
        if object.presence == Presence::Inert || desc.since > object.version || is_over {
            return true;
        }
        desc.signature.iter().zip(&request.args).any(|(kind, arg)| match (kind, arg) {
            (ArgumentType::Object(AllowNull::No), WireArg::Object(id)) => inert(*id),
            _ => false,
        })
    }

    /// How a request relates to what is held.
    fn claim_request(&mut self, asked: Asked<'_>) -> Claim {
        let Asked { request, desc } = asked;
        let needs = request.args.iter().filter_map(|arg| self.blob_need(arg)).collect();
        let mut claim = Claim { needs, ..Claim::default() };
        if self.lacks_turn(request) {
            claim.needs.push(Need::Turn);
        }
        if self.holds.is_empty() && claim.needs.is_empty() {
            return claim;
        }
        let Some(object) = self.objects.of(request.object) else { return claim };
        let named: Vec<WireId> = std::iter::once(request.object).chain(request.objects()).collect();
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
        }
        if rule.class == Class::Reply {
            claim.keeps.push(Key::Reply);
        }
        handlers::of(object.handler).claim(self, asked, &mut claim);
        claim
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
        self.intake.blobs.of(hash).is_none().then_some(Need::Blob(hash))
    }

    /// The `wl_surface` that an object is, or belongs to by the request that made it.
    pub(super) fn surface_of(&self, object: WireId) -> Option<WireId> {
        self.origin_of(object, Handler::Surface)
    }

    /// What an object is, or came from, that is handled so.
    pub(super) fn origin_of(&self, object: WireId, handler: Handler) -> Option<WireId> {
        self.origin_within(object, handler, MAX_ORIGIN_DEPTH)
    }

    fn origin_within(&self, id: WireId, handler: Handler, depth: usize) -> Option<WireId> {
        let object = self.objects.of(id)?;
        if object.handler == handler {
            return Some(id);
        }
        let depth = depth.checked_sub(1)?;
        object.origin.iter().find_map(|origin| self.origin_within(*origin, handler, depth))
    }

    /// Sends a checked request, with everything that belongs to it.
    pub(super) fn perform(&mut self, request: &Request) -> Result<(), End> {
        let Some(object) = self.objects.of(request.object) else { return Ok(()) };
        let interface = object.interface;
        let Some(desc) = interface.requests.get(usize::from(request.opcode)) else { return Ok(()) };
        let asked = Asked { request, desc };
        let (Some(id), false) = (self.objects.live(request.object), self.is_swallowed(request, desc)) else {
            return self.swallow(asked);
        };
        if request.args.iter().any(|arg| self.blob_need(arg).is_some()) {
            // It was here, and has gone because others came.
            return self.swallow(asked);
        }
        if self.state.images.are_too_much(request, self.turn.room.icons) {
            return self.swallow(asked);
        }
        if self.handler_of(request.object).answers(self, asked)? {
            return Ok(());
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
        self.handler_of(request.object).before(self, asked, &mut args);
        self.send(id, request.opcode, args)?;
        for (id, destroy) in temporary {
            self.send(id, destroy, vec![])?;
            self.objects.own_destroyed(id);
        }
        self.after(asked)
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
            WireArg::Pipe(pipe) if self.fills(request) => {
                Arg::Object(self.capture_buffer(request.object, *pipe)?)
            }
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
    fn after(&mut self, asked: Asked<'_>) -> Result<(), End> {
        for arg in &asked.request.args {
            let WireArg::NewId(id) = arg else { continue };
            self.handler_of(*id).made(self, *id)?;
        }
        let object = asked.request.object;
        let handler = self.handler_of(object);
        handler.sent(self, asked);
        if !asked.desc.is_destructor {
            return Ok(());
        }
        handler.ended(self, object)?;
        if self.objects.destroyed(object) {
            self.tell(&ToApp::Deleted(object));
        }
        Ok(())
    }

    /// Does what a request owes although the compositor never sees it.
    fn swallow(&mut self, asked: Asked<'_>) -> Result<(), End> {
        let object = asked.request.object;
        for arg in &asked.request.args {
            match arg {
                WireArg::NewId(id) => self.objects.make_inert(*id),
                // The program waits for the end of what no program will write.
                WireArg::Pipe(pipe) => drop(self.open_pipe(*pipe)?),
                _ => {}
            }
        }
        let handler = self.handler_of(object);
        if !asked.desc.is_destructor {
            return handler.swallowed(self, asked);
        }
        handler.ended(self, object)?;
        self.objects.abandon(object);
        self.tell(&ToApp::Deleted(object));
        Ok(())
    }

    /// What handles an object beyond what the rows of its interface say.
    fn handler_of(&self, id: WireId) -> &'static dyn Handles {
        handlers::of(self.objects.of(id).map_or(Handler::None, |object| object.handler))
    }
}
