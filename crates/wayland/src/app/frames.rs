//! Frame callbacks of one surface that the next tick answers: their commits have left, or never will.
//!
//! When they are answered is decided in `flush`.

use wayferry_proto::Time;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Frames {
    callbacks: Vec<u32>,
    /// The tick in whose interval the first of their commits left: the next one answers.
    tick: Time,
    /// The tick at which some were answered last.
    last: Option<Time>,
}

impl Frames {
    /// A commit with these has left in the interval of this tick.
    pub(super) fn owe(&mut self, callbacks: Vec<u32>, tick: Time) {
        if self.callbacks.is_empty() {
            self.tick = tick;
        }
        self.callbacks.extend(callbacks);
    }

    /// Those of a commit that does not leave. Gives those that are too many, the oldest.
    pub(super) fn keep(&mut self, callbacks: Vec<u32>) -> Vec<u32> {
        self.callbacks.extend(callbacks);
        let excess = self.callbacks.len().saturating_sub(MAX_FRAMES);
        self.callbacks.drain(..excess).collect()
    }

    /// Those of a commit that waits for another display.
    pub(super) fn put_behind(&mut self, callbacks: &mut Vec<u32>) {
        self.callbacks.append(callbacks);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.callbacks.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.callbacks.len()
    }

    pub(super) fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.callbacks)
    }

    /// The tick at which some were answered last.
    pub(super) fn last(&self) -> Option<Time> {
        self.last
    }

    /// They are answered at this tick.
    pub(super) fn answer(&mut self, tick: Time) {
        self.last = Some(tick);
    }

    /// The tick before the one that is to answer: in the interval in which their commit left, the program's answer to
    /// it would have to wait.
    pub(super) fn before(&self) -> Option<Time> {
        let left = Some(self.tick).filter(|_| !self.callbacks.is_empty());
        self.last.max(left)
    }
}

/// Frame callbacks that may be asked for with one commit; the oldest are answered beyond that. The same of presentation
/// feedback, of which the oldest is discarded.
pub(crate) const MAX_FRAMES: usize = 1024;
