//! What the caller is to draw over the surface.

use std::time::Duration;

use wayferry_pixels::Rect;
use zeroize::Zeroizing;

use crate::key::KeyId;

/// What is to be drawn now.
#[derive(Clone, PartialEq, Eq)]
pub enum Show {
    /// This, in place of what was drawn before.
    Overlay(Overlay),
    /// Nothing any more.
    Clear,
}

/// A picture over a part of the surface.
#[derive(Clone, PartialEq, Eq)]
pub struct Overlay {
    /// Where, in pixels of the surface's buffer; inside of it.
    pub rect: Rect,
    /// Rows of opaque pixels, ARGB of eight bits each.
    pub pixels: Zeroizing<Vec<u32>>,
    /// Letters in it that no answer has confirmed yet, in the order of their keys; one taken back has none.
    pub marks: Vec<Mark>,
    /// The newest key that it shows.
    pub last: KeyId,
    /// When the oldest key was pressed that it shows.
    pub since: Duration,
}

/// A letter in an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its cell, in pixels of the surface's buffer.
    pub rect: Rect,
    /// What is there.
    pub kind: Marked,
}

/// What a marked cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The letter.
    Letter,
    /// Nothing: the letter was not seen yet, a hollow box may stand for it.
    Unknown,
}

impl std::fmt::Debug for Overlay {
    /// Without the pixels: logs must not show what was typed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay").field("rect", &self.rect).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Show {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overlay(overlay) => overlay.fmt(f),
            Self::Clear => f.write_str("Clear"),
        }
    }
}
