//! The pixels of one surface at a view: handed on as they were encoded for the active display, or encoded for the view alone.
//!
//! A view *follows* while it has had every update that the active display was given, in their order. It leaves when its
//! link has no room, when the active display falls behind, and when an update is taken back; from then on a draft of its own
//! knows what it has, which begins with the whole content. It follows again once both have the same. Invariant: what a
//! view is told to show was on the surface at one time, whole, and with the scale and crop of that time.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::{Allowance, Content, Draft, Encoder, Layout, Region};
use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::action::{Action, Update};
use crate::message::WireId;

use super::super::flush::{Credit, LEAST_ALLOWANCE, SMALL};
use super::super::surface::Surface;
use super::super::watch::{Shape, Whole};
use super::super::{Connection, flush};
use super::Counts;

/// How long a view that left the active display's updates encodes alone before it may follow again: who cannot keep up now
/// will not in a moment.
const ALONE: Duration = Duration::from_secs(2);
/// Between two contents that are encoded for a view alone.
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// Bytes that may have been handed on and not shown yet, beside one update.
const MAX_UNNAMED: u64 = 4 << 20;
/// Credit below which making content better would bring little more than heads, and beyond which a piece would take long.
const LEAST_PIECE: u64 = 1000;
const MOST_PIECE: u64 = 128 << 10;
/// Quality of pictures where none is asked for.
const ANY_QUALITY: u8 = 75;

/// What encoding takes.
pub(super) struct Means<'a> {
    pub(super) now: Time,
    pub(super) core: &'a Connection,
    pub(super) encoder: &'a mut Encoder,
    pub(super) credit: &'a mut Credit,
    /// Quality of what is lossy for now; `None` if nothing may be.
    pub(super) lossy: Option<u8>,
    /// The view can read what is encoded for the active display.
    pub(super) understands: bool,
    pub(super) actions: &'a mut VecDeque<Action>,
    pub(super) counts: &'a mut Counts,
}

/// The pixels of one surface.
#[derive(Debug)]
pub(super) struct Pixels {
    /// The surface's name at the view.
    surface: SurfaceId,
    way: Way,
    updates: u64,
    /// The newest update, until it is ready.
    latest: Option<UpdateSeq>,
    /// The update that the next unit is to name.
    ready: Option<UpdateSeq>,
    /// How that, or what is there, is to be shown; `None` as it was.
    shape: Option<Shape>,
    /// Bytes that were handed on since a unit named an update.
    unnamed: u64,
    /// Until then it does not follow.
    alone_until: Time,
    /// Since when the active display is behind.
    behind: Option<Time>,
}

#[derive(Debug)]
enum Way {
    /// It has what the active display has: up to this update of this epoch. What was handed on begins with `from`.
    Follows {
        epoch: u64,
        from: u64,
        update: u64,
    },
    Alone(Box<Alone>),
}

/// What a view has that does not follow.
#[derive(Debug, Default)]
struct Alone {
    draft: Option<Draft>,
    /// Of the surface's pixels that are in it.
    version: u64,
    /// What is being encoded.
    coming: Option<Coming>,
    last: Option<Time>,
}

#[derive(Debug)]
struct Coming {
    shape: Shape,
    fresh: bool,
    chunks: Vec<Vec<u8>>,
    length: u64,
}

/// What of a surface's content a view has in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Readiness {
    /// The newest.
    Settled,
    /// An older one, which was on the surface at one time.
    Older,
    /// None that it was not told to show already.
    Waits,
}

impl Pixels {
    pub(super) fn new(surface: WireId) -> Self {
        Self {
            surface: SurfaceId(surface.0),
            way: Way::Alone(Box::default()),
            updates: 0,
            latest: None,
            ready: None,
            shape: None,
            unnamed: 0,
            alone_until: Time::ZERO,
            behind: None,
        }
    }

    /// Whether it has what the active display has.
    pub(super) fn follows(&self) -> bool {
        matches!(self.way, Way::Follows { .. })
    }

    /// The view has nothing of it any more.
    pub(super) fn renew(&mut self) {
        self.go_alone();
    }

    fn go_alone(&mut self) {
        self.way = Way::Alone(Box::default());
        (self.latest, self.ready, self.shape) = (None, None, None);
        (self.behind, self.unnamed) = (None, 0);
    }

    /// The active display's updates are no more of use.
    pub(super) fn leave(&mut self, now: Time) {
        self.go_alone();
        self.alone_until = now + ALONE;
    }

    /// The update that the next unit names.
    pub(super) fn take_ready(&mut self) -> Option<UpdateSeq> {
        self.unnamed = 0;
        self.ready.take()
    }

