//! What a program's connection notes for views of it: where pixels changed, and what left for the active display.
//!
//! Views read the rest from what is kept for another display, see `view`. Invariant: nothing here grows while there is
//! no viewer, and one that is there changes nothing.

use std::collections::VecDeque;
use std::rc::Rc;

use wayferry_pixels::Region;
use wayferry_proto::{SurfaceId, UpdateSeq};

use crate::action::Update;

use super::shape::Shape;

/// Changes of one surface that are told apart; of older ones it is only known that there were some.
const MAX_RECENT: usize = 16;

/// What left for the active display, of use to a view that has had all before it.
#[derive(Debug, Clone)]
pub enum Published {
    /// An update.
    Update {
        /// It.
        update: Rc<Update>,
        /// It may hold frames of videos.
        videos: bool,
    },
    /// A unit: these contents are whole, and are to be shown like this.
    Unit(Vec<Whole>),
    /// The last update of this surface was taken back: what comes next builds on the one before it.
    TakenBack(SurfaceId),
}

/// A surface's content that has left as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    /// The surface.
    pub surface: SurfaceId,
    /// The last of its updates.
    pub update: UpdateSeq,
    /// `None` as before.
    pub(super) shape: Option<Shape>,
}

/// Where a surface's pixels changed lately.
#[derive(Debug, Default)]
pub(crate) struct News {
    version: u64,
    recent: VecDeque<(u64, Region)>,
}

impl News {
    /// The pixels have changed there.
    pub(crate) fn note(&mut self, region: Region) {
        if region.is_empty() {
            return;
        }
        self.version += 1;
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((self.version, region));
    }

    /// The pixels may have changed everywhere, and their shape.
    pub(crate) fn note_all(&mut self) {
        self.version += 1;
        self.recent.clear();
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Where the pixels have changed since a version; `None` if that is not known.
    pub(crate) fn since(&self, version: u64) -> Option<Region> {
        let newer = self.version.checked_sub(version)?;
        let known = usize::try_from(newer).ok().filter(|newer| *newer <= self.recent.len())?;
        let mut region = Region::default();
        self.recent.iter().rev().take(known).for_each(|(_, changed)| region.union(changed));
        Some(region)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Watching {
    is_on: bool,
    /// What the views have not been told of yet.
    published: VecDeque<Published>,
    /// Of what there is to be seen: grows with everything that the program or its display says.
    version: u64,
    /// Displays that have gone: updates of two of them do not build on each other.
    epoch: u64,
}

impl Default for Watching {
    fn default() -> Self {
        Self { is_on: false, published: VecDeque::new(), version: 1, epoch: 0 }
    }
}

impl Watching {
    /// Whether there are views.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
        if !is_on {
            self.published.clear();
        }
    }

    /// Something leaves for the active display.
    pub(super) fn publish(&mut self, what: impl FnOnce() -> Published) {
        if self.is_on {
            self.published.push_back(what());
        }
    }

    /// What has left since this was asked last.
    pub(super) fn poll(&mut self) -> Option<Published> {
        self.published.pop_front()
    }

    /// The program or its display says something: what there is to be seen may be different.
    pub(super) fn next_version(&mut self) {
        self.version += 1;
    }

    /// Grows with each [`Self::next_version`].
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The display is gone.
    pub(super) fn part(&mut self) {
        self.published.clear();
        self.epoch += 1;
        self.next_version();
    }

    /// Which display it is, counted from the first.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use wayferry_pixels::Rect;

    use super::*;

    fn region(x: u32) -> Region {
        let mut region = Region::default();
        region.add(Rect { x, y: 0, width: 1, height: 1 });
        region
    }

    #[test]
    fn recent_changes_are_told_apart_and_older_ones_are_not() {
        let mut news = News::default();
        let since = |news: &News, version| news.since(version).map(|region| region.area());
        assert_eq!(since(&news, 0), Some(0));
        (0..20).for_each(|x| news.note(region(10 * x)));
        let oldest = 20 - MAX_RECENT as u64;
        assert_eq!(
            [20, 18, oldest, oldest - 1].map(|version| since(&news, version)),
            [Some(0), Some(2), Some(16), None]
        );
        news.note_all();
        assert_eq!((since(&news, 21), since(&news, 20), news.version()), (Some(0), None, 21));
    }
}
