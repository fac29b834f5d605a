//! One program's connection to the compositor: start, input, output, end.
//!
//! The parts that do the work are in the modules beside this one, as further `impl` blocks: requests, units, events.
//! Invariant: after [`Connection::end`] has become `Some`, nothing more is sent to either side but what is queued.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::Bytes;
use wayferry_proto::{Time, UpdateHeader};

use crate::action::{Action, End};
use crate::message::{self, ToApp, ToDisplay, WireId};
use crate::policy::Handler;
use crate::trace::Probe;
use crate::wire::{Arg, InBuffer, OutBuffer};
use crate::workers::Workers;

use super::captions::Captions;
use super::cursor::Cursors;
use super::globals::{Globals, Stage};
use super::ground::Ground;
use super::hold::{Holds, Need};
use super::intake::{Intake, MAX_WAITING};
use super::link::Link;
use super::objects::Objects;
use super::ops::{self, known};
use super::painting::Painting;
use super::peer::Peer;
use super::predict::Wishes;
use super::put_off::PutOff;
use super::shm::Shm;
use super::state::State;
use super::surface::{Memory, Surface};
use super::tree::Tree;
use super::turn::{Room, Turn};
use super::updates::Updates;
use super::waiting::Waiting;

/// What a connection needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The host's `CLOCK_MONOTONIC` when the run loop started, nanoseconds.
    pub clock_start_ns: u64,
    /// Who wants to know what takes how long.
    pub probe: Probe,
    /// Who opens content.
    pub workers: Workers,
    /// Privileged globals that the app side may bind; others are refused to it as if the compositor lacked them.
    /// `None`, the default, leaves that to the app side, which then must be trusted as much as this side is: it
    /// could read the clipboard and type into other windows.
    pub allow: Option<Vec<String>>,
    /// Name of the cursor theme for shapes that the compositor cannot draw; default `$XCURSOR_THEME`.
    pub cursor_theme: String,
    /// Put before every window's title.
    pub title_prefix: String,
    /// When what is typed is drawn before it is answered. Without an app side that says which keys a commit answers,
    /// this is to be never.
    pub predict: Wishes,
    /// Nominal cursor size in pixels at scale 1; default `$XCURSOR_SIZE`, else 24.
    pub cursor_size: u32,
}

impl Default for Config {
    fn default() -> Self {
        let size = std::env::var("XCURSOR_SIZE").ok().and_then(|size| size.parse().ok());
        Self {
            clock_start_ns: 0,
            probe: Probe::default(),
            workers: Workers::default(),
            allow: None,
            cursor_theme: std::env::var("XCURSOR_THEME").unwrap_or_else(|_| "default".to_owned()),
            title_prefix: String::new(),
            predict: Wishes::default(),
            cursor_size: size.filter(|size| (1..=512).contains(size)).unwrap_or(24),
        }
    }
}

/// The display half of one program's connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) end: Option<End>,
    pub(super) link: Link,
    pub(super) peer: Peer,
    pub(super) intake: Intake,
    pub(super) globals: Globals,
    pub(super) objects: Objects,
    pub(super) holds: Holds<Waiting>,
    pub(super) tree: Tree,
    pub(super) surfaces: HashMap<WireId, Surface>,
    pub(super) memory: Memory,
    pub(super) shm: Shm,
    pub(super) updates: Updates,
    /// Contents that a worker paints.
    pub(super) painting: Option<Painting>,
    pub(super) put_off: PutOff,
    pub(super) state: State,
    pub(super) turn: Turn,
}

impl Connection {
    /// A connection to a compositor that has just been reached.
    pub fn new(config: Config) -> Self {
        let objects = Objects::new(known("wl_display"));
        Self::over(config, objects, Link::default(), None)
    }

    /// A connection to a compositor that has been spoken to.
    pub(super) fn over(config: Config, objects: Objects, link: Link, end: Option<End>) -> Self {
        let state = State::new(
            Cursors::new(config.cursor_theme.clone(), config.cursor_size),
            Captions::new(&config.title_prefix),
            config.predict.of(None),
        );
        let mut connection = Self {
            config,
            end,
            link,
            peer: Peer::default(),
            intake: Intake::default(),
            globals: Globals::default(),
            objects,
            holds: Holds::default(),
            tree: Tree::default(),
            surfaces: HashMap::new(),
            memory: Memory::default(),
            shm: Shm::default(),
            updates: Updates::default(),
            painting: None,
            put_off: PutOff::default(),
            state,
            turn: Turn::default(),
        };
        if let Err(end) = connection.begin() {
            connection.finish(end);
        }
        connection
    }

