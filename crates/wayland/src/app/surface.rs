//! One surface as the app side keeps it: pending state, last pixels, and the commit that is not sent yet.
//!
//! Knows nothing of messages' names or of other surfaces. Invariant: the painter has the pixels of the newest commit.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_pixels::Size;
use wayferry_pixels::map::Mapping;
use wayferry_proto::{SurfaceId, Time, UpdateSeq};

use crate::message::{MAX_UNIT_STATE, Request, WireId};

use super::committed::Committed;
use super::fade::Fade;
use super::painter::Painter;
use super::pending::Pending;
use super::shape::Shape;
use super::stack::Stack;
use super::timing::Timing;
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

/// Double-buffered requests in the order in which they must be replayed; a newer one replaces its like.
#[derive(Debug, Default)]
pub(crate) struct State(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    request: Request,
    kind: Kind,
}

/// How a double-buffered request relates to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It replaces earlier ones of its object and opcode.
    Replaces,
    /// As [`Self::Replaces`], and another display must not hear it: it carries a serial.
    Once,
}

impl State {
    /// Adds a request.
    ///
    /// # Errors
    /// When the commit would hold more than [`MAX_UNIT_STATE`] requests.
    pub(crate) fn add(&mut self, request: Request, kind: Kind) -> Result<(), &'static str> {
        self.0.retain(|old| (old.request.object, old.request.opcode) != (request.object, request.opcode));
        if self.0.len() >= MAX_UNIT_STATE {
            return Err("double-buffered requests in one commit");
        }
        self.0.push(Entry { request, kind });
        Ok(())
    }

    /// Forgets what an object asked for.
    pub(crate) fn forget(&mut self, object: WireId) {
        self.0.retain(|entry| entry.request.object != object);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this and a newer commit's state are too much for one commit.
    pub(crate) fn overflows_with(&self, newer: &Self) -> bool {
        self.0.len() + newer.0.len() > MAX_UNIT_STATE
    }

    /// Whether a configure is acknowledged.
    pub(crate) fn acknowledges(&self) -> bool {
        self.0.iter().any(|entry| entry.kind == Kind::Once)
    }

    /// The display is gone whose serials are in it.
    pub(crate) fn part(&mut self) {
        self.0.retain(|entry| entry.kind != Kind::Once);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Request, Kind)> {
        self.0.iter().map(|entry| (&entry.request, entry.kind))
    }

    pub(crate) fn into_requests(self) -> Vec<Request> {
        self.0.into_iter().map(|entry| entry.request).collect()
    }

    /// Puts a newer commit's requests behind these; they replace their like.
    pub(crate) fn merge(&mut self, newer: Self) -> Result<(), &'static str> {
        newer.0.into_iter().try_for_each(|Entry { request, kind }| self.add(request, kind))
    }
}

/// How a commit changes the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Change {
    /// No buffer was attached.
    #[default]
    Keep,
    /// The surface has no content any more.
    Unmap,
    /// There are new pixels.
    New,
}

/// A commit that has not been sent; commits after it are folded into it.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    pub(crate) state: State,
    pub(crate) change: Change,
    pub(crate) offset: (i32, i32),
    pub(crate) frames: Vec<u32>,
    pub(crate) feedback: Vec<u32>,
    /// The order of the children, if it is another one.
    pub(crate) stack: Option<Stack>,
    /// Cached commits of synchronised children, oldest child first.
    pub(crate) children: Vec<(u32, Unsent)>,
    /// What of it has left already, and waits at the compositor for the commit that applies it.
    pub(crate) ahead: Ahead,
    /// How many contents of the surface wait there.
    pub(crate) contents_ahead: usize,
}

/// What has left of a cached commit before the one that applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ahead {
    #[default]
    Nothing,
    /// Commits before it that are applied with it.
    Earlier,
    /// All but its frame callbacks, which the commit that applies it answers.
    All,
}

