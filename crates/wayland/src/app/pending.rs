//! What has been requested of a surface since its last commit.
//!
//! Invariant: what it names is as the program said it; of its pixels nothing is here but what a reader has read, or a
//! worker compared.

use std::rc::Rc;

use wayferry_gpu::{Frame, Job};
use wayferry_pixels::Region;
use wayferry_pixels::map::{Crop, Transform};
use wayferry_proto::Time;

use super::buffer::Buffer;
use super::comparing::Compared;
use super::points::{Points, Sync};
use super::stack::Stack;
use super::unsent::State;

/// What has been requested since the last commit.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) attach: Attach,
    pub(crate) offset: (i32, i32),
    pub(crate) surface_damage: Vec<DamageRect>,
    pub(crate) buffer_damage: Vec<DamageRect>,
    pub(crate) frames: Vec<u32>,
    pub(crate) feedback: Vec<u32>,
    pub(crate) state: State,
    /// The order of the children, if it is another one.
    pub(crate) stack: Option<Stack>,
    pub(crate) scale: Option<i32>,
    pub(crate) transform: Option<Transform>,
    pub(crate) crop: Option<Option<Crop>>,
    pub(crate) destination: Option<Option<(i32, i32)>>,
    /// `wp_alpha_modifier_surface_v1.set_multiplier`, where that is ours.
    pub(crate) factor: Option<u32>,
    /// `wp_fifo_v1.wait_barrier` and `set_barrier`.
    pub(crate) waits: bool,
    pub(crate) sets_barrier: bool,
    /// `wp_commit_timer_v1.set_timestamp`.
    pub(crate) target: Option<Time>,
    /// `wp_linux_drm_syncobj_surface_v1`, until the commit.
    pub(crate) points: Points,
    /// The last key that the program had when it committed, if the display wants to know.
    pub(crate) answered: Option<u64>,
}

impl Pending {
    /// Folds a newer commit of the same surface into this one, none of which is applied. Returns what was attached and
    /// is not needed any more, and the presentation feedback that is thereby never going to be shown.
    pub(crate) fn merge(&mut self, newer: Self) -> Result<Unread, &'static str> {
        self.state.merge(newer.state)?;
        let unread = match newer.attach {
            Attach::Keep => Attach::Keep,
            attach => std::mem::replace(&mut self.attach, attach),
        };
        self.offset.0 = self.offset.0.saturating_add(newer.offset.0);
        self.offset.1 = self.offset.1.saturating_add(newer.offset.1);
        newer.surface_damage.into_iter().for_each(|rect| add_damage(&mut self.surface_damage, rect));
        newer.buffer_damage.into_iter().for_each(|rect| add_damage(&mut self.buffer_damage, rect));
        self.frames.extend(newer.frames);
        match (&mut self.stack, newer.stack) {
            (Some(old), Some(newer)) => old.fold(&newer),
            (old, newer) => *old = old.take().or(newer),
        }
        self.scale = newer.scale.or(self.scale);
        self.transform = newer.transform.or(self.transform);
        self.crop = newer.crop.or(self.crop);
        self.destination = newer.destination.or(self.destination);
        self.factor = newer.factor.or(self.factor);
        self.waits |= newer.waits;
        self.sets_barrier |= newer.sets_barrier;
        self.target = newer.target.or(self.target);
        self.answered = newer.answered.or(self.answered);
        Ok((unread, std::mem::replace(&mut self.feedback, newer.feedback)))
    }

    /// Whether a newer commit may take its place before it is applied: no more is asked for than the newest pixels.
    pub(super) fn is_replaced_by(&self, newer: &Self) -> bool {
        let plain = |pending: &Self| !pending.waits && !pending.sets_barrier && pending.target.is_none();
        let is_unread = self.lacks_pixels() && !self.is_being_read();
        is_unread
            && matches!(newer.attach, Attach::Keep | Attach::Buffer { .. })
            && plain(self)
            && plain(newer)
            && !self.state.overflows_with(&newer.state)
    }
}

/// What was attached to a commit that is never applied, and its presentation feedback.
pub(super) type Unread = (Attach, Vec<u32>);

/// Notes a damaged rectangle; beyond the bound everything counts as damaged.
pub(crate) fn add_damage(list: &mut Vec<DamageRect>, rect: DamageRect) {
    if list.len() < MAX_DAMAGE {
        list.push(rect);
    } else {
        *list = vec![EVERYWHERE];
    }
}

/// What the pending state attaches.
#[derive(Debug, Default)]
pub(crate) enum Attach {
    /// Nothing was attached since the last commit.
    #[default]
    Keep,
    /// A null buffer.
    None,
    /// A buffer, with its id for the release; 0 once it is destroyed. A program that synchronises by itself waits until
    /// `sync` is dropped.
    Buffer { id: u32, buffer: Rc<Buffer>, pixels: Pixels, sync: Option<Sync> },
}

/// The pixels of a buffer that is attached.
#[derive(Debug, Default)]
pub(crate) enum Pixels {
    /// Where they were: in the program's memory, or in a GPU buffer that no reader has been asked for.
    #[default]
    There,
    /// The reader has been asked for these.
    Asked(Job, Region),
    /// What it has read, if it could.
    Read(Option<Fetched>),
    /// A worker has compared them with the content.
    Compared(Compared),
}

/// Pixels of a GPU buffer.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(super) frame: Frame,
    /// What is there of them.
    pub(super) region: Region,
}

impl Attach {
    /// A buffer is destroyed: its memory stays, its id may be another's.
    pub(crate) fn forget_buffer(&mut self, buffer: u32) {
        if let Self::Buffer { id, .. } = self
            && *id == buffer
        {
            *id = 0;
        }
    }
}

/// A rectangle of `damage` or `damage_buffer` as the program gave it: x, y, width, height.
pub(crate) type DamageRect = [i32; 4];

/// Damage rectangles of one kind beyond which a commit counts as damaged everywhere.
pub(crate) const MAX_DAMAGE: usize = 256;

const EVERYWHERE: DamageRect = [0, 0, i32::MAX, i32::MAX];
