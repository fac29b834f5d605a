//! What is shown lossily becomes better: text first, then pictures, and exact when it rests.
//!
//! Each step is an update of the content that the program has committed already, of what the link takes in 8 ms, and made
//! only when nothing else waits for the link. Units without state bring several of them to the screen at once, no faster
//! than frames. Hidden surfaces wait. Invariant: only content that has left as a whole is made better; news of a surface come
//! first.

use wayferry_pixels::map::SurfaceRect;
use wayferry_pixels::{Allowance, Size, Wants};
use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::action::Update;
use crate::message::{ToDisplay, Unit, UnitContent};

use super::Connection;
use super::flush::PATIENCE;
use super::surface::Ahead;

/// Quality of refinement's pictures, of which there are none.
const ANY_QUALITY: u8 = 75;
/// Bytes up to which a picture would be mostly the head of its image.
const LEAST_IMAGE: u64 = 4096;
/// Bytes of credit below which a piece would be mostly its own head, and beyond which it would hold up input.
const LEAST_PIECE: u64 = 1000;
const MOST_PIECE: u64 = 128 << 10;

/// How well the display side knows a surface's content, once all that has left is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fidelity {
    /// The surface.
    pub surface: SurfaceId,
    /// Its size in buffer pixels.
    pub size: Size,
    /// About how many pixels are not exact, never fewer than there are; 0 if all are.
    pub lossy: u64,
    /// How many films are in it.
    pub films: usize,
}

/// How an update makes content better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Previews become text and pictures.
    Improve,
    /// What rests becomes exact.
    Refine,
}

