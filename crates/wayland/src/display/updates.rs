//! The updates that wait for their units: large ones are opened a slice at a time as they arrive, and counted as there
//! when they are open; small ones, and those that there is no memory for, when it is their unit's turn.
//!
//! Invariant: a surface's updates are painted in sequence, each once, and those that a unit brings all or none.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use bytes::Bytes;
use wayferry_pixels::video::{self, Frame};
use wayferry_pixels::{Content, Decoder, Error, Format, Opened, Region, Size};
use wayferry_proto::{SurfaceId, UnitHead, UpdateHeader, UpdateSeq, fence};

use crate::action::End;
use crate::message::{Unit, WireId};
use crate::trace::{Probe, Stage};
use crate::workers::Workers;

use super::ground::{Ground, Painted};
use super::opening::Opening;
use super::surface::Surface;
use super::told::Told;
use super::videos::Videos;

/// Bytes of updates that may wait for their units in one app connection: a commit of the largest surface, behind what
/// may be under way.
const MAX_UPDATE_BYTES: usize = 384 << 20;

/// Memory that opened chunks may take before their updates are painted, of one app connection: several screens.
pub(super) const MAX_OPENED_BYTES: usize = 128 << 20;

/// Updates in succession that cannot be painted, of one surface: that is no accident any more.
const MAX_REFUSED: u32 = 3;

/// Bytes of an update that is not worth a turn of its own, and of memory that are touched to open it.
const SMALL_UPDATE: usize = 16 << 10;
const SMALL_EFFORT: usize = 128 << 10;

/// What an update and a chunk that waits take beside their bytes.
const UPDATE_COST: usize = 256;
const CHUNK_COST: usize = 32;

/// What opening a chunk costs at least, in bytes of memory.
const LEAST_COST: usize = 4 << 10;

/// What painting costs, in bytes of memory: for each byte of a chunk that is still to be opened, and for each pixel of
/// a video.
const CLOSED_COST: usize = 16;
const VIDEO_COST: usize = 16;

/// Complete updates on their way to the units that name them.
#[derive(Debug)]
pub(super) struct Updates {
    book: fence::Updates,
    /// There for their units.
    stored: HashMap<WireId, BTreeMap<u64, Stored>>,
    /// To be opened first, in the order of their arrival.
    closed: VecDeque<(WireId, u64, Stored)>,
    /// Before all of those: with a worker.
    opening: Option<Opening>,
    /// Of what is not open.
    bytes: usize,
    /// Memory of what is open.
    opened: usize,
    /// Surfaces of which some were given up.
    given_up: HashSet<WireId>,
    /// What a worker paints.
    painting: Load,
    /// Nothing more is opened beyond so much.
    most_opened: usize,
    decoder: Decoder,
    /// Units that some brought.
    told: Told,
}

impl Default for Updates {
    fn default() -> Self {
        Self {
            book: fence::Updates::new(),
            stored: HashMap::new(),
            closed: VecDeque::new(),
            opening: None,
            bytes: 0,
            opened: 0,
            given_up: HashSet::new(),
            painting: Load::default(),
            most_opened: MAX_OPENED_BYTES,
            decoder: Decoder::new(),
            told: Told::default(),
        }
    }
}

/// Updates that a worker paints.
#[derive(Debug, Default)]
struct Load {
    /// Of what is not open.
    bytes: usize,
    /// About what painting touches of memory.
    cost: usize,
}

/// An update.
#[derive(Debug)]
pub(super) struct Stored {
    size: Size,
    format: Format,
    fresh: bool,
    covers: u8,
    unit: Option<UnitHead>,
    pub(super) bytes: usize,
    frames: Vec<Frame>,
    /// Chunks that are not open yet.
    chunks: VecDeque<Bytes>,
    /// About how many bytes of memory are touched to open all.
    effort: usize,
    opened: Vec<Opened>,
    pub(super) memory: usize,
    /// What is wrong with it, once that is known.
    wrong: Option<String>,
}

