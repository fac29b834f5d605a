//! Where a surface's pixels are: none, here, or with a worker that makes an update of them.
//!
//! What a worker has cannot change, and stays to be looked at here. Invariant: a canvas that is lent comes back before
//! its content changes.

use std::sync::Arc;

use wayferry_pixels::{Content, Draft};

use super::painter::Fidelity;

/// See the module.
#[derive(Debug, Default)]
pub(super) enum Canvas {
    /// The surface has no content.
    #[default]
    Blank,
    /// Its content, and what the display lacks of that.
    Here(Box<Draft>),
    /// The same is with a worker.
    Lent(Outline),
}

/// What is known of pixels that a worker has.
#[derive(Debug)]
pub(super) struct Outline {
    content: Arc<Content>,
    /// How well the display knows it, as it was.
    pub(super) fidelity: Fidelity,
    /// Videos that have begun.
    pub(super) videos: usize,
    /// The last update is not to be taken back.
    pub(super) forget_last: bool,
}

impl Canvas {
    /// The pixels, wherever they are.
    pub(super) fn content(&self) -> Option<&Content> {
        match self {
            Self::Blank => None,
            Self::Here(draft) => Some(draft.content()),
            Self::Lent(outline) => Some(&outline.content),
        }
    }

    /// What is here.
    pub(super) fn draft(&self) -> Option<&Draft> {
        match self {
            Self::Here(draft) => Some(draft),
            Self::Blank | Self::Lent(_) => None,
        }
    }

    /// What is here, to work on.
    pub(super) fn draft_mut(&mut self) -> Option<&mut Draft> {
        match self {
            Self::Here(draft) => Some(draft),
            Self::Blank | Self::Lent(_) => None,
        }
    }

    /// What is known of pixels that are not here.
    pub(super) fn outline(&self) -> Option<&Outline> {
        match self {
            Self::Lent(outline) => Some(outline),
            Self::Blank | Self::Here(_) => None,
        }
    }
}

impl Outline {
    pub(super) fn new(draft: &Draft, fidelity: Fidelity, videos: usize) -> Self {
        Self { content: draft.share_content(), fidelity, videos, forget_last: false }
    }
}
