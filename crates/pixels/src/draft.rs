//! The newest content of a surface, and what the display side has instead.
//!
//! A [`Draft`] takes in commits; an [`Encoder`](crate::Encoder) takes updates out of it. Beside the
//! content it keeps the rows of tiles (of 64 × 64 pixels) that have changed since the last update, as they
//! were before: so several commits become one update, and its copies name pixels that the display has. It
//! keeps the same for the last update, which can be taken back as long as no display was sent it.
//!
//! Memory: the content, at most once more for what has changed since the last update, at most once more for
//! what the last update changed, and a 32nd for hashes. It does not know numbers of updates or who is sent them.
//!
//! The one invariant: content and past are equal outside the changed region, and the past is the
//! content after the last update that was not taken back (zeros when the draft is fresh).

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use crate::chunk::Copy;
use crate::content::{Content, Layout};
use crate::fidelity::Fidelity;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::hashes::Hashes;
use crate::making::Making;
use crate::motion::Motion;
use crate::region::Region;
use crate::scroll::{self, Shifts};
use crate::tighten::Tightener;
use crate::tiles::{self, Past, Tiles};
use crate::triage;

/// The newest content of a surface, and what has changed since the last update.
pub struct Draft {
    /// Others may look at it while updates are made; it is copied if they still do when it changes.
    content: Arc<Content>,
    present: Level,
    last: Option<Level>,
    /// How well the display side knows the past.
    pub(crate) fidelity: Fidelity,
    pub(crate) motion: Motion,
    /// The last update, while chunks of it are still to be made from the content.
    pub(crate) making: Option<Making>,
    cover: Cover,
    /// Of the past; none where there is none.
    pub(crate) hashes: Hashes,
}

/// How updates cover those before them.
#[derive(Default)]
struct Cover {
    /// What the next update is to cover.
    asked: Region,
    /// Whether the last one does.
    covers: bool,
    /// What has to be painted to make up for the last one.
    painted: Option<Region>,
}

/// What lies between two contents.
#[derive(Default)]
struct Level {
    changed: Region,
    before: Tiles,
    /// The content before is nothing but zeros, and no tiles are kept.
    fresh: bool,
    /// The region comes from several commits: pixels in it may have changed back.
    folded: bool,
    /// How well the display side knows the content before; of the last update only.
    fidelity: Fidelity,
}

impl Draft {
    /// Content of zeros for a surface that the display side has nothing of.
    pub fn new(size: Size, format: Format) -> Self {
        let present = Level { fresh: true, ..Level::default() };
        Self {
            content: Arc::new(Content::new(size, format)),
            present,
            last: None,
            fidelity: Fidelity::default(),
            motion: Motion::default(),
            making: None,
            cover: Cover::default(),
            hashes: Hashes::default(),
        }
    }

    /// The newest content.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The same, to be looked at wherever the draft is.
    pub fn share_content(&self) -> Arc<Content> {
        Arc::clone(&self.content)
    }

    /// Where it may differ from what the display side has once all updates so far have reached it.
    pub fn changed(&self) -> &Region {
        &self.present.changed
    }

    /// Whether the next update starts from zeros instead of from the one before it: the display side
    /// must then begin with a new content.
    pub fn is_fresh(&self) -> bool {
        self.present.fresh
    }

