//! A commit on its way out while its pixels are being encoded, a slice at a time.
//!
//! What a slice has made leaves at once, as an update of its own; the unit names the last of them, and leaves when all
//! are made. Until then the connection reads no further requests, so nothing changes under it; what cannot wait for
//! that has the rest made first. Who may begin is decided in `flush`. Invariants: a connection makes one unit at a
//! time; and when it has none under way, no draft has an update under way either.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::Watch;
use wayferry_proto::Time;

use crate::message::{ToDisplay, Unit, UnitContent};
use crate::workers::Pending;

use super::connection::Connection;
use super::errand::{Errand, Return};
use super::fault::Fault;
use super::making::{Made, Making, NOTHING};
use super::pacing::Payer;
use super::painter::Painted;
use super::unsent::{Ahead, Change, Unsent};

/// Videos of one program: each has a codec's memory, some megabytes.
const MAX_VIDEOS: usize = 16;

/// Pixels that are worth a worker: encoding fewer takes a third of a millisecond at most, some times what handing over
/// takes, and both ways of it.
const ERRAND_PIXELS: u64 = 16 << 10;

/// How often is looked whether a frame is made.
const FRAME_LOOK: Duration = Duration::from_millis(1);

impl Connection {
    /// Begins to send a commit: about `room` pixels are encoded now.
    pub(super) fn begin_unit(
        &mut self,
        id: u32,
        unsent: Unsent,
        payer: Payer,
        room: u64,
    ) -> Result<(), Fault> {
        let mut todo = VecDeque::new();
        self.list_contents(id, &unsent, &mut todo);
        debug_assert!(!self.comparing.is_on() && !self.improving.is_on(), "its content is not here");
        let (made, bytes) = (VecDeque::new(), 0);
        let began = self.comparing.read_at(id, self.now, self.offering.period());
        let (errand, told) = (None, None);
        self.making = Some(Making { id, unsent, began, payer, todo, made, bytes, errand, told });
        self.go_on(room)
    }

    /// Makes the rest of the unit that is under way, if there is one: what comes next must find it sent.
    pub(super) fn finish_making(&mut self) -> Result<(), Fault> {
        self.finish_improving();
        if self.making.is_some() {
            // Requests have waited for it.
            self.program.wake();
        }
        self.go_on(u64::MAX)
    }

    /// Encodes about `room` pixels more of the unit that is under way; sends it when all are.
    pub(super) fn go_on(&mut self, room: u64) -> Result<(), Fault> {
        let Some(mut making) = self.making.take() else { return Ok(()) };
        let until = self.pacing.credit().encoded.saturating_add(room);
        while let Some((id, change)) = making.todo.front().copied() {
            let whole = room == u64::MAX;
            if let Some(content) = self.make_content(&mut making, id, change, whole) {
                making.todo.pop_front();
                making.made.push_back(Made { content, bytes: making.bytes });
                continue;
            }
            let waits = making.errand.is_some() || self.awaits_frames(id);
            if !whole && (waits || self.pacing.credit().encoded >= until) {
                break;
            }
        }
        if !making.todo.is_empty() {
            self.making = Some(making);
            return Ok(());
        }
        let Making { id, unsent, began, mut made, bytes, told, .. } = making;
        if let Some(unit) = self.unit(id, unsent, began, &mut made)? {
            self.publish_unit(&unit);
            self.pacing.leave(unit.surface, unit.number, bytes);
            match told {
                Some(head) => self.told.add(Unit { feedback: head.feedback, ..unit }),
                None => self.send(&ToDisplay::Unit(unit)),
            }
        }
        Ok(())
    }

    /// The surfaces of a commit, in the order in which [`Self::unit`] names their contents.
    fn list_contents(&self, id: u32, unsent: &Unsent, todo: &mut VecDeque<(u32, Change)>) {
        if self.surfaces.contains_key(&id) && unsent.ahead != Ahead::All {
            unsent.children.iter().for_each(|(child, unsent)| self.list_contents(*child, unsent, todo));
            todo.push_back((id, unsent.change));
        }
    }

