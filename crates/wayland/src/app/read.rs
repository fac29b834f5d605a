//! The pixels of GPU buffers: what the reader is asked for, and what is done with its answers.
//!
//! A commit with such a buffer waits in its surface's queue (`timing`) until it would be applied, and only then is its
//! buffer read, of what is damaged and nothing else; it is applied with the answer. So what is replaced before its turn
//! comes is never read, no more is read than leaves, and each buffer comes back once, after it has been read. A window
//! that no user sees is not read. A request that builds on such a commit waits for it, and all behind it, but no longer
//! than [`WAIT_MAX`]: then the commit is applied without its pixels. Invariant: pixels are applied in the order of
//! their commits, and those of a commit all at once.

use std::time::Duration;

use wayferry_gpu::{Answer, Ask, BufferId, Frame, Job, Refused, Route};
use wayferry_pixels::Region;
use wayferry_proto::Time;

use crate::message::WireId;
use crate::tables;
use crate::wire::Arg;

use super::call::Call;
use super::commit::Damage;
use super::connection::Connection;
use super::dmabuf::{Imported, Params};
use super::fault::{Fault, error_code};
use super::object::{Data, Object};
use super::pending::{Attach, Fetched, Pending, Pixels};
use super::reading::{Coming, GivenUp, PutOff};
use super::reads::GpuSurface;
use super::surface::Surface;
use super::unsent::Unsent;

impl Connection {
    /// The next thing for the reader of GPU buffers to do. Its names are this connection's own.
    pub fn poll_ask(&mut self) -> Option<Ask> {
        self.reading.next_ask()
    }

    /// The reader has done something that it was asked for.
    pub fn on_answer(&mut self, now: Time, answer: Answer) {
        self.now = now;
        if self.end.is_some() {
            return;
        }
        let step = match answer {
            Answer::Imported { buffer, outcome } => self.on_imported(buffer, outcome),
            Answer::Read { job, frame } => self.on_read(job, frame.as_ref()),
        };
        self.settle(step);
    }

    fn on_imported(&mut self, name: BufferId, outcome: Result<Route, Refused>) -> Result<(), Fault> {
        let Some(Coming { params, buffer, given }) = self.reading.imported(name) else { return Ok(()) };
        let asked = self.objects.of_mut(params).and_then(Object::own::<Params>);
        // Another object may have its id by now.
        let listens =
            asked.filter(|asked| asked.awaits == Some(name)).map(|asked| asked.awaits = None).is_some();
        if let Some((imported, route)) = buffer.imported().zip(outcome.as_ref().ok()) {
            imported.accept(*route);
        }
        match outcome {
            Ok(_) if given || !listens => Ok(()),
            Ok(_) => {
                let Some(interface) = tables::interface("wl_buffer") else { return Ok(()) };
                let object = Object { data: Data::Buffer(buffer), ..Object::new(interface, 1) };
                let id =
                    self.objects.add_server(object).map_err(|_| Fault::TooMuch("objects of one program"))?;
                self.emit(params, "created", vec![Arg::NewId(id)])
            }
            Err(_) if listens => {
                buffer.imported().into_iter().for_each(Imported::refuse);
                self.emit(params, "failed", Vec::new())
            }
            Err(_) if !given => Ok(()),
            // A window that stays empty without a word helps no user.
            Err(Refused(why)) => {
                let what = format!("a GPU buffer cannot be read: {why}");
                Err(Fault::display(error_code::IMPLEMENTATION, what))
            }
        }
    }

    fn on_read(&mut self, job: Job, frame: Option<&Frame>) -> Result<(), Fault> {
        self.reading.reads.answer(job, frame);
        if let Some(GivenUp { id, .. }) = self.reading.take_given_up(job) {
            return self.release_buffer(id);
        }
        let surfaces = self.surfaces.values_mut();
        let pending = surfaces.flat_map(|surface| surface.timing.pending_mut());
        pending.for_each(|pending| pending.attach.answer(job, frame));
        self.apply_due()
    }

