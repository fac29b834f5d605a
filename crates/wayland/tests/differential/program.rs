//! A program that keeps the protocol with any operations: what would break it is left out.
//!
//! What it says never depends on when events arrive: it waits for those that it needs. Invariant: the requests of two
//! runs of the same operations are the same but for ids and serials.

mod children;
mod drawing;
mod events;
mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, OutBuffer};
use wayland_backend::protocol::Interface;

use crate::heard::Heard;
use crate::link::World;
use crate::operation::{Damage, Op, PLACES};
use crate::place::{MAX_SIDE, Place, Role};
use crate::strict::file;

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

/// Memory of one drawing.
const ROOM: usize = (MAX_SIDE * MAX_SIDE * 4) as usize;

/// What a program knows at its end.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) heard: Vec<Heard>,
    /// Surfaces whose events it may miss.
    pub(crate) gone: BTreeSet<usize>,
    /// Frame callbacks that were never answered, by the order in which they were asked for.
    pub(crate) unanswered: BTreeSet<usize>,
}

pub(crate) struct Program<'a, W> {
    world: &'a mut W,
    /// It knows no `wl_surface.offset` and no `xdg_popup.reposition`.
    old: bool,
    next_id: u32,
    free: Vec<u32>,
    interfaces: BTreeMap<u32, &'static Interface>,
    out: OutBuffer,
    globals: BTreeMap<&'static str, u32>,
    memory: OwnedFd,
    pool: u32,
    pointer: u32,
    device: u32,
    places: [Option<Place>; PLACES],
    surfaces: usize,
    frames: usize,
    callbacks: BTreeMap<u32, usize>,
    /// The surface of each object that events of windows come from.
    owners: BTreeMap<u32, usize>,
    /// What a window's events have said so far of its next state.
    news: BTreeMap<usize, Vec<i64>>,
    source: Option<u32>,
    offer: Option<u32>,
    mimes: BTreeMap<u32, Vec<u8>>,
    colour: u32,
    token: u32,
    entered: Option<u32>,
    /// The last button, and the last that it waited for.
    button: Option<u32>,
    pressed: Option<u32>,
    /// What it has asked for is void once the pointer has moved on.
    hangs_on_pointer: bool,
    outcome: Outcome,
    /// What it was accused of.
    accused: Option<String>,
}

type Step = Result<(), String>;

/// Runs it from its first to its last event.
pub(crate) fn run<W: World>(world: &mut W, ops: &[Op]) -> Result<Outcome, String> {
    let mut program = Program::new(world, ops.contains(&Op::Old))?;
    for op in ops {
        program.act(op)?;
        program.flush()?;
    }
    program.settle()?;
    program.outcome.unanswered = program.callbacks.values().copied().collect();
    Ok(program.outcome)
}

impl<'a, W: World> Program<'a, W> {
    fn new(world: &'a mut W, old: bool) -> Result<Self, String> {
        let display = tables::interface("wl_display").expect("core");
        let memory = file((PLACES * 3 * ROOM) as u64);
        let mut program = Self {
            world,
            old,
            next_id: 2,
            free: Vec::new(),
            interfaces: BTreeMap::from([(1, display)]),
            out: OutBuffer::new(1 << 16),
            globals: BTreeMap::new(),
            memory,
            pool: 0,
            pointer: 0,
            device: 0,
            places: [const { None }; PLACES],
            surfaces: 0,
            frames: 0,
            callbacks: BTreeMap::new(),
            owners: BTreeMap::new(),
            news: BTreeMap::new(),
            source: None,
            offer: None,
            mimes: BTreeMap::new(),
            colour: 0,
            token: 0,
            entered: None,
            button: None,
            pressed: None,
            hangs_on_pointer: false,
            outcome: Outcome::default(),
            accused: None,
        };
        program.begin()?;
        Ok(program)
    }

