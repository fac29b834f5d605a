//! Timelines that the kernel keeps for a GPU: DRM synchronisation objects, of a render node (`drm.h`).
//!
//! Their points are reached by a driver, or by any process that has the object. Invariant: a handle is given back with
//! its object.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use drm::control::{Device as _, syncobj::Handle};
use drm::{Device as _, DriverCapability};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read};

use super::node::nodes;
use super::timeline::{Timeline, Timelines};

/// The timelines of one node.
#[derive(Debug)]
pub struct Syncobjs(Rc<Node>);

#[derive(Debug)]
struct Node(File);

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl drm::Device for Node {}
impl drm::control::Device for Node {}

#[derive(Debug)]
struct Syncobj {
    node: Rc<Node>,
    handle: Handle,
}

impl Syncobjs {
    /// Those of the render node with this number (`dev_t`); `None` if its driver or the kernel has no timelines whose
    /// points can be waited for with poll(2).
    #[must_use]
    pub fn open(device: u64) -> Option<Self> {
        let is_it = |node: &PathBuf| std::fs::metadata(node).is_ok_and(|node| node.rdev() == device);
        let node = nodes().into_iter().find(is_it)?;
        let this = Self(Rc::new(Node(File::options().read(true).write(true).open(node).ok()?)));
        let has_timelines =
            this.0.get_driver_capability(DriverCapability::TimelineSyncObj).is_ok_and(|has| has == 1);
        // Kernels before 6.6 have timelines that cannot be polled.
        (has_timelines && this.work().is_ok_and(|works| works)).then_some(this)
    }

    /// A timeline at point 0, and the descriptor by which another process takes it.
    ///
    /// # Errors
    /// There is no descriptor or no memory left.
    pub fn create(&self) -> io::Result<(Rc<dyn Timeline>, OwnedFd)> {
        let handle = self.0.create_syncobj(false)?;
        let syncobj = Syncobj { node: Rc::clone(&self.0), handle };
        let fd = self.0.syncobj_to_fd(handle, false)?;
        Ok((Rc::new(syncobj), fd))
    }

    /// Whether a point that one side of a timeline reaches is seen at the other.
    fn work(&self) -> io::Result<bool> {
        let (ours, fd) = self.create()?;
        let Some(theirs) = self.import(fd) else { return Ok(false) };
        let reached = theirs.reached(1)?;
        let before = is_ready(&reached)?;
        ours.reach(1);
        Ok(!before && is_ready(&reached)?)
    }
}

impl Timelines for Syncobjs {
    fn import(&self, fd: OwnedFd) -> Option<Rc<dyn Timeline>> {
        let handle = self.0.fd_to_syncobj(fd.as_fd(), false).ok()?;
        Some(Rc::new(Syncobj { node: Rc::clone(&self.0), handle }))
    }
}

impl Timeline for Syncobj {
    fn reached(&self, point: u64) -> io::Result<OwnedFd> {
        let reached = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        self.node.syncobj_eventfd(self.handle, point, reached.as_fd(), false)?;
        Ok(reached)
    }

    fn reach(&self, point: u64) {
        // Without memory for that the program waits; it is told nothing else.
        let _ = self.node.syncobj_timeline_signal(&[self.handle], &[point]);
    }
}

impl Drop for Syncobj {
    fn drop(&mut self) {
        let _ = self.node.destroy_syncobj(self.handle);
    }
}

/// Whether an eventfd can be read, which does not wait.
fn is_ready(eventfd: &OwnedFd) -> io::Result<bool> {
    match read(eventfd, &mut [0; 8]) {
        Ok(_) => Ok(true),
        Err(Errno::AGAIN) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
