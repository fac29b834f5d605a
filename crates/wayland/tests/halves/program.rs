//! A program of a few surfaces that keeps the protocol: it paints, commits, and uses its buffers again at once.
//!
//! Every commit with a buffer has pixels of its own. Invariant: `commits` lists, for each surface that was ever made,
//! what each commit showed; the damage told covers every pixel that differs from the commit before.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, OutBuffer};
use wayland_backend::protocol::Interface;

use crate::compositor::{file, picture};
use crate::rig::Rig;

/// Surfaces at once: two windows' worth with children and popups.
pub(crate) const SURFACES: usize = 5;

const BUFFERS: usize = 3;

/// The size of large buffers: three slices.
const LARGE: (i32, i32) = (510, 600);

const GLOBALS: [&str; 6] =
    ["wl_compositor", "wl_shm", "xdg_wm_base", "wl_subcompositor", "wp_viewporter", "wl_seat"];

/// One thing that the program does.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// Paints a rectangle and commits, telling the damage in buffer coordinates or not; or commits without a buffer.
    Commit {
        surface: usize,
        paint: Option<[u8; 4]>,
        by_buffer: bool,
        frame: bool,
    },
    /// Commits an empty buffer.
    Unmap {
        surface: usize,
    },
    /// Another size of buffers from the next commit on.
    Resize {
        surface: usize,
        size: (u8, u8),
    },
    /// Large buffers full of noise from the next commit on: several slices to encode, several updates.
    Grow {
        surface: usize,
    },
    Scale {
        surface: usize,
        scale: u8,
    },
    Transform {
        surface: usize,
        transform: u8,
    },
    Viewport {
        surface: usize,
        size: Option<(u8, u8)>,
    },
    Sync {
        surface: usize,
        sync: bool,
    },
    /// Places a child above or below its parent or a sibling.
    Place {
        surface: usize,
        sibling: usize,
        above: bool,
    },
    Move {
        surface: usize,
        to: (u8, u8),
    },
    Title {
        surface: usize,
        title: u8,
    },
    /// Destroys a surface, its role first, and makes a new one of the same kind.
    Renew {
        surface: usize,
    },
}

/// What a surface is; the place in the list decides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Toplevel,
    /// Child of that surface.
    Child(usize),
    /// Popup of that surface.
    Popup(usize),
}

const KINDS: [Kind; SURFACES] =
    [Kind::Toplevel, Kind::Child(0), Kind::Child(1), Kind::Popup(0), Kind::Child(0)];

struct Surface {
    id: u32,
    /// Objects of the role, to be destroyed in this order.
    role: Vec<u32>,
    viewport: u32,
    buffers: Vec<(OwnedFd, u32)>,
    next_buffer: usize,
    size: (i32, i32),
    scale: i32,
    /// Damage in surface coordinates would need more thought than a test should.
    plain: bool,
    /// The next commit has nothing in common with the one before.
    whole: bool,
    truth: Vec<u8>,
    /// Index in [`Program::commits`].
    history: usize,
}

pub(crate) struct Program {
    next_id: u32,
    free: Vec<u32>,
    interfaces: BTreeMap<u32, &'static Interface>,
    out: OutBuffer,
    globals: BTreeMap<&'static str, u32>,
    surfaces: Vec<Surface>,
    /// What each surface ever made was committed with, oldest surface first.
    pub(crate) commits: Vec<Vec<Option<u128>>>,
    colour: u32,
    /// Callbacks that have not been answered.
    pub(crate) waiting: Vec<u32>,
    /// The surfaces that the display has been asked for, as places in [`Self::commits`].
    order: Vec<usize>,
}

