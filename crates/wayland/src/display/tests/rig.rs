//! A connection with a scripted compositor behind it.
//!
//! The compositor answers what every compositor answers by itself (registry, `sync`, `delete_id`); all else it writes
//! down, and the test plays the rest. At each commit it notes the pixels of the attached buffer, as it would show them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use wayferry_pixels::{Compression, Content, Draft, Encoder, Format, Size};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};
use wayland_backend::protocol::{ArgumentType, Interface};

use crate::action::{Action, DragStep, End};
use crate::message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use crate::tables;
use crate::wire::{self, Arg, InBuffer, OutBuffer, ReadState, Socket};

use super::super::{Config, Connection, Room};

/// What a modern compositor lists; registry names are the positions, from 1.
pub(super) const GLOBALS: &[(&str, u32)] = &[
    ("wl_compositor", 4),
    ("wl_shm", 1),
    ("xdg_wm_base", 2),
    ("wl_seat", 7),
    ("wl_subcompositor", 1),
    ("wl_data_device_manager", 3),
    ("wl_output", 4),
    ("wp_viewporter", 1),
    ("wp_presentation", 1),
    ("zwp_pointer_constraints_v1", 1),
    ("xdg_toplevel_icon_manager_v1", 1),
];

/// A request that the compositor got.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) object: u32,
    pub(super) interface: &'static str,
    pub(super) request: &'static str,
    pub(super) args: Vec<Arg>,
}

impl Got {
    pub(super) fn is(&self, interface: &str, request: &str) -> bool {
        self.interface == interface && self.request == request
    }

    pub(super) fn uint(&self, index: usize) -> u32 {
        match &self.args[index] {
            Arg::Uint(value) | Arg::Object(value) | Arg::NewId(value) => *value,
            other => panic!("{}.{} argument {index} is {other:?}", self.interface, self.request),
        }
    }
}

#[derive(Debug)]
struct Pool {
    fd: OwnedFd,
}

/// A buffer as the compositor sees it.
#[derive(Debug)]
pub(super) struct ShmBuffer {
    fd: OwnedFd,
    offset: u64,
    height: i32,
    stride: i32,
    pub(super) format: u32,
}

impl ShmBuffer {
    /// The compositor writes to it.
    pub(super) fn fill(&self, pixels: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.fd, pixels, self.offset), Ok(pixels.len()));
    }

    pub(super) fn pixels(&self) -> Vec<u8> {
        let mut bytes = vec![0; (self.stride * self.height) as usize];
        assert_eq!(rustix::io::pread(&self.fd, &mut bytes, self.offset), Ok(bytes.len()));
        bytes
    }
}

/// One commit with a buffer newly attached.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BufferCommit {
    pub(super) surface: u32,
    pub(super) buffer: u32,
    pub(super) pixels: Vec<u8>,
    /// `damage_buffer` rectangles.
    pub(super) damage: Vec<[i32; 4]>,
}

/// Both ends. More fields than elsewhere, for a compositor in so few words has no parts: what it was told, what it
/// shows, and what the app side would hear, side by side.
pub(super) struct Rig {
    pub(super) connection: Connection,
    here: Socket,
    there: Socket,
    input: InBuffer,
    out: OutBuffer,
    objects: HashMap<u32, (&'static Interface, u32)>,
    /// The highest id that the client has used.
    highest: u32,
    globals: Vec<(String, u32)>,
    pools: HashMap<u32, Pool>,
    pub(super) buffers: HashMap<u32, ShmBuffer>,
    pending: HashMap<u32, BufferCommit>,
    pub(super) shown: Vec<BufferCommit>,
    /// Buffers that the compositor holds.
    pub(super) busy: HashSet<u32>,
    pub(super) registry: u32,
    pub(super) got: Vec<Got>,
    pub(super) reported: Vec<ToApp>,
    pub(super) blobs: Vec<(u128, Vec<u8>)>,
    pub(super) pipes_in: Vec<(u64, OwnedFd)>,
    pub(super) pipes_out: Vec<(u64, OwnedFd)>,
    pub(super) drags: Vec<(u64, DragStep)>,
    pub(super) now: Time,
    next_wire: WireId,
    /// Contents as the app side has them.
    pub(super) contents: BTreeMap<WireId, (Draft, u64)>,
    units: HashMap<WireId, u64>,
}

impl Rig {
    /// A connection that has started.
    pub(super) fn new() -> Self {
        Self::with(GLOBALS)
    }

