//! The socket of the compositor, as far as this half sees it: what came and has not been handled, what is to be
//! written.
//!
//! Knows messages, no meaning. Invariant: what waits to be written is bounded by [`MAX_OUTPUT`].

use crate::action::End;
use crate::wire::{self, Arg, InBuffer, OutBuffer};

/// Bytes that may wait for a compositor that does not read. From half of that on what the app side says waits; one
/// message of it makes no more than the other half.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// Both directions.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) input: InBuffer,
    pub(super) output: OutBuffer,
}

impl Default for Link {
    fn default() -> Self {
        Self { input: InBuffer::new(), output: OutBuffer::new(MAX_OUTPUT) }
    }
}

impl Link {
    /// Queues a request for the compositor.
    pub(super) fn send(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), End> {
        self.output.encode(id, opcode, args).map_err(|error| match error {
            wire::Error::QueueFull { .. } => End::TooMuch("bytes that wait for the compositor"),
            error => End::PeerViolation(error.to_string()),
        })
    }

    /// Whether the compositor is to read before more is said to it.
    pub(super) fn is_clogged(&self) -> bool {
        self.output.len() > MAX_OUTPUT / 2
    }
}