impl Program {
    pub(crate) fn new(rig: &mut Rig) -> Self {
        let display = tables::interface("wl_display").expect("core");
        let mut program = Self {
            next_id: 2,
            free: Vec::new(),
            interfaces: BTreeMap::from([(1, display)]),
            out: OutBuffer::new(1 << 20),
            globals: BTreeMap::new(),
            surfaces: Vec::new(),
            commits: Vec::new(),
            colour: 0,
            waiting: Vec::new(),
            order: Vec::new(),
        };
        let registry = program.make(1, "get_registry", vec![]);
        program.send(rig);
        let names = program.registry(rig);
        for interface in GLOBALS {
            let id = program.id(tables::interface(interface).expect("offered"));
            let version = Arg::Uint(tables::version_cap(interface));
            let name = Arg::Str(Some(interface.as_bytes().to_vec()));
            program.request(
                registry,
                "bind",
                vec![Arg::Uint(names[interface]), name, version, Arg::NewId(id)],
            );
            program.globals.insert(interface, id);
        }
        let seat = program.globals["wl_seat"];
        program.make(seat, "get_pointer", vec![]);
        program.make(seat, "get_keyboard", vec![]);
        for kind in KINDS {
            let surface = program.surface(kind);
            program.surfaces.push(surface);
        }
        program.send(rig);
        program
    }

    /// Does it.
    pub(crate) fn act(&mut self, rig: &mut Rig, deed: &Deed) {
        self.read(rig);
        match *deed {
            Deed::Commit { surface, paint, by_buffer, frame } => {
                self.commit(rig, surface % SURFACES, paint, by_buffer, frame)
            }
            Deed::Unmap { surface } => self.unmap(surface % SURFACES),
            Deed::Resize { surface, size } => {
                self.resize(surface % SURFACES, (8 + i32::from(size.0 % 40), 8 + i32::from(size.1 % 40)));
            }
            Deed::Grow { surface } => self.resize(surface % SURFACES, LARGE),
            Deed::Scale { surface, scale } => {
                let surface = &mut self.surfaces[surface % SURFACES];
                surface.scale = 1 + i32::from(scale % 3);
                let (id, scale) = (surface.id, surface.scale);
                self.request(id, "set_buffer_scale", vec![Arg::Int(scale)]);
            }
            Deed::Transform { surface, transform } => {
                let surface = &mut self.surfaces[surface % SURFACES];
                surface.plain = false;
                let id = surface.id;
                self.request(id, "set_buffer_transform", vec![Arg::Int(i32::from(transform % 8))]);
            }
            Deed::Viewport { surface, size } => {
                let surface = &mut self.surfaces[surface % SURFACES];
                surface.plain = false;
                let (width, height) = size.map_or((-1, -1), |(w, h)| (i32::from(w) + 1, i32::from(h) + 1));
                let id = surface.viewport;
                self.request(id, "set_destination", vec![Arg::Int(width), Arg::Int(height)]);
            }
            Deed::Sync { surface, sync } => {
                let surface = surface % SURFACES;
                if let (Kind::Child(_), [role]) = (KINDS[surface], &self.surfaces[surface].role[..]) {
                    let role = *role;
                    self.request(role, if sync { "set_sync" } else { "set_desync" }, vec![]);
                }
            }
            Deed::Place { surface, sibling, above } => {
                self.place(surface % SURFACES, sibling % SURFACES, above)
            }
            Deed::Move { surface, to: (x, y) } => {
                let surface = surface % SURFACES;
                if let (Kind::Child(_), [role]) = (KINDS[surface], &self.surfaces[surface].role[..]) {
                    let role = *role;
                    self.request(role, "set_position", [x, y].map(|at| Arg::Int(i32::from(at))).into());
                }
            }
            Deed::Title { surface, title } => {
                let surface = surface % SURFACES;
                if let (Kind::Toplevel, [role, _]) = (KINDS[surface], &self.surfaces[surface].role[..]) {
                    let role = *role;
                    self.request(role, "set_title", vec![Arg::Str(Some(vec![b'a' + title % 26]))]);
                }
            }
            Deed::Renew { surface } => self.renew(surface % SURFACES),
        }
        self.send(rig);
    }

