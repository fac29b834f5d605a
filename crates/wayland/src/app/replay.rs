//! A new display: everything that the program has made and said is made and said again.
//!
//! Objects in the order of their births, then the requests that last, then surfaces: see `restage`. The display side
//! sees an ordinary new connection. Invariant: nothing is sent that names an object which this display does not have.

use std::collections::BTreeMap;
use std::rc::Rc;

use wayferry_pixels::Compression;
use wayferry_proto::Time;

use crate::message::{Request, ToDisplay, WireArg, WireId};
use crate::policy;
use crate::tables;

use super::config::Desk;
use super::connection::Connection;
use super::fault::Fault;
use super::handlers;
use super::object::Data;
use super::offering::Known;
use super::roles::Roles;

impl Connection {
    /// A new display takes over, of which nothing is known to have anything of this program. What it must be told comes
    /// out of [`Self::poll_action`], like a new connection's. A display that is still attached is
    /// [detached](Self::detach).
    pub fn attach(&mut self, now: Time, desk: &Rc<Desk>, compression: Compression) {
        self.detach(now);
        self.now = now;
        let known = self.offering.known();
        self.offering.change(desk);
        self.config.compression = compression;
        self.studio.renew(&self.config);
        self.line.set_attached(true);
        if self.end.is_none() {
            let step = self.replay(&known);
            self.settle(step);
        }
    }

    fn replay(&mut self, known: &Known) -> Result<(), Fault> {
        self.update_offers()?;
        let living = self.objects.iter().filter(|(_, object)| object.alive);
        let tombstones = self.keeping.needed(living.flat_map(|(_, object)| object.past.needs()));
        let roles = Roles::of(&self.objects);
        self.bear(&roles, &tombstones)?;
        self.repeat(&tombstones);
        self.devices.clipboard().meet();
        self.restage(&roles)?;
        self.end_revived();
        self.compare_keymaps();
        self.tell_older(known.shell)?;
        self.void_transforms()?;
        self.update_desk(known)?;
        if self.program.ping().hangs() {
            self.send(&ToDisplay::Hang(true));
        }
        Ok(())
    }

    /// Tiling compositors call a window maximized that may not choose its size. One that chose nonetheless was not, and
    /// some compositors end a program over the difference: no other display is asked for it.
    pub(super) fn forget_what_was_not_followed(&mut self) {
        for id in self.objects.living("xdg_toplevel") {
            let surface = self.association(id);
            if surface.is_none_or(|surface| !self.decides(id, surface)) {
                continue;
            }
            if let Some(object) = self.objects.of_mut(id) {
                object.past.kept.retain(|kept| !matches!(kept.slot, Some("maximized" | "fullscreen")));
            }
        }
    }

    /// Makes all objects again, and those that these came from.
    fn bear(&mut self, roles: &Roles, tombstones: &[WireId]) -> Result<(), Fault> {
        let mut births = BTreeMap::new();
        for (id, object) in self.objects.iter().filter(|(_, object)| object.alive) {
            if let (Some(name), Some(birth)) = (object.name, &object.past.birth) {
                births.insert(name, (Some(id), birth.clone()));
            }
        }
        for name in tombstones {
            let birth = self.keeping.tombstone(*name).and_then(|tombstone| tombstone.past.birth.clone());
            births.extend(birth.map(|birth| (*name, (None, birth))));
        }
        for (name, (id, birth)) in births {
            let message = birth.get().and_then(|birth| self.birth(roles, birth));
            match (&message, id) {
                (Some(_), Some(id)) => self.objects.set_wire(id, name),
                (Some(_), None) => self.keeping.revive(name),
                (None, Some(id)) => self.tell_stub(id)?,
                (None, None) => {}
            }
            message.into_iter().for_each(|message| self.send(&message));
        }
        Ok(())
    }

    /// What makes an object again; `None` if this display cannot have it.
    fn birth(&self, roles: &Roles, birth: ToDisplay) -> Option<ToDisplay> {
        match birth {
            ToDisplay::Bind { global: name, interface, version, id } => {
                let offer = self.offering.offer(name)?;
                Some(ToDisplay::Bind { global: offer.global?, interface, version, id })
            }
            ToDisplay::Request(request) if self.may_be_born(roles, &request) => {
                self.addressed(request).map(ToDisplay::Request)
            }
            _ => None,
        }
    }

    fn may_be_born(&self, roles: &Roles, birth: &Request) -> bool {
        let Some(interface) = self.interface_there(birth.object) else { return false };
        let Some(desc) = interface.requests.get(usize::from(birth.opcode)) else { return false };
        handlers::of(policy::handler(interface.name)).may_be_born(self, roles, desc.name, birth)
    }

    /// What devices a seat has.
    pub(super) fn capabilities(&self, seat: WireId) -> u32 {
        let slot = match self.objects.by_name(seat).and_then(|id| self.objects.of(id)) {
            Some(object) => match object.data {
                Data::Seat(slot) => Some(slot),
                _ => None,
            },
            None => match self.keeping.tombstone(seat).and_then(|it| it.past.birth.as_ref()?.get()) {
                Some(ToDisplay::Bind { global, .. }) => Some(global),
                _ => None,
            },
        };
        slot.and_then(|slot| self.offering.seat(slot)).map_or(0, |seat| seat.capabilities)
    }

    /// Says again what lasts, in the order in which the program said it.
    fn repeat(&mut self, tombstones: &[WireId]) {
        let living = self.objects.iter().filter(|(_, object)| object.alive).map(|(_, object)| &object.past);
        let tombstones =
            tombstones.iter().filter_map(|name| self.keeping.tombstone(*name)).map(|it| &it.past);
        let kept = living.chain(tombstones).flat_map(|past| &past.kept);
        let mut kept: Vec<_> = kept.map(|kept| (kept.age, kept.message.clone(), kept.blob.clone())).collect();
        kept.sort_unstable_by_key(|(age, ..)| *age);
        for (_, message, blob) in kept {
            let Some(request) = message.request().and_then(|request| self.addressed(request)) else {
                continue;
            };
            if let Some((hash, bytes)) = blob {
                self.line.act(crate::Action::Blob { hash, bytes: bytes.to_vec() });
            }
            self.send(&ToDisplay::Request(request));
        }
    }

    /// Destroys what the program has destroyed, now that everything is made that came from it.
    fn end_revived(&mut self) {
        let mut requests = Vec::new();
        for (name, tombstone) in self.keeping.take_revived() {
            let ends = |request: &wayland_backend::protocol::MessageDesc| {
                request.is_destructor && request.since <= tombstone.version && request.signature.is_empty()
            };
            let opcode = tombstone.interface.requests.iter().position(ends);
            if let Some(opcode) = opcode.and_then(|opcode| u16::try_from(opcode).ok()) {
                requests.push(Request { object: name, opcode, args: Vec::new() });
            }
        }
        requests.into_iter().for_each(|request| self.send(&ToDisplay::Request(request)));
    }

    /// The selections that the program owns are made again, now that there is a serial of this display.
    pub(super) fn select_again(&mut self, serial: u32) {
        for (device, source) in self.devices.clipboard().take_unannounced() {
            let interface = self.interface_there(device);
            let opcode = interface.and_then(|interface| tables::request_opcode(interface, "set_selection"));
            let Some(opcode) = opcode else { continue };
            let args = vec![WireArg::Object(source), WireArg::Uint(serial)];
            // Null would clear what the user has selected meanwhile.
            if self.interface_there(source).is_some() {
                self.send(&ToDisplay::Request(Request { object: device, opcode, args }));
            }
        }
    }
}
