//! One program's connection to the compositor: start, input, output, end.
//!
//! The parts that do the work are in the modules beside this one, as further `impl` blocks: requests, units, events.
//! Invariant: after [`Connection::end`] has become `Some`, nothing more is sent to either side but what is queued.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wayferry_proto::{Time, UpdateHeader};

use crate::action::{Action, End};
use crate::blob::Kept;
use crate::message::{self, MAX_AHEAD, ToApp, ToDisplay, WireId};
use crate::policy::Handler;
use crate::tables::{self, Access};
use crate::trace::Probe;
use crate::wire::{Arg, InBuffer, OutBuffer};

use super::cursor::Cursors;
use super::hold::{Holds, Need};
use super::images::Images;
use super::keyboard::Keyboards;
use super::objects::{Object, Objects, Own, Presence};
use super::ops::{self, known};
use super::pings::Pings;
use super::put_off::PutOff;
use super::shm::Shm;
use super::surface::{Memory, Surface};
use super::tree::Tree;
use super::updates::Updates;
use super::waiting::Waiting;

/// Bytes that may wait for a compositor that does not read. From half of that on what the app side says waits; one message
/// of it makes no more than the other half.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// What may wait here of the app side's messages, by [`message::cost`]. It stops listening to its program at a quarter of
/// that; only what is due by time leaves it then.
pub(super) const MAX_WAITING: u64 = 4 * MAX_AHEAD;
/// What is handled before the app side is told of it: far below what it may be ahead.
const ACKNOWLEDGE_EVERY: u64 = 64 << 10;

/// Pipes that one turn of the run loop may open, a descriptor or two each; what would open more waits for the next turn.
pub(super) const MAX_WAITING_PIPES: usize = 64;

/// What a connection needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The host's `CLOCK_MONOTONIC` when the run loop started, nanoseconds.
    pub clock_start_ns: u64,
    /// Who wants to know what takes how long.
    pub probe: Probe,
    /// Privileged globals that the app side may bind; others are refused to it as if the compositor lacked them.
    /// `None`, the default, leaves that to the app side, which then must be trusted as much as this side is: it
    /// could read the clipboard and type into other windows.
    pub allow: Option<Vec<String>>,
    /// Name of the cursor theme for shapes that the compositor cannot draw; default `$XCURSOR_THEME`.
    pub cursor_theme: String,
    /// Nominal cursor size in pixels at scale 1; default `$XCURSOR_SIZE`, else 24.
    pub cursor_size: u32,
}

impl Default for Config {
    fn default() -> Self {
        let size = std::env::var("XCURSOR_SIZE").ok().and_then(|size| size.parse().ok());
        Self {
            clock_start_ns: 0,
            probe: Probe::default(),
            allow: None,
            cursor_theme: std::env::var("XCURSOR_THEME").unwrap_or_else(|_| "default".to_owned()),
            cursor_size: size.filter(|size| (1..=512).contains(size)).unwrap_or(24),
        }
    }
}

/// A global of the compositor, as this connection's own registry lists it.
#[derive(Debug, Clone)]
pub(super) struct Global {
    pub(super) name: u32,
    pub(super) interface: String,
    pub(super) version: u32,
}

/// How far the connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The registry is being listed.
    Registry,
    /// The formats are being listed.
    Formats,
    /// Messages of the app side are handled.
    Running,
}

/// The globals that the display side uses itself.
#[derive(Debug, Default)]
pub(super) struct Helpers {
    pub(super) registry: u32,
    pub(super) compositor: u32,
    pub(super) compositor_version: u32,
    pub(super) shm: u32,
    pub(super) presentation: Option<u32>,
    /// Presentation times are of a clock that is not `CLOCK_MONOTONIC`.
    pub(super) foreign_clock: bool,
}

/// What all connections together may do in a turn of what takes long, so that input need not wait for more; what is done is
/// taken off. Bytes of memory that is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For units: one that costs more than what is left is painted nevertheless, and the last one in this turn.
    pub paint: usize,
    /// For decompressing content.
    pub open: usize,
    /// What icons may take beside what they take already; others are left out.
    pub icons: u64,
}

impl Room {
    /// Everything at once.
    pub const ENDLESS: Self = Self { paint: usize::MAX, open: usize::MAX, icons: u64::MAX };
    const NONE: Self = Self { paint: 0, open: 0, icons: 0 };
}