    fn place(&mut self, surface: usize, sibling: usize, above: bool) {
        let Kind::Child(parent) = KINDS[surface] else { return };
        let related = sibling == parent || sibling != surface && KINDS[sibling] == Kind::Child(parent);
        if let ([role], true) = (&self.surfaces[surface].role[..], related) {
            let (role, sibling) = (*role, self.surfaces[sibling].id);
            self.request(role, if above { "place_above" } else { "place_below" }, vec![Arg::Object(sibling)]);
        }
    }

    fn resize(&mut self, surface: usize, size: (i32, i32)) {
        let surface = &mut self.surfaces[surface];
        surface.whole = true;
        surface.size = size;
        surface.truth = vec![0; (size.0 * size.1 * 4) as usize];
        let gone = std::mem::take(&mut surface.buffers);
        for (_, buffer) in gone {
            self.request(buffer, "destroy", vec![]);
        }
    }

    /// What each living surface shows by now, and its place among those that the display has been asked for.
    pub(crate) fn truth(&self) -> impl Iterator<Item = (usize, Option<u128>)> {
        self.surfaces.iter().map(|surface| {
            let place = self.order.iter().position(|history| *history == surface.history);
            (place.expect("asked for"), self.commits[surface.history].last().copied().flatten())
        })
    }

    /// What a surface that the display has been asked for was committed with.
    pub(crate) fn history(&self, place: usize) -> &[Option<u128>] {
        &self.commits[self.order[place]]
    }

    /// Another display is there: it is asked for what lives.
    pub(crate) fn meet_display(&mut self) {
        self.order = self.surfaces.iter().map(|surface| surface.history).collect();
        self.order.sort_unstable();
    }

    /// Commits every surface, children first, so that nothing waits for a parent.
    pub(crate) fn commit_all(&mut self, rig: &mut Rig) {
        for surface in [2, 1, 4, 0, 3] {
            rig.make();
            let deed = Deed::Commit { surface, paint: Some([1, 2, 3, 4]), by_buffer: false, frame: true };
            self.act(rig, &deed);
        }
    }

    fn commit(&mut self, rig: &mut Rig, index: usize, paint: Option<[u8; 4]>, by_buffer: bool, frame: bool) {
        if paint.is_some() && rig.app.is_making() {
            // The last buffer has not come back.
            return;
        }
        let id = self.surfaces[index].id;
        if frame {
            let callback = self.make(id, "frame", vec![]);
            self.waiting.push(callback);
        }
        let Some([x, y, w, h]) = paint else {
            let last = self.commits[self.surfaces[index].history].last().copied().flatten();
            self.commits[self.surfaces[index].history].push(last);
            return self.request(id, "commit", vec![]);
        };
        self.colour += 1;
        let colour = self.colour;
        let surface = &mut self.surfaces[index];
        let (width, height) = surface.size;
        let (x, y) = (i32::from(x) % width, i32::from(y) % height);
        let (w, h) = match surface.size {
            LARGE if surface.whole => (width - x, height - y),
            _ => (1 + i32::from(w) % (width - x), 1 + i32::from(h) % (height - y)),
        };
        let (mut pixel, mut state) = (colour * 0x0101 + 0x77, u64::from(colour));
        for row in y..y + h {
            for column in x..x + w {
                let at = ((row * width + column) * 4) as usize;
                if surface.size == LARGE {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    pixel = (state >> 32) as u32;
                }
                surface.truth[at..at + 4].copy_from_slice(&pixel.to_le_bytes());
            }
        }
        let by_buffer = by_buffer && !surface.whole;
        let damage = match (by_buffer || std::mem::take(&mut surface.whole), surface.plain) {
            (false, true) => {
                // Surface coordinates, rounded outwards.
                let s = surface.scale;
                [x / s, y / s, (x + w + s - 1) / s - x / s, (y + h + s - 1) / s - y / s]
            }
            _ => [0, 0, i32::MAX, i32::MAX],
        };
        let buffer = self.buffer(index);
        self.request(id, "attach", vec![Arg::Object(buffer), Arg::Int(0), Arg::Int(0)]);
        if by_buffer {
            self.request(id, "damage_buffer", [x, y, w, h].map(Arg::Int).into());
        } else {
            self.request(id, "damage", damage.map(Arg::Int).into());
        }
        self.request(id, "commit", vec![]);
        let surface = &mut self.surfaces[index];
        self.commits[surface.history].push(Some(picture(surface.size, &surface.truth)));
        self.send(rig);
        // The buffer is the program's again: it may paint over it at once.
        let surface = &self.surfaces[index];
        let (file, _) = &surface.buffers[(surface.next_buffer + BUFFERS - 1) % BUFFERS];
        let scribble = vec![colour as u8 ^ 0x5a; surface.truth.len()];
        rustix::io::pwrite(file, &scribble, 0).expect("written");
    }

