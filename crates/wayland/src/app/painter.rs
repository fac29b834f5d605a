//! The pixels of one surface, and what one display is told of them: the active one, or a viewer.
//!
//! A painter *absorbs* what is new, makes updates of what the display lacks in *steps*, *improves* what was lossy at
//! first, what is *attended* to before the rest, and *takes back* an update of which nothing has left. It numbers its
//! updates. Knows no units, no pace and no other surface: what may be made now comes as [`Means`], and the caller
//! decides who is given an update. Invariant: what differs between the content and what the display has, once all
//! updates are there, is known to be changed or lossy.

use std::convert::Infallible;
use std::sync::atomic::AtomicU8;

use wayferry_pixels::video;
use wayferry_pixels::{Allowance, Content, Draft, Encoder, Format, Layout, Region, Size, Wants, Watch};
use wayferry_proto::{SurfaceId, Time, UpdateSeq, Worth};

use crate::action::Update;
use crate::codec;
use crate::workers::Workers;

use super::canvas::{Canvas, Outline};
use super::credit::{Credit, SMALL};
use super::videos::{Maker, Videos};

/// See the module.
#[derive(Debug)]
pub(super) struct Painter {
    /// The surface's name at the display.
    surface: SurfaceId,
    /// Its content and what the display lacks of that.
    canvas: Canvas,
    videos: Videos,
    /// How often the display has lost the content while videos were in it.
    lost_videos: u32,
    /// Updates so far; they are their numbers.
    updates: u64,
    /// What has been made of the next one.
    coming: Option<Coming>,
}

/// An update that is being made.
#[derive(Debug)]
struct Coming {
    fresh: bool,
    chunks: Vec<Vec<u8>>,
    length: u64,
}

/// What painting takes.
pub(super) struct Means<'a> {
    pub(super) now: Time,
    pub(super) encoder: &'a mut Encoder,
    pub(super) credit: &'a mut Credit,
    /// Quality of what is lossy at first; `None` if nothing may be.
    pub(super) lossy: Option<u8>,
}

/// What videos take besides.
pub(super) struct Screen<'a> {
    pub(super) codec: &'a mut codec::Maker,
    /// How many more may begin.
    pub(super) room: usize,
}

/// How an update makes content better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    /// Previews become text and pictures.
    Improve,
    /// What rests becomes exact.
    Refine,
}

/// A step to make content better: of about so many bytes, where the user attends to it before elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) how: Better,
    pub(super) bytes: u64,
    pub(super) near: Option<(u32, u32)>,
}

/// An update that has been made.
#[derive(Debug)]
pub(super) struct Painted {
    pub(super) update: Update,
    /// The length of its chunks.
    pub(super) bytes: u64,
    /// It may hold frames of videos.
    pub(super) videos: bool,
    /// The display lacks nothing more of what was begun.
    pub(super) whole: bool,
}

/// How well the display side knows a surface's content, once all that has left is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fidelity {
    /// The surface.
    pub surface: SurfaceId,
    /// Its size in buffer pixels.
    pub size: Size,
    /// About how many pixels are not exact, never fewer than there are; 0 if all are.
    pub lossy: u64,
    /// How many videos are in it.
    pub videos: usize,
}

impl Painter {
    pub(super) fn new(surface: SurfaceId) -> Self {
        let (videos, lost_videos) = (Videos::default(), 0);
        Self { surface, canvas: Canvas::Blank, videos, lost_videos, updates: 0, coming: None }
    }

    /// The painter itself, for a worker to begin or go on with an update. Until it [comes back](Self::come_back), its
    /// content can be looked at here, and nothing be done to it.
    pub(super) fn lend(&mut self) -> Option<Self> {
        let outline = Outline::new(self.canvas.draft()?, self.fidelity()?, self.videos());
        let Self { surface, lost_videos, updates, .. } = *self;
        let (canvas, videos) = (Canvas::Lent(outline), Videos::default());
        Some(std::mem::replace(self, Self { surface, canvas, videos, lost_videos, updates, coming: None }))
    }

