//! `wp_fifo` and `wp_commit_timing`: commits that are to be applied later than they are made.
//!
//! Such a commit waits as the program made it: its pixels are unread and its buffer is not given back, which is what keeps
//! a program in step. Commits behind it wait with it, those of synchronised subsurfaces too, so all are applied in the order
//! in which they were made, each as if it were made then. Order beats time, as everywhere: what a later request builds on
//! is applied at once. Invariant: however many commits wait and whatever time they name, the next one is applied within
//! [`MAX_WAIT`], if there is [room](super::room) for its content.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::Time;

use crate::wire::Arg;

use super::pending::{Attach, Pending};
use super::request::Call;
use super::surface::{Stage, Surface};
use super::{Connection, Fault};

/// What `wp_fifo` and `wp_commit_timing` keep of a surface.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// Its `wp_fifo_v1` and its `wp_commit_timer_v1`.
    fifo: Option<u32>,
    timer: Option<u32>,
    /// When the barrier was set, if one was.
    barrier: Option<Time>,
    queue: VecDeque<Queued>,
    /// Commits of synchronised subsurfaces behind those, for the next one of the surface; none unless there are those.
    below: Vec<(u32, Pending)>,
}

/// A commit that waits, with those of synchronised subsurfaces before it.
#[derive(Debug)]
struct Queued {
    below: Vec<(u32, Pending)>,
    own: Pending,
    since: Time,
}

impl Timing {
    fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// The commit that waits first.
    pub(crate) fn first(&self) -> Option<&Pending> {
        self.queue.front().map(|queued| &queued.own)
    }

    /// A buffer is destroyed whose content a commit still needs: its memory stays, its id may be another's.
    pub(crate) fn forget_buffer(&mut self, buffer: u32) {
        for pending in self.pending_mut() {
            if let Attach::Buffer { id, .. } = &mut pending.attach
                && *id == buffer
            {
                *id = 0;
            }
        }
    }

    /// The commits that wait.
    pub(crate) fn pending_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        let queue = self.queue.iter_mut();
        let queued = queue
            .flat_map(|queued| queued.below.iter_mut().map(|(_, pending)| pending).chain([&mut queued.own]));
        queued.chain(self.below.iter_mut().map(|(_, pending)| pending))
    }

    /// Takes out the frame callbacks of what waits at surface `id`, and whose they are.
    fn take_frames(&mut self, id: u32) -> Vec<(u32, Vec<u32>)> {
        let mut all = Vec::new();
        let mut take = |id: u32, pending: &mut Pending| all.push((id, std::mem::take(&mut pending.frames)));
        for Queued { below, own, .. } in &mut self.queue {
            below.iter_mut().for_each(|(child, pending)| take(*child, pending));
            take(id, own);
        }
        self.below.iter_mut().for_each(|(child, pending)| take(*child, pending));
        all
    }

    /// Takes out the commit that waits first and, with the last, those of synchronised subsurfaces behind it: nothing holds
    /// them back any more.
    fn take_first(&mut self) -> Option<(Queued, Vec<(u32, Pending)>)> {
        let first = self.queue.pop_front()?;
        let behind = if self.is_idle() { std::mem::take(&mut self.below) } else { Vec::new() };
        Some((first, behind))
    }

    /// Takes out all that waits, oldest first; `None` stands for the surface itself.
    fn drain(&mut self) -> Vec<(Option<u32>, Pending)> {
        let mut all = Vec::new();
        for Queued { below, own, .. } in std::mem::take(&mut self.queue) {
            all.extend(below.into_iter().map(|(id, pending)| (Some(id), pending)));
            all.push((None, own));
        }
        all.extend(std::mem::take(&mut self.below).into_iter().map(|(id, pending)| (Some(id), pending)));
        all
    }

    /// Takes out what waits of one synchronised subsurface.
    fn drain_below(&mut self, child: u32) -> Vec<Pending> {
        let mut gone = Vec::new();
        for below in self.queue.iter_mut().map(|queued| &mut queued.below).chain([&mut self.below]) {
            for (id, pending) in std::mem::take(below) {
                if id == child {
                    gone.push(pending);
                } else {
                    below.push((id, pending));
                }
            }
        }
        gone
    }
}

