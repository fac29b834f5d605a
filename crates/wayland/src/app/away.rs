//! A program without a display: what it is told when its display goes, and what becomes of its commits meanwhile.
//!
//! The program goes on as if no user looked: buffers come back at once, frames are slow, `sync` is answered here.
//! What it says is kept so that only the last of it counts. Invariant: nothing leaves, and nothing grows with the
//! number of commits.

use std::cmp::Reverse;

use wayferry_proto::Time;

use crate::policy::{self, Handler};
use crate::tables;
use crate::wire::Arg;

use super::announced::Open;
use super::connection::Connection;
use super::fault::Fault;
use super::handlers;
use super::making::Making;
use super::object::{Configures, Data, Wanted};
use super::told::Told;
use super::unsent::Unsent;

impl Connection {
    /// The display is gone for good: nothing of it will come any more, and nothing that was meant for it has to leave.
    /// The program lives on until [`Self::attach`]. Without a display this does nothing.
    pub fn detach(&mut self, now: Time) {
        if !self.line.is_attached() {
            return;
        }
        self.now = now;
        if self.end.is_none() {
            let step = self.finish_comparing();
            self.settle(step);
        }
        self.line.set_attached(false);
        if self.end.is_none() {
            let step = self.part();
            self.settle(step);
        }
        self.line.clear();
    }

    /// Whether there is a display.
    pub fn is_attached(&self) -> bool {
        self.line.is_attached()
    }

    fn part(&mut self) -> Result<(), Fault> {
        self.forget_what_was_not_followed();
        self.call_improving_off();
        if let Some(mut making) = self.making.take() {
            self.call_errand_off(&mut making);
            let Making { id, unsent, .. } = making;
            self.settle_unsent(id, unsent)?;
        }
        // Requests may have waited for the display.
        self.program.wake();
        for callback in self.line.part() {
            self.emit(callback, "done", vec![Arg::Uint(0)])?;
            self.forget(callback)?;
        }
        self.take_input_back()?;
        self.say_farewell()?;
        self.captures.part();
        self.line.serials_mut().begin_epoch();
        self.watching.part();
        let surfaces: Vec<u32> = self.surfaces.keys().copied().collect();
        for id in surfaces {
            let Some((feedback, unsent)) = self.surfaces.get_mut(&id).map(|surface| surface.part()) else {
                continue;
            };
            self.discard_feedback(feedback)?;
            unsent.map_or(Ok(()), |unsent| self.settle_unsent(id, unsent))?;
        }
        // Of children whose parents' windows waited.
        let roots: Vec<u32> = self
            .surfaces
            .iter()
            .filter(|(_, surface)| surface.family.parent().is_none())
            .map(|(id, _)| *id)
            .collect();
        roots.into_iter().try_for_each(|id| self.release_cached(id))?;
        self.part_objects()?;
        self.devices.part();
        self.answers.part();
        self.pacing.part();
        self.told = Told::default();
        Ok(())
    }

    /// Ends what the display began: keys and buttons that are down, focus, touches, locks, drags.
    fn take_input_back(&mut self) -> Result<(), Fault> {
        let time = self.clock_ms();
        for (id, (serial, keys)) in self.devices.take_keys() {
            for key in keys {
                self.emit(id, "key", [serial, time, key, 0].map(Arg::Uint).into())?;
            }
        }
        for (id, button) in self.devices.take_buttons() {
            let serial = self.line.serials().newest();
            self.emit(id, "button", [serial, time, button, 0].map(Arg::Uint).into())?;
        }
        let open = self.devices.take_open();
        let mut last = None;
        for open in open {
            if last.is_some_and(|last| last != open.object) {
                self.end_frame(last)?;
            }
            last = Some(open.object);
            self.end_open(open)?;
        }
        self.end_frame(last)
    }