    fn begin(&mut self) -> Step {
        let registry = self.make(1, "get_registry", vec![]);
        self.world.send(&mut self.out);
        let mut names = BTreeMap::new();
        while let Some(raw) = self.world.events().next_message().expect("events") {
            let (_, args) = self.decode(&raw)?;
            if let [Arg::Uint(name), Arg::Str(Some(interface)), ..] = &args[..] {
                names.insert(String::from_utf8_lossy(interface).into_owned(), *name);
            }
        }
        for interface in GLOBALS {
            let id = self.id(tables::interface(interface).expect("known"));
            let name = Arg::Str(Some(interface.as_bytes().to_vec()));
            let version = Arg::Uint(self.version(interface));
            let args = vec![Arg::Uint(names[interface]), name, version, Arg::NewId(id)];
            self.request(registry, "bind", args);
            self.globals.insert(interface, id);
        }
        let fd = self.memory.try_clone().expect("a descriptor");
        let length = Arg::Int((PLACES * 3 * ROOM) as i32);
        self.pool = self.make(self.globals["wl_shm"], "create_pool", vec![Arg::Fd(fd), length]);
        let seat = self.globals["wl_seat"];
        self.pointer = self.make(seat, "get_pointer", vec![]);
        self.make(seat, "get_keyboard", vec![]);
        self.make(seat, "get_touch", vec![]);
        let manager = self.globals["wl_data_device_manager"];
        self.device = self.make(manager, "get_data_device", vec![Arg::Object(seat)]);
        self.settle()
    }

    fn version(&self, interface: &str) -> u32 {
        let most = match (self.old, interface) {
            (true, "wl_compositor") => 4,
            (true, "xdg_wm_base") => 2,
            (true, "wl_seat") => 7,
            _ => u32::MAX,
        };
        most.min(tables::version_cap(interface))
    }

    fn act(&mut self, op: &Op) -> Step {
        match *op {
            Op::Create(place) => self.create(place),
            Op::Toplevel(place) => self.toplevel(place),
            Op::Popup { place, parent, grab } => self.popup(place, parent, grab),
            Op::Child { place, parent } => self.child(place, parent),
            Op::Paint { place, size, rect, damage, xrgb } => {
                return self.paint(place, size, rect, damage, xrgb);
            }
            Op::Pixel { place, colour } => return self.pixel(place, colour),
            Op::Offset { place, by } => self.offset(place, by),
            Op::Commit(place) => return self.commit(place),
            Op::Unmap(place) => return self.unmap(place),
            Op::Reposition(place, to) => return self.reposition(place, to),
            Op::Frame(at) => {
                if let Some(place) = &self.places[at] {
                    let callback = self.make(place.id, "frame", vec![]);
                    self.callbacks.insert(callback, self.frames);
                    self.frames += 1;
                }
            }
            Op::Scale(..)
            | Op::Transform(..)
            | Op::Source(..)
            | Op::Destination(..)
            | Op::DestroyViewport(..)
            | Op::Opaque(..)
            | Op::InputRegion(..)
            | Op::Geometry(..)
            | Op::Limits(..) => self.state(op),
            Op::Position(..) | Op::Place { .. } | Op::Sync(..) => self.arrange(op),
            Op::DestroyRole(place) => self.end(place),
            Op::DestroySurface { place, role_first } => self.destroy(place, role_first),
            Op::DestroyAll(place) => self.destroy_all(place),
            Op::DestroyBuffers(place) => return self.destroy_buffers(place),
            Op::Title(..) | Op::AppId(..) | Op::Parent(..) | Op::State(..) => self.word(op),
            _ => return self.meet(op),
        }
        Ok(())
    }

