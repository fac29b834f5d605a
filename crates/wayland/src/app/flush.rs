//! How units leave: pacing, frame callbacks, and the pixels that go with a unit.
//!
//! One commit of a surface leaves in each interval of the [beat](super::beat), at once if none has left in it, and only
//! while the content budget lasts; meanwhile newer commits fold into the waiting one. Order beats pace: what later
//! requests build on leaves first. A frame callback is answered at the first tick after its commit left, so that the
//! commit that the program answers with finds the interval free. Invariant: a unit is queued after the updates that it
//! names, and frame callbacks are answered only for commits that have left, that no user would see, or that wait for a
//! link which has been silent for long.
//!
//! A commit whose update still waits for the link when a newer one is due is superseded: the update is taken back, the
//! newer one brings its pixels too, and the display side is told to commit both units as one. Only the last unit that
//! left a surface, and only when nothing has been sent since that builds on it. Or all that an outage took, see
//! `outage`.

use std::time::Duration;

use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::message::{ToDisplay, WireId};
use crate::wire::Arg;

use super::connection::Connection;
use super::credit::{Credit, SMALL};
use super::fault::Fault;
use super::pacing::Payer;
use super::standing::Stage;
use super::surface::Surface;

/// Frame callbacks of a surface that no user sees: slow, never none, or a program would block in its swap.
const HIDDEN_PERIOD: Duration = Duration::from_secs(1);
/// The same of a surface that the active display does not get to see just now, while there are viewers.
const BEHIND_PERIOD: Duration = Duration::from_millis(100);
/// A commit that has not come through for so long is stranded: no user sees what is drawn after it.
const STRANDED: Duration = Duration::from_secs(2);
/// What has waited for so long goes before what the user attends to, so that no surface starves.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// Pixels of small content, which are encoded in any turn.
const SMALL_PIXELS: u64 = SMALL / 4;

/// What may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Commits of surfaces that the user attends to, and of those that have waited too long.
    First,
    /// All commits.
    Rest,
    /// What makes shown content better.
    Better,
}

/// What goes first; inside a rank, the one that waited longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Has waited for [`PATIENCE`], since then.
    Overdue(Time),
    /// The keyboard or the pointer is in it, or above it.
    Attended(Time),
    Small(Time),
    Other(Time),
}

impl Rank {
    fn is_first(self) -> bool {
        matches!(self, Self::Overdue(_) | Self::Attended(_))
    }
}

/// What has been handed over, as far as it need not arrive.
pub trait Handed {
    /// Gets an update back of which nothing has left, and says how long it was; `None` when it is too late. See
    /// [`wayferry_proto::Session::take_back`].
    fn take_back(&mut self, surface: SurfaceId, update: UpdateSeq) -> Option<u64>;

    /// Gives up all updates of a surface that are not known to have arrived; says which is the first, and how long they
    /// were. `None` when there is none, or that would spare nothing. See [`wayferry_proto::Session::give_up`].
    fn give_up(&mut self, surface: SurfaceId) -> Option<(UpdateSeq, u64)>;
}

/// Nothing can be had back.
impl Handed for () {
    fn take_back(&mut self, _: SurfaceId, _: UpdateSeq) -> Option<u64> {
        None
    }

    fn give_up(&mut self, _: SurfaceId) -> Option<(UpdateSeq, u64)> {
        None
    }
}

impl Connection {
    /// Sends what is due while the credit lasts, and answers frame callbacks that are due. All connections have one
    /// turn before any has the next.
    pub fn flush(&mut self, now: Time, turn: Turn, credit: &mut Credit, handed: &mut dyn Handed) {
        self.now = now;
        if !self.line.is_attached() {
            // Frame callbacks are answered by time alone.
            return;
        }
        self.note_written();
        let heard = self.pacing.credit().heard;
        *self.pacing.credit_mut() = *credit;
        if self.end.is_none() {
            self.look_for_outage(heard);
            self.go_on_comparing();
            self.go_on_improving();
        }
        if self.goes_on(turn) {
            let step = self.go_on(self.room());
            self.settle(step);
            self.process(now);
        }
        match turn {
            Turn::Better if self.is_making() => {}
            Turn::Better => self.make_better(),
            Turn::First | Turn::Rest => self.send_due_units(turn, handed),
        }
        self.tell_late();
        *credit = *self.pacing.credit();
    }

