//! The app side of one Wayland connection: the program's server.
//!
//! It answers locally what can be answered locally (registry, memory, callbacks, outputs, most of `sync`), folds
//! commits into units with the pixels they need, and passes everything else on by the policy table. It does no I/O
//! but `pread` on the program's memory and `pipe`; bytes and descriptors come and go through [`Connection::input`]
//! and [`Connection::output`], everything for the display side through [`Connection::poll_action`].
//!
//! | module | noun |
//! |---|---|
//! | `object` | ids and objects |
//! | `request` | one request of the program, routed by its class |
//! | `registry` | globals, bind, sync |
//! | `desk` | outputs and seats, answered from the snapshot |
//! | `memory`, `shm` | pools and buffers |
//! | `surface`, `pending`, `commit`, `flush` | a surface, what its next commit has, its commits, how units leave |
//! | `pacing`, `beat` | how fast commits leave, and when frames are drawn |
//! | `credit`, `flow` | what the link takes now, and how far the display side is |
//! | `role`, `shape` | what a surface is used for, and how its content is shown |
//! | `timing` | commits that are to be applied later |
//! | `room` | what all contents take |
//! | `painter` | the pixels of one surface, and what one display is told of them |
//! | `making` | a commit whose pixels are being encoded |
//! | `under_way` | units that the display side has not applied |
//! | `better` | what is lossy becomes exact |
//! | `films` | pictures that change all the time |
//! | `fade` | pixels that are multiplied where the compositor cannot |
//! | `stub` | answers for what the attached compositor lacks |
//! | `older` | the same for versions that it lacks |
//! | `event` | events of the compositor on their way to the program |
//! | `keyboard` | keys that must not stay down when the link falls silent |
//! | `late` | input that comes too late to be meant |
//! | `away` | a program without a display |
//! | `birth`, `keep`, `keeping`, `committed` | what is kept for another display |
//! | `told`, `clipboard` | what ends with a display, and what is offered again |
//! | `slots` | outputs and seats as the program knows them |
//! | `replay`, `restage` | a new display |
//! | `watch`, `publish`, `view` | displays that only look on |
//!
//! Invariant: nothing that the program sends can end more than this connection.

mod away;
mod beat;
mod better;
mod birth;
mod clipboard;
mod commit;
mod committed;
mod credit;
mod desk;
mod event;
mod fade;
mod films;
mod flow;
mod flush;
mod focus;
mod keep;
mod keeping;
mod keyboard;
mod late;
mod making;
mod memory;
mod object;
mod older;
mod pacing;
mod painter;
mod pending;
mod publish;
mod registry;
mod replay;
mod request;
mod restage;
mod role;
mod room;
mod serial;
mod shape;
mod shm;
mod slots;
mod stack;
mod stub;
mod surface;
#[cfg(test)]
mod tests;
mod timing;
mod told;
mod under_way;
mod view;
mod watch;

pub use credit::Credit;
pub use flush::{TakeBack, Turn};
pub use keep::Kept;
pub use painter::Fidelity;
pub use view::{Counts, Scene, View};
pub use watch::{Published, Whole};

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use wayferry_pixels::{Compression, Encoder, Workspace};
use wayferry_proto::{ClockMap, HostTime, MAX_MESSAGE, Time, UpdateHeader};

use crate::action::{Action, End};
use crate::blob;
use crate::codec;
use crate::message::{ToApp, ToDisplay, WireId};
use crate::snapshot::Snapshot;
use crate::tables;
use crate::trace::Probe;
use crate::wire::{Arg, InBuffer, OutBuffer};

use self::keyboard::Keyboard;
use self::making::Making;
use self::object::{Object, Objects};
use self::registry::Offer;
use self::surface::Surface;

/// Bytes that may wait for a program that does not read its socket; the events of about ten thousand messages.
const MAX_WAITING_OUT: usize = 1 << 20;
/// Requests handled in one turn: a few frames' worth, a fraction of a millisecond unless they bring pixels.
const REQUESTS_AT_ONCE: usize = 64;
/// Events of the compositor that wait for a blob.
const MAX_WAITING_EVENTS: usize = 65_536;

