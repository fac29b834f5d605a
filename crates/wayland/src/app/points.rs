//! The points of a program's timelines at which a buffer has been drawn, and has been read.
//!
//! Waits for nothing, and is told nothing: see `timelines` and `read`. Invariant: a buffer that is committed with
//! points has both.

use wayferry_gpu::{Point, Release};

/// The points that a program has set for its next commit.
#[derive(Debug, Default)]
pub(crate) struct Points {
    pub(super) acquire: Option<Point>,
    pub(super) release: Option<Point>,
}

/// The points of a buffer that has been committed.
#[derive(Debug)]
pub(crate) struct Sync {
    /// It has been drawn.
    pub(super) acquire: Point,
    /// It has been read: with this.
    _release: Release,
}

impl Sync {
    /// Drawn and read at these points.
    pub(super) fn new(acquire: Point, release: Point) -> Self {
        Self { acquire, _release: release.into() }
    }
}
