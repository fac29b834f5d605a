//! The line as it will be once some outstanding keys are answered, and whether an answer agrees with that.
//!
//! The one invariant: what was not drawn where it was predicted is never judged right.

use std::ops::Range;

use wayferry_pixels::Rect;

use crate::caret::Caret;
use crate::glyphs::Glyphs;
use crate::key::Key;
use crate::line::{Cell, Line, Step};
use crate::plane::{Plane, most};
use crate::shape::Shape;

/// A line after some keys.
pub(crate) struct Ahead {
    pub(crate) line: Line,
    pub(crate) steps: Vec<Step>,
}

/// How an answer agrees with what was predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every letter and the caret, in other colours perhaps.
    Right,
    /// The caret, where letters were not known or the pen only moved: no credit.
    Place,
}

impl Ahead {
    /// After all of `keys`; `None` where one of them leads to nothing that is known.
    pub(crate) fn of(
        line: &Line,
        keys: impl Iterator<Item = Key>,
        caret: &Caret,
        glyphs: &Glyphs,
    ) -> Option<Self> {
        let mut ahead = Self { line: line.clone(), steps: Vec::new() };
        for key in keys {
            let step = ahead.line.apply(key, caret, glyphs)?;
            ahead.steps.push(step);
        }
        Some(ahead)
    }

    /// Columns that differ from the line before.
    pub(crate) fn columns(&self) -> Range<usize> {
        let all = self.steps.iter().map(|step| step.columns.clone());
        all.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)).unwrap_or(0..0)
    }

    /// Whether each key wrote a letter, so that each cell shows its own.
    pub(crate) fn only_writes(&self) -> bool {
        self.steps.iter().all(|step| step.cell.is_some())
    }

    /// Where the letters are that were written and are still there, in the order of their keys.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for step in &self.steps {
            let (from, by) = step.moved;
            let gone = from.saturating_add_signed(by.min(0))..from;
            cells.retain(|cell| cell.columns.end <= gone.start || cell.columns.start >= gone.end);
            for columns in
                cells.iter_mut().map(|cell| &mut cell.columns).filter(|columns| columns.start >= from)
            {
                *columns = columns.start.saturating_add_signed(by)..columns.end.saturating_add_signed(by);
            }
            if let Some(new) = &step.cell {
                cells.retain(|cell| {
                    cell.columns.end <= new.columns.start || cell.columns.start >= new.columns.end
                });
                cells.push(new.clone());
            }
        }
        cells
    }

    /// Whether a letter is among them that was not seen yet.
    pub(crate) fn has_unknown(&self) -> bool {
        self.steps.iter().filter_map(|step| step.cell.as_ref()).any(|cell| cell.is_unknown)
    }

    /// Compares with the strip as it is now; `touched` is what changed on the surface.
    pub(crate) fn judge(
        &self,
        actual: &Plane,
        touched: &[Rect],
        caret: &Caret,
        glyphs: &Glyphs,
    ) -> Option<Verdict> {
        let columns = self.columns();
        let on_surface = self.line.on_surface(&columns);
        if columns.is_empty() || !touched.iter().any(|rect| rect.intersects(on_surface)) {
            return None;
        }
        let (picture, actual_part) =
            (self.line.picture(&columns, caret, glyphs), actual.cut(columns.clone()));
        if !self.has_unknown() && picture.pixels() == actual_part.pixels() {
            return Some(Verdict::Right);
        }
        if !caret.is_at(actual, self.line.pen) {
            return None;
        }
        if !self.only_writes() {
            let is_near = picture.difference(&actual_part) <= NEAR;
            return (is_near || self.steps.len() == 1).then_some(Verdict::Place);
        }
        let cells = self.steps.iter().filter_map(|step| step.cell.as_ref());
        let is_letter = |cell: &Cell| {
            let place = cell.columns.start - columns.start..cell.columns.end - columns.start;
            cell.is_unknown || is_letter(picture.cut(place.clone()), actual_part.cut(place))
        };
        let verdict = if self.has_unknown() { Verdict::Place } else { Verdict::Right };
        cells.into_iter().all(is_letter).then_some(verdict)
    }

    /// Whether the rest of the line was left where it was: letters replace others there. `None` if nothing tells.
    pub(crate) fn replaces(
        &self,
        before: &Line,
        actual: &Plane,
        caret: &Caret,
        glyphs: &Glyphs,
    ) -> Option<bool> {
        let [Step { columns, cell: Some(cell), .. }] = &self.steps[..] else { return None };
        let rest = cell.columns.end + caret.width..columns.end;
        if rest.is_empty() {
            return None;
        }
        let picture = self.line.picture(&rest, caret, glyphs);
        let equal = |other: &Plane| {
            let pairs = actual.rows(rest.clone()).flatten().zip(other.pixels());
            pairs.filter(|(a, b)| a == b).count()
        };
        Some(equal(&before.strip.cut(rest.clone())) > equal(&picture))
    }
}

