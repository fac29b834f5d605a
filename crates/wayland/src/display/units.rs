//! Commit units: checked on arrival, held until their pixels are here, then committed in one go.
//!
//! Invariant: when a surface is committed, everything that its unit names has been sent before in the same turn, and
//! the attached buffer holds exactly the content of the unit's update.

use wayferry_pixels::Region;
use wayferry_proto::{Time, UpdateSeq};

use crate::action::End;
use crate::message::{Request, ToApp, Unit, UnitContent, WireId};
use crate::policy::Handler;
use crate::trace::Stage;
use crate::wire::Arg;

use super::connection::{Connection, no_memory, wrong};
use super::hold::{Claim, Key, Need};
use super::meaning::Place;
use super::objects::Own;
use super::ops::{self, ints, known};
use super::updates::Applied;
use super::waiting::Waiting;

impl Connection {
    /// Takes in one unit: checks it with its children, then applies or holds it.
    pub(super) fn accept_unit(&mut self, now: Time, mut unit: Unit) -> Result<(), End> {
        if self.was_told(&unit) {
            return Ok(());
        }
        self.check_unit(&unit)?;
        self.know_answers(&mut unit);
        let mut claim = self.claim_unit(&unit);
        if !self.holds.must_wait(&claim) {
            let Some(need) = self.lacks(&unit)? else { return self.apply_whole(now, &unit) };
            claim.needs.push(need);
        }
        self.hold(claim, Waiting::Unit(unit));
        Ok(())
    }

    /// Whether an update has told of a unit before the message that says the same.
    fn was_told(&self, unit: &Unit) -> bool {
        let surface = self.surfaces.get(&unit.surface);
        let bare = unit.state.is_empty() && unit.children.is_empty() && unit.offset == (0, 0);
        bare && surface.is_some_and(|surface| unit.number <= surface.last_told)
    }

    /// Shows what updates have told of units, as far as nothing has to come before that. What has may end with a
    /// message that says the same.
    fn show_told(&mut self, now: Time) {
        for unit in self.updates.told(self.intake.messages()) {
            let (surface, number) = (unit.surface, unit.number);
            if self.surfaces.get(&surface).is_some_and(|surface| number <= surface.last_unit) {
                self.updates.forget_told(surface, number);
            } else if self.end.is_none() && !self.holds.must_wait(&self.claim_unit(&unit)) {
                self.updates.forget_told(surface, number);
                // No message brought it.
                self.intake.take_cost();
                let outcome = self.accept_unit(now, unit);
                self.settle(outcome);
                if let Some(surface) = self.surfaces.get_mut(&surface) {
                    surface.last_told = number;
                }
            }
        }
    }

    /// Sends what need not be held any longer, until the compositor is to read: [`Self::work`] goes on then.
    pub(super) fn pump(&mut self, now: Time) {
        while self.may_send() {
            let Some(held) = self.holds.next() else { break };
            let outcome = match &held.item {
                Waiting::Request(request) if self.lacks_turn(request) => {
                    self.holds.hold_again(held, Need::Turn);
                    continue;
                }
                Waiting::Request(request) => self.perform(request),
                Waiting::Folded(unit) => self.fold(unit),
                Waiting::Unit(unit) => match self.lacks(unit) {
                    Ok(None) => self.apply_whole(now, unit),
                    Ok(Some(need)) => {
                        self.holds.hold_again(held, need);
                        continue;
                    }
                    Err(end) => Err(end),
                },
            };
            self.settle(outcome);
        }
        self.show_told(now);
        while let Some(key) = self.late_key() {
            let outcome = self.predict_late(now, key);
            self.settle(outcome);
        }
        self.acknowledge();
    }

    /// Lets units know of the updates of a surface that are complete, or need not be.
    pub(super) fn meet_updates(&mut self, surface: WireId) {
        let updates = &self.updates;
        self.holds.meet_updates(surface, |seq| updates.is_complete(surface, seq));
    }

    /// As [`Self::meet_updates`], of every surface.
    pub(super) fn meet_all_updates(&mut self) {
        let surfaces: Vec<WireId> = self.holds.surfaces_of_updates().collect();
        surfaces.into_iter().for_each(|surface| self.meet_updates(surface));
    }

    /// Holds what the message at hand said.
    pub(super) fn hold(&mut self, claim: Claim, waiting: Waiting) {
        self.holds.push(claim, waiting, self.intake.take_cost());
    }

