//! What updates are painted on, and what that has come to: by the loop, or by a worker.
//!
//! Plain values. Invariant: of a surface there is one ground, here or with a worker.

use wayferry_pixels::{Content, Region};

use super::videos::Videos;

/// What the updates of a surface are painted on.
#[derive(Debug, Default)]
pub(super) struct Ground {
    pub(super) content: Option<Content>,
    pub(super) videos: Videos,
}

impl Ground {
    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        self.videos.bytes() + self.content.as_ref().map_or(0, |content| content.pixels().len())
    }
}

/// What painting has come to.
#[derive(Debug, Default)]
pub(super) struct Painted {
    /// Where the content is different.
    pub(super) changed: Region,
    /// It is another content than before.
    pub(super) is_new: bool,
    /// There was something to paint.
    pub(super) any: bool,
    /// The first update that could not be painted, and what is wrong with it.
    pub(super) wrong: Option<(u64, String)>,
}

impl Painted {
    /// With what was painted after it.
    pub(super) fn and(mut self, later: Self) -> Self {
        self.changed.union(&later.changed);
        Self {
            changed: self.changed,
            is_new: self.is_new || later.is_new,
            any: self.any || later.any,
            wrong: self.wrong.or(later.wrong),
        }
    }
}
