//! One program's connection, as the display half of a page has it.
//!
//! What arrives is read at once and carried out when its pixels are there. Invariant: once [`Program::end`] is told,
//! nothing is kept and nothing more is said.

use std::rc::Rc;

use bytes::Bytes;
use wayferry_message::{Request, ToApp, ToDisplay, UnitContent, WireArg, WireId, cost};
use wayferry_pixels::{Content, Decoder};
use wayferry_proto::{Time, UpdateHeader};

use crate::area::Area;
use crate::ask::{Ask, Commit};
use crate::control::Control;
use crate::end::{End, wrong};
use crate::intake::Intake;
use crate::objects::Objects;
use crate::queues::{Held, Queues, Step, Waiting};
use crate::role::Role;
use crate::said::Said;
use crate::scene::Window;
use crate::shares::Shares;
use crate::surface::{Damage, Surface};
use crate::updates::Updates;
use crate::windows::Windows;

/// See the module.
#[derive(Debug)]
pub struct Program {
    pub(crate) shares: Rc<Shares>,
    intake: Intake,
    pub(crate) reader: Reader,
    queues: Queues,
    updates: Updates,
    pub(crate) windows: Windows,
    decoder: Decoder,
    /// The last configure, or event of the seat.
    serial: u32,
    /// Something is to be seen, or gone, that no surface with content tells of.
    pub(crate) is_stale: bool,
    /// A page that is a display may have to look again for what is under the pointer.
    pub(crate) has_moved: bool,
    /// When the browser began its last frame, in nanoseconds, if the app side was not told.
    beat: Option<u64>,
    said: Said,
    end: Option<End>,
}

/// What reads a program's messages.
#[derive(Debug)]
pub(crate) enum Reader {
    /// Of a viewer, which is told little.
    View(Objects),
    /// Of a display, with what it is besides.
    Control(Box<Control>),
}

impl Program {
    pub(crate) fn new(shares: Rc<Shares>, role: Role, area: Area) -> Self {
        let objects = Rc::clone(&shares.objects);
        let reader = match role {
            Role::View => Reader::View(Objects::new(objects)),
            Role::Control => Reader::Control(Box::new(Control::new(objects, area))),
        };
        Self {
            intake: Intake::default(),
            reader,
            queues: Queues::default(),
            updates: Updates::new(Rc::clone(&shares.updates), Rc::clone(&shares.decoders)),
            windows: Windows::default(),
            decoder: Decoder::new(),
            serial: 0,
            is_stale: false,
            has_moved: false,
            beat: None,
            said: Said::new(Rc::clone(&shares.said)),
            end: None,
            shares,
        }
    }

    /// Handles one message of the app side.
    pub(crate) fn on_message(&mut self, now: Time, bytes: &[u8]) {
        let cost = cost(bytes);
        self.intake.receive(cost);
        let message = ToDisplay::decode(bytes).map_err(|error| wrong(error.to_string()));
        let outcome = message.and_then(|message| self.handle(now, cost, message));
        self.settle(outcome);
    }

    /// Takes in a whole update of a surface, which may not have been made yet, or have ended.
    pub(crate) fn on_update(&mut self, now: Time, header: &UpdateHeader, chunks: Vec<Bytes>) {
        let mut outcome = self.updates.add(header, chunks);
        if outcome.is_ok()
            && let Some(group) = self.queues.take_lacking(WireId(header.surface.0))
        {
            outcome = self.go_on(now, group);
        }
        self.settle(outcome);
    }

    /// Ends the program if something went wrong, and tells what was handled.
    pub(crate) fn settle(&mut self, outcome: Result<(), End>) {
        let outcome = outcome.and_then(|()| {
            if self.intake.is_full() {
                return Err(wrong("more messages wait than may"));
            }
            if let Some(bytes) = self.intake.acknowledge() {
                self.tell(&ToApp::Consumed { bytes });
            }
            self.said.check()
        });
        if let Err(end) = outcome {
            self.finish(end);
        }
    }

    fn finish(&mut self, end: End) {
        *self = Self { end: Some(end), ..Self::new(Rc::clone(&self.shares), Role::View, Area::default()) };
    }

