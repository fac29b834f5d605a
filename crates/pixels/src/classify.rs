//! What is in a piece of a picture, and how it is best written.
//!
//! A cell is at most 64 × 64 pixels of a changed rectangle. One with a single colour is solid; one with
//! few colours, where few pixels differ from their neighbours, is written by numbers of a palette; all
//! others are pictures. The choice is by predicted bytes, not by what anything depicts.
//!
//! The one invariant: the numbers and colours of a palette cell give its pixels.

use std::ops::Range;

use crate::content::Content;
use crate::geometry::Rect;
use crate::palette::{MAX_COLOURS, Palette, at_least, colours};

/// Side of a cell, in pixels.
pub(crate) const CELL: u32 = 64;

/// How the pixels of a cell are written.
#[derive(Clone, Debug)]
pub(crate) enum Class {
    /// One colour.
    Solid(u32),
    /// Colours and numbers, as ranges of [`Classifier::colours`] and [`Classifier::numbers`].
    Palette { colours: Range<usize>, numbers: Range<usize> },
    /// Channels, predicted.
    Picture,
}

/// A piece of a changed rectangle.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) rect: Rect,
    pub(crate) class: Class,
}

/// Sorts cells into classes; keeps what it found out about their colours.
pub(crate) struct Classifier {
    palette: Palette,
    pub(crate) colours: Vec<u32>,
    pub(crate) numbers: Vec<u8>,
    /// What the last palette cell needs before it is compressed, by prediction, in bytes.
    pub(crate) predicted: u64,
}

impl Classifier {
    pub(crate) fn new() -> Self {
        Self { palette: Palette::new(), colours: Vec::new(), numbers: Vec::new(), predicted: 0 }
    }

    /// Forgets the cells so far.
    pub(crate) fn clear(&mut self) {
        self.colours.clear();
        self.numbers.clear();
    }

    /// The class of a cell.
    pub(crate) fn classify(&mut self, content: &Content, rect: Rect) -> Cell {
        let class = match content.format().bytes_per_pixel() {
            2 => self.class::<2>(content, rect),
            _ => self.class::<4>(content, rect),
        };
        Cell { rect, class }
    }

    fn class<const PIXEL: usize>(&mut self, content: &Content, rect: Rect) -> Class {
        let start = self.numbers.len();
        self.palette.clear();
        let Some(steps) = self.count::<PIXEL>(content, rect) else {
            self.numbers.truncate(start);
            return Class::Picture;
        };
        let known = self.palette.colours();
        if let [colour] = *known {
            self.numbers.truncate(start);
            return Class::Solid(colour);
        }
        let predicted = predicted(known.len(), steps);
        self.predicted = predicted as u64;
        if rect.area() > LEAST_PICTURE && predicted > PICTURE_COST * rect.area() as f32 {
            self.numbers.truncate(start);
            return Class::Picture;
        }
        let first = self.colours.len();
        self.colours.extend_from_slice(known);
        Class::Palette { colours: first..self.colours.len(), numbers: start..self.numbers.len() }
    }

    /// Numbers the pixels of a cell; gives how many differ from the one to the left. `None` when there are too
    /// many colours.
    fn count<const PIXEL: usize>(&mut self, content: &Content, rect: Rect) -> Option<usize> {
        let mut above: &[u8] = &[];
        let mut steps = 0;
        let mut sampled = false;
        for y in rect.y..rect.bottom() {
            let row = content.row(y, rect.x, rect.width);
            let end = self.numbers.len();
            if row == above {
                self.numbers.extend_from_within(end - rect.width as usize..);
                continue;
            }
            above = row;
            self.numbers.resize(end + rect.width as usize, 0);
            steps += self.palette.number_row::<PIXEL>(row, &mut self.numbers[end..])?;
            if !sampled && self.palette.colours().len() > SUSPICIOUS {
                sampled = true;
                let rows = (y..rect.bottom()).step_by(SAMPLED_ROWS);
                let sample = rows.flat_map(|y| colours::<PIXEL>(content.row(y, rect.x, rect.width)));
                if at_least(sample) > MAX_COLOURS {
                    return None;
                }
            }
        }
        Some(steps)
    }
}

/// Bytes that a cell needs by palette: each step costs about as many bits as it takes to tell the colours apart.
fn predicted(colours: usize, steps: usize) -> f32 {
    steps as f32 * (colours as f32).log2() / 8.0
}

/// Predicted bytes per pixel of a picture.
const PICTURE_COST: f32 = 0.6;

/// Colours from which on a cell is taken for a picture, and a sample of its rows decides whether it has too many:
/// counting costs little, numbering a picture's colours much.
const SUSPICIOUS: usize = 64;
const SAMPLED_ROWS: usize = 4;

/// Pixels that a palette is always good enough for.
const LEAST_PICTURE: u64 = MAX_COLOURS as u64;
