//! What takes the place of a codec for videos where none is built in: none can be made, and none be shown.
//!
//! Invariant: nothing of this module is ever made.

use std::time::Duration;

use wayferry_pixels::video::Coming;
use wayferry_pixels::{Content, Format, Rect};

/// Whether there is a codec.
pub(crate) const IS_THERE: bool = false;

/// Would say who makes frames.
#[derive(Debug)]
pub(crate) struct Maker;

impl Maker {
    pub(crate) fn new(_: bool) -> Self {
        Self
    }
}

/// Would make frames.
#[derive(Debug)]
pub(crate) enum Encoder {}

impl Encoder {
    pub(crate) fn new(_: Rect, _: u8) -> Option<Self> {
        None
    }

    pub(crate) fn frame(&self, _: &mut Maker, _: &Content, _: Rect, _: u64, _: Duration) -> Option<Coming> {
        match *self {}
    }

    pub(crate) fn fails(&self) -> bool {
        match *self {}
    }
}

/// Would show frames.
#[derive(Debug)]
pub(crate) enum Decoder {}

impl Decoder {
    pub(crate) fn new(_: Rect) -> Result<Self, String> {
        Err("videos are not shown by this build".to_owned())
    }

    pub(crate) fn decode(&mut self, _: &[u8]) -> Result<DecodedFrame<'_>, String> {
        match *self {}
    }
}

/// Would be a frame.
#[derive(Debug)]
pub(crate) struct DecodedFrame<'a>(&'a mut Decoder);

impl DecodedFrame<'_> {
    pub(crate) fn paint(&self, _: &mut Content, _: Rect, _: u8) {
        match *self.0 {}
    }
}

pub(crate) fn shows(_: Format) -> bool {
    false
}