    fn handle(&mut self, now: Time, cost: u64, message: ToDisplay) -> Result<(), End> {
        match (&mut self.reader, message) {
            (Reader::View(objects), ToDisplay::Bind { global, interface, version, id }) => {
                objects.bind(global, &interface, version, id)
            }
            (Reader::View(objects), ToDisplay::Request(request)) => {
                let read = objects.read(&request)?;
                if let Some(id) = read.ends {
                    self.tell(&ToApp::Deleted(id));
                }
                match read.group.filter(|group| self.queues.has(*group)) {
                    Some(group) => self.hold(cost, group, Waiting::Ask(read.ask)),
                    None => self.carry_out(read.ask),
                }
            }
            (Reader::View(objects), ToDisplay::Unit(unit)) => {
                let (commit, group) = objects.read_unit(&unit)?;
                self.on_unit(now, cost, group, commit)
            }
            (Reader::Control(control), ToDisplay::Bind { global, interface, version, id }) => {
                let output = control.client.bind(global, &interface, version, id)?;
                output.into_iter().for_each(|output| self.meet_output(output));
                Ok(())
            }
            (Reader::Control(control), ToDisplay::Request(request)) => {
                let ask = control.client.read(&request)?;
                // What is new waits for nothing, for its updates may come at once.
                if self.queues.has(ALL) && !matches!(ask, Ask::Create(_)) {
                    self.hold(cost, ALL, Waiting::Ask(ask))
                } else {
                    self.carry_out(ask)
                }
            }
            (Reader::Control(control), ToDisplay::Unit(unit)) => {
                let commit = control.client.read_unit(&unit)?;
                self.on_unit(now, cost, ALL, commit)
            }
            (Reader::Control(_), ToDisplay::Superseded { surface, update, by }) => {
                self.updates.supersede(surface, update, by)?;
                if self.queues.take_lacking(surface).is_some() { self.go_on(now, ALL) } else { Ok(()) }
            }
            // A page predicts nothing, and its keymap is told to each keyboard.
            (
                Reader::Control(_),
                ToDisplay::KeymapKnown { .. } | ToDisplay::Hang(_) | ToDisplay::Late { .. },
            ) => Ok(()),
            (
                Reader::View(_),
                ToDisplay::KeymapKnown { .. }
                | ToDisplay::Hang(_)
                | ToDisplay::Superseded { .. }
                | ToDisplay::Late { .. },
            ) => Err(wrong("a message that no view is told")),
        }
    }

    fn on_unit(&mut self, now: Time, cost: u64, group: WireId, commit: Commit) -> Result<(), End> {
        let waits = self.queues.has(group);
        self.hold(cost, group, Waiting::Commit(commit))?;
        if waits { Ok(()) } else { self.go_on(now, group) }
    }

    fn hold(&mut self, cost: u64, group: WireId, what: Waiting) -> Result<(), End> {
        let bytes = usize::try_from(cost).unwrap_or(usize::MAX);
        // A few bytes that name a child become many times as many.
        let lease = self.shares.messages.lease(bytes.saturating_add(what.memory()))?;
        self.intake.wait(cost);
        self.queues.push(group, Held::new(what, cost, lease));
        Ok(())
    }

    /// Whether something waits for nothing but frames of videos.
    pub(crate) fn awaits_videos(&self) -> bool {
        self.queues.has_undecoded()
    }

    /// Frames of videos were decoded, or will not be.
    pub(crate) fn on_videos(&mut self, now: Time) {
        let mut groups = self.queues.take_undecoded().into_iter();
        let outcome = groups.try_for_each(|group| self.go_on(now, group));
        self.settle(outcome);
    }

    /// Carries out what waits in a window, as far as its pixels are there.
    fn go_on(&mut self, now: Time, group: WireId) -> Result<(), End> {
        loop {
            let ahead = if self.shares.decoders.are_busy() { 0 } else { AHEAD };
            let updates = &mut self.updates;
            let held = self.queues.pop(group, ahead, |step, surface, seq| match step {
                Step::Arrived => {
                    let is_there = updates.is_there(surface, seq);
                    if is_there {
                        updates.decode(now, surface, seq);
                    }
                    is_there
                }
                Step::Decoded => updates.is_decoded(surface, seq),
            });
            let Some(held) = held else { return Ok(()) };
            self.intake.go_on(held.cost);
            match held.what {
                Waiting::Ask(ask) => self.carry_out(ask)?,
                Waiting::Commit(commit) if matches!(self.reader, Reader::Control(_)) => {
                    self.commit_in_turn(now, commit, held.lease)?;
                }
                Waiting::Commit(commit) => self.commit(now, commit, true)?,
            }
        }
    }

    pub(crate) fn carry_out(&mut self, ask: Ask) -> Result<(), End> {
        let done = if let Ask::End { after, .. } = &ask { after } else { &ask };
        match done {
            Ask::Create(surface) => self.updates.create(*surface)?,
            Ask::Destroy(surface) => self.updates.destroy(*surface),
            _ => {}
        }
        self.is_stale |= !matches!(ask, Ask::Create(_) | Ask::Clip(_) | Ask::Nothing);
        self.has_moved = true;
        match matches!(self.reader, Reader::Control(_)) {
            true => self.carry_out_and_answer(ask),
            false => self.windows.carry_out(ask),
        }
        Ok(())
    }

    /// Whether what an update brings was replaced before it was painted.
    pub(crate) fn is_superseded(&self, commit: &Commit) -> bool {
        matches!(commit.content, UnitContent::Update(seq) if !self.updates.has(commit.surface, seq))
            && commit.children.is_empty()
    }

    /// Does all that a commit changes, behind what its surface has kept; with `tells` says that it is done.
    pub(crate) fn commit(&mut self, now: Time, commit: Commit, tells: bool) -> Result<(), End> {
        self.commit_kept(now, commit.surface)?;
        self.commit_one(now, commit, tells)
    }