    /// Goes on with a surface's content: what is large by a worker, unless the whole is wanted now. Gives the content
    /// if there is no more of it to make.
    fn make_content(
        &mut self,
        making: &mut Making,
        id: u32,
        change: Change,
        whole: bool,
    ) -> Option<UnitContent> {
        if let Some(errand) = &mut making.errand {
            let back = if whole { errand.finish() } else { errand.poll()? };
            making.errand = None;
            return self.take_back(making, id, back);
        }
        if !whole && change == Change::New {
            making.errand = self.send_on_errand(making, id);
            if making.errand.is_some() {
                return None;
            }
        }
        match self.surfaces.get(&id).is_some_and(|surface| surface.painter.has_begun()) {
            false => self.begin_content(making, id, change),
            true => self.step_content(making, id, whole),
        }
    }

    /// Gives a surface's painter to a worker, if there are any, and enough is to be encoded.
    fn send_on_errand(&mut self, making: &Making, id: u32) -> Option<Pending<Return>> {
        let workers = self.config.workers.clone();
        let videos = MAX_VIDEOS.saturating_sub(self.videos());
        let painter = &self.surfaces.get(&id).filter(|_| workers.are_there())?.painter;
        if painter.next_pixels() < ERRAND_PIXELS {
            return None;
        }
        let covered = (!painter.has_begun()).then(|| self.covered(making, id));
        let surface = self.surfaces.get_mut(&id)?;
        if let Some(covered) = covered {
            surface.painter.cover(covered);
        }
        let painter = surface.painter.lend()?;
        let kit = self.studio.kit(!painter.has_begun());
        let errand = Errand {
            painter,
            kit,
            now: self.now,
            credit: *self.pacing.credit(),
            videos: self.offering.desk().video.then_some(videos),
            surface: surface.wire,
            probe: self.config.probe.elsewhere(),
        };
        Some(workers.start(|stop| errand.run(stop)))
    }

    /// A painter is back: what it has made leaves. Gives the content if that was all.
    fn take_back(&mut self, making: &mut Making, id: u32, back: Return) -> Option<UnitContent> {
        let Return { painter, kit, painted } = back;
        self.studio.come_back(kit);
        let lender = self.surfaces.get_mut(&id).filter(|surface| surface.painter.is_lent());
        let Some(surface) = lender else { return Some(UnitContent::Keep) };
        surface.painter.come_back(painter);
        self.hand_over(making, id, painted?)
    }

    /// The unit that is under way does not leave: nothing of it stays with a worker.
    pub(super) fn call_errand_off(&mut self, making: &mut Making) {
        let Some(mut errand) = making.errand.take() else { return };
        let Return { painter, kit, .. } = errand.call_off();
        self.studio.come_back(kit);
        let surface = making.todo.front().and_then(|(id, _)| self.surfaces.get_mut(id));
        if let Some(surface) = surface {
            surface.painter.come_back(painter);
        }
    }

    /// Finds out which pixels the display side lacks of a surface. Gives the content if there is nothing to make.
    fn begin_content(&mut self, making: &Making, id: u32, change: Change) -> Option<UnitContent> {
        let covered = self.covered(making, id);
        let room = MAX_VIDEOS.saturating_sub(self.videos());
        let Some(surface) = self.surfaces.get_mut(&id) else { return Some(UnitContent::Keep) };
        match change {
            Change::Unmap => {
                surface.painter.end_videos();
                return Some(UnitContent::None);
            }
            Change::New if surface.painter.has_news() => {}
            Change::New | Change::Keep => return Some(UnitContent::Keep),
        }
        surface.painter.cover(covered);
        let (mut means, screen) = self.studio.begin(self.now, self.pacing.credit_mut(), room);
        surface.painter.begin(&mut means, Some(screen).filter(|_| self.offering.desk().video));
        None
    }

