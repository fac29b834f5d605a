//! Globals: what the program is offered, `bind`, and `wl_display.sync`.
//!
//! The list is fixed and ours; the attached compositor decides only whether a global is real or a stub. Invariant: a
//! program's `sync` is answered after everything that the answer may depend on.

use wayferry_proto::Time;

use crate::message::{Request, ToDisplay, WireArg, WireId};
use crate::policy::{self, Handler, Home};
use crate::tables::{self, Access, Missing};
use crate::wire::Arg;

use super::birth::Message;
use super::connection::Connection;
use super::fault::{Fault, error_code};
use super::handlers;
use super::object::Object;
use super::offer::Offer;
use super::offering::News;
use super::ping::Due;

/// Whether a program may have been offered a global that is not there any more.
fn may_vanish(global: &tables::Global) -> bool {
    let comes_and_goes = matches!(global.missing, Missing::Absent | Missing::Unless(_));
    global.access == Access::Offered && comes_and_goes
        || matches!(policy::handler(global.name()), Handler::Output | Handler::Seat)
}

impl Connection {
    /// `wl_display.get_registry`.
    pub(super) fn get_registry(&mut self, id: u32) -> Result<(), Fault> {
        for offer in self.offering.offers().to_vec() {
            self.announce(id, &offer)?;
        }
        Ok(())
    }

    fn announce(&mut self, registry: u32, offer: &Offer) -> Result<(), Fault> {
        let interface = Arg::Str(Some(offer.interface.as_bytes().to_vec()));
        self.emit(registry, "global", vec![Arg::Uint(offer.name), interface, Arg::Uint(offer.version)])
    }

    /// `wl_registry.bind`.
    pub(super) fn bind(&mut self, registry: u32, args: &[Arg]) -> Result<(), Fault> {
        let [Arg::Uint(name), Arg::Str(Some(interface)), Arg::Uint(version), Arg::NewId(id)] = args else {
            return Err(Fault::app(
                registry,
                error_code::INVALID_METHOD,
                "bind takes a name and a new object",
            ));
        };
        let bad = |what: String| Fault::app(registry, error_code::INVALID_OBJECT, what);
        let Some(offer) = self.offering.offer(*name).cloned() else {
            return self.bind_vanished(registry, interface, *version, *id);
        };
        if offer.interface.as_bytes() != interface.as_slice() {
            let asked = String::from_utf8_lossy(interface).into_owned();
            return Err(bad(format!("global {name} is a {}, not a {asked}", offer.interface)));
        }
        if *version == 0 || *version > offer.version {
            return Err(bad(format!(
                "{} has versions 1 to {}, not {version}",
                offer.interface, offer.version
            )));
        }
        let table = tables::interface(offer.interface)
            .ok_or_else(|| Fault::app(registry, error_code::IMPLEMENTATION, "no table for this interface"))?;
        let mut object = Object::new(table, *version);
        let handler = handlers::of(object.handler);
        object.data = handler.bound(*name);
        let global = offer.global.filter(|_| self.line.is_attached());
        let (interface, version) = (offer.interface.to_owned(), *version);
        if policy::home(offer.interface) == Home::Both {
            let wire = self.objects.allocate_wire();
            let birth = ToDisplay::Bind { global: *name, interface: interface.clone(), version, id: wire };
            object.past.birth = Some(Message::new(&birth));
            (object.name, object.wire) = (Some(wire), global.map(|_| wire));
        }
        let wire = object.wire;
        self.grow(object.past.bytes())?;
        self.add_object(*id, object)?;
        if let (Some(wire), Some(global)) = (wire, global) {
            self.send(&ToDisplay::Bind { global, interface, version, id: wire });
            if policy::greets(offer.interface) {
                self.line.sync().owe();
            }
        }
        handler.greet(self, *id)
    }

    /// A global may go between its announcement and the bind; the object is inert then.
    fn bind_vanished(&mut self, registry: u32, interface: &[u8], version: u32, id: u32) -> Result<(), Fault> {
        let known = str::from_utf8(interface).ok().and_then(tables::global);
        let Some(table) = known.filter(|global| may_vanish(global)).map(tables::Global::interface) else {
            return Err(Fault::app(registry, error_code::INVALID_OBJECT, "no global of that name"));
        };
        let version = version.clamp(1, tables::version_cap(table.name));
        self.add_object(id, Object::new(table, version))
    }

    /// Brings the registry up to date; what is new comes first, so that a program never sees none of a kind.
    pub(super) fn update_offers(&mut self) -> Result<(), Fault> {
        let News { new, gone } = self.offering.renew(&self.config);
        for registry in self.objects.living("wl_registry") {
            for offer in &new {
                self.announce(registry, offer)?;
            }
            for name in &gone {
                self.emit(registry, "global_remove", vec![Arg::Uint(*name)])?;
            }
        }
        Ok(())
    }

    /// `wl_display.sync`: answered here unless the compositor owes an answer.
    pub(super) fn sync(&mut self, callback: u32) -> Result<(), Fault> {
        if !self.line.is_attached() || self.line.sync().may_answer_here() {
            self.emit(callback, "done", vec![Arg::Uint(0)])?;
            return self.forget(callback);
        }
        let wire = self.objects.allocate_wire();
        self.objects.set_wire(callback, wire);
        self.line.sync().forward(callback);
        self.send(&ToDisplay::Request(Request {
            object: WireId::DISPLAY,
            opcode: 0,
            args: vec![WireArg::NewId(wire)],
        }));
        Ok(())
    }

    /// Tells whether the program's requests are read now. While they are not, its silence means nothing.
    pub fn set_read(&mut self, now: Time, read: bool) {
        self.program.ping_mut().set_read(now, read);
    }

    /// `xdg_wm_base.pong`.
    pub(super) fn pong(&mut self, serial: u32) {
        if self.program.ping_mut().answer(self.now, serial) {
            self.send(&ToDisplay::Hang(false));
        }
    }

    /// Asks the program whether it lives, and tells the display side when it does not.
    pub(super) fn ping_timeout(&mut self) -> Result<(), Fault> {
        let base = self.objects.living("xdg_wm_base").first().copied();
        let Some(base) = base else { return Ok(()) };
        let stalled = self.stalled();
        match self.program.ping_mut().on_timeout(self.now, stalled) {
            Some(Due::Ask(serial)) => self.emit(base, "ping", vec![Arg::Uint(serial)]),
            Some(Due::Hang) => {
                self.send(&ToDisplay::Hang(true));
                Ok(())
            }
            None => Ok(()),
        }
    }
}
