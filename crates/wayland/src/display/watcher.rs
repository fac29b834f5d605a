//! The session's own connection to the compositor: it describes outputs, seats, keymaps and globals to the app side.
//!
//! It shows nothing and takes no input. After the first round trips it gives a [`Snapshot`], and another after each
//! change, once the compositor has said everything about it. Invariant: a snapshot is given only when no answer to a
//! request of this connection is outstanding, so it is never half of a change.

use std::collections::{BTreeMap, HashMap, VecDeque};

use wayferry_proto::Time;
use wayland_backend::protocol::{Interface, MessageDesc};

use crate::action::{Action, End};
use crate::policy::{self, Handler};
use crate::snapshot::{self, Keymap, Mode, Output, Seat, Snapshot};
use crate::tables::{self, Access, Missing};
use crate::wire::{self, Arg, InBuffer, OutBuffer, RawMessage};

use super::connection::{Config, Connection};
use super::link::{Link, MAX_OUTPUT};
use super::objects::Objects;
use super::ops::{self, known};

/// `wl_seat.capability.keyboard`.
const KEYBOARD: u32 = 2;

/// The session's own connection to the compositor.
#[derive(Debug)]
pub struct Watcher {
    input: InBuffer,
    output: OutBuffer,
    actions: VecDeque<Action>,
    end: Option<End>,
    things: HashMap<u32, Thing>,
    free: Vec<u32>,
    next: u32,
    globals: BTreeMap<u32, snapshot::Global>,
    outputs: BTreeMap<u32, WatchedOutput>,
    seats: BTreeMap<u32, WatchedSeat>,
    formats: Vec<u32>,
    /// The `zxdg_output_manager_v1`, with its version.
    output_manager: Option<(u32, u32)>,
    /// A `sync` is unanswered.
    syncing: bool,
    /// Something was asked since that `sync` was sent.
    asked: bool,
    /// What is known differs from the last snapshot.
    changed: bool,
}

/// What an id of this connection stands for.
#[derive(Debug, Clone, Copy)]
struct Thing {
    interface: &'static Interface,
    version: u32,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Display,
    Registry,
    Sync,
    Shm,
    OutputManager,
    /// Of the output with this registry name.
    Output(u32),
    XdgOutput(u32),
    /// Of the seat with this registry name.
    Seat(u32),
    Keyboard(u32),
    /// Destroyed; the compositor has not said so yet.
    Gone,
}

#[derive(Debug, Default)]
struct WatchedOutput {
    id: u32,
    xdg: Option<u32>,
    output: Output,
    logical: Option<(i32, i32, i32, i32)>,
    /// It has been described once: its modes are listed.
    listed: bool,
    /// The current mode, if it is not in that list: it is gone with the next one.
    passing: Option<Mode>,
}

#[derive(Debug)]
struct WatchedSeat {
    id: u32,
    keyboard: Option<u32>,
    seat: Seat,
}

impl Watcher {
    /// A connection to a compositor that has just been reached.
    pub fn new() -> Self {
        let display = Thing { interface: known("wl_display"), version: 1, role: Role::Display };
        let mut watcher = Self {
            input: InBuffer::new(),
            output: OutBuffer::new(MAX_OUTPUT),
            actions: VecDeque::new(),
            end: None,
            things: HashMap::from([(1, display)]),
            free: Vec::new(),
            next: 2,
            globals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            seats: BTreeMap::new(),
            formats: Vec::new(),
            output_manager: None,
            syncing: false,
            asked: false,
            changed: true,
        };
        let registry = watcher.add("wl_registry", 1, Role::Registry);
        debug_assert_eq!(registry, REGISTRY, "the first id after wl_display's");
        watcher.ask(1, ops::DISPLAY_GET_REGISTRY, vec![Arg::NewId(registry)]);
        watcher.sync();
        watcher
    }

    /// Where the run loop puts what it read from the compositor; call [`Self::process`] then.
    pub fn input(&mut self) -> &mut InBuffer {
        &mut self.input
    }

    /// What the run loop is to write to the compositor.
    pub fn output(&mut self) -> &mut OutBuffer {
        &mut self.output
    }

