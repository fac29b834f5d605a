//! A new display: everything that the program has made and said is made and said again.
//!
//! Objects in the order of their births, then the requests that last, then surfaces with their state. Windows begin as a
//! program would begin them: a commit without content, and once the display has configured them, their last pixels. The
//! display side sees an ordinary new connection. Invariant: no content is attached to a window before its first configure
//! of this display is acknowledged.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use wayferry_pixels::{Compression, Encoder};
use wayferry_proto::Time;

use crate::message::{MAX_UNIT_STATE, Request, ToDisplay, Unit, UnitContent, WireArg, WireId};
use crate::tables;
use crate::wire::Arg;

use super::desk::Known;
use super::object::{Data, Wanted};
use super::surface::{Change, Kind, Role, Stage, State, Unsent};
use super::{Connection, Desk, Fault};

/// `xdg_toplevel` parents that are followed; more are a joke.
const MAX_FAMILY: usize = 64;

/// What the surfaces of the program are to this display.
#[derive(Debug, Default)]
struct Roles {
    /// Surfaces with a window or layer that lives.
    windows: HashSet<u32>,
    popups: HashSet<u32>,
}

impl Connection {
    /// A new display takes over, of which nothing is known to have anything of this program. What it must be told comes out
    /// of [`Self::poll_action`], like a new connection's. A display that is still attached is [detached](Self::detach).
    pub fn attach(&mut self, now: Time, desk: &Rc<Desk>, compression: Compression) {
        self.detach(now);
        self.now = now;
        let known = self.known();
        self.desk = Rc::clone(desk);
        self.config.compression = compression;
        self.encoder = Encoder::new(compression).with_threads(self.config.threads);
        self.attached = true;
        if self.end.is_none() {
            let step = self.replay(&known);
            self.settle(step);
        }
    }

    fn replay(&mut self, known: &Known) -> Result<(), Fault> {
        self.slots.change(&self.desk.snapshot);
        self.update_offers()?;
        let living = self.objects.iter().filter(|(_, object)| object.alive);
        let ghosts = self.graves.needed(living.flat_map(|(_, object)| object.past.needs()));
        let roles = self.roles();
        self.bear(&roles, &ghosts)?;
        self.repeat(&ghosts);
        self.clipboard.meet();
        self.restage(&roles)?;
        self.end_ghosts();
        self.compare_keymaps();
        self.update_desk(known)?;
        if self.ping.hangs() {
            self.send(&ToDisplay::Hang(true));
        }
        Ok(())
    }

    /// Tiling compositors call a window maximized that may not choose its size. One that chose nonetheless was not, and some
    /// compositors end a program over the difference: no other display is asked for it.
    pub(super) fn forget_what_was_not_followed(&mut self) {
        for id in self.objects.living("xdg_toplevel") {
            let surface = self.association(id);
            if surface.is_none_or(|surface| !self.decides(surface)) {
                continue;
            }
            if let Some(object) = self.objects.of_mut(id) {
                object.past.kept.retain(|kept| !matches!(kept.slot, Some("maximized" | "fullscreen")));
            }
        }
    }

    fn roles(&self) -> Roles {
        let mut roles = Roles::default();
        for (_, object) in self.objects.iter().filter(|(_, object)| object.alive) {
            let Some(surface) = object.surface else { continue };
            match object.interface.name {
                "xdg_toplevel" | "zwlr_layer_surface_v1" => roles.windows.insert(surface),
                "xdg_popup" => roles.popups.insert(surface),
                _ => continue,
            };
        }
        roles
    }

