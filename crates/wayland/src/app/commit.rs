//! `wl_surface.commit`: pixels are read, the buffer goes back, the commit joins what has not been sent yet.
//!
//! Does not send: see `flush`. Invariant: when a commit returns, the program may reuse its buffer, and the surface's
//! painter has exactly the commits so far.

use std::rc::Rc;

use wayferry_pixels::map::SurfaceRect;
use wayferry_pixels::{Rect, Region};

use crate::message::{MAX_UNIT_CHILDREN, MAX_UNIT_DEPTH, WireId};
use crate::policy::Handler;
use crate::trace::Stage as Work;
use crate::wire::Arg;

use super::buffer::Buffer;
use super::comparing::Compared;
use super::connection::Connection;
use super::fault::{Fault, error_code};
use super::frames::MAX_FRAMES;
use super::pending::{Attach, DamageRect, Fetched, Pending, Pixels};
use super::reading::GivenUp;
use super::shape::Shape;
use super::shm::{INVALID_FD, ReadError};
use super::standing::{Role, Stage};
use super::surface::Surface;
use super::unsent::{Ahead, Change, Unsent};

impl Connection {
    /// Handles a commit of surface `id`.
    pub(super) fn commit(&mut self, id: u32) -> Result<(), Fault> {
        let synchronised = self.surfaces.is_synchronised(id);
        self.flush_older(id)?;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let was_mapped = surface.mapped();
        let pending = std::mem::take(&mut surface.pending);
        let mut unsent = self.absorb_pending(id, pending)?;
        if self.surfaces.is_below_waiting(id) {
            // Its parent's commits cannot leave, so it waits as if it were synchronised; but for its frames.
            if let Some(surface) = self.surfaces.get_mut(&id).filter(|_| !synchronised) {
                surface.frames.put_behind(&mut unsent.frames);
            }
            return self.cache(id, unsent);
        }
        if synchronised {
            return self.cache(id, unsent);
        }
        let unsent = self.surfaces.with_children(id, unsent);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        // Never coalesced across: map, unmap, and commits before there is content.
        let barrier = !was_mapped || !surface.mapped();
        let is_mapped = surface.mapped();
        let initial = surface.standing.on_commit(was_mapped, is_mapped);
        match surface.standing.stage() {
            // The program has seen what this display wants.
            Stage::Decided if unsent.state.acknowledges() => self.show_window(id, None)?,
            Stage::Awaited | Stage::Decided => return self.join(id, unsent),
            Stage::Idle => surface.standing.set_stage(Stage::Shown),
            Stage::Shown | Stage::Over => {}
        }
        if self.is_away(id) {
            return self.join(id, unsent);
        }
        if initial {
            self.line.sync().owe();
        }
        // The pixels of a commit that waits are gone when its surface is unmapped: it must not leave without them.
        if barrier && unsent.change != Change::Unmap {
            self.flush_surface(id)?;
        }
        self.join(id, unsent)?;
        if barrier { self.leave(id) } else { Ok(()) }
    }

    /// Whether commits of a surface go nowhere: what they bring is kept for another display.
    pub(super) fn is_away(&self, id: u32) -> bool {
        !self.line.is_attached()
            || self.surfaces.get(&id).is_some_and(|surface| surface.standing.stage() == Stage::Over)
    }

