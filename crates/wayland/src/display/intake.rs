//! What came from the app side: how much of it waits, and the blobs that its messages name.
//!
//! Looks into no message. Invariant: what is acknowledged has been handled, and is told in order.

use std::collections::VecDeque;

use crate::blob::Kept;
use crate::message::{MAX_AHEAD, ToDisplay};

/// What may wait here of the app side's messages, by [`message::cost`](crate::message::cost). It stops listening to its
/// program at a quarter of that; only what is due by time leaves it then.
pub(super) const MAX_WAITING: u64 = 4 * MAX_AHEAD;
/// What is handled before the app side is told of it: far below what it may be ahead.
const ACKNOWLEDGE_EVERY: u64 = 64 << 10;

/// The way here.
#[derive(Debug, Default)]
pub(super) struct Intake {
    /// What was taken in, by [`message::cost`](crate::message::cost), and how much of that the app side was told to be
    /// handled.
    received: u64,
    acknowledged: u64,
    /// What the message at hand counts for.
    cost: u64,
    /// Messages that were taken in.
    messages: u64,
    /// Messages that came before the compositor had listed its globals, and what each counts for.
    backlog: VecDeque<(u64, ToDisplay)>,
    /// What those count for together.
    deferred: u64,
    pub(super) blobs: Kept,
}

impl Intake {
    /// A message has come.
    pub(super) fn receive(&mut self, cost: u64) {
        self.received += cost;
    }

    /// The message comes too early.
    pub(super) fn defer(&mut self, cost: u64, message: ToDisplay) {
        self.deferred += cost;
        self.backlog.push_back((cost, message));
    }

    /// The first message that came too early.
    pub(super) fn undefer(&mut self) -> Option<(u64, ToDisplay)> {
        let (cost, message) = self.backlog.pop_front()?;
        self.deferred -= cost;
        Some((cost, message))
    }

    /// A message is handled that counts for so much.
    pub(super) fn begin(&mut self, cost: u64) {
        self.cost = cost;
        self.messages += 1;
    }

    /// How many messages have been handled or are held.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// What the message at hand counts for, if it is held now: once.
    pub(super) fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    /// What waits, if so much is held.
    pub(super) fn waiting(&self, held: u64) -> u64 {
        self.deferred + held
    }

    /// How much has been handled, if so much is held and the app side is to be told.
    pub(super) fn acknowledge(&mut self, held: u64) -> Option<u64> {
        let handled = self.received - self.waiting(held);
        let tells = handled - self.acknowledged >= ACKNOWLEDGE_EVERY;
        if tells {
            self.acknowledged = handled;
        }
        tells.then_some(handled)
    }
}
