//! From a changed region of a content to chunks.
//!
//! Rectangles are cut into pieces, pieces are packed into chunks, every chunk is compressed by itself.
//! No state of a compressor outlives a chunk; only its memory is reused. The encoder does not
//! compare anything: what it is told has changed is what it sends. Large updates are cut into sections
//! first, and threads take one section after the other.
//!
//! The one invariant: the chunks of a call hold each pixel of the region exactly once, none is longer
//! than [`MAX_CHUNK`], and they do not depend on the number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use zstd_safe::CCtx;

use crate::chunk::{Codec, MAX_CHUNK, MAX_CHUNK_PIXELS, MAX_CHUNK_RECTS, write_header};
use crate::content::Content;
use crate::geometry::Rect;
use crate::region::Region;

/// How chunks are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all; for links faster than a compressor.
    None,
    /// LZ4 blocks: faster than Zstandard, and larger.
    Lz4,
    /// Zstandard at a level from 1 to 19 (others are brought into this range). Levels above 3 cost
    /// far more time than the bytes they save are worth on a live screen.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(1)
    }
}

/// Makes chunks. Keeps memory from call to call but no state: one serves any number of surfaces.
pub struct Encoder {
    compression: Compression,
    /// One per thread, the caller's first; never empty.
    workers: Vec<Worker>,
}

/// Looks on while chunks are made, for timelines. The encoder has no clock: it is given the time.
pub trait Watch: Sync {
    /// The time, in whatever unit the watcher likes.
    fn now(&self) -> u64;

    /// A thread (0 is the caller's) has made `bytes` of chunks from a part that it began at `start`.
    fn encoded(&self, thread: usize, start: u64, bytes: usize);
}

impl Encoder {
    /// An encoder that compresses this way where it pays, on the caller's thread.
    pub fn new(compression: Compression) -> Self {
        Self { compression, workers: vec![Worker::new(compression)] }
    }