    /// Takes over the pending state: geometry, pixels, buffers.
    fn absorb_pending(&mut self, id: u32, mut pending: Pending) -> Result<Unsent, Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(Unsent::default()) };
        let mut own = std::mem::take(&mut pending.state);
        let fades = self.offering.fades()
            && surface.fade.commit(surface.wire, pending.factor, &mut own).map_err(Fault::TooMuch)?;
        let mut state = std::mem::take(&mut surface.again);
        state.merge(own).map_err(Fault::TooMuch)?;
        let before = surface.shape;
        surface.shape = before.after(&pending);
        let reshaped = fades || before != surface.shape;
        let damage = Damage { surface: &pending.surface_damage, buffer: &pending.buffer_damage, reshaped };
        let stack = pending.stack;
        let change = match pending.attach {
            Attach::Keep if fades => self.fade_again(id)?,
            attach => self.take_content(id, attach, &damage)?,
        };
        Ok(Unsent {
            state,
            stack,
            change,
            offset: pending.offset,
            frames: pending.frames,
            feedback: pending.feedback,
            // It may have waited since another display was here.
            answered: pending.answered.filter(|key| *key <= self.answers.pressed()),
            ..Unsent::default()
        })
    }

    fn take_content(&mut self, id: u32, attach: Attach, damage: &Damage<'_>) -> Result<Change, Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(Change::Keep) };
        match attach {
            Attach::Keep => Ok(Change::Keep),
            Attach::None => {
                self.room.change(surface.content_bytes(), 0)?;
                surface.painter.unmap(&self.config.workers);
                surface.stale = false;
                surface.fade.forget_plain();
                surface.news.note_all();
                Ok(Change::Unmap)
            }
            // The reader could not read it, or order demands not to wait for it: what was there stays.
            Attach::Buffer { id, pixels: Pixels::Asked(job, _), sync, .. } => {
                surface.stale = true;
                self.reading.give_up(job, GivenUp { id, sync });
                Ok(Change::Keep)
            }
            Attach::Buffer { id, buffer, pixels: Pixels::There | Pixels::Read(None), .. }
                if buffer.imported().is_some() =>
            {
                surface.stale = true;
                self.release_buffer(id).map(|()| Change::Keep)
            }
            Attach::Buffer { id: buffer_id, buffer, pixels, sync: _sync } => {
                let needs = surface.fade.needs(buffer.content_bytes(), buffer.size.rect().area());
                self.room.change(surface.content_bytes(), needs)?;
                // All of it is multiplied, however little the program drew.
                self.pacing.owe(if surface.fade.is_on() { needs } else { 0 });
                let taken = match pixels {
                    Pixels::Compared(compared) => take_in(surface, id, &buffer, compared),
                    pixels => {
                        let begun = self.config.probe.begin();
                        let work = (surface.wire, surface.painter.next_update().0);
                        let bytes = absorb(surface, id, &buffer, &pixels, damage, self.config.threads);
                        bytes.map(|bytes| self.config.probe.end(begun, Work::Capture, work, bytes))
                    }
                };
                taken.map_err(|error| unreadable(buffer_id, error))?;
                self.release_buffer(buffer_id).map(|()| Change::New)
            }
        }
    }

    /// The factor of a surface's pixels is another one.
    fn fade_again(&mut self, id: u32) -> Result<Change, Fault> {
        let Some(surface) = self.surfaces.get_mut(&id).filter(|surface| surface.mapped()) else {
            return Ok(Change::Keep);
        };
        let before = surface.content_bytes();
        surface.fade_content(None);
        let after = surface.content_bytes();
        // It takes about as long as content of that size.
        self.pacing.owe(after);
        self.room.change(before, after)?;
        Ok(Change::New)
    }

    pub(super) fn release_buffer(&mut self, buffer: u32) -> Result<(), Fault> {
        if self.objects.alive(buffer).is_some_and(|object| object.handler == Handler::Buffer) {
            self.emit(buffer, "release", Vec::new())?;
        }
        Ok(())
    }

    /// Keeps a synchronised child's commit until its parent commits.
    fn cache(&mut self, id: u32, unsent: Unsent) -> Result<(), Fault> {
        let unsent = self.surfaces.with_children(id, unsent);
        let is_cached = self.surfaces.get(&id).is_some_and(|surface| surface.waiting.cached().is_some());
        // Where an earlier one could not leave, this is part of it: its state must not be shown with these pixels
        // alone.
        let above = if is_cached {
            None
        } else {
            self.surfaces.ancestors(id).find(|above| self.surfaces.caches(*above, id))
        };
        let Some(surface) = self.surfaces.get_mut(&above.unwrap_or(id)) else { return Ok(()) };
        let older = match above {
            Some(_) => surface.waiting.cached_mut().and_then(|cached| cached.find(id)),
            None => surface.waiting.cached_mut(),
        };
        let discarded = match older {
            Some(older) => older.merge(unsent).map_err(Fault::TooMuch)?,
            None => {
                surface.waiting.cache(unsent);
                Vec::new()
            }
        };
        self.discard_feedback(discarded)
    }

    /// Sends what is cached of a synchronised surface, and of those above it first, because order demands it. The
    /// compositor caches it as it would have from the program, and applies it with the commit that it is for.
    pub(super) fn send_ahead(&mut self, id: u32) -> Result<(), Fault> {
        if !self.surfaces.is_cached(id) {
            return Ok(());
        }
        let chain: Vec<u32> = self.surfaces.ancestors(id).collect();
        for id in chain.into_iter().rev() {
            self.flush_surface(id)?;
            let cached = self.surfaces.get(&id).and_then(|surface| surface.waiting.cached());
            let Some(cached) = cached.filter(|cached| cached.ahead != Ahead::All) else { continue };
            let waits =
                !self.surfaces.is_synchronised(id) || self.surfaces.is_below_waiting(id) || self.is_away(id);
            if waits || !self.surfaces.may_leave_ahead(id, cached) {
                return Ok(());
            }
            let ahead = self.surfaces.get_mut(&id).and_then(|surface| surface.waiting.cached_mut());
            if let Some(ahead) = ahead.map(Unsent::take_ahead) {
                self.join(id, ahead)?;
                self.flush_surface(id)?;
            }
        }
        Ok(())
    }

    /// Sends what is cached of a surface and of those below it that wait for nothing else.
    pub(super) fn send_ahead_below(&mut self, id: u32) -> Result<(), Fault> {
        self.send_ahead(id)?;
        let children = self.surfaces.children_of(id);
        let is_free = |child: &u32| self.surfaces.get(child).is_some_and(|surface| !surface.family.is_sync());
        let free: Vec<u32> = children.into_iter().filter(is_free).collect();
        free.into_iter().try_for_each(|child| self.send_ahead_below(child))
    }

    /// A commit of the program is applied: it is kept, and leaves.
    pub(super) fn join(&mut self, id: u32, unsent: Unsent) -> Result<(), Fault> {
        self.remember(id, &unsent)?;
        self.line_up(id, unsent)
    }

    /// A commit that is kept already leaves: stacking adds up, so it must not be kept twice.
    pub(super) fn line_up(&mut self, id: u32, unsent: Unsent) -> Result<(), Fault> {
        if self.is_away(id) {
            return self.settle_unsent(id, unsent);
        }
        let now = self.now;
        let waits = self.surfaces.get(&id).and_then(|surface| surface.waiting.unsent());
        if waits.is_some_and(|old| old.state.overflows_with(&unsent.state)) {
            self.flush_surface(id)?;
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        surface.sent.note_drawn(now);
        let discarded = match surface.waiting.unsent_mut() {
            Some(old) => old.merge(unsent).map_err(Fault::TooMuch)?,
            None => {
                surface.waiting.line_up(unsent, now);
                Vec::new()
            }
        };
        self.discard_feedback(discarded)
    }

    /// The display side could not paint an update: the whole content leaves again when it is due.
    pub(super) fn refresh(&mut self, surface: WireId) -> Result<(), Fault> {
        let Some(id) = self.objects.by_wire(surface) else { return Ok(()) };
        self.finish_comparing()?;
        self.finish_making()?;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        if !surface.painter.renew() {
            return Ok(());
        }
        surface.forget_last();
        self.bring_again(id)
    }

    /// Has the content of a surface's newest commit leave, with that commit if it waits.
    fn bring_again(&mut self, id: u32) -> Result<(), Fault> {
        let mut unsent = Unsent { change: Change::New, ..Unsent::default() };
        if !self.surfaces.is_synchronised(id) {
            return self.join(id, unsent);
        }
        if let Some(newest) = self.surfaces.newest_waiting(id) {
            newest.change = Change::New;
            return Ok(());
        }
        // It is shown by commits of those above it, where these do nothing else.
        let shown_with: Vec<u32> = self.surfaces.shown_with(id).collect();
        let Some((top, between)) = shown_with.split_last().filter(|_| self.surfaces.can_show(id)) else {
            return self.join(id, unsent);
        };
        for below in between {
            unsent = Unsent { children: vec![(*below, unsent)], ..Unsent::default() };
        }
        self.join(*top, unsent)
    }

    pub(super) fn discard_feedback(&mut self, feedback: Vec<u32>) -> Result<(), Fault> {
        for id in feedback {
            self.emit(id, "discarded", Vec::new())?;
            self.forget(id)?;
        }
        Ok(())
    }

    /// `wl_subcompositor.get_subsurface`.
    pub(super) fn adopt(&mut self, factory: u32, id: u32, child: u32, parent: u32) -> Result<(), Fault> {
        let bad = |what: &str| Fault::app(factory, 0, what.to_owned());
        let depth = self.surfaces.ancestors(parent).count();
        if child == parent || self.surfaces.ancestors(parent).any(|above| above == child) {
            return Err(bad("a surface cannot be its own ancestor"));
        }
        if depth + 1 + self.surfaces.height(child, MAX_UNIT_DEPTH) >= MAX_UNIT_DEPTH {
            return Err(Fault::TooMuch("subsurfaces nested"));
        }
        let Some(surface) = self.surfaces.get_mut(&child) else { return Ok(()) };
        if surface.family.parent().is_some() || surface.standing.role() == Role::Configured {
            return Err(bad("the surface has another role"));
        }
        surface.standing.set_role(Role::Subsurface);
        surface.family.enter(parent, id);
        if let Some(object) = self.objects.of_mut(id) {
            object.surface = Some(child);
        }
        let Some(above) = self.surfaces.get_mut(&parent) else { return Ok(()) };
        if above.family.children().len() >= MAX_UNIT_CHILDREN {
            return Err(Fault::TooMuch("subsurfaces of one surface"));
        }
        above.family.adopt(parent, child);
        above.committed.stack.adopt(parent, child);
        Ok(())
    }

    /// The surface that a `wl_subsurface` is about, as long as it lives: its id may be another's after that.
    pub(super) fn child_of(&self, subsurface: u32) -> Option<u32> {
        let child = self.association(subsurface)?;
        self.surfaces.get(&child).filter(|surface| surface.family.subsurface() == subsurface).map(|_| child)
    }

    pub(super) fn set_sync(&mut self, subsurface: u32, sync: bool) -> Result<(), Fault> {
        let Some(id) = self.child_of(subsurface) else { return Ok(()) };
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.family.set_sync(sync);
        }
        self.release_cached(id)
    }

    /// Sends what was cached at a surface and at those below it, as far as they are not synchronised any more: their
    /// next commits will not wait for a parent, and must not overtake what did.
    pub(super) fn release_cached(&mut self, id: u32) -> Result<(), Fault> {
        if self.surfaces.is_synchronised(id) || self.surfaces.is_below_waiting(id) {
            return Ok(());
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let (cached, children) = (surface.waiting.take_cached(), surface.family.children().to_vec());
        if let Some(cached) = cached {
            self.flush_older(id)?;
            self.join(id, cached)?;
            self.flush_surface(id)?;
        }
        children.into_iter().try_for_each(|child| self.release_cached(child))
    }

    /// `wl_subsurface.destroy`: the surface loses its parent.
    pub(super) fn orphan(&mut self, subsurface: u32) -> Result<(), Fault> {
        let Some(child) = self.child_of(subsurface) else { return Ok(()) };
        let Some(surface) = self.surfaces.get_mut(&child) else { return Ok(()) };
        let (cached, parent) = (surface.waiting.take_cached(), surface.family.leave());
        self.surfaces.unstack(parent, child);
        cached.map_or(Ok(()), |cached| self.give_up(cached))?;
        self.release_cached(child)
    }

    /// Frees the callbacks of a commit that will never be sent.
    pub(super) fn give_up(&mut self, unsent: Unsent) -> Result<(), Fault> {
        let (mut frames, mut feedback) = (Vec::new(), Vec::new());
        unsent.into_callbacks(&mut frames, &mut feedback);
        frames.into_iter().try_for_each(|id| self.forget(id))?;
        self.discard_feedback(feedback)
    }

    /// `wl_surface.destroy`: what has not been sent never will be.
    pub(super) fn drop_surface(&mut self, id: u32) -> Result<(), Fault> {
        self.drop_held(id)?;
        let Some(mut surface) = self.surfaces.remove(&id) else { return Ok(()) };
        let bytes = surface.content_bytes();
        surface.painter.unmap(&self.config.workers);
        self.pacing.forget(surface.wire);
        self.reading.reads.forget(surface.wire);
        self.room.change(bytes, 0)?;
        for child in surface.family.children() {
            if let Some(child) = self.surfaces.get_mut(child) {
                child.family.lose_parent();
            }
        }
        self.surfaces.unstack(surface.family.parent(), id);
        let (mut frames, mut feedback) = (surface.frames.take(), surface.sent.part());
        frames.extend(surface.pending.frames);
        feedback.extend(surface.pending.feedback);
        let mut pruned: Vec<Unsent> = surface.waiting.into_oldest_first().collect();
        for other in self.surfaces.values_mut() {
            other.waiting.iter_mut().rev().for_each(|unsent| unsent.prune(id, &mut pruned));
        }
        for unsent in pruned {
            unsent.into_callbacks(&mut frames, &mut feedback);
        }
        // Their ids must become free; the program knows that the surface is gone.
        frames.into_iter().try_for_each(|id| self.forget(id))?;
        self.discard_feedback(feedback)?;
        surface.family.children().iter().try_for_each(|child| self.release_cached(*child))
    }

    /// `wl_surface.frame`.
    pub(super) fn add_frame(&mut self, id: u32, callback: u32) -> Result<(), Fault> {
        let time = self.clock_ms();
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        surface.pending.frames.push(callback);
        if surface.pending.frames.len() > MAX_FRAMES {
            let oldest = surface.pending.frames.remove(0);
            self.emit(oldest, "done", vec![Arg::Uint(time)])?;
            self.forget(oldest)?;
        }
        Ok(())
    }

    /// `wp_presentation.feedback`.
    pub(super) fn add_feedback(&mut self, id: u32, feedback: u32) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        surface.pending.feedback.push(feedback);
        let mut oldest = Vec::new();
        if surface.pending.feedback.len() > MAX_FRAMES {
            oldest.push(surface.pending.feedback.remove(0));
        }
        oldest.extend(surface.sent.excess_feedback());
        self.discard_feedback(oldest)
    }
}