    /// Drops the held commits of a surface that is being destroyed.
    pub(super) fn cancel_units(&mut self, surface: WireId) {
        let mut dropped = Vec::new();
        self.holds.rewrite(&Key::Order(surface), |claim, waiting| match waiting {
            Waiting::Unit(unit) | Waiting::Folded(unit) if unit.surface == surface => {
                dropped.extend(unit.feedback.then_some(unit.number));
                None
            }
            waiting => Some((claim, waiting)),
        });
        for unit in dropped {
            self.tell(&ToApp::Discarded { surface, unit });
        }
    }

    /// Whether something that a held commit of the surface applies may be seen without it: what its children committed.
    pub(super) fn applies_children(&self, surface: WireId) -> bool {
        self.holds.keeping(Key::Order(surface)).any(
            |held| matches!(held, Waiting::Unit(unit) if unit.surface == surface && !unit.children.is_empty()),
        )
    }

    /// Updates of a surface, from one on, were replaced by a later one: the units that name them wait for that one, and
    /// are not committed by themselves, for the content that they were made for is never shown.
    pub(super) fn on_superseded(&mut self, surface: WireId, update: u64, by: u64) -> Result<(), End> {
        self.updates.supersede(surface, update, by)?;
        for seq in self.holds.updates_between(surface, update, by) {
            let replaced = Need::Update { surface, seq };
            self.holds.rewrite_needing(replaced, |mut claim: Claim, waiting| {
                let waiting = match waiting {
                    Waiting::Unit(unit) if names(&unit, surface, seq) => Waiting::Folded(unit),
                    waiting => waiting,
                };
                for need in &mut claim.needs {
                    if *need == replaced {
                        *need = Need::Update { surface, seq: by };
                    }
                }
                (claim, waiting)
            });
        }
        self.meet_updates(surface);
        Ok(())
    }

    /// Brings the state of a superseded unit to the compositor, where it waits for the next commit.
    fn fold(&mut self, unit: &Unit) -> Result<(), End> {
        for request in &unit.state {
            self.perform(request)?;
        }
        if unit.feedback {
            self.tell(&ToApp::Discarded { surface: unit.surface, unit: unit.number });
        }
        Ok(())
    }

    fn check_unit(&mut self, unit: &Unit) -> Result<(), End> {
        for child in &unit.children {
            self.check_unit(child)?;
        }
        let is_surface =
            |id| self.objects.usable(id).is_some_and(|object| object.handler == Handler::Surface);
        if !is_surface(unit.surface) {
            return Err(wrong(format!("a unit of object {}, which is no wl_surface", unit.surface.0)));
        }
        for request in &unit.state {
            self.check_request(request, Place::Unit)?;
        }
        if let Some(surface) = self.surfaces.get_mut(&unit.surface) {
            if unit.number <= surface.last_unit {
                let (got, last) = (unit.number, surface.last_unit);
                return Err(wrong(format!("unit {got} of surface {} comes after {last}", unit.surface.0)));
            }
            surface.last_unit = unit.number;
            match unit.content {
                UnitContent::Keep => {}
                UnitContent::None => surface.will_have_content = false,
                UnitContent::Update(_) => surface.will_have_content = true,
            }
        }
        Ok(())
    }

    /// How a unit relates to what is held.
    fn claim_unit(&self, unit: &Unit) -> Claim {
        let mut claim = claim_shape(unit);
        // What ends a surface above, or its role, takes this one out of the window too.
        claim.waits.extend(self.tree.above(unit.surface).map(Key::End));
        // It is for the next commit above: one before that must not apply it, and that one not pass it.
        if self.tree.is_synchronised(unit.surface) {
            let above = || self.tree.above(unit.surface).map(Key::Order);
            claim.waits.extend(above());
            claim.keeps.extend(above());
        }
        // An initial commit, perhaps, which the compositor answers by a configure.
        let has_content = self.surfaces.get(&unit.surface).is_some_and(|surface| surface.will_have_content);
        if unit.content == UnitContent::Keep && !has_content {
            claim.keeps.push(Key::Reply);
        }
        claim.needs.retain(|need| match need {
            Need::Update { surface, seq } => !self.updates.is_complete(*surface, *seq),
            _ => true,
        });
        claim
    }

