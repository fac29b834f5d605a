//! What the display side keeps of a surface: its pixels, its buffers, the updates that wait for their unit.
//!
//! Knows pixels and times, no Wayland messages. Invariant: a surface's content is that of the last update applied to
//! it, and updates are applied in sequence, each once.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use wayferry_pixels::film;
use wayferry_pixels::{Content, Decoder, Format, Region, Size};
use wayferry_proto::{SurfaceId, Time, UpdateHeader, UpdateSeq, fence};

use crate::action::End;
use crate::message::WireId;

use super::buffers::Pool;
use super::films::Films;

/// A surface counts as hidden when the compositor has not asked for a frame for so long.
const HIDDEN_AFTER: Duration = Duration::from_secs(1);

/// Bytes of updates that may wait for their units in one app connection.
const MAX_UPDATE_BYTES: usize = 256 << 20;

/// Updates in succession that cannot be painted, of one surface: that is no accident any more.
const MAX_REFUSED: u32 = 3;

/// Bytes of pixels that the surfaces of one app connection may have.
const MAX_CONTENT_BYTES: usize = 1 << 30;

/// One surface.
#[derive(Debug)]
pub(super) struct Surface {
    /// Version that it is bound at.
    pub(super) version: u32,
    /// The pixels; none before the first update and after an empty attach.
    pub(super) content: Option<Content>,
    pub(super) films: Films,
    /// The compositor's copies.
    pub(super) pool: Pool,
    /// The number of the last unit accepted.
    pub(super) last_unit: u64,
    /// Whether the surface has content once all units accepted are applied.
    pub(super) will_have_content: bool,
    /// Units whose content is to be reported as shown with the next frame.
    pub(super) awaiting: Vec<u64>,
    /// Since when a frame callback is unanswered.
    asked: Option<Time>,
    visible: bool,
    /// How many updates in succession could not be painted; until a whole content comes, nothing can.
    refused: u32,
}

impl Surface {
    pub(super) fn new(version: u32) -> Self {
        Self {
            version,
            content: None,
            films: Films::default(),
            pool: Pool::default(),
            last_unit: 0,
            will_have_content: false,
            awaiting: Vec::new(),
            asked: None,
            visible: true,
            refused: 0,
        }
    }

    /// Whether a frame callback should go with the next commit; it counts as sent.
    pub(super) fn ask_frame(&mut self, now: Time) -> bool {
        let ask = self.asked.is_none() && self.content.is_some();
        if ask {
            self.asked = Some(now);
        }
        ask
    }

    /// The compositor has answered a frame callback. Returns whether that makes the surface visible again.
    pub(super) fn on_frame(&mut self) -> bool {
        self.asked = None;
        !std::mem::replace(&mut self.visible, true)
    }

    /// When the surface will count as hidden, unless a frame comes before.
    pub(super) fn hidden_at(&self) -> Option<Time> {
        self.asked.filter(|_| self.visible).map(|asked| asked + HIDDEN_AFTER)
    }

    /// Whether the surface counts as hidden from now on.
    pub(super) fn hide_if_due(&mut self, now: Time) -> bool {
        let due = self.hidden_at().is_some_and(|at| at <= now);
        if due {
            self.visible = false;
        }
        due
    }

    /// Drops the content.
    pub(super) fn unmap(&mut self) {
        self.content = None;
        self.films.clear();
        self.pool.reset();
        self.asked = None;
    }

    fn content_bytes(&self) -> usize {
        self.films.bytes() + self.content.as_ref().map_or(0, |content| content.pixels().len())
    }
}

/// Complete updates on their way to the units that name them.
#[derive(Debug, Default)]
pub(super) struct Updates {
    book: fence::Updates,
    stored: HashMap<WireId, BTreeMap<u64, Stored>>,
    bytes: usize,
    decoder: Decoder,
}

#[derive(Debug)]
struct Stored {
    size: Size,
    format: Format,
    fresh: bool,
    chunks: Vec<Bytes>,
}

impl Stored {
    fn bytes(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }
}

impl Updates {
    /// A surface has been made.
    pub(super) fn create(&mut self, surface: WireId) -> Result<(), End> {
        self.book.create(SurfaceId(surface.0)).map_err(|error| End::PeerViolation(error.to_string()))
    }

    /// A surface is gone.
    pub(super) fn destroy(&mut self, surface: WireId) {
        self.book.destroy(SurfaceId(surface.0));
        for stored in self.stored.remove(&surface).into_iter().flatten() {
            self.bytes -= stored.1.bytes();
        }
    }

    /// All chunks of an update are here.
    pub(super) fn add(&mut self, header: &UpdateHeader, chunks: Vec<Bytes>) -> Result<(), End> {
        let (width, height) = header.size;
        let size = Size::new(width, height).map_err(|error| End::PeerViolation(error.to_string()))?;
        let Some(format) = Format::from_code(header.format) else {
            return Err(End::PeerViolation(format!("an update in pixel format {}", header.format)));
        };
        let wanted = self.book.complete(header.surface, header.seq);
        if !wanted.map_err(|error| End::PeerViolation(error.to_string()))? {
            return Ok(());
        }
        let stored = Stored { size, format, fresh: header.fresh, chunks };
        self.bytes += stored.bytes();
        if self.bytes > MAX_UPDATE_BYTES {
            return Err(End::TooMuch("bytes of updates that wait for their units"));
        }
        self.stored.entry(WireId(header.surface.0)).or_default().insert(header.seq.0, stored);
        Ok(())
    }