impl Stored {
    fn new(size: Size, format: Format, fresh: bool, chunks: Vec<Bytes>) -> Self {
        let bytes: usize = chunks.iter().map(|chunk| chunk.len() + CHUNK_COST).sum();
        let bytes = bytes + UPDATE_COST;
        let split = video::split(&chunks, size).map(|(frames, others)| {
            let others = (!frames.is_empty()).then(|| others.into_iter().cloned().collect());
            (frames, others)
        });
        let (frames, chunks, wrong) = match split {
            Ok((frames, others)) => (frames, others.unwrap_or_else(|| chunks.into()), None),
            Err(error) => (Vec::new(), VecDeque::new(), Some(error.to_string())),
        };
        let (covers, unit, opened) = (0, None, Vec::new());
        let effort: u64 = chunks.iter().map(|chunk| Decoder::effort(size, chunk)).sum();
        let effort = usize::try_from(effort).unwrap_or(usize::MAX);
        Self { size, format, fresh, covers, unit, bytes, frames, chunks, effort, opened, memory: 0, wrong }
    }

    /// What its header says, without any chunks.
    pub(super) fn shell(&self) -> Self {
        let shell = Self::new(self.size, self.format, self.fresh, Vec::new());
        Self { covers: self.covers, unit: self.unit, bytes: 0, ..shell }
    }

    /// With what its header says of those before it, and of its unit.
    fn with(mut self, header: &UpdateHeader) -> Self {
        (self.covers, self.unit) = (header.covers, header.unit);
        if self.covers > 0 && !self.frames.is_empty() {
            self.wrong = Some("a frame of a video, which builds on what it covers".to_owned());
        }
        self
    }

    /// Opens chunks until they have used up `room`.
    fn open(&mut self, decoder: &mut Decoder, room: &mut usize) {
        self.open_unless(decoder, room, || false);
    }

    /// The same, until it is to stop.
    pub(super) fn open_unless(&mut self, decoder: &mut Decoder, room: &mut usize, stop: impl Fn() -> bool) {
        while *room > 0
            && !stop()
            && let Some(chunk) = self.chunks.pop_front()
        {
            *room = room.saturating_sub(LEAST_COST);
            self.bytes -= chunk.len();
            if let Err(wrong) = self.open_one(decoder, &chunk, room) {
                (self.chunks, self.opened, self.memory) = (VecDeque::new(), Vec::new(), 0);
                self.wrong = Some(wrong);
            }
        }
    }

    fn open_one(&mut self, decoder: &mut Decoder, chunk: &[u8], room: &mut usize) -> Result<(), String> {
        let opened = decoder.open(self.size, self.format, chunk).map_err(|error| error.to_string())?;
        let bytes = self.memory + opened.memory();
        let most = Decoder::most_memory(self.size, self.format);
        if bytes > most {
            return Err(Error::UpdateMemory { bytes, most }.to_string());
        }
        if self.covers > 0 && opened.copies() {
            return Err("a copy of what it covers".to_owned());
        }
        *room = room.saturating_sub(opened.memory());
        self.memory = bytes;
        self.opened.push(opened);
        Ok(())
    }

    /// Whether it takes no time to open.
    fn is_small(&self) -> bool {
        self.bytes <= SMALL_UPDATE && self.effort <= SMALL_EFFORT
    }

    /// About how many bytes of memory are touched to paint it, for each time. What is small is open.
    fn work(&self) -> usize {
        let pixels: u64 = self.opened.iter().map(Opened::pixels).sum();
        self.cost().max(pixels as usize * self.format.bytes_per_pixel())
    }

    /// About how many bytes of memory it takes to paint it.
    fn cost(&self) -> usize {
        let videos: u64 = self.frames.iter().map(|frame| frame.video.rect.area()).sum();
        let closed: usize = self.chunks.iter().map(Bytes::len).sum();
        self.memory + closed * CLOSED_COST + videos as usize * VIDEO_COST
    }