    fn unmap(&mut self, index: usize) {
        let surface = &mut self.surfaces[index];
        let id = surface.id;
        let history = surface.history;
        self.commits[history].push(None);
        self.request(id, "attach", vec![Arg::Object(0), Arg::Int(0), Arg::Int(0)]);
        self.request(id, "commit", vec![]);
    }

    /// A buffer with the surface's picture.
    fn buffer(&mut self, index: usize) -> u32 {
        let shm = self.globals["wl_shm"];
        while self.surfaces[index].buffers.len() < BUFFERS {
            let (width, height) = self.surfaces[index].size;
            let fd = file((width * height * 4) as u64);
            let copy = fd.try_clone().expect("a descriptor");
            let pool = self.make(shm, "create_pool", vec![Arg::Fd(copy), Arg::Int(width * height * 4)]);
            let numbers = [0, width, height, width * 4].map(Arg::Int);
            let args = numbers.into_iter().chain([Arg::Uint(0)]).collect();
            let buffer = self.make(pool, "create_buffer", args);
            self.request(pool, "destroy", vec![]);
            self.surfaces[index].buffers.push((fd, buffer));
        }
        let surface = &mut self.surfaces[index];
        let which = surface.next_buffer % BUFFERS;
        surface.next_buffer = which + 1;
        let (file, buffer) = &surface.buffers[which];
        rustix::io::pwrite(file, &surface.truth, 0).expect("written");
        *buffer
    }

    fn surface(&mut self, kind: Kind) -> Surface {
        let id = self.make(self.globals["wl_compositor"], "create_surface", vec![]);
        let viewport = self.make(self.globals["wp_viewporter"], "get_viewport", vec![Arg::Object(id)]);
        let role = match kind {
            Kind::Child(parent) => {
                let parent = Arg::Object(self.surfaces[parent].id);
                vec![self.make(
                    self.globals["wl_subcompositor"],
                    "get_subsurface",
                    vec![Arg::Object(id), parent],
                )]
            }
            Kind::Toplevel | Kind::Popup(_) => {
                let base = self.globals["xdg_wm_base"];
                let xdg = self.make(base, "get_xdg_surface", vec![Arg::Object(id)]);
                let role = if let Kind::Popup(parent) = kind {
                    let positioner = self.make(base, "create_positioner", vec![]);
                    self.request(positioner, "set_size", vec![Arg::Int(10), Arg::Int(10)]);
                    self.request(positioner, "set_anchor_rect", [0, 0, 1, 1].map(Arg::Int).into());
                    let parent = Arg::Object(self.surfaces[parent].role[1]);
                    self.make(xdg, "get_popup", vec![parent, Arg::Object(positioner)])
                } else {
                    self.make(xdg, "get_toplevel", vec![])
                };
                self.request(id, "commit", vec![]);
                vec![role, xdg]
            }
        };
        let (size, history) = ((12, 9), self.commits.len());
        let initial = if matches!(kind, Kind::Child(_)) { vec![] } else { vec![None] };
        self.commits.push(initial);
        self.order.push(history);
        Surface {
            id,
            role,
            viewport,
            buffers: Vec::new(),
            next_buffer: 0,
            size,
            scale: 1,
            plain: true,
            whole: false,
            truth: vec![0; (size.0 * size.1 * 4) as usize],
            history,
        }
    }