    /// An update will not come; `by` replaces it.
    pub(super) fn supersede(&mut self, surface: WireId, update: u64, by: u64) -> Result<(), End> {
        let outcome = self.book.supersede(SurfaceId(surface.0), UpdateSeq(update), UpdateSeq(by));
        outcome.map_err(|error| End::PeerViolation(error.to_string()))
    }

    /// Whether everything up to this update is here (or the surface is gone).
    pub(super) fn is_complete(&self, surface: WireId, seq: u64) -> bool {
        self.book.reached(SurfaceId(surface.0)) >= Some(UpdateSeq(seq))
    }

    /// Brings a surface's content up to an update. One that cannot be painted changes nothing, and neither does what
    /// builds on it; the content is to be asked for again.
    pub(super) fn apply(&mut self, wire: WireId, surface: &mut Surface, seq: u64) -> Result<Applied, End> {
        let mut applied = Applied::default();
        let Some(stored) = self.stored.get_mut(&wire) else { return Ok(applied) };
        let later = stored.split_off(&seq.saturating_add(1));
        for (seq, update) in std::mem::replace(stored, later) {
            self.bytes -= update.bytes();
            match paint(&mut self.decoder, surface, &update) {
                Ok(region) => applied.changed.union(&region),
                Err(what) => {
                    surface.films.clear();
                    surface.refused += 1;
                    applied.refused = true;
                    if surface.refused > MAX_REFUSED {
                        let what = format!("update {seq} of surface {}: {what}", wire.0);
                        return Err(End::PeerViolation(what));
                    }
                }
            }
        }
        Ok(applied)
    }
}

/// What updates have done to a content.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Where it is different.
    pub(super) changed: Region,
    /// Not all could be painted.
    pub(super) refused: bool,
}

/// Paints one update; gives what changed, or what is wrong with it.
fn paint(decoder: &mut Decoder, surface: &mut Surface, update: &Stored) -> Result<Region, String> {
    if update.fresh {
        let mut content = Content::new(update.size, update.format);
        surface.films.clear();
        paint_on(decoder, &mut content, &mut surface.films, update)?;
        surface.pool.reset();
        surface.content = Some(content);
        surface.refused = 0;
        return Ok(Region::full(update.size));
    }
    if surface.refused > 0 {
        return Ok(Region::new());
    }
    let fits = |content: &&mut Content| (content.size(), content.format()) == (update.size, update.format);
    let Some(content) = surface.content.as_mut().filter(fits) else {
        return Err("it builds on content of another size or format".to_owned());
    };
    let region = paint_on(decoder, content, &mut surface.films, update)?;
    surface.pool.changed(&region);
    Ok(region)
}

/// Paints it on the content that it builds on: frames of films last, but what is wrong with them is found first.
fn paint_on(
    decoder: &mut Decoder,
    content: &mut Content,
    films: &mut Films,
    update: &Stored,
) -> Result<Region, String> {
    let wrong = |error: wayferry_pixels::Error| error.to_string();
    let (frames, chunks) = film::split(&update.chunks, update.size).map_err(wrong)?;
    let frames = films.decode(&frames, update.format)?;
    let mut region = decoder.apply(content, chunks).map_err(wrong)?;
    for frame in frames {
        frame.paint(content);
        region.add(frame.rect);
    }
    Ok(region)
}

/// Whether the surfaces together stay within the bounds.
pub(super) fn check_memory<'a>(surfaces: impl Iterator<Item = &'a Surface>) -> Result<(), End> {
    let bytes: usize = surfaces.map(Surface::content_bytes).sum();
    if bytes > MAX_CONTENT_BYTES {
        return Err(End::TooMuch("bytes of pixels of one program"));
    }
    Ok(())
}

/// A surface for tests of the other half: what it shows of its updates.
#[cfg(all(test, feature = "video"))]
#[derive(Debug)]
pub(crate) struct Screen {
    surface: Surface,
    decoder: Decoder,
}

#[cfg(all(test, feature = "video"))]
impl Screen {
    pub(crate) fn new() -> Self {
        Self { surface: Surface::new(6), decoder: Decoder::new() }
    }

    /// Takes one update in.
    pub(crate) fn apply(&mut self, update: &crate::Update) -> Result<(), String> {
        let chunks = update.chunks.iter().cloned().map(Bytes::from).collect();
        let stored = Stored { size: update.size, format: update.format, fresh: update.fresh, chunks };
        paint(&mut self.decoder, &mut self.surface, &stored).map(drop)
    }

    pub(crate) fn pixels(&self) -> &[u8] {
        self.surface.content.as_ref().map_or(&[], |content| content.pixels())
    }
}
