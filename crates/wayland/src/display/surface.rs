//! What the display side keeps of a surface: its pixels and its buffers.
//!
//! Knows pixels and times, no Wayland messages. Invariant: a surface's content is that of the last update applied to it.

use std::time::Duration;

use wayferry_pixels::Content;
use wayferry_proto::Time;

use crate::action::End;

use super::buffers::Pool;
use super::films::Films;

/// A surface counts as hidden when the compositor has not asked for a frame for so long.
const HIDDEN_AFTER: Duration = Duration::from_secs(1);

/// Bytes of pixels that the surfaces of one app connection may have.
const MAX_CONTENT_BYTES: usize = 1 << 30;

/// One surface.
#[derive(Debug)]
pub(super) struct Surface {
    /// Version that it is bound at.
    pub(super) version: u32,
    /// The pixels; none before the first update and after an empty attach.
    pub(super) content: Option<Content>,
    pub(super) films: Films,
    /// The compositor's copies.
    pub(super) pool: Pool,
    /// The number of the last unit accepted.
    pub(super) last_unit: u64,
    /// Whether the surface has content once all units accepted are applied.
    pub(super) will_have_content: bool,
    /// Units whose content is to be reported as shown with the next frame.
    pub(super) awaiting: Vec<u64>,
    /// Since when a frame callback is unanswered.
    asked: Option<Time>,
    visible: bool,
    /// How many updates in succession could not be painted; until a whole content comes, nothing can.
    pub(super) refused: u32,
}

impl Surface {
    pub(super) fn new(version: u32) -> Self {
        Self {
            version,
            content: None,
            films: Films::default(),
            pool: Pool::default(),
            last_unit: 0,
            will_have_content: false,
            awaiting: Vec::new(),
            asked: None,
            visible: true,
            refused: 0,
        }
    }

    /// Whether a frame callback should go with the next commit; it counts as sent.
    pub(super) fn ask_frame(&mut self, now: Time) -> bool {
        let ask = self.asked.is_none() && self.content.is_some();
        if ask {
            self.asked = Some(now);
        }
        ask
    }

    /// The compositor has answered a frame callback. Returns whether that makes the surface visible again.
    pub(super) fn on_frame(&mut self) -> bool {
        self.asked = None;
        !std::mem::replace(&mut self.visible, true)
    }

    /// When the surface will count as hidden, unless a frame comes before.
    pub(super) fn hidden_at(&self) -> Option<Time> {
        self.asked.filter(|_| self.visible).map(|asked| asked + HIDDEN_AFTER)
    }

    /// Whether the surface counts as hidden from now on.
    pub(super) fn hide_if_due(&mut self, now: Time) -> bool {
        let due = self.hidden_at().is_some_and(|at| at <= now);
        if due {
            self.visible = false;
        }
        due
    }

    /// Drops the content.
    pub(super) fn unmap(&mut self) {
        self.content = None;
        self.films.clear();
        self.pool.reset();
        self.asked = None;
    }

    fn content_bytes(&self) -> usize {
        self.films.bytes() + self.content.as_ref().map_or(0, |content| content.pixels().len())
    }
}

/// Whether the surfaces together stay within the bounds.
pub(super) fn check_memory<'a>(surfaces: impl Iterator<Item = &'a Surface>) -> Result<(), End> {
    let bytes: usize = surfaces.map(Surface::content_bytes).sum();
    if bytes > MAX_CONTENT_BYTES {
        return Err(End::TooMuch("bytes of pixels of one program"));
    }
    Ok(())
}