    /// What is here of the pixels, for a worker to compare a buffer with. Until it is [put back](Self::put_back), there
    /// is nothing to look at here.
    pub(super) fn lend_draft(&mut self) -> Option<Box<Draft>> {
        let outline = Outline::bare(self.canvas.draft()?, self.fidelity()?, self.videos());
        match std::mem::replace(&mut self.canvas, Canvas::Lent(outline)) {
            Canvas::Here(draft) => Some(draft),
            Canvas::Blank | Canvas::Lent(_) => None,
        }
    }

    /// It is back; or there is another, with content of another size or format, of which the display has nothing.
    pub(super) fn put_back(&mut self, mut draft: Box<Draft>) {
        if self.canvas.outline().is_some_and(|outline| outline.forget_last) {
            draft.forget_last();
        }
        self.canvas = Canvas::Here(draft);
    }

    /// Whether a worker has it.
    pub(super) fn is_lent(&self) -> bool {
        self.canvas.outline().is_some()
    }

    /// What was lent is back. It is of no use if there is another content now.
    pub(super) fn come_back(&mut self, lent: Self) {
        let Some(Outline { forget_last, .. }) = self.canvas.outline() else { return };
        let forget_last = *forget_last;
        *self = lent;
        if forget_last {
            self.forget_last();
        }
    }

    /// The pixels; `None` while the surface has no content, and while a worker compares a buffer with it.
    pub(super) fn content(&self) -> Option<&Content> {
        self.canvas.content()
    }

    /// The size of the content; `None` while there is none.
    pub(super) fn size(&self) -> Option<Size> {
        self.canvas.like().map(|(size, _)| size)
    }

    /// Bytes of it.
    pub(super) fn bytes(&self) -> u64 {
        let bytes = |(size, format): (Size, Format)| size.rect().area() * format.bytes_per_pixel() as u64;
        self.canvas.like().map_or(0, bytes)
    }

    /// Whether its content is like this.
    pub(super) fn fits(&self, size: Size, format: Format) -> bool {
        self.canvas.like() == Some((size, format))
    }

    /// Is to have content like this. Returns whether that is another one, of which the display has nothing.
    pub(super) fn fit(&mut self, size: Size, format: Format) -> bool {
        let is_new = !self.fits(size, format);
        if is_new {
            self.canvas = Canvas::Here(Box::new(Draft::new(size, format)));
        }
        is_new
    }