    fn end_open(&mut self, open: Open) -> Result<(), Fault> {
        let Some(object) = self.objects.alive(open.object) else { return Ok(()) };
        let Some(desc) = object.interface.events.get(usize::from(open.end)) else { return Ok(()) };
        let rule = policy::event(object.interface.name, open.end);
        let mut args = Vec::with_capacity(desc.signature.len());
        for (kind, index) in desc.signature.iter().zip(0u8..) {
            use wayland_backend::protocol::ArgumentType::{Int, Object, Uint};
            args.push(match kind {
                Uint if rule.serial == Some(index) => Arg::Uint(self.line.serials().newest()),
                Uint => Arg::Uint(self.clock_ms()),
                // Gestures are cancelled.
                Int => Arg::Int(1),
                Object(_) if self.objects.alive(open.about).is_some() => Arg::Object(open.about),
                // The program has destroyed it, and knows.
                _ => return Ok(()),
            });
        }
        if desc.since > object.version {
            return Ok(());
        }
        self.emit_raw(open.object, open.end, args)
    }

    /// Pointers and tablet tools group their events.
    fn end_frame(&mut self, id: Option<u32>) -> Result<(), Fault> {
        let Some(id) = id else { return Ok(()) };
        let handler = self.objects.alive(id).map_or(Handler::None, |object| object.handler);
        handlers::of(handler).end_group(self, id)
    }

    /// Tells of each object that stood for something of the display that it is over, the newest first: so popups close
    /// from the top.
    fn say_farewell(&mut self) -> Result<(), Fault> {
        if let Some(source) = self.devices.clipboard().part().and_then(|name| self.objects.by_name(name)) {
            self.emit(source, "cancelled", Vec::new())?;
        }
        let there = self.objects.iter().filter(|(_, object)| object.alive && object.wire.is_some());
        let mut there: Vec<_> =
            there.map(|(id, object)| (Reverse(object.name), id, object.interface)).collect();
        there.sort_unstable_by_key(|(name, ..)| *name);
        for (_, id, interface) in there {
            for event in policy::farewell(interface.name) {
                let opcode = tables::event_opcode(interface, event);
                let desc = opcode.and_then(|opcode| interface.events.get(usize::from(opcode)));
                let args = desc.map_or(0, |desc| desc.signature.len());
                self.emit(id, event, (0..args).map(|_| Arg::Object(0)).collect())?;
            }
            if matches!(self.objects.of(id).map(|object| &object.data), Some(Data::Token)) {
                self.objects.set_data(id, Data::Plain);
                self.tell_token(id)?;
            }
        }
        Ok(())
    }

    /// Objects lose their display; those that only it had not forgotten yet are free.
    fn part_objects(&mut self) -> Result<(), Fault> {
        let dead: Vec<u32> =
            self.objects.iter().filter(|(_, object)| !object.alive).map(|(id, _)| id).collect();
        dead.into_iter().try_for_each(|id| self.forget(id))?;
        for (_, object) in self.objects.iter_mut() {
            match &mut object.data {
                Data::Toplevel(wanted) => *wanted = Wanted::default(),
                Data::TextInput { commits, before } => *before = *commits,
                Data::Shell(configures) => *configures = Configures::default(),
                _ => {}
            }
        }
        self.objects.part();
        Ok(())
    }

    /// A commit that no display gets: its content and state are kept already.
    pub(super) fn settle_unsent(&mut self, id: u32, unsent: Unsent) -> Result<(), Fault> {
        for (child, unsent) in unsent.children {
            self.settle_unsent(child, unsent)?;
        }
        self.discard_feedback(unsent.feedback)?;
        let Some(surface) = self.surfaces.get_mut(&id) else {
            return unsent.frames.into_iter().try_for_each(|id| self.forget(id));
        };
        let answered = surface.frames.keep(unsent.frames);
        let time = self.clock_ms();
        for callback in answered {
            self.emit(callback, "done", vec![Arg::Uint(time)])?;
            self.forget(callback)?;
        }
        Ok(())
    }
}
