//! The pixels of one surface at a view: handed on as they were encoded for the active display, or encoded for the view
//! alone.
//!
//! A view *follows* while it has had every update that the active display was given, in their order. It leaves when its
//! link has no room, when the active display falls behind, and when an update is taken back; from then on it has pixels
//! of its own, by the same [painter](Painter) as the active display, which begins with the whole content. It follows
//! again once both have the same. Invariant: what a view is told to show was on the surface at one time, whole, and
//! with the scale and crop of that time.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::Region;
use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::action::{Action, Update};
use crate::message::WireId;

use super::super::connection::Connection;
use super::super::flush;
use super::super::painter::{Better, LEAST_PIECE, MOST_PIECE, Means, Painter, Step};
use super::super::shape::Shape;
use super::super::surface::Surface;
use super::super::watch::Whole;

/// How long a view that left the active display's updates encodes alone before it may follow again: who cannot keep up
/// now will not in a moment.
const ALONE: Duration = Duration::from_secs(2);
/// Between two contents that are encoded for a view alone.
const FRAME: Duration = Duration::from_nanos(16_666_667);
/// Bytes that may have been handed on and not shown yet, beside one update.
const MAX_UNNAMED: u64 = 4 << 20;

/// How often content was encoded for a view alone, and how often it was shared with the active display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Contents encoded for this view alone.
    pub own: u64,
    /// Updates handed on as they were encoded for the active display.
    pub shared: u64,
}

/// What a view looks at, and what it has to say.
pub(super) struct Look<'a> {
    pub(super) core: &'a Connection,
    pub(super) means: Means<'a>,
    /// The view can read what is encoded for the active display.
    pub(super) understands: bool,
    pub(super) actions: &'a mut VecDeque<Action>,
    pub(super) counts: &'a mut Counts,
}

/// The pixels of one surface.
#[derive(Debug)]
pub(super) struct Pixels {
    /// Its content is that of the view while that is alone.
    painter: Painter,
    way: Way,
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
    Alone(Alone),
}

