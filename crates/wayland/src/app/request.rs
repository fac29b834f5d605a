//! One request of the program: checked against its signature, then routed by its class in the policy table.
//!
//! What an interface needs beyond that is its handler's.
//!
//! Invariant: a request either has its full effect or ends the connection with an error that names the object and
//! what was expected.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use wayferry_proto::MAX_BLOB;
use wayland_backend::protocol::{ArgumentType, Interface};

use crate::action::Action;
use crate::fuse;
use crate::message::{Request, ToDisplay, WireArg, WireId};
use crate::picture;
use crate::policy::{self, Class, Fd, Handler, Keep, Subject};
use crate::value::{Image, Positioner};
use crate::wire::{self, Arg, RawMessage};

use super::buffer::Buffer;
use super::call::{Call, Plain, nullable, plain};
use super::connection::Connection;
use super::fault::{Fault, error_code};
use super::handlers;
use super::object::{AddError, Data, Object};
use super::shm::INVALID_FD;
use super::unsent::Kind;

impl Connection {
    pub(super) fn on_request(&mut self, raw: &RawMessage) -> Result<(), Fault> {
        let call = self.check_call(raw)?;
        self.refuse_served(call)?;
        let args = wire::decode(call.desc, call.interface, raw, self.program.fds())
            .map_err(|error| Fault::display(error_code::INVALID_METHOD, error.to_string()))?;
        self.check_objects(call, &args)?;
        match call.rule.class {
            Class::Local | Class::LocalDestructor | Class::Pending | Class::Commit | Class::Value => {
                self.local(call, args)
            }
            Class::State | Class::ParentState => self.state(call, &args),
            Class::Refused => {
                let (interface, message) = call.name();
                Err(Fault::display(error_code::IMPLEMENTATION, format!("{interface}.{message} is refused")))
            }
            Class::Forward | Class::Reply | Class::OneShot | Class::Destructor => self.forward(call, args),
        }
    }

    /// A file that another program serves goes no further than here: even a question about it may never be answered.
    /// Left in the queue it is closed with care. What is written to one in place of a pipe is lost.
    fn refuse_served(&mut self, call: Call) -> Result<(), Fault> {
        let count = call.desc.signature.iter().filter(|kind| matches!(kind, ArgumentType::Fd)).count();
        for fd in self.program.fds().iter_mut().take(count).filter(fuse::is_file) {
            let nothing = match call.rule.fd {
                Some(Fd::Pipe) => std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").ok(),
                _ => None,
            };
            match nothing {
                Some(nothing) => fuse::discard(std::mem::replace(fd, nothing.into())),
                None => return Err(served_file(call)),
            }
        }
        Ok(())
    }

    fn check_call(&self, raw: &RawMessage) -> Result<Call, Fault> {
        let Some(object) = self.objects.alive(raw.object) else {
            let message = format!("object {} does not exist", raw.object);
            return Err(Fault::display(error_code::INVALID_OBJECT, message));
        };
        let interface = object.interface;
        let desc = interface.requests.get(usize::from(raw.opcode));
        let Some(desc) = desc.filter(|desc| desc.since <= object.version) else {
            let message =
                format!("{} version {} has no request {}", interface.name, object.version, raw.opcode);
            return Err(Fault::display(error_code::INVALID_METHOD, message));
        };
        let rule = policy::request(interface.name, raw.opcode);
        let (handler, version) = (object.handler, object.version);
        Ok(Call { id: raw.object, interface, handler, desc, opcode: raw.opcode, version, rule })
    }

    /// Every object argument must name a living object of the interface that the signature asks for.
    fn check_objects(&self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        let objects = args.iter().filter_map(|arg| if let Arg::Object(id) = arg { Some(*id) } else { None });
        for (id, interface) in objects.zip(call.desc.arg_interfaces) {
            if id == 0 {
                continue;
            }
            let wrong = match self.objects.alive(id) {
                None => "does not exist",
                Some(object) if untyped(interface) || object.interface.name == interface.name => continue,
                Some(_) => "has another interface",
            };
            let (on, message) = call.name();
            let text = format!("{on}.{message}: object {id} {wrong}, expected a {}", interface.name);
            return Err(Fault::display(error_code::INVALID_OBJECT, text));
        }
        Ok(())
    }

    pub(super) fn add_object(&mut self, id: u32, object: Object) -> Result<(), Fault> {
        self.objects.add(id, object).map_err(|error| match error {
            AddError::BadId => {
                Fault::display(error_code::INVALID_OBJECT, format!("new id {id} is in use or leaves a gap"))
            }
            AddError::TooMany => Fault::TooMuch("objects of one program"),
        })
    }

