//! Where a popup goes, by the rules that its program has for it.
//!
//! Arithmetic on rectangles, in units, one axis at a time. Invariant: for any rules there is an answer, and its
//! sides are at least one unit long.

use wayferry_message::value::Positioner;

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) at: (i32, i32),
    pub(crate) size: (i32, i32),
}

/// The place of a popup in its parent's window, where it should be inside `room`.
pub(crate) fn place(rules: &Positioner, room: Place) -> Place {
    let (width, height) = rules.size.unwrap_or((1, 1));
    let (x, y, across, down) = rules.anchor_rect.unwrap_or_default();
    let (anchor, gravity) = (sides(rules.anchor), sides(rules.gravity));
    let offset = rules.offset.unwrap_or_default();
    // `xdg_positioner.constraint_adjustment` has slide, flip and resize, each first for x and then for y.
    let adjustment = rules.constraint_adjustment.unwrap_or(0);
    let may = |axis: u32| [0, 2, 4].map(|which| adjustment & 1 << (which + axis) != 0);
    let axis = |from, length, size, anchor, gravity, offset| Axis {
        from: i64::from(from),
        length: i64::from(length).max(0),
        size: i64::from(size).max(1),
        anchor,
        gravity,
        offset: i64::from(offset),
    };
    let horizontal = axis(x, across, width, anchor.0, gravity.0, offset.0);
    let vertical = axis(y, down, height, anchor.1, gravity.1, offset.1);
    let (x, width) = horizontal.fit(room.at.0.into(), room.size.0.into(), may(0));
    let (y, height) = vertical.fit(room.at.1.into(), room.size.1.into(), may(1));
    Place { at: (x, y), size: (width, height) }
}

/// One axis of the rules. An edge is −1 the first, 0 the middle, 1 the last.
#[derive(Clone, Copy)]
struct Axis {
    from: i64,
    length: i64,
    size: i64,
    anchor: i64,
    gravity: i64,
    offset: i64,
}

impl Axis {
    /// Where it begins without regard to the room.
    fn start(self) -> i64 {
        let anchor = self.from + self.length * (self.anchor + 1) / 2;
        anchor - self.size * (1 - self.gravity) / 2 + self.offset
    }

    fn flipped(self) -> Self {
        Self { anchor: -self.anchor, gravity: -self.gravity, offset: -self.offset, ..self }
    }

    /// Beginning and length in a room.
    fn fit(self, low: i64, room: i64, [slides, flips, shrinks]: [bool; 3]) -> (i32, i32) {
        let high = low + room;
        let fits = |start: i64| start >= low && start + self.size <= high;
        let mut start = self.start();
        if flips && !fits(start) && fits(self.flipped().start()) {
            start = self.flipped().start();
        }
        if slides && !fits(start) {
            // What is longer than the room keeps the edge that it grows from inside.
            let last = high - self.size;
            start = if self.gravity < 0 { start.max(low).min(last) } else { start.min(last).max(low) };
        }
        let mut end = start + self.size;
        if shrinks && !(start >= low && end <= high) && start < high && end > low {
            (start, end) = (start.max(low), end.min(high));
        }
        let bound = |value: i64| value.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        (bound(start), bound((end - start).max(1)))
    }
}

/// The edges that an anchor or a gravity names: across and down. Both enums have the same values.
fn sides(direction: Option<u32>) -> (i64, i64) {
    match direction.unwrap_or(0) {
        1 => (0, -1),
        2 => (0, 1),
        3 => (-1, 0),
        4 => (1, 0),
        5 => (-1, -1),
        6 => (-1, 1),
        7 => (1, -1),
        8 => (1, 1),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Place = Place { at: (0, 0), size: (100, 80) };
    const BOTTOM_LEFT: u32 = 6;
    const BOTTOM_RIGHT: u32 = 8;
    const ALL: u32 = 63;

    /// A menu of 30 × 20 below a button of 10 × 5.
    fn menu(x: i32, y: i32, adjustment: u32) -> Positioner {
        Positioner {
            size: Some((30, 20)),
            anchor_rect: Some((x, y, 10, 5)),
            anchor: Some(BOTTOM_LEFT),
            gravity: Some(BOTTOM_RIGHT),
            constraint_adjustment: Some(adjustment),
            ..Positioner::default()
        }
    }

    #[test]
    fn a_menu_hangs_below_its_button_where_there_is_room() {
        assert_eq!(place(&menu(10, 10, ALL), ROOM), Place { at: (10, 15), size: (30, 20) });
        let moved = Positioner { offset: Some((3, -1)), ..menu(10, 10, ALL) };
        assert_eq!(place(&moved, ROOM).at, (13, 14));
        let centred = Positioner { anchor: None, gravity: None, ..menu(40, 40, ALL) };
        assert_eq!(place(&centred, ROOM).at, (30, 32));
    }

    #[test]
    fn one_without_room_flips_then_slides_then_shrinks() {
        // Above the button, and flush with its right edge.
        assert_eq!(place(&menu(85, 70, ALL), ROOM).at, (65, 50));
        let slides = 3;
        assert_eq!(place(&menu(85, 70, slides), ROOM).at, (70, 60));
        let shrinks = 48;
        assert_eq!(place(&menu(85, 70, shrinks), ROOM), Place { at: (85, 75), size: (15, 5) });
        assert_eq!(place(&menu(85, 70, 0), ROOM).at, (85, 75), "it may do nothing");
    }

    #[test]
    fn one_that_is_longer_than_the_room_keeps_its_first_edge_inside() {
        let long = Positioner { size: Some((30, 200)), ..menu(10, 10, 3) };
        assert_eq!(place(&long, ROOM), Place { at: (10, 0), size: (30, 200) });
        let long = Positioner { size: Some((30, 200)), ..menu(10, 10, ALL) };
        assert_eq!(place(&long, ROOM), Place { at: (10, 0), size: (30, 80) });
    }

    #[test]
    fn rules_of_any_numbers_have_an_answer() {
        for number in [i32::MIN, -1, 0, i32::MAX] {
            let rules = Positioner {
                size: Some((number, number)),
                anchor_rect: Some((number, number, number, number)),
                offset: Some((number, number)),
                anchor: Some(8),
                gravity: Some(5),
                constraint_adjustment: Some(u32::MAX),
                ..Positioner::default()
            };
            let Place { size, .. } = place(&rules, Place { at: (number, number), size: (number, number) });
            assert!(size.0 > 0 && size.1 > 0);
        }
    }
}
