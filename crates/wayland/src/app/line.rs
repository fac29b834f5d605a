//! The line to the display side: what goes there, and what came and waits.
//!
//! Order is the compositor's: an event that needs a blob holds up those behind it until the blob is here. Invariant:
//! without a display nothing is queued for one.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::action::Action;
use crate::blob;
use crate::message::{ToApp, WireArg};

use super::fault::Fault;
use super::serial::Serials;
use super::sync::Sync;

/// See the module.
#[derive(Debug)]
pub(super) struct Line {
    attached: bool,
    actions: VecDeque<Action>,
    blobs: blob::Kept,
    /// What came behind an event whose blob is not here.
    waiting: VecDeque<ToApp>,
    next_pipe: u64,
    /// What the compositor owes the program.
    sync: Sync,
    serials: Serials,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            attached: true,
            actions: VecDeque::new(),
            blobs: blob::Kept::default(),
            waiting: VecDeque::new(),
            next_pipe: FIRST_PIPE,
            sync: Sync::default(),
            serials: Serials::default(),
        }
    }
}

impl Line {
    /// Whether there is a display.
    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }

    pub(super) fn set_attached(&mut self, attached: bool) {
        self.attached = attached;
    }

    /// Queues something for the run loop; without a display there is nothing to do.
    pub(super) fn act(&mut self, action: Action) {
        if self.attached {
            self.actions.push_back(action);
        }
    }

    /// The next thing for the run loop to do.
    pub(super) fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Nothing of what is queued has to leave.
    pub(super) fn clear(&mut self) {
        self.actions.clear();
    }

    /// A message of the display side: gives it back if it can be handled now.
    pub(super) fn receive(&mut self, message: ToApp) -> Result<Option<ToApp>, Fault> {
        if self.waiting.is_empty() && self.has_blobs_of(&message) {
            return Ok(Some(message));
        }
        if self.waiting.len() >= MAX_WAITING_EVENTS {
            return Err(Fault::Peer("a blob that never came".to_owned()));
        }
        self.waiting.push_back(message);
        Ok(None)
    }

    /// The next message that waited and can be handled now.
    pub(super) fn next(&mut self) -> Option<ToApp> {
        let is_ready = self.waiting.front().is_some_and(|message| self.has_blobs_of(message));
        if is_ready { self.waiting.pop_front() } else { None }
    }

    fn has_blobs_of(&self, message: &ToApp) -> bool {
        let ToApp::Event(event) = message else { return true };
        event.args.iter().all(|arg| match arg {
            WireArg::Blob { hash, .. } => self.blobs.of(*hash).is_some(),
            _ => true,
        })
    }

    /// A blob has come.
    pub(super) fn add_blob(&mut self, hash: u128, bytes: &Rc<[u8]>) {
        self.blobs.add(hash, Rc::clone(bytes));
    }

    pub(super) fn blob(&self, hash: u128) -> Option<&Rc<[u8]>> {
        self.blobs.of(hash)
    }

    /// A name for another pipe.
    pub(super) fn name_pipe(&mut self) -> u64 {
        let pipe = self.next_pipe;
        self.next_pipe += 2;
        pipe
    }

    /// What the compositor owes the program.
    pub(super) fn sync(&mut self) -> &mut Sync {
        &mut self.sync
    }

    /// Serials of the display against those that the program sees.
    pub(super) fn serials(&self) -> &Serials {
        &self.serials
    }

    /// As [`Self::serials`].
    pub(super) fn serials_mut(&mut self) -> &mut Serials {
        &mut self.serials
    }

    /// The display is gone. Gives the callbacks that it has not answered; serials are good until all is told that needs
    /// one.
    pub(super) fn part(&mut self) -> Vec<u32> {
        self.waiting.clear();
        self.next_pipe = FIRST_PIPE;
        self.sync.part()
    }
}

/// Pipes that this side names have even names.
const FIRST_PIPE: u64 = 2;

/// Events of the compositor that wait for a blob.
const MAX_WAITING_EVENTS: usize = 65_536;