/// What a connection is told once.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Globals offered although they are refused by default.
    pub allow: Vec<String>,
    /// Globals not offered although they are by default.
    pub deny: Vec<String>,
    /// Put before every window title.
    pub title_prefix: String,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Quality, from 1 to 100, of pictures that are lossy at first because the link is slow; `None` if nothing may be.
    pub lossy: Option<u8>,
    /// Threads that share the encoding of a large update, the run loop's among them; 0 is 1. With more than one, films have
    /// one of their own.
    pub threads: usize,
    /// Where all that is encoded; of connections that take turns, one is enough.
    pub workspace: Workspace,
    /// This host's monotonic clock at the session's start.
    pub clock_start: HostTime,
    /// Who wants to know what takes how long.
    pub probe: Probe,
}

impl Config {
    fn encoder(&self) -> Encoder {
        Encoder::new(self.compression).with_threads(self.threads).with_workspace(self.workspace.clone())
    }
}

/// What the app side knows of the display that is attached.
#[derive(Debug, Clone, Default)]
pub struct Desk {
    /// The compositor's state as last told.
    pub snapshot: Snapshot,
    /// Maps the display side's times to this host's.
    pub clock: ClockMap,
    /// It shows films.
    pub video: bool,
}

/// Who is at fault, and what to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The program; it gets a `wl_display.error` about this object with this code of the object's interface: one of
    /// [`error_code`] goes with object 1 or a registry.
    App { object: u32, code: u32, message: String },
    /// The display side.
    Peer(String),
    /// A limit.
    TooMuch(&'static str),
}

impl Fault {
    pub(crate) fn app(object: u32, code: u32, message: impl Into<String>) -> Self {
        Self::App { object, code, message: message.into() }
    }

    /// As [`Self::app`], with a code of [`error_code`].
    pub(crate) fn display(code: u32, message: impl Into<String>) -> Self {
        Self::app(DISPLAY, code, message)
    }
}

/// The program's `wl_display`.
const DISPLAY: u32 = 1;

/// `wl_display.error` codes.
pub(crate) mod error_code {
    pub(crate) const INVALID_OBJECT: u32 = 0;
    pub(crate) const INVALID_METHOD: u32 = 1;
    pub(crate) const NO_MEMORY: u32 = 2;
    pub(crate) const IMPLEMENTATION: u32 = 3;
}

/// One program's connection, seen from the app side.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    /// Of the display that is attached, or was last.
    desk: Rc<Desk>,
    attached: bool,
    now: Time,
    input: InBuffer,
    output: OutBuffer,
    objects: Objects,
    surfaces: HashMap<u32, Surface>,
    offers: Vec<Offer>,
    keyboards: HashMap<u32, Keyboard>,
    late: late::Late,
    /// How long ago the display side had read the events that come now, when it last said so.
    read_age: Duration,
    focus: focus::Focus,
    encoder: Encoder,
    /// Who makes the frames of films.
    codec: codec::Maker,
    /// The commit whose pixels are being encoded.
    making: Option<Making>,
    actions: VecDeque<Action>,
    blobs: blob::Kept,
    waiting_events: VecDeque<ToApp>,
    sync: registry::Sync,
    ping: registry::Ping,
    serials: serial::Serials,
    slots: slots::Slots,
    told: told::Told,
    clipboard: clipboard::Clipboard,
    keeping: keeping::Keeping,
    next_pipe: u64,
    pools: shm::Pools,
    room: room::Room,
    /// Alpha modifiers are ours.
    fades: bool,
    pacing: pacing::Pacing,
    /// The last turn ended before the input did.
    more: bool,
    watching: watch::Watching,
    /// Contents that were encoded.
    encodings: u64,
    end: Option<End>,
}