    /// A connection that has started against a compositor with these globals.
    pub(super) fn with(globals: &[(&str, u32)]) -> Self {
        let mut rig = Self::unstarted(globals);
        rig.turn();
        rig.got.clear();
        rig
    }

    /// A connection whose compositor has not answered anything.
    pub(super) fn unstarted(globals: &[(&str, u32)]) -> Self {
        Self::configured(globals, Config::default())
    }

    /// As [`Self::unstarted`], with settings.
    pub(super) fn configured(globals: &[(&str, u32)], config: Config) -> Self {
        let (here, there) = UnixStream::pair().unwrap();
        let display = tables::interface("wl_display").unwrap();
        Self {
            connection: Connection::new(Config { cursor_theme: "no such theme".into(), ..config }),
            here: Socket::new(here.into()).unwrap(),
            there: Socket::new(there.into()).unwrap(),
            input: InBuffer::new(),
            out: OutBuffer::new(1 << 20),
            objects: HashMap::from([(1, (display, 1))]),
            highest: 1,
            globals: globals.iter().map(|(name, version)| ((*name).to_owned(), *version)).collect(),
            pools: HashMap::new(),
            buffers: HashMap::new(),
            pending: HashMap::new(),
            shown: Vec::new(),
            busy: HashSet::new(),
            registry: 0,
            got: Vec::new(),
            reported: Vec::new(),
            blobs: Vec::new(),
            pipes_in: Vec::new(),
            pipes_out: Vec::new(),
            drags: Vec::new(),
            now: Time::ZERO,
            next_wire: WireId::FIRST_APP,
            contents: BTreeMap::new(),
            units: HashMap::new(),
        }
    }

    /// Does what takes long, and moves bytes both ways until nothing happens any more.
    pub(super) fn turn(&mut self) {
        self.work(Room::ENDLESS);
    }

    /// Does what takes long, as far as there is room.
    pub(super) fn work(&mut self, mut room: Room) {
        self.connection.work(self.now, &mut room);
        self.exchange();
    }

    /// Moves bytes both ways until nothing happens any more.
    pub(super) fn exchange(&mut self) {
        loop {
            self.take_actions();
            let mut moved = !self.connection.output().is_empty() || !self.out.is_empty();
            self.here.flush(self.connection.output()).unwrap();
            moved |= self.serve();
            self.there.flush(&mut self.out).unwrap();
            while self.here.read_into(self.connection.input()).unwrap() == ReadState::Progress {
                moved = true;
                self.connection.process(self.now);
            }
            if !moved {
                break;
            }
        }
        self.take_actions();
    }

    fn take_actions(&mut self) {
        while let Some(action) = self.connection.poll_action() {
            match action {
                Action::Message(bytes) => self.reported.push(ToApp::decode(&bytes).unwrap()),
                Action::Blob { hash, bytes } => self.blobs.push((hash, bytes)),
                Action::PipeIn { pipe, fd } => self.pipes_in.push((pipe, fd)),
                Action::PipeOut { pipe, fd } => self.pipes_out.push((pipe, fd)),
                Action::Drag { drag, step } => self.drags.push((drag, step)),
                Action::Update(_) | Action::Collect { .. } => panic!("the display side does not"),
            }
        }
    }

    /// Reads and handles requests as a compositor; says whether there were any.
    fn serve(&mut self) -> bool {
        let mut any = false;
        while self.there.read_into(&mut self.input).unwrap() == ReadState::Progress {
            any = true;
            while let Some(raw) = self.input.next_message().unwrap() {
                let (interface, version) = *self
                    .objects
                    .get(&raw.object)
                    .unwrap_or_else(|| panic!("request {} to unknown object {}", raw.opcode, raw.object));
                let desc = &interface.requests[usize::from(raw.opcode)];
                assert!(desc.since <= version, "{}.{} at version {version}", interface.name, desc.name);
                let args = wire::decode(desc, interface, &raw, self.input.fds_mut()).unwrap();
                for arg in &args {
                    if let (Arg::NewId(id), Some(child)) = (arg, desc.child_interface) {
                        self.add(*id, child, version.min(child.version));
                    }
                }
                let mut got = Got { object: raw.object, interface: interface.name, request: desc.name, args };
                self.handle(&mut got);
                if desc.is_destructor {
                    self.forget(raw.object);
                }
                self.got.push(got);
            }
        }
        any
    }

