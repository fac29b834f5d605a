//! A compositor as small as it can be: it answers what programs wait for and keeps what it would show.
//!
//! Everything that it gets must be sound: known objects, requests of the bound version, sound arguments. Invariant:
//! what it shows of a surface changes only at a commit and only inside the damage, as with a compositor that uploads
//! textures.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{MemfdFlags, memfd_create};
use wayferry_wayland::blob;
use wayferry_wayland::snapshot::{Global, Keymap, Output, Seat, Snapshot};
use wayferry_wayland::tables::{self, Access};
use wayferry_wayland::wire::{self, Arg, InBuffer, OutBuffer, RawMessage};
use wayland_backend::protocol::Interface;

/// What every keyboard is told.
pub(crate) const KEYMAP: &[u8] = b"xkb_keymap {};\0";

/// `wl_shm` formats beyond the two that everybody has.
const FORMATS: [u32; 7] =
    [0x3432_4241, 0x3432_4258, 0x3631_4752, 0x3033_5241, 0x3033_5258, 0x3033_4241, 0x3033_4258];

/// First id that the compositor gives away itself.
const SERVER_IDS: u32 = 0xff00_0000;

/// Events of input devices stop while so much is unread.
const MAX_EVENT_BYTES: usize = 1 << 16;

/// One end of a connection.
pub(crate) struct Compositor {
    pub(crate) input: InBuffer,
    pub(crate) output: OutBuffer,
    objects: BTreeMap<u32, Object>,
    /// The `wl_compositor` that the display half binds for itself.
    own: Option<u32>,
    pools: BTreeMap<u32, Rc<OwnedFd>>,
    buffers: BTreeMap<u32, Rc<Buffer>>,
    surfaces: BTreeMap<u32, Surface>,
    /// What each surface of the program showed after each of its commits, surfaces in the order of their creation.
    pub(crate) logs: Vec<Vec<Option<u128>>>,
    /// The same in the order of time: surface and what it shows.
    pub(crate) log: Vec<(usize, Option<u128>)>,
    callbacks: VecDeque<u32>,
    feedbacks: VecDeque<u32>,
    busy: VecDeque<u32>,
    serial: u32,
    next_server_id: u32,
    /// Popups of parents that were not shown.
    pub(crate) orphans: usize,
    /// What the first surface showed when subsurfaces ended.
    pub(crate) ends: Vec<Option<u128>>,
}

#[derive(Clone, Copy)]
struct Object {
    interface: &'static Interface,
    version: u32,
    /// The `wl_surface` or `xdg_surface` that it belongs to.
    of: u32,
}

struct Buffer {
    memory: Rc<OwnedFd>,
    offset: u64,
    size: (i32, i32),
    stride: i32,
    format: u32,
}

#[derive(Default)]
struct Surface {
    /// Place in the logs; none for surfaces of the display half itself.
    index: Option<usize>,
    /// What is attached: nothing new, nothing, or a buffer.
    attach: Option<Option<(u32, Rc<Buffer>)>>,
    damage: Vec<[i32; 4]>,
    shown: Option<SurfacePixels>,
    /// `xdg_surface` and the object of its role.
    role: Option<(u32, u32)>,
    configured: bool,
    /// Of a popup: the surface that it belongs to.
    parent: Option<u32>,
    /// How it is to look with the next commit, and how it looks.
    pending: Look,
    look: Look,
    position: (i32, i32),
    /// Itself and its children, the lowest first.
    stack: Vec<u32>,
    title: Option<Vec<u8>>,
    /// Of a surface of the display half itself: it is shown with the surface that it lies on, and waits for that.
    is_synchronised: bool,
    waits: bool,
}

/// State of a surface that is double-buffered.
#[derive(Debug, Clone, Default, PartialEq)]
struct Look {
    scale: Option<i32>,
    transform: i32,
    destination: Option<(i32, i32)>,
}

/// All there is to see of a surface; others by their place among those that live.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    picture: Option<u128>,
    look: Look,
    position: (i32, i32),
    stack: Vec<usize>,
    title: Option<Vec<u8>>,
}

impl Seen {
    /// Whether there is a picture.
    pub(crate) fn is_seen(&self) -> bool {
        self.picture.is_some()
    }

