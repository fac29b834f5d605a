//! Units that came in the headers of their updates, until they can be shown.
//!
//! Of each surface the newest counts whose update is there with all that it builds on, and which the messages before it
//! have come for. Those before it need not be shown any more; those behind it may still become the newest. Knows
//! neither pixels nor what is held. Invariant: the newest that has come is kept until it is forgotten.

use std::collections::BTreeMap;

use wayferry_proto::{UnitHead, UpdateSeq};

use crate::action::End;
use crate::message::{Unit, UnitContent, WireId};

/// Surfaces of one program with such a unit: the app side has no more units under way.
pub(super) const MAX_TOLD: usize = 1024;

/// Units of one surface that cannot be shown yet; the oldest go, for those behind them show the same and more.
const MAX_TOLD_UNITS: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Told {
    units: BTreeMap<WireId, BTreeMap<u64, (UpdateSeq, UnitHead)>>,
}

impl Told {
    /// An update is there that shows itself.
    pub(super) fn add(&mut self, surface: WireId, update: UpdateSeq, unit: UnitHead) -> Result<(), End> {
        if !self.units.contains_key(&surface) && self.units.len() >= MAX_TOLD {
            return Err(End::TooMuch("surfaces whose updates show themselves"));
        }
        let units = self.units.entry(surface).or_default();
        units.insert(unit.number, (update, unit));
        if units.len() > MAX_TOLD_UNITS
            && let Some((_, (_, oldest))) = units.pop_first()
            && let Some(mut next) = units.first_entry()
        {
            next.get_mut().1.feedback |= oldest.feedback;
        }
        Ok(())
    }

    /// Forgets the units of a surface up to this number.
    pub(super) fn forget(&mut self, surface: WireId, number: u64) {
        if let Some(units) = self.units.get_mut(&surface) {
            units.retain(|unit, _| *unit > number);
            if units.is_empty() {
                self.units.remove(&surface);
            }
        }
    }

    /// A surface has been made: ids below it that were passed over belong to none.
    pub(super) fn created(&mut self, surface: WireId, is_there: impl Fn(WireId) -> bool) {
        self.units.retain(|id, _| *id >= surface || is_there(*id));
    }

    /// Of each surface the newest that comes after no more than so many messages, and whose update is there.
    pub(super) fn due(&self, messages: u64, is_there: impl Fn(WireId, UpdateSeq) -> bool) -> Vec<Unit> {
        let newest = |(surface, units): (&WireId, &BTreeMap<u64, (UpdateSeq, UnitHead)>)| {
            let is_due = |(update, unit): &(UpdateSeq, UnitHead)| {
                unit.after <= messages && is_there(*surface, *update)
            };
            let (number, (update, head)) = units.iter().rev().find(|(_, told)| is_due(told))?;
            Some(Unit {
                surface: *surface,
                number: *number,
                state: Vec::new(),
                content: UnitContent::Update(*update),
                offset: (0, 0),
                // What those before it are owed, it answers.
                feedback: units.range(..=number).any(|(_, (_, unit))| unit.feedback),
                answered: head.answered,
                children: Vec::new(),
            })
        };
        self.units.iter().filter_map(newest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: WireId = WireId(4);

    fn unit(number: u64, after: u64, feedback: bool) -> UnitHead {
        UnitHead { number, after, feedback, answered: None }
    }

    #[test]
    fn the_newest_waits_for_what_was_said_before_it() {
        let mut told = Told::default();
        told.add(A, UpdateSeq(7), unit(3, 9, true)).unwrap();
        told.add(A, UpdateSeq(8), unit(4, 9, false)).unwrap();
        told.add(A, UpdateSeq(6), unit(2, 5, false)).unwrap();
        let due = |told: &Told, messages: u64, there: u64| {
            let due = told.due(messages, |_, update| update.0 <= there);
            due.iter().map(|unit| (unit.number, unit.feedback)).collect::<Vec<_>>()
        };
        assert_eq!(due(&told, 4, 8), []);
        assert_eq!(due(&told, 8, 8), [(2, false)]);
        assert_eq!(due(&told, 9, 8), [(4, true)], "the feedback of the older one is answered with it");
        told.forget(A, 4);
        assert_eq!(due(&told, 9, 8), []);
    }

    /// Where one is always on its way, the newest is never there.
    #[test]
    fn regression_a_newer_unit_whose_update_is_not_whole_hides_none_that_is() {
        let mut told = Told::default();
        for number in 1..=1000 {
            told.add(A, UpdateSeq(number), unit(number, 0, number == 1)).unwrap();
            assert!(told.units[&A].len() <= MAX_TOLD_UNITS);
        }
        let due = told.due(0, |_, update| update.0 <= 990);
        assert_eq!(due.iter().map(|unit| (unit.number, unit.feedback)).collect::<Vec<_>>(), [(990, true)]);
        told.forget(A, 990);
        let due = told.due(0, |_, _| true);
        assert_eq!(due.iter().map(|unit| (unit.number, unit.feedback)).collect::<Vec<_>>(), [(1000, false)]);
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
        assert_eq!(told.due(0, |_, _| true).len(), 1);
    }
}
