//! Messages of the display side: events of the compositor on their way to the program, and notes about units.
//!
//! Order is the compositor's: an event that needs a blob holds up those behind it until the blob is here. Invariant:
//! an event for an object that the program has destroyed leaves nothing behind at either side.

use std::os::fd::OwnedFd;
use std::time::Duration;

use wayland_backend::protocol::{Interface, MessageDesc};

use crate::action::{Action, End};
use crate::message::{Request, ToApp, ToDisplay, WireArg, WireId};
use crate::policy::{self, Class, Handler, Rule, Time};
use crate::tables;
use crate::wire::Arg;

use super::answering::is_press;
use super::call::nullable;
use super::connection::Connection;
use super::fault::{Fault, error_code};
use super::handlers;
use super::keyboard::{self, sealed_memfd};
use super::object::{AddError, Object};

impl Connection {
    pub(super) fn on_to_app(&mut self, message: ToApp) -> Result<(), Fault> {
        let ready = self.line.receive(message)?;
        ready.map_or(Ok(()), |message| self.handle(message))
    }

    /// Handles the events that waited for a blob which is here now.
    pub(super) fn release_waiting_events(&mut self) -> Result<(), Fault> {
        while let Some(message) = self.line.next() {
            self.handle(message)?;
        }
        Ok(())
    }

    fn on_applied(&mut self, surface: WireId, unit: u64) -> Result<(), Fault> {
        self.pacing.on_applied(surface, unit);
        self.told.on_applied(surface, unit);
        let id = self.objects.by_wire(surface);
        if let Some(surface) = id.and_then(|id| self.surfaces.get_mut(&id)) {
            surface.sent.on_applied(unit);
            surface.chain.on_applied(unit);
        }
        Ok(())
    }

    fn handle(&mut self, message: ToApp) -> Result<(), Fault> {
        match message {
            ToApp::Event(event) => self.on_event(event),
            ToApp::Deleted(wire) => self.on_deleted(wire),
            ToApp::Applied { surface, unit } => self.on_applied(surface, unit),
            ToApp::Presented { surface, unit, time_ns, refresh_ns, sequence, flags } => {
                let time = self.offering.desk().clock.ours_from_nanos(time_ns);
                let args = || presented(time, refresh_ns, sequence, flags);
                self.answer_feedback(surface, unit, "presented", args)
            }
            ToApp::Discarded { surface, unit } => self.answer_feedback(surface, unit, "discarded", Vec::new),
            ToApp::Visible { surface, visible } => {
                let id = self.objects.by_wire(surface);
                if let Some((id, surface)) = id.and_then(|id| Some((id, self.surfaces.get_mut(&id)?))) {
                    surface.visible = visible;
                    self.let_draw(id);
                }
                Ok(())
            }
            ToApp::KeysHeld { keyboard } => self.on_keys_held(keyboard),
            ToApp::Read { time_ns } => {
                self.devices.set_read_age(self.age_of(time_ns));
                Ok(())
            }
            ToApp::Beat { time_ns } => {
                self.on_beat(time_ns);
                Ok(())
            }
            ToApp::Refresh { surface } => self.refresh(surface),
            ToApp::Consumed { bytes } => self.on_consumed(bytes),
            ToApp::Fatal { object, code, message } => self.on_fatal(object, code, &message),
        }
    }

    /// The display side has caught up: requests that waited for it are handled.
    fn on_consumed(&mut self, bytes: u64) -> Result<(), Fault> {
        let stalled = self.stalled();
        self.pacing.on_consumed(bytes).map_err(Fault::Peer)?;
        if stalled {
            self.process(self.now);
        }
        Ok(())
    }

    /// The compositor ended the connection: the program learns the reason as if it had been told directly.
    fn on_fatal(&mut self, object: WireId, code: u32, message: &str) -> Result<(), Fault> {
        // A code means something for its object's interface only.
        let (id, code) = match self.objects.by_wire(object) {
            Some(id) => (id, code),
            None => (1, error_code::IMPLEMENTATION),
        };
        let text: Vec<u8> = message.bytes().filter(|byte| *byte != 0).take(1024).collect();
        let _ = self.emit_raw(1, 0, vec![Arg::Object(id), Arg::Uint(code), Arg::Str(Some(text))]);
        self.end.get_or_insert(End::CompositorError(message.to_owned()));
        Ok(())
    }

