//! The surfaces of one program, and what follows from how they are nested.
//!
//! Answers what no surface knows alone: who is above, who waits for whom, what a commit brings with those below. Sends
//! nothing. Invariant: however a program nests its surfaces, a walk over them ends.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use crate::message::MAX_UNIT_DEPTH;

use super::credit::SMALL;
use super::surface::{MAX_CONTENTS_AHEAD, Surface};
use super::unsent::{Ahead, Change, Unsent};

/// By the program's ids.
#[derive(Debug, Default)]
pub(super) struct Surfaces(HashMap<u32, Surface>);

impl Deref for Surfaces {
    type Target = HashMap<u32, Surface>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Surfaces {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Surfaces {
    /// The children of a surface, in the order in which they became such.
    pub(super) fn children_of(&self, id: u32) -> Vec<u32> {
        self.0.get(&id).map(|surface| surface.family.children().to_vec()).unwrap_or_default()
    }

    /// The surface and those above it.
    pub(super) fn ancestors(&self, id: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(id), |id| self.0.get(id)?.family.parent()).take(MAX_UNIT_DEPTH + 1)
    }

    /// Whether the surface or one above it is a synchronised subsurface.
    pub(super) fn is_synchronised(&self, id: u32) -> bool {
        let mut surface = self.0.get(&id);
        for _ in 0..MAX_UNIT_DEPTH {
            let Some(family) = surface.map(|surface| &surface.family) else { return false };
            if family.is_synchronised() {
                return true;
            }
            surface = family.parent().and_then(|parent| self.0.get(&parent));
        }
        false
    }

    /// Levels of subsurfaces below a surface, counted up to a bound.
    pub(super) fn height(&self, id: u32, bound: usize) -> usize {
        let (Some(surface), Some(bound)) = (self.0.get(&id), bound.checked_sub(1)) else { return 0 };
        surface.family.children().iter().map(|child| 1 + self.height(*child, bound)).max().unwrap_or(0)
    }

    /// Whether a window above a surface waits for another display.
    pub(super) fn is_below_waiting(&self, id: u32) -> bool {
        let waits = |id: u32| self.0.get(&id).is_some_and(|surface| surface.standing.waits());
        self.ancestors(id).skip(1).any(waits)
    }

    /// Whether a commit of `child` that has not left is part of what is cached of a surface above it.
    pub(super) fn caches(&self, above: u32, child: u32) -> bool {
        let cached = self.0.get(&above).and_then(|surface| surface.waiting.cached());
        cached.is_some_and(|cached| cached.mentions(child))
    }

    /// Whether a commit of a surface is cached, by itself or in that of a surface above, and has not left.
    pub(super) fn is_cached(&self, id: u32) -> bool {
        let own = self.0.get(&id).and_then(|surface| surface.waiting.cached());
        own.is_some_and(|cached| cached.ahead != Ahead::All)
            || self.ancestors(id).any(|above| self.caches(above, id))
    }

    /// Whether the compositor can be given the contents of a cached commit of surface `id`.
    pub(super) fn may_leave_ahead(&self, id: u32, cached: &Unsent) -> bool {
        let above = self.ancestors(id).filter_map(|above| Some((above, self.0.get(&above)?)));
        let caches = above.filter_map(|(above, surface)| Some((above, surface.waiting.cached()?)));
        let contents: usize = caches.map(|(above, cached)| cached.contents_ahead_of(id, above)).sum();
        (contents < MAX_CONTENTS_AHEAD || !cached.attaches())
            && cached.children.iter().all(|(child, unsent)| self.may_leave_ahead(*child, unsent))
    }

    /// Puts the cached commits of synchronised children in front of their parent's commit.
    pub(super) fn with_children(&mut self, id: u32, mut unsent: Unsent) -> Unsent {
        for child in self.children_of(id) {
            // Others wait for nothing but another display, and then by themselves.
            if !self.is_synchronised(child) {
                continue;
            }
            if let Some(cached) = self.0.get_mut(&child).and_then(|surface| surface.waiting.take_cached()) {
                unsent.children.push((child, cached));
            }
        }
        unsent
    }

    /// The newest commit of a surface that has not left, cached or on its way out.
    pub(super) fn newest_waiting(&mut self, id: u32) -> Option<&mut Unsent> {
        let includes = |unsent: &Unsent, above: u32| {
            if above == id { unsent.ahead != Ahead::All } else { unsent.mentions(id) }
        };
        let above = self.ancestors(id).find(|above| {
            let surface = self.0.get(above);
            surface.is_some_and(|surface| surface.waiting.iter().any(|unsent| includes(unsent, *above)))
        })?;
        let waiting = self.0.get_mut(&above)?.waiting.iter_mut().find(|unsent| includes(unsent, above))?;
        if above == id { Some(waiting) } else { waiting.find(id) }
    }

    /// A child is gone: no commit of its parent, sent or not, places anything next to it any more.
    pub(super) fn unstack(&mut self, parent: Option<u32>, child: u32) {
        let Some(parent) = parent else { return };
        if let Some(parent) = self.0.get_mut(&parent) {
            parent.family.orphan(child);
            parent.committed.stack.orphan(child);
        }
        for surface in self.0.values_mut() {
            let pending = surface.timing.pending_mut().chain([&mut surface.pending]);
            pending.filter_map(|pending| pending.stack.as_mut()).for_each(|stack| stack.orphan(child));
            surface.waiting.iter_mut().for_each(|unsent| unsent.unstack(child));
        }
    }

    /// A buffer is destroyed whose content a commit may still need: its memory stays, its id may be another's. Its
    /// pixels are read with that commit; what they are by then is undefined (`wl_surface.attach`).
    pub(super) fn forget_buffer(&mut self, buffer: u32) {
        for surface in self.0.values_mut() {
            surface.timing.forget_buffer(buffer);
            surface.pending.attach.forget_buffer(buffer);
        }
    }

    /// Whether a unit of this surface alone can be brought to the screen: synchronised ones need commits of what is
    /// above them, and those must be no initial ones, nor apply what waits at the compositor for a commit of the
    /// program.
    pub(super) fn can_show(&self, id: u32) -> bool {
        let can = |above: u32| {
            self.0.get(&above).is_some_and(|surface| surface.mapped()) && !self.is_awaited(above)
        };
        self.shown_with(id).all(can)
    }

    /// Whether something that has left waits at the compositor for a commit of a surface.
    fn is_awaited(&self, id: u32) -> bool {
        let Some(surface) = self.0.get(&id) else { return false };
        let below = surface.waiting.unsent().into_iter().flat_map(|unsent| &unsent.children);
        let unsent = below.map(|(_, unsent)| unsent);
        let children =
            surface.family.children().iter().filter_map(|child| self.0.get(child)?.waiting.cached());
        unsent.chain(children).any(|unsent| unsent.ahead != Ahead::Nothing)
    }

    /// The surface, and those above it that must commit for its commit to be applied.
    pub(super) fn shown_with(&self, id: u32) -> impl Iterator<Item = u32> {
        let chain: Vec<u32> = self.ancestors(id).collect();
        let needed = chain.iter().position(|above| !self.is_synchronised(*above));
        chain.into_iter().take(needed.map_or(usize::MAX, |last| last + 1))
    }

    /// Whether its waiting commit brings little.
    pub(super) fn is_small(&self, id: u32) -> bool {
        self.0.get(&id).is_some_and(|surface| self.news(id, surface.waiting.unsent()) <= SMALL)
    }

    /// At most how many bytes a commit of a surface brings, with those of its children.
    fn news(&self, id: u32, unsent: Option<&Unsent>) -> u64 {
        let own = self.0.get(&id).map_or(0, |surface| surface.painter.changed_bytes());
        let children = unsent
            .into_iter()
            .flat_map(|unsent| &unsent.children)
            .filter(|(_, child)| child.ahead != Ahead::All);
        children.fold(own, |sum, (child, unsent)| sum.saturating_add(self.news(*child, Some(unsent))))
    }

    /// Whether the surface has a commit that would replace its last update, if that has not left.
    pub(super) fn may_supersede(&self, id: u32) -> bool {
        let Some(surface) = self.0.get(&id) else { return false };
        let new = surface.waiting.unsent().is_some_and(|unsent| unsent.change == Change::New);
        surface.sent.may_be_replaced() && new && surface.painter.has_news()
    }
}
