//! One surface as the app side keeps it: pending state, last pixels, and the commit that is not sent yet.
//!
//! Knows nothing of messages' names or of other surfaces. Invariant: the painter has the pixels of the newest commit.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::map::Mapping;
use wayferry_pixels::{Content, Size};
use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::message::WireId;

use super::committed::Committed;
use super::fade::Fade;
use super::painter::Painter;
use super::pending::Pending;
use super::shape::Shape;
use super::stack::Stack;
use super::timing::Timing;
use super::unsent::{State, Unsent};
use super::watch::News;

/// Units of one surface that may be on their way; later commits fold into one that waits here. The display side holds
/// them all until their pixels come. Of all surfaces of a program together there is a bound in `under_way`.
const MAX_UNAPPLIED: usize = 64;

/// Contents of one surface that may wait at the compositor for the commit that applies them, a later one of which takes
/// their place: a compositor may keep the buffers of all of them, and there are few.
pub(crate) const MAX_CONTENTS_AHEAD: usize = 2;

/// Frame callbacks that may be asked for with one commit; the oldest are answered beyond that. The same of presentation
/// feedback, of which the oldest is discarded.
pub(crate) const MAX_FRAMES: usize = 1024;

/// What a surface is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Role {
    #[default]
    None,
    /// A window, popup or layer: the compositor answers its first commit with a configure.
    Configured,
    Subsurface,
    /// Pointer or tablet cursor, drag icon.
    Cursor,
}

/// How far a surface is at the attached display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// As far as the program has brought it.
    #[default]
    Shown,
    /// A window that another display has not configured yet: its content waits.
    Awaited,
    /// A window whose size this display decides: its content waits for what the program makes of that.
    Decided,
    /// It has no role; its content waits until it gets one.
    Idle,
    /// A popup that is over: its commits go nowhere.
    Over,
}

/// One `wl_surface`.
#[derive(Debug)]
pub(crate) struct Surface {
    /// Its name between the halves.
    pub(crate) wire: WireId,
    pub(crate) role: Role,
    /// Its `xdg_surface` or layer, by the id that it had: it may be gone.
    pub(crate) role_object: Option<u32>,
    pub(crate) stage: Stage,
    /// A window that was committed without content since it is one, or since it had content.
    pub(crate) initial: bool,
    /// The configure that was acknowledged here, as the program knows it.
    pub(crate) acknowledged: Option<u32>,
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
    /// Commits of a synchronised subsurface that wait for the parent's.
    pub(crate) cached: Option<Unsent>,
    pub(crate) unsent: Option<Unsent>,
    /// When the first of the commits in `unsent` came.
    pub(crate) waiting_since: Time,
    /// The update of the last unit, while a newer commit may replace both.
    pub(crate) last: Option<UpdateSeq>,
    /// How many units in succession were replaced; the display side holds them all until the newest comes.
    pub(crate) replaced: u32,
    /// An update that makes better what is shown, and that no unit has named yet.
    pub(crate) owed: Option<UpdateSeq>,
    pub(crate) units: u64,
    /// Units that the display side has not applied yet, the oldest first, and when they left.
    pub(crate) unapplied: VecDeque<(u64, Time)>,
    /// The ticks in whose intervals the last unit of a commit left, the last one that made content better, and the last frame
    /// callbacks were answered.
    pub(crate) last_sent: Option<Time>,
    pub(crate) last_better: Option<Time>,
    pub(crate) last_frame: Option<Time>,
    /// Content that left with the last unit, children's included.
    pub(crate) last_bytes: u64,
    /// Callbacks of commits that were sent, and the tick in whose interval the first of them was: the next one answers.
    pub(crate) frames: Vec<u32>,
    pub(crate) frames_tick: Time,
    /// Feedback by unit number.
    pub(crate) feedback: Vec<(u64, u32)>,
    /// Commits that are to be applied later.
    pub(crate) timing: Timing,
    pub(crate) visible: bool,
    /// The scale that was told here for its buffers.
    pub(crate) scale_told: Option<u32>,
    /// The transform that a display prefers for its buffers, as the program knows it.
    pub(crate) transform_told: u32,
    /// The same for its `wp_fractional_scale_v1`, and which that is.
    pub(crate) fraction_told: Option<(u32, u32)>,
    pub(crate) parent: Option<u32>,
    /// Its `wl_subsurface`, while it has a parent.
    pub(crate) subsurface: u32,
    pub(crate) sync: bool,
    pub(crate) children: Vec<u32>,
    /// Their order as the program has placed them, committed or not.
    pub(crate) stack: Stack,
}