    fn on_event(&mut self, event: Request) -> Result<(), Fault> {
        let Some(id) = self.objects.by_wire(event.object) else {
            // Its `Deleted` may be on the way already; what the event made goes with it.
            return Ok(());
        };
        let Some(object) = self.objects.of(id) else { return Ok(()) };
        let Object { interface, handler, version, alive, .. } = *object;
        let Some(desc) = interface.events.get(usize::from(event.opcode)) else {
            return Err(Fault::Peer(format!("{} has no event {}", interface.name, event.opcode)));
        };
        let rule = policy::event(interface.name, event.opcode);
        if event.args.len() != desc.signature.len() || rule.class == Class::Refused {
            return Err(Fault::Peer(format!("an event {}.{} of another shape", interface.name, desc.name)));
        }
        let is_key = handler == Handler::Keyboard && is_press(desc.name, &event.args);
        if is_key {
            self.answers.press();
        }
        let handlers = handlers::of(handler);
        let press = handlers.press(desc.name, &event.args);
        if let Some(end) = rule.until
            && alive
            && handler.is_somewhere()
            && self.is_late(desc, &event)
        {
            self.devices.come_to_nothing(id, press, end);
            return self.dispose(desc, event);
        }
        if !alive || desc.since > version || self.lacks_object(desc, &event) {
            return self.dispose(desc, event);
        }
        // Of what a keyboard tells a press is waited for, and not where it comes or goes. A frame ends what was told.
        let is_bare = ["leave", "frame"].contains(&desc.name);
        let asks = is_key || handler.is_input() && handler != Handler::Keyboard && !is_bare;
        let (handler, name) = (handlers, desc.name);
        if !self.devices.passes(id, press, name) || !handler.hear(self, id, name, &event.args) {
            return Ok(());
        }
        let focus = self.devices.focus_mut();
        // A finger that goes up is nowhere after that.
        let is_last = asks && name == "up";
        if is_last {
            focus.note_input(id, self.now);
        }
        handler.attend(focus, id, name, &event.args);
        if asks && !is_last {
            focus.note_input(id, self.now);
        }
        let serial = rule.serial.and_then(|index| match event.args.get(usize::from(index)) {
            Some(WireArg::Uint(serial)) => Some(*serial),
            _ => None,
        });
        let opcode = event.opcode;
        let mut args = self.localise(interface, version, desc, rule, event)?;
        handler.note(self, id, name, &mut args)?;
        handler.tell(self.devices.announced(), id, name, &args);
        self.devices.announced().on_event(id, interface, opcode, handler.about(&args));
        if let Some((opcode, args)) = handler.renewed(self, id, name, (opcode, args)) {
            self.emit_raw(id, opcode, args)?;
        }
        if is_key {
            self.note_given();
        }
        handler.emitted(self, id, name, serial)
    }

    /// How long ago a time of the display side's clock was.
    fn age_of(&self, time_ns: u64) -> Duration {
        let now = (self.config.clock_start + self.now.since_start()).0;
        Duration::from_nanos(now.saturating_sub(self.offering.desk().clock.ours_from_nanos(time_ns)))
    }

    /// Whether an event names an object that is not here, where no null may stand: libraries end a program over it.
    fn lacks_object(&self, desc: &MessageDesc, event: &Request) -> bool {
        event.args.iter().zip(desc.signature).any(|(arg, kind)| match arg {
            WireArg::Object(wire) => !nullable(*kind) && self.objects.by_wire(*wire).is_none(),
            _ => false,
        })
    }

    /// Whether an event names an object, where no null may stand, that the program has destroyed.
    fn is_late(&self, desc: &MessageDesc, event: &Request) -> bool {
        event.args.iter().zip(desc.signature).any(|(arg, kind)| match arg {
            WireArg::Object(wire) => {
                let object = self.objects.by_wire(*wire).and_then(|id| self.objects.of(id));
                !nullable(*kind) && object.is_some_and(|object| !object.alive)
            }
            _ => false,
        })
    }