impl Connection {
    /// Tells the display side more of what it shows, as far as the credit goes.
    pub(super) fn make_better(&mut self) {
        if self.end.is_some() {
            return;
        }
        for step in [Step::Improve, Step::Refine] {
            let mut due: Vec<(bool, Time, u32)> =
                self.surfaces.keys().filter_map(|id| self.step_order(step, *id)).collect();
            due.sort_unstable();
            for (_, _, id) in due {
                if self.credit.refinement < LEAST_PIECE || self.room() == 0 {
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
        let steps = [Step::Improve, Step::Refine].into_iter().filter_map(|step| {
            let due = self.step_due(step, id)?;
            (due > self.now || self.credit.refinement >= LEAST_PIECE).then_some(due)
        });
        steps.chain(self.show_due(id)).min()
    }

    /// The surfaces that have content, in no order.
    pub fn fidelity(&self) -> impl Iterator<Item = Fidelity> {
        self.surfaces.values().filter_map(|surface| {
            let draft = surface.draft.as_ref()?;
            let id = SurfaceId(surface.wire.0);
            let (size, lossy, films) = (draft.content().size(), draft.lossy_area(), draft.films());
            Some(Fidelity { surface: id, size, lossy, films })
        })
    }

    /// How many films its surfaces have.
    pub fn films(&self) -> usize {
        self.surfaces.values().map(|surface| surface.films.count()).sum()
    }

    /// The attended first and who has waited too long, then whoever waits longest; `None` when it is not due.
    fn step_order(&self, step: Step, id: u32) -> Option<(bool, Time, u32)> {
        let due = self.step_due(step, id).filter(|due| *due <= self.now)?;
        let first = self.now.since(due) >= PATIENCE || self.is_attended(id);
        Some((!first, due, id))
    }

    fn step_due(&self, step: Step, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id).filter(|surface| surface.visible && surface.updates > 0)?;
        let Wants { better, exact } = surface.draft.as_ref()?.wants();
        let due = match step {
            Step::Improve => better,
            Step::Refine => exact,
        };
        due.filter(|_| self.can_show(id)).map(|due| Time::ZERO + due)
    }

    /// Whether a unit of this surface alone can be brought to the screen: synchronised ones need commits of what is above
    /// them, and those must be no initial ones, nor apply what waits at the compositor for a commit of the program.
    pub(super) fn can_show(&self, id: u32) -> bool {
        let can = |above: u32| {
            self.surfaces.get(&above).is_some_and(|surface| surface.mapped()) && !self.is_awaited(above)
        };
        self.shown_with(id).all(can)
    }

    /// Whether something that has left waits at the compositor for a commit of a surface.
    fn is_awaited(&self, id: u32) -> bool {
        let Some(surface) = self.surfaces.get(&id) else { return false };
        let unsent = surface.unsent.iter().flat_map(|unsent| &unsent.children).map(|(_, unsent)| unsent);
        let children = surface.children.iter().filter_map(|child| self.surfaces.get(child)?.cached.as_ref());
        unsent.chain(children).any(|unsent| unsent.ahead != Ahead::Nothing)
    }

    /// The surface, and those above it that must commit for its commit to be applied.
    pub(super) fn shown_with(&self, id: u32) -> impl Iterator<Item = u32> {
        let chain: Vec<u32> = self.ancestors(id).collect();
        let needed = chain.iter().position(|above| !self.effectively_synchronised(*above));
        chain.into_iter().take(needed.map_or(usize::MAX, |last| last + 1))
    }

    /// Where a pointer or a finger is in the surface, in pixels of its buffer.
    pub(super) fn near(&self, id: u32) -> Option<(u32, u32)> {
        let surface = self.surfaces.get(&id)?;
        let (x, y) = self.focus.point_in(surface.wire)?;
        let mapping = surface.mapping(surface.draft.as_ref()?.content().size());
        let spot = mapping.rect(SurfaceRect { x, y, width: 1, height: 1 })?;
        Some((spot.x, spot.y))
    }

    fn take_step(&mut self, step: Step, id: u32) {
        let near = self.near(id);
        let Some(surface) = self.surfaces.get_mut(&id) else { return };
        let Some(draft) = &mut surface.draft else { return };
        let now = self.now.since_start();
        let quality = self.config.lossy.unwrap_or(ANY_QUALITY);
        let allow = |bytes| Allowance { bytes, quality, now };
        let bytes = self.credit.refinement.min(MOST_PIECE);
        let chunks = match step {
            Step::Improve => self.encoder.improve(draft, &allow(bytes.max(LEAST_IMAGE)), near),
            Step::Refine => self.encoder.refine(draft, &allow(bytes)),
        };
        surface.films.keep(draft);
        if chunks.is_empty() {
            return;
        }
        self.credit.spend(chunks.iter().map(|chunk| chunk.len() as u64).sum());
        // One piece is a turn's work.
        self.credit.encoded = self.credit.encoded.saturating_add(self.encoder.slice());
        surface.last = None;
        surface.updates += 1;
        let seq = UpdateSeq(surface.updates);
        surface.owed = Some(seq);
        let films = draft.films() > 0;
        let update = Update {
            surface: SurfaceId(surface.wire.0),
            seq,
            size: draft.content().size(),
            format: draft.content().format(),
            fresh: false,
            chunks,
        };
        self.publish(update, films);
    }

    /// When what was made better is to be brought to the screen.
    fn show_due(&self, id: u32) -> Option<Time> {
        let surface = self.surfaces.get(&id).filter(|surface| surface.owed.is_some())?;
        let last = surface.last_sent.max(surface.last_better);
        let due = last.map_or(Time::ZERO, |last| self.next_turn(surface, last));
        Some(due).filter(|_| self.can_show(id))
    }

    fn show(&mut self, id: u32) {
        let chain: Vec<u32> = self.shown_with(id).collect();
        let mut shown: Option<Unit> = None;
        let tick = self.beat().tick(self.now);
        for above in chain {
            let Some(surface) = self.surfaces.get_mut(&above) else { return };
            let content = match surface.owed.take() {
                Some(seq) => UnitContent::Update(seq),
                None => UnitContent::Keep,
            };
            // It may build on the last commit's unit, which must not be replaced then.
            surface.forget_last();
            let number = surface.next_bare_unit(tick);
            shown = Some(Unit {
                surface: surface.wire,
                number,
                state: Vec::new(),
                content,
                offset: (0, 0),
                feedback: false,
                children: shown.into_iter().collect(),
            });
        }
        if let Some(unit) = shown {
            self.publish_bare_unit(&unit);
            self.send(&ToDisplay::Unit(unit));
        }
    }
}
