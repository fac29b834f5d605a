//! Surfaces at a new display: windows begin again, and show what the program showed last.
//!
//! A window begins as its program would begin it, by a commit without content; once the display has configured it, its
//! last pixels come. Children that are synchronised come with their parents, others by themselves; what has no role
//! waits for one. Invariant: no content is attached to a window before its first configure of this display is
//! acknowledged.

use crate::message::{MAX_UNIT_STATE, Request, ToDisplay, Unit, UnitContent, WireArg};
use crate::policy::{self, Handler};
use crate::tables;
use crate::wire::Arg;

use super::connection::Connection;
use super::fault::Fault;
use super::object::{Data, Wanted};
use super::roles::Roles;
use super::stack::{Move, Stack};
use super::standing::Stage;
use super::surface::Surface;
use super::unsent::{Change, Kind, State, Unsent};

/// Windows above a window that are counted; more are a joke.
const MAX_FAMILY: usize = 64;

impl Connection {
    /// Brings every surface to where this display can have it.
    pub(super) fn restage(&mut self, roles: &Roles) -> Result<(), Fault> {
        let roots = self.surfaces.iter().filter(|(_, surface)| surface.family.parent().is_none());
        let mut roots: Vec<_> =
            roots.map(|(id, surface)| (self.generation(roles, *id), surface.wire, *id)).collect();
        // Parents before their dialogs.
        roots.sort_unstable();
        for surface in self.surfaces.values_mut() {
            surface.family.place_again(&surface.committed.stack, &mut surface.pending.stack);
        }
        for (.., id) in roots {
            let window = roles.windows.get(&id).copied();
            let there = window.is_some_and(|window| self.objects.wire(window).is_some());
            match window {
                _ if there => self.begin_again(id)?,
                None if !roles.popups.contains(&id) => self.idle(id)?,
                _ => {
                    self.set_stage(id, Stage::Over);
                    // Of a layer whose shell this display lacks.
                    let layer = window.filter(|window| {
                        self.objects.of(*window).is_some_and(|object| object.handler == Handler::LayerSurface)
                    });
                    layer.map_or(Ok(()), |layer| self.emit(layer, "closed", Vec::new()))?;
                }
            }
        }
        Ok(())
    }

    /// How many windows are above a window.
    fn generation(&self, roles: &Roles, surface: u32) -> usize {
        let above = |window: &u32| {
            let past = &self.objects.alive(*window)?.past;
            match past.last("parent")?.args.first()? {
                WireArg::Object(parent) => self.objects.by_name(*parent),
                _ => None,
            }
        };
        std::iter::successors(roles.windows.get(&surface).copied(), above).take(MAX_FAMILY).count()
    }