impl Unsent {
    /// Folds a newer commit of the same surface into this one. Returns the presentation feedback that is thereby
    /// never going to be shown.
    pub(crate) fn merge(&mut self, newer: Self) -> Result<Vec<u32>, &'static str> {
        let mut discarded = std::mem::replace(&mut self.feedback, newer.feedback);
        if self.ahead != newer.ahead {
            self.ahead = Ahead::Earlier;
        }
        self.contents_ahead += newer.contents_ahead;
        self.state.merge(newer.state)?;
        if newer.change != Change::Keep {
            self.change = newer.change;
        }
        self.offset.0 = self.offset.0.saturating_add(newer.offset.0);
        self.offset.1 = self.offset.1.saturating_add(newer.offset.1);
        self.frames.extend(newer.frames);
        match (&mut self.stack, newer.stack) {
            (Some(old), Some(newer)) => old.fold(&newer),
            (old, newer) => *old = old.take().or(newer),
        }
        for (id, child) in newer.children {
            match self.children.iter_mut().find(|(old, _)| *old == id) {
                Some((_, old)) => discarded.extend(old.merge(child)?),
                None => self.children.push((id, child)),
            }
        }
        Ok(discarded)
    }
}

impl Unsent {
    /// Whether it includes a commit of that child which has not left.
    pub(crate) fn mentions(&self, child: u32) -> bool {
        self.children
            .iter()
            .any(|(id, unsent)| *id == child && unsent.ahead != Ahead::All || unsent.mentions(child))
    }

    /// Takes out what leaves ahead of the commit that applies it.
    pub(crate) fn take_ahead(&mut self) -> Self {
        let children = self.children.iter_mut().map(|(id, child)| (*id, child.take_ahead())).collect();
        let contents = self.contents_ahead + usize::from(self.attaches());
        let stays = Self {
            frames: std::mem::take(&mut self.frames),
            children: std::mem::take(&mut self.children),
            ahead: Ahead::All,
            contents_ahead: contents,
            ..Self::default()
        };
        let ahead = if self.ahead == Ahead::All { Ahead::All } else { Ahead::Nothing };
        Self { children, ahead, contents_ahead: 0, ..std::mem::replace(self, stays) }
    }

    /// Whether the compositor gets a buffer with it.
    pub(crate) fn attaches(&self) -> bool {
        self.change == Change::New || self.offset != (0, 0)
    }

    /// How many contents of surface `id` wait at the compositor, if this is a commit of `own`.
    pub(crate) fn contents_ahead_of(&self, id: u32, own: u32) -> usize {
        let here = if own == id { self.contents_ahead } else { 0 };
        self.children.iter().fold(here, |sum, (child, unsent)| sum + unsent.contents_ahead_of(id, *child))
    }

    /// The display is gone, and with it all that has left.
    pub(crate) fn part(&mut self) {
        (self.ahead, self.contents_ahead) = (Ahead::Nothing, 0);
        self.children.iter_mut().for_each(|(_, child)| child.part());
    }

    /// Whether it changes nothing but content.
    fn is_bare(&self) -> bool {
        self.state.is_empty() && self.stack.is_none() && self.children.is_empty()
    }

    /// The commit of a child that it includes.
    pub(crate) fn find(&mut self, id: u32) -> Option<&mut Self> {
        self.children.iter_mut().find_map(|(child, unsent)| match *child == id {
            true => Some(unsent),
            false => unsent.find(id),
        })
    }

    /// A surface is destroyed, whose id may be another's soon: its commits are taken out. Those of its children stay.
    pub(crate) fn prune(&mut self, id: u32, pruned: &mut Vec<Unsent>) {
        let (gone, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.children).into_iter().partition(|(child, _)| *child == id);
        for (_, mut unsent) in gone {
            kept.append(&mut unsent.children);
            pruned.push(unsent);
        }
        kept.iter_mut().for_each(|(_, child)| child.prune(id, pruned));
        self.children = kept;
    }

