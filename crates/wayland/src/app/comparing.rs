//! A commit whose buffer a worker compares with the surface's content: what it takes along, and what comes back.
//!
//! Who is lent what is decided in `compare`. Invariant: one is compared at a time.

use std::time::Duration;

use wayferry_pixels::{Draft, Layout, Region};
use wayferry_proto::Time;

use crate::message::WireId;
use crate::trace::{Probe, Stage};
use crate::workers::{Pending, Workers};

use super::shm::{self, Memory, ReadError};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Comparing {
    work: Option<Work>,
    /// The last that came back, and when.
    last: Option<(Read, Time)>,
}

/// A commit that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) surface: u32,
    pub(super) at: Time,
}

/// What is with a worker.
#[derive(Debug)]
struct Work {
    read: Read,
    compared: Pending<Compared>,
}

/// What has come back.
#[derive(Debug)]
pub(super) struct Compared {
    /// The content as the buffer has it.
    pub(super) draft: Box<Draft>,
    /// Where that differs from before.
    pub(super) changed: Result<Region, ReadError>,
}

/// What a worker takes along, beside the content.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) memory: Memory,
    pub(super) layout: Layout,
    pub(super) region: Region,
    pub(super) threads: usize,
    /// For the probe: which update of which surface it is for.
    pub(super) update: (WireId, u64),
    pub(super) probe: Probe,
}

impl Comparing {
    /// Has a buffer compared.
    pub(super) fn begin(
        &mut self,
        read: Read,
        order: Order,
        draft: impl FnOnce() -> Box<Draft> + Send + 'static,
        workers: &Workers,
    ) {
        let compared = workers.start(move |_| order.run(draft()));
        self.work = Some(Work { read, compared });
    }

    /// Whether a worker has one.
    pub(super) fn is_on(&self) -> bool {
        self.work.is_some()
    }

    /// What was compared, once it is back.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Read, Compared)> {
        let compared = self.work.as_mut()?.compared.poll()?;
        self.come_back(now, compared)
    }

    /// The same at once; `None` if nothing is with a worker.
    pub(super) fn finish(&mut self, now: Time) -> Option<(Read, Compared)> {
        let compared = self.work.as_mut()?.compared.finish();
        self.come_back(now, compared)
    }

    fn come_back(&mut self, now: Time, compared: Compared) -> Option<(Read, Compared)> {
        let read = self.work.take()?.read;
        self.last = Some((read, now));
        Some((read, compared))
    }

    /// When what is sent now of a surface was read, if that is less than a period ago: a program keeps its pace, though
    /// comparing takes time.
    pub(super) fn read_at(&self, surface: u32, now: Time, period: Duration) -> Time {
        let is_it = |(read, back): &(Read, Time)| (read.surface, *back) == (surface, now);
        let last = self.last.filter(is_it).map(|(read, _)| read.at);
        last.filter(|at| now.since(*at) < period).unwrap_or(now)
    }
}

impl Order {
    fn run(self, mut draft: Box<Draft>) -> Compared {
        let Self { memory, layout, region, threads, update, probe } = self;
        let begun = probe.begin();
        let changed = match memory {
            Memory::Mapped(mapping) => Ok(draft.absorb_shared(&layout, &region, mapping.bytes(), threads)),
            Memory::File(file) => {
                draft.absorb(&layout, &region, |offset, into| shm::read(&file, offset, into))
            }
        };
        let pixel = draft.content().format().bytes_per_pixel() as u64;
        let bytes = changed.as_ref().map_or(0, |changed| changed.area() * pixel);
        probe.end(begun, Stage::Capture, update, bytes);
        Compared { draft, changed }
    }
}