    /// How long the display side may be silent about a held key.
    pub(super) fn key_patience(&self) -> Duration {
        keyboard::patience(self.offering.desk().clock.rtt().unwrap_or_default())
    }

    /// Keys of a keyboard are held; if that is no old news, those that were released here are pressed again.
    fn on_keys_held(&mut self, keyboard: WireId) -> Result<(), Fault> {
        let (now, time, fresh) = (self.now, self.clock_ms(), self.devices.read_age() < self.key_patience());
        let Some(id) = self.objects.by_wire(keyboard) else { return Ok(()) };
        let Some(keyboard) = self.devices.keyboard_mut(id) else { return Ok(()) };
        if !fresh {
            keyboard.heard(now);
            return Ok(());
        }
        let (serial, keys) = keyboard.held(now);
        // The program repeats them by itself, and the user waits for each.
        self.devices.focus_mut().note_input(id, now);
        keys.into_iter().try_for_each(|key| {
            let args = [serial, time, key, 1].map(Arg::Uint);
            self.emit(id, "key", args.into())
        })
    }

    /// Releases keys of keyboards that the display side has gone silent about.
    pub(super) fn release_keys(&mut self) -> Result<(), Fault> {
        let (now, time, patience) = (self.now, self.clock_ms(), self.key_patience());
        let silent = self.devices.on_timeout(now, patience);
        for (id, (serial, keys)) in silent {
            for key in keys {
                let args = vec![Arg::Uint(serial), Arg::Uint(time), Arg::Uint(key), Arg::Uint(0)];
                self.emit(id, "key", args)?;
            }
        }
        Ok(())
    }

    /// Arguments in the program's names and times.
    fn localise(
        &mut self,
        interface: &'static Interface,
        version: u32,
        desc: &MessageDesc,
        rule: &Rule,
        event: Request,
    ) -> Result<Vec<Arg>, Fault> {
        let mut args = Vec::with_capacity(event.args.len());
        for (index, arg) in event.args.into_iter().enumerate() {
            let is = |marked: Option<u8>| marked.map(usize::from) == Some(index);
            args.push(match arg {
                WireArg::Uint(value) if is(rule.serial) => Arg::Uint(self.line.serials_mut().for_app(value)),
                WireArg::Uint(value) if rule.time == u8::try_from(index).ok().map(Time::Millis) => {
                    Arg::Uint(self.offering.desk().clock.ours_from_millis(value))
                }
                WireArg::Int(value) => Arg::Int(value),
                WireArg::Uint(value) => Arg::Uint(value),
                WireArg::Fixed(value) => Arg::Fixed(value),
                WireArg::Str(value) => Arg::Str(value),
                WireArg::Array(value) => Arg::Array(value),
                // One that the program has just destroyed keeps its id until that is acknowledged; its library knows.
                // Only what ends something names one.
                WireArg::Object(wire) => Arg::Object(self.objects.by_wire(wire).unwrap_or(0)),
                WireArg::NewId(wire) => Arg::NewId(self.adopt_server_object(desc, version, wire)?),
                WireArg::Pipe(pipe) => Arg::Fd(self.outgoing_pipe(pipe)?),
                WireArg::Blob { hash, .. } => Arg::Fd(self.blob_fd(hash)?),
                WireArg::Region(_) | WireArg::Positioner(_) | WireArg::Image(_) => {
                    return Err(Fault::Peer(format!(
                        "an event of {} with a value of a request",
                        interface.name
                    )));
                }
            });
        }
        if let Some(Time::Micros(arg)) = rule.time {
            self.map_micros(&mut args, arg);
        }
        Ok(args)
    }

    /// Microseconds in two arguments, high half first.
    fn map_micros(&self, args: &mut [Arg], high: u8) {
        let Some([Arg::Uint(high), Arg::Uint(low)]) = args.get_mut(usize::from(high)..usize::from(high) + 2)
        else {
            return;
        };
        let theirs = u64::from(*high) << 32 | u64::from(*low);
        let ours = self.offering.desk().clock.ours_from_nanos(theirs.saturating_mul(1000)) / 1000;
        (*high, *low) = ((ours >> 32) as u32, ours as u32);
    }