    /// Bytes of the content that it makes. That takes memory, but less time than it takes to paint as much.
    pub(super) fn made(&self) -> usize {
        let pixels = if self.fresh { self.size.rect().area() as usize } else { 0 };
        pixels * self.format.bytes_per_pixel()
    }

    /// What is wrong with it as the next update of content of this shape, as far as that can be known before.
    fn fault(&self, shape: Option<(Size, Format)>) -> Option<String> {
        if self.wrong.is_some() {
            return self.wrong.clone();
        }
        if !self.fresh && shape != Some((self.size, self.format)) {
            return Some("it builds on content of another size or format".to_owned());
        }
        Decoder::check(self.size, self.format, &self.opened).err().map(|error| error.to_string())
    }
}

impl Updates {
    /// A surface has been made.
    pub(super) fn create(&mut self, surface: WireId, is_there: impl Fn(WireId) -> bool) -> Result<(), End> {
        self.told.created(surface, is_there);
        self.book.create(SurfaceId(surface.0)).map_err(|error| End::PeerViolation(error.to_string()))
    }

    /// A surface is gone.
    pub(super) fn destroy(&mut self, surface: WireId) {
        self.book.destroy(SurfaceId(surface.0));
        self.given_up.remove(&surface);
        self.told.forget(surface, u64::MAX);
        let closed = std::mem::take(&mut self.closed).into_iter();
        let (gone, closed): (VecDeque<_>, _) = closed.partition(|(of, ..)| *of == surface);
        self.closed = closed;
        self.drop_opening(surface);
        let stored = self.stored.remove(&surface).into_iter().flat_map(BTreeMap::into_values);
        for update in stored.chain(gone.into_iter().map(|(.., update)| update)) {
            self.bytes -= update.bytes;
            self.opened -= update.memory;
        }
    }

    /// All chunks of an update are here.
    pub(super) fn add(&mut self, header: &UpdateHeader, chunks: Vec<Bytes>) -> Result<(), End> {
        let (width, height) = header.size;
        let size = Size::new(width, height).map_err(|error| End::PeerViolation(error.to_string()))?;
        let Some(format) = Format::from_code(header.format) else {
            return Err(End::PeerViolation(format!("an update in pixel format {}", header.format)));
        };
        let update = Stored::new(size, format, header.fresh, chunks).with(header);
        let surface = WireId(header.surface.0);
        self.bytes += update.bytes;
        if !update.is_small() && update.wrong.is_none() {
            self.closed.push_back((surface, header.seq.0, update));
        } else {
            self.complete(surface, header.seq.0, update)?;
        }
        if self.bytes + self.painting.bytes > MAX_UPDATE_BYTES {
            return Err(End::TooMuch("bytes of updates that wait for their units"));
        }
        Ok(())
    }

