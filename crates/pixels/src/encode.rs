//! From a draft to the chunks of an update.
//!
//! The draft says what to copy and what to paint; rectangles are cut into cells, and cells are packed into
//! chunks, every one of which is compressed by itself. No state of a compressor outlives a chunk; only its
//! memory is reused. Threads take one section of the cells after the other. A large update can be made in steps, each
//! of which is an update of its own, so that nothing else has to wait for all of it. Frames of videos, which somebody
//! else makes and which build upon each other, go last, in chunks of their own that stay in their order.
//!
//! The one invariant: the chunks of a call turn the draft's past into its content but for what is counted as lossy,
//! those without frames in any order; none is longer than [`MAX_CHUNK`], and they do not depend on the number of
//! threads. Those of steps do the same in their sequence.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use zstd_safe::{CCtx, CParameter};

use crate::chunk::{self, Codec, Copy, MAX_CHUNK, MAX_CHUNK_BODY, MAX_CHUNK_RECTS};
use crate::classify::{Cell, Class, Classifier};
use crate::compose::Composer;
use crate::content::Content;
use crate::draft::{Draft, Plan};
use crate::geometry::Rect;
use crate::jpeg::{self, Compressor};
use crate::making::{Making, Section, Work, fitting};
use crate::motion::{Motion, Video};
use crate::triage::{self, Allowance, Parts, Picture};
use crate::video::{self, Begun, Videos};

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all; for links faster than a compressor.
    None,
    /// LZ4 blocks: faster than Zstandard, and larger.
    Lz4,
    /// Zstandard at a level from 1 to 19 (others are brought into this range), which small updates may
    /// exceed. Levels above 3 cost far more time than the bytes they save are worth on a live screen.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(1)
    }
}

/// Makes chunks. Keeps memory from call to call but no state that chunks depend on: one serves any number of surfaces.
/// Clones work in the same [`Workspace`].
#[derive(Clone)]
pub struct Encoder {
    compression: Compression,
    /// What it costs to make lossy pixels exact, in thousandths of a byte for each.
    rest_rate: u64,
    /// At least 1.
    threads: usize,
    workspace: Workspace,
}

/// The memory that encoders work in: about half a megabyte for each thread. Clones are the same memory, which encoders
/// that take turns may share; one that is at work makes the others wait.
#[derive(Clone, Default)]
pub struct Workspace {
    /// One per thread, the caller's first.
    workers: Arc<Mutex<Vec<Worker>>>,
}

impl Workspace {
    /// At least so many, which compress this way.
    fn workers(&self, threads: usize, compression: Compression) -> MutexGuard<'_, Vec<Worker>> {
        // After a panic the memory is as good as any: nothing depends on what is in it.
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = workers.len().max(threads);
        workers.resize_with(count, || Worker::new(compression));
        workers.iter_mut().for_each(|worker| worker.squeezer.compression = compression);
        workers
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").finish_non_exhaustive()
    }
}

/// Watches while chunks are made, for timelines. The encoder has no clock: it is given the time.
pub trait Watch: Sync {
    /// The time, in any unit that the watcher likes.
    fn now(&self) -> u64;

    /// A thread (0 is the caller's) has made `bytes` of chunks from a part that it began at `start`.
    fn encoded(&self, thread: usize, start: u64, bytes: usize);
}

impl Encoder {
    /// An encoder that compresses this way where it pays, on the caller's thread.
    pub fn new(compression: Compression) -> Self {
        Self { compression, rest_rate: REST_RATE, threads: 1, workspace: Workspace::default() }
    }

    /// Works in this memory instead of its own.
    #[must_use]
    pub fn with_workspace(self, workspace: Workspace) -> Self {
        Self { workspace, ..self }
    }

    /// Knows what another one has learned about what pixels cost.
    pub fn learn_from(&mut self, other: &Self) {
        self.rest_rate = other.rest_rate;
    }