    /// A surface is no child any more: nothing is placed next to it.
    pub(crate) fn unstack(&mut self, child: u32) {
        self.stack.iter_mut().for_each(|stack| stack.orphan(child));
        self.children.iter_mut().for_each(|(_, unsent)| unsent.unstack(child));
    }

    /// Gives up: the frame callbacks and the presentation feedback that nobody will answer, children's included.
    pub(crate) fn into_callbacks(self, frames: &mut Vec<u32>, feedback: &mut Vec<u32>) {
        frames.extend(self.frames);
        feedback.extend(self.feedback);
        self.children.into_iter().for_each(|(_, child)| child.into_callbacks(frames, feedback));
    }
}

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
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use crate::message::WireArg;

    use super::*;

    fn request(object: u64, opcode: u16) -> Request {
        Request { object: WireId(object), opcode, args: Vec::new() }
    }

    #[test]
    fn newer_state_replaces_and_moves_behind() {
        let mut state = State::default();
        for opcode in [1, 2, 1] {
            state.add(request(4, opcode), Kind::Replaces).unwrap();
        }
        let opcodes: Vec<_> = state.into_requests().iter().map(|r| r.opcode).collect();
        assert_eq!(opcodes, [2, 1]);
    }

    #[test]
    fn state_is_bounded() {
        let mut state = State::default();
        for object in (4..).step_by(2).take(MAX_UNIT_STATE) {
            state.add(request(object, 2), Kind::Replaces).unwrap();
        }
        assert!(state.add(request(2, 2), Kind::Replaces).is_err());
    }

    /// One commit of a surface, or of a child of it.
    #[derive(Debug, Clone)]
    struct Spec {
        state: Vec<(u64, u16, u32)>,
        change: Change,
        offset: (i32, i32),
        callbacks: usize,
        children: Vec<(u32, Spec)>,
    }

    fn spec(depth: u32) -> BoxedStrategy<Spec> {
        let children = match depth {
            0 => Just(Vec::new()).boxed(),
            _ => prop::collection::vec((5u32..8, spec(depth - 1)), 0..3).boxed(),
        };
        let change = prop_oneof![3 => Just(Change::New), 2 => Just(Change::Keep), 1 => Just(Change::Unmap)];
        let state = prop::collection::vec((2u64..5, 0u16..3, any::<u32>()), 0..4);
        (state, change, (-9i32..9, -9i32..9), 0usize..3, children)
            .prop_map(|(state, change, offset, callbacks, mut children)| {
                children.sort_by_key(|(id, _)| *id);
                children.dedup_by_key(|(id, _)| *id);
                Spec { state, change, offset, callbacks, children }
            })
            .boxed()
    }

    fn commit(spec: &Spec, next: &mut u32) -> Unsent {
        let mut state = State::default();
        for (object, opcode, value) in &spec.state {
            let args = vec![WireArg::Uint(*value)];
            let request = Request { object: WireId(2 * object), opcode: *opcode, args };
            state.add(request, Kind::Replaces).unwrap();
        }
        let mut callbacks = || {
            *next += 1;
            *next
        };
        let frames = (0..spec.callbacks).map(|_| callbacks()).collect();
        let feedback = (0..spec.callbacks).map(|_| callbacks()).collect();
        let children = spec.children.iter().map(|(id, child)| (*id, commit(child, next))).collect();
        let (change, offset) = (spec.change, spec.offset);
        Unsent { state, change, offset, frames, feedback, children, ..Unsent::default() }
    }

    /// What a display has of a surface and of those below it. Of feedback: what it will tell something of.
    #[derive(Debug, Clone, Default, PartialEq)]
    struct Shown {
        state: BTreeMap<(WireId, u16), Vec<WireArg>>,
        mapped: bool,
        moved: (i32, i32),
        frames: Vec<u32>,
        children: BTreeMap<u32, Shown>,
    }

    impl Shown {
        fn apply(&mut self, commit: &Unsent) {
            for (id, child) in &commit.children {
                self.children.entry(*id).or_default().apply(child);
            }
            for (request, _) in commit.state.iter() {
                self.state.insert((request.object, request.opcode), request.args.clone());
            }
            match commit.change {
                Change::Keep => {}
                Change::Unmap => self.mapped = false,
                Change::New => self.mapped = true,
            }
            self.moved = (self.moved.0 + commit.offset.0, self.moved.1 + commit.offset.1);
            self.frames.extend(&commit.frames);
        }
    }

    proptest! {
        /// Whichever commits are folded, a display goes through states that it would have gone through without; each
        /// callback is answered once and in order, and feedback is the last commit's.
        #[test]
        fn folded_commits_come_to_the_state_of_the_last(
            commits in prop::collection::vec((spec(2), any::<bool>()), 1..12)
        ) {
            let (mut one_by_one, mut folded) = (Shown::default(), Shown::default());
            let (mut next, mut again) = (0, 0);
            let mut waiting: Option<Unsent> = None;
            let (mut discarded, mut told) = (Vec::new(), Vec::new());
            for (spec, leaves) in commits {
                one_by_one.apply(&commit(&spec, &mut next));
                let newer = commit(&spec, &mut again);
                let newest = newer.feedback.clone();
                match &mut waiting {
                    Some(old) => discarded.extend(old.merge(newer).unwrap()),
                    None => waiting = Some(newer),
                }
                prop_assert_eq!(waiting.as_ref().map(|unsent| &unsent.feedback), Some(&newest));
                if leaves && let Some(unsent) = waiting.take() {
                    folded.apply(&unsent);
                    prop_assert_eq!(&folded, &one_by_one);
                    unsent.into_callbacks(&mut Vec::new(), &mut told);
                }
            }
            waiting.into_iter().for_each(|unsent| unsent.into_callbacks(&mut Vec::new(), &mut told));
            told.extend(discarded);
            told.sort_unstable();
            let count = told.len();
            told.dedup();
            prop_assert_eq!(told.len(), count, "feedback is answered once");
        }
    }

    #[test]
    fn merge_sums_offsets_and_concatenates_frames() {
        let mut old = Unsent { offset: (1, 2), frames: vec![7], feedback: vec![9], ..Unsent::default() };
        let newer = Unsent {
            offset: (3, -5),
            frames: vec![8],
            feedback: vec![10],
            change: Change::New,
            ..Unsent::default()
        };
        let discarded = old.merge(newer).unwrap();
        assert_eq!((old.offset, old.frames.as_slice()), ((4, -3), [7, 8].as_slice()));
        assert_eq!((discarded, old.feedback, old.change), (vec![9], vec![10], Change::New));
    }

    #[test]
    fn commits_of_a_destroyed_surface_are_taken_out_and_those_below_it_stay() {
        let leaf = Unsent { frames: vec![3], ..Unsent::default() };
        let child = Unsent { frames: vec![2], children: vec![(7, leaf)], ..Unsent::default() };
        let mut root = Unsent { children: vec![(6, child)], ..Unsent::default() };
        let mut pruned = Vec::new();
        root.prune(6, &mut pruned);
        assert!(!root.mentions(6) && root.mentions(7));
        assert_eq!(pruned.iter().map(|unsent| unsent.frames.clone()).collect::<Vec<_>>(), [[2]]);
    }

    #[test]
    fn merge_folds_children_by_surface() {
        let child = |frame| Unsent { frames: vec![frame], ..Unsent::default() };
        let mut old = Unsent { children: vec![(5, child(1))], ..Unsent::default() };
        old.merge(Unsent { children: vec![(5, child(2)), (6, child(3))], ..Unsent::default() }).unwrap();
        let frames: Vec<_> = old.children.iter().map(|(id, c)| (*id, c.frames.clone())).collect();
        assert_eq!(frames, [(5, vec![1, 2]), (6, vec![3])]);
    }
}
