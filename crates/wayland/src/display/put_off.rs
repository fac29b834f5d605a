//! Units that cannot be shown as the program drew them, because a content that they build on was dropped.
//!
//! Nothing of such a unit is committed: a window without the new pixels of one part would be torn. The app side is asked for
//! what is missing, and the next unit of the same surface brings the rest, too. State goes to the compositor at once, where
//! it waits for that commit. Invariant: what is put off of a surface is here once, and gone with it.

use crate::action::End;
use crate::message::{ToApp, Unit, UnitContent, WireId};
use wayferry_proto::Time;

use super::connection::Connection;

/// What is put off of one commit: its content.
#[derive(Debug)]
pub(super) struct PutOff {
    /// The surface whose next unit brings it.
    top: WireId,
    /// Without state, feedback and children.
    unit: Unit,
}

impl PutOff {
    /// Whether it cannot be shown without this surface.
    pub(super) fn is_of(&self, surface: WireId) -> bool {
        [self.top, self.unit.surface].contains(&surface)
    }
}

impl Connection {
    /// Applies a unit with what was put off until then, or puts it off as a whole.
    pub(super) fn apply_whole(&mut self, now: Time, unit: &Unit) -> Result<(), End> {
        let merged;
        let unit = if self.put_off.is_empty() {
            unit
        } else {
            merged = self.with_put_off(unit.clone());
            &merged
        };
        if self.misses(unit) {
            return self.put_off(unit.surface, unit);
        }
        self.touch(unit);
        self.apply(now, unit)
    }

    /// Whether a content is not here that the unit builds on.
    fn misses(&self, unit: &Unit) -> bool {
        let own = match (unit.content, self.surfaces.get(&unit.surface)) {
            (UnitContent::Update(seq), Some(surface)) => self.updates.misses(unit.surface, surface, seq.0),
            _ => false,
        };
        own || unit.children.iter().any(|child| self.misses(child))
    }

    /// Its contents are dropped last when room is made for one of them.
    fn touch(&mut self, unit: &Unit) {
        unit.children.iter().for_each(|child| self.touch(child));
        if let Some(surface) = self.surfaces.get_mut(&unit.surface) {
            self.memory.touch(surface);
        }
    }

    fn put_off(&mut self, top: WireId, unit: &Unit) -> Result<(), End> {
        let (places, state) = self.split_state(unit);
        places.into_iter().try_for_each(|request| self.perform(request))?;
        unit.children.iter().try_for_each(|child| self.put_off(top, child))?;
        state.into_iter().try_for_each(|request| self.perform(request))?;
        if let UnitContent::Update(seq) = unit.content
            && self.misses(&Unit { children: Vec::new(), ..unit.clone() })
            && let Some(surface) = self.surfaces.get_mut(&unit.surface)
        {
            let wanted = self.updates.apply(unit.surface, surface, seq.0)?.wanted;
            if surface.ask_again() || wanted {
                self.tell(&ToApp::Refresh { surface: unit.surface });
            }
        }
        let rest = Unit { state: Vec::new(), feedback: false, children: Vec::new(), ..unit.clone() };
        self.put_off.retain(|other| other.unit.surface != unit.surface);
        self.put_off.push(PutOff { top, unit: rest });
        self.skip(unit)
    }

    /// The unit with what was put off of earlier ones of its surface.
    fn with_put_off(&mut self, mut unit: Unit) -> Unit {
        let (older, others) =
            std::mem::take(&mut self.put_off).into_iter().partition(|other| other.top == unit.surface);
        self.put_off = others;
        let mut older: Vec<Unit> = older.into_iter().map(|put_off| put_off.unit).collect();
        take_over(&mut unit, &mut older);
        unit.children.splice(0..0, older);
        unit
    }
}

/// Has a unit bring what older ones of its surfaces do, if it brings nothing newer.
fn take_over(unit: &mut Unit, older: &mut Vec<Unit>) {
    unit.children.iter_mut().for_each(|child| take_over(child, older));
    if let Some(at) = older.iter().position(|older| older.surface == unit.surface) {
        let Unit { content, offset: (x, y), .. } = older.remove(at);
        if unit.content == UnitContent::Keep {
            unit.content = content;
        }
        unit.offset = (unit.offset.0.saturating_add(x), unit.offset.1.saturating_add(y));
    }
}