impl Default for Room {
    /// A few milliseconds' work.
    fn default() -> Self {
        Self { paint: 2 << 20, open: 1 << 20, icons: u64::MAX }
    }
}

/// The display half of one program's connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) input: InBuffer,
    pub(super) output: OutBuffer,
    pub(super) actions: VecDeque<Action>,
    pub(super) end: Option<End>,
    pub(super) stage: Stage,
    /// When the app side was last told when events are read, while the link is silent.
    read_told: Option<Time>,
    /// When the compositor last wanted frames, unless the app side was told.
    pub(super) beat: Option<Time>,
    /// What was taken in, by [`message::cost`], and how much of that the app side was told to be handled.
    received: u64,
    acknowledged: u64,
    /// What the message at hand counts for.
    pub(super) cost: u64,
    /// Messages that came before the compositor had listed its globals, and what each counts for.
    pub(super) backlog: VecDeque<(u64, ToDisplay)>,
    /// What those count for together.
    deferred: u64,
    pub(super) globals: Vec<Global>,
    pub(super) helpers: Helpers,
    pub(super) formats: HashSet<u32>,
    pub(super) objects: Objects,
    pub(super) holds: Holds<Waiting>,
    pub(super) surfaces: HashMap<WireId, Surface>,
    pub(super) memory: Memory,
    pub(super) shm: Shm,
    pub(super) tree: Tree,
    pub(super) updates: Updates,
    pub(super) put_off: PutOff,
    /// What may be done now of what takes long; nothing, but for within [`Self::work`].
    pub(super) room: Room,
    /// Something was held since this turn began that needs more than is left of it.
    pub(super) turn_is_over: bool,
    pub(super) blobs: Kept,
    pub(super) keyboards: Keyboards,
    pub(super) cursors: Cursors,
    pub(super) images: Images,
    pub(super) pings: Pings,
    pub(super) next_pipe: u64,
    /// Reading ends of pipes that the run loop has not taken yet.
    pub(super) waiting_pipes: usize,
}

/// How often the app side is told when events are read, while the link is silent.
const READ_EVERY: Duration = Duration::from_millis(100);

impl Connection {
    /// A connection to a compositor that has just been reached.
    pub fn new(config: Config) -> Self {
        let objects = Objects::new(known("wl_display"));
        Self::over(config, objects, InBuffer::new(), OutBuffer::new(MAX_OUTPUT), None)
    }

    /// A connection to a compositor that has been spoken to.
    pub(super) fn over(
        config: Config,
        objects: Objects,
        input: InBuffer,
        output: OutBuffer,
        end: Option<End>,
    ) -> Self {
        let cursors = Cursors::new(config.cursor_theme.clone(), config.cursor_size);
        let mut connection = Self {
            config,
            input,
            output,
            actions: VecDeque::new(),
            end,
            stage: Stage::Registry,
            read_told: None,
            beat: None,
            received: 0,
            acknowledged: 0,
            cost: 0,
            deferred: 0,
            backlog: VecDeque::new(),
            globals: Vec::new(),
            helpers: Helpers::default(),
            formats: HashSet::from([0, 1]),
            objects,
            holds: Holds::default(),
            surfaces: HashMap::new(),
            memory: Memory::default(),
            shm: Shm::default(),
            tree: Tree::default(),
            updates: Updates::default(),
            put_off: PutOff::default(),
            room: Room::NONE,
            turn_is_over: false,
            blobs: Kept::default(),
            keyboards: Keyboards::default(),
            cursors,
            images: Images::default(),
            pings: Pings::default(),
            next_pipe: 1,
            waiting_pipes: 0,
        };
        if let Err(end) = connection.begin() {
            connection.finish(end);
        }
        connection
    }

    /// Where the run loop puts what it read from the compositor; call [`Self::process`] then.
    pub fn input(&mut self) -> &mut InBuffer {
        &mut self.input
    }

    /// What the run loop is to write to the compositor.
    pub fn output(&mut self) -> &mut OutBuffer {
        &mut self.output
    }