    /// The surfaces whose content comes from GPU buffers.
    pub fn gpu_surfaces(&self) -> impl Iterator<Item = GpuSurface> {
        self.reading.reads.surfaces()
    }

    /// Whether the pixels of what waits first at a surface may be read now.
    pub(super) fn may_read(&self, surface: &Surface) -> bool {
        // What has not left would be replaced; but a window that waits for its program's answer waits for this.
        let is_behind =
            surface.sent.lost(self.now).is_none() && surface.waiting.unsent().is_some_and(Unsent::attaches);
        surface.standing.waits() || !self.is_unseen(surface) && !is_behind
    }

    /// Whether no user sees what a surface would show.
    fn is_unseen(&self, surface: &Surface) -> bool {
        let watched = !self.line.is_attached() || self.watching.is_on();
        surface.mapped() && !watched && (!surface.visible || surface.withholds())
    }

    /// Whether what waits first at a surface waits for a user to see it.
    pub(super) fn waits_unseen(&self, surface: &Surface) -> bool {
        surface.timing.lacks_pixels() && self.is_unseen(surface)
    }

    /// Asks for the pixels that the first commit of a surface lacks, and those of synchronised subsurfaces before it.
    ///
    /// # Errors
    /// When all those contents are too much, as when they were applied.
    pub(super) fn ask_for_first(&mut self, root: u32) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get(&root) else { return Ok(()) };
        let mut seen: Vec<u32> = Vec::new();
        let mut wanted: Vec<Option<(WireId, Region)>> = Vec::new();
        let mut bytes = 0;
        for (id, pending) in surface.timing.first_pending() {
            let id = id.unwrap_or(root);
            // What an earlier one changes has not been applied.
            let known = !seen.contains(&id);
            seen.push(id);
            let lacking = self.lacking(id, pending, known);
            bytes += if pending.lacks_pixels() { pending.attach.content_bytes() } else { 0 };
            wanted.push(self.surfaces.get(&id).map(|surface| surface.wire).zip(lacking));
        }
        // They are here all at once.
        self.room.must_hold(bytes)?;
        let now = self.now;
        let (timing, reading) = match self.surfaces.get_mut(&root) {
            Some(surface) => (&mut surface.timing, &mut self.reading),
            None => return Ok(()),
        };
        for (pending, region) in timing.first_pending_mut().zip(wanted) {
            let (Attach::Buffer { buffer, pixels, sync, .. }, Some((surface, region))) =
                (&mut pending.attach, region)
            else {
                continue;
            };
            *pixels = match reading.ask_for(now, surface, (buffer, sync.as_ref()), &region) {
                Some(job) => Pixels::Asked(job, region),
                None => Pixels::Read(None),
            };
        }
        Ok(())
    }

    /// What is to be read of the buffer of a commit, if its pixels are not here.
    fn lacking(&self, id: u32, pending: &Pending, known: bool) -> Option<Region> {
        let Attach::Buffer { buffer, .. } = &pending.attach else { return None };
        if !pending.lacks_pixels() || pending.is_being_read() {
            return None;
        }
        let surface = self.surfaces.get(&id).filter(|_| known);
        Some(surface.map_or(Region::full(buffer.size), |surface| {
            let after = surface.shape.after(pending);
            let fades = surface.fade.is_on() || pending.factor.is_some();
            let damage = Damage {
                surface: &pending.surface_damage,
                buffer: &pending.buffer_damage,
                reshaped: fades || after != surface.shape,
            };
            damage.region(surface, after, id, buffer)
        }))
    }

    /// Whether a request builds on commits whose pixels are not here: it is put off until they are.
    pub(super) fn puts_off(&mut self, call: Call, args: Vec<Arg>) -> Option<Vec<Arg>> {
        let surfaces = self.named_surfaces(call, &args);
        if !surfaces.iter().any(|surface| self.lacks_pixels(*surface)) {
            return Some(args);
        }
        self.reading.put_off(PutOff { call, args, surfaces, since: self.now });
        None
    }

    fn lacks_pixels(&self, id: u32) -> bool {
        let lacks =
            |above: u32| self.surfaces.get(&above).is_some_and(|surface| surface.timing.lacks_pixels());
        self.surfaces.ancestors(id).any(lacks)
    }

    /// Whether a request waits for the pixels of a surface, however late its commits are to be.
    pub(super) fn is_hurried(&self, id: u32) -> bool {
        let Some(request) = self.reading.waiting() else { return false };
        request.surfaces.iter().any(|named| self.surfaces.ancestors(*named).any(|above| above == id))
    }

    /// When a request has waited for pixels for too long.
    pub(super) fn read_timeout(&self) -> Option<Time> {
        self.reading.waiting().map(|request| request.since + WAIT_MAX)
    }

    /// Goes on with a request that waits, once the pixels are here or too late.
    pub(super) fn go_on_with_put_off(&mut self) -> Result<(), Fault> {
        if self.reading.waiting().is_some() {
            // What is being encoded is of the content as it is.
            self.finish_making()?;
        }
        let Some(request) = self.reading.waiting() else { return Ok(()) };
        if self.read_timeout().is_some_and(|late| late <= self.now) {
            let surfaces = request.surfaces.clone();
            surfaces.into_iter().for_each(|surface| self.do_without_pixels(surface));
        } else if request.surfaces.iter().any(|surface| self.lacks_pixels(*surface)) {
            return Ok(());
        }
        let Some(PutOff { call, args, .. }) = self.reading.take_waiting() else { return Ok(()) };
        self.program.wake();
        self.forward(call, args)
    }

    /// The commits that wait at a surface and at those above it are applied without the pixels that are not here.
    fn do_without_pixels(&mut self, id: u32) {
        let chain: Vec<u32> = self.surfaces.ancestors(id).collect();
        for above in chain {
            let Some(surface) = self.surfaces.get_mut(&above) else { continue };
            for pending in surface.timing.pending_mut().filter(|pending| pending.lacks_pixels()) {
                if let Attach::Buffer { id, pixels, sync, .. } = &mut pending.attach
                    && let Pixels::Asked(job, _) = std::mem::replace(pixels, Pixels::Read(None))
                {
                    let given_up = GivenUp { id: std::mem::take(id), sync: sync.take() };
                    self.reading.give_up(job, given_up);
                }
            }
        }
    }
}