    fn adopt_server_object(&mut self, desc: &MessageDesc, version: u32, wire: WireId) -> Result<u32, Fault> {
        let interface = desc.child_interface.and_then(|child| tables::interface(child.name));
        let Some(interface) = interface.filter(|_| !wire.is_app() && self.objects.by_wire(wire).is_none())
        else {
            return Err(Fault::Peer(format!("a new object {} that cannot be", wire.0)));
        };
        self.objects.add_server(Object::there(interface, version, wire)).map_err(|error| match error {
            AddError::TooMany => Fault::TooMuch("objects of one program"),
            AddError::BadId => Fault::Peer("an object id in use".to_owned()),
        })
    }

    /// A pipe whose writing end the program gets; what it writes goes to the display side.
    fn outgoing_pipe(&mut self, pipe: u64) -> Result<OwnedFd, Fault> {
        let (read, write) = new_pipe()?;
        self.line.act(Action::PipeOut { pipe, fd: read });
        Ok(write)
    }

    fn blob_fd(&self, hash: u128) -> Result<OwnedFd, Fault> {
        let blob = self.line.blob(hash).ok_or_else(|| Fault::Peer("a blob that is not here".to_owned()))?;
        sealed_memfd(blob).map_err(|_| Fault::TooMuch("memory files"))
    }

    /// An event for an object that the program has destroyed: what it brings is destroyed too.
    fn dispose(&mut self, desc: &MessageDesc, event: Request) -> Result<(), Fault> {
        for arg in event.args {
            match arg {
                WireArg::NewId(wire) => {
                    let interface = desc.child_interface.and_then(|child| tables::interface(child.name));
                    let destructor = interface.and_then(|interface| {
                        interface.requests.iter().position(|request| request.is_destructor)
                    });
                    if let Some(opcode) = destructor.and_then(|opcode| u16::try_from(opcode).ok()) {
                        self.send(&ToDisplay::Request(Request { object: wire, opcode, args: Vec::new() }));
                    }
                }
                // No program will write: the reader at the other side sees the end at once.
                WireArg::Pipe(pipe) => drop(self.outgoing_pipe(pipe)?),
                _ => {}
            }
        }
        Ok(())
    }

    fn on_deleted(&mut self, wire: WireId) -> Result<(), Fault> {
        let Some(id) = self.objects.by_wire(wire) else { return Ok(()) };
        if id == 1 {
            return Err(Fault::Peer("the display cannot be deleted".to_owned()));
        }
        self.forget(id)
    }

    fn answer_feedback(
        &mut self,
        surface: WireId,
        unit: u64,
        event: &str,
        args: impl Fn() -> Vec<Arg>,
    ) -> Result<(), Fault> {
        let surface = self.objects.by_wire(surface).and_then(|id| self.surfaces.get_mut(&id));
        let Some(surface) = surface else { return Ok(()) };
        for (number, id) in surface.sent.take_feedback(unit) {
            if number == unit {
                self.emit(id, event, args())?;
            } else {
                self.emit(id, "discarded", Vec::new())?;
            }
            self.forget(id)?;
        }
        Ok(())
    }
}

/// `wp_presentation_feedback.presented`.
fn presented(time_ns: u64, refresh_ns: u32, sequence: u64, flags: u32) -> Vec<Arg> {
    let high_low = |value: u64| [Arg::Uint((value >> 32) as u32), Arg::Uint(value as u32)];
    let (seconds, nanoseconds) = (time_ns / 1_000_000_000, (time_ns % 1_000_000_000) as u32);
    let mut args: Vec<Arg> = high_low(seconds).into();
    args.extend([Arg::Uint(nanoseconds), Arg::Uint(refresh_ns)]);
    args.extend(high_low(sequence));
    args.push(Arg::Uint(flags));
    args
}

fn new_pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|errno| Fault::app(1, error_code::NO_MEMORY, format!("cannot make a pipe: {errno}")))
}
