//! The thread that has a sound card open, by ALSA.
//!
//! ALSA may wait: for a card that powers up, or, being a client of a sound server itself, half a minute for one that
//! stands still. So a thread of its own opens, keeps and closes the card, and sound's thread never waits for it: not
//! when it ends, either. Invariants: one card is open at a time; once its card is not wanted, the thread ends as soon
//! as ALSA answers; no other begins while ALSA has neither opened its card nor refused to.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::ring::Ring;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Cards {
    open: Option<Open>,
    /// The last thread, and what its card takes from.
    last: Option<(JoinHandle<()>, Arc<Ring>)>,
}

/// A card that is wanted; it is closed when this is dropped.
#[derive(Debug)]
struct Open {
    ring: Arc<Ring>,
    _wanted: Sender<()>,
}

/// Fails the ring when the thread ends, by a panic too: cpal panics when the system has no descriptors left.
struct Ending<'a>(&'a Ring);

impl Cards {
    /// Opens the card that is wanted, and closes another.
    pub(super) fn turn(&mut self, wanted: Option<&Arc<Ring>>) {
        let is_open = match (&self.open, wanted) {
            (Some(open), Some(wanted)) => Arc::ptr_eq(&open.ring, wanted),
            (open, wanted) => open.is_none() && wanted.is_none(),
        };
        if is_open {
            return;
        }
        self.open = wanted.cloned().map(|ring| self.begin(ring));
    }

    fn begin(&mut self, ring: Arc<Ring>) -> Open {
        self.open = None;
        let (_wanted, until) = channel();
        match &self.last {
            Some((_, last)) if !last.has_answered() => ring.fail("does not answer"),
            _ => self.spawn(&ring, until),
        }
        Open { ring, _wanted }
    }

    fn spawn(&mut self, ring: &Arc<Ring>, until: Receiver<()>) {
        let (before, shared) = (self.last.take(), Arc::clone(ring));
        let run = move || {
            // Many cards can be open only once.
            before.map(|(thread, _)| thread.join());
            hold(&shared, &until);
        };
        match Builder::new().name("wayferry-card".into()).spawn(run) {
            Ok(thread) => self.last = Some((thread, Arc::clone(ring))),
            Err(error) => ring.fail(&error.to_string()),
        }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.fail("the card was closed");
    }
}

/// Opens the card, and keeps it until it is not wanted.
fn hold(ring: &Arc<Ring>, until: &Receiver<()>) {
    let _ending = Ending(ring);
    match device::open(ring) {
        // Nothing is ever sent: that the other end is dropped is the sign.
        Ok(_stream) => drop(until.recv()),
        Err(why) => ring.fail(&why),
    }
}

/// Without the feature there is none.
#[cfg(not(feature = "alsa"))]
mod device {
    use super::{Arc, Ring};

    pub(super) fn open(_ring: &Arc<Ring>) -> Result<(), String> {
        Err("this build has no ALSA".into())
    }
}

#[cfg(feature = "alsa")]
mod device;