    /// Handles the messages in the input buffer. Gives a snapshot when there is something new; the blobs that it
    /// names are among the actions.
    pub fn process(&mut self, _now: Time) -> Option<Snapshot> {
        let mut latest = None;
        while self.end.is_none() {
            match self.input.next_message() {
                Ok(None) => break,
                Ok(Some(raw)) => latest = self.on_event(&raw).or(latest),
                Err(error) => self.finish(End::CompositorError(error.to_string())),
            }
        }
        latest.filter(|_| self.end.is_none())
    }

    /// The next thing that the run loop is to do: blobs only.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Why the connection is over, once it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The compositor has closed its socket.
    pub fn on_hang_up(&mut self) {
        self.finish(End::CompositorError("the compositor closed the connection".to_owned()));
    }

    /// Hands the compositor over to the only program of the session, for want of a second connection. No snapshot
    /// follows: call this after the first one.
    pub fn into_connection(mut self, config: Config) -> Connection {
        for name in self.globals.keys().copied().collect::<Vec<_>>() {
            self.on_global_remove(name);
        }
        let mut objects = Objects::new(known("wl_display"));
        for (id, thing) in self.things.iter().filter(|(id, _)| **id != 1) {
            objects.inherit(*id, thing.interface, thing.version, thing.role == Role::Gone);
        }
        objects.inherit_ids(self.free, self.next);
        let link = Link { input: self.input, output: self.output };
        Connection::over(config, objects, link, self.end)
    }

    fn on_event(&mut self, raw: &RawMessage) -> Option<Snapshot> {
        let thing = *self.things.get(&raw.object)?;
        let Some(desc) = thing.interface.events.get(usize::from(raw.opcode)) else {
            let what = format!("{} has no event {}", thing.interface.name, raw.opcode);
            self.finish(End::CompositorError(what));
            return None;
        };
        match wire::decode(desc, thing.interface, raw, self.input.fds_mut()) {
            Ok(args) => self.dispatch(raw.object, thing, desc, &args),
            Err(error) => {
                self.finish(End::CompositorError(error.to_string()));
                None
            }
        }
    }

    fn dispatch(&mut self, id: u32, thing: Thing, desc: &MessageDesc, args: &[Arg]) -> Option<Snapshot> {
        match thing.role {
            Role::Display => self.on_display(desc.name, args),
            Role::Registry => self.on_registry(desc.name, args),
            Role::Sync => {
                self.set_role(id, Role::Gone);
                return self.on_synced();
            }
            Role::Shm => {
                if let [Arg::Uint(format)] = *args
                    && self.formats.len() < snapshot::MAX_FORMATS
                {
                    self.formats.push(format);
                    self.note_change();
                }
            }
            Role::Output(name) => self.on_output(name, desc.name, args),
            Role::XdgOutput(name) => self.on_xdg_output(name, desc.name, args),
            Role::Seat(name) => self.on_seat(name, desc.name, args),
            Role::Keyboard(name) => self.on_keyboard(name, desc.name, args),
            Role::OutputManager | Role::Gone => {}
        }
        None
    }

    fn on_display(&mut self, event: &str, args: &[Arg]) {
        match (event, args) {
            ("delete_id", [Arg::Uint(id)]) if self.things.remove(id).is_some() => self.free.push(*id),
            ("error", [_, _, Arg::Str(text)]) => {
                let text = text.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                self.finish(End::CompositorError(text.chars().filter(|c| !c.is_control()).collect()));
            }
            _ => {}
        }
    }

    fn on_registry(&mut self, event: &str, args: &[Arg]) {
        match (event, args) {
            ("global", [Arg::Uint(name), Arg::Str(Some(interface)), Arg::Uint(version)]) => {
                let interface = String::from_utf8_lossy(interface).into_owned();
                self.on_global(*name, interface, *version);
            }
            ("global_remove", [Arg::Uint(name)]) => self.on_global_remove(*name),
            _ => {}
        }
    }