    /// Lets up to `threads` threads (1 to 64; others are brought into this range), the caller's among
    /// them, share the work of an update of many pixels. The chunks are the same for any number.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: threads.clamp(1, MAX_THREADS), ..self }
    }

    /// What has changed since the last update, as chunks of at most [`MAX_CHUNK`] bytes, in no order that
    /// matters. None when everything has changed back, or nothing has changed. The draft counts this as the
    /// last update.
    pub fn encode(&mut self, draft: &mut Draft) -> Vec<Vec<u8>> {
        self.encode_watched(draft, None)
    }

    /// As [`Self::encode`], telling somebody which thread does what.
    pub fn encode_watched(&mut self, draft: &mut Draft, watch: Option<&dyn Watch>) -> Vec<Vec<u8>> {
        self.begin(draft);
        self.finish(draft, watch)
    }

    /// As [`Self::encode`], but what is predicted to cost more than is allowed is lossy for now:
    /// pictures, or, where the change is far too large, everything. What changes all the time becomes a video if
    /// somebody makes its frames; an update with such cannot be taken back.
    pub fn encode_within(
        &mut self,
        draft: &mut Draft,
        allowance: &Allowance,
        videos: Option<&mut dyn Videos>,
        watch: Option<&dyn Watch>,
    ) -> Vec<Vec<u8>> {
        self.begin_within(draft, allowance, videos);
        self.finish(draft, watch)
    }

    /// Begins what [`Self::encode`] does at once: [`Self::step`] and [`Self::finish`] make the chunks. The draft counts
    /// the update as the last one from now on. Any change of the draft's content before the last chunk is made gives
    /// the update up, and the next one says everything.
    pub fn begin(&mut self, draft: &mut Draft) {
        draft.give_up();
        let mut plan = draft.plan();
        draft.extend(&mut plan, false);
        draft.motion = Motion::default();
        let parts = Parts::exact(&plan.rects);
        self.hold(draft, plan, parts, Duration::ZERO);
    }

    /// Begins what [`Self::encode_within`] does at once, as [`Self::begin`]. Frames of videos have begun then,
    /// too, and are waited for when all else is made.
    pub fn begin_within(
        &mut self,
        draft: &mut Draft,
        allowance: &Allowance,
        videos: Option<&mut dyn Videos>,
    ) {
        draft.give_up();
        let mut plan = draft.plan();
        let mut workers = self.workspace.workers(1, self.compression);
        let Some(worker) = workers.first_mut() else { return };
        let frames = frames(draft, &plan, &mut worker.classifier, allowance, videos);
        draft.extend(&mut plan, !frames.is_empty());
        let spent: usize = frames.iter().map(Begun::expected).sum();
        // What is beside a video does not become a preview because of it.
        let left = allowance.bytes.saturating_sub(spent as u64).max(allowance.bytes / 2);
        let left = Allowance { bytes: left, ..*allowance };
        let rects = video::outside(&plan.rects, &frames);
        let mut parts = Parts::of(draft.content(), &rects, &mut worker.classifier, &left);
        parts.frames = frames;
        self.hold(draft, plan, parts, allowance.now);
    }

    /// The next chunks of the update that has begun: those of [`Self::slice`] pixels, about. They are for an update of
    /// their own, after that of the step before; chunks of several steps may also go together. None when none has
    /// begun, and [`Draft::is_making`] says whether there are more. With a second step to come, the update cannot be
    /// taken back.
    pub fn step(&mut self, draft: &mut Draft, watch: Option<&dyn Watch>) -> Vec<Vec<u8>> {
        let chunks = self.make(draft, self.slice(), watch);
        if draft.is_making() {
            draft.forget_last();
        }
        chunks
    }

    /// All chunks that are left of the update that has begun.
    pub fn finish(&mut self, draft: &mut Draft, watch: Option<&dyn Watch>) -> Vec<Vec<u8>> {
        self.make(draft, u64::MAX, watch)
    }

    /// How many pixels [`Self::step`] takes at once: a few milliseconds' work.
    pub fn slice(&self) -> u64 {
        (self.section() * self.threads as u64).min(MOST_SLICE)
    }

    /// More about what the display side has previews of, about as much as is allowed: text and plain colours exactly,
    /// then pictures. What is `near` a point, in pixels of the content, comes before the rest. An update for the same
    /// content; none when there is nothing to say, or the draft has news.
    pub fn improve(
        &mut self,
        draft: &mut Draft,
        allowance: &Allowance,
        near: Option<(u32, u32)>,
    ) -> Vec<Vec<u8>> {
        if !draft.is_settled() {
            return Vec::new();
        }
        let mut workers = self.workspace.workers(1, self.compression);
        let Some(worker) = workers.first_mut() else { return Vec::new() };
        let mut fidelity = std::mem::take(&mut draft.fidelity);
        let parts = Parts::better(draft.content(), &mut fidelity, &mut worker.classifier, allowance, near);
        draft.fidelity = fidelity;
        drop(workers);
        self.add(draft, parts, allowance.now)
    }

    /// Makes lossy pixels exact that have not changed for a moment, about as many as is allowed. An update for the
    /// same content; none when there is nothing to say yet, or the draft has news.
    pub fn refine(&mut self, draft: &mut Draft, allowance: &Allowance) -> Vec<Vec<u8>> {
        if !draft.is_settled() {
            return Vec::new();
        }
        let parts = Parts::rest(draft.content(), &draft.fidelity, self.rest_rate, allowance);
        let pixels: u64 = parts.exact.iter().map(|rect| rect.area()).sum();
        let chunks = self.add(draft, parts, allowance.now);
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        if let Some(rate) = (bytes as u64 * 1000).checked_div(pixels) {
            self.rest_rate = (3 * self.rest_rate + rate) / 4;
        }
        chunks
    }

    /// Lets the draft hold an update of these parts, and count it as the last one.
    fn hold(&self, draft: &mut Draft, plan: Plan, parts: Parts, now: Duration) {
        let size = draft.content().size();
        let mut fidelity = draft.fidelity.clone();
        fidelity.copied(size, &plan.copies, now);
        if !(parts.lossy.is_empty() && parts.frames.is_empty()) {
            fidelity.beat(now);
        }
        parts.note(size, &mut fidelity, now);
        draft.encoded(fidelity);
        if !parts.frames.is_empty() {
            draft.forget_last();
        }
        draft.making = Some(Making::new(plan.copies, parts, self.section(), now));
    }

    /// Pixels that are encoded as one piece of work: enough to be worth another thread, few enough for two milliseconds
    /// or three. Updates up to this stay on the caller's thread.
    fn section(&self) -> u64 {
        match self.compression {
            Compression::None | Compression::Lz4 => 256 << 10,
            // It takes longer; and its chunks can be shorter before that costs a hundredth of their bytes.
            Compression::Zstd(_) => 128 << 10,
        }
    }

    /// Takes about so many pixels of the update that has begun.
    fn make(&mut self, draft: &mut Draft, room: u64, watch: Option<&dyn Watch>) -> Vec<Vec<u8>> {
        let Some(mut making) = draft.making.take() else { return Vec::new() };
        if making.is_under_way() && !making.waits() {
            // Another update, where updates are counted; to look whether a frame is made is none.
            draft.motion.pass(making.began);
        }
        let mut chunks = self.run(draft.content(), &mut making, room, watch);
        if making.waits() {
            for made in making.take_frames(room == u64::MAX) {
                match made {
                    Ok(frame) => frame.write(&mut chunks),
                    // It counts as lossy there, so it becomes exact.
                    Err(video) => draft.motion.end(video.stream),
                }
            }
        }
        draft.making = Some(making).filter(|making| !making.is_done());
        chunks
    }

    /// An update on top of the last one, which is not to be taken back any more.
    fn add(&mut self, draft: &mut Draft, parts: Parts, now: Duration) -> Vec<Vec<u8>> {
        if parts.is_empty() {
            return Vec::new();
        }
        draft.forget_last();
        draft.motion.pass(now);
        let size = draft.content().size();
        parts.note(size, &mut draft.fidelity, now);
        let mut making = Making::new(Vec::new(), parts, self.section(), now);
        self.run(draft.content(), &mut making, u64::MAX, None)
    }

    fn run(
        &mut self,
        content: &Content,
        making: &mut Making,
        room: u64,
        watch: Option<&dyn Watch>,
    ) -> Vec<Vec<u8>> {
        self.share(&Job { content, work: making.take(room), next: AtomicUsize::new(0), watch })
    }

    fn share(&mut self, job: &Job<'_>) -> Vec<Vec<u8>> {
        let threads = self.threads.min(job.work.len());
        let mut workers = self.workspace.workers(threads, self.compression);
        let Some((first, others)) = workers.split_first_mut() else { return Vec::new() };
        let mut done = if threads < 2 {
            first.work(job, 0)
        } else {
            std::thread::scope(|scope| {
                let spawn = |(index, worker): (usize, _)| worker_thread(scope, index + 1, worker, job);
                let running: Vec<_> =
                    others.iter_mut().take(threads - 1).enumerate().filter_map(spawn).collect();
                let mut done = first.work(job, 0);
                for thread in running {
                    match thread.join() {
                        Ok(theirs) => done.extend(theirs),
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                }
                done
            })
        };
        done.sort_unstable_by_key(|(section, _)| *section);
        done.into_iter().flat_map(|(_, chunks)| chunks).collect()
    }
}

