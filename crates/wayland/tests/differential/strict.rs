//! A compositor that forgives nothing: it holds a program to the protocol and records what it would show.
//!
//! It serves one connection, the program's own or that of the display half. Invariant: a request that the protocol
//! forbids is told in [`Strict::error`], and nothing is handled after it; what is shown changes only as the protocol
//! says, and each change is recorded in the request in which it happens.

mod content;
mod seat;
mod shell;
mod surface;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{MemfdFlags, memfd_create};
use wayferry_wayland::blob;
use wayferry_wayland::snapshot::{Global, Keymap, Mode, Output, Seat, Snapshot};
use wayferry_wayland::tables;
use wayferry_wayland::wire::{self, Arg, InBuffer, OutBuffer, RawMessage};
use wayland_backend::protocol::Interface;

use crate::fault::Planted;
use crate::heard::Heard;
use crate::shown::Record;

use content::{Buffer, Grid};
use shell::Shell;
use surface::Surface;

pub(crate) use content::size_on_surface;

/// What every keyboard is told.
pub(crate) const KEYMAP: &[u8] = b"xkb_keymap {};\0";

/// What there is; registry names are the places, from 1.
const GLOBALS: [&str; 9] = [
    "wl_compositor",
    "wl_subcompositor",
    "wl_shm",
    "xdg_wm_base",
    "wl_seat",
    "wl_output",
    "wp_viewporter",
    "wp_single_pixel_buffer_manager_v1",
    "wl_data_device_manager",
];

/// First id that the compositor gives away itself.
const SERVER_IDS: u32 = 0xff00_0000;

/// The outcome of a request: what the protocol has against it.
type Verdict = Result<(), String>;

pub(crate) struct Strict {
    pub(crate) input: InBuffer,
    pub(crate) output: OutBuffer,
    /// What the program did that the protocol forbids.
    pub(crate) error: Option<String>,
    pub(crate) record: Record,
    /// Everything that the program was told of what happened outside of it.
    pub(crate) said: Vec<Heard>,
    /// Where the focus was of what was said, surfaces by the order of their creation.
    pub(crate) said_to: Vec<Option<usize>>,
    /// Content changes inside the damage alone, as with a compositor that uploads textures; damage of new content in
    /// surface coordinates is not looked at, for the display half tells all of it in the buffer's.
    by_damage: bool,
    /// It has no `wl_surface.offset`.
    old: bool,
    objects: HashMap<u32, Object>,
    /// The `wl_compositor` that the display half binds for itself.
    own: Option<u32>,
    proxied: bool,
    pools: HashMap<u32, Rc<OwnedFd>>,
    buffers: HashMap<u32, Rc<Buffer>>,
    regions: HashMap<u32, Grid>,
    surfaces: BTreeMap<u32, Surface>,
    made: usize,
    positioners: HashMap<u32, shell::Positioner>,
    shells: HashMap<u32, Shell>,
    /// Buffers that have not been given back.
    busy: Vec<u32>,
    serial: u32,
    next_server_id: u32,
    seat: seat::State,
    desk: Desk,
}

#[derive(Clone, Copy)]
pub(crate) struct Object {
    interface: &'static Interface,
    version: u32,
    /// The object that it was made for: a surface, mostly.
    of: u32,
}

/// How the output and the keyboard are set.
#[derive(Clone, Copy)]
struct Desk {
    scale: i32,
    width: i32,
    repeat: i32,
}

/// A memory file of that length, all zero.
pub(crate) fn file(length: u64) -> OwnedFd {
    let fd = memfd_create("differential", MemfdFlags::CLOEXEC).expect("a memory file");
    rustix::fs::ftruncate(&fd, length).expect("a length");
    fd
}

impl Strict {
    /// For a program, or for the display half, whose damage is then relied upon; or as an old compositor.
    pub(crate) fn new(proxied: bool, old: bool) -> Self {
        let display = Object { interface: interface("wl_display"), version: 1, of: 0 };
        let mut strict = Self {
            input: InBuffer::new(),
            output: OutBuffer::new(1 << 20),
            error: None,
            record: Record::default(),
            said: Vec::new(),
            said_to: Vec::new(),
            by_damage: proxied,
            old,
            objects: HashMap::from([(1, display)]),
            own: None,
            proxied,
            pools: HashMap::new(),
            buffers: HashMap::new(),
            regions: HashMap::new(),
            surfaces: BTreeMap::new(),
            made: 0,
            positioners: HashMap::new(),
            shells: HashMap::new(),
            busy: Vec::new(),
            serial: 100,
            next_server_id: SERVER_IDS,
            seat: seat::State::default(),
            desk: Desk { scale: 1, width: 1000, repeat: 25 },
        };
        strict.say_output();
        strict.say_setting("wl_keyboard", "repeat_info", [25, 600]);
        strict
    }

    fn version(&self, interface: &str) -> u32 {
        if self.old && interface == "wl_compositor" { 4 } else { tables::version_cap(interface) }
    }

