//! What goes to the app side: messages, blobs and pipes, in the order in which they are to leave.
//!
//! Decides nothing. Invariant: a pipe's number is given once, and pipes that the run loop has not taken yet are
//! counted.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use wayferry_proto::Time;

use crate::action::{Action, DragStep};
use crate::message::ToApp;

/// Pipes that one turn of the run loop may open, a descriptor or two each; what would open more waits for the next
/// turn.
const MAX_WAITING_PIPES: usize = 64;

/// How often the app side is told when events are read, while the link is silent.
const READ_EVERY: Duration = Duration::from_millis(100);

/// The way there.
#[derive(Debug)]
pub(super) struct Peer {
    actions: VecDeque<Action>,
    /// When the app side was last told when events are read, while the link is silent.
    read_reported: Option<Time>,
    /// When the compositor last wanted frames, unless the app side was told.
    pub(super) beat: Option<Time>,
    next_pipe: u64,
    /// Reading ends of pipes that the run loop has not taken yet.
    waiting_pipes: usize,
}

impl Default for Peer {
    fn default() -> Self {
        Self { actions: VecDeque::new(), read_reported: None, beat: None, next_pipe: 1, waiting_pipes: 0 }
    }
}

impl Peer {
    /// Queues a message.
    pub(super) fn tell(&mut self, message: &ToApp) {
        self.actions.push_back(Action::Message(message.encode()));
    }

    /// Queues a message that was encoded before.
    pub(super) fn tell_encoded(&mut self, message: Vec<u8>) {
        self.actions.push_back(Action::Message(message));
    }

    /// Queues what has happened to a drag.
    pub(super) fn drag(&mut self, drag: u64, step: DragStep) {
        self.actions.push_back(Action::Drag { drag, step });
    }

    /// Queues a blob.
    pub(super) fn blob(&mut self, hash: u128, bytes: Vec<u8>) {
        self.actions.push_back(Action::Blob { hash, bytes });
    }

    /// Has what the app side sends written to `fd`; gives the pipe's number.
    pub(super) fn pipe_in(&mut self, fd: OwnedFd) -> u64 {
        let pipe = self.next_pipe;
        self.next_pipe += 2;
        self.actions.push_back(Action::PipeIn { pipe, fd });
        pipe
    }

    /// Has what comes out of `fd` sent to the app side.
    pub(super) fn pipe_out(&mut self, pipe: u64, fd: OwnedFd) {
        self.waiting_pipes += 1;
        self.actions.push_back(Action::PipeOut { pipe, fd });
    }

    /// Whether no further pipe may be opened before the run loop has taken some.
    pub(super) fn has_enough_pipes(&self) -> bool {
        self.waiting_pipes >= MAX_WAITING_PIPES
    }

    /// The next thing that the run loop is to do.
    pub(super) fn poll(&mut self) -> Option<Action> {
        let action = self.actions.pop_front();
        if matches!(action, Some(Action::PipeOut { .. })) {
            self.waiting_pipes -= 1;
        }
        action
    }

    /// Whether the app side is to be told that events are read now: while the link is silent, and once when it no
    /// longer is.
    pub(super) fn tells_of_reading(&mut self, now: Time, silent: bool) -> bool {
        let due = self.read_reported.is_none_or(|told| now.since(told) >= READ_EVERY);
        let tells = (silent && due) || (!silent && self.read_reported.is_some());
        if tells {
            self.read_reported = silent.then_some(now);
        }
        tells
    }
}
