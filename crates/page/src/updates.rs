//! The updates that wait for their units.
//!
//! They stay packed until they are painted, but for frames of videos, which are decoded when their unit has its turn or
//! is about to. Invariant: those of a surface are painted in sequence, each once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_pixels::video::{self, Frame};
use wayferry_pixels::{Content, Decoder, Format, Region, Size};
use wayferry_proto::{SurfaceId, Time, UpdateHeader, UpdateSeq, fence};

use crate::decoders::Decoders;
use crate::end::{End, wrong};
use crate::share::{Lease, Share};
use crate::videos::{Shown, Videos};

/// What an update, and a chunk, that wait take beside their bytes.
const UPDATE_COST: usize = 256;
const CHUNK_COST: usize = 32;

/// Memory that the chunks of one update may take when they are open. What this project sends takes a hundredth.
const MAX_OPENED: usize = 256 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Updates {
    book: fence::Updates,
    stored: BTreeMap<WireId, BTreeMap<u64, Stored>>,
    /// The surface that was made last.
    newest: WireId,
    /// Of all surfaces that there are.
    videos: BTreeMap<WireId, Videos>,
    share: Rc<Share>,
    decoders: Rc<Decoders>,
}

/// An update, packed.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) size: Size,
    pub(crate) format: Format,
    pub(crate) fresh: bool,
    chunks: Vec<Bytes>,
    /// Those that were not given out.
    frames: Vec<Frame>,
    /// Those that were.
    shown: Vec<Shown>,
    /// What is wrong with its frames, once that is known.
    wrong: Option<String>,
    _lease: Lease,
}

impl Updates {
    pub(crate) fn new(share: Rc<Share>, decoders: Rc<Decoders>) -> Self {
        Self {
            book: fence::Updates::new(),
            stored: BTreeMap::new(),
            newest: WireId::NULL,
            videos: BTreeMap::new(),
            share,
            decoders,
        }
    }

    /// A surface has been made.
    pub(crate) fn create(&mut self, surface: WireId) -> Result<(), End> {
        self.book.create(SurfaceId(surface.0)).map_err(|error| wrong(error.to_string()))?;
        // What came early for ids that were passed over belongs to nothing.
        let skipped = (Bound::Excluded(self.newest), Bound::Excluded(surface));
        let skipped: Vec<WireId> = self.stored.range(skipped).map(|(id, _)| *id).collect();
        skipped.iter().for_each(|id| drop(self.stored.remove(id)));
        self.newest = surface;
        self.videos.insert(surface, Videos::default());
        Ok(())
    }

    /// A surface is gone.
    pub(crate) fn destroy(&mut self, surface: WireId) {
        self.book.destroy(SurfaceId(surface.0));
        self.stored.remove(&surface);
        self.videos.remove(&surface);
    }

    /// All of an update is here.
    pub(crate) fn add(&mut self, header: &UpdateHeader, chunks: Vec<Bytes>) -> Result<(), End> {
        let (width, height) = header.size;
        let size = Size::new(width, height).map_err(|error| wrong(error.to_string()))?;
        let Some(format) = Format::from_code(header.format) else {
            return Err(wrong(format!("an update in pixel format {}", header.format)));
        };
        if header.covers > 0 || header.unit.is_some() {
            return Err(wrong("an update that tells more than its pixels, which no view is told"));
        }
        let (surface, seq) = (WireId(header.surface.0), header.seq);
        let is_wanted = self.book.complete(header.surface, seq).map_err(|error| wrong(error.to_string()))?;
        if is_wanted {
            let bytes: usize = chunks.iter().map(|chunk| chunk.len() + CHUNK_COST).sum();
            let lease = self.share.lease(bytes + UPDATE_COST)?;
            let update = Stored::new(size, format, header.fresh, chunks, lease);
            self.stored.entry(surface).or_default().insert(seq.0, update);
        }
        Ok(())
    }

    /// The updates of a surface from `from` up to the one before `by` will not come, or need not.
    pub(crate) fn supersede(&mut self, surface: WireId, from: UpdateSeq, by: UpdateSeq) -> Result<(), End> {
        let outcome = self.book.supersede(SurfaceId(surface.0), from, by);
        outcome.map_err(|error| wrong(error.to_string()))?;
        if let Some(stored) = self.stored.get_mut(&surface) {
            stored.retain(|seq, _| !(from.0..by.0).contains(seq));
        }
        Ok(())
    }

    /// Whether this update is kept: what it brings was not replaced, nor painted.
    pub(crate) fn has(&self, surface: WireId, seq: UpdateSeq) -> bool {
        self.stored.get(&surface).is_some_and(|stored| stored.contains_key(&seq.0))
    }