    /// What a unit has to wait for whose content is here: a buffer, or its turn if it takes long to paint.
    fn lacks(&mut self, unit: &Unit) -> Result<Option<Need>, End> {
        if let Some(surface) = self.lacks_buffer(unit) {
            return Ok(Some(Need::Buffer(surface)));
        }
        let is_long = !self.is_clogged() && self.may_lend(unit) && self.work_of(unit) > LARGE;
        let cost = self.cost(unit);
        if is_long {
            if self.painting.is_none() && self.turn.room.lend > 0 {
                self.lend_contents(unit, cost)?;
                return Ok(Some(Need::Painted(unit.surface)));
            }
            self.turn.is_over = true;
            return Ok(Some(Need::Turn));
        }
        if self.is_clogged() || (cost > LARGE && self.turn.room.paint == 0) {
            self.turn.is_over = true;
            return Ok(Some(Need::Turn));
        }
        self.turn.room.paint = self.turn.room.paint.saturating_sub(cost);
        Ok(None)
    }

    /// A surface of the unit of which the compositor holds every buffer that there may be now.
    fn lacks_buffer(&self, unit: &Unit) -> Option<WireId> {
        if let Some(lacking) = unit.children.iter().find_map(|child| self.lacks_buffer(child)) {
            return Some(lacking);
        }
        let surface = self.surfaces.get(&unit.surface)?;
        let attaches = match unit.content {
            UnitContent::Update(_) => true,
            UnitContent::Keep => moves_by_attach(unit, surface.version) && surface.content.is_some(),
            UnitContent::None => false,
        };
        let ready = surface.pool.is_ready() && (surface.pool.has_free() || self.shm.has_room());
        (attaches && !ready).then_some(unit.surface)
    }

