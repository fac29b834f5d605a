//! What a program's app side is to be told and has not been.
//!
//! Invariant: it takes no more than its share; once that did not suffice, the program is at its end.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::end::End;
use crate::share::{Lease, Share};

/// What a message takes beside its bytes.
const SAID_COST: usize = 96;

/// See the module.
#[derive(Debug)]
pub(crate) struct Said {
    messages: VecDeque<(Vec<u8>, Lease)>,
    share: Rc<Share>,
    /// Why one was left out.
    lack: Option<End>,
}

impl Said {
    pub(crate) fn new(share: Rc<Share>) -> Self {
        Self { messages: VecDeque::new(), share, lack: None }
    }

    /// One more; it is left out if there is no room, as [`Self::check`] tells.
    pub(crate) fn push(&mut self, message: Vec<u8>) {
        match self.share.lease(message.len() + SAID_COST) {
            Ok(lease) => self.messages.push_back((message, lease)),
            Err(end) => self.lack = Some(end),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Vec<u8>> {
        self.messages.pop_front().map(|(message, _)| message)
    }

    /// # Errors
    /// There was no room for a message.
    pub(crate) fn check(&self) -> Result<(), End> {
        self.lack.clone().map_or(Ok(()), Err)
    }
}
