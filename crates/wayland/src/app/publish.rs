//! What leaves for the active display, with what views of the program are told of that.
//!
//! A view reads the rest from what is kept for another display, see `view`. Invariant: views are told of an update or a
//! unit in the order in which the active display is.

use std::rc::Rc;

use wayferry_proto::SurfaceId;

use crate::action::{Action, Update};
use crate::message::{Unit, UnitContent};

use super::connection::Connection;
use super::watch::{Published, Whole};

impl Connection {
    /// Whether there are viewers. The program then draws as for a display that is there, and [`Self::poll_published`]
    /// has something to say.
    pub fn set_watched(&mut self, watched: bool) {
        self.watching.set(watched);
    }

    /// What has left for the active display since this was asked last.
    pub fn poll_published(&mut self) -> Option<Published> {
        self.watching.poll()
    }

    /// How many contents have been encoded for active displays so far.
    pub fn encodings(&self) -> u64 {
        self.studio.encodings()
    }

    /// An update leaves.
    pub(super) fn publish(&mut self, update: Update, videos: bool) {
        self.watching.publish(|| Published::Update { update: Rc::new(update.clone()), videos });
        self.line.act(Action::Update(update));
    }

    /// A unit of a commit leaves.
    pub(super) fn publish_unit(&mut self, unit: &Unit) {
        if self.watching.is_on() {
            let whole = self.whole_in(unit);
            self.watching.publish(|| Published::Unit(whole));
        }
    }

    /// A unit leaves that no commit asked for: the surfaces may have got another shape since, which is not of these
    /// pixels.
    pub(super) fn publish_bare_unit(&mut self, unit: &Unit) {
        if self.watching.is_on() {
            let mut whole = self.whole_in(unit);
            whole.iter_mut().for_each(|whole| whole.shape = None);
            self.watching.publish(|| Published::Unit(whole));
        }
    }

    /// The contents that a unit names, children's first.
    fn whole_in(&self, unit: &Unit) -> Vec<Whole> {
        let mut whole: Vec<Whole> = unit.children.iter().flat_map(|child| self.whole_in(child)).collect();
        let surface = self.objects.by_name(unit.surface).and_then(|id| self.surfaces.get(&id));
        if let (UnitContent::Update(update), Some(surface)) = (unit.content, surface) {
            let (surface, shape) = (SurfaceId(unit.surface.0), Some(surface.shape));
            whole.push(Whole { surface, update, shape });
        }
        whole
    }

    /// The last update of a surface does not leave after all.
    pub(super) fn retract(&mut self, surface: SurfaceId) {
        self.watching.publish(|| Published::TakenBack(surface));
    }
}
