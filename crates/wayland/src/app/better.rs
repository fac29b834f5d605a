//! What is shown lossily becomes better: text first, then pictures, and exact when it rests.
//!
//! Each step is an update of the content that the program has committed already, of what the link takes in 8 ms, and
//! made only when nothing else waits for the link: by a worker, where there are any. Until it is back no commit leaves,
//! and no request is read. Units without state bring several of them to the screen at once, no faster than frames.
//! Hidden surfaces wait. Invariant: only content that has left as a whole is made better; news of a surface come first.

use wayferry_pixels::map::SurfaceRect;
use wayferry_proto::Time;

use crate::message::{ToDisplay, Unit, UnitContent};

use super::connection::Connection;
use super::errand::{Errand, Return};
use super::flush::PATIENCE;
use super::painter::{Better, Fidelity, LEAST_PIECE, MOST_PIECE, Painted, Step};

/// Bytes up to which a picture would be mostly the head of its image.
const LEAST_IMAGE: u64 = 4096;

impl Connection {
    /// Tells the display side more of what it shows, as far as the credit goes.
    pub(super) fn make_better(&mut self) {
        if self.end.is_some() {
            return;
        }
        for step in [Better::Improve, Better::Refine] {
            let mut due: Vec<(bool, Time, u32)> =
                self.surfaces.keys().filter_map(|id| self.step_order(step, *id)).collect();
            due.sort_unstable();
            for (_, _, id) in due {
                let is_over = self.improving.rests(self.now) || self.room() == 0;
                if is_over || self.pacing.credit().refinement < LEAST_PIECE {
                    break;
                }
                self.take_step(step, id);
            }
        }
        let owing: Vec<u32> = self
            .surfaces
            .keys()
            .copied()
            .filter(|id| self.show_due(*id).is_some_and(|due| due <= self.now))
            .collect();
        owing.into_iter().for_each(|id| self.show(id));
    }

    /// When [`Self::make_better`] has something to do for a surface; `None` when only credit can bring that about.
    pub(super) fn better_due(&self, id: u32) -> Option<Time> {
        let steps = [Better::Improve, Better::Refine].into_iter().filter_map(|step| {
            let due = self.step_due(step, id)?;
            (due > self.now || self.pacing.credit().refinement >= LEAST_PIECE).then_some(due)
        });
        steps.chain(self.show_due(id)).min()
    }

    /// The surfaces that have content, in no order.
    pub fn fidelity(&self) -> impl Iterator<Item = Fidelity> {
        self.surfaces.values().filter_map(|surface| surface.painter.fidelity())
    }

    /// How many videos its surfaces have.
    pub fn videos(&self) -> usize {
        self.surfaces.values().map(|surface| surface.painter.videos()).sum()
    }

    /// The attended first and who has waited too long, then the one that waits longest; `None` when it is not due.
    fn step_order(&self, step: Better, id: u32) -> Option<(bool, Time, u32)> {
        let due = self.step_due(step, id).filter(|due| *due <= self.now)?;
        let first = self.now.since(due) >= PATIENCE || self.is_attended(id);
        Some((!first, due, id))
    }