    /// As [`Content::absorb`]; what changes is noted for the next update. An update that is being made is given up:
    /// the draft then is as after [`Self::renew`].
    ///
    /// # Panics
    /// When the layout was made for another size or format.
    ///
    /// # Errors
    /// What `read` returns, at once. The content is then unspecified inside the damage, all of which
    /// counts as changed.
    pub fn absorb<E>(
        &mut self,
        layout: &Layout,
        damage: &Region,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Region, E> {
        self.give_up();
        let Level { changed, before, fresh, folded, .. } = &mut self.present;
        let before = (!*fresh).then_some(before);
        let result = Arc::make_mut(&mut self.content).absorb_keeping(layout, damage, before, read);
        let new = match &result {
            Ok(new) => new,
            Err(_) => &damage.clip(self.content.size()),
        };
        *folded |= result.is_err() || !(changed.is_empty() || new.is_empty());
        changed.union(new);
        result
    }

    /// As [`Self::absorb`], from memory that the program may write meanwhile. What it changes during the call may be
    /// taken over or not, pixel by pixel. Up to `threads` threads share the work where there is much, the caller's
    /// among them.
    ///
    /// # Panics
    /// When the layout was made for another size or format, or ends beyond the memory.
    pub fn absorb_shared(
        &mut self,
        layout: &Layout,
        damage: &Region,
        memory: &[AtomicU8],
        threads: usize,
    ) -> Region {
        self.give_up();
        let Level { changed, before, fresh, folded, .. } = &mut self.present;
        let before = (!*fresh).then_some(before);
        let content = Arc::make_mut(&mut self.content);
        let new = content.absorb_shared_keeping(layout, damage, before, memory, threads);
        *folded |= !(changed.is_empty() || new.is_empty());
        changed.union(&new);
        new
    }

    /// Takes over a whole content, as [`Self::absorb`]. One of another size or format makes the draft fresh.
    pub fn replace(&mut self, content: Content) {
        let (size, format) = (content.size(), content.format());
        if (size, format) != (self.content.size(), self.content.format()) {
            self.content = Arc::new(content);
            return self.renew();
        }
        let Ok(layout) = Layout::new(0, content.stride() as u64, size, format) else { return };
        let read = |offset: u64, target: &mut [u8]| {
            let start = offset as usize;
            target.copy_from_slice(&content.pixels()[start..start + target.len()]);
            Ok::<(), Infallible>(())
        };
        match self.absorb(&layout, &Region::full(size), read) {
            Ok(_) => {}
            Err(never) => match never {},
        }
    }

    /// The display side has nothing of it any more: the next update starts from zeros and says everything.
    pub fn renew(&mut self) {
        let changed = Region::full(self.content.size());
        self.present = Level { changed, fresh: true, ..Level::default() };
        self.last = None;
        self.fidelity = Fidelity::default();
        self.motion = Motion::default();
        self.making = None;
        self.cover = Cover::default();
        self.hashes.clear();
    }

    /// The next update is to paint this, too, so that it can be applied where the last ones are missing that changed no
    /// more than this: [`Self::painted`] of all of them. [`Self::covers`] says whether it does.
    pub fn cover(&mut self, painted: Region) {
        self.cover.asked = painted;
    }

    /// Whether the last update can be applied where those are missing that it was to [cover](Self::cover).
    pub fn covers(&self) -> bool {
        self.cover.covers
    }

    /// What a later update has to paint to cover the last one; `None` if none can: it begins anew, copies, has frames
    /// of videos, or is in many pieces.
    pub fn painted(&self) -> Option<&Region> {
        self.cover.painted.as_ref()
    }

    /// Adds to a plan what it is to cover, and notes what covers that in turn. An update that copies, or that is
    /// `alone`, covers nothing.
    pub(crate) fn extend(&mut self, plan: &mut Plan, alone: bool) {
        let asked = std::mem::take(&mut self.cover.asked);
        self.cover = Cover::default();
        let changed = &self.present.changed;
        let few = plan.rects.len().max(changed.rects().len()) <= MAX_PAINTED;
        if alone || self.present.fresh || !plan.copies.is_empty() || !few {
            return;
        }
        let mut painted = Region::around(&plan.rects);
        painted.union(changed);
        if !asked.is_empty() {
            let mut all = painted.clone();
            all.union(&asked);
            plan.rects = all.clip(self.content.size()).rects().to_vec();
            self.cover.covers = true;
            // What is lossy there was perhaps made better, which is lost with the update.
            if !self.fidelity.is_exact() {
                painted = all;
            }
        }
        self.cover.painted = Some(painted);
    }

    /// Whether an update has begun of which chunks are still to be made, see [`Encoder::step`](crate::Encoder::step).
    pub fn is_making(&self) -> bool {
        self.making.is_some()
    }

    /// Whether all that is left of it are frames of videos that are being made elsewhere.
    pub fn awaits_frames(&self) -> bool {
        self.making.as_ref().is_some_and(Making::waits)
    }

    /// How many pixels of that are left to encode.
    pub fn unmade(&self) -> u64 {
        self.making.as_ref().map_or(0, Making::pixels)
    }

    /// An update of which chunks are still to be made will not be: this side does not know what the display side has.
    pub(crate) fn give_up(&mut self) {
        if self.is_making() {
            self.renew();
        }
    }

    /// Whether the video of this number goes on; what was kept to make its frames is of no more use if not.
    pub fn has_video(&self, stream: u8) -> bool {
        self.motion.has(stream)
    }

    /// When its videos have paused for too long, by the clock of the allowances; then [`Self::end_paused_videos`] is
    /// due.
    pub fn videos_end(&self) -> Option<Duration> {
        self.motion.ends_at()
    }

    /// Ends the videos that have paused for too long.
    pub fn end_paused_videos(&mut self, now: Duration) {
        self.motion.end_paused(now);
    }

    /// How many videos there are.
    pub fn videos(&self) -> usize {
        self.motion.count()
    }

    /// Whether the display side knows every pixel of the past as it is, once all updates so far have reached it.
    pub fn is_exact(&self) -> bool {
        self.fidelity.is_exact()
    }

    /// About how many pixels of the past the display side does not know exactly; never fewer than there are.
    pub fn lossy_area(&self) -> u64 {
        self.fidelity.lossy_area().min(self.content.size().rect().area())
    }

    /// Where the display side may not know the past exactly.
    pub fn lossy(&self) -> impl Iterator<Item = Rect> {
        self.fidelity.lossy(self.content.size()).map(|spot| spot.rect)
    }

    /// From when on [`Encoder::improve`](crate::Encoder::improve) has something to do, and
    /// [`Encoder::refine`](crate::Encoder::refine), by the clock of the allowances. Either may find that what it looked
    /// at has to wait; asked again, this then says until when.
    pub fn wants(&self) -> Wants {
        if !self.is_settled() {
            return Wants::default();
        }
        let pictures = self.fidelity.coarse_since(true).map(|since| since + self.fidelity.calm(triage::CALM));
        Wants {
            better: self.fidelity.coarse_since(false).into_iter().chain(pictures).min(),
            exact: self.fidelity.lossy_since().map(|since| since + self.fidelity.calm(triage::REST)),
        }
    }

    /// Whether the past is all there is: nothing waits for an update.
    pub(crate) fn is_settled(&self) -> bool {
        self.present.changed.is_empty() && !self.present.fresh && !self.is_making()
    }

    /// Whether [`Self::take_back`] would do anything. Not with frames of videos, which later ones build upon.
    pub fn can_take_back(&self) -> bool {
        self.last.is_some()
    }

    /// Undoes the last [`Encoder::encode`](crate::Encoder::encode), whose update was never sent: the
    /// next one builds on what was before it and says all that it said. Goes back one update, once;
    /// `false` when there is none.
    pub fn take_back(&mut self) -> bool {
        let Some(last) = self.last.take() else { return false };
        // Nothing of it has been made, or all.
        self.making = None;
        self.hashes.clear();
        let present = &mut self.present;
        present.fresh = last.fresh;
        present.folded |= last.folded || !(present.changed.is_empty() || last.changed.is_empty());
        present.changed.union(&last.changed);
        self.fidelity = last.fidelity;
        if last.fresh {
            present.before = Tiles::default();
        } else {
            present.before.put_below(last.before);
        }
        true
    }

    /// Frees what [`Self::take_back`] would need: the last update is on its way.
    pub fn forget_last(&mut self) {
        if let Some(last) = self.last.take() {
            last.before.recycle(&mut self.present.before);
        }
    }

    /// What the display side has to do to get the newest content; [`Self::encoded`] follows.
    pub(crate) fn plan(&mut self) -> Plan {
        let Level { changed, before, fresh, folded, .. } = &self.present;
        let as_it_is =
            || Plan { copies: Vec::new(), rects: changed.clip(self.content.size()).rects().to_vec() };
        if *fresh {
            self.hashes.clear();
            return as_it_is();
        }
        let past = Past { content: &self.content, tiles: before };
        match scroll::find(past, &mut self.hashes) {
            Some((copies, shifts)) => {
                let rects = differences(past, Some(&shifts));
                Plan { copies, rects }
            }
            None if *folded => Plan { copies: Vec::new(), rects: differences(past, None) },
            None => as_it_is(),
        }
    }

    /// The content after the last update.
    #[cfg(test)]
    pub(crate) fn past(&self) -> Option<Past<'_>> {
        (!self.present.fresh).then_some(Past { content: &self.content, tiles: &self.present.before })
    }