    /// Where the run loop puts what it read from the compositor; call [`Self::process`] then.
    pub fn input(&mut self) -> &mut InBuffer {
        &mut self.link.input
    }

    /// What the run loop is to write to the compositor.
    pub fn output(&mut self) -> &mut OutBuffer {
        &mut self.link.output
    }

    /// Tells whether the link is silent, before what the compositor sent is handled: the app side drops presses that it
    /// gets late.
    pub fn set_silent(&mut self, now: Time, silent: bool) {
        if self.peer.tells_of_reading(now, silent) {
            let time_ns = self.clock_ns(now);
            self.tell(&ToApp::Read { time_ns });
        }
    }

    /// Tells whether nothing has been heard of the app side for so long that windows are to say so.
    pub fn set_stale(&mut self, is_stale: bool) {
        for (toplevel, title) in self.state.captions.set_stale(is_stale) {
            let outcome = self.set_title(toplevel, title);
            self.settle(outcome);
        }
        let outcome = self.draw_veils(is_stale);
        self.settle(outcome);
        if is_stale {
            let outcome = self.forget_predictions();
            self.settle(outcome);
        }
    }

    /// Gives a window a title, if the compositor knows it.
    pub(super) fn set_title(&mut self, toplevel: WireId, title: Vec<u8>) -> Result<(), End> {
        let Some(id) = self.objects.live(toplevel) else { return Ok(()) };
        self.send(id, ops::TOPLEVEL_SET_TITLE, vec![Arg::Str(Some(title))])
    }