    /// The requests of a unit that place children, and the others: programs say where a child is before they commit it,
    /// and some compositors need that order.
    fn split_state<'a>(&self, unit: &'a Unit) -> (Vec<&'a Request>, Vec<&'a Request>) {
        unit.state.iter().partition(|request| {
            self.objects.of(request.object).is_some_and(|object| object.handler == Handler::Subsurface)
        })
    }

    /// Applies a unit with what was put off until then, or puts it off as a whole.
    fn apply_whole(&mut self, now: Time, unit: &Unit) -> Result<(), End> {
        let merged;
        let unit = if self.put_off.is_empty() {
            unit
        } else {
            merged = self.put_off.bring(unit.clone());
            &merged
        };
        if self.misses(unit) {
            return self.put_unit_off(unit.surface, unit);
        }
        self.touch(unit);
        self.apply(now, unit)
    }

    /// Whether a content is not here that the unit builds on.
    fn misses(&self, unit: &Unit) -> bool {
        let own = match (unit.content, self.surfaces.get(&unit.surface)) {
            (UnitContent::Update(seq), Some(surface)) => self.updates.misses(unit.surface, surface, seq.0),
            _ => false,
        };
        own || unit.children.iter().any(|child| self.misses(child))
    }

    /// Its contents are dropped last when room is made for one of them.
    fn touch(&mut self, unit: &Unit) {
        unit.children.iter().for_each(|child| self.touch(child));
        if let Some(surface) = self.surfaces.get_mut(&unit.surface) {
            self.memory.touch(surface);
        }
    }

    fn put_unit_off(&mut self, top: WireId, unit: &Unit) -> Result<(), End> {
        let (places, state) = self.split_state(unit);
        places.into_iter().try_for_each(|request| self.perform(request))?;
        unit.children.iter().try_for_each(|child| self.put_unit_off(top, child))?;
        state.into_iter().try_for_each(|request| self.perform(request))?;
        if let UnitContent::Update(seq) = unit.content
            && self.misses(&Unit { children: Vec::new(), ..unit.clone() })
            && let Some(surface) = self.surfaces.get_mut(&unit.surface)
        {
            let wanted = self.updates.apply(unit.surface, surface, seq.0)?.wanted;
            if surface.ask_again() || wanted {
                self.tell(&ToApp::Refresh { surface: unit.surface });
            }
        }
        self.put_off.add(top, unit);
        self.skip(unit)
    }

    fn apply(&mut self, now: Time, unit: &Unit) -> Result<(), End> {
        let (places, state) = self.split_state(unit);
        places.into_iter().try_for_each(|request| self.perform(request))?;
        for child in &unit.children {
            self.apply(now, child)?;
        }
        state.into_iter().try_for_each(|request| self.perform(request))?;
        let Some(id) = self.objects.live(unit.surface) else { return Ok(()) };
        let Some(changed) = self.attach(id, unit)? else {
            // What was said waits for the commit that brings the whole content again.
            return self.skip(unit);
        };
        let Some(surface) = self.surfaces.get_mut(&unit.surface) else { return Ok(()) };
        if std::mem::take(&mut surface.uncovered) {
            self.send(id, ops::SURFACE_DAMAGE, ints(&[0, 0, i32::MAX, i32::MAX]))?;
        }
        let Some(surface) = self.surfaces.get_mut(&unit.surface) else { return Ok(()) };
        if surface.ask_frame(now) {
            let callback = self.objects.own(known("wl_callback"), 1, Own::Frame(unit.surface))?;
            self.send(id, ops::SURFACE_FRAME, vec![Arg::NewId(callback)])?;
        }
        if unit.feedback {
            self.ask_feedback(id, unit)?;
        }
        match unit.content {
            UnitContent::Keep => {}
            UnitContent::None => self.predict_nothing(now, unit.surface)?,
            UnitContent::Update(_) => self.predict_content(now, unit.surface, &changed, unit.answered)?,
        }
        self.send(id, ops::SURFACE_COMMIT, vec![])?;
        self.lay_apart(unit.surface)?;
        if let Some(beat) = self.peer.beat.take() {
            self.tell(&ToApp::Beat { time_ns: self.clock_ns(beat) });
        }
        self.tell(&ToApp::Applied { surface: unit.surface, unit: unit.number });
        Ok(())
    }

    /// The unit is not committed, but the app side goes on.
    fn skip(&mut self, unit: &Unit) -> Result<(), End> {
        if unit.feedback {
            self.tell(&ToApp::Discarded { surface: unit.surface, unit: unit.number });
        }
        self.tell(&ToApp::Applied { surface: unit.surface, unit: unit.number });
        Ok(())
    }

    /// Brings the content of the unit to the compositor. Returns where it is different, if it is to be committed: what
    /// it builds on may have been dropped.
    fn attach(&mut self, id: u32, unit: &Unit) -> Result<Option<Region>, End> {
        let Some(mut surface) = self.surfaces.remove(&unit.surface) else { return Ok(Some(Region::new())) };
        let outcome = self.attach_to(id, unit, &mut surface);
        self.surfaces.insert(unit.surface, surface);
        outcome
    }

    fn attach_to(
        &mut self,
        id: u32,
        unit: &Unit,
        surface: &mut super::surface::Surface,
    ) -> Result<Option<Region>, End> {
        let ((x, y), wire) = (unit.offset, unit.surface);
        // wl_surface, version 5: the offset has a request of its own, and attach must not carry it.
        let attach_offset = if surface.version >= 5 { (0, 0) } else { (x, y) };
        if surface.version >= 5 && (x, y) != (0, 0) {
            self.send(id, ops::SURFACE_OFFSET, ints(&[x, y]))?;
        }
        let place = |buffer| vec![Arg::Object(buffer), Arg::Int(attach_offset.0), Arg::Int(attach_offset.1)];
        let changed = match unit.content {
            UnitContent::None => {
                self.uncover(surface);
                self.discard(surface.unmap());
                for unit in std::mem::take(&mut surface.awaiting) {
                    self.tell(&ToApp::Discarded { surface: wire, unit });
                }
                return self.send(id, ops::SURFACE_ATTACH, place(0)).map(|()| Some(Region::new()));
            }
            UnitContent::Keep if !moves_by_attach(unit, surface.version) => return Ok(Some(Region::new())),
            UnitContent::Keep => Default::default(),
            UnitContent::Update(seq) => {
                let begun = self.config.probe.begin();
                let Applied { changed, wanted, missing } =
                    self.updates.apply(unit.surface, surface, seq.0)?;
                if wanted {
                    self.tell(&ToApp::Refresh { surface: wire });
                }
                self.config.probe.end(begun, Stage::Decode, (wire, seq.0), pixel_bytes(surface, &changed));
                if missing {
                    return Ok(None);
                }
                for buffer in self.memory.make_room(surface, &mut self.surfaces) {
                    self.destroy_buffer(buffer)?;
                }
                changed
            }
        };
        let begun = self.config.probe.begin();
        let Some(content) = &surface.content else { return Ok(Some(changed)) };
        let format = self.globals.shown(content.format());
        let (buffer, useless) = surface.pool.take(content, format, |spec| {
            self.make_buffer(Own::Buffer(unit.surface), &spec).map_err(Fault::End)
        })?;
        for buffer in useless {
            self.destroy_buffer(buffer)?;
        }
        self.send(id, ops::SURFACE_ATTACH, place(buffer))?;
        if surface.version < 4 && !changed.is_empty() {
            self.send(id, ops::SURFACE_DAMAGE, ints(&[0, 0, i32::MAX, i32::MAX]))?;
            return Ok(Some(changed));
        }
        for rect in changed.rects() {
            // Sides are at most 2¹⁴.
            let rect = [rect.x, rect.y, rect.width, rect.height].map(|value| value as i32);
            self.send(id, ops::SURFACE_DAMAGE_BUFFER, ints(&rect))?;
        }
        if let UnitContent::Update(seq) = unit.content {
            self.config.probe.end(begun, Stage::Commit, (wire, seq.0), pixel_bytes(surface, &changed));
        }
        Ok(Some(changed))
    }

    /// A surface goes, or goes elsewhere: its parent's next commit has what it covered drawn again. Compositors that do
    /// not do that by themselves rely on the damage of programs, of which only pixels that differ have come here.
    pub(super) fn uncover(&mut self, child: &super::surface::Surface) {
        let parent = child.parent.filter(|_| child.is_mapped());
        if let Some(parent) = parent.and_then(|parent| self.surfaces.get_mut(&parent)) {
            parent.uncovered = true;
        }
    }

    fn ask_feedback(&mut self, id: u32, unit: &Unit) -> Result<(), End> {
        let Some(presentation) = self.globals.helpers.presentation else {
            if let Some(surface) = self.surfaces.get_mut(&unit.surface) {
                surface.awaiting.push(unit.number);
            }
            return Ok(());
        };
        let own = Own::Feedback(unit.surface, unit.number);
        let feedback = self.objects.own(known("wp_presentation_feedback"), 1, own)?;
        self.send(presentation, ops::PRESENTATION_FEEDBACK, vec![Arg::Object(id), Arg::NewId(feedback)])
    }
}