impl Connection {
    /// A fresh connection of a program to the display described by `desk`. Without a display, [`Self::detach`] it at once;
    /// `desk` then is the last one, or the default.
    ///
    /// # Panics
    /// Never: `wl_display` is in the tables of the Wayland crates.
    pub fn new(config: Config, desk: &Rc<Desk>) -> Self {
        let display = tables::interface("wl_display").expect("wl_display is in the core protocol");
        let slots = slots::Slots::new(&desk.snapshot);
        let fades = Self::fades_at(&desk.snapshot);
        let offers = registry::offers(&config, &desk.snapshot, &slots, fades);
        Self {
            encoder: config.encoder(),
            codec: codec::Maker::new(config.threads > 1),
            config,
            desk: Rc::clone(desk),
            attached: true,
            now: Time::ZERO,
            input: InBuffer::new(),
            output: OutBuffer::new(MAX_WAITING_OUT),
            objects: Objects::new(Object::new(display, 1)),
            surfaces: HashMap::new(),
            making: None,
            offers,
            keyboards: HashMap::new(),
            late: late::Late::default(),
            read_age: Duration::ZERO,
            focus: focus::Focus::default(),
            actions: VecDeque::new(),
            blobs: blob::Kept::default(),
            waiting_events: VecDeque::new(),
            sync: registry::Sync::default(),
            ping: registry::Ping::default(),
            serials: serial::Serials::default(),
            slots,
            told: told::Told::default(),
            clipboard: clipboard::Clipboard::default(),
            keeping: keeping::Keeping::default(),
            next_pipe: 2,
            pools: shm::Pools::default(),
            room: room::Room::default(),
            fades,
            pacing: pacing::Pacing::default(),
            more: false,
            watching: watch::Watching::default(),
            encodings: 0,
            end: None,
        }
    }

    /// Where the run loop puts what it reads from the program.
    pub fn input(&mut self) -> &mut InBuffer {
        &mut self.input
    }

    /// What the run loop writes to the program.
    pub fn output(&mut self) -> &mut OutBuffer {
        &mut self.output
    }

    /// Handles requests that have arrived, a bounded number at a time so that no program holds up the others or its
    /// own frames; [`Self::next_timeout`] says at once that there are more. Requests wait while the connection is
    /// [stalled](Self::stalled).
    pub fn process(&mut self, now: Time) {
        self.now = now;
        self.more = false;
        for _ in 0..REQUESTS_AT_ONCE {
            if self.end.is_some() || self.stalled() {
                return;
            }
            let step = match self.input.next_message() {
                Ok(Some(raw)) => {
                    self.watching.stir();
                    self.on_request(&raw)
                }
                Ok(None) => return,
                Err(error) => Err(Fault::app(1, error_code::INVALID_METHOD, error.to_string())),
            };
            self.settle(step);
        }
        self.more = true;
    }

    /// Whether [`Self::process`] leaves requests unread: pixels of the last commit are still being encoded, or too much of
    /// what requests brought is on its way.
    pub fn stalled(&self) -> bool {
        self.making.is_some() || self.pacing.is_overrun()
    }

    /// Whether pixels of a commit are still being encoded: [`Self::flush`] goes on with that.
    pub fn is_making(&self) -> bool {
        self.making.is_some()
    }

    /// Handles one message of the display side; without one there are none.
    pub fn on_message(&mut self, now: Time, bytes: &[u8]) {
        self.now = now;
        if self.end.is_some() || !self.attached {
            return;
        }
        self.watching.stir();
        let step = match ToApp::decode(bytes) {
            Ok(message) => self.on_to_app(message),
            Err(error) => Err(Fault::Peer(error.to_string())),
        };
        self.settle(step);
    }

    /// Takes a blob that events of the display side name.
    pub fn on_blob(&mut self, now: Time, hash: u128, bytes: &Rc<[u8]>) {
        self.now = now;
        self.blobs.add(hash, Rc::clone(bytes));
        let step = self.release_waiting_events().and_then(|()| self.tell_keymaps());
        self.settle(step);
    }