    /// The same without what its surface has kept.
    pub(crate) fn commit_one(&mut self, now: Time, commit: Commit, tells: bool) -> Result<(), End> {
        self.uncrop(commit.surface);
        commit.asks.into_iter().try_for_each(|ask| self.carry_out(ask))?;
        commit.children.into_iter().try_for_each(|child| self.commit(now, child, tells))?;
        let surface = commit.surface;
        match commit.content {
            UnitContent::Keep => {}
            UnitContent::None => {
                self.windows.unmap(surface);
                self.updates.end_videos(surface);
                self.is_stale = true;
            }
            UnitContent::Update(seq) => {
                let updates = self.updates.take(surface, seq);
                let room = &self.shares.contents;
                let painted = self.windows.surface_mut(surface);
                if let Some(painted) = painted
                    && painted.paint(&mut self.decoder, &updates, room)?
                {
                    self.updates.end_videos(surface);
                    self.tell(&ToApp::Refresh { surface });
                }
            }
        }
        self.has_moved = true;
        if let Some(shown) = self.windows.surface_mut(surface) {
            shown.ask_frame(now);
        }
        if tells {
            self.tell_applied(surface, commit.number, commit.feedback);
        }
        if matches!(self.reader, Reader::Control(_)) {
            self.show_on_output(surface);
        }
        // The compositor's answer to a window's first commit.
        if commit.content == UnitContent::Keep {
            self.configure_first(surface);
        }
        Ok(())
    }

    /// A commit is done, or kept.
    pub(crate) fn tell_applied(&mut self, surface: WireId, unit: u64, feedback: bool) {
        if feedback {
            // A page does not know when it is looked at.
            self.tell(&ToApp::Discarded { surface, unit });
        }
        if let Some(time_ns) = self.beat.take() {
            self.tell(&ToApp::Beat { time_ns });
        }
        self.tell(&ToApp::Applied { surface, unit });
    }

    fn configure_first(&mut self, surface: WireId) {
        if matches!(self.reader, Reader::Control(_)) {
            self.configure_blank(surface);
        } else if let Some(object) = self.windows.take_configure(surface) {
            // Without a wish for a size.
            let serial = self.next_serial();
            self.event(object, XDG_SURFACE_CONFIGURE, vec![WireArg::Uint(serial)]);
        }
    }

    /// The number of the last configure, or event of the seat.
    pub(crate) fn serial(&self) -> u32 {
        self.serial
    }

    /// That of the next.
    pub(crate) fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }

    /// Tells an object something.
    pub(crate) fn event(&mut self, object: WireId, opcode: u16, args: Vec<WireArg>) {
        self.tell(&ToApp::Event(Request { object, opcode, args }));
    }

    pub(crate) fn tell(&mut self, message: &ToApp) {
        self.said.push(message.encode());
    }

    /// The next message for the app side.
    pub(crate) fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.said.pop()
    }

    /// Why it is over, once it is.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether something has changed since the page has drawn.
    pub(crate) fn wants_frame(&self) -> bool {
        self.is_stale || self.windows.surfaces().any(Surface::wants_frame)
    }

    /// The page has drawn, in the frame that began at this time.
    pub(crate) fn on_frame(&mut self, time_ns: u64) {
        if self.wants_frame() && matches!(self.reader, Reader::Control(_)) {
            self.beat = Some(time_ns);
        }
        self.is_stale = false;
        let seen = self.windows.surfaces_mut().filter_map(|(id, surface)| surface.on_frame().then_some(id));
        let seen: Vec<WireId> = seen.collect();
        seen.into_iter().for_each(|surface| self.tell(&ToApp::Visible { surface, visible: true }));
        self.settle(Ok(()));
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.windows.surfaces().filter_map(Surface::hidden_at).min()
    }

    pub(crate) fn on_timeout(&mut self, now: Time) {
        let hidden = self.windows.surfaces_mut();
        let hidden = hidden.filter_map(|(id, surface)| surface.hide_if_due(now).then_some(id));
        let hidden: Vec<WireId> = hidden.collect();
        hidden.into_iter().for_each(|surface| self.tell(&ToApp::Visible { surface, visible: false }));
        self.settle(Ok(()));
    }

    /// What it shows: its windows that have content, the oldest first.
    pub fn windows(&self) -> impl Iterator<Item = Window<'_>> {
        Window::all(&self.windows)
    }

    /// The pixels of a surface that shows some.
    pub fn content(&self, surface: WireId) -> Option<&Content> {
        self.windows.surface(surface)?.content()
    }

    /// What of a surface's pixels has changed since this was asked last; `None` if there is no such surface.
    pub fn take_damage(&mut self, surface: WireId) -> Option<Damage> {
        self.windows.surface_mut(surface).map(Surface::take_damage)
    }
}

/// What waits in a program whose display is a page, waits in one queue.
const ALL: WireId = WireId::DISPLAY;

/// Units behind the one that has its turn whose videos are decoded already, if their pixels are there.
const AHEAD: usize = 8;

/// The only event of that interface.
pub(crate) const XDG_SURFACE_CONFIGURE: u16 = 0;
