//! One surface as the app side keeps it: pending state, last pixels, and the commit that is not sent yet.
//!
//! Knows nothing of messages' names or of other surfaces. Invariant: the painter has the pixels of the newest commit.

use std::time::Duration;

use wayferry_pixels::map::Mapping;
use wayferry_pixels::{Content, Size};
use wayferry_proto::{SurfaceId, Time};

use crate::message::WireId;

use super::chain::Chain;
use super::committed::Committed;
use super::fade::Fade;
use super::family::Family;
use super::frames::Frames;
use super::painter::Painter;
use super::pending::Pending;
use super::preferred::Preferred;
use super::sent::Sent;
use super::shape::Shape;
use super::standing::{Role, Stage, Standing};
use super::timing::Timing;
use super::unsent::{State, Unsent};
use super::waiting::Waiting;
use super::watch::News;

/// Contents of one surface that may wait at the compositor for the commit that applies them, a later one of which takes
/// their place: a compositor may keep the buffers of all of them, and there are few.
pub(crate) const MAX_CONTENTS_AHEAD: usize = 2;

/// One `wl_surface`.
#[derive(Debug)]
pub(crate) struct Surface {
    /// Its name between the halves.
    pub(crate) wire: WireId,
    pub(super) standing: Standing,
    /// What another display must be told of its state.
    pub(crate) committed: Committed,
    /// What this display must be told of that with the next commit.
    pub(crate) again: State,
    pub(crate) pending: Pending,
    /// Pixels, as of the newest commit, and what of them has left.
    pub(super) painter: Painter,
    /// What is to be done to them.
    pub(crate) fade: Fade,
    /// Where those changed lately.
    pub(crate) news: News,
    /// How they are shown, by the state that was committed last.
    pub(super) shape: Shape,
    /// Commits that have not left.
    pub(super) waiting: Waiting,
    /// What has left.
    pub(super) sent: Sent,
    /// Which of the last updates the next one can cover.
    pub(super) chain: Chain,
    pub(super) frames: Frames,
    /// Commits that are to be applied later.
    pub(crate) timing: Timing,
    pub(crate) visible: bool,
    /// It lacks what a commit drew whose pixels could not be read: damage alone is not trusted.
    pub(super) stale: bool,
    pub(super) preferred: Preferred,
    pub(super) family: Family,
}

impl Surface {
    pub(crate) fn new(wire: WireId) -> Self {
        Self {
            wire,
            standing: Standing::default(),
            committed: Committed::default(),
            again: State::default(),
            pending: Pending::default(),
            painter: Painter::new(SurfaceId(wire.0)),
            fade: Fade::default(),
            news: News::default(),
            shape: Shape::NEW,
            waiting: Waiting::default(),
            sent: Sent::default(),
            chain: Chain::default(),
            frames: Frames::default(),
            timing: Timing::default(),
            visible: true,
            stale: false,
            preferred: Preferred::default(),
            family: Family::default(),
        }
    }

    /// How a buffer of that size is shown, by the state that was committed last.
    pub(crate) fn mapping(&self, buffer: Size) -> Mapping {
        self.shape.mapping(buffer)
    }

    /// Its size in surface coordinates, if it has content.
    pub(crate) fn size(&self) -> Option<(i32, i32)> {
        let buffer = self.painter.size()?;
        // Sides are at most 2¹⁴.
        let (width, height) = (buffer.width() as i32, buffer.height() as i32);
        let (width, height) =
            if self.shape.transform.swaps_sides() { (height, width) } else { (width, height) };
        let cropped = self.shape.crop.map(|crop| (crop.width >> 8, crop.height >> 8));
        let scale = self.shape.scale;
        self.shape.destination.or(cropped).or(Some((width / scale, height / scale)))
    }

    /// Whether a commit of it waits to be applied, or for its turn to leave.
    pub(super) fn waits(&self) -> bool {
        (self.waiting.unsent().is_some() && !self.withholds()) || !self.timing.is_idle()
    }

    /// The last update stays: it has left, or something builds on it.
    pub(crate) fn forget_last(&mut self) {
        self.sent.set_last(None);
        self.painter.forget_last();
    }

    /// Whether its waiting commit stays here: no user sees it, and the compositor does not wait for it. It leaves when
    /// one does.
    pub(crate) fn withholds(&self) -> bool {
        if self.standing.stage() != Stage::Shown {
            return true;
        }
        let windowed = matches!(self.standing.role(), Role::Configured | Role::Subsurface);
        !self.visible && windowed && self.waiting.unsent().is_some_and(Unsent::is_bare)
    }

    /// The display is gone. What it was sent is forgotten; gives the presentation feedback that it owes, and the commit
    /// that it was not sent.
    pub(crate) fn part(&mut self) -> (Vec<u32>, Option<Unsent>) {
        self.standing.part();
        self.pending.state.part();
        self.timing.pending_mut().for_each(|pending| pending.state.part());
        self.again = State::default();
        self.painter.part();
        self.chain = Chain::default();
        self.visible = true;
        (self.sent.part(), self.waiting.part())
    }

    /// An object is no more: what it asked for goes with it.
    pub(crate) fn forget(&mut self, object: WireId) {
        self.pending.state.forget(object);
        self.again.forget(object);
        self.committed.forget(object);
    }

    /// From when on its frame callbacks are answered all the same: nothing of it has come through for so long.
    pub(crate) fn stranded(&self, patience: Duration) -> Option<Time> {
        let held = self.timing.has_frames();
        let waiting = self.waiting.unsent().filter(|unsent| held || !unsent.frames.is_empty());
        let left = self.sent.oldest().filter(|_| held || waiting.is_some() || !self.frames.is_empty());
        let since = left.into_iter().chain(waiting.map(|_| self.waiting.since())).min()?;
        Some(since + patience)
    }

    /// Frame callbacks that a tick answers: of what has left, and of what is withheld or stranded.
    pub(crate) fn take_frames(&mut self, now: Time, patience: Duration) -> Vec<u32> {
        let stranded = self.stranded(patience).is_some_and(|since| since <= now);
        let too = stranded || self.withholds();
        let mut frames = self.frames.take();
        if let Some(unsent) = self.waiting.unsent_mut().filter(|_| too) {
            frames.append(&mut unsent.frames);
        }
        if stranded {
            // Of its own, and of subsurfaces that wait with it.
            frames.extend(self.timing.take_frames(0).into_iter().flat_map(|(_, frames)| frames));
        }
        frames
    }

    /// Whether there are frame callbacks for the next tick.
    pub(crate) fn awaits_tick(&self) -> bool {
        let waiting = self.waiting.unsent().is_some_and(|unsent| !unsent.frames.is_empty());
        !self.frames.is_empty() || waiting && self.withholds()
    }

    /// What its content takes.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.painter.bytes() + self.fade.bytes()
    }

    /// Whether commits of its children leave with the one that waits.
    pub(crate) fn applies_children(&self) -> bool {
        self.waiting.unsent().is_some_and(|unsent| !unsent.children.is_empty())
    }

    /// Whether the newest commit left the surface with content.
    pub(crate) fn mapped(&self) -> bool {
        self.painter.size().is_some()
    }

    /// Brings its content up to a new one, or to another factor.
    pub(super) fn fade_content(&mut self, new: Option<Content>) {
        if let Some(content) = self.fade.apply(new, self.painter.content()) {
            self.painter.replace(content);
            self.news.note_all();
        }
    }
}