    /// Destroys a surface with everything that stands on it, and makes all of it anew.
    fn renew(&mut self, index: usize) {
        let above = (0..SURFACES).filter(
            |other| matches!(KINDS[*other], Kind::Child(parent) | Kind::Popup(parent) if parent == index),
        );
        let above: Vec<usize> = above.collect();
        above.iter().for_each(|other| self.destroy(*other));
        self.destroy(index);
        self.surfaces[index] = self.surface(KINDS[index]);
        for other in above {
            let deeper = (0..SURFACES).filter(|deep| KINDS[*deep] == Kind::Child(other));
            let deeper: Vec<usize> = deeper.collect();
            self.surfaces[other] = self.surface(KINDS[other]);
            for deep in deeper {
                self.destroy(deep);
                self.surfaces[deep] = self.surface(KINDS[deep]);
            }
        }
    }

    fn destroy(&mut self, index: usize) {
        let surface = &mut self.surfaces[index];
        let (role, buffers) = (std::mem::take(&mut surface.role), std::mem::take(&mut surface.buffers));
        let (id, viewport) = (surface.id, surface.viewport);
        let last =
            [viewport].into_iter().chain(role).chain([id]).chain(buffers.into_iter().map(|(_, id)| id));
        for object in last {
            self.request(object, "destroy", vec![]);
        }
    }

    fn id(&mut self, interface: &'static Interface) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        });
        self.interfaces.insert(id, interface);
        id
    }

    /// Makes an object; its id goes first but where the interface wants it last.
    fn make(&mut self, object: u32, request: &str, mut args: Vec<Arg>) -> u32 {
        let interface = self.interfaces[&object];
        let opcode = tables::request_opcode(interface, request).expect("a request");
        let child = interface.requests[usize::from(opcode)].child_interface.expect("it makes an object");
        let id = self.id(child);
        args.insert(0, Arg::NewId(id));
        self.request(object, request, args);
        id
    }

    fn request(&mut self, object: u32, request: &str, args: Vec<Arg>) {
        let opcode = tables::request_opcode(self.interfaces[&object], request).expect("a request");
        self.out.encode(object, opcode, args).expect("room");
    }

    fn send(&mut self, rig: &mut Rig) {
        rig.program_sends(&mut self.out);
    }

    fn registry(&mut self, rig: &mut Rig) -> BTreeMap<String, u32> {
        let mut names = BTreeMap::new();
        while let Some(raw) = rig.events.next_message().expect("events") {
            // wl_registry.global: name, then the interface with its length.
            let word = |at: usize| u32::from_ne_bytes(raw.body[at..at + 4].try_into().expect("four bytes"));
            let length = word(4) as usize - 1;
            names.insert(String::from_utf8_lossy(&raw.body[8..8 + length]).into_owned(), word(0));
        }
        names
    }

    /// Reads the events: ids that are free again, callbacks that were answered, windows that must be acknowledged.
    pub(crate) fn read(&mut self, rig: &mut Rig) {
        while let Some(raw) = rig.events.next_message().expect("events") {
            let argument = raw.body.first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word));
            let interface = self.interfaces.get(&raw.object).map_or("nothing", |interface| interface.name);
            match (interface, raw.opcode) {
                ("wl_display", 0) => panic!("an error: {}", String::from_utf8_lossy(&raw.body)),
                ("wl_display", 1) => {
                    assert!(self.interfaces.remove(&argument).is_some(), "{argument} is freed twice");
                    self.free.push(argument);
                    // Those of a destroyed surface end without an answer.
                    self.waiting.retain(|callback| *callback != argument);
                }
                ("wl_callback", 0) => self.waiting.retain(|callback| *callback != raw.object),
                ("xdg_surface", 0)
                    if self.surfaces.iter().any(|surface| surface.role.contains(&raw.object)) =>
                {
                    self.request(raw.object, "ack_configure", vec![Arg::Uint(argument)]);
                }
                ("xdg_wm_base", 0) => self.request(raw.object, "pong", vec![Arg::Uint(argument)]),
                _ => {}
            }
        }
        self.send(rig);
    }
}
