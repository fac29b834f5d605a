//! The program at the other end of the socket: what it says, what it is told, and whether it lives.
//!
//! Bytes and descriptors only: what they mean is not looked at. Invariant: what waits for a program that does not read
//! is bounded.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use crate::wire::{Arg, InBuffer, OutBuffer, RawMessage};

use super::fault::{Fault, error_code};
use super::ping::Ping;

/// See the module.
#[derive(Debug)]
pub(super) struct Program {
    input: InBuffer,
    output: OutBuffer,
    /// The last turn ended before the input did.
    more: bool,
    ping: Ping,
}

impl Default for Program {
    fn default() -> Self {
        let (input, output) = (InBuffer::new(), OutBuffer::new(MAX_WAITING_OUT));
        Self { input, output, more: false, ping: Ping::default() }
    }
}

impl Program {
    /// What came of it.
    pub(super) fn input(&mut self) -> &mut InBuffer {
        &mut self.input
    }

    /// What goes to it.
    pub(super) fn output(&mut self) -> &mut OutBuffer {
        &mut self.output
    }

    /// How much has been written to it, and how much has come of it.
    pub(super) fn places(&self) -> (u64, u64) {
        (self.output.written(), self.input.received())
    }

    /// Where what it is written ends.
    pub(super) fn end(&self) -> u64 {
        self.output.end()
    }

    /// Where the request at hand ends among what has come of it.
    pub(super) fn place(&self) -> u64 {
        self.input.taken()
    }

    /// Its next request, if there is a whole one.
    pub(super) fn next(&mut self) -> Result<Option<RawMessage>, Fault> {
        let wrong = |text: String| Fault::display(error_code::INVALID_METHOD, text);
        self.input.next_message().map_err(|error| wrong(error.to_string()))
    }

    /// Descriptors that came with requests and are not taken.
    pub(super) fn fds(&mut self) -> &mut VecDeque<OwnedFd> {
        self.input.fds_mut()
    }

    /// Whether a turn ended before the requests did.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// A turn begins, or ends like that.
    pub(super) fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    /// Requests may have waited for something that has happened.
    pub(super) fn wake(&mut self) {
        self.more |= !self.input.is_empty();
    }

    /// Queues an event.
    pub(super) fn tell(&mut self, id: u32, opcode: u16, args: Vec<Arg>) -> Result<(), Fault> {
        self.output.encode(id, opcode, args).map_err(|_| Fault::TooMuch("events waiting for the program"))
    }

    /// Queues `wl_display.error`, its last event.
    pub(super) fn blame(&mut self, object: u32, code: u32, text: Vec<u8>) {
        // It ends with or without a reason.
        let _ = self.output.encode(1, 0, vec![Arg::Object(object), Arg::Uint(code), Arg::Str(Some(text))]);
    }

    /// Whether it answers.
    pub(super) fn ping(&self) -> &Ping {
        &self.ping
    }

    /// As [`Self::ping`].
    pub(super) fn ping_mut(&mut self) -> &mut Ping {
        &mut self.ping
    }
}

/// Bytes that may wait for a program that does not read its socket; the events of about ten thousand messages.
const MAX_WAITING_OUT: usize = 1 << 20;
