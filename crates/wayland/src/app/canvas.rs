//! Where a surface's pixels are: none, here, or with a worker that makes an update of them, or compares a buffer with
//! them.
//!
//! What an update is made of cannot change, and stays to be looked at here; what changes while it is compared is not
//! here at all. Invariant: a canvas that is lent comes back before anything else is done to it.

use std::sync::Arc;

use wayferry_pixels::{Content, Draft, Format, Size};

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
    like: (Size, Format),
    /// What does not change meanwhile.
    content: Option<Arc<Content>>,
    /// How well the display knows it, as it was.
    pub(super) fidelity: Fidelity,
    /// Videos that have begun.
    pub(super) videos: usize,
    /// The last update is not to be taken back.
    pub(super) forget_last: bool,
}

impl Canvas {
    /// The pixels, if they can be looked at.
    pub(super) fn content(&self) -> Option<&Content> {
        match self {
            Self::Blank => None,
            Self::Here(draft) => Some(draft.content()),
            Self::Lent(outline) => outline.content.as_deref(),
        }
    }

    /// What the content is like, wherever it is.
    pub(super) fn like(&self) -> Option<(Size, Format)> {
        match self {
            Self::Blank => None,
            Self::Here(draft) => Some(like(draft)),
            Self::Lent(outline) => Some(outline.like),
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
    /// Of pixels that do not change.
    pub(super) fn new(draft: &Draft, fidelity: Fidelity, videos: usize) -> Self {
        Self { content: Some(draft.share_content()), ..Self::bare(draft, fidelity, videos) }
    }

    /// Of pixels that do.
    pub(super) fn bare(draft: &Draft, fidelity: Fidelity, videos: usize) -> Self {
        Self { like: like(draft), content: None, fidelity, videos, forget_last: false }
    }
}

fn like(draft: &Draft) -> (Size, Format) {
    (draft.content().size(), draft.content().format())
}