/// The frames of videos that go with an update.
fn frames(
    draft: &mut Draft,
    plan: &Plan,
    classifier: &mut Classifier,
    allowance: &Allowance,
    videos: Option<&mut dyn Videos>,
) -> Vec<Begun> {
    let fits = jpeg::order(draft.content().format()).is_some() && !draft.is_fresh();
    let Some(videos) = videos.filter(|_| fits) else {
        draft.motion = Motion::default();
        return Vec::new();
    };
    let mut motion = std::mem::take(&mut draft.motion);
    let content = draft.content();
    let is_picture = |rect| triage::is_picture(content, rect, classifier);
    let affordable = triage::affordable(allowance);
    let moving = motion.update(content.size(), &plan.rects, affordable, allowance.now, is_picture);
    let mut frame = |video: Video| {
        let fourth = jpeg::fourth(content, video.rect)?;
        let coming = videos.frame(content, video)?;
        Some(Begun { video, fourth, coming })
    };
    let mut made = Vec::new();
    for video in moving {
        match frame(video) {
            Some(frame) => {
                motion.got_frame(video.stream);
                made.push(frame);
            }
            None => motion.end(video.stream),
        }
    }
    draft.motion = motion;
    made
}

/// One update that is being encoded.
struct Job<'a> {
    content: &'a Content,
    work: Vec<Work<'a>>,
    /// The first piece of work that no thread has taken yet.
    next: AtomicUsize,
    watch: Option<&'a dyn Watch>,
}