    /// How the content is to be shown that is there, or is named with that; `None` if as before.
    pub(super) fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// The active display is given an update: hands it on if it is the next one, and there is room.
    pub(super) fn hand_on(&mut self, update: &Update, room: bool, means: &mut Means<'_>) {
        let now = means.now;
        let next = match &self.way {
            Way::Follows { epoch, update: last, .. } => {
                *epoch == means.core.epoch && (update.fresh || update.seq.0 == last + 1)
            }
            Way::Alone(alone) => update.fresh && alone.coming.is_none() && now >= self.alone_until,
        };
        if next && room && means.understands && self.unnamed < MAX_UNNAMED {
            self.emit(Update { chunks: update.chunks.clone(), ..*update }, means);
            let from = match self.way {
                Way::Follows { from, .. } => from,
                Way::Alone(_) => update.seq.0,
            };
            self.way = Way::Follows { epoch: means.core.epoch, from, update: update.seq.0 };
            means.counts.shared += 1;
        } else if self.follows() {
            self.leave(now);
        }
    }

    /// A content has left for the active display as a whole: it can be shown if it was handed on.
    pub(super) fn complete(&mut self, now: Time, whole: &Whole) {
        let Way::Follows { from, update, .. } = self.way else { return };
        let Some(since) = update.checked_sub(whole.update.0).filter(|_| whole.update.0 >= from) else {
            return;
        };
        self.ready = Some(UpdateSeq(self.updates - since));
        (self.shape, self.behind) = (whole.shape.or(self.shape), Some(now));
        self.latest = self.latest.filter(|latest| self.ready.is_some_and(|ready| *latest > ready));
    }

    fn emit(&mut self, update: Update, means: &mut Means<'_>) {
        self.updates += 1;
        let seq = UpdateSeq(self.updates);
        self.latest = Some(seq);
        let bytes = update.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        self.unnamed += bytes;
        means.credit.spend(bytes);
        means.actions.push_back(Action::Update(Update { surface: self.surface, seq, ..update }));
    }

    /// Brings the view's content up to the surface's. Says how far it is; what waits is to be asked again.
    pub(super) fn prepare(&mut self, surface: &Surface, means: &mut Means<'_>) -> Readiness {
        let Some(theirs) = &surface.draft else { return Readiness::Settled };
        if let Way::Follows { epoch, update, .. } = self.way {
            let same = epoch == means.core.epoch && means.core.attached && surface.updates == update;
            if same && is_settled(theirs) {
                self.behind = None;
                return Readiness::Settled;
            }
            let since = *self.behind.get_or_insert(means.now);
            if same && self.ready.is_some() {
                return Readiness::Older;
            }
            if same && (theirs.is_making() || means.now.since(since) < flush::PATIENCE) {
                return Readiness::Waits;
            }
            self.leave(means.now);
        }
        self.prepare_alone(surface, theirs, means)
    }

    /// All that is seen beside it is settled, too: the newest is shown.
    pub(super) fn settle(&mut self, surface: &Surface) {
        if self.follows() {
            self.get_ready(Shape::of(surface));
        }
    }

    fn get_ready(&mut self, shape: Shape) {
        self.ready = self.latest.take().or(self.ready);
        self.shape = Some(shape);
    }

    fn prepare_alone(&mut self, surface: &Surface, theirs: &Draft, means: &mut Means<'_>) -> Readiness {
        let Way::Alone(alone) = &mut self.way else { return Readiness::Settled };
        // No pixels are kept for a view that can be sent none.
        if alone.draft.is_none() && means.credit.content == 0 {
            return Readiness::Waits;
        }
        if alone.coming.is_none() {
            if !alone.take_in(surface, theirs) {
                self.rest(surface, theirs, means);
                return Readiness::Settled;
            }
            let early = alone.last.is_some_and(|last| means.now < last + FRAME);
            if means.credit.content == 0 || early {
                return Readiness::Waits;
            }
            alone.begin(surface, means);
        }
        let version = alone.version;
        if !self.go_on(means) {
            return Readiness::Waits;
        }
        let is_newest = version == surface.news.version() && self.shape == Some(Shape::of(surface));
        if is_newest { Readiness::Settled } else { Readiness::Older }
    }

    /// Encodes a slice of what has begun; says whether that was all.
    fn go_on(&mut self, means: &mut Means<'_>) -> bool {
        loop {
            let Way::Alone(alone) = &mut self.way else { return true };
            let Alone { draft: Some(draft), coming, .. } = &mut **alone else { return true };
            let Some(mut now) = coming.take() else { return true };
            if means.credit.encoded >= means.encoder.slice() {
                *coming = Some(now);
                return false;
            }
            let before = draft.unmade();
            let chunks = means.encoder.step(draft, None);
            means.credit.encoded += before - draft.unmade();
            now.length += chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            now.chunks.extend(chunks);
            let done = !draft.is_making();
            if !done && now.length < SMALL {
                *coming = Some(now);
                continue;
            }
            let Coming { shape, fresh, chunks, .. } = now;
            let update = update_of(draft.content(), fresh, chunks);
            if done {
                draft.forget_last();
            } else {
                *coming = Some(Coming { shape, fresh: false, chunks: Vec::new(), length: 0 });
            }
            self.emit(update, means);
            if done {
                self.get_ready(shape);
            }
        }
    }