    /// Requests that never cross.
    fn local(&mut self, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        for arg in &args {
            if let (Arg::NewId(id), Some(interface)) = (arg, call.desc.child_interface) {
                self.add_object(*id, Object::new(interface, call.version))?;
            }
        }
        handlers::of(call.handler).local(self, call, args)?;
        if call.rule.class == Class::LocalDestructor {
            self.forget(call.id)?;
        }
        Ok(())
    }

    /// Records a double-buffered request for the surface's next commit.
    fn state(&mut self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        let parent = || self.surfaces.get(&self.child_of(call.id)?)?.family.parent();
        let owner = match (call.rule.class, call.rule.surface) {
            (Class::ParentState, _) => parent(),
            (_, Some(subject)) => self.subject(call.id, subject, args),
            _ => self.owner(call.id),
        };
        let owner = owner.filter(|owner| self.surfaces.contains_key(owner));
        let goes_on = handlers::of(call.handler).state(self, call, owner, args)?;
        let Some(owner) = owner.filter(|_| goes_on) else { return Ok(()) };
        let Some(object) = self.objects.name(call.id) else { return Ok(()) };
        let Some(args) = self.translate(call, args.iter().map(clone_plain).collect::<Option<_>>(), true)?
        else {
            return Ok(());
        };
        let kind = if call.rule.serial.is_some() { Kind::Once } else { Kind::Replaces };
        let request = Request { object, opcode: call.opcode, args };
        let Some(surface) = self.surfaces.get_mut(&owner) else { return Ok(()) };
        surface.pending.state.add(request, kind).map_err(Fault::TooMuch)
    }

    /// Passes a request on to the display side, or to the stub that stands in for it.
    pub(super) fn forward(&mut self, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        let Some(mut args) = self.puts_off(call, args) else { return Ok(()) };
        self.before_forward(call, &mut args)?;
        let owner = self.owner_of(call, &args);
        let new_ids: Vec<u32> =
            args.iter().filter_map(|arg| if let Arg::NewId(id) = arg { Some(*id) } else { None }).collect();
        let plain: Vec<Plain> = args.iter().map(plain).collect();
        let crosses = self.objects.wire(call.id).is_some() && self.may_cross(call, &args);
        self.create(call, &new_ids, owner, crosses)?;
        let request = self.named(call, args, crosses)?;
        if let Some(request) = &request {
            self.remember_request(call, &new_ids, request)?;
        }
        let request = request.filter(|_| crosses).and_then(|request| self.addressed(request));
        let crossed = request.is_some();
        if let Some(request) = request {
            if call.rule.class == Class::Reply {
                self.line.sync().owe();
            }
            self.send(&ToDisplay::Request(request));
        }
        let handler = handlers::of(call.handler);
        handler.forwarded(self, call, &plain, crossed)?;
        if !crossed {
            handler.answer(self, call, &plain)?;
        }
        if call.rule.class == Class::Destructor {
            self.destroy(call.id, crossed)?;
        }
        Ok(())
    }

    /// The request in names between the halves, if it crosses or another display will be told of it.
    fn named(&mut self, call: Call, args: Vec<Arg>, crosses: bool) -> Result<Option<Request>, Fault> {
        let lasts = call.desc.child_interface.is_some() || call.rule.keep != Keep::Nothing;
        let Some(object) = self.objects.name(call.id).filter(|_| crosses || lasts) else { return Ok(None) };
        let args = self.translate(call, Some(args), crosses)?;
        Ok(args.map(|args| Request { object, opcode: call.opcode, args }))
    }

    /// Whether everything that the request needs exists at the display side.
    fn may_cross(&self, call: Call, args: &[Arg]) -> bool {
        let fresh = |index: u8| match args.get(usize::from(index)) {
            Some(Arg::Uint(serial)) => self.line.serials().for_display(*serial).is_some(),
            _ => true,
        };
        call.rule.serial.is_none_or(fresh)
            && handlers::of(call.handler).may_cross(self, call, args)
            && args.iter().zip(call.desc.signature).all(|(arg, kind)| match arg {
                Arg::Object(0) => true,
                Arg::Object(id) => self.crosses(*id) || nullable(*kind),
                _ => true,
            })
    }

    fn crosses(&self, id: u32) -> bool {
        self.objects.of(id).is_some_and(|object| {
            object.wire.is_some()
                || matches!(object.data, Data::Region(_) | Data::Positioner(_) | Data::Buffer(_))
        })
    }

