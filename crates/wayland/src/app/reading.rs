//! What a program's connection waits for from the reader of GPU buffers.
//!
//! Asks nothing by itself: see `read`. Invariant: a buffer that is being read is not given back before the reader has
//! answered, also when the commit that it was for is no more.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use wayferry_gpu::{Ask, BufferId, Job};
use wayferry_pixels::Region;
use wayferry_proto::Time;

use crate::message::WireId;
use crate::wire::Arg;

use super::buffer::Buffer;
use super::call::Call;
use super::dmabuf::{Gone, Planes};
use super::points::Sync;
use super::reads::{Asked, Reads};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reading {
    asks: VecDeque<Ask>,
    last_name: u64,
    /// Buffers that are being imported, and the parameters that they were made of.
    coming: HashMap<BufferId, Coming>,
    /// Buffers that are being read for no commit any more.
    given_up: HashMap<Job, GivenUp>,
    pub(super) reads: Reads,
    /// A request that builds on commits whose pixels are not here.
    put_off: Option<PutOff>,
    pub(super) planes: Planes,
    pub(super) gone: Gone,
}

/// A buffer that is being imported.
#[derive(Debug)]
pub(super) struct Coming {
    /// The parameters that it was made of, if they still are.
    pub(super) params: u32,
    pub(super) buffer: Rc<Buffer>,
    /// The program has it already (`create_immed`).
    pub(super) given: bool,
}

/// A buffer that is being read for no commit any more.
#[derive(Debug)]
pub(super) struct GivenUp {
    /// The program's id of it; 0 once it is destroyed.
    pub(super) id: u32,
    #[expect(dead_code, reason = "the program must not draw yet")]
    pub(super) sync: Option<Sync>,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct PutOff {
    pub(super) call: Call,
    pub(super) args: Vec<Arg>,
    /// The surfaces that it builds on.
    pub(super) surfaces: Vec<u32>,
    pub(super) since: Time,
}

impl Reading {
    /// A name for another buffer or another reading.
    pub(super) fn name(&mut self) -> u64 {
        self.last_name += 1;
        self.last_name
    }

    /// Queues something for the reader.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.asks.push_back(ask);
    }

    /// The next thing for the reader; what it is to forget comes behind all that it is to do with it.
    pub(super) fn next_ask(&mut self) -> Option<Ask> {
        self.asks.pop_front().or_else(|| self.gone.next().map(|buffer| Ask::Forget { buffer }))
    }

    /// The reader is to import a buffer.
    pub(super) fn await_import(&mut self, name: BufferId, coming: Coming) {
        self.coming.insert(name, coming);
    }

    /// It has answered.
    pub(super) fn imported(&mut self, name: BufferId) -> Option<Coming> {
        self.coming.remove(&name)
    }

    /// Asks for pixels of a buffer for a surface; `None` if they cannot be had.
    pub(super) fn ask_for(
        &mut self,
        now: Time,
        surface: WireId,
        (buffer, sync): (&Rc<Buffer>, Option<&Sync>),
        region: &Region,
    ) -> Option<Job> {
        let imported = buffer.imported().filter(|imported| !imported.is_refused())?;
        if sync.is_none() && imported.needs_point() {
            return None;
        }
        let job = Job(self.name());
        let fence = match sync {
            None => None,
            Some(sync) => Some((self.planes.open()?, Rc::new(sync.acquire.fence().ok()?))),
        };
        let (open, fence) = fence.unzip();
        let bytes = region.area() * buffer.format.bytes_per_pixel() as u64;
        let asked = Asked { surface, buffer: Rc::clone(buffer), bytes, since: now, _open: open };
        self.reads.ask(job, asked);
        self.ask(Ask::Read { job, buffer: imported.name, region: region.clone(), fence });
        Some(job)
    }

    /// A buffer is being read for a commit that is not needed any more: it may never have been drawn.
    pub(super) fn give_up(&mut self, job: Job, given_up: GivenUp) {
        self.given_up.insert(job, given_up);
        self.ask(Ask::Cancel { job });
    }

    /// It has been read.
    pub(super) fn take_given_up(&mut self, job: Job) -> Option<GivenUp> {
        self.given_up.remove(&job)
    }

    /// The program destroyed a buffer: its id may be another's.
    pub(super) fn forget_buffer(&mut self, buffer: u32) {
        for given_up in self.given_up.values_mut().filter(|given_up| given_up.id == buffer) {
            given_up.id = 0;
        }
    }

    /// A request waits, and all behind it.
    pub(super) fn put_off(&mut self, request: PutOff) {
        self.put_off = Some(request);
    }

    /// The request that waits.
    pub(super) fn waiting(&self) -> Option<&PutOff> {
        self.put_off.as_ref()
    }

    /// It waits no longer.
    pub(super) fn take_waiting(&mut self) -> Option<PutOff> {
        self.put_off.take()
    }
}
