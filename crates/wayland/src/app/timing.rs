//! The commits of one surface that wait as the program made them, and the objects that tell what they wait for.
//!
//! When they are applied is decided in `later`. Invariant: they leave in the order in which they came, those of
//! synchronised subsurfaces with the one that they stand before.

use std::collections::VecDeque;

use wayferry_proto::Time;

use super::pending::{Pending, Unread};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// Its `wp_fifo_v1` and its `wp_commit_timer_v1`.
    fifo: Option<u32>,
    timer: Option<u32>,
    /// Its `wp_linux_drm_syncobj_surface_v1`.
    sync: Option<u32>,
    /// When the barrier was set, if one was.
    barrier: Option<Time>,
    queue: VecDeque<Queued>,
    /// Commits of synchronised subsurfaces behind those, for the next one of the surface: there are others before them,
    /// or their pixels are to be read.
    below: Vec<(u32, Pending)>,
}

/// A commit that waits, with those of synchronised subsurfaces before it.
#[derive(Debug)]
struct Queued {
    below: Vec<(u32, Pending)>,
    own: Pending,
    since: Time,
}

/// A commit that is applied, with those of synchronised subsurfaces before and behind it.
#[derive(Debug)]
pub(super) struct First {
    pub(super) below: Vec<(u32, Pending)>,
    /// There is none where only subsurfaces have committed.
    pub(super) own: Option<Pending>,
    pub(super) behind: Vec<(u32, Pending)>,
}

impl Timing {
    /// Its `wp_fifo_v1`.
    pub(super) fn fifo(&mut self) -> &mut Option<u32> {
        &mut self.fifo
    }

    /// Its `wp_commit_timer_v1`.
    pub(super) fn timer(&mut self) -> &mut Option<u32> {
        &mut self.timer
    }

    /// Its `wp_linux_drm_syncobj_surface_v1`.
    pub(super) fn sync(&mut self) -> &mut Option<u32> {
        &mut self.sync
    }

    /// Whether an object is one of those.
    pub(super) fn is_by(&self, object: u32) -> bool {
        [self.fifo, self.timer, self.sync].contains(&Some(object))
    }

    /// An object is no more.
    pub(super) fn forget(&mut self, object: u32) {
        self.fifo = self.fifo.filter(|id| *id != object);
        self.timer = self.timer.filter(|id| *id != object);
        self.sync = self.sync.filter(|id| *id != object);
    }

    /// When the barrier was set, if one was.
    pub(super) fn barrier(&self) -> Option<Time> {
        self.barrier
    }

    /// A commit sets it.
    pub(super) fn set_barrier(&mut self, at: Time) {
        self.barrier = Some(at);
    }

