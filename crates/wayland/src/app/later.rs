//! Commits that are applied later than they are made: `wp_fifo`, `wp_commit_timing`, pixels that are to be read.
//!
//! Such a commit waits as the program made it: its pixels are unread and its buffer is not given back, which is what
//! keeps a program in step. Those of a GPU buffer are read last, see [`read`](super::read). Commits behind it wait with
//! it, those of synchronised subsurfaces too, so all are applied in the order in which they were made, each as if it
//! were made then. Order beats time, as everywhere: what a later request builds on is applied at once. Invariant:
//! however many commits wait and however late they are to be, the next one is applied within [`MAX_WAIT`], if there is
//! [room](super::room) for its content and its pixels have been drawn.

use std::time::Duration;

use wayferry_proto::Time;

use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::pending::{Attach, Pending, Pixels, Unread};
use super::reading::GivenUp;
use super::standing::Stage;
use super::surface::Surface;
use super::timing::{First, Timing};

impl Connection {
    /// `wp_fifo_manager_v1.get_fifo`.
    pub(super) fn add_fifo(&mut self, call: Call, id: u32, surface: u32) -> Result<(), Fault> {
        self.add_timing(call, id, surface, Timing::fifo)
    }

    /// `wp_commit_timing_manager_v1.get_timer`.
    pub(super) fn add_timer(&mut self, call: Call, id: u32, surface: u32) -> Result<(), Fault> {
        self.add_timing(call, id, surface, Timing::timer)
    }

    /// `wp_fifo_v1.set_barrier`.
    pub(super) fn set_barrier(&mut self, call: Call) -> Result<(), Fault> {
        self.timed(call, FIFO_SURFACE_DESTROYED)?.pending.sets_barrier = true;
        Ok(())
    }

    /// `wp_fifo_v1.wait_barrier`.
    pub(super) fn wait_barrier(&mut self, call: Call) -> Result<(), Fault> {
        self.timed(call, FIFO_SURFACE_DESTROYED)?.pending.waits = true;
        Ok(())
    }

    /// Either object of a surface is gone.
    pub(super) fn end_timing(&mut self, id: u32) {
        let surface = self.association(id).and_then(|surface| self.surfaces.get_mut(&surface));
        surface.into_iter().for_each(|surface| surface.timing.forget(id));
    }

    pub(super) fn add_timing(
        &mut self,
        call: Call,
        id: u32,
        surface: u32,
        slot: impl Fn(&mut Timing) -> &mut Option<u32>,
    ) -> Result<(), Fault> {
        self.objects.set_association(id, Some(surface));
        let Some(state) = self.surfaces.get_mut(&surface) else { return Ok(()) };
        match slot(&mut state.timing).replace(id) {
            Some(_) => Err(Fault::app(call.id, ALREADY_EXISTS, format!("surface {surface} has one already"))),
            None => Ok(()),
        }
    }

    /// The surface that one of those objects is about.
    pub(super) fn timed(&mut self, call: Call, destroyed: u32) -> Result<&mut Surface, Fault> {
        let id = self.association(call.id);
        let surface = id.and_then(|id| self.surfaces.get_mut(&id));
        // Another surface may have its id by now.
        let surface = surface.filter(|surface| surface.timing.is_by(call.id));
        surface.ok_or_else(|| Fault::app(call.id, destroyed, "the surface is destroyed"))
    }

    pub(super) fn set_timestamp(&mut self, call: Call, seconds: u64, nanos: u32) -> Result<(), Fault> {
        let start = self.config.clock_start.0;
        let pending = &mut self.timed(call, TIMER_SURFACE_DESTROYED)?.pending;
        if nanos >= NANOS {
            return Err(Fault::app(call.id, INVALID_TIMESTAMP, format!("{nanos} ns are a second or more")));
        }
        let time = seconds.saturating_mul(u64::from(NANOS)).saturating_add(u64::from(nanos));
        match pending.target.replace(Time::from_nanos(time.saturating_sub(start))) {
            Some(_) => Err(Fault::app(call.id, TIMESTAMP_EXISTS, "the commit has a timestamp already")),
            None => Ok(()),
        }
    }