/// The memory of a buffer is not what the program said; its id is 0 if it is destroyed.
fn unreadable(buffer: u32, error: ReadError) -> Fault {
    match buffer {
        0 => Fault::display(error_code::IMPLEMENTATION, error.to_string()),
        id => Fault::app(id, INVALID_FD, error.to_string()),
    }
}

/// Where a program says that it painted.
pub(super) struct Damage<'a> {
    pub(super) surface: &'a [DamageRect],
    pub(super) buffer: &'a [DamageRect],
    /// Size, transform or viewport are new: the rectangles say nothing.
    pub(super) reshaped: bool,
}

impl Damage<'_> {
    /// What of a buffer is to be read that is committed to surface `id`, which is shown in that shape with it.
    pub(super) fn region(&self, surface: &Surface, shape: Shape, id: u32, buffer: &Buffer) -> Region {
        let changes_hands = buffer.last_surface.get().is_some_and(|previous| previous != id);
        if self.reshaped
            || surface.stale
            || changes_hands
            || !surface.painter.fits(buffer.size, buffer.format)
        {
            return Region::full(buffer.size);
        }
        let rects = self.surface.iter();
        let rects = rects.map(|&[x, y, width, height]| SurfaceRect { x, y, width, height });
        let mut region = shape.mapping(buffer.size).region(rects);
        for &[x, y, width, height] in self.buffer {
            Rect::clipped(x, y, width, height, buffer.size).into_iter().for_each(|rect| region.add(rect));
        }
        region
    }
}