    fn on_global(&mut self, name: u32, interface: String, version: u32) {
        let Some(table) = tables::global(&interface).filter(|global| global.access != Access::Withheld)
        else {
            return;
        };
        if self.globals.len() >= snapshot::MAX_GLOBALS {
            return;
        }
        let bound = version.min(table.version);
        match policy::handler(&interface) {
            Handler::Output if self.outputs.len() < snapshot::MAX_OUTPUTS => {
                let id = self.bind(name, "wl_output", bound, Role::Output(name));
                let output = Output { global: name, scale: 1, ..Output::default() };
                let watched = WatchedOutput { id, output, ..WatchedOutput::default() };
                self.outputs.insert(name, watched);
                self.watch_logical(name);
            }
            Handler::Seat if self.seats.len() < snapshot::MAX_SEATS => {
                let id = self.bind(name, "wl_seat", bound, Role::Seat(name));
                let seat = Seat { global: name, ..Seat::default() };
                self.seats.insert(name, WatchedSeat { id, keyboard: None, seat });
            }
            Handler::Output | Handler::Seat => return,
            Handler::Shm => {
                self.bind(name, "wl_shm", 1, Role::Shm);
            }
            Handler::XdgOutputManager if self.output_manager.is_none() => {
                let id = self.bind(name, "zxdg_output_manager_v1", bound, Role::OutputManager);
                self.output_manager = Some((id, bound));
                for name in self.outputs.keys().copied().collect::<Vec<_>>() {
                    self.watch_logical(name);
                }
            }
            _ => {}
        }
        self.globals.insert(name, snapshot::Global { name, interface, version });
        self.note_change();
    }

    fn on_global_remove(&mut self, name: u32) {
        if self.globals.remove(&name).is_none() {
            return;
        }
        if let Some(output) = self.outputs.remove(&name) {
            if let Some(xdg) = output.xdg {
                self.destroy(xdg, ops::XDG_OUTPUT_DESTROY, 1);
            }
            self.destroy(output.id, ops::OUTPUT_RELEASE, 3);
        }
        if let Some(seat) = self.seats.remove(&name) {
            if let Some(keyboard) = seat.keyboard {
                self.destroy(keyboard, ops::KEYBOARD_RELEASE, 3);
            }
            self.destroy(seat.id, ops::SEAT_RELEASE, 5);
        }
        self.note_change();
    }

    /// Asks for the logical geometry of an output, if the compositor tells it.
    fn watch_logical(&mut self, name: u32) {
        let Some((manager, version)) = self.output_manager else { return };
        let Some(output) = self.outputs.get(&name).map(|watched| watched.id) else { return };
        let xdg = self.add("zxdg_output_v1", version, Role::XdgOutput(name));
        let args = vec![Arg::NewId(xdg), Arg::Object(output)];
        self.ask(manager, ops::XDG_OUTPUT_MANAGER_GET_XDG_OUTPUT, args);
        if let Some(watched) = self.outputs.get_mut(&name) {
            watched.xdg = Some(xdg);
        }
    }

    fn on_output(&mut self, name: u32, event: &str, args: &[Arg]) {
        let Some(watched) = self.outputs.get_mut(&name) else { return };
        let output = &mut watched.output;
        match (event, args) {
            (
                "geometry",
                [
                    Arg::Int(x),
                    Arg::Int(y),
                    Arg::Int(width),
                    Arg::Int(height),
                    Arg::Int(subpixel),
                    make,
                    model,
                    transform,
                ],
            ) => {
                output.position = (*x, *y);
                output.physical = (*width, *height);
                output.subpixel = *subpixel;
                output.make = text(make);
                output.model = text(model);
                output.transform = if let Arg::Int(transform) = transform { *transform } else { 0 };
            }
            ("mode", [Arg::Uint(flags), Arg::Int(width), Arg::Int(height), Arg::Int(refresh)]) => {
                let mode = Mode { flags: *flags, width: *width, height: *height, refresh: *refresh };
                if mode.flags & MODE_CURRENT != 0 {
                    if let Some(old) = watched.passing.take() {
                        output.modes.retain(|mode| !is_like(mode, &old));
                    }
                    let is_new = !output.modes.iter().any(|old| is_like(old, &mode));
                    watched.passing = Some(mode).filter(|_| watched.listed && is_new);
                }
                add_mode(&mut output.modes, mode);
            }
            ("done", []) => watched.listed = true,
            ("scale", [Arg::Int(scale)]) => output.scale = *scale,
            ("name", [value]) => output.name = text(value),
            ("description", [value]) => output.description = text(value),
            _ => {}
        }
        self.note_change();
    }

