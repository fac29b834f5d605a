//! One client: what it said of itself, and what it has not read yet.

use pulseaudio::protocol::{Command, Props, SubscriptionMask};

use super::frame::{Input, framed, framed_sound};

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u32);

/// See the module.
#[derive(Debug)]
pub(crate) struct Client {
    /// Of the protocol; `None` before the client has said hello.
    pub(crate) version: Option<u16>,
    pub(crate) props: Props,
    /// What it wants to be told of.
    pub(crate) events: SubscriptionMask,
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// The indexes of its streams, of those that record too.
    pub(crate) streams: Vec<u32>,
    /// Why its connection is to be closed.
    pub(crate) end: Option<&'static str>,
}

impl Client {
    /// One that said nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            version: None,
            props: Props::new(),
            events: SubscriptionMask::empty(),
            input: Input::default(),
            output: Output::default(),
            streams: Vec::new(),
            end: None,
        }
    }

    /// Tells it something that it did not ask.
    pub(crate) fn tell(&mut self, command: &Command) {
        let mut bytes = Vec::new();
        let version = self.version.unwrap_or(pulseaudio::protocol::MAX_VERSION);
        // Writing into memory fails only where a value cannot be written: none of these is told.
        if command.write_tag_prefixed(UNASKED, &mut bytes, version).is_ok() {
            self.output.push(&bytes);
        }
    }

    /// As [`Self::tell`], unless it leaves too much unread.
    pub(crate) fn tell_if_it_reads(&mut self, command: &Command) {
        if !self.output.is_full() {
            self.tell(command);
        }
    }
}

/// What a client has not read yet.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    /// Appends a command.
    pub(crate) fn push(&mut self, command: &[u8]) {
        framed(command, &mut self.bytes);
    }

    /// Appends sound of a stream that records.
    pub(crate) fn push_sound(&mut self, channel: u32, sound: &[u8]) {
        framed_sound(channel, sound, &mut self.bytes);
    }

    /// What is to be written.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// So many bytes were written.
    pub(crate) fn written(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.bytes.len());
        if self.written == self.bytes.len() {
            *self = Self::default();
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    /// Whether nothing more is to be done for the client until it has read.
    pub(crate) fn is_full(&self) -> bool {
        self.unwritten().len() >= MAX_UNWRITTEN
    }
}

/// The number of what was not asked.
const UNASKED: u32 = u32::MAX;

/// Bytes that a client has not read; an answer more may be added to fewer.
const MAX_UNWRITTEN: usize = 256 << 10;
