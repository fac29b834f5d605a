//! Registry names of outputs and seats towards the program, apart from the compositor's.
//!
//! A program keeps its outputs and seats when another display takes over: the first becomes the first of the new one.
//! Invariant: there is always at least one of each; toolkits crash without.

use crate::snapshot::Snapshot;

/// Names of outputs begin here, those of seats behind them, those of fixed globals before.
const FIRST_OUTPUT: u32 = 1 << 30;
const FIRST_SEAT: u32 = 2 << 30;

/// One output or seat as the program knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Registry name towards the program.
    pub(crate) name: u32,
    /// Registry name at the compositor; `None` while it has none to stand for.
    pub(crate) global: Option<u32>,
}

/// All outputs or all seats.
#[derive(Debug)]
struct Row {
    slots: Vec<Slot>,
    next: u32,
}

/// Both.
#[derive(Debug)]
pub(crate) struct Slots {
    outputs: Row,
    seats: Row,
}

impl Row {
    fn new(next: u32, globals: &[u32]) -> Self {
        let mut row = Self { slots: Vec::new(), next };
        row.follow(globals);
        row
    }

    /// The same display has these now.
    fn follow(&mut self, globals: &[u32]) {
        let known = |slot: &Slot| slot.global.is_some_and(|global| globals.contains(&global));
        let mut slots: Vec<Slot> = self.slots.iter().copied().filter(known).collect();
        for global in globals {
            if !slots.iter().any(|slot| slot.global == Some(*global)) {
                slots.push(self.give(Some(*global)));
            }
        }
        if slots.is_empty() {
            // The last one goes on without.
            let last = self.slots.first().map(|slot| Slot { global: None, ..*slot });
            slots.push(last.unwrap_or_else(|| self.give(None)));
        }
        self.slots = slots;
    }

    /// Another display has these.
    fn change(&mut self, globals: &[u32]) {
        let old = std::mem::take(&mut self.slots);
        for (index, global) in globals.iter().enumerate() {
            let slot = match old.get(index) {
                Some(slot) => Slot { global: Some(*global), ..*slot },
                None => self.give(Some(*global)),
            };
            self.slots.push(slot);
        }
        if self.slots.is_empty() {
            self.slots.extend(old.first().map(|slot| Slot { global: None, ..*slot }));
        }
    }

    fn give(&mut self, global: Option<u32>) -> Slot {
        self.next += 1;
        Slot { name: self.next, global }
    }

    fn global(&self, name: u32) -> Option<u32> {
        self.slots.iter().find(|slot| slot.name == name)?.global
    }
}

impl Slots {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let (outputs, seats) = globals(snapshot);
        Self { outputs: Row::new(FIRST_OUTPUT, &outputs), seats: Row::new(FIRST_SEAT, &seats) }
    }

    /// The same display has changed.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot) {
        let (outputs, seats) = globals(snapshot);
        self.outputs.follow(&outputs);
        self.seats.follow(&seats);
    }

    /// Another display has taken over.
    pub(crate) fn change(&mut self, snapshot: &Snapshot) {
        let (outputs, seats) = globals(snapshot);
        self.outputs.change(&outputs);
        self.seats.change(&seats);
    }

    pub(crate) fn outputs(&self) -> &[Slot] {
        &self.outputs.slots
    }

    pub(crate) fn seats(&self) -> &[Slot] {
        &self.seats.slots
    }

    /// The compositor's name of an output of the program.
    pub(crate) fn output(&self, name: u32) -> Option<u32> {
        self.outputs.global(name)
    }

    /// The compositor's name of a seat of the program.
    pub(crate) fn seat(&self, name: u32) -> Option<u32> {
        self.seats.global(name)
    }
}

fn globals(snapshot: &Snapshot) -> (Vec<u32>, Vec<u32>) {
    let outputs = snapshot.outputs.iter().map(|output| output.global).collect();
    (outputs, snapshot.seats.iter().map(|seat| seat.global).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(globals: &[u32]) -> Row {
        Row::new(100, globals)
    }

    fn names(row: &Row) -> Vec<(u32, Option<u32>)> {
        row.slots.iter().map(|slot| (slot.name, slot.global)).collect()
    }

    #[test]
    fn the_same_display_keeps_names_by_its_own() {
        let mut row = row(&[7, 8]);
        row.follow(&[8, 9]);
        assert_eq!(names(&row), [(102, Some(8)), (103, Some(9))]);
        row.follow(&[]);
        assert_eq!(names(&row), [(102, None)], "never none at all");
        row.follow(&[8]);
        assert_eq!(names(&row), [(104, Some(8))]);
    }

    #[test]
    fn another_display_takes_names_over_in_order() {
        let mut row = row(&[7, 8]);
        row.change(&[70]);
        assert_eq!(names(&row), [(101, Some(70))]);
        row.change(&[1, 2, 3]);
        assert_eq!(names(&row), [(101, Some(1)), (103, Some(2)), (104, Some(3))]);
        row.change(&[]);
        assert_eq!(names(&row), [(101, None)]);
    }
}
