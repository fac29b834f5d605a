//! What a program's connection notes for views of it: where pixels changed, and what left for the active display.
//!
//! Views read the rest from what is kept for another display, see `view`. Invariant: nothing here grows while nobody
//! looks, and nobody who looks changes anything.

use std::collections::VecDeque;
use std::rc::Rc;

use wayferry_pixels::Region;
use wayferry_pixels::map::{Crop, Transform};
use wayferry_proto::{SurfaceId, UpdateSeq};

use crate::action::{Action, Update};
use crate::message::{Unit, UnitContent};

use super::Connection;
use super::surface::Surface;

/// Changes of one surface that are told apart; of older ones it is only known that there were some.
const MAX_RECENT: usize = 16;

/// What left for the active display, of use to a view that has had all before it.
#[derive(Debug, Clone)]
pub enum Published {
    /// An update.
    Update {
        /// It.
        update: Rc<Update>,
        /// It may hold frames of films.
        films: bool,
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

/// How a surface's content is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) scale: i32,
    pub(super) transform: Transform,
    pub(super) crop: Option<Crop>,
    pub(super) destination: Option<(i32, i32)>,
}

impl Shape {
    /// Of a surface that has just been made.
    pub(super) const NEW: Self =
        Self { scale: 1, transform: Transform::Normal, crop: None, destination: None };

    pub(super) fn of(surface: &Surface) -> Self {
        let Surface { scale, transform, crop, destination, .. } = *surface;
        Self { scale, transform, crop, destination }
    }
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

impl Connection {
    /// Whether anybody looks on. The program then draws as for a display that is there, and [`Self::poll_published`] has
    /// something to say.
    pub fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
        if !watched {
            self.published.clear();
        }
    }

    /// What has left for the active display since this was asked last.
    pub fn poll_published(&mut self) -> Option<Published> {
        self.published.pop_front()
    }

    /// How many contents have been encoded for active displays so far.
    pub fn encodings(&self) -> u64 {
        self.encodings
    }

    /// An update leaves.
    pub(super) fn publish(&mut self, update: Update, films: bool) {
        if self.watched {
            let update = Rc::new(update.clone());
            self.published.push_back(Published::Update { update, films });
        }
        self.actions.push_back(Action::Update(update));
    }

    /// A unit of a commit leaves.
    pub(super) fn publish_unit(&mut self, unit: &Unit) {
        if self.watched {
            let mut whole = Vec::new();
            self.list_whole(unit, &mut whole);
            self.published.push_back(Published::Unit(whole));
        }
    }

    /// A unit leaves that no commit asked for: the surfaces may have got another shape since, which is not of these pixels.
    pub(super) fn publish_bare_unit(&mut self, unit: &Unit) {
        if self.watched {
            let mut whole = Vec::new();
            self.list_whole(unit, &mut whole);
            whole.iter_mut().for_each(|whole| whole.shape = None);
            self.published.push_back(Published::Unit(whole));
        }
    }

    fn list_whole(&self, unit: &Unit, whole: &mut Vec<Whole>) {
        unit.children.iter().for_each(|child| self.list_whole(child, whole));
        let surface = self.objects.by_name(unit.surface).and_then(|id| self.surfaces.get(&id));
        if let (UnitContent::Update(update), Some(surface)) = (unit.content, surface) {
            let (surface, shape) = (SurfaceId(unit.surface.0), Some(Shape::of(surface)));
            whole.push(Whole { surface, update, shape });
        }
    }

    /// The last update of a surface does not leave after all.
    pub(super) fn retract(&mut self, surface: SurfaceId) {
        if self.watched {
            self.published.push_back(Published::TakenBack(surface));
        }
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