    /// Whether it is the turn of the commit that is under way: what the user attends to goes before the rest.
    fn goes_on(&self, turn: Turn) -> bool {
        let Some(making) = self.making.as_ref().filter(|_| self.end.is_none()) else { return false };
        // What a worker has made costs no time, and is told of once.
        if making.errand.is_none() && self.room() == 0 {
            return false;
        }
        match turn {
            // What the user attends to of this program waits for it.
            Turn::First => self.devices.focus().is_anywhere() || self.now.since(making.began) >= PATIENCE,
            Turn::Rest => true,
            Turn::Better => false,
        }
    }

    /// How many pixels more may be encoded in this turn.
    pub(super) fn room(&self) -> u64 {
        self.pacing.room(self.studio.slice())
    }

    fn send_due_units(&mut self, turn: Turn, handed: &mut dyn Handed) {
        let now = self.now;
        if self.pacing.settle_debts() {
            self.process(now);
        }
        let mut due: Vec<(Rank, u32)> =
            self.surfaces.keys().filter_map(|id| Some((self.rank(*id)?, *id))).collect();
        due.retain(|(rank, _)| turn == Turn::Rest || rank.is_first());
        due.sort_unstable();
        for (_, id) in due {
            if self.is_making() || self.pacing.under_way().is_full() {
                break;
            }
            if self.room() == 0 && !self.surfaces.is_small(id) {
                continue;
            }
            self.pacing.look();
            let waits = self.waits_for_budget(id);
            // What is replaced has been paid for.
            let paid = self.supersede(id, handed);
            if waits && paid.is_none() {
                continue;
            }
            if let Some(surface) = self.surfaces.get_mut(&id).filter(|_| paid.is_none()) {
                surface.sent.note_replaced(false);
            }
            // Without budget it takes a place that it had; what it adds is no debt of small commits.
            let debt = self.pacing.credit().content == 0;
            let payer = if waits { Payer::Place } else { Payer::Credit { paid: paid.unwrap_or(0), debt } };
            let step = self.send_unit(id, payer, self.room().max(SMALL_PIXELS));
            self.settle(step);
        }
        self.pacing.look();
        if turn == Turn::Rest {
            let step = self.answer_frames();
            self.settle(step);
        }
    }

    /// How soon a surface's waiting commit is to leave; `None` when it is not due.
    fn rank(&self, id: u32) -> Option<Rank> {
        let due = self.send_due(id)?;
        let surface = self.surfaces.get(&id).filter(|_| due <= self.now)?;
        let since = surface.waiting.since();
        Some(if self.now.since(since) >= PATIENCE {
            Rank::Overdue(since)
        } else if self.is_attended(id) {
            Rank::Attended(since)
        } else if self.surfaces.is_small(id) {
            Rank::Small(since)
        } else {
            Rank::Other(since)
        })
    }

    /// Whether the keyboard or the pointer is in the surface, or above it.
    pub(super) fn is_attended(&self, id: u32) -> bool {
        self.wires_above(id).any(|wire| self.devices.focus().is_in(wire))
    }

    /// Whether the keyboard is in the surface, or above it.
    pub(super) fn is_typed_in(&self, id: u32) -> bool {
        self.wires_above(id).any(|wire| self.devices.focus().has_keys(wire))
    }

    pub(super) fn wires_above(&self, id: u32) -> impl Iterator<Item = WireId> {
        self.surfaces.ancestors(id).filter_map(|id| self.surfaces.get(&id).map(|surface| surface.wire))
    }