/// Chunks of the sections that one thread took, by section.
type Done = Vec<(usize, Vec<Vec<u8>>)>;

/// A helper thread; `None` when the system has none to give, and then the others do its work.
fn worker_thread<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    index: usize,
    worker: &'scope mut Worker,
    job: &'scope Job<'scope>,
) -> Option<ScopedJoinHandle<'scope, Done>> {
    let named = std::thread::Builder::new().name(format!("encode {index}"));
    named.spawn_scoped(scope, move || worker.work(job, index)).ok()
}

/// What one thread needs.
struct Worker {
    squeezer: Squeezer,
    classifier: Classifier,
    composer: Composer,
    pictures: Compressor,
}

impl Worker {
    fn new(compression: Compression) -> Self {
        let squeezer = Squeezer { compression, zstd: None, packed: Vec::new() };
        Self {
            squeezer,
            classifier: Classifier::new(),
            composer: Composer::new(),
            pictures: Compressor::default(),
        }
    }

    /// Encodes sections as long as there are any.
    fn work(&mut self, job: &Job<'_>, thread: usize) -> Done {
        let mut done = Vec::new();
        loop {
            let index = job.next.fetch_add(1, Ordering::Relaxed);
            let Some(work) = job.work.get(index) else { return done };
            let start = job.watch.map(Watch::now);
            let chunks = match work {
                Work::Exact(section) => self.encode(job.content, section),
                Work::Lossy(picture) => self.lossy(job.content, picture),
            };
            if let (Some(watch), Some(start)) = (job.watch, start) {
                watch.encoded(thread, start, chunks.iter().map(Vec::len).sum());
            }
            done.push((index, chunks));
        }
    }