    fn add(&mut self, id: u32, interface: &'static Interface, version: u32) {
        assert!(self.objects.insert(id, (interface, version)).is_none(), "id {id} is in use");
        // As libwayland has it: a gap is a fault of the client.
        assert!(id <= self.highest + 1, "id {id} leaves a gap after {}", self.highest);
        self.highest = self.highest.max(id);
    }

    pub(super) fn forget(&mut self, id: u32) {
        self.objects.remove(&id);
        if id < 0xff00_0000 {
            self.event(1, "delete_id", vec![Arg::Uint(id)]);
        }
    }

    fn handle(&mut self, got: &mut Got) {
        match (got.interface, got.request) {
            ("wl_display", "sync") => {
                self.event(got.uint(0), "done", vec![Arg::Uint(0)]);
                self.forget(got.uint(0));
            }
            ("wl_display", "get_registry") => {
                self.registry = got.uint(0);
                for (index, (interface, version)) in self.globals.clone().into_iter().enumerate() {
                    self.list(index as u32 + 1, &interface, version);
                }
            }
            ("wl_registry", "bind") => {
                let [Arg::Uint(name), Arg::Str(Some(interface)), Arg::Uint(version), Arg::NewId(id)] =
                    &got.args[..]
                else {
                    panic!("{:?}", got.args)
                };
                let (listed, cap) = self.globals[*name as usize - 1].clone();
                assert_eq!(listed.as_bytes(), interface.as_slice());
                assert!(*version <= cap);
                self.add(*id, tables::interface(&listed).unwrap(), *version);
            }
            ("wl_shm", "create_pool") => {
                let Arg::Fd(fd) = std::mem::replace(&mut got.args[1], Arg::Int(0)) else { panic!() };
                self.pools.insert(got.uint(0), Pool { fd });
            }
            ("wl_shm_pool", "create_buffer") => {
                let [_, Arg::Int(offset), _, Arg::Int(height), Arg::Int(stride), Arg::Uint(format)] =
                    got.args[..]
                else {
                    panic!("{:?}", got.args)
                };
                let fd = self.pools[&got.object].fd.try_clone().unwrap();
                self.buffers
                    .insert(got.uint(0), ShmBuffer { fd, offset: offset as u64, height, stride, format });
            }
            ("wl_buffer", "destroy") => {
                assert!(!self.busy.contains(&got.object), "a buffer is destroyed while it is shown");
                self.buffers.remove(&got.object);
            }
            ("wl_surface", _) => self.handle_surface(got),
            _ => {}
        }
    }

    fn handle_surface(&mut self, got: &Got) {
        match got.request {
            "attach" => {
                let buffer = got.uint(0);
                let shown =
                    BufferCommit { surface: got.object, buffer, pixels: Vec::new(), damage: Vec::new() };
                self.pending.insert(got.object, shown);
            }
            "damage_buffer" => {
                let [Arg::Int(x), Arg::Int(y), Arg::Int(w), Arg::Int(h)] = got.args[..] else { panic!() };
                self.pending
                    .get_mut(&got.object)
                    .expect("damage follows an attach")
                    .damage
                    .push([x, y, w, h]);
            }
            "commit" => {
                let Some(mut shown) = self.pending.remove(&got.object) else { return };
                if shown.buffer != 0 {
                    shown.pixels = self.buffers[&shown.buffer].pixels();
                    if !self.busy.insert(shown.buffer) {
                        let before = self.shown.iter().rev().find(|before| before.buffer == shown.buffer);
                        assert_eq!(
                            before.map(|before| &before.pixels),
                            Some(&shown.pixels),
                            "changed while held"
                        );
                    }
                }
                self.shown.push(shown);
            }
            "destroy" => {
                self.pending.remove(&got.object);
                self.busy.clear();
            }
            _ => {}
        }
    }