/// What a view has that does not follow.
#[derive(Debug, Default)]
struct Alone {
    /// Of the surface's pixels that it has.
    version: u64,
    /// How the update that is being made is to be shown.
    coming: Option<Shape>,
    last: Option<Time>,
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
            painter: Painter::new(SurfaceId(surface.0)),
            way: Way::Alone(Alone::default()),
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
        self.way = Way::Alone(Alone::default());
        self.painter.forget();
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
    pub(super) fn hand_on(&mut self, update: &Update, room: bool, look: &mut Look<'_>) {
        let now = look.means.now;
        let next = match &self.way {
            Way::Follows { epoch, update: last, .. } => {
                *epoch == look.core.watching.epoch() && (update.fresh || update.seq.0 == last + 1)
            }
            Way::Alone(_) => update.fresh && !self.painter.has_begun() && now >= self.alone_until,
        };
        if next && room && look.understands && self.unnamed < MAX_UNNAMED {
            self.painter.forget();
            let handed_on = self.painter.pass_on(update);
            self.emit(handed_on, look);
            let from = match self.way {
                Way::Follows { from, .. } => from,
                Way::Alone(_) => update.seq.0,
            };
            self.way = Way::Follows { epoch: look.core.watching.epoch(), from, update: update.seq.0 };
            look.counts.shared += 1;
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
        self.ready = Some(UpdateSeq(self.painter.updates() - since));
        (self.shape, self.behind) = (whole.shape.or(self.shape), Some(now));
        self.latest = self.latest.filter(|latest| self.ready.is_some_and(|ready| *latest > ready));
    }

    fn emit(&mut self, update: Update, look: &mut Look<'_>) {
        self.latest = Some(update.seq);
        let bytes = update.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        self.unnamed += bytes;
        look.means.credit.spend(bytes);
        look.actions.push_back(Action::Update(update));
    }

    /// Brings the view's content up to the surface's. Says how far it is; what waits is to be asked again.
    pub(super) fn prepare(&mut self, surface: &Surface, look: &mut Look<'_>) -> Readiness {
        let theirs = &surface.painter;
        if theirs.size().is_none() {
            return Readiness::Settled;
        }
        let now = look.means.now;
        if let Way::Follows { epoch, update, .. } = self.way {
            let same =
                epoch == look.core.watching.epoch() && look.core.is_attached() && theirs.updates() == update;
            if same && theirs.is_settled() {
                self.behind = None;
                return Readiness::Settled;
            }
            let since = *self.behind.get_or_insert(now);
            if same && self.ready.is_some() {
                return Readiness::Older;
            }
            if same && (theirs.is_making() || now.since(since) < flush::PATIENCE) {
                return Readiness::Waits;
            }
            self.leave(now);
        }
        self.prepare_alone(surface, look)
    }

    /// All that is seen beside it is settled, too: the newest is shown.
    pub(super) fn settle(&mut self, surface: &Surface) {
        if self.follows() {
            self.get_ready(surface.shape);
        }
    }

    fn get_ready(&mut self, shape: Shape) {
        self.ready = self.latest.take().or(self.ready);
        self.shape = Some(shape);
    }

    fn prepare_alone(&mut self, surface: &Surface, look: &mut Look<'_>) -> Readiness {
        let now = look.means.now;
        let Way::Alone(alone) = &mut self.way else { return Readiness::Settled };
        // No pixels are kept for a view that can be sent none.
        if self.painter.content().is_none() && look.means.credit.content == 0 {
            return Readiness::Waits;
        }
        if !self.painter.has_begun() {
            if !alone.take_in(surface, &mut self.painter) {
                return Readiness::Waits;
            }
            if !self.painter.has_news() {
                self.rest(surface, look);
                return Readiness::Settled;
            }
            let early = alone.last.is_some_and(|last| now < last + FRAME);
            if look.means.credit.content == 0 || early {
                return Readiness::Waits;
            }
            self.painter.begin(&mut look.means, None);
            look.counts.own += 1;
            (alone.last, alone.coming) = (Some(now), Some(surface.shape));
        }
        let version = alone.version;
        if !self.go_on(look) {
            return Readiness::Waits;
        }
        let is_newest = version == surface.news.version() && self.shape == Some(surface.shape);
        if is_newest { Readiness::Settled } else { Readiness::Older }
    }

    /// Encodes a slice of what has begun; says whether that was all.
    fn go_on(&mut self, look: &mut Look<'_>) -> bool {
        while self.painter.has_begun() {
            if look.means.credit.encoded >= look.means.encoder.slice() {
                return false;
            }
            let Some(painted) = self.painter.step(&mut look.means, false, None) else { continue };
            self.emit(painted.update, look);
            if painted.whole {
                self.painter.forget_last();
                let Way::Alone(alone) = &mut self.way else { return true };
                alone.coming.take().into_iter().for_each(|shape| self.get_ready(shape));
            }
        }
        true
    }

    /// Nothing is new: what was lossy becomes better, and what is the same as the active display's follows that.
    fn rest(&mut self, surface: &Surface, look: &mut Look<'_>) {
        // The shape may be new with the same pixels.
        self.shape = Some(surface.shape);
        let (theirs, now) = (&surface.painter, look.means.now);
        let same = look.core.is_attached()
            && look.understands
            && now >= self.alone_until
            && theirs.videos_shown() == 0
            && [&self.painter, theirs].into_iter().all(|painter| painter.is_settled() && painter.is_exact());
        if same && theirs.updates() > 0 {
            let (epoch, update) = (look.core.watching.epoch(), theirs.updates());
            self.way = Way::Follows { epoch, from: update + 1, update };
            self.painter.forget();
            return;
        }
        let credit = &look.means.credit;
        if credit.refinement < LEAST_PIECE || credit.encoded >= look.means.encoder.slice() {
            return;
        }
        let bytes = credit.refinement.min(MOST_PIECE);
        let is_due = |how: &Better| self.painter.wants(*how).is_some_and(|due| due <= now);
        let how = [Better::Improve, Better::Refine].into_iter().find(is_due);
        let painted =
            how.and_then(|how| self.painter.improve(Step { how, bytes, near: None }, &mut look.means));
        if let Some(painted) = painted {
            self.emit(painted.update, look);
            self.get_ready(surface.shape);
        }
    }

    /// Bytes of pixels that are kept for it alone.
    pub(super) fn kept(&self) -> u64 {
        self.painter.bytes()
    }

    /// When it can be made better.
    pub(super) fn wants_at(&self) -> Option<Time> {
        [Better::Improve, Better::Refine].into_iter().filter_map(|how| self.painter.wants(how)).min()
    }
}

impl Alone {
    /// Takes in what is new of the surface's pixels, unless they cannot be looked at now.
    fn take_in(&mut self, surface: &Surface, painter: &mut Painter) -> bool {
        let Some(content) = surface.painter.content() else { return false };
        let version = surface.news.version();
        let changed = match self.version == version {
            true => Some(Region::default()),
            false => surface.news.since(self.version),
        };
        painter.follow(content, changed.as_ref());
        self.version = version;
        true
    }
}
