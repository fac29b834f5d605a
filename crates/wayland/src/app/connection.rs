//! One program's connection: what it is made of, and its ways in and out.
//!
//! Each part is in a file of its own, and knows the others as little as it can. What concerns several of them is here,
//! or in the files that handle messages, which all begin with `impl Connection`: those call each other's methods, and
//! no part knows them.

use std::rc::Rc;

use wayferry_proto::{MAX_MESSAGE, Time};

use crate::action::{Action, End};
use crate::message::{ToApp, ToDisplay, WireId};
use crate::tables;
use crate::wire::{Arg, InBuffer, OutBuffer};

use super::answers::Answers;
use super::captures::Captures;
use super::comparing::Comparing;
use super::config::{Config, Desk};
use super::devices::Devices;
use super::fault::{Fault, error_code};
use super::improving::Improving;
use super::keeping::Keeping;
use super::line::Line;
use super::making::Making;
use super::object::{self, Object, Objects};
use super::offering::Offering;
use super::pacing::Pacing;
use super::program::Program;
use super::reading::Reading;
use super::room::Room;
use super::shm::Pools;
use super::studio::Studio;
use super::surfaces::Surfaces;
use super::told::Told;
use super::watch::Watching;

/// One program's connection, seen from the app side.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) now: Time,
    pub(super) objects: Objects,
    pub(super) surfaces: Surfaces,
    pub(super) pools: Pools,
    pub(super) reading: Reading,
    pub(super) captures: Captures,
    pub(super) room: Room,
    pub(super) program: Program,
    pub(super) line: Line,
    pub(super) offering: Offering,
    pub(super) devices: Devices,
    pub(super) answers: Answers,
    pub(super) studio: Studio,
    /// The commit whose buffer is being compared.
    pub(super) comparing: Comparing,
    /// The commit whose pixels are being encoded.
    pub(super) making: Option<Making>,
    /// The content that is made better.
    pub(super) improving: Improving,
    pub(super) pacing: Pacing,
    pub(super) told: Told,
    pub(super) keeping: Keeping,
    pub(super) watching: Watching,
    pub(super) end: Option<End>,
}

impl Connection {
    /// A fresh connection of a program to the display described by `desk`. Without a display, [`Self::detach`] it at
    /// once; `desk` then is the last one, or the default.
    ///
    /// # Panics
    /// Never: `wl_display` is in the tables of the Wayland crates.
    pub fn new(config: Config, desk: &Rc<Desk>) -> Self {
        let display = tables::interface("wl_display").expect("wl_display is in the core protocol");
        Self {
            now: Time::ZERO,
            objects: Objects::new(Object::new(display, 1)),
            surfaces: Surfaces::default(),
            pools: Pools::new(&config.workers),
            reading: Reading::default(),
            captures: Captures::default(),
            room: Room::default(),
            program: Program::default(),
            line: Line::default(),
            offering: Offering::new(&config, desk),
            devices: Devices::default(),
            answers: Answers::default(),
            studio: Studio::new(&config),
            comparing: Comparing::default(),
            making: None,
            improving: Improving::default(),
            pacing: Pacing::default(),
            told: Told::default(),
            keeping: Keeping::default(),
            watching: Watching::default(),
            end: None,
            config,
        }
    }

    /// Where the run loop puts what it reads from the program.
    pub fn input(&mut self) -> &mut InBuffer {
        self.note_written();
        self.program.input()
    }

    /// What the run loop writes to the program.
    pub fn output(&mut self) -> &mut OutBuffer {
        self.program.output()
    }

    /// Handles requests that have arrived, a bounded number at a time so that no program holds up the others or its
    /// own frames; [`Self::next_timeout`] says at once that there are more. Requests wait while the connection is
    /// [stalled](Self::stalled).
    pub fn process(&mut self, now: Time) {
        self.now = now;
        self.program.set_more(false);
        for _ in 0..REQUESTS_AT_ONCE {
            if self.end.is_some() || self.stalled() {
                return;
            }
            let step = match self.program.next() {
                Ok(Some(raw)) => {
                    self.watching.next_version();
                    self.on_request(&raw)
                }
                Ok(None) => return,
                Err(fault) => Err(fault),
            };
            self.settle(step);
        }
        self.program.set_more(true);
    }

    /// Whether [`Self::process`] leaves requests unread: pixels of the last commit are still being compared, encoded or
    /// read, or too much of what requests brought is on its way.
    pub fn stalled(&self) -> bool {
        self.is_making() || self.pacing.is_overrun() || self.reading.waiting().is_some()
    }

    /// Whether pixels are still being compared or encoded: [`Self::flush`] goes on with that.
    pub fn is_making(&self) -> bool {
        self.making.is_some() || self.comparing.is_on() || self.improving.is_on()
    }

