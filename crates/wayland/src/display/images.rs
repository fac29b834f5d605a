//! Pictures that the compositor has of no surface: icons. Each is a buffer that lives as long as the object that it was
//! given to, for a compositor ends programs whose buffers go before.
//!
//! An icon is decoration: one that would take more than may be is left out, and nothing else changes. Invariant: what
//! pictures take is counted until the compositor has been told that they are gone.

use std::collections::HashMap;

use wayferry_pixels::Format;

use crate::message::{Request, WireArg, WireId};
use crate::value::Image;

/// The pictures of one program.
#[derive(Debug, Default)]
pub(super) struct Images {
    /// By the object that they were given to.
    given: HashMap<WireId, Vec<Given>>,
    /// What they take.
    bytes: u64,
    /// What those took whose end may wait, with their memory, for the compositor to read.
    leaving: u64,
}

#[derive(Debug)]
struct Given {
    image: Image,
    buffer: u32,
}

impl Images {
    /// Bytes that they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + self.leaving
    }

    /// The buffer of a picture that an object was given before.
    pub(super) fn of(&self, object: WireId, image: &Image) -> Option<u32> {
        let given = self.given.get(&object)?;
        given.iter().find(|given| given.image == *image).map(|given| given.buffer)
    }

    pub(super) fn add(&mut self, object: WireId, image: Image, buffer: u32) {
        self.bytes += cost(&image);
        self.given.entry(object).or_default().push(Given { image, buffer });
    }

    /// The object is gone; gives the buffers that go with it.
    pub(super) fn remove(&mut self, object: WireId) -> Vec<u32> {
        let gone = self.given.remove(&object).unwrap_or_default();
        let bytes = gone.iter().map(|given| cost(&given.image)).sum::<u64>();
        self.bytes -= bytes;
        self.leaving += bytes;
        gone.into_iter().map(|given| given.buffer).collect()
    }

    /// Whether a request brings a picture for which there is no room among these, or in what else may be taken.
    pub(super) fn are_too_much(&self, request: &Request, room: u64) -> bool {
        let images = request.args.iter().filter_map(|arg| match arg {
            WireArg::Image(image) => Some(image),
            _ => None,
        });
        let new = images.filter(|image| self.of(request.object, image).is_none());
        let more: u64 = new.map(cost).sum();
        more > room || (more > 0 && self.bytes() + more > MAX_ICONS)
    }

    /// The compositor has been told everything.
    pub(super) fn all_announced(&mut self) {
        self.leaving = 0;
    }
}

/// What a picture counts for. The sides are checked, so it fits.
pub(super) fn cost(image: &Image) -> u64 {
    let pixel = Format::from_wl_shm(image.format).map_or(0, Format::bytes_per_pixel).max(4);
    (u64::from(image.width) * u64::from(image.height) * pixel as u64).max(LEAST)
}

/// What a picture counts for however small it is: it has a buffer at the compositor.
const LEAST: u64 = 16 << 10;
/// Bytes of pictures of one program: two of the largest.
const MAX_ICONS: u64 = 8 << 20;
