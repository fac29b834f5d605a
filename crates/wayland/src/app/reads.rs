//! What the reader has read for each surface of a program, and what it is asked for and has not answered.
//!
//! Asks nothing. Invariant: what is asked is answered once, and counted then.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use wayferry_gpu::{Frame, Job, Route};
use wayferry_proto::{SurfaceId, Time};

use crate::message::WireId;

use super::buffer::Buffer;
use super::dmabuf::{Imported, Open};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reads {
    asked: HashMap<Job, Asked>,
    surfaces: BTreeMap<WireId, Done>,
}

/// A reading that is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) surface: WireId,
    /// The reader must not forget it yet.
    pub(super) buffer: Rc<Buffer>,
    /// How much of pixels.
    pub(super) bytes: u64,
    pub(super) since: Time,
    /// A point of a timeline that it waits for is a descriptor.
    pub(super) _open: Option<Open>,
}

#[derive(Debug, Default)]
struct Done {
    route: Option<Route>,
    read: u64,
    bytes: u64,
    took: Duration,
}

/// A surface whose content comes from GPU buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuSurface {
    /// It.
    pub surface: SurfaceId,
    /// How its newest content was read.
    pub route: Option<Route>,
    /// Readings that gave pixels.
    pub read: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// What all of them took, from asking the reader to its answer.
    pub took: Duration,
    /// What is asked for and not here, and since when.
    pub waits: Option<(Job, Time)>,
}

impl Reads {
    /// The reader is asked.
    pub(super) fn ask(&mut self, job: Job, asked: Asked) {
        self.surfaces.entry(asked.surface).or_default();
        self.asked.insert(job, asked);
    }

    /// It has answered, perhaps with pixels.
    pub(super) fn answer(&mut self, job: Job, frame: Option<&Frame>) {
        let Some(Asked { surface, buffer, bytes, .. }) = self.asked.remove(&job) else { return };
        if let Some((done, frame)) = self.surfaces.get_mut(&surface).zip(frame) {
            done.route = buffer.imported().and_then(Imported::route);
            done.read += 1;
            done.bytes += bytes;
            done.took += frame.took();
        }
    }

    /// A surface is no more.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.surfaces.remove(&surface);
    }

    /// The surfaces for which something was asked.
    pub(super) fn surfaces(&self) -> impl Iterator<Item = GpuSurface> {
        self.surfaces.iter().map(|(surface, done)| {
            let theirs = self.asked.iter().filter(|(_, asked)| asked.surface == *surface);
            let waits = theirs.map(|(job, asked)| (*job, asked.since)).min_by_key(|(_, since)| *since);
            let Done { route, read, bytes, took } = *done;
            GpuSurface { surface: SurfaceId(surface.0), route, read, bytes, took, waits }
        })
    }
}
