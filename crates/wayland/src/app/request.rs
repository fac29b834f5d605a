//! One request of the program: checked against its signature, then routed by its class in the policy table.
//!
//! Invariant: a request either has its full effect or ends the connection with an error that names the object and
//! what was expected.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use wayferry_proto::MAX_BLOB;
use wayland_backend::protocol::{ArgumentType, Interface};

use crate::action::Action;
use crate::message::{MAX_ARG_BYTES, MAX_REGION_OPS, Request, ToDisplay, WireArg, WireId};
use crate::picture;
use crate::policy::{self, Class, Fd, Keep, Subject};
use crate::served;
use crate::value::{Image, Positioner, RegionOp};
use crate::wire::{self, Arg, RawMessage};

use super::call::{Call, Plain, nullable, plain};
use super::connection::Connection;
use super::fault::{Fault, error_code};
use super::object::{AddError, Configures, Data, Object, Popup};
use super::pending::{Attach, add_damage};
use super::shm::{Buffer, INVALID_FD};
use super::stack::Move;
use super::standing::{Role, Stage};
use super::surface::Surface;
use super::unsent::Kind;

/// `wl_subsurface.error.bad_surface`.
const BAD_SURFACE: u32 = 0;

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

    /// A file that another program serves goes no further than here: even a question about it may never be answered. Left
    /// in the queue it is closed with care. What is written to one in place of a pipe is lost.
    fn refuse_served(&mut self, call: Call) -> Result<(), Fault> {
        let count = call.desc.signature.iter().filter(|kind| matches!(kind, ArgumentType::Fd)).count();
        for fd in self.program.fds().iter_mut().take(count).filter(served::is_file) {
            let nothing = match call.rule.fd {
                Some(Fd::Pipe) => std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").ok(),
                _ => None,
            };
            match nothing {
                Some(nothing) => served::discard(std::mem::replace(fd, nothing.into())),
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
        Ok(Call { id: raw.object, interface, desc, opcode: raw.opcode, version: object.version, rule })
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
        if call.name() == ("wl_registry", "bind") {
            return self.bind(call.id, &args);
        }
        for arg in &args {
            if let (Arg::NewId(id), Some(interface)) = (arg, call.desc.child_interface) {
                self.add_object(*id, Object::new(interface, call.version))?;
            }
        }
        match (call.name(), args.as_slice()) {
            (("wl_display", "sync"), [Arg::NewId(id)]) => self.sync(*id)?,
            (("wl_display", "get_registry"), [Arg::NewId(id)]) => self.get_registry(*id)?,
            (("wl_fixes", "destroy_registry"), [Arg::Object(registry)]) => self.forget(*registry)?,
            (("xdg_wm_base", "pong"), [Arg::Uint(serial)]) => self.pong(*serial),
            (("wl_surface", "frame"), [Arg::NewId(id)]) => self.add_frame(call.id, *id)?,
            (("wp_presentation", "feedback"), [Arg::Object(surface), Arg::NewId(id)]) => {
                self.add_feedback(*surface, *id)?;
            }
            (("zxdg_output_manager_v1", "get_xdg_output"), [Arg::NewId(id), Arg::Object(output)]) => {
                self.get_xdg_output(*id, *output)?;
            }
            (
                (
                    "wp_fifo_manager_v1"
                    | "wp_fifo_v1"
                    | "wp_commit_timing_manager_v1"
                    | "wp_commit_timer_v1",
                    _,
                ),
                args,
            ) => self.timing(call, args)?,
            (("wl_surface", "commit"), []) => self.commit_in_time(call.id)?,
            (("wl_surface", _), args) => self.pend(call, args)?,
            (("wl_region" | "xdg_positioner" | "wl_compositor" | "xdg_wm_base", _), args) => {
                self.value(call, args)?;
            }
            _ => self.memory(call, args)?,
        }
        if call.rule.class == Class::LocalDestructor {
            self.forget(call.id)?;
        }
        Ok(())
    }

    /// Builds objects that travel by value.
    fn value(&mut self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        let numbers: Vec<i32> = args
            .iter()
            .filter_map(|arg| match arg {
                Arg::Int(value) => Some(*value),
                Arg::Uint(value) => Some(value.cast_signed()),
                _ => None,
            })
            .collect();
        if let (("wl_compositor", "create_region") | ("xdg_wm_base", "create_positioner"), [Arg::NewId(id)]) =
            (call.name(), args)
        {
            let region = call.interface.name == "wl_compositor";
            if let Some(object) = self.objects.of_mut(*id) {
                object.data =
                    if region { Data::Region(Vec::new()) } else { Data::Positioner(Positioner::default()) };
            }
        }
        match self.objects.of_mut(call.id).map(|object| &mut object.data) {
            Some(Data::Region(ops)) => add_region_op(ops, call.desc.name, &numbers),
            Some(Data::Positioner(positioner)) => {
                if !is_valid(call.desc.name, &numbers) {
                    let what = format!("{} of {numbers:?}", call.desc.name);
                    return Err(Fault::app(call.id, POSITIONER_INVALID_INPUT, what));
                }
                set_positioner(positioner, call.desc.name, &numbers);
            }
            _ => {}
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
        if let (("wl_subsurface", "place_above" | "place_below"), [Arg::Object(sibling)]) =
            (call.name(), args)
        {
            return self.restack(call, owner, *sibling);
        }
        if let (("wp_alpha_modifier_surface_v1", "set_multiplier"), [Arg::Uint(factor)]) = (call.name(), args)
        {
            self.set_fade(call, *factor)?;
        }
        let Some(owner) = owner.filter(|owner| self.surfaces.contains_key(owner)) else { return Ok(()) };
        self.mirror(owner, call, args)?;
        if call.desc.name == "ack_configure"
            && (!self.acknowledge(owner, args) || self.is_acknowledged(call.id, args))
        {
            return Ok(());
        }
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

    /// `wl_subsurface.place_above` and `place_below`.
    fn restack(&mut self, call: Call, parent: Option<u32>, sibling: u32) -> Result<(), Fault> {
        // Its surface, or the parent, may be gone.
        let (Some(child), Some(parent)) = (self.child_of(call.id), parent) else { return Ok(()) };
        let Some(above) = self.surfaces.get_mut(&parent) else { return Ok(()) };
        let to = Move { child, sibling, above: call.desc.name == "place_above" };
        if above.family.place(to, &mut above.pending.stack) {
            return Ok(());
        }
        let message = format!("wl_surface {sibling} is no sibling of {child}, and not its parent");
        Err(Fault::app(call.id, BAD_SURFACE, message))
    }

    /// Passes a request on to the display side, or to the stub that stands in for it.
    fn forward(&mut self, call: Call, mut args: Vec<Arg>) -> Result<(), Fault> {
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
        self.after_forward(call, &plain, crossed)?;
        if !crossed {
            self.answer_stub(call, &plain)?;
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
            && self.is_known_there(call, args)
            && self.has_parent(call, args)
            && args.iter().zip(call.desc.signature).all(|(arg, kind)| match arg {
                Arg::Object(0) => true,
                Arg::Object(id) => self.crosses(*id) || nullable(*kind),
                _ => true,
            })
    }

    /// A popup needs a parent that is shown, which it may not be yet at another display.
    fn has_parent(&self, call: Call, args: &[Arg]) -> bool {
        match (call.name(), args) {
            (("xdg_surface", "get_popup"), [_, Arg::Object(parent), _]) if *parent != 0 => {
                let surface = self.association(*parent).and_then(|id| self.surfaces.get(&id));
                surface.is_none_or(|surface| surface.standing.stage() == Stage::Shown)
            }
            _ => true,
        }
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

    /// Arguments in connection-wide names; `None` when one of them cannot be had over there. What they stand for is sent
    /// only if the request `crosses`.
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
                Arg::Object(id) => match self.translate_object(id, crosses) {
                    Some(arg) => arg,
                    None => return Ok(None),
                },
                Arg::NewId(id) => WireArg::NewId(self.objects.name(id).unwrap_or(WireId::NULL)),
                // Nobody is there to read or write it: the program sees the end at once.
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

    /// What must happen before a request crosses: commits that it builds on leave first.
    fn before_forward(&mut self, call: Call, args: &mut [Arg]) -> Result<(), Fault> {
        let named: Vec<u32> =
            call.rule.after.iter().filter_map(|subject| self.subject(call.id, *subject, args)).collect();
        if call.name() == ("wl_surface", "destroy") {
            self.check_role_object(call)?;
            // What it applies of its children may be seen elsewhere yet.
            if self.surfaces.get(&call.id).is_some_and(Surface::applies_children) {
                self.flush_tree(call.id)?;
            }
        }
        for surface in named {
            self.apply_held(surface)?;
            self.flush_tree(surface)?;
            match call.name() {
                // The compositor applies what it has cached, which must be all.
                ("wl_subsurface", "set_desync") => self.send_ahead_below(surface)?,
                // What is cached ends with its role.
                ("wl_subsurface" | "wl_surface", _) => {}
                _ => self.send_ahead(surface)?,
            }
        }
        if let (("xdg_toplevel", "set_title"), [Arg::Str(Some(title))]) = (call.name(), args) {
            *title = prefixed(self.config.title_prefix.as_bytes(), title);
        }
        Ok(())
    }

    /// What the app side must remember of a request that was passed on.
    fn after_forward(&mut self, call: Call, args: &[Plain], crossed: bool) -> Result<(), Fault> {
        match (call.name(), args) {
            (("wl_compositor", "create_surface"), [Plain::NewId(id)]) => {
                let wire = self.objects.name(*id).unwrap_or(WireId::NULL);
                self.objects.set_association(*id, Some(*id));
                self.surfaces.insert(*id, Surface::new(wire));
                self.tell_scale(*id)?;
            }
            (
                ("wl_subcompositor", "get_subsurface"),
                [Plain::NewId(id), Plain::Object(child), Plain::Object(parent)],
            ) => {
                self.adopt(call.id, *id, *child, *parent)?;
            }
            (("wl_subsurface", "set_sync"), []) => self.set_sync(call.id, true)?,
            (("wl_subsurface", "set_desync"), []) => self.set_sync(call.id, false)?,
            (("wl_subsurface", "destroy"), []) => self.orphan(call.id)?,
            (("wp_alpha_modifier_v1" | "wp_alpha_modifier_surface_v1", _), _) => self.fade(call, args)?,
            (("wp_viewport", "destroy"), []) => {
                if let Some(surface) = self.association(call.id).and_then(|id| self.surfaces.get_mut(&id)) {
                    (surface.pending.crop, surface.pending.destination) = (Some(None), Some(None));
                }
            }
            (("wl_surface", "destroy"), []) => self.drop_surface(call.id)?,
            (("wl_seat", "get_keyboard"), [Plain::NewId(id)]) => self.get_keyboard(*id, call.id)?,
            (("xdg_wm_base", "get_xdg_surface"), [Plain::NewId(id), Plain::Object(surface)]) => {
                self.objects.set_data(*id, Data::Shell(Configures::default()));
                self.set_role_object(*surface, *id);
            }
            (("wl_keyboard" | "wl_pointer" | "wl_touch", "release"), []) => {
                self.devices.release(call.id);
            }
            (
                ("xdg_surface", "get_toplevel" | "get_popup") | ("zwlr_layer_shell_v1", "get_layer_surface"),
                _,
            ) => self.give_role(call, args, crossed)?,
            (
                ("wl_pointer", "set_cursor") | ("zwp_tablet_tool_v2", "set_cursor"),
                [_, Plain::Object(surface), ..],
            ) => self.set_role(Some(*surface), Role::Cursor),
            (("wl_data_device", "start_drag"), [Plain::Object(source), _, Plain::Object(icon), _]) => {
                self.set_role(Some(*icon), Role::Cursor);
                if crossed {
                    let source = self.objects.name(*source);
                    self.devices.clipboard().drag(source);
                }
            }
            (
                ("wl_data_device" | "zwp_primary_selection_device_v1", "set_selection"),
                [Plain::Object(source), _],
            ) if crossed => {
                let source = self.objects.name(*source);
                self.objects
                    .name(call.id)
                    .into_iter()
                    .for_each(|device| self.devices.clipboard().select(device, source));
            }
            _ => self.note_request(call, crossed)?,
        }
        Ok(())
    }

    /// A surface becomes a window, a popup or a layer.
    fn give_role(&mut self, call: Call, args: &[Plain], crossed: bool) -> Result<(), Fault> {
        let surface = match (call.interface.name, args) {
            ("zwlr_layer_shell_v1", [Plain::NewId(layer), Plain::Object(surface), ..]) => {
                self.set_role_object(*surface, *layer);
                Some(*surface)
            }
            _ => self.association(call.id),
        };
        self.set_role(surface, Role::Configured);
        match (call.name(), args) {
            (("xdg_surface", "get_popup"), [Plain::NewId(popup), Plain::Object(parent), _]) => {
                if let Some(parent) = self.association(*parent) {
                    let (shell, at, token) = (call.id, None, None);
                    self.objects.set_data(*popup, Data::Popup(Popup { parent, shell, at, token }));
                }
            }
            (("xdg_surface", "get_toplevel"), [Plain::NewId(toplevel)]) => {
                self.tell_window_capabilities(*toplevel)?;
            }
            _ => {}
        }
        self.begin_window(surface, call.desc.name == "get_popup" && !crossed);
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
        self.bury(id)?;
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

    /// `attach`, damage and the like: what the surface's own pending state holds.
    fn pend(&mut self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        let buffer = match args.first() {
            Some(Arg::Object(id)) => match self.objects.of(*id).map(|object| &object.data) {
                Some(Data::Buffer(buffer)) => Attach::Buffer { id: *id, buffer: Rc::clone(buffer) },
                _ => Attach::None,
            },
            _ => Attach::None,
        };
        let Some(surface) = self.surfaces.get_mut(&call.id) else { return Ok(()) };
        match (call.desc.name, args) {
            ("attach", [_, Arg::Int(x), Arg::Int(y)]) => {
                // wl_surface, version 5: the offset has a request of its own.
                let has_offset = call.version >= 5;
                if has_offset && (*x, *y) != (0, 0) {
                    let what = "attach has no offset from version 5 on".to_owned();
                    return Err(Fault::app(call.id, SURFACE_INVALID_OFFSET, what));
                }
                surface.pending.attach = buffer;
                if !has_offset {
                    surface.pending.offset = (*x, *y);
                }
            }
            ("offset", [Arg::Int(x), Arg::Int(y)]) => surface.pending.offset = (*x, *y),
            ("damage", [Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                add_damage(&mut surface.pending.surface_damage, [*x, *y, *width, *height]);
            }
            ("damage_buffer", [Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                add_damage(&mut surface.pending.buffer_damage, [*x, *y, *width, *height]);
            }
            _ => {}
        }
        Ok(())
    }
}

/// `wl_surface.error.invalid_offset`.
const SURFACE_INVALID_OFFSET: u32 = 3;

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

fn add_region_op(ops: &mut Vec<RegionOp>, name: &str, numbers: &[i32]) {
    let [x, y, width, height] = *numbers else { return };
    let subtracts = name == "subtract";
    // Beyond the bound a region becomes smaller: an opaque region may be too small, never too large.
    match ops.len() < MAX_REGION_OPS {
        true if subtracts => ops.push(RegionOp::Subtract(x, y, width, height)),
        true => ops.push(RegionOp::Add(x, y, width, height)),
        false if subtracts => ops.clear(),
        false => {}
    }
}

/// `xdg_positioner.error.invalid_input`.
const POSITIONER_INVALID_INPUT: u32 = 0;
/// `bottom_right`, the last of `xdg_positioner.anchor` and `gravity`.
const LAST_ANCHOR: i32 = 8;

/// Whether a positioner may have such numbers. The display side makes one of its own, about which no compositor could tell
/// the program anything.
fn is_valid(name: &str, numbers: &[i32]) -> bool {
    match (name, numbers) {
        ("set_size", &[width, height]) => width > 0 && height > 0,
        ("set_anchor_rect", &[_, _, width, height]) => width >= 0 && height >= 0,
        ("set_anchor" | "set_gravity", &[anchor]) => (0..=LAST_ANCHOR).contains(&anchor),
        _ => true,
    }
}

fn set_positioner(positioner: &mut Positioner, name: &str, numbers: &[i32]) {
    match (name, numbers) {
        ("set_size", &[width, height]) => positioner.size = Some((width, height)),
        ("set_anchor_rect", &[x, y, width, height]) => positioner.anchor_rect = Some((x, y, width, height)),
        ("set_anchor", &[anchor]) => positioner.anchor = Some(anchor.cast_unsigned()),
        ("set_gravity", &[gravity]) => positioner.gravity = Some(gravity.cast_unsigned()),
        ("set_constraint_adjustment", &[bits]) => {
            positioner.constraint_adjustment = Some(bits.cast_unsigned());
        }
        ("set_offset", &[x, y]) => positioner.offset = Some((x, y)),
        ("set_reactive", []) => positioner.reactive = true,
        ("set_parent_size", &[width, height]) => positioner.parent_size = Some((width, height)),
        ("set_parent_configure", &[serial]) => positioner.parent_configure = Some(serial.cast_unsigned()),
        _ => {}
    }
}

/// A title with something before it, each cut at the end of a character where it would not fit into a message.
pub(super) fn prefixed(prefix: &[u8], title: &[u8]) -> Vec<u8> {
    let mut whole = [&prefix[..cut(prefix, MAX_PREFIX)], title].concat();
    whole.truncate(cut(&whole, MAX_TITLE));
    whole
}

/// How much of a text fits into so many bytes, in whole characters.
fn cut(text: &[u8], most: usize) -> usize {
    let start_of_character = |byte: u8| byte & 0xc0 != 0x80;
    match text.get(most) {
        None => text.len(),
        Some(_) => (0..=most).rev().find(|end| start_of_character(text[*end])).unwrap_or(most),
    }
}

/// The error of a request with a file that another program serves.
fn served_file(call: Call) -> Fault {
    let what = "a file that a program serves";
    match call.name() {
        ("wl_shm", _) => Fault::app(call.id, INVALID_FD, what),
        (interface, message) => {
            Fault::display(error_code::IMPLEMENTATION, format!("{interface}.{message}: {what}"))
        }
    }
}

/// Bytes of the longest title: a whole message has its head, the length and the NUL beside it.
const MAX_TITLE: usize = MAX_ARG_BYTES - 8 - 4 - 1;
/// Bytes of what is put before titles: far more than anybody reads, far less than a title.
const MAX_PREFIX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_long_title_still_fits_with_what_is_put_before_it() {
        assert_eq!(prefixed(b"view: ", b"foot"), b"view: foot");
        assert_eq!(prefixed(b"", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        assert_eq!(prefixed(b"view: ", &[b'a'; MAX_TITLE]).len(), MAX_TITLE);
        let cut = prefixed(b"view: ", "\u{e9}".repeat(MAX_TITLE / 2).as_bytes());
        assert!(cut.len() >= MAX_TITLE - 1 && str::from_utf8(&cut).is_ok());
    }

    #[test]
    fn what_is_put_before_a_title_never_swallows_it() {
        let whole = prefixed("\u{e9}".repeat(MAX_TITLE).as_bytes(), b"foot");
        assert!(whole.ends_with(b"foot") && str::from_utf8(&whole).is_ok());
        assert_eq!(whole.len(), MAX_PREFIX + 4);
    }
}