    /// Lets up to `threads` threads (1 to 64; others are brought into this range), the caller's among
    /// them, share the work of an update of many pixels. The chunks are the same whatever the number.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.workers.resize_with(threads.clamp(1, MAX_THREADS), || Worker::new(self.compression));
        self
    }

    /// The present content of `changed` as chunks of at most [`MAX_CHUNK`] bytes, in no order that
    /// matters. What lies outside the content is ignored.
    pub fn encode(&mut self, content: &Content, changed: &Region) -> Vec<Vec<u8>> {
        self.encode_watched(content, changed, None)
    }

    /// As [`Self::encode`], telling somebody which thread does what.
    pub fn encode_watched(
        &mut self,
        content: &Content,
        changed: &Region,
        watch: Option<&dyn Watch>,
    ) -> Vec<Vec<u8>> {
        let mut rects = changed.clip(content.size()).rects().to_vec();
        rects.sort_unstable_by_key(|rect| (rect.y, rect.x));
        let job = Job { content, sections: sections(content, &rects), next: AtomicUsize::new(0), watch };
        let threads = self.workers.len().min(job.sections.len());
        let Some((first, others)) = self.workers.split_first_mut() else { return Vec::new() };
        let mut done = if threads < 2 {
            first.work(&job, 0)
        } else {
            std::thread::scope(|scope| {
                let spawn = |(index, worker): (usize, _)| worker_thread(scope, index + 1, worker, &job);
                let running: Vec<_> =
                    others.iter_mut().take(threads - 1).enumerate().filter_map(spawn).collect();
                let mut done = first.work(&job, 0);
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

/// One update that is being encoded.
struct Job<'a> {
    content: &'a Content,
    sections: Vec<Vec<Rect>>,
    /// The first section that no thread has taken yet.
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

/// Cuts sorted rectangles into parts of at most [`SECTION`] bytes of pixels, which are encoded
/// without regard to each other.
fn sections(content: &Content, rects: &[Rect]) -> Vec<Vec<Rect>> {
    let mut pieces = Pieces { rects, pixel: content.format().bytes_per_pixel(), column: 0, row: 0 };
    let next = || Some(pieces.take_group(SECTION, usize::MAX).0).filter(|section| !section.is_empty());
    std::iter::from_fn(next).collect()
}

/// What one thread needs.
struct Worker {
    compression: Compression,
    zstd: Option<CCtx<'static>>,
    raw: Vec<u8>,
    packed: Vec<u8>,
}

impl Worker {
    fn new(compression: Compression) -> Self {
        Self { compression, zstd: None, raw: Vec::new(), packed: Vec::new() }
    }

    /// Encodes sections as long as there are any.
    fn work(&mut self, job: &Job<'_>, thread: usize) -> Done {
        let mut done = Vec::new();
        loop {
            let index = job.next.fetch_add(1, Ordering::Relaxed);
            let Some(section) = job.sections.get(index) else { return done };
            let start = job.watch.map(Watch::now);
            let chunks = self.encode(job.content, section);
            if let (Some(watch), Some(start)) = (job.watch, start) {
                watch.encoded(thread, start, chunks.iter().map(Vec::len).sum());
            }
            done.push((index, chunks));
        }
    }

    fn encode(&mut self, content: &Content, section: &[Rect]) -> Vec<Vec<u8>> {
        let pixel = content.format().bytes_per_pixel();
        let mut pieces = Pieces { rects: section, pixel, column: 0, row: 0 };
        let mut chunks = Vec::new();
        let mut budget = SMALL_BUDGET;
        let mut stubborn = false;
        loop {
            let rewind = pieces;
            let (group, bytes) = pieces.take_group(budget, MAX_CHUNK_RECTS);
            if group.is_empty() {
                return chunks;
            }
            self.gather(content, &group, bytes);
            let payload = self.compress(bytes, stubborn);
            stubborn = payload.is_none();
            match self.assemble(&group, payload) {
                Some(chunk) => {
                    budget = next_budget(budget, bytes, chunk.len());
                    chunks.push(chunk);
                }
                None => {
                    pieces = rewind;
                    budget = SMALL_BUDGET;
                }
            }
        }
    }

    /// Copies the rows of the rectangles together.
    fn gather(&mut self, content: &Content, group: &[Rect], bytes: usize) {
        self.raw.clear();
        self.raw.reserve(bytes);
        for rect in group {
            for y in rect.y..rect.bottom() {
                self.raw.extend_from_slice(content.row(y, rect.x, rect.width));
            }
        }
    }

    /// Compresses what was gathered; `None` when that does not pay. After a chunk that did not pay, a
    /// sample decides first: noise and video would otherwise cost a full compression for nothing.
    fn compress(&mut self, bytes: usize, stubborn: bool) -> Option<(Codec, usize)> {
        if stubborn && bytes > 2 * SAMPLE {
            let start = (bytes - SAMPLE) / 2;
            self.squeeze(start..start + SAMPLE)?;
        }
        self.squeeze(0..bytes)
    }

    fn squeeze(&mut self, range: std::ops::Range<usize>) -> Option<(Codec, usize)> {
        let source = &self.raw[range];
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
                (Codec::Zstd, zstd.compress(target, source, level.clamp(1, 19)).ok()?)
            }
        };
        (length < worth).then_some((codec, length))
    }

    /// The chunk, unless it would be too long.
    fn assemble(&self, group: &[Rect], payload: Option<(Codec, usize)>) -> Option<Vec<u8>> {
        let (codec, bytes) = match payload {
            Some((codec, length)) => (codec, &self.packed[..length]),
            None => (Codec::Raw, &self.raw[..]),
        };
        let mut chunk = Vec::with_capacity(3 + 8 * group.len() + bytes.len());
        write_header(&mut chunk, codec, group);
        chunk.extend_from_slice(bytes);
        (chunk.len() <= MAX_CHUNK).then_some(chunk)
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("compression", &self.compression)
            .field("threads", &self.workers.len())
            .finish_non_exhaustive()
    }
}

/// Pixels that compress well go many to a chunk; others no more than fit as they are.
fn next_budget(budget: usize, bytes: usize, length: usize) -> usize {
    if length * 8 <= bytes { (budget * 2).min(LARGE_BUDGET) } else { SMALL_BUDGET }
}

/// What is still to be sent, as a position in the sorted rectangles.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    rects: &'a [Rect],
    pixel: usize,
    /// Columns of the first rectangle that are done.
    column: u32,
    /// Rows that are done of the stripe at `column`.
    row: u32,
}

impl Pieces<'_> {
    /// Takes at most so many pieces that together need at most `budget` bytes; none when nothing is left.
    fn take_group(&mut self, budget: usize, most: usize) -> (Vec<Rect>, usize) {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < most {
            let Some(piece) = self.take(budget - bytes) else { break };
            bytes += piece.area() as usize * self.pixel;
            group.push(piece);
        }
        (group, bytes)
    }

    /// Takes one piece of at most `room` bytes: a whole rectangle if it fits, else rows of a stripe.
    /// `None` if nothing is left or not a row fits.
    fn take(&mut self, room: usize) -> Option<Rect> {
        let rect = *self.rects.first()?;
        let whole = rect.area() as usize * self.pixel <= room;
        if self.column == 0 && self.row == 0 && whole {
            self.rects = &self.rects[1..];
            return Some(rect);
        }
        let width = STRIPE.min(rect.width - self.column);
        let rows = (room / (width as usize * self.pixel)).min((rect.height - self.row) as usize) as u32;
        if rows == 0 {
            return None;
        }
        let piece = Rect::new(rect.x + self.column, rect.y + self.row, width, rows);
        self.row += rows;
        if self.row == rect.height {
            (self.row, self.column) = (0, self.column + width);
        }
        if self.column == rect.width {
            (self.rects, self.column) = (&self.rects[1..], 0);
        }
        Some(piece)
    }
}

/// Longest header the encoder writes.
const HEADER_ROOM: usize = 3 + 8 * MAX_CHUNK_RECTS;

/// Bytes of pixels that fit into a chunk uncompressed.
const SMALL_BUDGET: usize = MAX_CHUNK - HEADER_ROOM;

/// Bytes of pixels that are encoded as one piece of work: enough to be worth another thread, few enough
/// that a window of ordinary size keeps four threads busy. Updates up to this stay on the caller's.
const SECTION: usize = 512 << 10;

/// Most threads of an encoder; more would wait for memory.
const MAX_THREADS: usize = 64;

/// Bytes of pixels per chunk while they compress well.
const LARGE_BUDGET: usize = MAX_CHUNK_PIXELS;

/// Columns per piece of a rectangle too large for one chunk: near-square pieces keep more of the
/// picture's likeness within reach of the compressor, and a row of them always fits a chunk.
const STRIPE: u32 = 256;

/// Compression pays when it saves one part in so many.
const LEAST_GAIN: usize = 16;

/// Bytes compressed to find out whether the rest is worth it.
const SAMPLE: usize = 4 << 10;