impl Pending {
    /// Whether its buffer's pixels are to be read by the reader, and are not here.
    pub(super) fn lacks_pixels(&self) -> bool {
        let Attach::Buffer { buffer, pixels, .. } = &self.attach else { return false };
        buffer.imported().is_some() && !matches!(pixels, Pixels::Read(_))
    }

    /// Whether the reader has been asked for them.
    pub(super) fn is_being_read(&self) -> bool {
        matches!(&self.attach, Attach::Buffer { pixels: Pixels::Asked(..), .. })
    }
}

impl Attach {
    /// What a surface's content takes that is like what is attached.
    fn content_bytes(&self) -> u64 {
        match self {
            Self::Buffer { buffer, .. } => buffer.content_bytes(),
            Self::Keep | Self::None => 0,
        }
    }

    /// The reader has answered: perhaps for this.
    fn answer(&mut self, answered: Job, frame: Option<&Frame>) {
        if let Self::Buffer { pixels, .. } = self
            && let Pixels::Asked(job, region) = pixels
            && *job == answered
        {
            let region = std::mem::take(region);
            *pixels = Pixels::Read(frame.cloned().map(|frame| Fetched { frame, region }));
        }
    }
}

/// A request waits for the pixels of an earlier commit no longer than this.
const WAIT_MAX: Duration = Duration::from_secs(5);