    fn on_xdg_output(&mut self, name: u32, event: &str, args: &[Arg]) {
        let Some(watched) = self.outputs.get_mut(&name) else { return };
        let (x, y, width, height) = watched.logical.unwrap_or_default();
        match (event, args) {
            ("logical_position", [Arg::Int(x), Arg::Int(y)]) => {
                watched.logical = Some((*x, *y, width, height))
            }
            ("logical_size", [Arg::Int(width), Arg::Int(height)]) => {
                watched.logical = Some((x, y, *width, *height));
            }
            ("name", [value]) => watched.output.name = text(value),
            ("description", [value]) => watched.output.description = text(value),
            _ => {}
        }
        self.note_change();
    }

    fn on_seat(&mut self, name: u32, event: &str, args: &[Arg]) {
        let Some(watched) = self.seats.get_mut(&name) else { return };
        match (event, args) {
            ("capabilities", [Arg::Uint(capabilities)]) => {
                watched.seat.capabilities = *capabilities;
                self.follow_keyboard(name, capabilities & KEYBOARD != 0);
            }
            ("name", [value]) => watched.seat.name = text(value),
            _ => {}
        }
        self.note_change();
    }

    /// Holds a keyboard of the seat exactly while there is one.
    fn follow_keyboard(&mut self, name: u32, present: bool) {
        let Some(watched) = self.seats.get_mut(&name) else { return };
        let seat = watched.id;
        match (present, watched.keyboard) {
            (true, None) => {
                let version = self.things.get(&seat).map_or(1, |thing| thing.version);
                let keyboard = self.add("wl_keyboard", version, Role::Keyboard(name));
                self.ask(seat, ops::SEAT_GET_KEYBOARD, vec![Arg::NewId(keyboard)]);
                if let Some(watched) = self.seats.get_mut(&name) {
                    watched.keyboard = Some(keyboard);
                }
            }
            (false, Some(keyboard)) => {
                watched.keyboard = None;
                watched.seat.keymap = None;
                watched.seat.repeat = None;
                self.destroy(keyboard, ops::KEYBOARD_RELEASE, 3);
            }
            _ => {}
        }
    }

    fn on_keyboard(&mut self, name: u32, event: &str, args: &[Arg]) {
        let Some(watched) = self.seats.get_mut(&name) else { return };
        match (event, args) {
            ("keymap", [Arg::Uint(format), Arg::Fd(fd), Arg::Uint(length)]) => {
                let Ok(bytes) = crate::blob::read(fd, *length) else {
                    let what = format!("its keymap of {length} bytes cannot be read");
                    return self.finish(End::CompositorError(what));
                };
                let hash = crate::blob::hash(&bytes);
                watched.seat.keymap = Some(Keymap { format: *format, hash, length: *length });
                self.actions.push_back(Action::Blob { hash, bytes });
            }
            ("repeat_info", [Arg::Int(rate), Arg::Int(delay)]) => watched.seat.repeat = Some((*rate, *delay)),
            // Without a surface there are no keys.
            _ => return,
        }
        self.note_change();
    }

    /// Something is new: a snapshot follows when the compositor has nothing more to say.
    fn note_change(&mut self) {
        self.changed = true;
        if !self.syncing {
            self.sync();
        }
    }

    fn on_synced(&mut self) -> Option<Snapshot> {
        self.syncing = false;
        if self.asked {
            self.sync();
            return None;
        }
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        if let Some(lacking) = self.lacking() {
            self.finish(End::CompositorError(format!("it lacks {lacking}")));
            return None;
        }
        Some(self.snapshot())
    }