    /// `wl_surface.commit`: at once, or when it is due.
    pub(super) fn commit_in_time(&mut self, id: u32) -> Result<(), Fault> {
        self.note_answer(id);
        self.take_points(id)?;
        let synchronised = self.surfaces.is_synchronised(id);
        let root = match synchronised {
            true => {
                self.surfaces.ancestors(id).find(|above| !self.surfaces.is_synchronised(*above)).unwrap_or(id)
            }
            false => id,
        };
        let Some(surface) = self.surfaces.get(&root) else { return Ok(()) };
        let waits = !surface.timing.is_idle();
        if synchronised {
            // Constraints are those of the surface that its commit waits for.
            let lacks = self.surfaces.get(&id).is_some_and(|surface| surface.pending.lacks_pixels());
            if !waits && !lacks {
                return if self.begin_comparing(id)? { Ok(()) } else { self.commit(id) };
            }
            return self.queue_below(root, id);
        }
        if self.room.crowds_out(surface) {
            return self.fold_held(id);
        }
        let pending = &surface.pending;
        let is_ready = |due: Time| due <= self.now && !pending.lacks_pixels();
        if !waits && self.ready_at(surface, pending, self.now).is_some_and(is_ready) {
            return if self.begin_comparing(id)? { Ok(()) } else { self.commit_own(id, self.now) };
        }
        if surface.timing.is_replaced_by(pending) {
            return self.replace_held(id);
        }
        if surface.timing.is_full() && surface.timing.lacks_pixels() {
            return self.fold_held(id);
        }
        let now = self.now;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let own = std::mem::take(&mut surface.pending);
        if surface.timing.push(own, now) {
            return self.apply_first(id, now);
        }
        self.let_draw(id);
        Ok(())
    }

