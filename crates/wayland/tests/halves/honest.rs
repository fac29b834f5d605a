//! An honest program that has much of something. What it does with it is the tests' business.
//!
//! Invariant: ids are used again only when they are free; buffers are not touched while they are attached.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, OutBuffer};
use wayland_backend::protocol::Interface;

use crate::compositor::file;
use crate::rig::Rig;

pub(crate) struct Honest {
    next_id: u32,
    free: Vec<u32>,
    interfaces: BTreeMap<u32, &'static Interface>,
    out: OutBuffer,
    names: BTreeMap<String, u32>,
    registry: u32,
    globals: BTreeMap<&'static str, u32>,
    /// Frame callbacks that were answered since they were last asked for.
    done: BTreeSet<u32>,
    /// Pings that were answered.
    pub(crate) pongs: u32,
    /// Keys that went down, until someone takes them.
    pub(crate) pressed: Vec<u32>,
}

/// A window with one buffer, which comes back with each commit.
pub(crate) struct Window {
    pub(crate) surface: u32,
    pub(crate) toplevel: u32,
    pub(crate) xdg_surface: u32,
    buffer: u32,
    memory: OwnedFd,
    side: i32,
    frame: u32,
    colour: u32,
}

impl Honest {
    pub(crate) fn new(rig: &mut Rig) -> Self {
        let display = tables::interface("wl_display").expect("core");
        let mut program = Self {
            next_id: 2,
            free: Vec::new(),
            interfaces: BTreeMap::from([(1, display)]),
            out: OutBuffer::new(1 << 26),
            names: BTreeMap::new(),
            registry: 0,
            globals: BTreeMap::new(),
            done: BTreeSet::new(),
            pongs: 0,
            pressed: Vec::new(),
        };
        program.registry = program.make(1, "get_registry", vec![]);
        program.send(rig);
        while let Some(raw) = rig.events.next_message().expect("events") {
            // wl_registry.global: name, then the interface with its length.
            let word = |at: usize| u32::from_ne_bytes(raw.body[at..at + 4].try_into().expect("four bytes"));
            let length = word(4) as usize - 1;
            let name = String::from_utf8_lossy(&raw.body[8..8 + length]).into_owned();
            program.names.insert(name, word(0));
        }
        program
    }

    /// A global, bound once.
    pub(crate) fn global(&mut self, interface: &'static str) -> u32 {
        if let Some(id) = self.globals.get(interface) {
            return *id;
        }
        let id = self.id(tables::interface(interface).expect("offered"));
        let text = Arg::Str(Some(interface.as_bytes().to_vec()));
        let (name, version) = (self.names[interface], tables::version_cap(interface));
        let args = vec![Arg::Uint(name), text, Arg::Uint(version), Arg::NewId(id)];
        self.request(self.registry, "bind", args);
        self.globals.insert(interface, id);
        id
    }

    /// A window that has not been painted.
    pub(crate) fn window(&mut self, side: i32) -> Window {
        let surface = self.surface();
        let base = self.global("xdg_wm_base");
        let xdg_surface = self.make(base, "get_xdg_surface", vec![Arg::Object(surface)]);
        let toplevel = self.make(xdg_surface, "get_toplevel", vec![]);
        self.request(surface, "commit", vec![]);
        let (memory, buffer) = self.buffer(side, side);
        Window { surface, toplevel, xdg_surface, buffer, memory, side, frame: 0, colour: 0 }
    }

    /// Paints a corner of it anew, and commits.
    pub(crate) fn paint(&mut self, window: &mut Window) {
        window.colour += 1;
        let corner = window.side.min(8);
        for row in 0..corner {
            let pixels = window.colour.to_le_bytes().repeat(corner as usize);
            let at = (row * window.side * 4) as u64;
            rustix::io::pwrite(&window.memory, &pixels, at).expect("written");
        }
        self.attach(window.surface, window.buffer);
        self.request(window.surface, "damage", [0, 0, corner, corner].map(Arg::Int).into());
        window.frame = self.make(window.surface, "frame", vec![]);
        self.request(window.surface, "commit", vec![]);
    }