    fn encode(&mut self, content: &Content, section: &Section<'_>) -> Vec<Vec<u8>> {
        self.classifier.clear();
        let cells: Vec<Cell> =
            section.cells.iter().map(|rect| self.classifier.classify(content, *rect)).collect();
        let (mut copies, mut rest) = (section.copies, &cells[..]);
        let mut chunks = Vec::new();
        let mut rates = Rates::new(self.squeezer.compression);
        while !(copies.is_empty() && rest.is_empty()) {
            let mut count = fitting(rest, |cell| rates.weigh(cell), WEIGHT).min(MAX_CHUNK_RECTS);
            let chunk = loop {
                match self.chunk(content, copies, &rest[..count]) {
                    Some(chunk) => break chunk,
                    // a single cell always fits
                    None => count = count.div_ceil(2),
                }
            };
            rates.learn(&rest[..count], chunk.len());
            chunks.push(chunk);
            (copies, rest) = (&[], &rest[count..]);
        }
        chunks
    }

    /// The chunks of a lossy picture: one, unless that would be too long.
    fn lossy(&mut self, content: &Content, picture: &Picture) -> Vec<Vec<u8>> {
        let Picture { rect, grade, fourth, quality } = *picture;
        let Some(image) = self.pictures.picture(content, rect, grade, quality) else {
            // No memory for a compressor, perhaps. Exact is never wrong.
            let cells: Vec<Rect> = chunk::cells(rect).collect();
            return self.encode(content, &Section { copies: &[], cells: &cells });
        };
        match plain(&chunk::lossy_body(&[chunk::Lossy { rect, grade, fourth, image }])) {
            Some(chunk) => vec![chunk],
            None => halves(rect)
                .into_iter()
                .flat_map(|rect| self.lossy(content, &Picture { rect, ..*picture }))
                .collect(),
        }
    }

    /// A chunk, unless it would be too long. Of few pixels the better one of two: where a palette's colours are
    /// many for its pixels, prediction says no more about them than trying.
    fn chunk(&mut self, content: &Content, copies: &[Copy], cells: &[Cell]) -> Option<Vec<u8>> {
        let body = self.composer.compose(content, copies, cells, &self.classifier);
        let chunk = self.squeezer.pack(body);
        let pixels: u64 = cells.iter().map(|cell| cell.rect.area()).sum();
        if pixels > FEW_PIXELS {
            return chunk;
        }
        let Some(pictures) = as_pictures(cells) else { return chunk };
        let body = self.composer.compose(content, copies, &pictures, &self.classifier);
        let other = self.squeezer.pack(body);
        chunk.into_iter().chain(other).min_by_key(Vec::len)
    }
}

/// The same cells as nothing but pictures; `None` if they are already.
fn as_pictures(cells: &[Cell]) -> Option<Vec<Cell>> {
    let picture = |cell: &Cell| Cell { class: Class::Picture, ..cell.clone() };
    let any = cells.iter().any(|cell| matches!(cell.class, Class::Palette { .. }));
    any.then(|| cells.iter().map(picture).collect())
}

/// Predicts how long chunks become.
struct Rates {
    solid: u64,
    /// Thousandths of a byte per pixel.
    palette: u64,
    picture: u64,
}

impl Rates {
    fn new(compression: Compression) -> Self {
        let (palette, picture) = match compression {
            Compression::None => (1000, 4000),
            Compression::Lz4 => (500, 3500),
            Compression::Zstd(_) => (200, 1000),
        };
        Self { solid: 8000, palette, picture }
    }

    fn weigh(&self, cell: &Cell) -> u64 {
        match cell.class {
            Class::Solid(_) => self.solid,
            Class::Palette { .. } => self.palette * cell.rect.area() + self.solid,
            Class::Picture => self.picture * cell.rect.area() + self.solid,
        }
    }

    /// Pictures differ most: the next ones of a section will be like the last.
    fn learn(&mut self, cells: &[Cell], length: usize) {
        let pixels = |picture: bool| -> u64 {
            let alike = cells.iter().filter(|cell| matches!(cell.class, Class::Picture) == picture);
            alike.map(|cell| cell.rect.area()).sum()
        };
        let (pictures, others) = (pixels(true), pixels(false));
        if pictures > others {
            self.picture = (length as u64 * 1100 / pictures).max(100);
        }
    }
}