    /// Bytes of all that wait, and of how many surfaces they are.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.bytes + self.opened, self.by_surface().len())
    }

    /// Bytes of those that wait, by their surface.
    fn by_surface(&self) -> BTreeMap<WireId, usize> {
        let mut sizes = BTreeMap::new();
        let stored =
            self.stored.iter().flat_map(|(wire, stored)| stored.values().map(|update| (*wire, update)));
        for (wire, update) in stored.chain(self.closed.iter().map(|(wire, _, update)| (*wire, update))) {
            *sizes.entry(wire).or_default() += update.bytes + update.memory;
        }
        if let Some(opening) = &self.opening {
            *sizes.entry(opening.surface).or_default() += opening.bytes + opening.memory;
        }
        sizes
    }

    /// Gives up all of the surface of which most waits: they count as there, and it is as if they could not be painted.
    /// Says whether there were any.
    pub(super) fn give_up(&mut self) -> Result<bool, End> {
        let most = self.by_surface().into_iter().max_by_key(|(_, bytes)| *bytes);
        let Some((surface, _)) = most else { return Ok(false) };
        let closed = std::mem::take(&mut self.closed).into_iter();
        let (gone, closed): (VecDeque<_>, _) = closed.partition(|(of, ..)| *of == surface);
        self.closed = closed;
        if let Some((seq, shell)) = self.drop_opening(surface) {
            self.complete(surface, seq, shell)?;
        }
        for (_, seq, mut update) in gone {
            (self.bytes, self.opened) = (self.bytes - update.bytes, self.opened - update.memory);
            (update.bytes, update.memory) = (0, 0);
            self.complete(surface, seq, update)?;
        }
        for update in self.stored.remove(&surface).into_iter().flat_map(BTreeMap::into_values) {
            (self.bytes, self.opened) = (self.bytes - update.bytes, self.opened - update.memory);
        }
        self.given_up.insert(surface);
        Ok(true)
    }

    /// Whether there is something for [`Self::open`] to do.
    pub(super) fn has_closed(&self) -> bool {
        !self.closed.is_empty() && self.opening.is_none() && !self.must_wait()
    }

    /// Whether more is opened only when a worker has painted what it has.
    fn must_wait(&self) -> bool {
        self.painting.cost > 0 && self.opened.saturating_add(self.painting.cost) >= self.most_opened
    }

    /// A worker paints these, which touches about so much memory.
    pub(super) fn lend<'a>(&mut self, updates: impl Iterator<Item = &'a (u64, Stored)>, cost: usize) {
        self.painting = Load { bytes: updates.map(|(_, update)| update.bytes).sum(), cost };
    }

    /// It has painted them.
    pub(super) fn are_painted(&mut self) {
        self.painting = Load::default();
    }

    /// Whether a worker has something that [`Self::open`] is to take back.
    pub(super) fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Opens updates until they have used up `room`, in bytes of memory, or has workers open them. Returns whether one
    /// has become complete.
    pub(super) fn open(&mut self, room: &mut usize, workers: &Workers, probe: &Probe) -> Result<bool, End> {
        let mut any = self.take_back()?;
        while *room > 0
            && self.opening.is_none()
            && !self.must_wait()
            && let Some((surface, seq, mut update)) = self.closed.pop_front()
        {
            if self.opened < self.most_opened {
                if workers.are_there() {
                    let most = self.most_opened - self.opened;
                    self.opening = Some(Opening::begin((surface, seq), update, most, workers, probe));
                    any |= self.take_back()?;
                    continue;
                }
                let begun = probe.begin();
                (self.bytes, self.opened) = (self.bytes - update.bytes, self.opened - update.memory);
                update.open(&mut self.decoder, room);
                (self.bytes, self.opened) = (self.bytes + update.bytes, self.opened + update.memory);
                probe.end(begun, Stage::Decode, (surface, seq), 0);
                if !update.chunks.is_empty() {
                    self.closed.push_front((surface, seq, update));
                    continue;
                }
            }
            self.complete(surface, seq, update)?;
            any = true;
        }
        Ok(any)
    }

    /// Takes back what a worker has opened. Returns whether that is complete.
    fn take_back(&mut self) -> Result<bool, End> {
        let Some(update) = self.opening.as_mut().and_then(Opening::poll) else { return Ok(false) };
        let Some(Opening { surface, seq, bytes, memory, .. }) = self.opening.take() else { return Ok(false) };
        (self.bytes, self.opened) = (self.bytes - bytes + update.bytes, self.opened - memory + update.memory);
        if update.chunks.is_empty() {
            return self.complete(surface, seq, update).map(|()| true);
        }
        // There is no memory for the rest now.
        self.closed.push_front((surface, seq, update));
        Ok(false)
    }

    /// What a worker has of a surface is of no more use; gives its number, and what is known of it without its chunks.
    fn drop_opening(&mut self, surface: WireId) -> Option<(u64, Stored)> {
        let Opening { seq, bytes, memory, shell, .. } =
            self.opening.take_if(|opening| opening.surface == surface)?;
        (self.bytes, self.opened) = (self.bytes - bytes, self.opened - memory);
        Some((seq, shell))
    }

    /// Counts an update as there; says whether it is needed.
    fn book_as_there(&mut self, surface: WireId, seq: u64) -> Result<bool, End> {
        let wanted = self.book.complete(SurfaceId(surface.0), UpdateSeq(seq));
        wanted.map_err(|error| End::PeerViolation(error.to_string()))
    }

    /// An update counts as there from now on, unless it is needed no more.
    fn complete(&mut self, surface: WireId, seq: u64, update: Stored) -> Result<(), End> {
        if self.book_as_there(surface, seq)? {
            if update.covers > 0 {
                self.supersede(surface, seq.saturating_sub(update.covers.into()), seq)?;
            }
            update.unit.map_or(Ok(()), |unit| self.told.add(surface, UpdateSeq(seq), unit))?;
            self.stored.entry(surface).or_default().insert(seq, update);
        } else {
            self.bytes -= update.bytes;
            self.opened -= update.memory;
        }
        Ok(())
    }

    /// Units that updates have told, and whose updates are there with all that they build on, after so many messages.
    pub(super) fn told(&self, messages: u64) -> Vec<Unit> {
        self.told.due(messages, |surface, update| self.is_complete(surface, update.0))
    }

    /// Those up to this one are shown, or need not be.
    pub(super) fn forget_told(&mut self, surface: WireId, unit: u64) {
        self.told.forget(surface, unit);
    }

    /// Updates from `update` on will not come, or need not; `by` replaces them.
    pub(super) fn supersede(&mut self, surface: WireId, update: u64, by: u64) -> Result<(), End> {
        let outcome = self.book.supersede(SurfaceId(surface.0), UpdateSeq(update), UpdateSeq(by));
        outcome.map_err(|error| End::PeerViolation(error.to_string()))
    }

    /// Whether everything up to this update is here (or the surface is gone).
    pub(super) fn is_complete(&self, surface: WireId, seq: u64) -> bool {
        self.book.reached(SurfaceId(surface.0)) >= Some(UpdateSeq(seq))
    }

    /// Opens what is small of the updates that bring a surface's content up to one, and gives about how many bytes of
    /// memory are touched to paint them all.
    pub(super) fn work(&mut self, surface: WireId, seq: u64) -> usize {
        let updates = self.stored.get_mut(&surface).into_iter().flat_map(|stored| stored.range_mut(..=seq));
        let mut work = 0usize;
        for (_, update) in updates {
            if update.is_small() && self.opened < self.most_opened {
                (self.bytes, self.opened) = (self.bytes - update.bytes, self.opened - update.memory);
                update.open(&mut self.decoder, &mut usize::MAX.clone());
                (self.bytes, self.opened) = (self.bytes + update.bytes, self.opened + update.memory);
            }
            work = work.saturating_add(update.work());
        }
        work
    }

    /// About how many bytes of memory it takes to bring a surface's content up to an update.
    pub(super) fn cost(&self, surface: WireId, seq: u64) -> usize {
        let updates = self.stored.get(&surface).into_iter().flat_map(|stored| stored.range(..=seq));
        updates.map(|(_, update)| update.cost()).fold(0, usize::saturating_add)
    }

    /// The size and format of the content that the surface has then, if those up to it bring one.
    pub(super) fn shape(&self, surface: WireId, seq: u64) -> Option<(Size, Format)> {
        let (_, last) = self.stored.get(&surface)?.range(..=seq).next_back()?;
        Some((last.size, last.format))
    }

    /// Whether what an update builds on was dropped, so that [`Self::apply`] would not bring the content up to it.
    pub(super) fn misses(&self, wire: WireId, surface: &Surface, seq: u64) -> bool {
        let lost = surface.lost.is_some() || self.given_up.contains(&wire);
        let begins = |stored: &BTreeMap<u64, Stored>| stored.range(..=seq).any(|(_, update)| update.fresh);
        lost && surface.refused == 0 && !self.stored.get(&wire).is_some_and(begins)
    }

    /// Brings a surface's content up to an update. If one on the way cannot be painted, nothing changes, and neither
    /// does it by what builds on that; the content is to be asked for again.
    pub(super) fn apply(&mut self, wire: WireId, surface: &mut Surface, seq: u64) -> Result<Applied, End> {
        let mut applied = Applied::default();
        if let Some(ahead) = surface.ahead.take() {
            applied.add(&settle(wire, surface, ahead)?);
        }
        let gave_up = self.given_up.remove(&wire);
        let updates = self.take(wire, seq);
        let builds = updates.first().is_some_and(|(_, update)| !update.fresh);
        let gone = gave_up && (builds || updates.is_empty());
        if gone {
            surface.lose();
        }
        if builds || gone {
            if surface.refused > 0 {
                return Ok(applied);
            }
            if surface.lost.is_some() {
                (applied.wanted, applied.missing) = (applied.wanted | surface.ask_again(), true);
                return Ok(applied);
            }
        }
        let mut ground = surface.lend();
        let painted = paint_all(&mut self.decoder, &mut ground, updates, self.most_opened);
        surface.come_back(ground, &painted);
        applied.add(&settle(wire, surface, painted)?);
        Ok(applied)
    }

    /// The updates that bring a surface's content up to one, from the last that begins anew.
    pub(super) fn take(&mut self, wire: WireId, seq: u64) -> Vec<(u64, Stored)> {
        let Some(stored) = self.stored.get_mut(&wire) else { return Vec::new() };
        let later = stored.split_off(&seq.saturating_add(1));
        let mut updates: Vec<(u64, Stored)> = std::mem::replace(stored, later).into_iter().collect();
        for (_, update) in &updates {
            self.bytes -= update.bytes;
            self.opened -= update.memory;
        }
        // Nothing is left of what comes before one that begins anew.
        let first = updates.iter().rposition(|(_, update)| update.fresh).unwrap_or(0);
        updates.split_off(first)
    }

    /// Whether some of a surface's were given up.
    pub(super) fn gave_up(&self, wire: WireId) -> bool {
        self.given_up.contains(&wire)
    }
}

