//! Explicit synchronisation: points of a program's timelines that tell when a buffer has been drawn and when it has
//! been read.
//!
//! What a timeline is made of is its maker's: [`syncobj`](super::syncobj), or a test. Invariant: a point that a program
//! waits for is reached however its commit ends, and not while its buffer is being read.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// What takes timelines of programs.
pub trait Timelines: fmt::Debug {
    /// The timeline that a program has handed over; `None` if it is none.
    fn import(&self, fd: OwnedFd) -> Option<Rc<dyn Timeline>>;
}

/// A timeline. Reaching a point reaches all before it.
pub trait Timeline: fmt::Debug {
    /// A descriptor that can be read once a point has been reached, while the timeline is there.
    ///
    /// # Errors
    /// There is no descriptor or no memory left.
    fn reached(&self, point: u64) -> io::Result<OwnedFd>;

    /// Reaches a point.
    fn reach(&self, point: u64);
}

/// A point of a timeline.
#[derive(Clone, Debug)]
pub struct Point {
    timeline: Rc<dyn Timeline>,
    value: u64,
}

impl Point {
    /// One of this timeline.
    #[must_use]
    pub fn new(timeline: &Rc<dyn Timeline>, value: u64) -> Self {
        Self { timeline: Rc::clone(timeline), value }
    }

    /// Whether it is known to be reached with `other` at the latest.
    #[must_use]
    pub fn comes_with(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.timeline, &other.timeline) && self.value <= other.value
    }

    /// What tells when it has been reached.
    ///
    /// # Errors
    /// As [`Timeline::reached`].
    pub fn fence(&self) -> io::Result<Fence> {
        let reached = self.timeline.reached(self.value)?;
        Ok(Fence { reached, _timeline: Rc::clone(&self.timeline) })
    }
}

/// Ready to be read once a point has been reached.
#[derive(Debug)]
pub struct Fence {
    reached: OwnedFd,
    /// Without it the point would never be reached.
    _timeline: Rc<dyn Timeline>,
}

impl AsFd for Fence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reached.as_fd()
    }
}

/// A point that a program waits for before it draws again: it is reached when this is dropped.
#[derive(Debug)]
pub struct Release(Point);

impl From<Point> for Release {
    fn from(point: Point) -> Self {
        Self(point)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        self.0.timeline.reach(self.0.value);
    }
}