    fn create(&mut self, call: Call, ids: &[u32], owner: Option<u32>, cross: bool) -> Result<(), Fault> {
        let Some(interface) = call.desc.child_interface else { return Ok(()) };
        for id in ids {
            let mut object = Object::new(interface, call.version);
            object.surface = owner;
            let name = self.objects.allocate_wire();
            (object.name, object.wire) = (Some(name), cross.then_some(name));
            self.add_object(*id, object)?;
        }
        Ok(())
    }

    /// Arguments in connection-wide names; `None` when one of them cannot be had over there. What they stand for is
    /// sent only if the request `crosses`.
    fn translate(
        &mut self,
        call: Call,
        args: Option<Vec<Arg>>,
        crosses: bool,
    ) -> Result<Option<Vec<WireArg>>, Fault> {
        let Some(args) = args else { return Ok(None) };
        let mut out = Vec::with_capacity(args.len());
        // A blob's size follows its descriptor.
        let size = args.windows(2).find_map(|pair| match pair {
            [Arg::Fd(_), Arg::Uint(size)] => Some(*size),
            _ => None,
        });
        for (index, arg) in args.into_iter().enumerate() {
            let serial = call.rule.serial.map(usize::from) == Some(index);
            let filled = call.rule.fills.map(usize::from) == Some(index);
            out.push(match arg {
                Arg::Uint(value) if serial => match self.line.serials().for_display(value) {
                    Some(value) => WireArg::Uint(value),
                    None => return Ok(None),
                },
                Arg::Int(value) => WireArg::Int(value),
                Arg::Uint(value) => WireArg::Uint(value),
                Arg::Fixed(value) => WireArg::Fixed(value),
                Arg::Str(value) => WireArg::Str(value),
                Arg::Array(value) => WireArg::Array(value),
                Arg::Object(id) if filled => match crosses.then(|| self.begin_copy(call.id, id)).flatten() {
                    Some(pipe) => WireArg::Pipe(pipe),
                    None => return Ok(None),
                },
                Arg::Object(id) => match self.translate_object(id, crosses) {
                    Some(arg) => arg,
                    None => return Ok(None),
                },
                Arg::NewId(id) => WireArg::NewId(self.objects.name(id).unwrap_or(WireId::NULL)),
                // No display reads or writes it: the program sees the end at once.
                Arg::Fd(_) if !crosses && call.rule.fd == Some(Fd::Pipe) => return Ok(None),
                Arg::Fd(fd) => self.translate_fd(call, fd, size, crosses)?,
            });
        }
        Ok(Some(out))
    }

    /// An object by its name or its value; `None` if that does not cross.
    fn translate_object(&mut self, id: u32, crosses: bool) -> Option<WireArg> {
        let Some(object) = self.objects.of(id) else { return Some(WireArg::Object(WireId::NULL)) };
        Some(match &object.data {
            Data::Region(ops) => WireArg::Region(ops.clone()),
            Data::Positioner(positioner) => {
                let parent =
                    positioner.parent_configure.and_then(|serial| self.line.serials().for_display(serial));
                WireArg::Positioner(Positioner { parent_configure: parent, ..*positioner })
            }
            Data::Buffer(buffer) => {
                let buffer = Rc::clone(buffer);
                WireArg::Image(self.image(&buffer, crosses)?)
            }
            _ => WireArg::Object(object.name.unwrap_or(WireId::NULL)),
        })
    }

    /// Keeps a content for the request at hand, and sends it aside if the display side gets that.
    fn stock(&mut self, bytes: Vec<u8>, crosses: bool) -> u128 {
        let hash = self.keeping.stock(&bytes);
        if crosses {
            self.line.act(Action::Blob { hash, bytes });
        }
        hash
    }

    /// The pixels of a buffer that is used outside a surface, as a blob; `None` if they do not cross.
    fn image(&mut self, buffer: &Buffer, crosses: bool) -> Option<Image> {
        let content = buffer.content().ok().filter(|_| picture::crosses(buffer.size))?;
        // It takes about as long as content of that size.
        self.pacing.owe(content.pixels().len() as u64);
        let bytes = self.studio.pack(content);
        if bytes.len() > MAX_BLOB as usize {
            return None;
        }
        let hash = self.stock(bytes, crosses);
        let (width, height) = (buffer.size.width(), buffer.size.height());
        Some(Image { hash, width, height, format: buffer.format.to_wl_shm() })
    }