    /// What must be there and is not, for people.
    fn lacking(&self) -> Option<String> {
        let offered =
            |name: &str| self.globals.values().filter(|g| g.interface == name).map(|g| g.version).max();
        let mut lacking = tables::GLOBALS.iter().filter_map(|global| match global.missing {
            Missing::Fatal { least } if offered(global.name()).is_none_or(|version| version < least) => {
                Some(format!("{} version {least} or later", global.name()))
            }
            _ => None,
        });
        let first = lacking.next()?;
        Some(lacking.fold(first, |all, one| all + ", " + &one))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            globals: self.globals.values().cloned().collect(),
            outputs: self.outputs.values().map(WatchedOutput::describe).collect(),
            seats: self.seats.values().map(|watched| watched.seat.clone()).collect(),
            formats: self.formats.clone(),
        }
    }

    fn bind(&mut self, name: u32, interface: &'static str, version: u32, role: Role) -> u32 {
        let id = self.add(interface, version, role);
        let interface = interface.as_bytes().to_vec();
        let args = vec![Arg::Uint(name), Arg::Str(Some(interface)), Arg::Uint(version), Arg::NewId(id)];
        self.ask(REGISTRY, ops::REGISTRY_BIND, args);
        id
    }

    fn add(&mut self, interface: &str, version: u32, role: Role) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.things.insert(id, Thing { interface: known(interface), version, role });
        id
    }

    fn set_role(&mut self, id: u32, role: Role) {
        if let Some(thing) = self.things.get_mut(&id) {
            thing.role = role;
        }
    }

    /// Destroys an object, by a request that exists from `since` on; below it the object is merely ignored.
    fn destroy(&mut self, id: u32, opcode: u16, since: u32) {
        let version = self.things.get(&id).map_or(0, |thing| thing.version);
        self.set_role(id, Role::Gone);
        if version >= since {
            self.ask(id, opcode, vec![]);
        }
    }

    fn sync(&mut self) {
        let callback = self.add("wl_callback", 1, Role::Sync);
        self.ask(1, ops::DISPLAY_SYNC, vec![Arg::NewId(callback)]);
        self.syncing = true;
        self.asked = false;
    }

    fn ask(&mut self, id: u32, opcode: u16, args: Vec<Arg>) {
        self.asked = true;
        if let Err(error) = self.output.encode(id, opcode, args) {
            self.finish(End::CompositorError(error.to_string()));
        }
    }

    fn finish(&mut self, end: End) {
        self.end.get_or_insert(end);
    }
}

impl Default for Watcher {
    fn default() -> Self {
        Self::new()
    }
}

/// The registry's id: the first that is given away.
const REGISTRY: u32 = 2;

impl WatchedOutput {
    fn describe(&self) -> Output {
        let mut output = self.output.clone();
        output.logical = self.logical.unwrap_or_else(|| {
            let mode = output.modes.iter().find(|mode| mode.flags & MODE_CURRENT != 0);
            let scale = output.scale.max(1);
            let (width, height) = mode.map_or((0, 0), |mode| (mode.width / scale, mode.height / scale));
            // Odd transforms turn by a quarter.
            let (width, height) = if output.transform & 1 == 1 { (height, width) } else { (width, height) };
            (output.position.0, output.position.1, width, height)
        });
        output
    }
}

/// `wl_output.mode.current`.
const MODE_CURRENT: u32 = 1;

/// Adds a mode; one that is current takes that from the others, and a mode told again replaces itself.
fn add_mode(modes: &mut Vec<Mode>, mode: Mode) {
    modes.retain(|old| !is_like(old, &mode));
    if mode.flags & MODE_CURRENT != 0 {
        modes.iter_mut().for_each(|old| old.flags &= !MODE_CURRENT);
    }
    if modes.len() >= snapshot::MAX_MODES {
        modes.remove(0);
    }
    modes.push(mode);
}

/// Whether two modes differ in nothing but their flags.
fn is_like(a: &Mode, b: &Mode) -> bool {
    (a.width, a.height, a.refresh) == (b.width, b.height, b.refresh)
}

/// A name or description, within the bounds of a snapshot.
fn text(arg: &Arg) -> String {
    let Arg::Str(Some(bytes)) = arg else { return String::new() };
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    while text.len() > snapshot::MAX_TEXT {
        text.pop();
    }
    text
}