/// The surface's content is what a worker has made of a buffer.
fn take_in(surface: &mut Surface, id: u32, buffer: &Buffer, compared: Compared) -> Result<(), ReadError> {
    let Compared { draft, changed } = compared;
    surface.fade.forget_plain();
    if !surface.painter.fits(buffer.size, buffer.format) {
        surface.news.note_all();
    }
    surface.painter.put_back(draft);
    buffer.last_surface.set(Some(id));
    surface.stale = false;
    surface.news.note(changed?);
    Ok(())
}

/// Brings the surface's content up to a buffer, with so many threads at most; gives the bytes of pixels that differ.
fn absorb(
    surface: &mut Surface,
    id: u32,
    buffer: &Rc<Buffer>,
    pixels: &Pixels,
    damage: &Damage<'_>,
    threads: usize,
) -> Result<u64, ReadError> {
    let fetched = match pixels {
        Pixels::Read(fetched) => fetched.as_ref(),
        Pixels::There | Pixels::Asked(..) | Pixels::Compared(_) => None,
    };
    let read = |offset, into: &mut [u8]| match fetched {
        Some(Fetched { frame, .. }) => frame.read(offset, into).map_err(ReadError::Io),
        None => buffer.read(offset, into),
    };
    if surface.fade.is_on() {
        let content = buffer.content_by(read)?;
        buffer.last_surface.set(Some(id));
        surface.stale = false;
        surface.fade_content(Some(content));
        return Ok(surface.painter.changed_bytes());
    }
    surface.fade.forget_plain();
    let region = match fetched {
        Some(fetched) => fetched.region.clone(),
        None => damage.region(surface, surface.shape, id, buffer),
    };
    if surface.painter.fit(buffer.size, buffer.format) {
        surface.news.note_all();
    }
    buffer.last_surface.set(Some(id));
    let mapped = if fetched.is_none() { buffer.mapped(&region) } else { None };
    let changed = match mapped {
        Some(memory) => surface.painter.absorb_shared(&buffer.layout(), &region, memory.bytes(), threads),
        None => surface.painter.absorb(&buffer.layout(), &region, read)?,
    };
    surface.stale = false;
    let area = changed.area();
    surface.news.note(changed);
    Ok(area * buffer.format.bytes_per_pixel() as u64)
}
