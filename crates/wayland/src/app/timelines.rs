//! Explicit synchronisation of a program's GPU buffers: `wp_linux_drm_syncobj_v1`.
//!
//! The points that a program sets are checked when it commits, and travel with the buffer from then on. Waits for
//! nothing: see `read` for what is drawn, and [`Sync`] for what has been read.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use wayferry_gpu::{Point, Timeline};

use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::object::{Data, Object};
use super::pending::Attach;
use super::points::{Points, Sync};
use super::timing::Timing;

/// Which of the two points a request sets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Acquire,
    Release,
}

/// What is kept of a `wp_linux_drm_syncobj_timeline_v1`.
struct Imported(Rc<dyn Timeline>);

impl Connection {
    /// `wp_linux_drm_syncobj_manager_v1.import_timeline`.
    pub(super) fn import_timeline(&mut self, call: Call, id: u32, fd: OwnedFd) -> Result<(), Fault> {
        let timelines = self.config.gpu.as_ref().and_then(|gpu| gpu.timelines());
        let timeline = timelines.and_then(|timelines| timelines.import(fd));
        let what = "the descriptor is no timeline of this device's";
        let timeline = timeline.ok_or_else(|| Fault::app(call.id, INVALID_TIMELINE, what))?;
        self.objects.set_data(id, Data::Own(Box::new(Imported(timeline))));
        Ok(())
    }

    /// `wp_linux_drm_syncobj_manager_v1.get_surface`.
    pub(super) fn add_sync(&mut self, call: Call, id: u32, surface: u32) -> Result<(), Fault> {
        self.add_timing(call, id, surface, Timing::sync)
    }

    /// `wp_linux_drm_syncobj_surface_v1.set_acquire_point` and `set_release_point`.
    pub(super) fn set_point(
        &mut self,
        call: Call,
        which: Which,
        timeline: u32,
        value: u64,
    ) -> Result<(), Fault> {
        let imported = self.objects.of_mut(timeline).and_then(Object::own::<Imported>);
        let point = imported.map(|Imported(timeline)| Point::new(timeline, value));
        let points = &mut self.timed(call, NO_SURFACE)?.pending.points;
        match which {
            Which::Acquire => points.acquire = point,
            Which::Release => points.release = point,
        }
        Ok(())
    }

    /// `wp_linux_drm_syncobj_surface_v1.destroy`: what it set since the last commit is void.
    pub(super) fn end_sync(&mut self, id: u32) {
        let surface = self.association(id).and_then(|surface| self.surfaces.get_mut(&surface));
        if let Some(surface) = surface.filter(|surface| surface.timing.is_by(id)) {
            surface.pending.points = Points::default();
        }
        self.end_timing(id);
    }

    /// A surface is committed: what is attached takes the points that were set for it.
    pub(super) fn take_points(&mut self, id: u32) -> Result<(), Fault> {
        let Some(surface) = self.surfaces.get_mut(&id) else { return Ok(()) };
        let Some(object) = *surface.timing.sync() else { return Ok(()) };
        let wrong = |code: u32, what: &str| Err(Fault::app(object, code, what));
        let pending = &mut surface.pending;
        match (&mut pending.attach, std::mem::take(&mut pending.points)) {
            (Attach::Keep | Attach::None, Points { acquire: None, release: None }) => Ok(()),
            (Attach::Keep | Attach::None, _) => wrong(NO_BUFFER, "points are set, and no buffer is attached"),
            (Attach::Buffer { buffer, .. }, _) if buffer.imported().is_none() => {
                wrong(UNSUPPORTED_BUFFER, "the buffer is no GPU buffer")
            }
            (_, Points { acquire: None, .. }) => wrong(NO_ACQUIRE_POINT, "a buffer has no acquire point"),
            (_, Points { release: None, .. }) => wrong(NO_RELEASE_POINT, "a buffer has no release point"),
            (_, Points { acquire: Some(acquire), release: Some(release) })
                if release.comes_with(&acquire) =>
            {
                wrong(CONFLICTING_POINTS, "the release point is not behind the acquire point")
            }
            (Attach::Buffer { sync, .. }, Points { acquire: Some(acquire), release: Some(release) }) => {
                *sync = Some(Sync::new(acquire, release));
                Ok(())
            }
        }
    }
}

/// `wp_linux_drm_syncobj_manager_v1.error.invalid_timeline`.
const INVALID_TIMELINE: u32 = 1;

/// `wp_linux_drm_syncobj_surface_v1.error`.
const NO_SURFACE: u32 = 1;
const UNSUPPORTED_BUFFER: u32 = 2;
const NO_BUFFER: u32 = 3;
const NO_ACQUIRE_POINT: u32 = 4;
const NO_RELEASE_POINT: u32 = 5;
const CONFLICTING_POINTS: u32 = 6;