    /// Takes in what has changed inside a region of content that [fits](Self::fit); returns where pixels differ.
    pub(super) fn absorb<E>(
        &mut self,
        layout: &Layout,
        region: &Region,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Region, E> {
        self.canvas.draft_mut().map_or(Ok(Region::default()), |draft| draft.absorb(layout, region, read))
    }

    /// As [`Self::absorb`], from memory that the program may write meanwhile.
    pub(super) fn absorb_shared(
        &mut self,
        layout: &Layout,
        region: &Region,
        memory: &[AtomicU8],
        threads: usize,
    ) -> Region {
        let Some(draft) = self.canvas.draft_mut() else { return Region::default() };
        draft.absorb_shared(layout, region, memory, threads)
    }

    /// Takes in content that is in memory, whether it fits or not: where it is known to have changed, else all of it.
    pub(super) fn follow(&mut self, content: &Content, changed: Option<&Region>) {
        let layout = Layout::new(0, content.stride() as u64, content.size(), content.format());
        let Ok(layout) = layout else { return };
        let read = |offset: u64, target: &mut [u8]| {
            let start = offset as usize;
            target.copy_from_slice(&content.pixels()[start..start + target.len()]);
            Ok::<(), Infallible>(())
        };
        let is_new = self.fit(content.size(), content.format());
        let full = Region::full(content.size());
        let region = changed.filter(|_| !is_new).unwrap_or(&full);
        if region.is_empty() {
            return;
        }
        match self.absorb(&layout, region, read) {
            Ok(_) => {}
            Err(never) => match never {},
        }
    }

    /// Takes in a whole content, of any size.
    pub(super) fn replace(&mut self, content: Content) {
        match &mut self.canvas {
            Canvas::Here(draft) => draft.replace(content),
            canvas => {
                let mut draft = Draft::new(content.size(), content.format());
                draft.replace(content);
                *canvas = Canvas::Here(Box::new(draft));
            }
        }
    }

    /// The surface has no content any more; what it had is freed by a worker if it is large.
    pub(super) fn unmap(&mut self, workers: &Workers) {
        let canvas = std::mem::take(&mut self.canvas);
        if canvas.like().is_some_and(|(size, _)| size.rect().area() > WORTH_A_WORKER) {
            workers.free(canvas);
        }
    }

    /// The display has been told that, or does not look any more: frees what was kept for it.
    pub(super) fn forget(&mut self) {
        (self.canvas, self.coming) = (Canvas::Blank, None);
        self.end_videos();
    }

    /// Whether the display lacks pixels.
    pub(super) fn has_news(&self) -> bool {
        self.canvas.draft().is_some_and(|draft| draft.is_fresh() || !draft.changed().is_empty())
    }

    /// At most how many bytes the next update has: the pixels that the display lacks.
    pub(super) fn changed_bytes(&self) -> u64 {
        let bytes =
            |draft: &Draft| draft.changed().area() * draft.content().format().bytes_per_pixel() as u64;
        self.canvas.draft().map_or(0, bytes)
    }

    /// Whether the display has been given all there is; it may be lossy.
    pub(super) fn is_settled(&self) -> bool {
        !self.has_news() && !self.is_making()
    }

    /// Whether nothing is lossy.
    pub(super) fn is_exact(&self) -> bool {
        match &self.canvas {
            Canvas::Blank => true,
            Canvas::Here(draft) => draft.is_exact(),
            Canvas::Lent(_) => false,
        }
    }

    /// Pixels that a worker would take next: of the update that has begun, or of all that the display lacks.
    pub(super) fn next_pixels(&self) -> u64 {
        let next = |draft: &Draft| if draft.is_making() { draft.unmade() } else { draft.changed().area() };
        self.canvas.draft().map_or(0, next)
    }

    /// Whether an update is being made.
    pub(super) fn is_making(&self) -> bool {
        self.is_lent() || self.canvas.draft().is_some_and(Draft::is_making)
    }

    /// Whether there is one to go on with by [`Self::step`].
    pub(super) fn has_begun(&self) -> bool {
        self.coming.is_some()
    }

    /// Whether all that is left of it are frames that are being made by the videos' thread.
    pub(super) fn awaits_frames(&self) -> bool {
        self.canvas.draft().is_some_and(Draft::awaits_frames)
    }

    /// The number of the newest update, or of the next.
    pub(super) fn updates(&self) -> u64 {
        self.updates
    }

    pub(super) fn next_update(&self) -> UpdateSeq {
        UpdateSeq(self.updates + 1)
    }

    /// Finds out which pixels the display lacks, and plans an update of them: what exceeds the credit is lossy, or
    /// frames of videos where there is a screen.
    pub(super) fn begin(&mut self, means: &mut Means<'_>, screen: Option<Screen<'_>>) {
        let Self { canvas: Canvas::Here(draft), videos, lost_videos, .. } = self else { return };
        let (fresh, changed) = (draft.is_fresh(), draft.changed().area());
        match means.lossy.zip(means.credit.rate) {
            Some((quality, rate)) => {
                let now = means.now;
                let bytes = means.credit.content.max(LEAST_ALLOWANCE);
                let allowance = Allowance { bytes, quality, now: now.since_start() };
                let count = means.credit.videos;
                let videos = &mut *videos;
                let mut maker = screen
                    .filter(|_| *lost_videos < MAX_LOST_VIDEOS)
                    .map(|Screen { codec, room }| Maker { videos, codec, count, room, quality, rate, now });
                let videos = maker.as_mut().map(|maker| maker as &mut dyn video::Videos);
                means.encoder.begin_within(draft, &allowance, videos);
            }
            None => means.encoder.begin(draft),
        }
        videos.keep(draft);
        if draft.videos() > 0 && !draft.awaits_frames() {
            // Their frames are made.
            means.credit.encoded += changed.saturating_sub(draft.unmade());
        }
        self.coming = Some(Coming { fresh, chunks: Vec::new(), length: 0 });
    }

    /// The next update is to make up for the last ones, too, which have painted this.
    pub(super) fn cover(&mut self, painted: Region) {
        if let Some(draft) = self.canvas.draft_mut() {
            draft.cover(painted);
        }
    }

    /// Whether the one that has begun does.
    pub(super) fn covers(&self) -> bool {
        self.canvas.draft().is_some_and(Draft::covers)
    }

    /// What makes up for the one that has begun, or was made last; `None` if nothing does.
    pub(super) fn covered_by(&self) -> Option<&Region> {
        self.canvas.draft()?.painted()
    }

    /// Where pixels are that the display lacks.
    pub(super) fn changed(&self) -> Option<&Region> {
        self.canvas.draft().map(Draft::changed)
    }

    /// Encodes a slice of what has begun; if `whole`, it waits for frames. Gives what is there as an update, unless it
    /// is so little that it would overtake what came before it: no update is larger than a slice.
    pub(super) fn step(
        &mut self,
        means: &mut Means<'_>,
        whole: bool,
        watch: Option<&dyn Watch>,
    ) -> Option<Painted> {
        let mut coming = self.coming.take()?;
        let draft = self.canvas.draft_mut()?;
        let before = draft.unmade();
        let chunks = match whole && draft.awaits_frames() {
            true => means.encoder.finish(draft, watch),
            false => means.encoder.step(draft, watch),
        };
        means.credit.encoded += before - draft.unmade();
        coming.length += length(&chunks);
        coming.chunks.extend(chunks);
        let whole = !draft.is_making();
        if !whole && coming.length < SMALL {
            self.coming = Some(coming);
            return None;
        }
        if !whole {
            self.coming = Some(Coming { fresh: false, chunks: Vec::new(), length: 0 });
        }
        self.painted(coming.fresh, coming.chunks, whole)
    }

    /// Makes better what is there. `None` if it cannot.
    pub(super) fn improve(&mut self, step: Step, means: &mut Means<'_>) -> Option<Painted> {
        let Step { how, bytes, near } = step;
        let draft = self.canvas.draft_mut()?;
        let quality = means.lossy.unwrap_or(ANY_QUALITY);
        let allowance = Allowance { bytes, quality, now: means.now.since_start() };
        let chunks = match how {
            Better::Improve => means.encoder.improve(draft, &allowance, near),
            Better::Refine => means.encoder.refine(draft, &allowance),
        };
        self.videos.keep(draft);
        if chunks.is_empty() {
            return None;
        }
        // One piece is a turn's work.
        means.credit.encoded = means.credit.encoded.saturating_add(means.encoder.slice());
        self.painted(false, chunks, true)
    }

    fn painted(&mut self, fresh: bool, chunks: Vec<Vec<u8>>, whole: bool) -> Option<Painted> {
        self.updates += 1;
        let draft = self.canvas.draft()?;
        let (size, format) = (draft.content().size(), draft.content().format());
        let (bytes, videos) = (length(&chunks), draft.videos() > 0);
        let (surface, seq) = (self.surface, UpdateSeq(self.updates));
        let (covers, unit, worth) = (0, None, Worth::Plain);
        let update = Update { surface, seq, size, format, fresh, covers, unit, worth, chunks };
        Some(Painted { update, bytes, videos, whole })
    }

    /// An update that another painter has made, as this one's next: the display has had all before it, too.
    pub(super) fn pass_on(&mut self, update: &Update) -> Update {
        self.updates += 1;
        let (surface, seq) = (self.surface, UpdateSeq(self.updates));
        // It has no less than it builds on, and is shown by a unit of the view.
        Update {
            surface,
            seq,
            covers: 0,
            unit: None,
            worth: Worth::Plain,
            chunks: update.chunks.clone(),
            ..*update
        }
    }

    /// When content can be made better.
    pub(super) fn wants(&self, how: Better) -> Option<Time> {
        let Wants { better, exact } = self.canvas.draft()?.wants();
        let due = match how {
            Better::Improve => better,
            Better::Refine => exact,
        };
        due.map(|due| Time::ZERO + due)
    }

    /// Whether the last update can be taken back as far as its pixels are concerned.
    pub(super) fn can_take_back(&self) -> bool {
        self.canvas.draft().is_some_and(Draft::can_take_back)
    }

    /// The last update does not leave after all: the next one brings its pixels too.
    pub(super) fn take_back(&mut self) {
        if let Some(draft) = self.canvas.draft_mut() {
            // `false` when the surface has a new shape since: nothing of the old one is built upon.
            draft.take_back();
        }
    }

    /// The last update stays: it has left, or something builds on it.
    pub(super) fn forget_last(&mut self) {
        match &mut self.canvas {
            Canvas::Blank => {}
            Canvas::Here(draft) => draft.forget_last(),
            Canvas::Lent(outline) => outline.forget_last = true,
        }
    }

    /// The display could not paint an update: the next one brings everything. Returns whether there is content at all.
    pub(super) fn renew(&mut self) -> bool {
        self.lost_videos += self.canvas.draft().map_or(0, |draft| u32::from(draft.videos() > 0));
        self.begin_anew()
    }

    /// The next update brings everything. Returns whether there is content at all.
    pub(super) fn begin_anew(&mut self) -> bool {
        let draft = self.canvas.draft_mut();
        draft.map(Draft::renew).is_some()
    }

    /// The display is gone: another one has nothing.
    pub(super) fn part(&mut self) {
        if let Some(draft) = self.canvas.draft_mut() {
            draft.renew();
        }
        self.end_videos();
        (self.lost_videos, self.updates, self.coming) = (0, 0, None);
    }

    /// How many videos have begun.
    pub(super) fn videos(&self) -> usize {
        self.canvas.outline().map_or(self.videos.count(), |outline| outline.videos)
    }

    /// How many are in what the display has.
    pub(super) fn videos_shown(&self) -> usize {
        let lent = self.canvas.outline().map(|outline| outline.fidelity.videos);
        lent.or(self.canvas.draft().map(Draft::videos)).unwrap_or(0)
    }

    /// Frees what videos need.
    pub(super) fn end_videos(&mut self) {
        self.videos.clear();
    }

    /// When [`Self::end_paused_videos`] is due.
    pub(super) fn videos_end(&self) -> Option<Time> {
        self.canvas.draft()?.videos_end().map(|end| Time::ZERO + end)
    }

    /// Frees what videos need that have paused for long.
    pub(super) fn end_paused_videos(&mut self, now: Time) {
        if let Some(draft) = self.canvas.draft_mut().filter(|draft| draft.videos() > 0) {
            draft.end_paused_videos(now.since_start());
            self.videos.keep(draft);
        }
    }

    /// How well the display knows the content; `None` while there is none.
    pub(super) fn fidelity(&self) -> Option<Fidelity> {
        if let Some(outline) = self.canvas.outline() {
            return Some(outline.fidelity);
        }
        let draft = self.canvas.draft()?;
        let (size, lossy, videos) = (draft.content().size(), draft.lossy_area(), draft.videos());
        Some(Fidelity { surface: self.surface, size, lossy, videos })
    }
}

fn length(chunks: &[Vec<u8>]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

/// Content up to this length is not lossy, however little the link takes now.
const LEAST_ALLOWANCE: u64 = 16 << 10;
/// So often may the display lose the content while videos are in it; then it gets no more of them.
const MAX_LOST_VIDEOS: u32 = 3;
/// Pixels that are worth a worker: to free fewer takes a tenth of a millisecond at most.
const WORTH_A_WORKER: u64 = 256 << 10;
/// Quality of pictures where none is asked for.
const ANY_QUALITY: u8 = 75;
/// Bytes of credit below which a piece would be mostly its own head, and beyond which it would hold up input.
pub(super) const LEAST_PIECE: u64 = 1000;
pub(super) const MOST_PIECE: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wayferry_pixels::{Compression, Decoder};

    use super::*;

    const SIDE: u32 = 64;

    fn content(seed: u8) -> Content {
        let mut content = Content::new(Size::new(SIDE, SIDE).unwrap(), Format::Argb8888);
        let row =
            |y: u32| (0..SIDE * 4).map(|x| (x as u8).wrapping_mul(seed | 1) ^ (y as u8)).collect::<Vec<_>>();
        (0..SIDE).for_each(|y| content.write_row(y, 0, &row(y)));
        content
    }

    /// All that the display lacks now.
    fn paint(painter: &mut Painter) -> Vec<Update> {
        let mut encoder = Encoder::new(Compression::default());
        let mut credit = Credit::ENDLESS;
        credit.encoded = 0;
        let mut means = Means { now: Time::ZERO, encoder: &mut encoder, credit: &mut credit, lossy: None };
        painter.begin(&mut means, None);
        let mut updates = Vec::new();
        while painter.has_begun() {
            updates.extend(painter.step(&mut means, false, None).map(|painted| painted.update));
        }
        updates
    }

    fn show(shown: &mut Content, updates: &[Update]) {
        updates.iter().for_each(|update| drop(Decoder::new().apply(shown, &update.chunks).unwrap()));
    }

    proptest! {
        /// Whichever updates are taken back before anything of them has left.
        #[test]
        fn what_leaves_makes_the_content(steps in prop::collection::vec((any::<u8>(), any::<bool>()), 1..8)) {
            let mut painter = Painter::new(SurfaceId(4));
            let mut shown = content(0);
            let mut waiting: Vec<Update> = Vec::new();
            let mut numbers = Vec::new();
            for (seed, leaves) in steps {
                painter.follow(&content(seed), None);
                if !waiting.is_empty() && painter.can_take_back() {
                    painter.take_back();
                    waiting.clear();
                }
                if painter.has_news() {
                    waiting.extend(paint(&mut painter));
                    numbers.extend(waiting.iter().map(|update| update.seq.0));
                }
                if leaves {
                    show(&mut shown, &std::mem::take(&mut waiting));
                    painter.forget_last();
                    prop_assert!(shown.pixels() == content(seed).pixels());
                }
                prop_assert!(painter.is_settled() && painter.is_exact());
            }
            numbers.dedup();
            prop_assert!(numbers.is_sorted() && numbers.last() == Some(&painter.updates()));
        }
    }

    /// A step of a surface that changes in a few places: which one, to what; whether it is lost; the bytes that the
    /// link takes; and whether what is lossy becomes better first.
    fn change() -> impl Strategy<Value = (u32, u8, bool, u64, bool)> {
        (0u32..4, any::<u8>(), any::<bool>(), prop_oneof![Just(1u64 << 20), 10..400u64], any::<bool>())
    }

    /// Photographic pixels in one of four overlapping squares.
    fn change_square(content: &mut Content, place: u32, seed: u8) {
        let mut state = u64::from(seed) + 1;
        for y in 8..40 {
            let mut noise = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 59) as u8 + (y as u8) * 3
            };
            let row: Vec<u8> = (0..32).flat_map(|_| [noise(), noise(), noise(), 255]).collect();
            content.write_row(y, 4 * place, &row);
        }
    }

    proptest! {
        /// Whichever updates are lost that later ones cover: what comes is exact where it counts as exact, and all of
        /// it at last.
        #[test]
        fn an_update_makes_up_for_those_that_it_covers(steps in prop::collection::vec(change(), 1..20)) {
            let mut painter = Painter::new(SurfaceId(4));
            let mut encoder = Encoder::new(Compression::default());
            let mut content = content(3);
            let mut shown = Content::new(content.size(), content.format());
            painter.follow(&content, None);
            show(&mut shown, &paint(&mut painter));
            // Updates that are lost as yet, the oldest first, and what they have painted.
            let mut lost: Vec<(Update, Region)> = Vec::new();
            let mut now = Time::ZERO;
            let mut step = |painter: &mut Painter, bytes: u64, better: bool, now| {
                let mut credit = Credit { content: 0, rate: Some(1000), ..Credit::ENDLESS };
                credit.encoded = 0;
                let mut means = Means { now, encoder: &mut encoder, credit: &mut credit, lossy: Some(60) };
                match better {
                    true => painter.improve(Step { how: Better::Refine, bytes, near: None }, &mut means),
                    false => {
                        painter.begin(&mut means, None);
                        painter.step(&mut means, true, None)
                    }
                }
            };
            for (place, seed, is_lost, bytes, better) in steps {
                now += std::time::Duration::from_secs(2);
                if better && lost.is_empty() {
                    let refined = step(&mut painter, bytes, true, now).map(|painted| painted.update);
                    show(&mut shown, refined.as_slice());
                }
                change_square(&mut content, place, seed);
                painter.follow(&content, None);
                if !painter.has_news() {
                    continue;
                }
                let mut cover = Region::default();
                lost.iter().for_each(|(_, region)| cover.union(region));
                painter.cover(cover);
                let painted = step(&mut painter, bytes, false, now).expect("an update");
                prop_assert!(painted.whole);
                if !painter.covers() {
                    // They come late, for nothing makes up for them.
                    lost.drain(..).for_each(|(update, _)| show(&mut shown, &[update]));
                }
                let region = painter.covered_by().cloned();
                match region.filter(|_| is_lost && lost.len() < 6) {
                    Some(region) => lost.push((painted.update, region)),
                    None => {
                        show(&mut shown, &[painted.update]);
                        lost.clear();
                        if painter.is_exact() {
                            prop_assert!(shown.pixels() == content.pixels());
                        }
                    }
                }
            }
            if !lost.is_empty() {
                return Ok(());
            }
            for _ in 0..100 {
                now += std::time::Duration::from_secs(2);
                let refined = step(&mut painter, 1 << 20, true, now).map(|painted| painted.update);
                show(&mut shown, refined.as_slice());
            }
            prop_assert!(painter.is_exact());
            prop_assert!(shown.pixels() == content.pixels());
        }
    }

    #[test]
    fn a_display_that_could_not_paint_gets_everything_again() {
        let mut painter = Painter::new(SurfaceId(4));
        painter.follow(&content(3), None);
        assert!(paint(&mut painter)[0].fresh && painter.is_settled());
        assert!(painter.renew() && painter.has_news());
        let again = paint(&mut painter);
        let mut shown = content(0);
        show(&mut shown, &again);
        assert!(again[0].fresh && shown.pixels() == content(3).pixels());
    }

    /// A viewer has had all that the active one was given; its own numbers go on.
    #[test]
    fn updates_of_another_painter_get_names_of_this_one() {
        let (mut active, mut view) = (Painter::new(SurfaceId(4)), Painter::new(SurfaceId(6)));
        view.follow(&content(1), None);
        let own = paint(&mut view).len() as u64;
        view.forget();
        active.follow(&content(3), None);
        let theirs = paint(&mut active).remove(0);
        let passed = view.pass_on(&theirs);
        assert_eq!((passed.surface, passed.seq), (SurfaceId(6), UpdateSeq(own + 1)));
        assert_eq!((passed.chunks, view.updates(), view.bytes()), (theirs.chunks, own + 1, 0));
    }

    #[test]
    fn a_surface_without_content_lacks_nothing() {
        let mut painter = Painter::new(SurfaceId(4));
        assert!(painter.is_settled() && !painter.renew() && painter.fidelity().is_none());
        painter.follow(&content(3), None);
        painter.unmap(&Workers::default());
        assert!(paint(&mut painter).is_empty() && painter.updates() == 0);
    }
}