    /// When [`Self::on_timeout`] or [`Self::flush`] has something to do next.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        if self.program.has_more() && !self.stalled() {
            return Some(self.now);
        }
        let may_leave = |id: &u32| {
            !self.waits_for_budget(*id) || self.surfaces.may_supersede(*id) || self.begins_anew(*id).is_some()
        };
        let sendable = self.surfaces.keys().filter(|id| may_leave(id));
        let sends = sendable.filter_map(|id| self.send_due(*id));
        let better = self.surfaces.keys().filter_map(|id| self.better_due(*id));
        // Nothing else leaves while a unit is under way.
        let content = match self.making {
            Some(_) => self.making_due(),
            None if self.is_making() => None,
            None => sends.chain(better).min(),
        };
        let frames = self.surfaces.keys().filter_map(|id| self.frame_due(*id));
        let patience = self.key_patience();
        let keys = self.devices.next_timeout(patience);
        let videos = self.surfaces.values().filter_map(|surface| surface.painter.videos_end());
        let held = self.timing_due().filter(|_| !self.is_making());
        videos
            .chain(content)
            .chain(frames)
            .chain(keys)
            .chain(self.late_due())
            .chain(held)
            .chain(self.captures.due(self.now, self.config.workers.are_there()))
            .chain(self.program.ping().next_timeout())
            .min()
    }

    /// Handles what time alone brings: held keys, pings, frame callbacks.
    pub fn on_timeout(&mut self, now: Time) {
        self.now = now;
        if self.end.is_some() {
            return;
        }
        if self.program.has_more() {
            self.process(now);
        }
        self.surfaces.values_mut().for_each(|surface| surface.painter.end_paused_videos(now));
        let step = self
            .release_keys()
            .and_then(|()| self.ping_timeout())
            .and_then(|()| self.apply_due())
            .and_then(|()| self.tell_filled())
            .and_then(|()| self.answer_frames());
        self.settle(step);
        self.tell_late();
    }

    /// Whether the surface's waiting commit must wait for budget.
    fn waits_for_budget(&self, id: u32) -> bool {
        self.pacing.waits(|| self.surfaces.is_small(id))
    }

    fn send_due(&self, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id)?;
        let anew = self.begins_anew(id);
        let ahead = surface.sent.is_far_ahead() && anew.is_none() || self.pacing.under_way().is_full();
        surface.waiting.unsent().filter(|_| !surface.withholds() && !ahead)?;
        let due = surface.sent.last_commit().map_or(Time::ZERO, |sent| self.next_turn(surface, sent));
        Some(anew.map_or(due, |from| due.max(from)))
    }

    /// When a unit of the surface may leave after that of this tick.
    pub(super) fn next_turn(&self, surface: &Surface, last: Time) -> Time {
        let apart = self.pacing.pace(self.now, surface.sent.silence(self.now));
        self.beat().after(last, apart)
    }

    fn frame_due(&self, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id)?;
        let period = if self.watching.is_on() { BEHIND_PERIOD } else { HIDDEN_PERIOD };
        let hidden = surface.frames.last().map_or(Time::ZERO, |last| last + period);
        // No user sees what it draws while the link is silent, either; or only the viewers.
        let stranded = surface.stranded(self.frame_patience()).map(|since| hidden.max(since));
        self.tick_due(surface, hidden).into_iter().chain(stranded).min()
    }

    /// How long frame callbacks wait for a commit that does not come through.
    fn frame_patience(&self) -> Duration {
        if self.watching.is_on() { PATIENCE } else { STRANDED }
    }

    fn tick_due(&self, surface: &Surface, hidden: Time) -> Option<Time> {
        if !surface.awaits_tick() {
            return None;
        }
        // What is drawn while the last frame is still leaving would be old when its turn comes.
        let behind = self.line.is_attached()
            && self.pacing.has_no_credit()
            && surface.sent.bytes() > SMALL
            && surface.visible
            // What it draws now goes in the place of that.
            && surface.sent.lost(self.now).is_none();
        if behind && !self.watching.is_on() {
            return None;
        }
        let seen = self.line.is_attached()
            && surface.visible
            && surface.standing.stage() != Stage::Over
            && !self.room.crowds_out(surface);
        let next = surface.frames.before().map_or(Time::ZERO, |last| self.beat().after(last, Duration::ZERO));
        // There are viewers, whose links may be better.
        Some(if (seen || self.watching.is_on()) && !behind { next } else { hidden })
    }

    fn answer_frames(&mut self) -> Result<(), Fault> {
        let (now, patience) = (self.now, self.frame_patience());
        let due: Vec<u32> = self
            .surfaces
            .keys()
            .copied()
            .filter(|id| self.frame_due(*id).is_some_and(|due| due <= now))
            .collect();
        due.into_iter().try_for_each(|id| self.answer_frames_of(id, patience))
    }

    /// Answers a surface's frame callbacks, those of what waits only if it has for so long.
    pub(super) fn answer_frames_of(&mut self, id: u32, patience: Duration) -> Result<(), Fault> {
        let tick = self.beat().tick(self.now);
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        surface.frames.answer(tick);
        let frames = surface.take_frames(self.now, patience);
        let time = self.clock_ms_at(tick);
        for callback in frames {
            self.emit(callback, "done", vec![Arg::Uint(time)])?;
            self.forget(callback)?;
        }
        Ok(())
    }

    /// Takes the surface's last update back if nothing of it has left, or gives up all that is under way if an outage
    /// took it; the pixels go with the waiting commit. Returns how long they were; `None` if nothing is replaced.
    fn supersede(&mut self, id: u32, handed: &mut dyn Handed) -> Option<u64> {
        if self.begins_anew(id).is_some_and(|from| from <= self.now)
            && let Some(bytes) = self.begin_anew(id, handed)
        {
            return Some(bytes);
        }
        if !self.surfaces.may_supersede(id) {
            return None;
        }
        let surface = self.surfaces.get_mut(&id)?;
        let last = surface.sent.take_last()?;
        let wire = surface.wire;
        let Some(bytes) = handed.take_back(SurfaceId(wire.0), last) else {
            surface.forget_last();
            return None;
        };
        surface.sent.note_replaced(true);
        surface.painter.take_back();
        let by = surface.painter.next_update();
        self.retract(SurfaceId(wire.0));
        self.send(&ToDisplay::Superseded { surface: wire, update: last, by });
        Some(bytes)
    }

    /// Sends a surface's waiting commit now, against pace and budget if need be: order demands it. What has left is
    /// built upon and stays.
    pub(super) fn flush_surface(&mut self, id: u32) -> Result<(), Fault> {
        self.leave(id)?;
        self.finish_making()
    }

    /// As [`Self::flush_surface`], for what comes last: its pixels may be encoded in the turns that follow.
    pub(super) fn leave(&mut self, id: u32) -> Result<(), Fault> {
        self.finish_making()?;
        self.send_unit(id, Payer::Debt, self.studio.slice())?;
        let comes = self.making.is_some();
        if let Some(surface) = self.surfaces.get_mut(&id) {
            surface.forget_last();
            if comes { surface.sent.bind_coming() } else { surface.sent.bind() }
        }
        Ok(())
    }

    /// Sends what waits at the surface and at those above it, oldest ancestor first.
    pub(super) fn flush_tree(&mut self, id: u32) -> Result<(), Fault> {
        let chain: Vec<u32> = self.surfaces.ancestors(id).collect();
        chain.into_iter().rev().try_for_each(|id| self.flush_surface(id))
    }

    /// Sends the waiting and cached commits that include a synchronised child: its pixels of then must leave before
    /// newer ones replace them.
    pub(super) fn flush_older(&mut self, child: u32) -> Result<(), Fault> {
        let above = self.surfaces.ancestors(child).find(|above| self.surfaces.caches(*above, child));
        above.map_or(Ok(()), |above| self.send_ahead(above))?;
        let synchronised = self.surfaces.is_synchronised(child);
        let mentions = |id: &u32| {
            let unsent = self.surfaces.get(id).and_then(|surface| surface.waiting.unsent());
            unsent.is_some_and(|unsent| unsent.mentions(child) || *id == child && synchronised)
        };
        if self.surfaces.ancestors(child).any(|id| mentions(&id)) { self.flush_tree(child) } else { Ok(()) }
    }

    /// Begins to send the waiting commit of `id`, if there is one; about `room` pixels are encoded now.
    fn send_unit(&mut self, id: u32, payer: Payer, room: u64) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        match surface.standing.stage() {
            Stage::Awaited | Stage::Decided => return Ok(()),
            // Order demands it: the surface gets a role.
            Stage::Idle => surface.standing.set_stage(Stage::Shown),
            Stage::Shown | Stage::Over => {}
        }
        match surface.waiting.take_unsent() {
            Some(unsent) => self.begin_unit(id, unsent, payer, room),
            None => Ok(()),
        }
    }
}

/// Tests take updates back; none of theirs is lost.
#[cfg(test)]
impl<F: FnMut(SurfaceId, UpdateSeq) -> Option<u64>> Handed for F {
    fn take_back(&mut self, surface: SurfaceId, update: UpdateSeq) -> Option<u64> {
        self(surface, update)
    }

    fn give_up(&mut self, _: SurfaceId) -> Option<(UpdateSeq, u64)> {
        None
    }
}