    fn step_due(&self, step: Better, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id).filter(|surface| surface.visible)?;
        let wants = surface.painter.wants(step).filter(|_| surface.painter.updates() > 0);
        wants.filter(|_| self.surfaces.can_show(id))
    }

    /// Where a pointer or a finger is in the surface, in pixels of its buffer.
    pub(super) fn near(&self, id: u32) -> Option<(u32, u32)> {
        let surface = self.surfaces.get(&id)?;
        let (x, y) = self.devices.focus().point_in(surface.wire)?;
        let mapping = surface.mapping(surface.painter.size()?);
        let spot = mapping.rect(SurfaceRect { x, y, width: 1, height: 1 })?;
        Some((spot.x, spot.y))
    }

    fn take_step(&mut self, how: Better, id: u32) {
        let near = self.near(id);
        let bytes = self.pacing.credit().refinement.min(MOST_PIECE);
        let bytes = match how {
            Better::Improve => bytes.max(LEAST_IMAGE),
            Better::Refine => bytes,
        };
        let step = Step { how, bytes, near };
        if self.config.workers.are_there() {
            return self.lend_for(step, id);
        }
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let mut means = self.studio.means(self.now, self.pacing.credit_mut());
        let painted = surface.painter.improve(step, &mut means);
        painted.into_iter().for_each(|painted| self.better(id, painted));
    }

    /// Has a worker take a step.
    fn lend_for(&mut self, step: Step, id: u32) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let wire = surface.wire;
        let Some(painter) = surface.painter.lend() else { return };
        // Other programs have what is left; what it comes to is known later.
        let credit = self.pacing.credit_mut();
        credit.refinement = credit.refinement.saturating_sub(step.bytes);
        let errand = Errand {
            painter,
            kit: self.studio.kit(false),
            now: self.now,
            credit: *self.pacing.credit(),
            videos: None,
            surface: wire,
            probe: self.config.probe.elsewhere(),
        };
        self.improving.begin(id, self.config.workers.start(move |stop| errand.improve(step, stop)));
    }

    /// A step that a worker has taken leaves.
    pub(super) fn go_on_improving(&mut self) {
        if let Some((id, back)) = self.improving.poll(self.now) {
            let painted = self.take_improved(id, back);
            painted.into_iter().for_each(|painted| self.better(id, painted));
        }
    }

    /// The same at once, for what works on the content.
    pub(super) fn finish_improving(&mut self) {
        if let Some((id, back)) = self.improving.finish(self.now) {
            let painted = self.take_improved(id, back);
            painted.into_iter().for_each(|painted| self.better(id, painted));
        }
    }

    /// What a worker was to make does not leave; its painter is back.
    pub(super) fn call_improving_off(&mut self) {
        if let Some((id, back)) = self.improving.call_off(self.now) {
            self.take_improved(id, back);
        }
    }

    fn take_improved(&mut self, id: u32, back: Return) -> Option<Painted> {
        // Requests have waited for it.
        self.program.wake();
        let Return { painter, kit, painted } = back;
        self.studio.come_back(kit);
        let surface = self.surfaces.get_mut(&id).filter(|surface| surface.painter.is_lent())?;
        surface.painter.come_back(painter);
        painted
    }

    fn better(&mut self, id: u32, painted: Painted) {
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        self.pacing.credit_mut().spend(painted.bytes);
        surface.sent.owe(painted.update.seq);
        self.publish(painted.update, painted.videos);
    }

    /// When what was made better is to be brought to the screen.
    fn show_due(&self, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id).filter(|surface| surface.sent.owes())?;
        let last = surface.sent.last_unit();
        let due = last.map_or(Time::ZERO, |last| self.next_turn(surface, last));
        Some(due).filter(|_| self.surfaces.can_show(id))
    }

    fn show(&mut self, id: u32) {
        let chain: Vec<u32> = self.surfaces.shown_with(id).collect();
        let mut shown: Option<Unit> = None;
        let (tick, several) = (self.beat().tick(self.now), chain.len() > 1);
        for above in chain {
            let Some(surface) = self.surfaces.get_mut(&above) else { return };
            let content = match surface.sent.take_owed() {
                Some(seq) => UnitContent::Update(seq),
                None => UnitContent::Keep,
            };
            // It may build on the last commit's unit, which must not be replaced then.
            surface.forget_last();
            let number = surface.sent.next_bare_unit(tick);
            if several {
                surface.sent.bind();
            }
            shown = Some(Unit {
                surface: surface.wire,
                number,
                state: Vec::new(),
                content,
                offset: (0, 0),
                feedback: false,
                answered: None,
                children: shown.into_iter().collect(),
            });
        }
        if let Some(unit) = shown {
            self.publish_bare_unit(&unit);
            self.send(&ToDisplay::Unit(unit));
        }
    }
}