    /// What the program cannot do alone.
    fn meet(&mut self, op: &Op) -> Step {
        match *op {
            Op::Cursor { place, window } => return self.cursor(place, window),
            Op::Selection(mime) => return self.select(mime),
            Op::Configure(place, (width, height)) => {
                self.settle()?;
                let Some((index, before)) =
                    self.places[place].as_ref().map(|place| (place.index, place.serial))
                else {
                    return Ok(());
                };
                let size = (1 + i32::from(width), 1 + i32::from(height));
                if self.world.compositor().resize(index, size) {
                    self.wait("a configure", |program| {
                        program.places[place].as_ref().is_none_or(|place| place.serial != before)
                    })?;
                }
            }
            Op::Dismiss(place) => {
                self.settle()?;
                let Some(index) = self.places[place].as_ref().map(|place| place.index) else { return Ok(()) };
                if self.world.compositor().dismiss_index(index) {
                    let over = Heard::Dismissed { surface: index };
                    self.wait("popup_done", |program| program.outcome.heard.contains(&over))?;
                    self.end(place);
                }
            }
            Op::Press(place) => drop(self.press(place)?),
            Op::Copied(mime) => {
                self.settle()?;
                self.world.compositor().copied(&[b'a' + mime % 26]);
            }
            Op::Do(deed) => {
                if std::mem::take(&mut self.hangs_on_pointer) {
                    self.settle()?;
                }
                self.world.compositor().act(deed);
            }
            Op::Output(state) => {
                self.world.compositor().set_desk(state);
                self.world.announce();
            }
            Op::Pass(time) => self.world.pass(Duration::from_millis(u64::from(time))),
            Op::Settle => self.settle()?,
            _ => {}
        }
        Ok(())
    }

    /// The user presses a button in a window; whether there is such a window.
    fn press(&mut self, window: usize) -> Result<bool, String> {
        self.settle()?;
        let Some(index) = self.places[window].as_ref().map(|place| place.index) else { return Ok(false) };
        if !self.world.compositor().press(index) {
            return Ok(false);
        }
        self.button = None;
        self.wait("a button", |program| program.button.is_some())?;
        self.pressed = self.button;
        Ok(true)
    }

    fn cursor(&mut self, at: usize, window: usize) -> Step {
        if !self.press(window)? {
            return Ok(());
        }
        let Some(Place { id, role: Role::None | Role::Cursor, .. }) = self.places[at] else { return Ok(()) };
        let Some(serial) = self.entered else { return Ok(()) };
        self.set_role(at, Role::Cursor);
        self.paint(at, None, [0, 0, 255, 255], Damage::Buffer, false)?;
        self.commit(at)?;
        let args = vec![Arg::Uint(serial), Arg::Object(id), Arg::Int(1), Arg::Int(at as i32)];
        self.request(self.pointer, "set_cursor", args);
        self.hangs_on_pointer = true;
        Ok(())
    }

    fn select(&mut self, mime: u8) -> Step {
        self.settle()?;
        let Some(serial) = self.pressed else { return Ok(()) };
        let manager = self.globals["wl_data_device_manager"];
        let source = self.make(manager, "create_data_source", vec![]);
        self.request(source, "offer", vec![Arg::Str(Some(vec![b'A' + mime % 26]))]);
        self.request(self.device, "set_selection", vec![Arg::Object(source), Arg::Uint(serial)]);
        self.settle()?;
        if let Some(old) = self.source.replace(source) {
            self.request(old, "destroy", vec![]);
        }
        Ok(())
    }

    fn settle(&mut self) -> Step {
        self.flush()?;
        for _ in 0..2 {
            self.world.settle();
            self.flush()?;
        }
        Ok(())
    }

    /// Lets time pass until something has happened.
    fn wait(&mut self, what: &str, mut happened: impl FnMut(&Self) -> bool) -> Step {
        self.flush()?;
        for _ in 0..MAX_WAIT {
            if happened(self) {
                return Ok(());
            }
            self.world.pass(Duration::from_millis(10));
            self.flush()?;
        }
        Err(format!("the program waits for {what} and never gets it"))
    }

    /// Sends what is queued and reads what has come, until there is neither.
    fn flush(&mut self) -> Step {
        loop {
            if !self.out.is_empty() {
                self.world.send(&mut self.out);
            }
            let Some(raw) = self.world.events().next_message().map_err(|e| e.to_string())? else {
                if self.out.is_empty() {
                    break;
                }
                continue;
            };
            let (event, args) = self.decode(&raw)?;
            self.hear(raw.object, event, &args);
        }
        self.accused.take().map_or(Ok(()), |text| Err(format!("the program is accused: {text}")))
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
}

/// Most times that 10 ms pass before the program gives up.
const MAX_WAIT: usize = 500;