    /// Lists one more global.
    pub(super) fn list(&mut self, name: u32, interface: &str, version: u32) {
        let interface = Arg::Str(Some(interface.as_bytes().to_vec()));
        self.event(self.registry, "global", vec![Arg::Uint(name), interface, Arg::Uint(version)]);
    }

    /// Queues an event of the compositor.
    pub(super) fn event(&mut self, object: u32, name: &str, args: Vec<Arg>) {
        let interface = self
            .objects
            .get(&object)
            .map_or_else(|| tables::interface("wl_callback").unwrap(), |(interface, _)| interface);
        let opcode = tables::event_opcode(interface, name)
            .unwrap_or_else(|| panic!("{} has no event {name}", interface.name));
        let desc = &interface.events[usize::from(opcode)];
        let version = self.objects.get(&object).map_or(1, |(_, version)| *version);
        for arg in &args {
            if let (Arg::NewId(id), Some(child)) = (arg, desc.child_interface) {
                self.objects.insert(*id, (child, version.min(child.version)));
            }
        }
        self.out.encode(object, opcode, args).unwrap();
    }

    /// Queues an event of an interface of an object that the compositor has destroyed already.
    pub(super) fn late_event(&mut self, object: u32, interface: &str, name: &str, args: Vec<Arg>) {
        let interface = tables::interface(interface).unwrap();
        let opcode = tables::event_opcode(interface, name).unwrap();
        self.out.encode(object, opcode, args).unwrap();
    }

    /// Releases a buffer.
    pub(super) fn release(&mut self, buffer: u32) {
        self.busy.remove(&buffer);
        if self.buffers.contains_key(&buffer) {
            self.event(buffer, "release", vec![]);
        }
    }

    /// Sends a message of the app half and lets everything happen.
    pub(super) fn say(&mut self, message: &ToDisplay) {
        self.connection.on_message(self.now, &message.encode());
        self.turn();
    }

    /// A fresh name.
    pub(super) fn name(&mut self) -> WireId {
        let name = self.next_wire;
        self.next_wire = name.next();
        name
    }

    /// Binds a global by its interface.
    pub(super) fn bind(&mut self, interface: &str) -> WireId {
        let position = self.globals.iter().position(|(name, _)| name == interface);
        let global = position.map_or(0, |position| position as u32 + 1);
        let version = position.map_or(1, |position| self.globals[position].1);
        let id = self.name();
        self.say(&ToDisplay::Bind { global, interface: interface.to_owned(), version, id });
        id
    }

    /// The message of a request by name.
    pub(super) fn message(&self, object: WireId, request: &str, args: Vec<WireArg>) -> Request {
        let interface = self.connection.objects.of(object).expect("the object exists").interface;
        let opcode = tables::request_opcode(interface, request)
            .unwrap_or_else(|| panic!("{} has no request {request}", interface.name));
        Request { object, opcode, args }
    }

    /// Sends a request by name.
    pub(super) fn request(&mut self, object: WireId, request: &str, args: Vec<WireArg>) {
        let message = self.message(object, request, args);
        self.say(&ToDisplay::Request(message));
    }

    /// Sends a request that makes an object: `args` are the other arguments.
    pub(super) fn make(&mut self, object: WireId, request: &str, mut args: Vec<WireArg>) -> WireId {
        let id = self.name();
        let interface = self.connection.objects.of(object).expect("the object exists").interface;
        let desc = interface.requests.iter().find(|desc| desc.name == request).expect("the request exists");
        let place =
            desc.signature.iter().position(|kind| *kind == ArgumentType::NewId).expect("it makes one");
        args.insert(place, WireArg::NewId(id));
        self.request(object, request, args);
        id
    }

    /// The id at the compositor.
    pub(super) fn id(&self, wire: WireId) -> u32 {
        self.connection.objects.live(wire).expect("the object is at the compositor")
    }

    /// A surface, made by a fresh `wl_compositor`.
    pub(super) fn surface(&mut self) -> WireId {
        let compositor = self.bind("wl_compositor");
        self.make(compositor, "create_surface", vec![])
    }

    /// A surface with the role of a toplevel: shell, surface, xdg_surface, toplevel.
    pub(super) fn toplevel(&mut self) -> [WireId; 4] {
        let shell = self.bind("xdg_wm_base");
        let surface = self.surface();
        let xdg_surface = self.make(shell, "get_xdg_surface", vec![WireArg::Object(surface)]);
        let toplevel = self.make(xdg_surface, "get_toplevel", vec![]);
        [shell, surface, xdg_surface, toplevel]
    }