/// Units that cost more than this wait for a turn with room for them: about a millisecond's work.
pub(super) const LARGE: usize = 512 << 10;

/// What can go wrong while a buffer is filled.
enum Fault {
    Io(std::io::Error),
    End(End),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Io(error) => no_memory(error),
            Fault::End(end) => end,
        }
    }
}

/// How many bytes of the surface's content a region has.
fn pixel_bytes(surface: &super::surface::Surface, region: &Region) -> u64 {
    let pixel = surface.content.as_ref().map_or(0, |content| content.format().bytes_per_pixel());
    region.area() * pixel as u64
}

/// Whether the unit moves its content by an attach of the same content.
fn moves_by_attach(unit: &Unit, version: u32) -> bool {
    unit.offset != (0, 0) && version < 5
}

/// The claim of a unit, with a need for every update, there or not.
fn claim_shape(unit: &Unit) -> Claim {
    let mut claim = Claim::default();
    add_claim(&mut claim, unit);
    claim
}

fn add_claim(claim: &mut Claim, unit: &Unit) {
    claim.waits.extend([Key::Order(unit.surface), Key::Make(unit.surface)]);
    claim.keeps.extend([Key::Order(unit.surface), Key::Use(unit.surface)]);
    for request in &unit.state {
        for id in std::iter::once(request.object).chain(request.objects()) {
            claim.waits.push(Key::Make(id));
            claim.keeps.push(Key::Use(id));
        }
    }
    match unit.content {
        UnitContent::Keep => {}
        UnitContent::None => claim.keeps.push(Key::Unmap(unit.surface)),
        UnitContent::Update(seq) => claim.needs.push(Need::Update { surface: unit.surface, seq: seq.0 }),
    }
    for child in &unit.children {
        add_claim(claim, child);
    }
}

/// Whether it is a unit of this surface alone that shows this update and does not move it.
fn names(unit: &Unit, surface: WireId, update: u64) -> bool {
    let alone = unit.children.is_empty() && unit.offset == (0, 0);
    alone && unit.surface == surface && unit.content == UnitContent::Update(UpdateSeq(update))
}