#[cfg(test)]
impl Updates {
    /// Lets opened chunks take no more memory than this, about.
    pub(super) fn limit(&mut self, most_opened: usize) {
        self.most_opened = most_opened;
    }

    /// Bytes of updates that wait, and memory of what of them is open.
    pub(super) fn memory(&self) -> (usize, usize) {
        (self.bytes, self.opened)
    }
}

/// What updates have done to a content.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Where it is different.
    pub(super) changed: Region,
    /// Not all could be painted: the whole content is wanted again.
    pub(super) wanted: bool,
    /// What they build on was dropped.
    pub(super) missing: bool,
}

impl Applied {
    fn add(&mut self, other: &Self) {
        self.changed.union(&other.changed);
        self.wanted |= other.wanted;
        self.missing |= other.missing;
    }
}

/// Takes note of what painting has come to.
fn settle(wire: WireId, surface: &mut Surface, painted: Painted) -> Result<Applied, End> {
    let wanted = painted.wrong.is_some();
    if let Some((seq, what)) = painted.wrong {
        surface.videos.clear();
        surface.refused += 1;
        if surface.refused > MAX_REFUSED {
            return Err(End::PeerViolation(format!("update {seq} of surface {}: {what}", wire.0)));
        }
    } else if painted.any {
        surface.refused = 0;
    }
    Ok(Applied { changed: painted.changed, wanted, missing: false })
}