    /// Handles one message of the display side; without one there are none.
    pub fn on_message(&mut self, now: Time, bytes: &[u8]) {
        self.now = now;
        if self.end.is_some() || !self.line.is_attached() {
            return;
        }
        self.watching.next_version();
        let step = match ToApp::decode(bytes) {
            Ok(message) => self.on_to_app(message),
            Err(error) => Err(Fault::Peer(error.to_string())),
        };
        self.settle(step);
    }

    /// Takes a blob that events of the display side name.
    pub fn on_blob(&mut self, now: Time, hash: u128, bytes: &Rc<[u8]>) {
        self.now = now;
        self.line.add_blob(hash, bytes);
        let step = self.release_waiting_events().and_then(|()| self.tell_keymaps());
        self.settle(step);
    }

    /// Takes a new state of the display that is attached: tells the program what differs.
    pub fn on_desk(&mut self, now: Time, desk: &Rc<Desk>) {
        self.now = now;
        if !self.line.is_attached() {
            return;
        }
        let known = self.offering.known();
        if self.offering.follow(desk) && self.end.is_none() {
            let step = self.update_offers().and_then(|()| self.update_desk(&known));
            self.settle(step);
        }
    }

    /// The next thing for the run loop to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.line.poll()
    }

    /// Why the connection is over, once it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The name between the halves of an object of the program, by its id there; `None` if displays never have it.
    pub fn wire_id(&self, id: u32) -> Option<WireId> {
        self.objects.name(id)
    }

    /// The program closed its socket.
    pub fn on_hang_up(&mut self) {
        self.end.get_or_insert(End::Closed);
    }

    pub(super) fn settle(&mut self, step: Result<(), Fault>) {
        let Err(fault) = step else { return };
        let end = match fault {
            Fault::App { object, code, message } => {
                self.program.blame(object, code, message.clone().into_bytes());
                End::AppViolation(message)
            }
            Fault::Peer(message) => End::PeerViolation(message),
            Fault::TooMuch(limit) => {
                let text = format!("limit exceeded: {limit}");
                self.program.blame(1, error_code::NO_MEMORY, text.into_bytes());
                End::TooMuch(limit)
            }
        };
        self.end.get_or_insert(end);
    }

    /// Queues a message for the display side.
    pub(super) fn send(&mut self, message: &ToDisplay) {
        if !self.line.is_attached() {
            return;
        }
        // What comes next must find them in their place.
        for unit in self.told.take() {
            self.send_message(&ToDisplay::Unit(unit));
        }
        self.send_message(message);
    }

    fn send_message(&mut self, message: &ToDisplay) {
        let bytes = message.encode();
        if bytes.len() > MAX_MESSAGE {
            return self.settle(Err(Fault::TooMuch("bytes of one commit")));
        }
        self.pacing.send(&bytes);
        self.told.count_message();
        self.line.act(Action::Message(bytes));
    }

    /// Queues an event for the program, unless its version of the object does not have it.
    pub(super) fn emit(&mut self, id: u32, name: &str, args: Vec<Arg>) -> Result<(), Fault> {
        let Some(object) = self.objects.of(id) else { return Ok(()) };
        let opcode = tables::event_opcode(object.interface, name).ok_or(Fault::TooMuch("unknown event"))?;
        if object.interface.events[usize::from(opcode)].since > object.version {
            return Ok(());
        }
        self.emit_raw(id, opcode, args)
    }

    pub(super) fn emit_raw(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), Fault> {
        self.program.tell(id, opcode, args)
    }

    /// Frees an object that the display side does not have (any more); its id may be used again.
    pub(super) fn forget(&mut self, id: u32) -> Result<(), Fault> {
        self.objects.remove(id);
        if object::is_server_id(id) {
            return Ok(());
        }
        self.emit_raw(1, DISPLAY_DELETE_ID, vec![Arg::Uint(id)])
    }

    /// Milliseconds of this side's `CLOCK_MONOTONIC`, as programs expect of Wayland times.
    pub(super) fn clock_ms(&self) -> u32 {
        self.clock_ms_at(self.now)
    }

    pub(super) fn clock_ms_at(&self, at: Time) -> u32 {
        let time = self.config.clock_start + at.since_start();
        // Wayland's 32-bit times wrap.
        (time.0 / 1_000_000) as u32
    }
}

/// What takes much memory is freed by workers.
impl Drop for Connection {
    fn drop(&mut self) {
        self.surfaces.values_mut().for_each(|surface| surface.painter.unmap(&self.config.workers));
    }
}

/// `wl_display.delete_id`.
const DISPLAY_DELETE_ID: u16 = 1;

/// Requests handled in one turn: a few frames' worth, a fraction of a millisecond unless they bring pixels.
pub(super) const REQUESTS_AT_ONCE: usize = 64;
