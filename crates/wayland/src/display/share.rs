//! What one program takes of the display's machine beyond what is shown, and how it gives some of that back.
//!
//! The run loop shares one budget among all programs of a session; here is what it measures and what it asks for. What
//! is given up can be had again: the app side has the pixels, and is asked for the whole content of a surface when
//! something builds on what is not here any more. Invariant: giving up ends no connection.

use wayferry_proto::Time;

use super::connection::Connection;
use super::surface::Surface;

/// What a program takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// Bytes of pixels of all its surfaces.
    pub content: u64,
    /// Those of them that the compositor does not show now.
    pub hidden: u64,
    /// Bytes of updates that wait for their units, open or not.
    pub waiting: u64,
    /// Surfaces that they are of.
    pub waiting_surfaces: usize,
    /// Bytes of buffers that the compositor was given.
    pub buffers: u64,
    /// Those of them that are of icons.
    pub icons: u64,
    /// Descriptors: its connection, and the memory of its buffers.
    pub descriptors: usize,
}

impl Taken {
    /// Bytes that it takes beyond what is shown.
    pub fn beyond(&self) -> u64 {
        self.hidden + self.waiting + self.icons
    }
}

impl std::ops::Add for Taken {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            content: self.content + other.content,
            hidden: self.hidden + other.hidden,
            waiting: self.waiting + other.waiting,
            waiting_surfaces: self.waiting_surfaces + other.waiting_surfaces,
            buffers: self.buffers + other.buffers,
            icons: self.icons + other.icons,
            descriptors: self.descriptors + other.descriptors,
        }
    }
}

impl Connection {
    /// What the program takes now; nothing once it is over.
    pub fn taken(&self) -> Taken {
        if self.end.is_some() {
            return Taken::default();
        }
        let surfaces = self.surfaces.values();
        let (waiting, waiting_surfaces) = self.updates.waiting();
        let (buffers, descriptors) = (self.shm.used() as u64, 1 + self.shm.descriptors());
        let (waiting, icons) = (waiting as u64, self.state.images.bytes());
        let taken = Taken { waiting, waiting_surfaces, buffers, icons, descriptors, ..Taken::default() };
        let painted = self.painting.as_ref().map_or(0, |painting| painting.content) as u64;
        let taken = Taken { content: painted, ..taken };
        surfaces.fold(taken, |taken, surface| {
            let bytes = surface.content_bytes() as u64;
            let hidden = if surface.is_visible() { 0 } else { bytes };
            taken + Taken { content: bytes, hidden, ..Taken::default() }
        })
    }

    /// Takes back what workers have painted; gives about what they touch of memory for the rest.
    pub fn painting(&mut self) -> usize {
        if self.end.is_some() {
            return 0;
        }
        self.take_painted();
        self.painting.as_ref().map_or(0, |painting| painting.cost)
    }

    /// Gives up the pixels that were painted longest ago, of a surface that is not shown if there is one; if `hidden`,
    /// of no other. Says whether there were any.
    pub fn give_up_content(&mut self, hidden: bool) -> bool {
        if self.end.is_some() {
            return false;
        }
        let kept = self.surfaces.values_mut().filter(|surface| surface.content_bytes() > 0);
        let kept = kept.filter(|surface| !hidden || !surface.is_visible());
        let Some(oldest) = kept.min_by_key(|surface| (surface.is_visible(), surface.painted)) else {
            return false;
        };
        let outcome =
            Surface::drop_content(oldest).into_iter().try_for_each(|buffer| self.destroy_buffer(buffer));
        self.settle(outcome);
        true
    }

    /// Whether all programs together take so much for buffers that no further one may be made: what needs one waits.
    pub fn set_tight(&mut self, now: Time, tight: bool) {
        if std::mem::replace(&mut self.shm.tight, tight) && !tight && self.end.is_none() {
            self.meet_memory();
            self.pump(now);
        }
    }

    /// Gives up the updates that wait of the surface of which most does. Says whether there were any.
    pub fn give_up_updates(&mut self, now: Time) -> bool {
        if self.end.is_some() {
            return false;
        }
        match self.updates.give_up() {
            Ok(true) => {
                self.meet_all_updates();
                self.pump(now);
                true
            }
            Ok(false) => false,
            Err(end) => {
                self.finish(end);
                true
            }
        }
    }
}