/// Paints updates, in their sequence. What of them is closed is opened first, up to so many bytes of memory.
pub(super) fn paint_all(
    decoder: &mut Decoder,
    ground: &mut Ground,
    mut updates: Vec<(u64, Stored)>,
    mut room: usize,
) -> Painted {
    updates.iter_mut().for_each(|(_, update)| update.open(decoder, &mut room));
    let (any, wrong) = (!updates.is_empty(), fault(ground, &updates));
    let mut painted = Painted { any, wrong, ..Painted::default() };
    for (seq, mut update) in updates {
        if painted.wrong.is_some() {
            break;
        }
        match paint(decoder, ground, &mut update) {
            Ok((region, is_new)) => {
                painted.changed.union(&region);
                painted.is_new |= is_new;
            }
            Err(what) => painted.wrong = Some((seq, what)),
        }
    }
    painted
}

/// What is wrong with the first of these updates that cannot be painted, and which that is. It is not known before of
/// frames of videos, which are in the first update of a unit, and of what there was no memory for.
fn fault(ground: &Ground, updates: &[(u64, Stored)]) -> Option<(u64, String)> {
    let mut shape = shape(ground);
    updates.iter().find_map(|(seq, update)| {
        let fault = update.fault(shape);
        shape = Some((update.size, update.format));
        fault.map(|what| (*seq, what))
    })
}