    /// Nothing is new: what was lossy becomes better, and what is the same as the active display's follows that.
    fn rest(&mut self, surface: &Surface, theirs: &Draft, means: &mut Means<'_>) {
        // The shape may be new with the same pixels.
        self.shape = Some(Shape::of(surface));
        let Way::Alone(alone) = &mut self.way else { return };
        let Some(draft) = &mut alone.draft else { return };
        let same = means.core.attached
            && means.understands
            && means.now >= self.alone_until
            && theirs.films() == 0
            && [&*draft, theirs].into_iter().all(|draft| is_settled(draft) && draft.is_exact());
        if same && surface.updates > 0 {
            let (epoch, update) = (means.core.epoch, surface.updates);
            self.way = Way::Follows { epoch, from: update + 1, update };
            return;
        }
        let now = means.now.since_start();
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now);
        let wants = draft.wants();
        if means.credit.refinement < LEAST_PIECE || means.credit.encoded >= means.encoder.slice() {
            return;
        }
        let quality = means.lossy.unwrap_or(ANY_QUALITY);
        let bytes = means.credit.refinement.min(MOST_PIECE);
        let allowance = Allowance { bytes, quality, now };
        let chunks = match () {
            () if is_due(wants.better) => means.encoder.improve(draft, &allowance, None),
            () if is_due(wants.exact) => means.encoder.refine(draft, &allowance),
            () => Vec::new(),
        };
        if !chunks.is_empty() {
            means.credit.encoded = means.credit.encoded.saturating_add(means.encoder.slice());
            let update = update_of(draft.content(), false, chunks);
            self.emit(update, means);
            self.get_ready(Shape::of(surface));
        }
    }

    /// Bytes of pixels that are kept for it alone.
    pub(super) fn kept(&self) -> u64 {
        let Way::Alone(alone) = &self.way else { return 0 };
        alone.draft.as_ref().map_or(0, |draft| draft.content().pixels().len() as u64)
    }

    /// When it can be made better.
    pub(super) fn wants_at(&self) -> Option<Time> {
        let Way::Alone(alone) = &self.way else { return None };
        let wants = alone.draft.as_ref()?.wants();
        wants.better.into_iter().chain(wants.exact).min().map(|due| Time::ZERO + due)
    }
}

impl Alone {
    /// Takes in what is new of the surface's pixels; says whether the view lacks any.
    fn take_in(&mut self, surface: &Surface, theirs: &Draft) -> bool {
        let (content, version) = (theirs.content(), surface.news.version());
        let fits = |draft: &&mut Draft| {
            (draft.content().size(), draft.content().format()) == (content.size(), content.format())
        };
        let draft = match self.draft.as_mut().filter(fits) {
            Some(draft) => {
                if self.version != version {
                    let region = surface.news.since(self.version);
                    absorb(draft, content, &region.unwrap_or_else(|| Region::full(content.size())));
                }
                draft
            }
            None => {
                let draft = self.draft.insert(Draft::new(content.size(), content.format()));
                absorb(draft, content, &Region::full(content.size()));
                draft
            }
        };
        self.version = version;
        draft.is_fresh() || !draft.changed().is_empty()
    }

    fn begin(&mut self, surface: &Surface, means: &mut Means<'_>) {
        let Some(draft) = &mut self.draft else { return };
        let fresh = draft.is_fresh();
        match means.lossy.zip(means.credit.rate) {
            Some((quality, _)) => {
                let bytes = means.credit.content.max(LEAST_ALLOWANCE);
                let allowance = Allowance { bytes, quality, now: means.now.since_start() };
                means.encoder.begin_within(draft, &allowance, None);
            }
            None => means.encoder.begin(draft),
        }
        means.counts.own += 1;
        self.last = Some(means.now);
        self.coming = Some(Coming { shape: Shape::of(surface), fresh, chunks: Vec::new(), length: 0 });
    }
}

fn update_of(content: &Content, fresh: bool, chunks: Vec<Vec<u8>>) -> Update {
    let (size, format) = (content.size(), content.format());
    Update { surface: SurfaceId(0), seq: UpdateSeq(0), size, format, fresh, chunks }
}

/// Whether the display side has been given all there is.
fn is_settled(draft: &Draft) -> bool {
    draft.changed().is_empty() && !draft.is_fresh() && !draft.is_making()
}

fn absorb(draft: &mut Draft, content: &Content, region: &Region) {
    let layout = Layout::new(0, content.stride() as u64, content.size(), content.format());
    let Ok(layout) = layout else { return };
    let read = |offset: u64, target: &mut [u8]| {
        let start = offset as usize;
        target.copy_from_slice(&content.pixels()[start..start + target.len()]);
        Ok::<(), std::convert::Infallible>(())
    };
    match draft.absorb(&layout, region, read) {
        Ok(_) => {}
        Err(never) => match never {},
    }
}