    /// Makes all objects again, and those that these came from.
    fn bear(&mut self, roles: &Roles, ghosts: &[WireId]) -> Result<(), Fault> {
        let mut births = BTreeMap::new();
        for (id, object) in self.objects.iter().filter(|(_, object)| object.alive) {
            if let (Some(name), Some(birth)) = (object.name, &object.past.birth) {
                births.insert(name, (Some(id), birth.clone()));
            }
        }
        for name in ghosts {
            let birth = self.graves.of(*name).and_then(|grave| grave.past.birth.clone());
            births.extend(birth.map(|birth| (*name, (None, birth))));
        }
        for (name, (id, birth)) in births {
            let message = birth.get().and_then(|birth| self.birth(roles, birth));
            match (&message, id) {
                (Some(_), Some(id)) => self.objects.set_wire(id, name),
                (Some(_), None) => drop(self.ghosts.insert(name)),
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
                let offer = self.offers.iter().find(|offer| offer.name == name)?;
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
        let bit = match (interface.name, desc.name) {
            ("wl_seat", "get_pointer") => 1,
            ("wl_seat", "get_keyboard") => 2,
            ("wl_seat", "get_touch") => 4,
            ("xdg_wm_base", "get_xdg_surface") => {
                let surface = match birth.args.get(1) {
                    Some(WireArg::Object(surface)) => self.objects.by_name(*surface),
                    _ => None,
                };
                // Popups are over. A surface with content may become no window, so one that is none must have none.
                return surface.is_some_and(|id| {
                    let bare = self.surfaces.get(&id).is_some_and(|surface| !surface.mapped());
                    roles.windows.contains(&id) || bare && !roles.popups.contains(&id)
                });
            }
            _ => return true,
        };
        self.capabilities(birth.object) & bit != 0
    }

    /// What devices a seat has.
    fn capabilities(&self, seat: WireId) -> u32 {
        let slot = match self.objects.by_name(seat).and_then(|id| self.objects.of(id)) {
            Some(object) => match object.data {
                Data::Seat(slot) => Some(slot),
                _ => None,
            },
            None => match self.graves.of(seat).and_then(|grave| grave.past.birth.as_ref()?.get()) {
                Some(ToDisplay::Bind { global, .. }) => Some(global),
                _ => None,
            },
        };
        slot.and_then(|slot| self.seat_in(slot)).map_or(0, |seat| seat.capabilities)
    }

    /// Says again what lasts, in the order in which the program said it.
    fn repeat(&mut self, ghosts: &[WireId]) {
        let living = self.objects.iter().filter(|(_, object)| object.alive).map(|(_, object)| &object.past);
        let ghosts = ghosts.iter().filter_map(|name| self.graves.of(*name)).map(|grave| &grave.past);
        let kept = living.chain(ghosts).flat_map(|past| &past.kept);
        let mut kept: Vec<_> = kept.map(|kept| (kept.age, kept.message.clone(), kept.blob.clone())).collect();
        kept.sort_unstable_by_key(|(age, ..)| *age);
        for (_, message, blob) in kept {
            let Some(request) = message.request().and_then(|request| self.addressed(request)) else {
                continue;
            };
            if let Some((hash, bytes)) = blob {
                self.act(crate::Action::Blob { hash, bytes: bytes.to_vec() });
            }
            self.send(&ToDisplay::Request(request));
        }
    }

    /// Destroys what the program has destroyed, now that everything is made that came from it.
    fn end_ghosts(&mut self) {
        for name in std::mem::take(&mut self.ghosts).into_iter().rev() {
            let Some(grave) = self.graves.of(name) else { continue };
            let ends = |request: &wayland_backend::protocol::MessageDesc| {
                request.is_destructor && request.since <= grave.version && request.signature.is_empty()
            };
            let opcode = grave.interface.requests.iter().position(ends);
            if let Some(opcode) = opcode.and_then(|opcode| u16::try_from(opcode).ok()) {
                self.send(&ToDisplay::Request(Request { object: name, opcode, args: Vec::new() }));
            }
        }
    }

    /// Brings every surface to where this display can have it.
    fn restage(&mut self, roles: &Roles) -> Result<(), Fault> {
        let roots = self.surfaces.iter().filter(|(_, surface)| surface.parent.is_none());
        let mut roots: Vec<_> =
            roots.map(|(id, surface)| (self.generation(*id), surface.wire, *id)).collect();
        // Parents before their dialogs.
        roots.sort_unstable();
        for (.., id) in roots {
            let window = roles.windows.contains(&id).then(|| self.window(id)).flatten();
            let there = window.is_some_and(|window| self.wire(window).is_some());
            match window {
                _ if there => self.begin_again(id)?,
                None if !roles.popups.contains(&id) => self.idle(id)?,
                _ => {
                    self.set_stage(id, Stage::Over);
                    // Of a layer whose shell this display lacks.
                    window.map_or(Ok(()), |window| self.emit(window, "closed", Vec::new()))?;
                }
            }
        }
        Ok(())
    }

    /// The living `xdg_toplevel` or layer of a surface.
    fn window(&self, surface: u32) -> Option<u32> {
        let is_it = |name: &str| matches!(name, "xdg_toplevel" | "zwlr_layer_surface_v1");
        let mut living = self.objects.iter().filter(|(_, object)| object.alive);
        living
            .find(|(_, object)| object.surface == Some(surface) && is_it(object.interface.name))
            .map(|(id, _)| id)
    }

    /// How many windows are above a window.
    fn generation(&self, surface: u32) -> usize {
        let above = |window: &u32| {
            let past = &self.objects.alive(*window)?.past;
            match past.last("parent")?.args.first()? {
                WireArg::Object(parent) => self.objects.by_name(*parent),
                _ => None,
            }
        };
        if self.surfaces.get(&surface).is_none_or(|surface| surface.role != Role::Configured) {
            return 0;
        }
        std::iter::successors(self.window(surface), above).take(MAX_FAMILY).count()
    }

    fn set_stage(&mut self, id: u32, stage: Stage) {
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.stage = stage;
        }
    }

    /// A window: its initial commit, if the program has made that.
    fn begin_again(&mut self, id: u32) -> Result<(), Fault> {
        self.stow_children(id)?;
        let Some(surface) = self.surfaces.get(&id) else { return Ok(()) };
        let (mapped, begun) = (surface.mapped(), surface.initial || surface.mapped());
        let (early, _) = self.state_of(id, mapped);
        let now = self.now;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        if !begun {
            // Its own first commit will bring it.
            surface.again = early;
            return Ok(());
        }
        surface.stage = Stage::Awaited;
        let number = surface.next_unit(now);
        // Its content need not keep its distance from that.
        surface.last_sent = None;
        let surface = surface.wire;
        let (content, offset, feedback) = (UnitContent::Keep, (0, 0), false);
        let (state, children) = (early.into_requests(), Vec::new());
        self.send(&ToDisplay::Unit(Unit { surface, number, state, content, offset, feedback, children }));
        Ok(())
    }

    /// A surface without a role: its content waits for one.
    fn idle(&mut self, id: u32) -> Result<(), Fault> {
        let whole = self.whole(id)?;
        let now = self.now;
        if let Some(surface) = self.surfaces.get_mut(&id).filter(|_| whole.is_some()) {
            (surface.stage, surface.unsent, surface.waiting_since) = (Stage::Idle, whole, now);
        }
        Ok(())
    }

    /// A popup's surface is a surface like others once the popup is destroyed.
    pub(super) fn revive(&mut self, id: u32) -> Result<(), Fault> {
        let over = self.surfaces.get(&id).is_some_and(|surface| surface.stage == Stage::Over);
        if !over {
            return Ok(());
        }
        self.set_stage(id, Stage::Shown);
        if self.attached { self.idle(id) } else { Ok(()) }
    }

    /// Children bring their content with the parent's next commit if they are synchronised, else by themselves.
    fn stow_children(&mut self, id: u32) -> Result<(), Fault> {
        let children = self.surfaces.get(&id).map(|surface| surface.children.clone()).unwrap_or_default();
        let now = self.now;
        for child in children {
            let Some(whole) = self.whole(child)? else { continue };
            let Some(whole) = self.lay_below(child, whole)? else { continue };
            let synchronised = self.effectively_synchronised(child);
            let Some(surface) = self.surfaces.get_mut(&child) else { continue };
            *(if synchronised { &mut surface.cached } else { &mut surface.unsent }) = Some(whole);
            surface.waiting_since = now;
        }
        Ok(())
    }

    /// Puts what a display must hear first of a surface below the oldest commit of it that waits, by itself or in that of a
    /// surface above. Gives it back if none does.
    fn lay_below(&mut self, id: u32, mut first: Unsent) -> Result<Option<Unsent>, Fault> {
        let above: Vec<u32> = self.ancestors(id).collect();
        for above in above.into_iter().rev() {
            let Some(surface) = self.surfaces.get_mut(&above) else { continue };
            let mut waiting = surface.unsent.iter_mut().chain(&mut surface.cached);
            let of_it = |waiting| if above == id { Some(waiting) } else { Unsent::find(waiting, id) };
            let Some(found) = waiting.find_map(of_it) else { continue };
            let discarded = first.merge(std::mem::take(found)).map_err(Fault::TooMuch)?;
            *found = first;
            return self.discard_feedback(discarded).map(|()| None);
        }
        Ok(Some(first))
    }

    /// A commit that brings all of a surface, with its synchronised children; `None` if there is nothing to show: its own
    /// next commit brings the rest.
    fn whole(&mut self, id: u32) -> Result<Option<Unsent>, Fault> {
        let (state, _) = self.state_of(id, false);
        let Some(surface) = self.surfaces.get(&id) else { return Ok(None) };
        if !surface.mapped() {
            let first = self.lay_below(id, Unsent { state, ..Unsent::default() })?;
            if let (Some(first), Some(surface)) = (first, self.surfaces.get_mut(&id)) {
                surface.again = first.state;
            }
            return self.stow_children(id).map(|()| None);
        }
        let children = surface.children.clone();
        let mut whole = Unsent { state, change: Change::New, ..Unsent::default() };
        for child in children {
            let Some(content) = self.whole(child)? else { continue };
            if self.effectively_synchronised(child) {
                whole.children.push((child, content));
            } else if let Some(surface) = self.surfaces.get_mut(&child) {
                (surface.unsent, surface.waiting_since) = (Some(content), self.now);
            }
        }
        Ok(Some(whole))
    }

    /// The committed state of a surface: what comes first, and what comes with the content of a window.
    fn state_of(&self, id: u32, split: bool) -> (State, State) {
        let (mut early, mut late) = (State::default(), State::default());
        let Some(surface) = self.surfaces.get(&id) else { return (early, late) };
        let stacking = surface.committed.order(id).into_iter().filter_map(|place| self.stacking(place));
        let stacking = stacking.map(|request| (request, Kind::Composes));
        let committed = surface.committed.requests().map(|request| (request, Kind::Replaces));
        for (count, (request, kind)) in stacking.chain(committed).enumerate() {
            let Some(request) = self.addressed(request) else { continue };
            let interface = self.interface_there(request.object).map(|interface| interface.name);
            let is_late = split && (interface == Some("xdg_surface") || count >= MAX_UNIT_STATE);
            // What exceeds a unit even so is decoration: the order of hundreds of children.
            let _ = if is_late { &mut late } else { &mut early }.add(request, kind);
        }
        (early, late)
    }

    fn stacking(&self, (child, sibling, above): (u32, u32, bool)) -> Option<Request> {
        let mut living = self.objects.iter().filter(|(_, object)| object.alive);
        let (subsurface, object) = living.find(|(_, object)| {
            object.surface == Some(child) && matches!(object.data, Data::Subsurface { .. })
        })?;
        let interface = object.interface;
        let opcode = tables::request_opcode(interface, if above { "place_above" } else { "place_below" })?;
        let args = vec![WireArg::Object(self.name(sibling)?)];
        Some(Request { object: self.name(subsurface)?, opcode, args })
    }

    /// The display has configured a window or layer: if it waits for that, it is shown.
    pub(super) fn on_configure(&mut self, id: u32, serial: u32) -> Result<(), Fault> {
        let Some(surface) = self.association(id) else { return Ok(()) };
        let Some(state) = self.surfaces.get_mut(&surface).filter(|state| state.stage == Stage::Awaited)
        else {
            return Ok(());
        };
        if !state.mapped() {
            state.stage = Stage::Shown;
            // What children have committed meanwhile.
            return self.release_cached(surface);
        }
        if self.decides(surface) {
            self.set_stage(surface, Stage::Decided);
            return Ok(());
        }
        let Some((object, interface)) = self.objects.of(id).map(|object| (object.name, object.interface))
        else {
            return Ok(());
        };
        let (Some(object), Some(opcode)) = (object, tables::request_opcode(interface, "ack_configure"))
        else {
            return Ok(());
        };
        if let Some(state) = self.surfaces.get_mut(&surface) {
            state.acknowledged = Some(self.serials.for_app(serial));
        }
        self.show_window(surface, Some(Request { object, opcode, args: vec![WireArg::Uint(serial)] }))
    }

    /// Whether the display insists on a size that the kept content does not have: some end a program over that.
    fn decides(&self, surface: u32) -> bool {
        let window = self.window(surface).and_then(|id| self.objects.of(id));
        let Some(Data::Toplevel(Wanted { size, maximized, fullscreen })) = window.map(|object| &object.data)
        else {
            return false;
        };
        (*maximized || *fullscreen) && *size != (0, 0) && self.geometry(surface) != Some(*size)
    }

    /// Size of a window as the program says, or as it is.
    fn geometry(&self, surface: u32) -> Option<(i32, i32)> {
        let surface = self.surfaces.get(&surface)?;
        let told = surface.committed.requests().find_map(|request| {
            let interface = self.interface_there(request.object)?;
            let desc = interface.requests.get(usize::from(request.opcode))?;
            match request.args[..] {
                [_, _, WireArg::Int(width), WireArg::Int(height)] if desc.name == "set_window_geometry" => {
                    Some((width, height))
                }
                _ => None,
            }
        });
        told.or_else(|| surface.size())
    }

    /// A window is shown: all of it, then what the program has committed since.
    pub(super) fn show_window(&mut self, id: u32, acknowledge: Option<Request>) -> Result<(), Fault> {
        self.set_stage(id, Stage::Shown);
        let (_, mut state) = self.state_of(id, true);
        if let Some(request) = acknowledge {
            state.add(request, Kind::Once).map_err(Fault::TooMuch)?;
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let change = if surface.mapped() { Change::New } else { Change::Keep };
        let mut whole = Unsent { state, change, ..Unsent::default() };
        let newer = surface.unsent.take().unwrap_or_default();
        let mut discarded = whole.merge(newer).map_err(Fault::TooMuch)?;
        let newest = self.with_children(id, Unsent::default());
        discarded.extend(whole.merge(newest).map_err(Fault::TooMuch)?);
        self.discard_feedback(discarded)?;
        self.join(id, whole)?;
        self.release_cached(id)?;
        self.adopt_dialogs(id)
    }

    /// A parent that was not shown counted as none.
    fn adopt_dialogs(&mut self, id: u32) -> Result<(), Fault> {
        let Some(parent) = self.window(id).and_then(|window| self.name(window)) else { return Ok(()) };
        let dialogs = self.objects.iter().filter(|(_, object)| object.alive).filter_map(|(_, object)| {
            let request = object.past.last("parent")?;
            (request.args.first() == Some(&WireArg::Object(parent))).then_some(request)
        });
        let dialogs: Vec<Request> = dialogs.filter_map(|request| self.addressed(request)).collect();
        if !dialogs.is_empty() {
            self.flush_tree(id)?;
        }
        dialogs.into_iter().for_each(|request| self.send(&ToDisplay::Request(request)));
        Ok(())
    }

    /// Whether the program acknowledges a configure that was not acknowledged here for it.
    pub(super) fn acknowledge(&self, surface: u32, args: &[Arg]) -> bool {
        let done = self.surfaces.get(&surface).and_then(|surface| surface.acknowledged);
        match (done, args) {
            (Some(done), [Arg::Uint(serial)]) => super::serial::before(done, *serial),
            _ => true,
        }
    }

    /// The selections that the program owns are made again, now that there is a serial of this display.
    pub(super) fn select_again(&mut self, serial: u32) {
        for (device, source) in self.clipboard.take_untold() {
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