    /// The plan is carried out: the present is the past of the next update, and the display side knows it that well.
    pub(crate) fn encoded(&mut self, fidelity: Fidelity) {
        let mut present = std::mem::take(&mut self.present);
        present.fidelity = std::mem::replace(&mut self.fidelity, fidelity);
        if let Some(last) = self.last.replace(present) {
            last.before.recycle(&mut self.present.before);
        }
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft")
            .field("content", &self.content)
            .field("changed", &self.present.changed)
            .field("fresh", &self.present.fresh)
            .finish_non_exhaustive()
    }
}

/// From when on the display side can be told more about what it shows already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Previews can become text and pictures.
    pub better: Option<Duration>,
    /// Lossy pixels can become exact.
    pub exact: Option<Duration>,
}

/// Rectangles of an update that can be covered: it is small.
const MAX_PAINTED: usize = 32;

/// How to get from the past to the present: first the copies, all from the past, then the rectangles.
pub(crate) struct Plan {
    pub(crate) copies: Vec<Copy>,
    pub(crate) rects: Vec<Rect>,
}

/// Tight rectangles around what the present is not where the past is shifted that way.
fn differences(past: Past<'_>, shifts: Option<&Shifts>) -> Vec<Rect> {
    let size = past.content.size();
    let pixel = past.content.format().bytes_per_pixel();
    let mut tightener = Tightener::new(size.width, pixel);
    tightener.begin(size.rect());
    for row in 0..tiles::rows(size) {
        let looked_at = |column: &u32| {
            past.tiles.kept(*column, row) != 0 || shifts.is_some_and(|shifts| shifts.reach(*column, row))
        };
        let columns: Vec<u32> = (0..tiles::columns(size)).filter(looked_at).collect();
        let rect = tiles::tile(size, 0, row);
        for y in rect.y..rect.bottom() {
            for &column in &columns {
                let source = shifts.map_or(y, |shifts| shifts.source(column, y));
                if source == y && !past.changed(column, y) {
                    continue;
                }
                let (old, new) = (past.piece(column, source), tiles::piece(past.content, column, y));
                tightener.row(y, column * tiles::TILE, old, new);
            }
        }
    }
    tightener.end();
    tightener.into_region().rects().to_vec()
}