    /// Whether the window may paint again; it is asked but once.
    pub(crate) fn may_paint(&mut self, window: &Window) -> bool {
        self.done.remove(&window.frame)
    }

    /// Destroys a window with everything in it.
    pub(crate) fn close(&mut self, window: &Window) {
        for id in [window.toplevel, window.xdg_surface, window.surface, window.buffer] {
            self.request(id, "destroy", vec![]);
        }
    }

    pub(crate) fn surface(&mut self) -> u32 {
        let compositor = self.global("wl_compositor");
        self.make(compositor, "create_surface", vec![])
    }

    /// A black buffer in a pool of its own, which is gone already.
    pub(crate) fn buffer(&mut self, width: i32, height: i32) -> (OwnedFd, u32) {
        let (memory, pool, buffer) = self.buffer_in_pool(width, height);
        self.request(pool, "destroy", vec![]);
        (memory, buffer)
    }

    /// As [`Self::buffer`], with its pool.
    pub(crate) fn buffer_in_pool(&mut self, width: i32, height: i32) -> (OwnedFd, u32, u32) {
        let length = width * height * 4;
        let memory = file(length as u64);
        let copy = memory.try_clone().expect("a descriptor");
        let shm = self.global("wl_shm");
        let pool = self.make(shm, "create_pool", vec![Arg::Fd(copy), Arg::Int(length)]);
        let numbers = [0, width, height, width * 4].map(Arg::Int);
        let args = numbers.into_iter().chain([Arg::Uint(0)]).collect();
        let buffer = self.make(pool, "create_buffer", args);
        (memory, pool, buffer)
    }

    pub(crate) fn attach(&mut self, surface: u32, buffer: u32) {
        self.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
    }

    /// Makes an object; its id goes first.
    pub(crate) fn make(&mut self, object: u32, request: &str, mut args: Vec<Arg>) -> u32 {
        let interface = self.interfaces[&object];
        let opcode = tables::request_opcode(interface, request).expect("a request");
        let child = interface.requests[usize::from(opcode)].child_interface.expect("it makes an object");
        let id = self.id(child);
        args.insert(0, Arg::NewId(id));
        self.request(object, request, args);
        id
    }

    pub(crate) fn request(&mut self, object: u32, request: &str, args: Vec<Arg>) {
        let opcode = tables::request_opcode(self.interfaces[&object], request).expect("a request");
        self.out.encode(object, opcode, args).expect("room");
    }

    pub(crate) fn send(&mut self, rig: &mut Rig) {
        rig.program_sends(&mut self.out);
    }

    /// Reads the events, and answers what wants an answer.
    ///
    /// # Panics
    /// If it is told of an error.
    pub(crate) fn read(&mut self, rig: &mut Rig) {
        while let Some(raw) = rig.events.next_message().expect("events") {
            let argument = raw.body.first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word));
            let interface = self.interfaces.get(&raw.object).map_or("nothing", |interface| interface.name);
            match (interface, raw.opcode) {
                ("wl_display", 0) => panic!("an error: {}", String::from_utf8_lossy(&raw.body)),
                ("wl_display", 1) => {
                    self.interfaces.remove(&argument);
                    self.free.push(argument);
                }
                ("wl_callback", 0) => {
                    self.done.insert(raw.object);
                }
                ("xdg_surface", 0) => {
                    self.request(raw.object, "ack_configure", vec![Arg::Uint(argument)]);
                }
                ("wl_keyboard", 3) => {
                    // wl_keyboard.key: serial, time, key and state.
                    let words: Vec<u32> =
                        raw.body.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
                    self.pressed.extend((words[3] == 1).then_some(words[2]));
                }
                ("xdg_wm_base", 0) => {
                    self.pongs += 1;
                    self.request(raw.object, "pong", vec![Arg::Uint(argument)]);
                }
                _ => {}
            }
        }
        self.send(rig);
    }

    fn id(&mut self, interface: &'static Interface) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        });
        self.interfaces.insert(id, interface);
        self.done.remove(&id);
        id
    }
}
