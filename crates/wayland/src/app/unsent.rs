//! A commit that has not left, with the state that it brings, and how newer ones are folded into it.
//!
//! Knows nothing of messages' names or of surfaces. Invariant: whichever commits are folded, a display comes to a state
//! to which it would have come without.

use crate::message::{MAX_UNIT_STATE, Request, WireId};

use super::stack::Stack;

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
    /// The last key that the program had been given before the commit, if the display wants to know.
    pub(crate) answered: Option<u64>,
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
        self.answered = newer.answered.or(self.answered);
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
        (self.ahead, self.contents_ahead, self.answered) = (Ahead::Nothing, 0, None);
        self.children.iter_mut().for_each(|(_, child)| child.part());
    }

    /// Whether it changes nothing but content.
    pub(crate) fn is_bare(&self) -> bool {
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

    /// Gives up: the frame callbacks and the presentation feedback that no display will answer, children's included.
    pub(crate) fn into_callbacks(self, frames: &mut Vec<u32>, feedback: &mut Vec<u32>) {
        frames.extend(self.frames);
        feedback.extend(self.feedback);
        self.children.into_iter().for_each(|(_, child)| child.into_callbacks(frames, feedback));
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
    struct SurfaceState {
        state: BTreeMap<(WireId, u16), Vec<WireArg>>,
        mapped: bool,
        moved: (i32, i32),
        frames: Vec<u32>,
        children: BTreeMap<u32, SurfaceState>,
    }

    impl SurfaceState {
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
            let (mut one_by_one, mut folded) = (SurfaceState::default(), SurfaceState::default());
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
