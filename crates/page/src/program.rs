//! One program's connection, as the display half of a page has it.
//!
//! What arrives is read at once and carried out when its pixels are there. Invariant: once [`Program::end`] is told,
//! nothing is kept and nothing more is said.

use std::rc::Rc;

use bytes::Bytes;
use wayferry_message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId, cost};
use wayferry_pixels::{Content, Decoder};
use wayferry_proto::{Time, UpdateHeader};

use crate::ask::{Ask, Commit};
use crate::end::{End, wrong};
use crate::intake::Intake;
use crate::objects::Objects;
use crate::page::Shares;
use crate::queues::{Held, Queues, Waiting};
use crate::said::Said;
use crate::scene::Window;
use crate::surface::{Damage, Surface};
use crate::updates::Updates;
use crate::windows::Windows;

/// See the module.
#[derive(Debug)]
pub struct Program {
    shares: Rc<Shares>,
    intake: Intake,
    objects: Objects,
    queues: Queues,
    updates: Updates,
    windows: Windows,
    decoder: Decoder,
    /// The last configure.
    serial: u32,
    /// Something is to be seen, or gone, that no surface with content tells of.
    is_stale: bool,
    said: Said,
    end: Option<End>,
}

impl Program {
    pub(crate) fn new(shares: Rc<Shares>) -> Self {
        Self {
            intake: Intake::default(),
            objects: Objects::new(Rc::clone(&shares.objects)),
            queues: Queues::default(),
            updates: Updates::new(Rc::clone(&shares.updates)),
            windows: Windows::default(),
            decoder: Decoder::new(),
            serial: 0,
            is_stale: false,
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

    fn settle(&mut self, outcome: Result<(), End>) {
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
        *self = Self { end: Some(end), ..Self::new(Rc::clone(&self.shares)) };
    }

    fn handle(&mut self, now: Time, cost: u64, message: ToDisplay) -> Result<(), End> {
        match message {
            ToDisplay::Bind { global, interface, version, id } => {
                self.objects.bind(global, &interface, version, id)
            }
            ToDisplay::Request(request) => self.on_request(cost, &request),
            ToDisplay::Unit(unit) => self.on_unit(now, cost, &unit),
            ToDisplay::KeymapKnown { .. }
            | ToDisplay::Hang(_)
            | ToDisplay::Superseded { .. }
            | ToDisplay::Late { .. } => Err(wrong("a message that no view is told")),
        }
    }

    fn on_request(&mut self, cost: u64, request: &Request) -> Result<(), End> {
        let read = self.objects.read(request)?;
        if let Some(id) = read.ends {
            self.tell(&ToApp::Deleted(id));
        }
        match read.group.filter(|group| self.queues.has(*group)) {
            Some(group) => self.hold(cost, group, Waiting::Ask(read.ask)),
            None => self.carry_out(read.ask),
        }
    }

    fn on_unit(&mut self, now: Time, cost: u64, unit: &Unit) -> Result<(), End> {
        let (commit, group) = self.objects.read_unit(unit)?;
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

    /// Carries out what waits in a window, as far as its pixels are there.
    fn go_on(&mut self, now: Time, group: WireId) -> Result<(), End> {
        loop {
            let updates = &self.updates;
            let Some(held) = self.queues.pop(group, |surface, seq| updates.is_there(surface, seq)) else {
                return Ok(());
            };
            self.intake.go_on(held.cost);
            match held.what {
                Waiting::Ask(ask) => self.carry_out(ask)?,
                Waiting::Commit(commit) => self.commit(now, commit)?,
            }
        }
    }

    fn carry_out(&mut self, ask: Ask) -> Result<(), End> {
        match ask {
            Ask::Create(surface) => self.updates.create(surface)?,
            Ask::Destroy(surface) => self.updates.destroy(surface),
            _ => {}
        }
        self.is_stale |= !matches!(ask, Ask::Create(_) | Ask::Nothing);
        self.windows.carry_out(ask);
        Ok(())
    }

    fn commit(&mut self, now: Time, commit: Commit) -> Result<(), End> {
        commit.asks.into_iter().try_for_each(|ask| self.carry_out(ask))?;
        commit.children.into_iter().try_for_each(|child| self.commit(now, child))?;
        let surface = commit.surface;
        match commit.content {
            UnitContent::Keep => {}
            UnitContent::None => {
                self.windows.unmap(surface);
                self.is_stale = true;
            }
            UnitContent::Update(seq) => {
                let updates = self.updates.take(surface, seq);
                let room = &self.shares.contents;
                let painted = self.windows.surface_mut(surface);
                if let Some(painted) = painted
                    && painted.paint(&mut self.decoder, &updates, room)?
                {
                    self.tell(&ToApp::Refresh { surface });
                }
            }
        }
        if let Some(shown) = self.windows.surface_mut(surface) {
            shown.ask_frame(now);
        }
        if commit.feedback {
            // A page does not know when it is looked at.
            self.tell(&ToApp::Discarded { surface, unit: commit.number });
        }
        self.tell(&ToApp::Applied { surface, unit: commit.number });
        // The compositor's answer to a window's first commit, without a wish for a size.
        if commit.content == UnitContent::Keep
            && let Some(object) = self.windows.take_configure(surface)
        {
            self.serial = self.serial.wrapping_add(1);
            let args = vec![WireArg::Uint(self.serial)];
            self.tell(&ToApp::Event(Request { object, opcode: XDG_SURFACE_CONFIGURE, args }));
        }
        Ok(())
    }

    fn tell(&mut self, message: &ToApp) {
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

    /// The page has drawn.
    pub(crate) fn on_frame(&mut self) {
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

/// The only event of that interface.
const XDG_SURFACE_CONFIGURE: u16 = 0;