/// Whether a cell shows the letter that was predicted.
pub(crate) fn is_letter(mut expected: Plane, mut drawn: Plane) -> bool {
    if expected.difference(&drawn) <= NEAR {
        return true;
    }
    without_rules(&mut expected, &mut drawn);
    let shape = |plane: &Plane| Shape::of(plane, 0..plane.width());
    match (shape(&expected), shape(&drawn)) {
        (Some(expected), Some(drawn)) => expected.likeness_between(&drawn) > RIGHT,
        // Blanks, perhaps on another paper.
        (expected, drawn) => expected.is_none() && drawn.is_none(),
    }
}

/// Blanks rows that are a line from side to side in one of two cells: programs underline words, which says nothing of
/// their letters.
pub(crate) fn without_rules(a: &mut Plane, b: &mut Plane) {
    let columns = 0..a.width().min(b.width());
    let papers = [a.paper(columns.clone()), b.paper(columns.clone())];
    let is_rule = |plane: &Plane, y: usize, paper: u32| {
        let inked = plane.row(y, columns.clone()).iter().copied().filter(|pixel| *pixel != paper);
        most(inked).is_some_and(|(_, count)| count * 5 > columns.len() * 4)
    };
    for y in 0..a.height() {
        if is_rule(a, y, papers[0]) || is_rule(b, y, papers[1]) {
            a.fill(columns.clone(), y..y + 1, papers[0]);
            b.fill(columns.clone(), y..y + 1, papers[1]);
        }
    }
}

/// The difference of channels that no eye sees.
const NEAR: u32 = 12;

/// Likeness from which a letter is the one that was predicted.
const RIGHT: f32 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: u32 = 0xff10_1010;
    const INK: u32 = 0xffe0_e0e0;

    /// A stem and an arm, from this column on.
    fn letter(width: usize, from: usize) -> Plane {
        let mut cell = Plane::filled(width, 16, PAPER);
        cell.fill(from..from + 2, 2..14, INK);
        cell.fill(from..from + 5, 6..8, INK);
        cell
    }

    #[test]
    fn a_letter_in_a_wider_or_narrower_cell_is_the_same() {
        for (expected, drawn) in [(8, 7), (7, 8), (8, 8)] {
            assert!(is_letter(letter(expected, 1), letter(drawn, 1)), "{expected}, {drawn}");
        }
    }

    #[test]
    fn a_letter_between_two_columns_is_the_same_and_another_one_is_not() {
        let between = letter(8, 1).shifted(0.5, PAPER);
        assert!(is_letter(letter(8, 1), between));
        let mut other = Plane::filled(8, 16, PAPER);
        other.fill(5..7, 2..14, INK);
        other.fill(1..7, 12..14, INK);
        assert!(!is_letter(letter(8, 1), other.clone()));
        assert!(!is_letter(letter(8, 1), other.shifted(0.5, PAPER)));
    }
}