    /// Whether nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.below.is_empty()
    }

    /// Whether pixels of what waits are to be read.
    pub(super) fn lacks_pixels(&self) -> bool {
        self.pending().any(Pending::lacks_pixels)
    }

    /// Whether the next commit of the surface is one too many.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= MAX_QUEUED
    }

    /// The commit that waits first and those of synchronised subsurfaces before it, in the order in which they are
    /// applied; without one, those that wait for the next. `None` stands for the surface itself.
    pub(super) fn first_pending(&self) -> impl Iterator<Item = (Option<u32>, &Pending)> {
        let first = self.queue.front();
        let below = first.map_or(&self.below, |first| &first.below);
        let own = first.map(|first| (None, &first.own));
        below.iter().map(|(id, pending)| (Some(*id), pending)).chain(own)
    }

    /// As [`Self::first_pending`].
    pub(super) fn first_pending_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        let (below, own) = match self.queue.front_mut() {
            Some(first) => (&mut first.below, Some(&mut first.own)),
            None => (&mut self.below, None),
        };
        below.iter_mut().map(|(_, pending)| pending).chain(own)
    }

    /// Whether a newer commit of the surface takes the place of the last that waits.
    pub(super) fn is_replaced_by(&self, newer: &Pending) -> bool {
        self.queue.back().is_some_and(|last| last.own.is_replaced_by(newer))
    }

    /// It does. Gives what is never applied.
    pub(super) fn replace(&mut self, newer: Pending) -> Result<Vec<Unread>, &'static str> {
        let below = std::mem::take(&mut self.below);
        let Some(last) = self.queue.back_mut() else { return Ok(Vec::new()) };
        let mut unread = vec![last.own.merge(newer)?];
        for (child, pending) in below {
            unread.extend(add_below(&mut last.below, child, pending)?);
        }
        Ok(unread)
    }

    /// The commit that waits first.
    pub(crate) fn first(&self) -> Option<&Pending> {
        self.queue.front().map(|queued| &queued.own)
    }

    /// The same, and since when it waits.
    pub(super) fn first_since(&self) -> Option<(&Pending, Time)> {
        self.queue.front().map(|queued| (&queued.own, queued.since))
    }

    /// A commit of the surface waits, behind all others. Returns whether they are too many.
    pub(super) fn push(&mut self, own: Pending, since: Time) -> bool {
        let below = std::mem::take(&mut self.below);
        self.queue.push_back(Queued { below, own, since });
        self.queue.len() > MAX_QUEUED
    }

    /// Whether the last commit that waits for the next one of the surface is of this synchronised subsurface.
    pub(super) fn ends_with(&self, id: u32) -> bool {
        self.below.last().is_some_and(|(last, _)| *last == id)
    }

    /// The same of a synchronised subsurface, for the next commit of the surface.
    pub(super) fn push_below(&mut self, id: u32, pending: Pending) -> bool {
        self.below.push((id, pending));
        self.below.len() > MAX_QUEUED
    }

    /// A commit of the surface joins those that wait, as one. Gives what is never applied of them.
    pub(super) fn fold(&mut self, own: Pending, since: Time) -> Result<Vec<Unread>, &'static str> {
        let newest = Queued { below: std::mem::take(&mut self.below), own, since };
        let mut held = std::mem::take(&mut self.queue).into_iter().chain([newest]);
        let Some(mut first) = held.next() else { return Ok(Vec::new()) };
        let mut unread = Vec::new();
        for Queued { below, own, .. } in held {
            unread.push(first.own.merge(own)?);
            for (child, pending) in below {
                unread.extend(add_below(&mut first.below, child, pending)?);
            }
        }
        self.queue.push_back(first);
        Ok(unread)
    }

    /// The same of a synchronised subsurface.
    pub(super) fn fold_below(&mut self, id: u32, pending: Pending) -> Result<Option<Unread>, &'static str> {
        add_below(&mut self.below, id, pending)
    }

    /// A buffer is destroyed whose content a commit still needs: its memory stays, its id may be another's.
    pub(crate) fn forget_buffer(&mut self, buffer: u32) {
        self.pending_mut().for_each(|pending| pending.attach.forget_buffer(buffer));
    }

    /// The commits that wait, in their order.
    pub(super) fn pending(&self) -> impl Iterator<Item = &Pending> {
        let queue = self.queue.iter();
        let queued =
            queue.flat_map(|queued| queued.below.iter().map(|(_, pending)| pending).chain([&queued.own]));
        queued.chain(self.below.iter().map(|(_, pending)| pending))
    }

    /// As [`Self::pending`].
    pub(crate) fn pending_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        let queue = self.queue.iter_mut();
        let queued = queue
            .flat_map(|queued| queued.below.iter_mut().map(|(_, pending)| pending).chain([&mut queued.own]));
        queued.chain(self.below.iter_mut().map(|(_, pending)| pending))
    }

    /// Whether what waits has frame callbacks.
    pub(super) fn has_frames(&self) -> bool {
        self.pending().any(|pending| !pending.frames.is_empty())
    }

    /// Takes out the frame callbacks of what waits at surface `id`, and whose they are.
    pub(super) fn take_frames(&mut self, id: u32) -> Vec<(u32, Vec<u32>)> {
        let mut all = Vec::new();
        let mut take = |id: u32, pending: &mut Pending| all.push((id, std::mem::take(&mut pending.frames)));
        for Queued { below, own, .. } in &mut self.queue {
            below.iter_mut().for_each(|(child, pending)| take(*child, pending));
            take(id, own);
        }
        self.below.iter_mut().for_each(|(child, pending)| take(*child, pending));
        all
    }

    /// Takes out the commit that waits first and, with the last, those of synchronised subsurfaces behind it if nothing
    /// holds them back any more.
    pub(super) fn take_first(&mut self) -> Option<First> {
        let Some(Queued { below, own, .. }) = self.queue.pop_front() else {
            let behind = std::mem::take(&mut self.below);
            return (!behind.is_empty()).then_some(First { below: Vec::new(), own: None, behind });
        };
        let are_free = self.queue.is_empty() && !self.below.iter().any(|(_, pending)| pending.lacks_pixels());
        let behind = if are_free { std::mem::take(&mut self.below) } else { Vec::new() };
        Some(First { below, own: Some(own), behind })
    }

    /// Takes out all that waits, oldest first; `None` stands for the surface itself.
    pub(super) fn drain(&mut self) -> Vec<(Option<u32>, Pending)> {
        let mut all = Vec::new();
        for Queued { below, own, .. } in std::mem::take(&mut self.queue) {
            all.extend(below.into_iter().map(|(id, pending)| (Some(id), pending)));
            all.push((None, own));
        }
        all.extend(std::mem::take(&mut self.below).into_iter().map(|(id, pending)| (Some(id), pending)));
        all
    }

    /// Takes out what waits of one synchronised subsurface.
    pub(super) fn drain_below(&mut self, child: u32) -> Vec<Pending> {
        let mut gone = Vec::new();
        for below in self.queue.iter_mut().map(|queued| &mut queued.below).chain([&mut self.below]) {
            for (id, pending) in std::mem::take(below) {
                if id == child {
                    gone.push(pending);
                } else {
                    below.push((id, pending));
                }
            }
        }
        gone
    }
}

/// Folds a commit of a synchronised subsurface into the last that waits there already.
fn add_below(
    below: &mut Vec<(u32, Pending)>,
    id: u32,
    pending: Pending,
) -> Result<Option<Unread>, &'static str> {
    match below.iter_mut().rfind(|(child, _)| *child == id) {
        Some((_, old)) => old.merge(pending).map(Some),
        None => {
            below.push((id, pending));
            Ok(None)
        }
    }
}

/// Commits that may wait at one surface, and commits of subsurfaces for one of them: far above the buffers that a
/// program has. Beyond, the oldest is applied at once.
pub(super) const MAX_QUEUED: usize = 64;
