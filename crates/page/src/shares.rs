//! What all programs of a page may take together, by kind of memory.
//!
//! Figures, and a [`Share`] for each. Invariant: a page has one of each, however many programs it shows.

use std::rc::Rc;

use crate::decoders::Decoders;
use crate::share::Share;

/// Bytes of pixels of all surfaces: 32 screens of 3840 × 2160.
const MAX_CONTENTS: usize = 1 << 30;
/// Bytes of updates that wait for their units: a commit of the largest surface, behind what may be under way.
const MAX_UPDATES: usize = 384 << 20;
/// What messages may count for that wait for pixels.
const MAX_MESSAGES: usize = 32 << 20;
/// Bytes of messages that are to be sent, about.
const MAX_SAID: usize = 32 << 20;
/// Bytes of objects, about.
const MAX_OBJECTS: usize = 64 << 20;

/// What all programs take together.
#[derive(Debug)]
pub(crate) struct Shares {
    pub(crate) contents: Rc<Share>,
    pub(crate) updates: Rc<Share>,
    pub(crate) messages: Rc<Share>,
    pub(crate) said: Rc<Share>,
    pub(crate) objects: Rc<Share>,
    pub(crate) decoders: Rc<Decoders>,
}

impl Shares {
    /// With decoders that there may have been before.
    pub(crate) fn new(decoders: Rc<Decoders>) -> Rc<Self> {
        Rc::new(Self {
            contents: Share::new("bytes of pixels", MAX_CONTENTS),
            updates: Share::new("bytes of updates that wait for their units", MAX_UPDATES),
            messages: Share::new("bytes of messages that wait for pixels", MAX_MESSAGES),
            said: Share::new("bytes of messages that are to be sent", MAX_SAID),
            objects: Share::new("bytes of objects", MAX_OBJECTS),
            decoders,
        })
    }
}