    fn translate_fd(
        &mut self,
        call: Call,
        fd: OwnedFd,
        size: Option<u32>,
        crosses: bool,
    ) -> Result<WireArg, Fault> {
        let fault = |what: String| {
            let (interface, message) = call.name();
            Fault::display(error_code::IMPLEMENTATION, format!("{interface}.{message}: {what}"))
        };
        match (call.rule.fd, size) {
            (Some(Fd::Pipe), _) => {
                let pipe = self.line.name_pipe();
                self.line.act(Action::PipeIn { pipe, fd });
                Ok(WireArg::Pipe(pipe))
            }
            (Some(Fd::Blob), Some(length)) => {
                let bytes = crate::blob::read(&fd, length).map_err(|error| fault(error.to_string()))?;
                let hash = self.stock(bytes, crosses);
                Ok(WireArg::Blob { hash, length })
            }
            _ => Err(fault("files of this kind do not cross".to_owned())),
        }
    }

    /// The surfaces between whose commits a request stands.
    pub(super) fn named_surfaces(&self, call: Call, args: &[Arg]) -> Vec<u32> {
        call.rule.after.iter().filter_map(|subject| self.subject(call.id, *subject, args)).collect()
    }

    /// What must happen before a request crosses: commits that it builds on leave first.
    fn before_forward(&mut self, call: Call, args: &mut [Arg]) -> Result<(), Fault> {
        let named = self.named_surfaces(call, args);
        let handler = handlers::of(call.handler);
        handler.before(self, call, args)?;
        for surface in named {
            self.apply_held(surface)?;
            self.flush_tree(surface)?;
            handler.behind(self, call, surface)?;
        }
        Ok(())
    }

    /// The program destroyed an object: it lives on until the display side has said that its id is free.
    fn destroy(&mut self, id: u32, crossed: bool) -> Result<(), Fault> {
        if let Some(name) = self.objects.name(id) {
            for surface in self.surfaces.values_mut() {
                surface.forget(name);
            }
            self.devices.clipboard().forget(name);
        }
        self.devices.forget(id);
        self.leave_tombstone(id)?;
        if !crossed {
            return self.forget(id);
        }
        if let Some(object) = self.objects.of_mut(id) {
            object.alive = false;
        }
        Ok(())
    }

    /// The surface that a rule means; of several, the nearest.
    pub(super) fn subject(&self, id: u32, subject: Subject, args: &[Arg]) -> Option<u32> {
        match subject {
            Subject::This => self.owner(id),
            Subject::Arg(index) => match args.get(usize::from(index)) {
                Some(Arg::Object(id)) => self.owner(*id),
                _ => None,
            },
            Subject::Above => self.surfaces.get(&self.owner(id)?)?.family.parent(),
        }
    }

    /// The surface that a new object belongs to: the one that the rule names, else its maker's.
    fn owner_of(&self, call: Call, args: &[Arg]) -> Option<u32> {
        let named = call.rule.surface.and_then(|subject| self.subject(call.id, subject, args));
        named.or_else(|| self.association(call.id))
    }

    fn owner(&self, id: u32) -> Option<u32> {
        if self.surfaces.contains_key(&id) { Some(id) } else { self.association(id) }
    }

    pub(super) fn association(&self, id: u32) -> Option<u32> {
        let object = self.objects.of(id)?;
        // The id of one that is gone may be another's by now, which has a later name.
        let is_later = |surface: &u32| {
            let surface = self.surfaces.get(surface).map(|surface| surface.wire);
            surface.zip(object.name).is_some_and(|(surface, name)| surface > name)
        };
        object.surface.filter(|surface| !is_later(surface))
    }
}

/// A copy of an argument; double-buffered requests carry no descriptors and make no objects.
fn clone_plain(arg: &Arg) -> Option<Arg> {
    Some(match arg {
        Arg::Int(value) => Arg::Int(*value),
        Arg::Uint(value) => Arg::Uint(*value),
        Arg::Fixed(value) => Arg::Fixed(*value),
        Arg::Str(value) => Arg::Str(value.clone()),
        Arg::Object(value) => Arg::Object(*value),
        Arg::Array(value) => Arg::Array(value.clone()),
        Arg::NewId(_) | Arg::Fd(_) => return None,
    })
}

fn untyped(interface: &Interface) -> bool {
    interface.name.starts_with('<')
}

/// The error of a request with a file that another program serves.
fn served_file(call: Call) -> Fault {
    let what = "a file that a program serves";
    if call.handler == Handler::Shm {
        return Fault::app(call.id, INVALID_FD, what);
    }
    let (interface, message) = call.name();
    Fault::display(error_code::IMPLEMENTATION, format!("{interface}.{message}: {what}"))
}