    /// Whether everything up to this update is here.
    pub(crate) fn is_there(&self, surface: WireId, seq: UpdateSeq) -> bool {
        self.book.reached(SurfaceId(surface.0)) >= Some(seq)
    }

    /// Has the frames decoded that a surface's updates have up to this one, which is there. Nothing is left of those
    /// before one that begins anew.
    pub(crate) fn decode(&mut self, now: Time, surface: WireId, seq: UpdateSeq) {
        let (Some(videos), Some(stored)) = (self.videos.get_mut(&surface), self.stored.get_mut(&surface))
        else {
            return;
        };
        if seq.0 <= videos.last {
            return;
        }
        let mut new = stored.range_mut(videos.last + 1..=seq.0).rev();
        let first = new.find_map(|(number, update)| update.fresh.then_some(*number));
        for (number, update) in stored.range_mut(first.unwrap_or(videos.last + 1)..=seq.0) {
            update.decode(now, *number, videos, &self.decoders);
        }
        videos.last = seq.0;
    }

    /// Whether those that were to be decoded up to this update are.
    pub(crate) fn is_decoded(&mut self, surface: WireId, seq: UpdateSeq) -> bool {
        self.videos.get_mut(&surface).is_none_or(|videos| videos.are_there(seq.0))
    }

    /// A surface has lost its content: its videos are over. Those that are to be shown later have begun after that.
    pub(crate) fn end_videos(&mut self, surface: WireId) {
        let Some(videos) = self.videos.get_mut(&surface) else { return };
        let stored = self.stored.get(&surface);
        if stored.is_none_or(|stored| stored.range(..=videos.last).next().is_none()) {
            videos.clear();
        }
    }

    /// The updates that bring a surface's content up to one, from the last that begins anew, in sequence.
    pub(crate) fn take(&mut self, surface: WireId, seq: UpdateSeq) -> Vec<Stored> {
        let Some(stored) = self.stored.get_mut(&surface) else { return Vec::new() };
        let later = stored.split_off(&seq.0.saturating_add(1));
        let mut updates: Vec<Stored> = std::mem::replace(stored, later).into_values().collect();
        let first = updates.iter().rposition(|update| update.fresh).unwrap_or(0);
        updates.split_off(first)
    }
}

impl Stored {
    fn new(size: Size, format: Format, fresh: bool, chunks: Vec<Bytes>, lease: Lease) -> Self {
        let split = video::split(&chunks, size).map(|(frames, others)| {
            let others = (!frames.is_empty()).then(|| others.into_iter().cloned().collect());
            (frames, others)
        });
        let (frames, chunks, wrong) = match split {
            Ok((frames, others)) => (frames, others.unwrap_or(chunks), None),
            Err(error) => (Vec::new(), Vec::new(), Some(error.to_string())),
        };
        Self { size, format, fresh, chunks, frames, shown: Vec::new(), wrong, _lease: lease }
    }

    fn decode(&mut self, now: Time, number: u64, videos: &mut Videos, decoders: &Rc<Decoders>) {
        let frames = std::mem::take(&mut self.frames);
        match videos.advance(now, decoders, (self.format, self.fresh), &frames) {
            Ok(shown) => {
                videos.wait_for(number, &shown);
                self.shown = shown;
            }
            Err(what) => self.wrong = Some(what),
        }
    }

    /// Paints it on the content that it builds on. Says where.
    ///
    /// # Errors
    /// What is wrong with it; the content is as before then.
    pub(crate) fn paint(&self, decoder: &mut Decoder, content: &mut Content) -> Result<Region, String> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        if !self.shown.iter().all(Shown::is_there) {
            return Err("a frame of a video cannot be decoded".to_owned());
        }
        if (content.size(), content.format()) != (self.size, self.format) {
            return Err("it builds on content of another size or format".to_owned());
        }
        let most = Decoder::most_memory(self.size, self.format).min(MAX_OPENED);
        let (mut opened, mut bytes) = (Vec::with_capacity(self.chunks.len()), 0);
        for chunk in &self.chunks {
            let chunk = decoder.open(self.size, self.format, chunk).map_err(|error| error.to_string())?;
            bytes += chunk.memory();
            if bytes > most {
                return Err(format!("it takes more than {most} bytes"));
            }
            opened.push(chunk);
        }
        let mut region = decoder.paint(content, &opened).map_err(|error| error.to_string())?;
        for shown in &self.shown {
            shown.paint(content);
            region.add(shown.rect);
        }
        Ok(region)
    }
}