impl Connection {
    /// Requests of `wp_fifo` and `wp_commit_timing`.
    pub(super) fn timing(&mut self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        match (call.name(), args) {
            (("wp_fifo_manager_v1", "get_fifo"), [Arg::NewId(id), Arg::Object(surface)]) => {
                self.add_timing(call, *id, *surface, |timing| &mut timing.fifo)
            }
            (("wp_commit_timing_manager_v1", "get_timer"), [Arg::NewId(id), Arg::Object(surface)]) => {
                self.add_timing(call, *id, *surface, |timing| &mut timing.timer)
            }
            (("wp_fifo_v1", "set_barrier"), []) => {
                self.timed(call, FIFO_SURFACE_DESTROYED)?.pending.sets_barrier = true;
                Ok(())
            }
            (("wp_fifo_v1", "wait_barrier"), []) => {
                self.timed(call, FIFO_SURFACE_DESTROYED)?.pending.waits = true;
                Ok(())
            }
            (
                ("wp_commit_timer_v1", "set_timestamp"),
                [Arg::Uint(high), Arg::Uint(low), Arg::Uint(nanos)],
            ) => self.set_timestamp(call, u64::from(*high) << 32 | u64::from(*low), *nanos),
            (("wp_fifo_v1" | "wp_commit_timer_v1", "destroy"), []) => {
                let surface = self.association(call.id).and_then(|id| self.surfaces.get_mut(&id));
                if let Some(Surface { timing, .. }) = surface {
                    timing.fifo = timing.fifo.filter(|id| *id != call.id);
                    timing.timer = timing.timer.filter(|id| *id != call.id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_timing(
        &mut self,
        call: Call,
        id: u32,
        surface: u32,
        slot: impl Fn(&mut Timing) -> &mut Option<u32>,
    ) -> Result<(), Fault> {
        self.set_association(id, Some(surface));
        let Some(state) = self.surfaces.get_mut(&surface) else { return Ok(()) };
        match slot(&mut state.timing).replace(id) {
            Some(_) => Err(Fault::app(call.id, ALREADY_EXISTS, format!("surface {surface} has one already"))),
            None => Ok(()),
        }
    }

    /// The surface that a `wp_fifo_v1` or a `wp_commit_timer_v1` is about.
    fn timed(&mut self, call: Call, destroyed: u32) -> Result<&mut Surface, Fault> {
        let id = self.association(call.id);
        let surface = id.and_then(|id| self.surfaces.get_mut(&id));
        // Another surface may have its id by now.
        let surface = surface
            .filter(|surface| surface.timing.fifo == Some(call.id) || surface.timing.timer == Some(call.id));
        surface.ok_or_else(|| Fault::app(call.id, destroyed, "the surface is destroyed"))
    }

    fn set_timestamp(&mut self, call: Call, seconds: u64, nanos: u32) -> Result<(), Fault> {
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
        let synchronised = self.effectively_synchronised(id);
        let root = match synchronised {
            true => self.ancestors(id).find(|above| !self.effectively_synchronised(*above)).unwrap_or(id),
            false => id,
        };
        let Some(surface) = self.surfaces.get(&root) else { return Ok(()) };
        let waits = !surface.timing.is_idle();
        if synchronised {
            // Constraints are those of the surface that its commit waits for.
            if !waits {
                return self.commit(id);
            }
            return self.queue_below(root, id);
        }
        if self.is_crowded_out(surface) {
            return self.fold_held(id);
        }
        let pending = &surface.pending;
        if !waits && self.ready_at(surface, pending, self.now).is_some_and(|due| due <= self.now) {
            return self.commit_own(id, self.now);
        }
        let now = self.now;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let (below, own) = (std::mem::take(&mut surface.timing.below), std::mem::take(&mut surface.pending));
        surface.timing.queue.push_back(Queued { below, own, since: now });
        if surface.timing.queue.len() > MAX_QUEUED {
            return self.apply_first(id, now);
        }
        self.let_draw(id);
        Ok(())
    }

    /// A commit of a surface for which there is no room joins those that wait, as one: the last of them may need none.
    fn fold_held(&mut self, id: u32) -> Result<(), Fault> {
        let now = self.now;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let newest = Queued {
            below: std::mem::take(&mut surface.timing.below),
            own: std::mem::take(&mut surface.pending),
            since: now,
        };
        let mut held = std::mem::take(&mut surface.timing.queue).into_iter().chain([newest]);
        let Some(mut first) = held.next() else { return Ok(()) };
        let mut unread = Vec::new();
        for Queued { below, own, .. } in held {
            unread.push(first.own.merge(own).map_err(Fault::TooMuch)?);
            for (child, pending) in below {
                unread.extend(add_below(&mut first.below, child, pending)?);
            }
        }
        surface.timing.queue.push_back(first);
        self.let_draw(id);
        unread.into_iter().try_for_each(|unread| self.give_back(unread))
    }

    fn queue_below(&mut self, root: u32, id: u32) -> Result<(), Fault> {
        let pending = self.surfaces.get_mut(&id).map(|surface| std::mem::take(&mut surface.pending));
        let Some((surface, pending)) = self.surfaces.get(&root).zip(pending) else { return Ok(()) };
        let crowded_out = self.is_crowded_out(surface);
        let Some(surface) = self.surfaces.get_mut(&root) else { return Ok(()) };
        let below = &mut surface.timing.below;
        if crowded_out {
            let unread = add_below(below, id, pending)?;
            self.let_draw(root);
            return unread.map_or(Ok(()), |unread| self.give_back(unread));
        }
        below.push((id, pending));
        if below.len() > MAX_QUEUED { self.apply_held(root) } else { Ok(()) }
    }

    /// What waits for room is drawn for nobody: its frame callbacks are answered as those of a hidden surface.
    fn let_draw(&mut self, id: u32) {
        let tick = self.beat().tick(self.now);
        if !self.surfaces.get(&id).is_some_and(|surface| self.is_crowded_out(surface)) {
            return;
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        for (id, frames) in
            surface.timing.take_frames(id).into_iter().filter(|(_, frames)| !frames.is_empty())
        {
            if let Some(surface) = self.surfaces.get_mut(&id) {
                surface.owe_frames(frames, tick);
            }
        }
    }

    /// What a commit brought that is never applied: its buffer unread, and feedback for it.
    fn give_back(&mut self, (buffer, feedback): Unread) -> Result<(), Fault> {
        buffer.map_or(Ok(()), |buffer| self.release_buffer(buffer))?;
        self.discard_feedback(feedback)
    }

    /// When a commit may be applied that was made at `since`; `None` as long as that depends on what is not there yet.
    fn ready_at(&self, surface: &Surface, pending: &Pending, since: Time) -> Option<Time> {
        if !self.has_room(surface, pending) {
            return None;
        }
        let fifo = match surface.timing.barrier.filter(|_| pending.waits) {
            None => Time::ZERO,
            Some(set) => self.barrier_clears(surface, set),
        };
        let target = pending.target.unwrap_or(Time::ZERO);
        Some(fifo.max(target).min(since + MAX_WAIT))
    }

    /// When a barrier is no more: with the tick after what set it has left, or later where that is not seen.
    fn barrier_clears(&self, surface: &Surface, set: Time) -> Time {
        let unseen = !self.attached || !surface.visible || surface.stage != Stage::Shown;
        if unseen {
            return set + UNSEEN_PERIOD;
        }
        match surface.unsent {
            // It has not left: the link does not keep up.
            Some(_) => set + STUCK,
            None => self.beat().after(self.beat().tick(set), Duration::ZERO),
        }
    }

    /// When the first commit that waits at a surface is due.
    fn first_due(&self, surface: &Surface) -> Option<Time> {
        let first = surface.timing.queue.front()?;
        self.ready_at(surface, &first.own, first.since)
    }

    /// When [`Self::apply_due`] has something to do.
    pub(super) fn timing_due(&self) -> Option<Time> {
        self.surfaces.values().filter_map(|surface| self.first_due(surface)).min()
    }

    /// Applies the commits that are due.
    pub(super) fn apply_due(&mut self) -> Result<(), Fault> {
        let now = self.now;
        let due = |connection: &Self, id: u32| {
            let surface = connection.surfaces.get(&id)?;
            // Pixels are encoded from the content as it is.
            connection.first_due(surface).filter(|due| *due <= now && connection.making.is_none())
        };
        let waiting = self.surfaces.iter().filter(|(_, surface)| !surface.timing.is_idle());
        for id in waiting.map(|(id, _)| *id).collect::<Vec<_>>() {
            while let Some(due) = due(self, id) {
                // Frames keep their distance from each other, however late a turn comes.
                let late = now.since(due) >= self.period();
                self.apply_first(id, if late { now } else { due })?;
            }
        }
        Ok(())
    }

    /// Applies all that waits at a surface and at those above it: something builds on it.
    pub(super) fn apply_held(&mut self, id: u32) -> Result<(), Fault> {
        let chain: Vec<u32> = self.ancestors(id).collect();
        for id in chain.into_iter().rev() {
            while self.surfaces.get(&id).is_some_and(|surface| !surface.timing.is_idle()) {
                self.apply_first(id, self.now)?;
            }
        }
        Ok(())
    }

    fn apply_first(&mut self, id: u32, at: Time) -> Result<(), Fault> {
        let first = self.surfaces.get_mut(&id).and_then(|surface| surface.timing.take_first());
        let Some((Queued { below, own, .. }, behind)) = first else { return Ok(()) };
        below.into_iter().try_for_each(|(child, pending)| self.commit_as(child, pending))?;
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let newer = std::mem::replace(&mut surface.pending, own);
        self.commit_own(id, at)?;
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.pending = newer;
        }
        behind.into_iter().try_for_each(|(child, pending)| self.commit_as(child, pending))
    }

    /// Commits what is pending at a surface that is not synchronised.
    fn commit_own(&mut self, id: u32, at: Time) -> Result<(), Fault> {
        if let Some(surface) = self.surfaces.get_mut(&id)
            && surface.pending.sets_barrier
        {
            surface.timing.barrier = Some(at);
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
            if let Attach::Buffer { id, .. } = attach {
                self.release_buffer(id)?;
            }
            frames.into_iter().try_for_each(|id| self.forget(id))?;
            self.discard_feedback(feedback)?;
        }
        Ok(())
    }
}

/// The buffer and the presentation feedback of a commit that is never applied.
type Unread = (Option<u32>, Vec<u32>);

/// Folds a commit of a synchronised subsurface into the one that waits there already.
fn add_below(below: &mut Vec<(u32, Pending)>, id: u32, pending: Pending) -> Result<Option<Unread>, Fault> {
    match below.iter_mut().find(|(child, _)| *child == id) {
        Some((_, old)) => old.merge(pending).map(Some).map_err(Fault::TooMuch),
        None => {
            below.push((id, pending));
            Ok(None)
        }
    }
}

/// Commits that may wait at one surface, and commits of subsurfaces for one of them: far above the buffers that a program
/// has. Beyond, the oldest is applied at once.
pub(super) const MAX_QUEUED: usize = 64;
/// However late a commit is to be applied, it waits no longer.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Time between frames of a surface that the user does not see: slow enough not to matter, fast enough to end loops soon.
const UNSEEN_PERIOD: Duration = Duration::from_millis(100);
/// A frame that has not left for so long does not hold up those behind it any longer; they replace it.
const STUCK: Duration = Duration::from_secs(2);

/// Nanoseconds in a second.
const NANOS: u32 = 1_000_000_000;

/// Errors of both managers, of `wp_fifo_v1`, and of `wp_commit_timer_v1`.
const ALREADY_EXISTS: u32 = 0;
const FIFO_SURFACE_DESTROYED: u32 = 0;
const INVALID_TIMESTAMP: u32 = 0;
const TIMESTAMP_EXISTS: u32 = 1;
const TIMER_SURFACE_DESTROYED: u32 = 2;