/// The chunk of a body that is not to be compressed, unless it would be too long.
fn plain(body: &[u8]) -> Option<Vec<u8>> {
    framed(Codec::Raw, body.len(), body)
}

fn framed(codec: Codec, length: usize, payload: &[u8]) -> Option<Vec<u8>> {
    let mut chunk = Vec::with_capacity(HEAD + payload.len());
    chunk::write_head(&mut chunk, codec, length);
    chunk.extend_from_slice(payload);
    (chunk.len() <= MAX_CHUNK).then_some(chunk)
}

/// The two halves of a rectangle of more than a pixel.
fn halves(rect: Rect) -> [Rect; 2] {
    let Rect { x, y, width, height } = rect;
    if width > height {
        let left = width / 2;
        [Rect::new(x, y, left, height), Rect::new(x + left, y, width - left, height)]
    } else {
        let upper = height / 2;
        [Rect::new(x, y, width, upper), Rect::new(x, y + upper, width, height - upper)]
    }
}

/// Compresses bodies.
struct Squeezer {
    compression: Compression,
    zstd: Option<CCtx<'static>>,
    packed: Vec<u8>,
}

impl Squeezer {
    /// The chunk of a body, unless it would be too long.
    fn pack(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        if body.len() > MAX_CHUNK_BODY {
            return None;
        }
        match self.squeeze(body) {
            Some((codec, length)) => framed(codec, body.len(), &self.packed[..length]),
            None => plain(body),
        }
    }

    /// Compresses a body; `None` when that does not pay.
    fn squeeze(&mut self, source: &[u8]) -> Option<(Codec, usize)> {
        let worth = (source.len() - source.len() / LEAST_GAIN).min(MAX_CHUNK);
        let (codec, length) = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => {
                // lz4_flex wants room for the worst case before it starts
                let room = lz4_flex::block::get_maximum_output_size(source.len());
                if self.packed.len() < room {
                    self.packed.resize(room, 0);
                }
                (Codec::Lz4, lz4_flex::block::compress_into(source, &mut self.packed).ok()?)
            }
            Compression::Zstd(level) => {
                let zstd = self.zstd.get_or_insert_with(CCtx::create);
                if self.packed.len() < worth {
                    self.packed.resize(MAX_CHUNK, 0);
                }
                let target = &mut self.packed[..worth];
                let (level, least_match) = match level.clamp(1, 19) {
                    level if source.len() <= SMALL_BODY => (level.max(SMALL_LEVEL), 0),
                    1 => (1, 7),
                    level => (level, 0),
                };
                zstd.set_parameter(CParameter::CompressionLevel(level)).ok()?;
                zstd.set_parameter(CParameter::MinMatch(least_match)).ok()?;
                (Codec::Zstd, zstd.compress2(target, source).ok()?)
            }
        };
        (length < worth).then_some((codec, length))
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("compression", &self.compression)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Longest head of a chunk.
const HEAD: usize = 5;

/// Pixels of a slice, however many threads there are: 16 MiB at eight bytes a pixel, so it fits into an update.
const MOST_SLICE: u64 = 2 << 20;

/// Most threads of an encoder; more would wait for memory.
const MAX_THREADS: usize = 64;

/// What making pixels exact is taken to cost at first: twice what photographs need.
const REST_RATE: u64 = 1500;

/// Pixels up to which a chunk is made in two ways.
const FEW_PIXELS: u64 = 16 << 10;

/// Predicted length of a chunk, in thousandths of a byte: room is left for those that become longer.
const WEIGHT: u64 = 48 << 10 << 10;

/// Bodies up to this long are compressed at least at [`SMALL_LEVEL`]: a key press then costs a fifth less bytes for
/// some 10 µs more. Longer ones are mostly numbers or residuals, in which short matches cost more than literals
/// do: at level 1 they are left out, which makes photographs and text 2 % shorter in a tenth less time.
const SMALL_BODY: usize = 16 << 10;
const SMALL_LEVEL: i32 = 5;

/// Compression pays when it saves one part in so many.
const LEAST_GAIN: usize = 16;