    /// What the display side tells of it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let name = |wanted| GLOBALS.iter().zip(1..).find_map(|(name, id)| (*name == wanted).then_some(id));
        let globals = GLOBALS.iter().zip(1..).map(|(interface, name)| Global {
            name,
            interface: (*interface).to_owned(),
            version: self.version(interface),
        });
        let keymap = Keymap { format: 1, hash: blob::hash(KEYMAP), length: KEYMAP.len() as u32 };
        let mode = Mode { flags: 1, width: self.desk.width, height: 500, refresh: 60_000 };
        Snapshot {
            globals: globals.collect(),
            outputs: vec![Output {
                global: name("wl_output").expect("listed"),
                scale: self.desk.scale,
                name: "OUT-1".to_owned(),
                modes: vec![mode],
                ..Output::default()
            }],
            seats: vec![Seat {
                global: name("wl_seat").expect("listed"),
                capabilities: 7,
                name: "seat0".to_owned(),
                keymap: Some(keymap),
                repeat: Some((self.desk.repeat, 600)),
            }],
            formats: vec![0, 1],
        }
    }

    /// Handles what has arrived.
    pub(crate) fn process(&mut self, mut fault: Option<&mut Planted>) {
        while let Some(mut raw) = self.input.next_message().expect("message borders") {
            if self.error.is_some() {
                continue;
            }
            if let (Some(fault), Some(object)) = (&mut fault, self.objects.get(&raw.object))
                && let Some(desc) = object.interface.requests.get(usize::from(raw.opcode))
                && !fault.at_compositor(object.interface.name, desc.name, &mut raw)
            {
                continue;
            }
            if let Err(text) = self.request(&raw) {
                let args = vec![Arg::Object(1), Arg::Uint(0), Arg::Str(Some(text.clone().into_bytes()))];
                self.output.encode(1, 0, args).expect("room for events");
                self.error = Some(text);
            }
            // Directly, each request counts.
            self.record.turn += usize::from(!self.proxied);
        }
        self.record.turn += 1;
    }

    /// Whether frames or buffers are waited for.
    pub(crate) fn wants_tick(&self) -> bool {
        !self.busy.is_empty() || self.surfaces.values().any(|surface| surface.current.awaits_frame())
    }

    /// A frame has been shown.
    pub(crate) fn tick(&mut self) {
        let frames: Vec<u32> = self.surfaces.values_mut().flat_map(|s| s.current.take_frames()).collect();
        frames.into_iter().for_each(|callback| self.done(callback));
        self.release();
    }

    /// Another scale, another mode or another key repeat.
    pub(crate) fn set_desk(&mut self, state: u8) {
        match state % 3 {
            0 => self.desk.scale = 1 + i32::from(state / 3 % 3),
            1 => self.desk.width = 1000 + i32::from(state),
            _ => self.desk.repeat = 10 + i32::from(state),
        }
        match state % 3 {
            2 => self.tell_repeat(),
            _ => self.tell_output(),
        }
    }

    fn say_output(&mut self) {
        let Desk { scale, width, .. } = self.desk;
        self.say_setting("wl_output", "mode", [1, width, 500, 60_000]);
        self.say_setting("wl_output", "scale", [scale]);
    }

    fn tell_output(&mut self) {
        self.say_output();
        for id in self.named("wl_output") {
            self.greet_output(id);
        }
    }

    fn greet_output(&mut self, id: u32) {
        let text = || Arg::Str(Some(b"none".into()));
        let mut geometry: Vec<Arg> = [0; 5].map(Arg::Int).into();
        geometry.extend([text(), text(), Arg::Int(0)]);
        self.event(id, "geometry", geometry);
        let mode = [self.desk.width, 500, 60_000].map(Arg::Int);
        self.event(id, "mode", [Arg::Uint(1)].into_iter().chain(mode).collect());
        self.event(id, "scale", vec![Arg::Int(self.desk.scale)]);
        self.event(id, "done", Vec::new());
    }

    fn tell_repeat(&mut self) {
        let repeat = self.desk.repeat;
        self.say_setting("wl_keyboard", "repeat_info", [repeat, 600]);
        for id in self.named("wl_keyboard") {
            self.event(id, "repeat_info", vec![Arg::Int(repeat), Arg::Int(600)]);
        }
    }

    fn say_setting<const N: usize>(&mut self, of: &'static str, event: &'static str, numbers: [i32; N]) {
        self.say(Heard::Setting { of, event, numbers: numbers.map(i64::from).into() }, None);
    }

    fn say(&mut self, heard: Heard, to: Option<usize>) {
        self.said.push(heard);
        self.said_to.push(to);
    }

    fn named(&self, interface: &str) -> Vec<u32> {
        let named = self.objects.iter().filter(|(_, object)| object.interface.name == interface);
        let mut named: Vec<u32> = named.map(|(id, _)| *id).collect();
        named.sort_unstable();
        named
    }

    fn event(&mut self, id: u32, name: &str, args: Vec<Arg>) {
        let Some(object) = self.objects.get(&id) else { return };
        let opcode = tables::event_opcode(object.interface, name).expect("an event");
        if object.interface.events[usize::from(opcode)].since <= object.version {
            self.output.encode(id, opcode, args).expect("room for events");
        }
    }

    fn next_serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
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

    fn request(&mut self, raw: &RawMessage) -> Verdict {
        let object = *self.objects.get(&raw.object).ok_or(format!("no object {}", raw.object))?;
        let interface = object.interface;
        let desc = interface.requests.get(usize::from(raw.opcode)).ok_or("no such request")?;
        let what = |text: &str| format!("{}.{}: {text}", interface.name, desc.name);
        if desc.since > object.version {
            return Err(what("newer than the object"));
        }
        let mut args =
            wire::decode(desc, interface, raw, self.input.fds_mut()).map_err(|e| what(&e.to_string()))?;
        let objects = args.iter().filter_map(|arg| if let Arg::Object(id) = arg { Some(*id) } else { None });
        for (id, expected) in objects.zip(desc.arg_interfaces) {
            let found = self.objects.get(&id).map(|object| object.interface.name);
            if id != 0 && found != Some(expected.name) {
                return Err(what(&format!("{id} is {found:?}, not a {}", expected.name)));
            }
        }
        if let Some(child) = desc.child_interface {
            let of = match args.get(1) {
                Some(Arg::Object(first)) => *first,
                _ => raw.object,
            };
            for arg in &args {
                let Arg::NewId(id) = arg else { continue };
                let new = Object { interface: child, version: object.version, of };
                if self.objects.insert(*id, new).is_some() {
                    return Err(what(&format!("new id {id} is in use")));
                }
            }
        }
        self.handle(raw.object, object, desc.name, &mut args).map_err(|text| what(&text))?;
        if desc.is_destructor {
            self.delete(raw.object);
        }
        Ok(())
    }

    fn handle(&mut self, id: u32, object: Object, request: &str, args: &mut [Arg]) -> Verdict {
        match object.interface.name {
            "wl_surface" => self.on_surface(id, object, request, args),
            "wl_subsurface" | "wl_subcompositor" => self.on_subsurface(object.of, request, args),
            "wp_viewporter" | "wp_viewport" => self.on_viewport(id, object.of, request, args),
            "xdg_wm_base" | "xdg_positioner" | "xdg_surface" | "xdg_toplevel" | "xdg_popup" => {
                self.on_shell(id, object, request, args)
            }
            "wl_shm" | "wl_shm_pool" | "wl_buffer" | "wp_single_pixel_buffer_manager_v1" => {
                self.on_memory(id, request, args)
            }
            "wl_region" => self.on_region(id, request, args),
            "wl_seat"
            | "wl_pointer"
            | "wl_data_device_manager"
            | "wl_data_device"
            | "wl_data_source"
            | "wl_data_offer" => self.on_seat(id, object, request, args),
            _ => self.on_display(id, request, args),
        }
    }

    fn on_display(&mut self, id: u32, request: &str, args: &mut [Arg]) -> Verdict {
        match (request, args) {
            ("sync", [Arg::NewId(callback)]) => self.done(*callback),
            ("get_registry", [Arg::NewId(registry)]) => {
                for (interface, name) in GLOBALS.iter().zip(1..) {
                    let version = Arg::Uint(self.version(interface));
                    let interface = Arg::Str(Some(interface.as_bytes().into()));
                    self.event(*registry, "global", vec![Arg::Uint(name), interface, version]);
                }
            }
            ("bind", [Arg::Uint(name), _, Arg::Uint(version), Arg::NewId(new)]) => {
                let global = GLOBALS.get(*name as usize - 1).ok_or("no such global")?;
                if !(1..=self.version(global)).contains(version) {
                    return Err(format!("version {version} of {global}"));
                }
                let object = Object { interface: interface(global), version: *version, of: id };
                if self.objects.insert(*new, object).is_some() {
                    return Err(format!("new id {new} is in use"));
                }
                match *global {
                    "wl_compositor" if self.proxied && self.own.is_none() => self.own = Some(*new),
                    "wl_shm" => (0..2).for_each(|format| self.event(*new, "format", vec![Arg::Uint(format)])),
                    "wl_seat" => self.event(*new, "capabilities", vec![Arg::Uint(7)]),
                    "wl_output" => self.greet_output(*new),
                    _ => {}
                }
            }
            ("create_surface", [Arg::NewId(new)]) => {
                let index = (self.own != Some(id)).then_some(self.made);
                self.made += usize::from(index.is_some());
                self.surfaces.insert(*new, Surface::new(*new, index));
            }
            ("create_region", [Arg::NewId(new)]) => drop(self.regions.insert(*new, Grid::default())),
            _ => {}
        }
        Ok(())
    }
}

fn interface(name: &str) -> &'static Interface {
    tables::interface(name).expect("a known interface")
}

fn demand(holds: bool, text: &str) -> Verdict {
    if holds { Ok(()) } else { Err(text.to_owned()) }
}
