//! The updates that wait for their units.
//!
//! They stay packed until they are painted. Invariant: those of a surface are painted in sequence, each once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_pixels::{Content, Decoder, Format, Region, Size};
use wayferry_proto::{SurfaceId, UpdateHeader, UpdateSeq, fence};

use crate::end::{End, wrong};
use crate::share::{Lease, Share};

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
    share: Rc<Share>,
}

/// An update, packed.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) size: Size,
    pub(crate) format: Format,
    pub(crate) fresh: bool,
    chunks: Vec<Bytes>,
    _lease: Lease,
}

impl Updates {
    pub(crate) fn new(share: Rc<Share>) -> Self {
        Self { book: fence::Updates::new(), stored: BTreeMap::new(), newest: WireId::NULL, share }
    }

    /// A surface has been made.
    pub(crate) fn create(&mut self, surface: WireId) -> Result<(), End> {
        self.book.create(SurfaceId(surface.0)).map_err(|error| wrong(error.to_string()))?;
        // What came early for ids that were passed over belongs to nothing.
        let skipped = (Bound::Excluded(self.newest), Bound::Excluded(surface));
        let skipped: Vec<WireId> = self.stored.range(skipped).map(|(id, _)| *id).collect();
        skipped.iter().for_each(|id| drop(self.stored.remove(id)));
        self.newest = surface;
        Ok(())
    }

    /// A surface is gone.
    pub(crate) fn destroy(&mut self, surface: WireId) {
        self.book.destroy(SurfaceId(surface.0));
        self.stored.remove(&surface);
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
            let update = Stored { size, format, fresh: header.fresh, chunks, _lease: lease };
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
    /// Paints it on the content that it builds on. Says where.
    ///
    /// # Errors
    /// What is wrong with it; the content is as before then.
    pub(crate) fn paint(&self, decoder: &mut Decoder, content: &mut Content) -> Result<Region, String> {
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
        decoder.paint(content, &opened).map_err(|error| error.to_string())
    }
}
