//! The shape of what is drawn in a cell, in any colours: letters are told apart by it, and stars are not.
//!
//! Two shapes are alike when the pictures of their ink agree, one of them moved by a column at most: fields may draw
//! the same star at another fraction of a pixel.
//!
//! The one invariant: a shape is compared with no more pixels than it has.

use zeroize::Zeroizing;

use crate::plane::{Plane, distance};

/// How far each pixel of a cell is from its paper, without the mean, of length one.
#[derive(Clone)]
pub(crate) struct Shape {
    width: usize,
    ink: Zeroizing<Vec<f32>>,
}

impl Shape {
    /// The shape of columns of a plane; `None` where nothing but paper is.
    pub(crate) fn of(plane: &Plane, columns: std::ops::Range<usize>) -> Option<Self> {
        if columns.is_empty() {
            return None;
        }
        let paper = plane.paper(columns.clone());
        let width = columns.len();
        let mut ink = Zeroizing::new(Vec::with_capacity(width * plane.height()));
        ink.extend(plane.rows(columns).flatten().map(|pixel| distance(*pixel, paper) as f32));
        let mean = ink.iter().sum::<f32>() / ink.len().max(1) as f32;
        ink.iter_mut().for_each(|value| *value -= mean);
        let length = ink.iter().map(|value| value * value).sum::<f32>().sqrt();
        if length <= f32::EPSILON {
            return None;
        }
        ink.iter_mut().for_each(|value| *value /= length);
        Some(Self { width, ink })
    }

    /// How alike two shapes are: one when they are equal, about zero when they have nothing in common.
    pub(crate) fn likeness(&self, other: &Self) -> f32 {
        let [left, own, right] = self.products(other);
        own.max(left).max(right)
    }

    /// The same, one of them moved by half a column perhaps.
    pub(crate) fn likeness_between(&self, other: &Self) -> f32 {
        let [left, own, right] = self.products(other);
        // What is drawn between two columns is the mean of both, whose length the product with itself tells.
        let [_, _, beside] = self.products(self);
        let half = (own + left.max(right)) / 2.0 / ((1.0 + beside) / 2.0).max(f32::EPSILON).sqrt();
        own.max(left).max(right).max(half)
    }

    /// The products of two shapes, one of them moved to the left by a column, where it is, and to the right.
    fn products(&self, other: &Self) -> [f32; 3] {
        let (height, others) = (self.ink.len() / self.width, other.ink.len() / other.width);
        if height != others || self.width.abs_diff(other.width) > 1 {
            return [0.0; 3];
        }
        [-1, 0, 1].map(|by: isize| {
            let (from, to) = ((-by).max(0) as usize, by.max(0) as usize);
            let width = (self.width - from.min(self.width)).min(other.width - to.min(other.width));
            let rows = self.ink.chunks_exact(self.width).zip(other.ink.chunks_exact(other.width));
            let products = rows.flat_map(|(a, b)| a[from..from + width].iter().zip(&b[to..to + width]));
            products.map(|(a, b)| a * b).sum::<f32>()
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.ink[..])
    }

    /// Whether the two are the same character, for the purpose of counting different ones.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.likeness(other) > SAME
    }
}

/// Likeness from which two cells hold one character.
const SAME: f32 = 0.9;