    pub(crate) fn is_at(&self, x: i32, y: i32) -> bool {
        self.position == (x, y)
    }
}

/// A window, or a surface in it: what is to be seen, and nothing else.
#[derive(Debug, PartialEq)]
pub(crate) struct Tree {
    pub(crate) picture: u128,
    pub(crate) scale: i32,
    pub(crate) transform: i32,
    pub(crate) destination: Option<(i32, i32)>,
    pub(crate) position: (i32, i32),
    pub(crate) title: Option<Vec<u8>>,
    /// What is inside, the lowest first; the surface itself is none.
    pub(crate) inside: Vec<Option<Tree>>,
}

impl Tree {
    /// An empty title is as good as none.
    pub(crate) fn untitled_if_empty(mut self) -> Self {
        self.title = self.title.filter(|title| !title.is_empty());
        self
    }
}

/// What lies over a window.
#[derive(Debug, PartialEq)]
pub(crate) struct Over {
    /// Left and top, in pixels of the window, and pixels in a row.
    pub(crate) at: [usize; 2],
    pub(crate) width: usize,
    pub(crate) pixels: Vec<u8>,
}

struct SurfacePixels {
    size: (i32, i32),
    format: u32,
    pixels: Vec<u8>,
}

/// The name of a picture: pixels, and how they are to be read.
pub(crate) fn picture(size: (i32, i32), pixels: &[u8]) -> u128 {
    blob::hash(pixels) ^ (size.0 as u128) ^ ((size.1 as u128) << 32)
}

/// A memory file of that length, all zero.
pub(crate) fn file(length: u64) -> OwnedFd {
    let fd = memfd_create("halves", MemfdFlags::CLOEXEC).expect("a memory file");
    rustix::fs::ftruncate(&fd, length).expect("a length");
    fd
}

/// Everything that programs may be offered; registry names are the positions, from 1.
fn globals() -> impl Iterator<Item = &'static tables::Global> {
    tables::GLOBALS.iter().filter(|global| global.access == Access::Offered)
}

/// What the display side tells of this compositor.
pub(crate) fn snapshot() -> Snapshot {
    let named = |name: &str| {
        globals().zip(1..).find_map(|(global, id)| (global.name() == name).then_some(id)).expect("offered")
    };
    let globals = globals().zip(1..).map(|(global, name)| Global {
        name,
        interface: global.name().to_owned(),
        version: tables::version_cap(global.name()),
    });
    let keymap = Keymap { format: 1, hash: blob::hash(KEYMAP), length: KEYMAP.len() as u32 };
    Snapshot {
        globals: globals.collect(),
        outputs: vec![Output {
            global: named("wl_output"),
            scale: 1,
            name: "OUT-1".to_owned(),
            ..Output::default()
        }],
        seats: vec![Seat {
            global: named("wl_seat"),
            capabilities: 7,
            name: "seat0".to_owned(),
            keymap: Some(keymap),
            repeat: Some((25, 600)),
        }],
        formats: [0, 1].into_iter().chain(FORMATS).collect(),
    }
}

impl Compositor {
    pub(crate) fn new() -> Self {
        let display = tables::interface("wl_display").expect("core");
        Self {
            input: InBuffer::new(),
            output: OutBuffer::new(1 << 24),
            objects: BTreeMap::from([(1, Object { interface: display, version: 1, of: 0 })]),
            own: None,
            pools: BTreeMap::new(),
            buffers: BTreeMap::new(),
            surfaces: BTreeMap::new(),
            logs: Vec::new(),
            log: Vec::new(),
            callbacks: VecDeque::new(),
            feedbacks: VecDeque::new(),
            busy: VecDeque::new(),
            serial: 0,
            next_server_id: SERVER_IDS,
            orphans: 0,
            ends: Vec::new(),
        }
    }

    /// Handles what has arrived.
    ///
    /// # Panics
    /// If it is not sound.
    pub(crate) fn process(&mut self) {
        while let Some(raw) = self.input.next_message().expect("message borders") {
            self.request(&raw);
        }
    }