impl Surface {
    pub(crate) fn new(wire: WireId) -> Self {
        Self {
            wire,
            role: Role::None,
            role_object: None,
            stage: Stage::Shown,
            initial: false,
            acknowledged: None,
            committed: Committed::default(),
            again: State::default(),
            pending: Pending::default(),
            painter: Painter::new(SurfaceId(wire.0)),
            fade: Fade::default(),
            news: News::default(),
            shape: Shape::NEW,
            cached: None,
            unsent: None,
            waiting_since: Time::ZERO,
            last: None,
            replaced: 0,
            owed: None,
            units: 0,
            unapplied: VecDeque::new(),
            last_sent: None,
            last_better: None,
            last_frame: None,
            last_bytes: 0,
            frames: Vec::new(),
            frames_tick: Time::ZERO,
            feedback: Vec::new(),
            timing: Timing::default(),
            visible: true,
            // What it is to begin with (wl_surface.preferred_buffer_scale). Some programs bind any version that is offered,
            // and an event that their library does not know ends them: what says nothing new is not told.
            scale_told: Some(1),
            transform_told: 0,
            fraction_told: None,
            parent: None,
            subsurface: 0,
            sync: false,
            children: Vec::new(),
            stack: Stack::default(),
        }
    }

    /// Its commits that have not left, the newest first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Unsent> {
        self.cached.iter().chain(&self.unsent)
    }

    /// As [`Self::waiting`].
    pub(crate) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Unsent> {
        self.cached.iter_mut().chain(&mut self.unsent)
    }

    /// How a buffer of that size is shown, by the state that was committed last.
    pub(crate) fn mapping(&self, buffer: Size) -> Mapping {
        let Shape { transform, scale, crop, destination } = self.shape;
        Mapping { buffer, transform, scale, crop, destination }
    }

    /// Its size in surface coordinates, if it has content.
    pub(crate) fn size(&self) -> Option<(i32, i32)> {
        let buffer = self.painter.content()?.size();
        // Sides are at most 2¹⁴.
        let (width, height) = (buffer.width() as i32, buffer.height() as i32);
        let (width, height) =
            if self.shape.transform.swaps_sides() { (height, width) } else { (width, height) };
        let cropped = self.shape.crop.map(|crop| (crop.width >> 8, crop.height >> 8));
        let scale = self.shape.scale;
        self.shape.destination.or(cropped).or(Some((width / scale, height / scale)))
    }

    /// The last update stays: it has left, or something builds on it.
    pub(crate) fn forget_last(&mut self) {
        self.last = None;
        self.painter.forget_last();
    }

    /// A unit of a commit leaves in the interval of this tick; gives its number.
    pub(crate) fn next_unit(&mut self, now: Time, tick: Time) -> u64 {
        self.units += 1;
        if self.unapplied.len() < MAX_UNAPPLIED {
            self.unapplied.push_back((self.units, now));
        }
        self.last_sent = Some(tick);
        self.units
    }

    /// A commit with these frame callbacks has left in the interval of this tick.
    pub(crate) fn owe_frames(&mut self, frames: Vec<u32>, tick: Time) {
        if self.frames.is_empty() {
            self.frames_tick = tick;
        }
        self.frames.extend(frames);
    }

    /// A unit leaves that no commit asked for, which the next commit does not keep its distance from; gives its number.
    pub(crate) fn next_bare_unit(&mut self, tick: Time) -> u64 {
        self.units += 1;
        self.last_better = Some(tick);
        self.units
    }

    /// Whether as many units are on their way as may be.
    pub(crate) fn is_far_ahead(&self) -> bool {
        self.unapplied.len() >= MAX_UNAPPLIED
    }

    /// The display side has applied a unit, and so all before it.
    pub(crate) fn on_applied(&mut self, unit: u64) {
        while self.unapplied.front().is_some_and(|(number, _)| *number <= unit) {
            self.unapplied.pop_front();
        }
    }

    /// For how long the display side has not applied what left.
    pub(crate) fn silence(&self, now: Time) -> Duration {
        self.unapplied.front().map_or(Duration::ZERO, |(_, left)| now.since(*left))
    }

    /// Whether its waiting commit stays here: nobody sees it, and the compositor does not wait for it. It leaves when
    /// somebody does.
    pub(crate) fn withholds(&self) -> bool {
        if self.stage != Stage::Shown {
            return true;
        }
        let windowed = matches!(self.role, Role::Configured | Role::Subsurface);
        !self.visible && windowed && self.unsent.as_ref().is_some_and(Unsent::is_bare)
    }

    /// The display is gone. What it was sent is forgotten; gives the presentation feedback that it owes, and the commit that
    /// it was not sent.
    pub(crate) fn part(&mut self) -> (Vec<u32>, Option<Unsent>) {
        (self.stage, self.acknowledged) = (Stage::Shown, None);
        self.pending.state.part();
        self.cached.iter_mut().for_each(Unsent::part);
        self.again = State::default();
        self.painter.part();
        (self.units, self.replaced, self.last_bytes) = (0, 0, 0);
        (self.last, self.owed, self.last_sent, self.last_better) = (None, None, None, None);
        self.unapplied.clear();
        self.visible = true;
        let feedback = std::mem::take(&mut self.feedback);
        (feedback.into_iter().map(|(_, id)| id).collect(), self.unsent.take())
    }

    /// An object is no more: what it asked for goes with it.
    pub(crate) fn forget(&mut self, object: WireId) {
        self.pending.state.forget(object);
        self.again.forget(object);
        self.committed.forget(object);
    }

    /// From when on its frame callbacks are answered all the same: nothing of it has come through for so long.
    pub(crate) fn stranded(&self, patience: Duration) -> Option<Time> {
        let waiting = self.unsent.as_ref().filter(|unsent| !unsent.frames.is_empty());
        let left = self.unapplied.front().filter(|_| waiting.is_some() || !self.frames.is_empty());
        let since =
            left.map(|(_, left)| *left).into_iter().chain(waiting.map(|_| self.waiting_since)).min()?;
        Some(since + patience)
    }

    /// Frame callbacks that a tick answers: of what has left, and of what is withheld or stranded.
    pub(crate) fn take_frames(&mut self, now: Time, patience: Duration) -> Vec<u32> {
        let stranded = self.stranded(patience).is_some_and(|since| since <= now);
        let mut frames = std::mem::take(&mut self.frames);
        if (stranded || self.withholds())
            && let Some(unsent) = &mut self.unsent
        {
            frames.append(&mut unsent.frames);
        }
        frames
    }

    /// Whether there are frame callbacks for the next tick.
    pub(crate) fn awaits_tick(&self) -> bool {
        let withheld =
            self.unsent.as_ref().is_some_and(|unsent| self.withholds() && !unsent.frames.is_empty());
        withheld || !self.frames.is_empty()
    }

    /// What its content takes.
    pub(crate) fn content_bytes(&self) -> u64 {
        self.painter.bytes() + self.fade.bytes()
    }

    /// Whether commits of its children leave with the one that waits.
    pub(crate) fn applies_children(&self) -> bool {
        self.unsent.as_ref().is_some_and(|unsent| !unsent.children.is_empty())
    }

    /// Whether the newest commit left the surface with content.
    pub(crate) fn mapped(&self) -> bool {
        self.painter.content().is_some()
    }

    /// Brings its content up to a new one, or to another factor.
    pub(super) fn fade_content(&mut self, new: Option<Content>) {
        if let Some(content) = self.fade.apply(new, self.painter.content()) {
            self.painter.replace(content);
            self.news.note_all();
        }
    }
}