    /// Takes a new state of the display that is attached: tells the program what differs.
    pub fn on_desk(&mut self, now: Time, desk: &Rc<Desk>) {
        self.now = now;
        if !self.attached {
            return;
        }
        let known = self.known();
        let old = std::mem::replace(&mut self.desk, Rc::clone(desk));
        if self.end.is_none() && old.snapshot != desk.snapshot {
            self.slots.follow(&self.desk.snapshot);
            let step = self.update_offers().and_then(|()| self.update_desk(&known));
            self.settle(step);
        }
    }

    /// Takes new pixels or other content for a surface: the app side never gets any.
    pub fn on_update(&mut self, _header: &UpdateHeader) {
        self.settle(Err(Fault::Peer("an update, which only the app side sends".to_owned())));
    }

    /// The next thing for the run loop to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Why the connection is over, once it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The name between the halves of an object of the program, by its id there; `None` if displays never have it.
    pub fn wire_id(&self, id: u32) -> Option<WireId> {
        self.name(id)
    }

    /// The program closed its socket.
    pub fn on_hang_up(&mut self) {
        self.end.get_or_insert(End::Closed);
    }

    fn settle(&mut self, step: Result<(), Fault>) {
        let Err(fault) = step else { return };
        let end = match fault {
            Fault::App { object, code, message } => {
                let _ = self.output.encode(
                    1,
                    0,
                    vec![Arg::Object(object), Arg::Uint(code), Arg::Str(Some(message.clone().into_bytes()))],
                );
                End::AppViolation(message)
            }
            Fault::Peer(message) => End::PeerViolation(message),
            Fault::TooMuch(limit) => {
                let text = format!("limit exceeded: {limit}");
                let code = error_code::NO_MEMORY;
                let args = vec![Arg::Object(1), Arg::Uint(code), Arg::Str(Some(text.into_bytes()))];
                let _ = self.output.encode(1, 0, args);
                End::TooMuch(limit)
            }
        };
        self.end.get_or_insert(end);
    }

    /// Queues a message for the display side.
    fn send(&mut self, message: &ToDisplay) {
        if !self.attached {
            return;
        }
        let bytes = message.encode();
        if bytes.len() > MAX_MESSAGE {
            return self.settle(Err(Fault::TooMuch("bytes of one commit")));
        }
        self.pacing.send(&bytes);
        self.actions.push_back(Action::Message(bytes));
    }

    /// Queues an event for the program, unless its version of the object does not have it.
    fn emit(&mut self, id: u32, name: &str, args: Vec<Arg>) -> Result<(), Fault> {
        let Some(object) = self.objects.of(id) else { return Ok(()) };
        let opcode = tables::event_opcode(object.interface, name).ok_or(Fault::TooMuch("unknown event"))?;
        if object.interface.events[usize::from(opcode)].since > object.version {
            return Ok(());
        }
        self.emit_raw(id, opcode, args)
    }

    fn emit_raw(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), Fault> {
        self.output.encode(id, opcode, args).map_err(|_| Fault::TooMuch("events waiting for the program"))
    }

    /// Frees an object that the display side does not have (any more); its id may be used again.
    fn forget(&mut self, id: u32) -> Result<(), Fault> {
        self.objects.remove(id);
        if object::is_server_id(id) {
            return Ok(());
        }
        self.emit_raw(1, DISPLAY_DELETE_ID, vec![Arg::Uint(id)])
    }

    /// The name between the halves of a living object that both have.
    fn wire(&self, id: u32) -> Option<WireId> {
        self.objects.alive(id).and_then(|object| object.wire)
    }

    /// Milliseconds of this side's `CLOCK_MONOTONIC`, as programs expect of Wayland times.
    fn clock_ms(&self) -> u32 {
        self.clock_ms_at(self.now)
    }

    fn clock_ms_at(&self, at: Time) -> u32 {
        let time = self.config.clock_start + at.since_start();
        // Wayland's 32-bit times wrap.
        (time.0 / 1_000_000) as u32
    }
}

/// `wl_display.delete_id`.
const DISPLAY_DELETE_ID: u16 = 1;