    /// Tells whether the link is silent, before what the compositor sent is handled: the app side drops presses that it gets
    /// late.
    pub fn set_silent(&mut self, now: Time, silent: bool) {
        let due = self.read_told.is_none_or(|told| now.since(told) >= READ_EVERY);
        if (silent && due) || (!silent && self.read_told.is_some()) {
            let time_ns = self.clock_ns(now);
            self.tell(&ToApp::Read { time_ns });
            self.read_told = silent.then_some(now);
        }
    }

    /// Handles the messages in the input buffer.
    pub fn process(&mut self, now: Time) {
        while self.end.is_none() {
            let outcome = match self.input.next_message() {
                Ok(None) => break,
                Ok(Some(raw)) => self.on_event(now, &raw),
                Err(error) => Err(End::CompositorError(error.to_string())),
            };
            self.settle(outcome);
        }
        self.pump(now);
    }

    /// Handles one message of the app half; a malformed one ends the connection.
    pub fn on_message(&mut self, now: Time, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        let cost = message::cost(bytes);
        self.received += cost;
        let outcome = match ToDisplay::decode(bytes) {
            Err(error) => Err(End::PeerViolation(error.to_string())),
            Ok(message) if self.stage != Stage::Running => {
                self.defer(cost, message);
                Ok(())
            }
            Ok(message) => self.handle(now, cost, message),
        };
        self.settle(outcome);
        if self.waiting() > MAX_WAITING {
            let what = format!("messages that cost {} wait, expected at most {MAX_WAITING}", self.waiting());
            self.finish(End::PeerViolation(what));
        }
        self.pump(now);
    }

    /// What waits here of the app side's messages.
    fn waiting(&self) -> u64 {
        self.deferred + self.holds.cost()
    }

    /// Tells the app side, now and then, how much of what it said has been handled.
    pub(super) fn acknowledge(&mut self) {
        let handled = self.received - self.waiting();
        if handled - self.acknowledged >= ACKNOWLEDGE_EVERY {
            self.acknowledged = handled;
            self.tell(&ToApp::Consumed { bytes: handled });
        }
    }

    fn handle(&mut self, now: Time, cost: u64, message: ToDisplay) -> Result<(), End> {
        self.cost = cost;
        self.on_to_display(now, message)
    }

    /// Takes in a complete update of a surface; the surface may not have been made yet, or be gone.
    pub fn on_update(&mut self, now: Time, header: &UpdateHeader, chunks: Vec<Bytes>) {
        if self.end.is_some() {
            return;
        }
        let outcome = self.updates.add(header, chunks);
        self.settle(outcome);
        self.meet_updates(WireId(header.surface.0));
        self.pump(now);
    }

    /// Does a part of what takes long: paints large units that are ready, and decompresses large content that has arrived,
    /// for which its unit waits. [`Self::next_timeout`] says at once that there is more, so that whatever shares the thread
    /// has its turn before.
    pub fn work(&mut self, now: Time, room: &mut Room) {
        if self.output.is_empty() {
            self.images.all_told();
        }
        if self.end.is_some() || !self.has_work() {
            return;
        }
        self.room = *room;
        self.turn_is_over = false;
        self.pump(now);
        // One by one, so that what finds no room is not looked at in each turn.
        while self.may_send() && !self.turn_is_over && self.holds.meet_first(Need::Turn) {
            self.pump(now);
        }
        match self.updates.open(&mut self.room.open, &self.config.probe) {
            Ok(false) => {}
            Ok(true) => {
                self.meet_all_updates();
                self.pump(now);
            }
            Err(end) => self.finish(end),
        }
        *room = std::mem::replace(&mut self.room, Room::NONE);
    }

    fn has_work(&self) -> bool {
        let waits = self.holds.has_ready() || self.holds.is_needed(&Need::Turn);
        (waits && !self.is_clogged()) || self.updates.has_closed()
    }

    /// Whether more may be said to the compositor.
    pub(super) fn may_send(&self) -> bool {
        self.end.is_none() && !self.is_clogged()
    }

    /// Whether the compositor is to read before more is said to it.
    pub(super) fn is_clogged(&self) -> bool {
        self.output.len() > MAX_OUTPUT / 2
    }

    /// Takes in a blob, before or after the message that names it.
    pub fn on_blob(&mut self, now: Time, hash: u128, bytes: &Rc<[u8]>) {
        if self.end.is_some() {
            return;
        }
        self.blobs.add(hash, Rc::clone(bytes));
        self.holds.meet(Need::Blob(hash));
        self.pump(now);
    }