    /// Encodes a slice of a surface's content; if `whole`, it waits for frames. What is there leaves. Gives the content
    /// if that was all.
    fn step_content(&mut self, making: &mut Making, id: u32, whole: bool) -> Option<UnitContent> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Some(UnitContent::Keep) };
        let watch = self.config.probe.encoding(surface.wire, surface.painter.next_update().0);
        let watch = watch.as_ref().map(|watch| watch as &dyn Watch);
        let mut means = self.studio.means(self.now, self.pacing.credit_mut());
        let painted = surface.painter.step(&mut means, whole, watch)?;
        self.hand_over(making, id, painted)
    }

    /// An update leaves. Gives the content if that was all.
    fn hand_over(&mut self, making: &mut Making, id: u32, painted: Painted) -> Option<UnitContent> {
        let Painted { mut update, bytes, videos, whole } = painted;
        let (seq, fresh) = (update.seq, update.fresh);
        if let Some(surface) = self.surfaces.get_mut(&id).filter(|_| fresh) {
            // It maps the surface, gives it another shape, or stands for others itself.
            surface.sent.bind_coming();
        }
        if whole {
            self.tell_unit(making, id, &mut update);
            update.worth = self.worth(id, &update);
        }
        self.publish(update, videos);
        self.charge(making, bytes);
        whole.then_some(UnitContent::Update(seq))
    }

    /// Whether all that is left of a surface's content are frames that are being made by the videos' thread.
    fn awaits_frames(&self, id: u32) -> bool {
        self.surfaces.get(&id).is_some_and(|surface| surface.painter.awaits_frames())
    }

    /// When to look whether the unit that is under way can go on; a worker says so by itself.
    pub(super) fn making_due(&self) -> Option<Time> {
        let making = self.making.as_ref().filter(|making| making.errand.is_none())?;
        let (id, _) = making.todo.front()?;
        Some(if self.awaits_frames(*id) { self.now + FRAME_LOOK } else { self.now })
    }

    /// Content of a unit has left.
    fn charge(&mut self, making: &mut Making, bytes: u64) {
        making.bytes += bytes;
        self.pacing.pay(&mut making.payer, bytes);
    }

    /// What has left ahead is applied: its frame callbacks are answered as those of what leaves now.
    fn owe_ahead(&mut self, id: u32, unsent: Unsent, began: Time) -> Result<(), Fault> {
        let tick = self.beat().tick(began);
        for (child, unsent) in unsent.children {
            self.owe_ahead(child, unsent, began)?;
        }
        match self.surfaces.get_mut(&id) {
            Some(surface) => surface.frames.owe(unsent.frames, tick),
            None => unsent.frames.into_iter().try_for_each(|id| self.forget(id))?,
        }
        Ok(())
    }

    /// The unit for a commit whose contents are made. `None` when the surface is gone, or when it has left before.
    fn unit(
        &mut self,
        id: u32,
        unsent: Unsent,
        began: Time,
        made: &mut VecDeque<Made>,
    ) -> Result<Option<Unit>, Fault> {
        if !self.surfaces.contains_key(&id) {
            return self.give_up(unsent).map(|()| None);
        }
        if unsent.ahead == Ahead::All {
            return self.owe_ahead(id, unsent, began).map(|()| None);
        }
        let mut children = Vec::new();
        for (child, unsent) in unsent.children {
            children.extend(self.unit(child, unsent, began, made)?);
            if let Some(child) = self.surfaces.get_mut(&child) {
                // It is the parent's commit that brings it.
                child.forget_last();
                child.sent.bind();
            }
        }
        // What follows keeps its distance from when this one's turn was.
        let (now, tick) = (self.now, self.beat().tick(began));
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(None) };
        let Made { content, bytes } = made.pop_front().unwrap_or(NOTHING);
        match content {
            UnitContent::Update(seq)
                if children.is_empty() && unsent.offset == (0, 0) && surface.painter.can_take_back() =>
            {
                surface.sent.set_last(Some(seq))
            }
            _ => surface.forget_last(),
        }
        if content != UnitContent::Keep {
            surface.sent.take_owed();
        }
        surface.sent.set_bytes(bytes);
        let number = surface.sent.next_unit(now, tick);
        if !(matches!(content, UnitContent::Update(_)) && children.is_empty() && unsent.offset == (0, 0)) {
            surface.sent.bind();
        }
        surface.frames.owe(unsent.frames, tick);
        let feedback = !unsent.feedback.is_empty();
        surface.sent.add_feedback(number, unsent.feedback);
        let answered = unsent.answered;
        let (surface, mut state) = (surface.wire, unsent.state.into_requests());
        let moves = unsent.stack.map(|stack| stack.moves(id)).unwrap_or_default();
        state.extend(moves.into_iter().filter_map(|to| self.stacking(to)));
        let state = state.into_iter().filter_map(|request| self.addressed(request)).collect();
        Ok(Some(Unit {
            surface,
            number,
            state,
            content,
            offset: unsent.offset,
            feedback,
            answered,
            children,
        }))
    }
}
