//! The log of [`StageEvent`]s: bounded history, bounded subscribers.
//!
//! Invariant: a subscriber sees a contiguous run of events from the oldest that is kept, until it falls
//! [`BACKLOG`] behind; then it is dropped and its receiver ends.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::event::{StageEvent, Stamped};
use crate::clock;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Log {
    history: VecDeque<Stamped>,
    subscribers: Vec<SyncSender<Stamped>>,
}

impl Log {
    pub(crate) fn push(&mut self, event: StageEvent) {
        let stamped = Stamped { time: clock::now(), event };
        self.subscribers.retain(|subscriber| subscriber.try_send(stamped.clone()).is_ok());
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(stamped);
    }

    pub(crate) fn subscribe(&mut self, replay: bool) -> Receiver<Stamped> {
        let (sender, receiver) = sync_channel(BACKLOG);
        if replay {
            for stamped in &self.history {
                // Cannot fail: the history is shorter than the channel.
                let _ = sender.try_send(stamped.clone());
            }
        }
        self.subscribers.push(sender);
        receiver
    }
}

const HISTORY: usize = 16_384;
/// Events that a subscriber may leave unread.
const BACKLOG: usize = 32_768;