    /// Handles the messages in the input buffer.
    pub fn process(&mut self, now: Time) {
        while self.end.is_none() {
            let outcome = match self.link.input.next_message() {
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
        self.intake.receive(cost);
        let outcome = match ToDisplay::decode(bytes) {
            Err(error) => Err(End::PeerViolation(error.to_string())),
            Ok(message) if self.globals.stage != Stage::Running => {
                self.intake.defer(cost, message);
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
        self.intake.waiting(self.holds.cost())
    }

    /// Tells the app side, now and then, how much of what it said has been handled.
    pub(super) fn acknowledge(&mut self) {
        if let Some(bytes) = self.intake.acknowledge(self.holds.cost()) {
            self.tell(&ToApp::Consumed { bytes });
        }
    }

    pub(super) fn handle(&mut self, now: Time, cost: u64, message: ToDisplay) -> Result<(), End> {
        self.intake.begin(cost);
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

    /// Does a part of what takes long: paints large units that are ready, and decompresses large content that has
    /// arrived, for which its unit waits. [`Self::next_timeout`] says at once that there is more, so that what shares
    /// the thread has its turn before.
    pub fn work(&mut self, now: Time, room: &mut Room) {
        if self.link.output.is_empty() {
            self.state.images.all_announced();
        }
        self.turn.is_busy = room.lend == 0;
        self.shm.take_emptied();
        if self.end.is_some() || !(self.has_work() || self.is_lending()) {
            return;
        }
        self.take_painted();
        self.turn.room = *room;
        self.turn.is_over = false;
        self.pump(now);
        // One by one, so that what finds no room is not looked at in each turn.
        while self.may_send() && !self.turn.is_over && self.holds.meet_first(Need::Turn) {
            self.pump(now);
        }
        let Config { workers, probe, .. } = &self.config;
        match self.updates.open(&mut self.turn.room.open, workers, probe) {
            Ok(false) => {}
            Ok(true) => {
                self.meet_all_updates();
                self.pump(now);
            }
            Err(end) => self.finish(end),
        }
        *room = std::mem::replace(&mut self.turn.room, Room::NONE);
    }

    fn has_work(&self) -> bool {
        // One unit is painted at a time.
        let may_begin = self.painting.is_none() && !self.turn.is_busy;
        let waits_for_turn = may_begin && self.holds.is_needed(&Need::Turn);
        let waits = self.holds.has_ready() || waits_for_turn;
        (waits && !self.is_clogged()) || self.updates.has_closed()
    }

    /// Whether workers have something that comes back in [`Self::work`].
    fn is_lending(&self) -> bool {
        self.painting.is_some() || self.updates.is_opening()
    }

    /// Whether more may be said to the compositor.
    pub(super) fn may_send(&self) -> bool {
        self.end.is_none() && !self.is_clogged()
    }

    /// Whether the compositor is to read before more is said to it.
    pub(super) fn is_clogged(&self) -> bool {
        self.link.is_clogged()
    }

    /// Takes in a blob, before or after the message that names it.
    pub fn on_blob(&mut self, now: Time, hash: u128, bytes: &Rc<[u8]>) {
        if self.end.is_some() {
            return;
        }
        self.intake.blobs.add(hash, Rc::clone(bytes));
        self.holds.meet(Need::Blob(hash));
        self.pump(now);
    }

    /// The list of a drag is ready: the program hears that it was dropped.
    pub fn on_drag_ready(&mut self, drag: u64) {
        if self.end.is_none() {
            self.state.drags.ready(drag);
            self.tell_held();
        }
    }

    /// Tells the program what need not wait for a drag any more.
    pub(super) fn tell_held(&mut self) {
        while let Some((object, message)) = self.state.drags.next() {
            if self.objects.of(object).is_some() {
                self.peer.tell_encoded(message);
            }
        }
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
        frames.chain(self.state.keyboards.next_beat()).chain(self.state.predictions.next_timeout()).min()
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
        for keyboard in self.state.keyboards.beats(now) {
            self.tell(&ToApp::KeysHeld { keyboard });
        }
        let outcome = self.predict_in_time(now);
        self.settle(outcome);
        self.pump(now);
    }

    /// The next thing that the run loop is to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.peer.poll()
    }

    /// The id that the compositor knows an object of the program by; `None` if it does not have it.
    pub fn id_of(&self, wire: WireId) -> Option<u32> {
        self.objects.live(wire)
    }

    /// Why the connection is over, once it is: write what is queued, perform the actions, then close everything.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    fn on_to_display(&mut self, now: Time, message: ToDisplay) -> Result<(), End> {
        match message {
            ToDisplay::Bind { global, interface, version, id } => self.bind(global, &interface, version, id),
            ToDisplay::Request(request) => self.accept_request(request),
            ToDisplay::Unit(unit) => self.accept_unit(now, unit),
            ToDisplay::KeymapKnown { keyboard, hash } => self.on_keymap_known(keyboard, hash),
            ToDisplay::Hang(hangs) => self.on_hang(hangs),
            ToDisplay::Superseded { surface, update, by } => self.on_superseded(surface, update.0, by.0),
            ToDisplay::Late { key } => {
                self.on_late(key);
                Ok(())
            }
        }
    }

    fn on_keymap_known(&mut self, keyboard: WireId, hash: u128) -> Result<(), End> {
        match self.objects.usable(keyboard) {
            Some(object) if object.handler == Handler::Keyboard => {
                self.state.keyboards.known(keyboard, hash);
                Ok(())
            }
            _ => Err(End::PeerViolation(format!("object {} is no wl_keyboard", keyboard.0))),
        }
    }

    fn on_hang(&mut self, hangs: bool) -> Result<(), End> {
        for (id, serial) in self.state.pings.set_hangs(hangs) {
            if self.objects.local(id).is_some_and(|local| !local.gone) {
                self.send(id, ops::WM_BASE_PONG, vec![Arg::Uint(serial)])?;
            }
        }
        Ok(())
    }

    /// Queues a request for the compositor.
    pub(super) fn send(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), End> {
        self.link.send(id, opcode, args)
    }

    /// Queues a message for the app half.
    pub(super) fn tell(&mut self, message: &ToApp) {
        self.peer.tell(message);
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

/// What takes much memory is freed by workers.
impl Drop for Connection {
    fn drop(&mut self) {
        let grounds: Vec<Ground> = self.surfaces.values_mut().map(Surface::unmap).collect();
        grounds.into_iter().for_each(|ground| self.discard(ground));
        self.config.workers.free((std::mem::take(&mut self.updates), std::mem::take(&mut self.shm)));
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
