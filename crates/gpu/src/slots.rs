//! Memory that a reader reads into: kept from one reading to the next, since to map it takes longer than to fill it.
//!
//! Invariant: nothing is read into memory that somebody still looks at.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::frame::Frame;

/// See the module. A slot's name is its place.
#[derive(Debug, Default)]
pub(crate) struct Slots(Vec<Slot>);

#[derive(Debug)]
struct Slot {
    memory: Rc<OwnedFd>,
    bytes: u64,
    /// A reader is reading into it.
    taken: bool,
    /// The reader has it.
    lent: bool,
}

/// Memory that the reader does not have yet.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) memory: Rc<OwnedFd>,
    pub(crate) bytes: u64,
}

impl Slots {
    /// One for that many bytes, and its memory if the reader does not have it; `None` if there is no memory.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<(u32, Option<Lent>)> {
        let fitting = self.0.iter().position(|slot| slot.is_free() && slot.bytes >= bytes);
        let place = match fitting.or_else(|| self.0.iter().position(Slot::is_free)) {
            Some(place) => place,
            None => {
                self.0.push(Slot::new(bytes)?);
                self.0.len() - 1
            }
        };
        if self.0[place].bytes < bytes {
            self.0[place] = Slot::new(bytes)?;
        }
        let slot = &mut self.0[place];
        slot.taken = true;
        let is_lent = std::mem::replace(&mut slot.lent, true);
        let lent = (!is_lent).then(|| Lent { memory: Rc::clone(&slot.memory), bytes: slot.bytes });
        // As many as there are surfaces at most.
        Some((place as u32, lent))
    }

    /// What has been read into a slot, in that time.
    pub(crate) fn frame(&self, slot: u32, took: Duration) -> Option<Frame> {
        self.0.get(slot as usize).map(|slot| Frame::new(Rc::clone(&slot.memory), took))
    }

    /// Nothing is being read into a slot any more.
    pub(crate) fn give_back(&mut self, slot: u32) {
        if let Some(slot) = self.0.get_mut(slot as usize) {
            slot.taken = false;
        }
    }

    /// Gives up what is free, beyond so many; tells which the reader need not have any more.
    pub(crate) fn trim(&mut self, most: usize) -> Vec<u32> {
        let mut gone = Vec::new();
        while self.0.len() > most && self.0.last().is_some_and(Slot::is_free) {
            self.0.pop();
            gone.push(self.0.len() as u32);
        }
        gone
    }

    /// The reader is gone, and the next one has none. Memory that it may still write to is given up with it.
    pub(crate) fn forget_reader(&mut self) {
        self.0.clear();
    }
}

impl Slot {
    /// Whether neither the reader nor who looks at a frame needs it.
    fn is_free(&self) -> bool {
        !self.taken && Rc::strong_count(&self.memory) == 1
    }

    fn new(bytes: u64) -> Option<Self> {
        let bytes = bytes.max(1).next_multiple_of(STEP);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("wayferry-frame", flags).ok()?;
        ftruncate(&memory, bytes).ok()?;
        fcntl_add_seals(&memory, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW).ok()?;
        Some(Self { memory: Rc::new(memory), bytes, taken: false, lent: false })
    }
}

/// Memory comes in pieces of this length, so that a window that grows does not need another for each frame.
const STEP: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_once_nobody_looks_at_it() {
        let mut slots = Slots::default();
        let (first, lent) = slots.take(100).expect("memory");
        assert_eq!((first, lent.map(|lent| lent.bytes)), (0, Some(STEP)));
        let frame = slots.frame(first, Duration::ZERO).expect("a frame");
        let (second, _) = slots.take(100).expect("memory");
        slots.give_back(first);
        slots.give_back(second);
        let (third, lent) = slots.take(100).expect("memory");
        assert_eq!((second, third, lent.is_some()), (1, 1, false), "the frame of the first is still here");
        drop(frame);
        let (fourth, lent) = slots.take(STEP + 1).expect("memory");
        assert_eq!((fourth, lent.map(|lent| lent.bytes)), (0, Some(2 * STEP)), "longer, so lent anew");
    }
}