    /// How many objects there are of each interface.
    pub(crate) fn census(&self) -> BTreeMap<&'static str, usize> {
        let mut census = BTreeMap::new();
        for object in self.objects.values() {
            *census.entry(object.interface.name).or_default() += 1;
        }
        census
    }

    /// What the program's surfaces look like, the oldest first.
    pub(crate) fn scene(&self) -> Vec<Seen> {
        let mut living: Vec<_> = self.surfaces.iter().filter_map(|(id, s)| Some((s.index?, *id))).collect();
        living.sort_unstable();
        let place = |id: &u32| living.iter().position(|(_, other)| other == id);
        let see = |(_, id): &(usize, u32)| {
            let surface = &self.surfaces[id];
            Seen {
                picture: surface.shown.as_ref().map(|shown| picture(shown.size, &shown.pixels)),
                look: surface.look.clone(),
                position: surface.position,
                stack: surface.stack.iter().filter_map(place).collect(),
                title: surface.title.clone(),
            }
        };
        living.iter().map(see).collect()
    }

    /// The windows in the order of their creation, popups as the topmost of what is inside their parents.
    pub(crate) fn windows(&self) -> Vec<Tree> {
        let is_window = |surface: &Surface| {
            let role = surface.role.and_then(|(_, role)| self.objects.get(&role));
            role.is_some_and(|role| role.interface.name == "xdg_toplevel")
        };
        let mut windows: Vec<_> = self
            .surfaces
            .iter()
            .filter(|(_, surface)| is_window(surface))
            .map(|(id, s)| (s.index, *id))
            .collect();
        windows.sort_unstable();
        windows.into_iter().filter_map(|(_, id)| self.tree(id)).collect()
    }

    fn tree(&self, id: u32) -> Option<Tree> {
        let surface = self.surfaces.get(&id)?;
        let shown = surface.shown.as_ref()?;
        let lives = |popup: &Surface| popup.role.is_some_and(|(_, role)| self.objects.contains_key(&role));
        let popups = self.surfaces.iter().filter(|(_, popup)| popup.parent == Some(id) && lives(popup));
        let mut popups: Vec<_> = popups.map(|(id, popup)| (popup.index, *id)).collect();
        popups.sort_unstable();
        let inside = surface.stack.iter().copied().chain(popups.into_iter().map(|(_, id)| id));
        let inside =
            inside.filter_map(|child| if child == id { Some(None) } else { self.tree(child).map(Some) });
        Some(Tree {
            picture: picture(shown.size, &shown.pixels),
            scale: surface.look.scale.unwrap_or(1),
            transform: surface.look.transform,
            destination: surface.look.destination,
            position: surface.position,
            title: surface.title.clone(),
            inside: inside.collect(),
        })
    }

    /// The pixels of the oldest surface of the program, if it shows any.
    pub(crate) fn window_pixels(&self) -> Option<&[u8]> {
        let (_, window) = self.oldest()?;
        window.shown.as_ref().map(|shown| &shown.pixels[..])
    }

    /// What the display half itself has laid over that, but for veils, which are scaled.
    pub(crate) fn sheets(&self) -> Vec<Over> {
        let Some((_, window)) = self.oldest() else { return Vec::new() };
        let own = window.stack.iter().filter_map(|id| self.surfaces.get(id));
        let own = own.filter(|own| own.index.is_none() && own.look.destination.is_none());
        let over = |own: &Surface| {
            let (shown, (x, y)) = (own.shown.as_ref()?, own.position);
            let (at, width) = ([x as usize, y as usize], shown.size.0 as usize);
            Some(Over { at, width, pixels: shown.pixels.clone() })
        };
        own.filter_map(over).collect()
    }

    fn oldest(&self) -> Option<(&u32, &Surface)> {
        let programs = self.surfaces.iter().filter(|(_, surface)| surface.index.is_some());
        programs.min_by_key(|(_, surface)| surface.index)
    }

    /// The keyboard comes to the oldest surface, with no key down.
    pub(crate) fn focus(&mut self) {
        let Some((&surface, _)) = self.oldest() else { return };
        self.serial += 1;
        for id in self.named("wl_keyboard") {
            self.event(id, "enter", vec![Arg::Uint(self.serial), Arg::Object(surface), Arg::Array(vec![])]);
        }
    }

    /// A key goes down, and up again.
    pub(crate) fn key(&mut self, code: u32) {
        for state in [1, 0] {
            self.serial += 1;
            for id in self.named("wl_keyboard") {
                self.event(id, "key", [self.serial, 5, code, state].map(Arg::Uint).into());
            }
        }
    }

    /// Answers the frame callbacks and presentation feedback so far.
    pub(crate) fn tick(&mut self) {
        for callback in std::mem::take(&mut self.callbacks) {
            self.done(callback);
        }
        for feedback in std::mem::take(&mut self.feedbacks) {
            self.event(feedback, "presented", [0, 1, 2, 3, 0, 4, 1].map(Arg::Uint).into());
            self.delete(feedback);
        }
    }

    /// Gives up to `count` buffers back, oldest first.
    pub(crate) fn release(&mut self, count: usize) {
        for buffer in self.busy.drain(..count.min(self.busy.len())).collect::<Vec<_>>() {
            if self.buffers.contains_key(&buffer) {
                self.event(buffer, "release", Vec::new());
            }
        }
    }

    /// Sends some event of an input device or of the clipboard to every object that can get it.
    pub(crate) fn input_event(&mut self, kind: u8, value: u32) {
        if self.output.len() > MAX_EVENT_BYTES {
            return;
        }
        let Some((&surface, _)) = self.surfaces.iter().find(|(_, surface)| surface.index.is_some()) else {
            return;
        };
        self.serial += 1;
        let serial = Arg::Uint(self.serial);
        let (name, event, args) = match kind % 9 {
            0 => ("wl_pointer", "enter", vec![serial, Arg::Object(surface), Arg::Fixed(0), Arg::Fixed(256)]),
            1 => ("wl_pointer", "motion", vec![Arg::Uint(value), Arg::Fixed(7), Arg::Fixed(8)]),
            2 => ("wl_pointer", "leave", vec![serial, Arg::Object(surface)]),
            3 => ("wl_keyboard", "enter", vec![serial, Arg::Object(surface), Arg::Array(vec![30, 0, 0, 0])]),
            4 => (
                "wl_keyboard",
                "key",
                vec![serial, Arg::Uint(5), Arg::Uint(value % 64), Arg::Uint(value & 1)],
            ),
            5 => ("wl_keyboard", "leave", vec![serial, Arg::Object(surface)]),
            6 => ("xdg_popup", "popup_done", Vec::new()),
            7 => return self.offer(),
            _ => ("wl_data_source", "send", Vec::new()),
        };
        for id in self.named(name) {
            let mut args: Vec<Arg> = args.iter().map(plain).collect();
            if event == "send" {
                args = vec![Arg::Str(Some(b"text/plain".to_vec())), Arg::Fd(file(0))];
            }
            self.event(id, event, args);
        }
    }

    /// A new selection for every data device.
    fn offer(&mut self) {
        for device in self.named("wl_data_device") {
            let id = self.next_server_id;
            self.next_server_id += 1;
            self.event(device, "data_offer", vec![Arg::NewId(id)]);
            let version = self.objects[&device].version;
            let interface = tables::interface("wl_data_offer").expect("core");
            self.objects.insert(id, Object { interface, version, of: 0 });
            self.event(id, "offer", vec![Arg::Str(Some(b"text/plain".to_vec()))]);
            self.event(device, "selection", vec![Arg::Object(id)]);
        }
    }

    fn named(&self, interface: &str) -> Vec<u32> {
        let named = self.objects.iter().filter(|(_, object)| object.interface.name == interface);
        named.map(|(id, _)| *id).collect()
    }

    fn event(&mut self, id: u32, name: &str, args: Vec<Arg>) {
        let Some(object) = self.objects.get(&id) else { return };
        let opcode = tables::event_opcode(object.interface, name).expect("an event");
        if object.interface.events[usize::from(opcode)].since <= object.version {
            self.output.encode(id, opcode, args).expect("room for events");
        }
    }

    fn done(&mut self, callback: u32) {
        self.event(callback, "done", vec![Arg::Uint(1)]);
        self.delete(callback);
    }

    fn delete(&mut self, id: u32) {
        if self.objects.remove(&id).is_some() && id < SERVER_IDS {
            self.output.encode(1, 1, vec![Arg::Uint(id)]).expect("room for events");
        }
    }

    fn request(&mut self, raw: &RawMessage) {
        let object =
            *self.objects.get(&raw.object).unwrap_or_else(|| panic!("request to unknown {}", raw.object));
        let interface = object.interface;
        let desc = interface.requests.get(usize::from(raw.opcode)).expect("an opcode of the interface");
        assert!(desc.since <= object.version, "{}.{} is too new", interface.name, desc.name);
        let mut args = wire::decode(desc, interface, raw, self.input.fds_mut()).expect("sound arguments");
        let objects = args.iter().filter_map(|arg| if let Arg::Object(id) = arg { Some(*id) } else { None });
        for (id, expected) in objects.zip(desc.arg_interfaces) {
            let found = self.objects.get(&id).map(|object| object.interface.name);
            let sound = id == 0 || expected.name.starts_with('<') || found == Some(expected.name);
            assert!(sound, "{}.{}: {id} is {found:?}, not a {}", interface.name, desc.name, expected.name);
        }
        if let Some(child) = desc.child_interface {
            let of = match args.get(1) {
                Some(Arg::Object(surface)) => *surface,
                _ => raw.object,
            };
            for arg in &args {
                if let Arg::NewId(id) = arg {
                    let before =
                        self.objects.insert(*id, Object { interface: child, version: object.version, of });
                    assert!(before.is_none(), "new id {id} is in use");
                }
            }
        }
        self.handle(raw.object, object, desc.name, &mut args);
        if desc.is_destructor {
            self.delete(raw.object);
        }
    }

    fn handle(&mut self, id: u32, object: Object, request: &str, args: &mut Vec<Arg>) {
        match (object.interface.name, request, args.as_mut_slice()) {
            ("wl_display", "sync", [Arg::NewId(id)]) => self.done(*id),
            ("wl_display", "get_registry", [Arg::NewId(registry)]) => self.list(*registry),
            ("wl_registry", "bind", [Arg::Uint(name), _, Arg::Uint(version), Arg::NewId(id)]) => {
                self.bind(*name, *version, *id);
            }
            ("wl_seat", "get_keyboard", [Arg::NewId(id)]) => self.greet_keyboard(*id),
            ("wl_shm", "create_pool", [Arg::NewId(id), fd, _]) => {
                if let Arg::Fd(fd) = std::mem::replace(fd, Arg::Int(0)) {
                    self.pools.insert(*id, Rc::new(fd));
                }
            }
            (
                "wl_shm_pool",
                "create_buffer",
                [
                    Arg::NewId(new),
                    Arg::Int(offset),
                    Arg::Int(width),
                    Arg::Int(height),
                    Arg::Int(stride),
                    Arg::Uint(format),
                ],
            ) => {
                let (memory, size) = (Rc::clone(&self.pools[&id]), (*width, *height));
                let (offset, stride, format) = (*offset as u64, *stride, *format);
                self.buffers.insert(*new, Rc::new(Buffer { memory, offset, size, stride, format }));
            }
            ("wl_shm_pool", "destroy", _) => drop(self.pools.remove(&id)),
            ("wl_buffer", "destroy", _) => drop(self.buffers.remove(&id)),
            ("wl_compositor", "create_surface", [Arg::NewId(new)]) => {
                let index = (self.own != Some(id)).then_some(self.logs.len());
                if index.is_some() {
                    self.logs.push(Vec::new());
                }
                self.surfaces.insert(*new, Surface { index, stack: vec![*new], ..Surface::default() });
            }
            ("wl_subcompositor", "get_subsurface", [_, Arg::Object(child), Arg::Object(parent)]) => {
                if let Some(parent) = self.surfaces.get_mut(parent) {
                    parent.stack.push(*child);
                }
                self.synchronise(*child, true);
            }
            ("wl_subsurface", _, args) => self.handle_child(object.of, request, args),
            ("wp_viewport", "set_destination", &mut [Arg::Int(width), Arg::Int(height)]) => {
                if let Some(surface) = self.surfaces.get_mut(&object.of) {
                    surface.pending.destination = (width > 0).then_some((width, height));
                }
            }
            ("xdg_toplevel", "set_title", [Arg::Str(title)]) => {
                let of = self.surfaces.values_mut().find(|s| s.role.is_some_and(|(_, role)| role == id));
                if let Some(surface) = of {
                    surface.title = title.clone();
                }
            }
            ("xdg_surface", "get_toplevel" | "get_popup", [Arg::NewId(role), more @ ..]) => {
                self.begin_role((id, *role), object.of, more);
            }
            ("wp_presentation", "feedback", [_, Arg::NewId(id)]) => self.feedbacks.push_back(*id),
            ("wl_surface", _, args) => self.handle_surface(id, request, args),
            _ => {}
        }
    }

    fn handle_child(&mut self, child: u32, request: &str, args: &[Arg]) {
        match (request, args) {
            ("destroy", _) => {
                self.ends.push(self.logs.first().and_then(|log| log.last().copied().flatten()));
                self.unstack(child);
            }
            ("set_sync" | "set_desync", _) => self.synchronise(child, request == "set_sync"),
            ("set_position", &[Arg::Int(x), Arg::Int(y)]) => {
                if let Some(child) = self.surfaces.get_mut(&child) {
                    child.position = (x, y);
                }
            }
            ("place_above" | "place_below", [Arg::Object(sibling)]) => {
                let (sibling, above) = (*sibling, request == "place_above");
                let is_parent = |(id, surface): &(&u32, &mut Surface)| {
                    **id != child && surface.stack.contains(&child) && surface.stack.contains(&sibling)
                };
                if let Some((_, parent)) = self.surfaces.iter_mut().find(is_parent) {
                    parent.stack.retain(|id| *id != child);
                    let at = parent.stack.iter().position(|id| *id == sibling).expect("a sibling");
                    parent.stack.insert(at + usize::from(above), child);
                }
            }
            _ => {}
        }
    }

    /// Programs' own subsurfaces are looked at as they are committed.
    fn synchronise(&mut self, child: u32, is_synchronised: bool) {
        if let Some(child) = self.surfaces.get_mut(&child).filter(|child| child.index.is_none()) {
            child.is_synchronised = is_synchronised;
        }
    }

    fn begin_role(&mut self, role: (u32, u32), surface: u32, more: &[Arg]) {
        let parent = match more {
            [Arg::Object(parent), ..] => self.objects.get(parent).map(|parent| parent.of),
            _ => None,
        };
        let shown = parent.and_then(|parent| self.surfaces.get(&parent)).map(|parent| parent.shown.is_some());
        self.orphans += usize::from(shown == Some(false));
        if let Some(surface) = self.surfaces.get_mut(&surface) {
            (surface.role, surface.configured, surface.parent) = (Some(role), false, parent);
        }
    }

    fn list(&mut self, registry: u32) {
        for (global, name) in globals().zip(1..) {
            let interface = Arg::Str(Some(global.name().as_bytes().to_vec()));
            let version = Arg::Uint(tables::version_cap(global.name()));
            self.event(registry, "global", vec![Arg::Uint(name), interface, version]);
        }
    }

    fn bind(&mut self, name: u32, version: u32, id: u32) {
        let global = globals().nth(name as usize - 1).expect("a listed global");
        assert!((1..=tables::version_cap(global.name())).contains(&version));
        let before = self.objects.insert(id, Object { interface: global.interface(), version, of: 0 });
        assert!(before.is_none(), "new id {id} is in use");
        match global.name() {
            "wl_compositor" if self.own.is_none() => self.own = Some(id),
            "wl_shm" => FORMATS.iter().for_each(|format| self.event(id, "format", vec![Arg::Uint(*format)])),
            "wl_seat" => self.event(id, "capabilities", vec![Arg::Uint(7)]),
            "wp_presentation" => self.event(id, "clock_id", vec![Arg::Uint(1)]),
            _ => {}
        }
    }

    fn greet_keyboard(&mut self, id: u32) {
        let fd = file(0);
        rustix::io::pwrite(&fd, KEYMAP, 0).expect("written");
        self.event(id, "keymap", vec![Arg::Uint(1), Arg::Fd(fd), Arg::Uint(KEYMAP.len() as u32)]);
        self.event(id, "repeat_info", vec![Arg::Int(25), Arg::Int(600)]);
    }

    fn handle_surface(&mut self, id: u32, request: &str, args: &[Arg]) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        match (request, args) {
            ("attach", [Arg::Object(buffer), ..]) => {
                surface.attach = Some(self.buffers.get(buffer).map(|found| (*buffer, Rc::clone(found))));
            }
            ("damage_buffer" | "damage", &[Arg::Int(x), Arg::Int(y), Arg::Int(width), Arg::Int(height)]) => {
                surface.damage.push([x, y, width, height]);
            }
            ("frame", [Arg::NewId(callback)]) => self.callbacks.push_back(*callback),
            ("commit", _) => self.commit(id),
            ("set_buffer_scale", [Arg::Int(scale)]) => surface.pending.scale = Some(*scale),
            ("set_buffer_transform", [Arg::Int(transform)]) => surface.pending.transform = *transform,
            ("destroy", _) => {
                self.surfaces.remove(&id);
                self.unstack(id);
            }
            _ => {}
        }
    }

    /// A surface is no child any more.
    fn unstack(&mut self, child: u32) {
        for (id, surface) in &mut self.surfaces {
            surface.stack.retain(|other| *other != child || id == other);
        }
    }

    fn commit(&mut self, id: u32) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        if surface.is_synchronised {
            surface.waits = true;
            return;
        }
        self.apply(id);
        let above = self.surfaces.get(&id).map(|surface| surface.stack.clone()).unwrap_or_default();
        for child in above {
            if self.surfaces.get_mut(&child).is_some_and(|child| std::mem::take(&mut child.waits)) {
                self.apply(child);
            }
        }
    }

    fn apply(&mut self, id: u32) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        surface.look = surface.pending.clone();
        let damage = std::mem::take(&mut surface.damage);
        match surface.attach.take() {
            None => {}
            Some(None) => surface.shown = None,
            Some(Some((id, buffer))) => {
                show(&mut surface.shown, &buffer, &damage);
                self.busy.push_back(id);
            }
        }
        if let Some(index) = surface.index {
            let shown = surface.shown.as_ref().map(|shown| picture(shown.size, &shown.pixels));
            self.logs[index].push(shown);
            self.log.push((index, shown));
        }
        let role = surface.role.filter(|_| !std::mem::replace(&mut surface.configured, true));
        if let Some((xdg_surface, role)) = role {
            self.configure(xdg_surface, role);
        }
    }

    fn configure(&mut self, xdg_surface: u32, role: u32) {
        let args = match self.objects.get(&role).map(|object| object.interface.name) {
            Some("xdg_popup") => [0, 0, 10, 10].map(Arg::Int).into(),
            _ => vec![Arg::Int(0), Arg::Int(0), Arg::Array(Vec::new())],
        };
        self.event(role, "configure", args);
        self.serial += 1;
        self.event(xdg_surface, "configure", vec![Arg::Uint(self.serial)]);
    }
}

