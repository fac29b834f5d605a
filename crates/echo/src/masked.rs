//! Finds fields that draw one shape for every key: stars, dots, bullets.
//!
//! It sees what was drawn for each key and remembers the last shape alone. It does not know what the field is for.
//!
//! The one invariant: once [`TWINS`] different keys in a row gave one shape, the field is masked until the epoch ends.

use crate::key::Key;
use crate::shape::Shape;

/// What was drawn last, and how often it was drawn for different keys.
#[derive(Default)]
pub(crate) struct Masked {
    last: Option<(Key, Shape)>,
    twins: u32,
    masked: bool,
}

impl Masked {
    /// A key drew this. Says whether the field is now known to be masked.
    pub(crate) fn drew(&mut self, key: Key, shape: Shape) -> bool {
        if let Some((last, before)) = &self.last
            && *last != key
        {
            let same = before.likeness(&shape) >= TWIN;
            self.twins = if same { self.twins + 1 } else { 0 };
        }
        self.last = Some((key, shape));
        self.masked |= self.twins + 1 >= TWINS;
        self.masked
    }

    pub(crate) fn is_masked(&self) -> bool {
        self.masked
    }

    pub(crate) fn bytes(&self) -> usize {
        self.last.as_ref().map_or(0, |(_, shape)| shape.bytes())
    }
}

/// Likeness from which two keys have drawn the same mask.
const TWIN: f32 = 0.94;

/// Different keys in a row with one shape that make a masked field.
const TWINS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::Plane;

    fn shape(rows: std::ops::Range<usize>) -> Shape {
        let mut cell = Plane::filled(8, 16, 0xff00_0000);
        cell.fill(1..7, rows, 0xffff_ffff);
        Shape::of(&cell, 0..8).expect("ink")
    }

    fn key(code: u16) -> Key {
        Key { code, modifiers: 0, group: 0 }
    }

    #[test]
    fn three_different_keys_with_one_shape_make_a_masked_field() {
        let mut masked = Masked::default();
        assert!(!masked.drew(key(16), shape(4..9)));
        assert!(!masked.drew(key(17), shape(4..9)));
        assert!(masked.drew(key(18), shape(4..9)));
        assert!(masked.drew(key(19), shape(1..3)), "until the epoch ends");
    }

    #[test]
    fn one_key_again_and_other_shapes_are_no_mask() {
        let mut masked = Masked::default();
        assert!((0..9).all(|_| !masked.drew(key(16), shape(4..9))));
        assert!(!masked.drew(key(17), shape(4..9)));
        assert!(!masked.drew(key(18), shape(10..14)));
        assert!(!masked.drew(key(19), shape(10..14)));
    }
}
