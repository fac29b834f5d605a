//! Globals: what the program is offered, `bind`, and `wl_display.sync`.
//!
//! The list is fixed and ours; the attached compositor decides only whether a global is real or a stub. Invariant: a
//! program's `sync` is answered after everything that the answer may depend on.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::Time;

use crate::message::{Request, ToDisplay, WireArg, WireId};
use crate::policy::{self, Home};
use crate::snapshot::Snapshot;
use crate::tables::{self, Access, Missing, Stub};
use crate::wire::Arg;

use super::birth::Message;
use super::object::{Data, Object};
use super::older;
use super::slots::{Slot, Slots};
use super::{Config, Connection, Fault, error_code};

/// One line of the registry that the program sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Registry name towards the program.
    pub(crate) name: u32,
    pub(crate) interface: &'static str,
    pub(crate) version: u32,
    /// Registry name at the compositor; `None` for what is answered here.
    pub(crate) global: Option<u32>,
}

/// Registry names of the fixed globals start here, those of outputs and seats are far behind.
const FIRST_FIXED: u32 = 1;

/// A registry name that no compositor gives: the display side is to stand in for it.
const NO_GLOBAL: u32 = 0;

/// The registry for a program, given what the compositor has, and whether the pixels of its surfaces are multiplied here.
pub(crate) fn offers(config: &Config, snapshot: &Snapshot, slots: &Slots, fades: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (global, name) in tables::GLOBALS.iter().zip(FIRST_FIXED..) {
        let interface = global.name();
        let named = |list: &[String]| list.iter().any(|name| name == interface);
        let wanted = match global.access {
            Access::Offered => !named(&config.deny),
            Access::Privileged => named(&config.allow),
            Access::Withheld => false,
        };
        if !wanted || matches!(interface, "wl_output" | "wl_seat") {
            continue;
        }
        let at_compositor = || snapshot.globals.iter().find(|g| g.interface == interface).map(|g| g.name);
        let real = match global.missing {
            Missing::Local => None,
            Missing::Encoded if fades => None,
            _ if interface == "wl_shm" => None,
            // The display side draws the shapes itself where the compositor cannot.
            Missing::Stub(Stub::ThemedCursor) => at_compositor().or(Some(NO_GLOBAL)),
            _ => at_compositor(),
        };
        let successor = |name| snapshot.version(name).is_some();
        match global.missing {
            Missing::Absent if real.is_none() => continue,
            Missing::Unless(newer) if real.is_none() || successor(newer) => continue,
            _ => {}
        }
        let version = older::offered(interface, global.version, snapshot);
        offers.push(Offer { name, interface, version, global: real });
    }
    let named = |interface, slots: &[Slot]| {
        let version = tables::version_cap(interface);
        let offer = move |slot: Slot| Offer { name: slot.name, interface, version, global: slot.global };
        slots.iter().copied().map(offer).collect::<Vec<_>>()
    };
    offers.extend(named("wl_output", slots.outputs()));
    // Programs insist on a seat; one without a global has no devices.
    offers.extend(named("wl_seat", slots.seats()));
    offers
}

/// Whether a program may have been offered a global that is not there any more.
fn may_vanish(global: &tables::Global) -> bool {
    let comes_and_goes = matches!(global.missing, Missing::Absent | Missing::Unless(_));
    global.access == Access::Offered && comes_and_goes || matches!(global.name(), "wl_output" | "wl_seat")
}

/// Which of the program's `sync`s had to be forwarded.
#[derive(Debug, Default)]
pub(crate) struct Sync {
    /// Requests so far to which the compositor owes an answer.
    owed: u64,
    /// Of these, how many are certainly answered.
    answered: u64,
    /// Forwarded callbacks in order, each with `owed` when it was sent.
    waiting: VecDeque<(u32, u64)>,
}

impl Sync {
    /// A request was sent to which the compositor owes an answer.
    pub(crate) fn owe(&mut self) {
        self.owed += 1;
    }

    fn may_answer_here(&self) -> bool {
        self.waiting.is_empty() && self.answered == self.owed
    }

    /// The display is gone: the callbacks that it has not answered.
    pub(crate) fn part(&mut self) -> Vec<u32> {
        std::mem::take(self).waiting.into_iter().map(|(callback, _)| callback).collect()
    }

    /// The compositor answered the callback `id`, if it was a forwarded one.
    pub(crate) fn on_done(&mut self, id: u32) {
        if let Some(position) = self.waiting.iter().position(|(callback, _)| *callback == id) {
            let (_, owed) = self.waiting[position];
            self.answered = self.answered.max(owed);
            self.waiting.drain(..=position);
        }
    }
}