/// Uploads a buffer: all of it if there is nothing to build on, else what is damaged.
fn show(shown: &mut Option<SurfacePixels>, buffer: &Buffer, damage: &[[i32; 4]]) {
    let length = (buffer.stride * buffer.size.1) as usize;
    let mut pixels = vec![0; length];
    assert_eq!(
        rustix::io::pread(&buffer.memory, &mut pixels, buffer.offset),
        Ok(length),
        "a buffer is all there"
    );
    match shown {
        Some(old) if (old.size, old.format) == (buffer.size, buffer.format) => {
            let (width, height) = buffer.size;
            let pixel = (buffer.stride / width) as usize;
            for &[x, y, w, h] in damage {
                let clip = |at: i32, most: i32| at.clamp(0, most) as usize;
                let (left, right) = (clip(x, width), clip(x.saturating_add(w), width));
                for row in clip(y, height)..clip(y.saturating_add(h), height) {
                    let at = row * buffer.stride as usize;
                    let span = at + left * pixel..at + right * pixel;
                    old.pixels[span.clone()].copy_from_slice(&pixels[span]);
                }
            }
        }
        _ => *shown = Some(SurfacePixels { size: buffer.size, format: buffer.format, pixels }),
    }
}

fn plain(arg: &Arg) -> Arg {
    match arg {
        Arg::Int(value) => Arg::Int(*value),
        Arg::Uint(value) => Arg::Uint(*value),
        Arg::Fixed(value) => Arg::Fixed(*value),
        Arg::Object(value) => Arg::Object(*value),
        Arg::Array(value) => Arg::Array(value.clone()),
        _ => unreachable!("events of input devices have no others"),
    }
}
