//! Units that came in the headers of their updates, until they can be shown.
//!
//! Of each surface only the newest counts: its update makes up for those before it. It waits for the messages that come
//! before it. Knows neither pixels nor what is held. Invariant: a unit is given out once, and after that none that is
//! older.

use std::collections::BTreeMap;

use wayferry_proto::{UnitHead, UpdateSeq};

use crate::action::End;
use crate::message::{Unit, UnitContent, WireId};

/// Surfaces of one program with such a unit: the app side has no more units under way.
pub(super) const MAX_TOLD: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Told {
    units: BTreeMap<WireId, (UpdateSeq, UnitHead)>,
}

impl Told {
    /// An update is there that shows itself.
    pub(super) fn add(&mut self, surface: WireId, update: UpdateSeq, mut unit: UnitHead) -> Result<(), End> {
        if let Some((_, older)) = self.units.get(&surface) {
            if older.number >= unit.number {
                return Ok(());
            }
            // What the older one is owed, the newer one answers.
            unit.feedback |= older.feedback;
        } else if self.units.len() >= MAX_TOLD {
            return Err(End::TooMuch("surfaces whose updates show themselves"));
        }
        self.units.insert(surface, (update, unit));
        Ok(())
    }

    /// Forgets units of a surface.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.units.remove(&surface);
    }

    /// A surface has been made: ids below it that were passed over belong to none.
    pub(super) fn created(&mut self, surface: WireId, is_there: impl Fn(WireId) -> bool) {
        self.units.retain(|id, _| *id >= surface || is_there(*id));
    }

    /// Those that come after no more than so many messages.
    pub(super) fn due(&self, messages: u64) -> Vec<Unit> {
        let due = self.units.iter().filter(|(_, (_, unit))| unit.after <= messages);
        due.map(|(surface, (update, unit))| Unit {
            surface: *surface,
            number: unit.number,
            state: Vec::new(),
            content: UnitContent::Update(*update),
            offset: (0, 0),
            feedback: unit.feedback,
            children: Vec::new(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WireId = WireId(4);

    fn unit(number: u64, after: u64, feedback: bool) -> UnitHead {
        UnitHead { number, after, feedback }
    }

    #[test]
    fn the_newest_waits_for_what_was_said_before_it() {
        let mut told = Told::default();
        told.add(A, UpdateSeq(7), unit(3, 9, true)).unwrap();
        told.add(A, UpdateSeq(8), unit(4, 9, false)).unwrap();
        told.add(A, UpdateSeq(6), unit(2, 5, false)).unwrap();
        assert!(told.due(8).is_empty());
        let due = told.due(9);
        assert_eq!(
            due.iter().map(|unit| (unit.number, unit.content)).collect::<Vec<_>>(),
            [(4, UnitContent::Update(UpdateSeq(8)))]
        );
        assert!(due[0].feedback, "that of the older one is answered with it");
        told.forget(A);
        assert!(told.due(9).is_empty());
    }

    #[test]
    fn there_are_few_and_none_of_surfaces_that_will_never_be() {
        let mut told = Told::default();
        for id in 0..MAX_TOLD as u64 {
            told.add(WireId(2 * id), UpdateSeq(1), unit(1, 0, false)).unwrap();
        }
        assert!(told.add(WireId(9999), UpdateSeq(1), unit(1, 0, false)).is_err());
        told.add(WireId(0), UpdateSeq(2), unit(2, 0, false)).unwrap();
        told.created(WireId(2 * MAX_TOLD as u64), |id| id == WireId(8));
        assert_eq!(told.due(0).len(), 1);
    }
}
