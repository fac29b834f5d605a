//! How much came of the app side's messages, and how much of that waits.
//!
//! Looks into no message. Invariant: what is acknowledged has been handled.

use wayferry_message::MAX_AHEAD;

/// What may wait of one program's messages, by [`cost`](wayferry_message::cost). Its app side stops at a small part of
/// that.
pub(crate) const MAX_WAITING: u64 = 4 * MAX_AHEAD;
/// What is handled before the app side is told of it.
const ACKNOWLEDGE_EVERY: u64 = 64 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    received: u64,
    waiting: u64,
    acknowledged: u64,
}

impl Intake {
    /// A message has come.
    pub(crate) fn receive(&mut self, cost: u64) {
        self.received += cost;
    }

    /// One that has come waits from now on.
    pub(crate) fn wait(&mut self, cost: u64) {
        self.waiting += cost;
    }

    /// One that waited is handled.
    pub(crate) fn go_on(&mut self, cost: u64) {
        self.waiting -= cost;
    }

    /// Whether more waits than may.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting > MAX_WAITING
    }

    /// How much has been handled, if the app side is to be told; it counts as told.
    pub(crate) fn acknowledge(&mut self) -> Option<u64> {
        let handled = self.received - self.waiting;
        let tells = handled - self.acknowledged >= ACKNOWLEDGE_EVERY;
        if tells {
            self.acknowledged = handled;
        }
        tells.then_some(handled)
    }
}