fn shape(ground: &Ground) -> Option<(Size, Format)> {
    ground.content.as_ref().map(|content| (content.size(), content.format()))
}

/// Paints one update; gives what changed, and whether it is another content, or what is wrong with it.
fn paint(decoder: &mut Decoder, ground: &mut Ground, update: &mut Stored) -> Result<(Region, bool), String> {
    let mut room = usize::MAX;
    update.open(decoder, &mut room);
    if let Some(what) = update.fault(shape(ground)) {
        return Err(what);
    }
    match ground.content.as_mut().filter(|_| !update.fresh) {
        Some(content) => Ok((paint_on(decoder, content, &mut ground.videos, update)?, false)),
        None => {
            let mut content = Content::new(update.size, update.format);
            ground.videos.clear();
            paint_on(decoder, &mut content, &mut ground.videos, update)?;
            ground.content = Some(content);
            Ok((Region::full(update.size), true))
        }
    }
}

/// Paints it on the content that it builds on: frames of videos last, but what is wrong with them is found first.
fn paint_on(
    decoder: &mut Decoder,
    content: &mut Content,
    videos: &mut Videos,
    update: &Stored,
) -> Result<Region, String> {
    let frames = videos.decode(&update.frames, update.format)?;
    let mut region = decoder.paint(content, &update.opened).map_err(|error| error.to_string())?;
    for frame in frames {
        frame.paint(content);
        region.add(frame.rect);
    }
    Ok(region)
}

/// A surface for tests of the other half: what it shows of its updates.
#[cfg(all(test, feature = "video"))]
#[derive(Debug)]
pub(crate) struct Screen {
    ground: Ground,
    decoder: Decoder,
}

#[cfg(all(test, feature = "video"))]
impl Screen {
    pub(crate) fn new() -> Self {
        Self { ground: Ground::default(), decoder: Decoder::new() }
    }

    /// Takes one update in.
    pub(crate) fn apply(&mut self, update: &crate::Update) -> Result<(), String> {
        let chunks = update.chunks.iter().cloned().map(Bytes::from).collect();
        let mut stored = Stored::new(update.size, update.format, update.fresh, chunks);
        stored.open(&mut self.decoder, &mut usize::MAX.clone());
        paint(&mut self.decoder, &mut self.ground, &mut stored).map(drop)
    }

    pub(crate) fn pixels(&self) -> &[u8] {
        self.ground.content.as_ref().map_or(&[], |content| content.pixels())
    }
}