    /// The compositor has closed its socket; call after [`Self::process`] has seen the last bytes.
    pub fn on_hang_up(&mut self) {
        if self.end.is_none() {
            let what = "the compositor closed the connection".to_owned();
            let (object, code) = (WireId::DISPLAY, DISPLAY_IMPLEMENTATION);
            self.tell(&ToApp::Fatal { object, code, message: what.clone() });
            self.finish(End::CompositorError(what));
        }
    }

    /// When [`Self::on_timeout`] or [`Self::work`] wants to be called.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        if self.has_work() {
            return Some(Time::ZERO);
        }
        let frames = self.surfaces.values().filter_map(Surface::hidden_at);
        frames.chain(self.keyboards.next_beat()).min()
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, now: Time) {
        if self.end.is_some() {
            return;
        }
        let mut hidden: Vec<WireId> = Vec::new();
        for (wire, surface) in &mut self.surfaces {
            if surface.hide_if_due(now) {
                hidden.push(*wire);
            }
        }
        hidden.sort_unstable();
        for surface in hidden {
            self.tell(&ToApp::Visible { surface, visible: false });
        }
        for keyboard in self.keyboards.beats(now) {
            self.tell(&ToApp::KeysHeld { keyboard });
        }
        self.pump(now);
    }

    /// The next thing that the run loop is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.actions.pop_front();
        if matches!(action, Some(Action::PipeOut { .. })) {
            self.waiting_pipes -= 1;
        }
        action
    }

    /// The id that the compositor knows an object of the program by; `None` if it does not have it.
    pub fn id_of(&self, wire: WireId) -> Option<u32> {
        self.objects.live(wire)
    }

    /// Why the connection is over, once it is: write what is queued, perform the actions, then close everything.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn begin(&mut self) -> Result<(), End> {
        let registry = self.objects.own(known("wl_registry"), 1, Own::Registry)?;
        self.helpers.registry = registry;
        self.send(1, ops::DISPLAY_GET_REGISTRY, vec![Arg::NewId(registry)])?;
        self.sync_start()
    }

    fn sync_start(&mut self) -> Result<(), End> {
        let callback = self.objects.own(known("wl_callback"), 1, Own::Start)?;
        self.send(1, ops::DISPLAY_SYNC, vec![Arg::NewId(callback)])
    }

    /// A step of the start is over.
    pub(super) fn on_start(&mut self, now: Time) -> Result<(), End> {
        match self.stage {
            Stage::Registry => {
                self.bind_helpers()?;
                self.stage = Stage::Formats;
                self.sync_start()
            }
            Stage::Formats => {
                self.stage = Stage::Running;
                while let Some((cost, message)) = self.backlog.pop_front() {
                    self.deferred -= cost;
                    self.handle(now, cost, message)?;
                }
                Ok(())
            }
            Stage::Running => Ok(()),
        }
    }

    fn bind_helpers(&mut self) -> Result<(), End> {
        let lacks = |name: &str| End::CompositorError(format!("it has no {name}"));
        let compositor = self.bind_own("wl_compositor", 4, Own::Helper)?;
        (self.helpers.compositor, self.helpers.compositor_version) =
            compositor.ok_or_else(|| lacks("wl_compositor"))?;
        (self.helpers.shm, _) = self.bind_own("wl_shm", 1, Own::Shm)?.ok_or_else(|| lacks("wl_shm"))?;
        let presentation = self.bind_own("wp_presentation", 1, Own::Presentation)?;
        self.helpers.presentation = presentation.map(|(id, _)| id);
        Ok(())
    }

    /// Binds a global for the display side's own use; gives its id and version.
    fn bind_own(&mut self, name: &str, cap: u32, own: Own) -> Result<Option<(u32, u32)>, End> {
        let Some(global) = self.globals.iter().find(|global| global.interface == name).cloned() else {
            return Ok(None);
        };
        let version = cap.min(global.version);
        let id = self.objects.own(known(name), version, own)?;
        self.send_bind(&global, version, id)?;
        Ok(Some((id, version)))
    }

    fn send_bind(&mut self, global: &Global, version: u32, id: u32) -> Result<(), End> {
        let interface = global.interface.clone().into_bytes();
        let args =
            vec![Arg::Uint(global.name), Arg::Str(Some(interface)), Arg::Uint(version), Arg::NewId(id)];
        self.send(self.helpers.registry, ops::REGISTRY_BIND, args)
    }

    fn defer(&mut self, cost: u64, message: ToDisplay) {
        self.deferred += cost;
        self.backlog.push_back((cost, message));
    }

    fn on_to_display(&mut self, now: Time, message: ToDisplay) -> Result<(), End> {
        match message {
            ToDisplay::Bind { global, interface, version, id } => self.bind(global, &interface, version, id),
            ToDisplay::Request(request) => self.accept_request(request),
            ToDisplay::Unit(unit) => self.accept_unit(now, unit),
            ToDisplay::KeymapTold { keyboard, hash } => self.on_keymap_told(keyboard, hash),
            ToDisplay::Hang(hangs) => self.on_hang(hangs),
            ToDisplay::Superseded { surface, update, by } => self.on_superseded(surface, update.0, by.0),
        }
    }

    fn bind(&mut self, name: u32, interface: &str, version: u32, id: WireId) -> Result<(), End> {
        let Some(known) = tables::global(interface) else {
            return Err(End::PeerViolation(format!("`{}` is no known global", printable(interface))));
        };
        let table = known.interface();
        let mut object = Object::new(table, version, Presence::Inert, Vec::new());
        let found = self.globals.iter().find(|global| global.name == name && global.interface == interface);
        let found = found.filter(|_| self.may_bind(known));
        let Some(global) = found.cloned() else { return self.objects.declare(id, object) };
        object.version = version.clamp(1, global.version.min(table.version));
        object.presence = Presence::Awaited;
        let version = object.version;
        self.objects.declare(id, object)?;
        let local = self.objects.place(id)?;
        self.send_bind(&global, version, local)
    }

    fn may_bind(&self, global: &tables::Global) -> bool {
        match global.access {
            Access::Offered => true,
            Access::Privileged => {
                self.config.allow.as_ref().is_none_or(|allow| allow.iter().any(|name| name == global.name()))
            }
            Access::Withheld => false,
        }
    }

    fn on_keymap_told(&mut self, keyboard: WireId, hash: u128) -> Result<(), End> {
        match self.objects.usable(keyboard) {
            Some(object) if object.handler == Handler::Keyboard => {
                self.keyboards.told(keyboard, hash);
                Ok(())
            }
            _ => Err(End::PeerViolation(format!("object {} is no wl_keyboard", keyboard.0))),
        }
    }

    fn on_hang(&mut self, hangs: bool) -> Result<(), End> {
        for (id, serial) in self.pings.set_hangs(hangs) {
            if self.objects.local(id).is_some_and(|local| !local.gone) {
                self.send(id, ops::WM_BASE_PONG, vec![Arg::Uint(serial)])?;
            }
        }
        Ok(())
    }

    /// Queues a request for the compositor.
    pub(super) fn send(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), End> {
        use crate::wire::Error;
        self.output.encode(id, opcode, args).map_err(|error| match error {
            Error::QueueFull { .. } => End::TooMuch("bytes that wait for the compositor"),
            error => End::PeerViolation(error.to_string()),
        })
    }

    /// Queues a message for the app half.
    pub(super) fn tell(&mut self, message: &ToApp) {
        self.actions.push_back(Action::Message(message.encode()));
    }

    /// A new pipe's number.
    pub(super) fn allocate_pipe(&mut self) -> u64 {
        let pipe = self.next_pipe;
        self.next_pipe += 2;
        pipe
    }

    /// Has what comes out of `fd` sent to the app side.
    pub(super) fn pipe_out(&mut self, pipe: u64, fd: OwnedFd) {
        self.waiting_pipes += 1;
        self.actions.push_back(Action::PipeOut { pipe, fd });
    }

    pub(super) fn settle(&mut self, outcome: Result<(), End>) {
        if let Err(end) = outcome {
            self.finish(end);
        }
    }

    pub(super) fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
        }
    }
}

pub(super) fn wrong(what: String) -> End {
    End::PeerViolation(what)
}

pub(super) fn no_memory(_: std::io::Error) -> End {
    End::TooMuch("shared memory for buffers")
}

/// `wl_display.error.implementation`.
pub(super) const DISPLAY_IMPLEMENTATION: u32 = 3;

/// Text of the peer, fit for a message to people.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
