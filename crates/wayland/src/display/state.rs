//! What the display side remembers of single protocols, beside objects and surfaces.
//!
//! Each part has its own file and sends nothing itself; the handlers do.

use super::captions::Captions;
use super::captures::Captures;
use super::cursor::Cursors;
use super::drags::Drags;
use super::images::Images;
use super::keyboard::Keyboards;
use super::pings::Pings;
use super::predict::{Predict, Predictions};
use super::presses::Presses;
use super::veil::Veils;

/// All of it, of one program.
#[derive(Debug)]
pub(super) struct State {
    pub(super) keyboards: Keyboards,
    pub(super) cursors: Cursors,
    pub(super) images: Images,
    pub(super) captures: Captures,
    pub(super) captions: Captions,
    pub(super) drags: Drags,
    pub(super) pings: Pings,
    pub(super) predictions: Predictions,
    pub(super) presses: Presses,
    pub(super) veils: Veils,
}

impl State {
    pub(super) fn new(cursors: Cursors, captions: Captions, predict: Predict) -> Self {
        let (keyboards, images, pings) = (Keyboards::default(), Images::default(), Pings::default());
        let presses = Presses::default();
        let (captures, drags, veils) = (Captures::default(), Drags::default(), Veils::default());
        let predictions = Predictions::new(predict);
        Self { keyboards, cursors, images, captures, captions, drags, pings, predictions, presses, veils }
    }
}
