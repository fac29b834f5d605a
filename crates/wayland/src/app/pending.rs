//! What has been requested of a surface since its last commit.
//!
//! Invariant: what it names is as the program said it; nothing of it has been read.

use std::rc::Rc;

use wayferry_pixels::map::{Crop, Transform};
use wayferry_proto::Time;

use super::shm::Buffer;
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
}

impl Pending {
    /// Folds a newer commit of the same surface into this one, none of which is applied. Returns the buffer that is given
    /// back unread, and the presentation feedback that is thereby never going to be shown.
    pub(crate) fn merge(&mut self, newer: Self) -> Result<(Option<u32>, Vec<u32>), &'static str> {
        self.state.merge(newer.state)?;
        let mut unread = None;
        if !matches!(newer.attach, Attach::Keep)
            && let Attach::Buffer { id, .. } = std::mem::replace(&mut self.attach, newer.attach)
        {
            unread = Some(id);
        }
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
        Ok((unread, std::mem::replace(&mut self.feedback, newer.feedback)))
    }
}

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
    /// A buffer, with its id for the release; 0 once it is destroyed.
    Buffer { id: u32, buffer: Rc<Buffer> },
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