    fn set_stage(&mut self, id: u32, stage: Stage) {
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.standing.set_stage(stage);
        }
    }

    /// A window: its initial commit, if the program has made that.
    fn begin_again(&mut self, id: u32) -> Result<(), Fault> {
        self.stow_children(id)?;
        let Some(surface) = self.surfaces.get(&id) else { return Ok(()) };
        let (mapped, begun) = (surface.mapped(), surface.standing.has_begun() || surface.mapped());
        let (early, _) = self.state_of(id, mapped);
        let (now, tick) = (self.now, self.beat().tick(self.now));
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        if !begun {
            // Its own first commit will bring it.
            surface.again = early;
            return Ok(());
        }
        surface.standing.set_stage(Stage::Awaited);
        let number = surface.sent.next_unit(now, tick);
        // Its content need not keep its distance from that.
        surface.sent.forget_pace();
        let surface = surface.wire;
        self.pacing.leave(surface, number, 0);
        let (content, offset, feedback, answered) = (UnitContent::Keep, (0, 0), false, None);
        let (state, children) = (early.into_requests(), Vec::new());
        let unit = Unit { surface, number, state, content, offset, feedback, answered, children };
        self.send(&ToDisplay::Unit(unit));
        Ok(())
    }

    /// A surface without a role: its content waits for one.
    fn idle(&mut self, id: u32) -> Result<(), Fault> {
        let whole = self.whole(id)?;
        let now = self.now;
        if let (Some(surface), Some(whole)) = (self.surfaces.get_mut(&id), whole) {
            surface.standing.set_stage(Stage::Idle);
            surface.waiting.line_up(whole, now);
        }
        Ok(())
    }

    /// A popup's surface is a surface like others once the popup is destroyed.
    pub(super) fn revive(&mut self, id: u32) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let is_over = surface.standing.stage() == Stage::Over;
        if !is_over && !surface.standing.waits() {
            return Ok(());
        }
        // What waited for a window that was never shown at this display.
        let waits = if is_over { None } else { surface.waiting.take_unsent() };
        self.set_stage(id, Stage::Shown);
        if self.line.is_attached() {
            self.idle(id)?;
        }
        waits.map_or(Ok(()), |unsent| self.line_up(id, unsent))
    }

    /// Children bring their content with the parent's next commit if they are synchronised, else by themselves.
    fn stow_children(&mut self, id: u32) -> Result<(), Fault> {
        let children = self.surfaces.children_of(id);
        let now = self.now;
        for child in children {
            let Some(whole) = self.whole(child)? else { continue };
            let Some(whole) = self.lay_below(child, whole)? else { continue };
            let synchronised = self.surfaces.is_synchronised(child);
            let Some(surface) = self.surfaces.get_mut(&child) else { continue };
            surface.waiting.stow(whole, synchronised, now);
        }
        Ok(())
    }

    /// Puts what a display must hear first of a surface below the oldest commit of it that waits, by itself or in that
    /// of a surface above. Gives it back if none does.
    fn lay_below(&mut self, id: u32, mut first: Unsent) -> Result<Option<Unsent>, Fault> {
        let above: Vec<u32> = self.surfaces.ancestors(id).collect();
        for above in above.into_iter().rev() {
            let Some(surface) = self.surfaces.get_mut(&above) else { continue };
            let of_it = |waiting| if above == id { Some(waiting) } else { Unsent::find(waiting, id) };
            let Some(found) = surface.waiting.iter_mut().rev().find_map(of_it) else { continue };
            let discarded = first.merge(std::mem::take(found)).map_err(Fault::TooMuch)?;
            *found = first;
            return self.discard_feedback(discarded).map(|()| None);
        }
        Ok(Some(first))
    }

    /// A commit that brings all of a surface, with its synchronised children; `None` if there is nothing to show: its
    /// own next commit brings the rest.
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
        let children = surface.family.children().to_vec();
        let mut whole = Unsent { state, stack: self.stack_of(id), change: Change::New, ..Unsent::default() };
        for child in children {
            let Some(content) = self.whole(child)? else { continue };
            if self.surfaces.is_synchronised(child) {
                whole.children.push((child, content));
            } else if let Some(surface) = self.surfaces.get_mut(&child) {
                surface.waiting.line_up(content, self.now);
            }
        }
        Ok(Some(whole))
    }

    /// The committed state of a surface: what comes first, and what comes with the content of a window.
    fn state_of(&self, id: u32, split: bool) -> (State, State) {
        let (mut early, mut late) = (State::default(), State::default());
        let Some(surface) = self.surfaces.get(&id) else { return (early, late) };
        for (count, request) in surface.committed.requests().enumerate() {
            let Some(request) = self.addressed(request) else { continue };
            let interface = self.interface_there(request.object);
            let handler = interface.map(|interface| policy::handler(interface.name));
            let is_late = split && (handler == Some(Handler::XdgSurface) || count >= MAX_UNIT_STATE);
            // What exceeds a unit even so is decoration.
            let _ = if is_late { &mut late } else { &mut early }.add(request, Kind::Replaces);
        }
        (early, late)
    }

    /// The order of a surface's children, if they are not in the order in which they became children.
    fn stack_of(&self, id: u32) -> Option<Stack> {
        let stack = self.surfaces.get(&id).map(|surface| &surface.committed.stack)?;
        stack.is_moved().then(|| stack.clone())
    }

    /// The request that places a child.
    pub(super) fn stacking(&self, to: Move) -> Option<Request> {
        let subsurface = self.surfaces.get(&to.child)?.family.subsurface();
        let interface = self.objects.of(subsurface)?.interface;
        let request = if to.above { "place_above" } else { "place_below" };
        let opcode = tables::request_opcode(interface, request)?;
        let args = vec![WireArg::Object(self.objects.name(to.sibling)?)];
        Some(Request { object: self.objects.name(subsurface)?, opcode, args })
    }

    /// The display has configured a window or layer: if it waits for that, it is shown.
    pub(super) fn on_configure(&mut self, id: u32, serial: u32) -> Result<(), Fault> {
        let Some(surface) = self.association(id) else { return Ok(()) };
        let is_awaited = |state: &Surface| state.standing.stage() == Stage::Awaited;
        if !self.surfaces.get(&surface).is_some_and(is_awaited) {
            return Ok(());
        }
        self.finish_comparing()?;
        let Some(state) = self.surfaces.get_mut(&surface).filter(|state| is_awaited(state)) else {
            return Ok(());
        };
        if !state.mapped() {
            state.standing.set_stage(Stage::Shown);
            // What children have committed meanwhile.
            return self.release_cached(surface);
        }
        let window = Roles::of(&self.objects).windows.get(&surface).copied();
        if window.is_some_and(|window| self.decides(window, surface)) {
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
            state.standing.acknowledge(self.line.serials_mut().for_app(serial));
        }
        self.show_window(surface, Some(Request { object, opcode, args: vec![WireArg::Uint(serial)] }))
    }

    /// Whether the display requires a size that the kept content does not have: some end a program over that.
    pub(super) fn decides(&self, window: u32, surface: u32) -> bool {
        let window = self.objects.of(window).map(|object| &object.data);
        let Some(Data::Toplevel(Wanted { size, maximized, fullscreen })) = window else { return false };
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
        let roles = Roles::of(&self.objects);
        let (_, mut state) = self.state_of(id, true);
        if let Some(request) = acknowledge {
            state.add(request, Kind::Once).map_err(Fault::TooMuch)?;
        }
        let stack = self.stack_of(id);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let change = if surface.mapped() { Change::New } else { Change::Keep };
        let mut whole = Unsent { state, stack, change, ..Unsent::default() };
        let newer = surface.waiting.take_unsent().unwrap_or_default();
        let mut discarded = whole.merge(newer).map_err(Fault::TooMuch)?;
        let newest = self.surfaces.with_children(id, Unsent::default());
        self.remember(id, &newest)?;
        discarded.extend(whole.merge(newest).map_err(Fault::TooMuch)?);
        self.discard_feedback(discarded)?;
        self.line_up(id, whole)?;
        self.release_cached(id)?;
        self.adopt_dialogs(&roles, id)
    }

    /// A parent that was not shown counted as none.
    fn adopt_dialogs(&mut self, roles: &Roles, id: u32) -> Result<(), Fault> {
        let Some(parent) = roles.windows.get(&id).and_then(|window| self.objects.name(*window)) else {
            return Ok(());
        };
        let dialogs = roles.windows.values().filter_map(|window| {
            let request = self.objects.alive(*window)?.past.last("parent")?;
            (request.args.first() == Some(&WireArg::Object(parent))).then_some(request)
        });
        let mut dialogs: Vec<Request> = dialogs.filter_map(|request| self.addressed(request)).collect();
        dialogs.sort_unstable_by_key(|request| request.object);
        if !dialogs.is_empty() {
            self.flush_tree(id)?;
        }
        dialogs.into_iter().for_each(|request| self.send(&ToDisplay::Request(request)));
        Ok(())
    }

    /// Whether the program acknowledges a configure that was not acknowledged here for it.
    pub(super) fn acknowledge(&self, surface: u32, args: &[Arg]) -> bool {
        let done = self.surfaces.get(&surface).and_then(|surface| surface.standing.acknowledged());
        match (done, args) {
            (Some(done), [Arg::Uint(serial)]) => super::serial::before(done, *serial),
            _ => true,
        }
    }
}