    /// The next unit of a surface.
    pub(super) fn unit(&mut self, surface: WireId, content: UnitContent) -> Unit {
        let number = self.units.entry(surface).or_default();
        *number += 1;
        Unit {
            surface,
            number: *number,
            state: Vec::new(),
            content,
            offset: (0, 0),
            feedback: false,
            answered: None,
            children: Vec::new(),
        }
    }

    /// Commits without content.
    pub(super) fn commit(&mut self, surface: WireId) {
        let unit = self.unit(surface, UnitContent::Keep);
        self.say(&ToDisplay::Unit(unit));
    }

    /// Announces new content and commits it; the pixels follow with [`Self::deliver`].
    pub(super) fn commit_update(&mut self, surface: WireId) -> UpdateSeq {
        let next = self.contents.get(&surface).map_or(0, |(_, seq)| *seq) + 1;
        let unit = self.unit(surface, UnitContent::Update(UpdateSeq(next)));
        self.say(&ToDisplay::Unit(unit));
        UpdateSeq(next)
    }

    /// Paints everything in one colour, as a fresh update, without delivering it.
    pub(super) fn fresh(
        &mut self,
        surface: WireId,
        size: Size,
        pixel: [u8; 4],
    ) -> (UpdateHeader, Vec<Vec<u8>>) {
        let mut content = Content::new(size, Format::Argb8888);
        content.fill(&pixel);
        self.update(surface, content, true)
    }

    /// Takes over a content and encodes an update of it.
    pub(super) fn update(
        &mut self,
        surface: WireId,
        content: Content,
        fresh: bool,
    ) -> (UpdateHeader, Vec<Vec<u8>>) {
        let (size, format) = (content.size(), content.format());
        let last = self.contents.remove(&surface);
        let seq = last.as_ref().map_or(0, |(_, seq)| *seq) + 1;
        let draft = last.map(|(draft, _)| draft).filter(|_| !fresh);
        let mut draft = draft.unwrap_or_else(|| Draft::new(size, format));
        draft.replace(content);
        let header = UpdateHeader {
            connection: ConnectionId(1),
            surface: SurfaceId(surface.0),
            seq: UpdateSeq(seq),
            size: (size.width(), size.height()),
            format: format.code(),
            fresh: draft.is_fresh(),
            covers: 0,
            unit: None,
        };
        let chunks = Encoder::new(Compression::Lz4).encode(&mut draft);
        self.contents.insert(surface, (draft, seq));
        (header, chunks)
    }

    /// Hands an update to the connection.
    pub(super) fn deliver(&mut self, (header, chunks): (UpdateHeader, Vec<Vec<u8>>)) {
        let chunks = chunks.into_iter().map(Into::into).collect();
        self.connection.on_update(self.now, &header, chunks);
        self.turn();
    }

    /// New content in one colour, delivered and committed.
    pub(super) fn paint(&mut self, surface: WireId, size: Size, pixel: [u8; 4]) {
        let update = self.fresh(surface, size, pixel);
        let seq = update.0.seq;
        self.deliver(update);
        let unit = self.unit(surface, UnitContent::Update(seq));
        self.say(&ToDisplay::Unit(unit));
    }

    /// Takes the requests of the compositor's log, as `interface.request`.
    pub(super) fn requests(&mut self) -> Vec<String> {
        self.got.drain(..).map(|got| format!("{}.{}", got.interface, got.request)).collect()
    }

    /// Takes what the app side was told.
    pub(super) fn take_reported(&mut self) -> Vec<ToApp> {
        std::mem::take(&mut self.reported)
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.connection.end()
    }

    /// The complaint that ended the connection, about the peer.
    pub(super) fn violation(&self) -> &str {
        match self.end() {
            Some(End::PeerViolation(what)) => what,
            other => panic!("expected a violation of the peer, got {other:?}"),
        }
    }

    /// The connection still works.
    pub(super) fn assert_alive(&self) {
        assert_eq!(self.end(), None);
    }
}

/// A size in pixels.
pub(super) fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).unwrap()
}