    /// A commit of a surface takes the place of the last that waits, whose pixels have not been read.
    fn replace_held(&mut self, id: u32) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let newer = std::mem::take(&mut surface.pending);
        let unread = surface.timing.replace(newer).map_err(Fault::TooMuch)?;
        self.let_draw(id);
        unread.into_iter().try_for_each(|unread| self.give_back(unread))
    }

    /// A commit of a surface for which there is no room joins those that wait, as one: the last of them may need none.
    fn fold_held(&mut self, id: u32) -> Result<(), Fault> {
        let now = self.now;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let own = std::mem::take(&mut surface.pending);
        let unread = surface.timing.fold(own, now).map_err(Fault::TooMuch)?;
        self.let_draw(id);
        unread.into_iter().try_for_each(|unread| self.give_back(unread))
    }

    fn queue_below(&mut self, root: u32, id: u32) -> Result<(), Fault> {
        let pending = self.surfaces.get_mut(&id).map(|surface| std::mem::take(&mut surface.pending));
        let Some((surface, pending)) = self.surfaces.get(&root).zip(pending) else { return Ok(()) };
        // A newer frame takes the place of one that has not been read, unless something was committed between the two.
        let replaces = pending.lacks_pixels() && surface.timing.ends_with(id);
        let folds = self.room.crowds_out(surface) || replaces;
        let Some(surface) = self.surfaces.get_mut(&root) else { return Ok(()) };
        if folds {
            let unread = surface.timing.fold_below(id, pending).map_err(Fault::TooMuch)?;
            self.let_draw(root);
            return unread.map_or(Ok(()), |unread| self.give_back(unread));
        }
        if surface.timing.push_below(id, pending) { self.apply_held(root) } else { Ok(()) }
    }

    /// No user sees what waits for room, or to be seen: its frame callbacks are answered as those of a hidden surface.
    pub(super) fn let_draw(&mut self, id: u32) {
        let tick = self.beat().tick(self.now);
        let is_unseen = |surface| self.room.crowds_out(surface) || self.waits_unseen(surface);
        if !self.surfaces.get(&id).is_some_and(is_unseen) {
            return;
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        for (id, frames) in
            surface.timing.take_frames(id).into_iter().filter(|(_, frames)| !frames.is_empty())
        {
            if let Some(surface) = self.surfaces.get_mut(&id) {
                surface.frames.owe(frames, tick);
            }
        }
    }

    /// What a commit brought that is never applied: its buffer unread, and feedback for it.
    fn give_back(&mut self, (attach, feedback): Unread) -> Result<(), Fault> {
        match attach {
            // It comes back once it has been read.
            Attach::Buffer { id, pixels: Pixels::Asked(job, _), sync, .. } => {
                self.reading.give_up(job, GivenUp { id, sync });
            }
            Attach::Buffer { id, .. } => self.release_buffer(id)?,
            Attach::Keep | Attach::None => {}
        }
        self.discard_feedback(feedback)
    }

    /// When a commit may be applied that was made at `since`; `None` as long as that depends on what is not there yet.
    fn ready_at(&self, surface: &Surface, pending: &Pending, since: Time) -> Option<Time> {
        if !self.room.has(surface, pending) {
            return None;
        }
        let fifo = match surface.timing.barrier().filter(|_| pending.waits) {
            None => Time::ZERO,
            Some(set) => self.barrier_clears(surface, set),
        };
        let target = pending.target.unwrap_or(Time::ZERO);
        Some(fifo.max(target).min(since + MAX_WAIT))
    }

    /// When a barrier is no more: with the tick after what set it has left, or later where that is not seen.
    fn barrier_clears(&self, surface: &Surface, set: Time) -> Time {
        let unseen = !self.line.is_attached() || !surface.visible || surface.standing.stage() != Stage::Shown;
        if unseen {
            return set + UNSEEN_PERIOD;
        }
        match surface.waiting.unsent() {
            // It has not left: the link does not keep up.
            Some(_) if surface.sent.lost(self.now).is_none() => set + STUCK,
            _ => self.beat().after(self.beat().tick(set), Duration::ZERO),
        }
    }

    /// What is to be done with the first commit that waits at a surface, and when.
    fn next_step(&self, id: u32) -> Option<(Time, Step)> {
        // What is compared came before.
        let waits = |surface: &&Surface| !surface.timing.is_idle() && !self.comparing.is_on();
        let surface = self.surfaces.get(&id).filter(waits)?;
        let hurried = self.is_hurried(id);
        let due = match surface.timing.first_since() {
            // Order beats time and room.
            _ if hurried => self.now,
            Some((first, since)) => self.ready_at(surface, first, since)?,
            None => return None,
        };
        let mut first = surface.timing.first_pending().map(|(_, pending)| pending);
        if first.any(|pending| pending.lacks_pixels() && !pending.is_being_read()) {
            return (hurried || self.may_read(surface)).then_some((due, Step::Read));
        }
        let is_read = surface.timing.first_pending().all(|(_, pending)| !pending.lacks_pixels());
        // Pixels are encoded from the content as it is.
        (is_read && self.making.is_none() && !self.improving.is_on()).then_some((due, Step::Apply))
    }

    /// When [`Self::apply_due`] has something to do.
    pub(super) fn timing_due(&self) -> Option<Time> {
        let steps = self.surfaces.keys().filter_map(|id| self.next_step(*id));
        steps.map(|(due, _)| due).chain(self.read_timeout()).min()
    }

    /// Applies the commits that are due, and asks for their pixels before.
    pub(super) fn apply_due(&mut self) -> Result<(), Fault> {
        let now = self.now;
        let waiting = self.surfaces.iter().filter(|(_, surface)| !surface.timing.is_idle());
        for id in waiting.map(|(id, _)| *id).collect::<Vec<_>>() {
            while let Some((due, step)) = self.next_step(id).filter(|(due, _)| *due <= now) {
                // Frames keep their distance from each other, however late a turn comes.
                let late = now.since(due) >= self.offering.period();
                match step {
                    Step::Read => self.ask_for_first(id)?,
                    Step::Apply => self.apply_first(id, if late { now } else { due })?,
                }
            }
        }
        self.go_on_with_put_off()
    }

    /// Applies all that waits at a surface and at those above it: something builds on it.
    pub(super) fn apply_held(&mut self, id: u32) -> Result<(), Fault> {
        let chain: Vec<u32> = self.surfaces.ancestors(id).collect();
        for id in chain.into_iter().rev() {
            while self.surfaces.get(&id).is_some_and(|surface| !surface.timing.is_idle()) {
                self.apply_first(id, self.now)?;
            }
        }
        Ok(())
    }

    fn apply_first(&mut self, id: u32, at: Time) -> Result<(), Fault> {
        let first = self.surfaces.get_mut(&id).and_then(|surface| surface.timing.take_first());
        let Some(First { below, own, behind }) = first else { return Ok(()) };
        below.into_iter().try_for_each(|(child, pending)| self.commit_as(child, pending))?;
        if let Some((surface, own)) = self.surfaces.get_mut(&id).zip(own) {
            let newer = std::mem::replace(&mut surface.pending, own);
            self.commit_own(id, at)?;
            if let Some(surface) = self.surfaces.get_mut(&id) {
                surface.pending = newer;
            }
        }
        behind.into_iter().try_for_each(|(child, pending)| self.commit_as(child, pending))
    }

    /// Commits what is pending at a surface that is not synchronised.
    pub(super) fn commit_own(&mut self, id: u32, at: Time) -> Result<(), Fault> {
        if let Some(surface) = self.surfaces.get_mut(&id)
            && surface.pending.sets_barrier
        {
            surface.timing.set_barrier(at);
        }
        self.commit(id)
    }

    /// Commits a surface as it was when it was committed.
    fn commit_as(&mut self, id: u32, pending: Pending) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let newer = std::mem::replace(&mut surface.pending, pending);
        self.commit(id)?;
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.pending = newer;
        }
        Ok(())
    }

    /// A surface is destroyed: its commits that wait never come, those of surfaces below it do.
    pub(super) fn drop_held(&mut self, id: u32) -> Result<(), Fault> {
        let mut gone: Vec<Pending> = Vec::new();
        for surface in self.surfaces.values_mut() {
            gone.extend(surface.timing.drain_below(id));
        }
        let all = self.surfaces.get_mut(&id).map(|surface| surface.timing.drain()).unwrap_or_default();
        for (child, pending) in all {
            match child {
                Some(child) => self.commit_as(child, pending)?,
                None => gone.push(pending),
            }
        }
        for Pending { attach, frames, feedback, .. } in gone {
            frames.into_iter().try_for_each(|id| self.forget(id))?;
            self.give_back((attach, feedback))?;
        }
        Ok(())
    }
}

/// What is done with a commit that waits.
enum Step {
    /// The pixels of its GPU buffers are asked for.
    Read,
    Apply,
}

/// However late a commit is to be applied, it waits no longer.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Time between frames of a surface that the user does not see: slow enough not to matter, fast enough to end loops
/// soon.
const UNSEEN_PERIOD: Duration = Duration::from_millis(100);
/// A frame that has not left for so long does not hold up those behind it any longer; they replace it.
const STUCK: Duration = Duration::from_secs(2);

/// Nanoseconds in a second.
const NANOS: u32 = 1_000_000_000;

/// Errors of the managers, of `wp_fifo_v1`, and of `wp_commit_timer_v1`.
const ALREADY_EXISTS: u32 = 0;
const FIFO_SURFACE_DESTROYED: u32 = 0;
const INVALID_TIMESTAMP: u32 = 0;
const TIMESTAMP_EXISTS: u32 = 1;
const TIMER_SURFACE_DESTROYED: u32 = 2;