/// Whether the program answers pings.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    serial: u32,
    sent: Option<Time>,
    next: Option<Time>,
    hangs: bool,
    /// The program is held back: what it answers is not read.
    unread: bool,
    /// Since when it is read again.
    read_since: Time,
}

/// How often a program with windows is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(5);
/// How long it may take to answer; compositors allow about as much.
const PING_PATIENCE: Duration = Duration::from_secs(10);

impl Ping {
    /// Whether the program has left a ping unanswered for too long.
    pub(crate) fn hangs(&self) -> bool {
        self.hangs
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        match (self.sent, self.hangs) {
            (Some(sent), false) => Some(sent.max(self.read_since) + PING_PATIENCE),
            (Some(_), true) => None,
            (None, _) => self.next,
        }
    }
}

impl Connection {
    /// `wl_display.get_registry`.
    pub(super) fn get_registry(&mut self, id: u32) -> Result<(), Fault> {
        for offer in self.offers.clone() {
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
        let Some(offer) = self.offers.iter().find(|offer| offer.name == *name).cloned() else {
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
        match offer.interface {
            "wl_output" => object.data = Data::Output(*name),
            "wl_seat" => object.data = Data::Seat(*name),
            _ => {}
        }
        let global = offer.global.filter(|_| self.attached);
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
                self.sync.owe();
            }
        }
        self.greet(*id, offer.interface)
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

    /// The events that follow a bind.
    fn greet(&mut self, id: u32, interface: &str) -> Result<(), Fault> {
        match interface {
            "wl_shm" => self.tell_formats(id),
            "wl_output" => self.tell_output(id),
            "wl_seat" => self.tell_seat(id),
            // CLOCK_MONOTONIC: the times are mapped to this side's.
            "wp_presentation" => self.emit(id, "clock_id", vec![Arg::Uint(1)]),
            _ if self.wire(id).is_none() => self.greet_stub(id, interface),
            _ => Ok(()),
        }
    }

    /// Brings the registry up to date; what is new comes first, so that a program never sees none of a kind.
    pub(super) fn update_offers(&mut self) -> Result<(), Fault> {
        let mut new = offers(&self.config, &self.desk.snapshot, &self.slots, self.fades);
        let old = std::mem::take(&mut self.offers);
        for offer in &mut new {
            // What was announced stays as it was.
            let before = old.iter().find(|before| before.name == offer.name);
            offer.version = before.map_or(offer.version, |before| before.version);
        }
        self.offers.clone_from(&new);
        let names = |offers: &[Offer]| offers.iter().map(|offer| offer.name).collect::<Vec<_>>();
        let (old_names, new_names) = (names(&old), names(&new));
        for registry in self.objects.living("wl_registry") {
            for offer in new.iter().filter(|offer| !old_names.contains(&offer.name)) {
                self.announce(registry, offer)?;
            }
            for name in old_names.iter().filter(|name| !new_names.contains(name)) {
                self.emit(registry, "global_remove", vec![Arg::Uint(*name)])?;
            }
        }
        Ok(())
    }

    /// `wl_display.sync`: answered here unless the compositor owes an answer.
    pub(super) fn sync(&mut self, callback: u32) -> Result<(), Fault> {
        if !self.attached || self.sync.may_answer_here() {
            self.emit(callback, "done", vec![Arg::Uint(0)])?;
            return self.forget(callback);
        }
        let wire = self.objects.allocate_wire();
        self.objects.set_wire(callback, wire);
        self.sync.waiting.push_back((callback, self.sync.owed));
        self.send(&ToDisplay::Request(Request {
            object: WireId::DISPLAY,
            opcode: 0,
            args: vec![WireArg::NewId(wire)],
        }));
        Ok(())
    }

    /// Tells whether the program's requests are read now. While they are not, its silence means nothing.
    pub fn set_read(&mut self, now: Time, read: bool) {
        if read && self.ping.unread {
            self.ping.read_since = now;
        }
        self.ping.unread = !read;
    }

    /// `xdg_wm_base.pong`.
    pub(super) fn pong(&mut self, serial: u32) {
        if self.ping.sent.is_none() || serial != self.ping.serial {
            return;
        }
        self.ping.sent = None;
        self.ping.next = Some(self.now + PING_EVERY);
        if std::mem::take(&mut self.ping.hangs) {
            self.send(&ToDisplay::Hang(false));
        }
    }

    /// Asks the program whether it lives, and tells the display side when it does not.
    pub(super) fn ping_timeout(&mut self) -> Result<(), Fault> {
        let base = self.objects.living("xdg_wm_base").first().copied();
        let Some(base) = base else { return Ok(()) };
        if self.ping.next.is_none() && self.ping.sent.is_none() {
            self.ping.next = Some(self.now + PING_EVERY);
        }
        if self.ping.next_timeout().is_none_or(|due| due > self.now) {
            return Ok(());
        }
        if self.ping.unread || self.stalled() {
            // Its answer would not be read.
            self.ping.read_since = self.now;
            self.ping.next = self.ping.next.map(|_| self.now + PING_EVERY);
            return Ok(());
        }
        if self.ping.sent.is_some() {
            self.ping.hangs = true;
            self.send(&ToDisplay::Hang(true));
            return Ok(());
        }
        self.ping.serial = self.ping.serial.wrapping_add(1);
        self.ping.sent = Some(self.now);
        self.ping.next = None;
        self.emit(base, "ping", vec![Arg::Uint(self.ping.serial)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Global, Output};

    fn snapshot(interfaces: &[&str]) -> Snapshot {
        let globals = interfaces.iter().zip(40..).map(|(interface, name)| Global {
            name,
            interface: (*interface).to_owned(),
            version: 1,
        });
        Snapshot { globals: globals.collect(), ..Snapshot::default() }
    }

    fn names(s: &Snapshot) -> Vec<(&'static str, u32)> {
        let offers = offers(&Config::default(), s, &Slots::new(s), true);
        offers.into_iter().map(|o| (o.interface, o.version)).collect()
    }

    #[test]
    fn what_is_answered_here_does_not_depend_on_the_compositor() {
        assert_eq!(names(&snapshot(&[])), names(&snapshot(&["wl_compositor", "zwp_tablet_manager_v2"])));
    }

    #[test]
    fn regression_what_would_only_pretend_is_not_offered() {
        for interface in [
            "xdg_toplevel_drag_manager_v1",
            "xdg_system_bell_v1",
            "zwp_text_input_manager_v3",
            "zwp_pointer_constraints_v1",
        ] {
            let has = |s: &Snapshot| names(s).iter().any(|(name, _)| *name == interface);
            assert!(!has(&snapshot(&["wl_compositor"])) && has(&snapshot(&[interface])), "{interface}");
        }
    }

    #[test]
    fn the_old_text_input_is_for_compositors_that_have_nothing_else() {
        let (old, new) = ("zwp_text_input_manager_v1", "zwp_text_input_manager_v3");
        let has = |s: &Snapshot| names(s).iter().any(|(name, _)| *name == old);
        assert!(has(&snapshot(&[old])) && !has(&snapshot(&[old, new])) && !has(&snapshot(&[new])));
    }

    #[test]
    fn privileged_globals_need_both_permission_and_support() {
        let privileged = "zwlr_layer_shell_v1";
        let allow = Config { allow: vec![privileged.to_owned()], ..Config::default() };
        let has = |config: &Config, s: &Snapshot| {
            offers(config, s, &Slots::new(s), true).iter().any(|o| o.interface == privileged)
        };
        assert!(!has(&Config::default(), &snapshot(&[privileged])));
        assert!(!has(&allow, &snapshot(&[])));
        assert!(has(&allow, &snapshot(&[privileged])));
    }

    #[test]
    fn every_output_is_offered_and_a_seat_always() {
        let output = |global| Output { global, ..Output::default() };
        let s = Snapshot { outputs: vec![output(7), output(9)], ..Snapshot::default() };
        let offers = offers(&Config::default(), &s, &Slots::new(&s), true);
        let count = |interface| offers.iter().filter(|o| o.interface == interface).count();
        assert_eq!((count("wl_output"), count("wl_seat")), (2, 1));
    }

    #[test]
    fn sync_is_local_until_an_answer_is_owed() {
        let mut sync = Sync::default();
        assert!(sync.may_answer_here());
        sync.owe();
        assert!(!sync.may_answer_here());
        sync.waiting.push_back((9, sync.owed));
        sync.owe();
        sync.on_done(9);
        assert!(!sync.may_answer_here(), "the second answer is still owed");
        sync.waiting.push_back((10, sync.owed));
        sync.on_done(10);
        assert!(sync.may_answer_here());
    }
}
