//! What one acknowledgement has told.

use std::time::Duration;

/// The packets that one ACK frame acknowledged for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// When the first of them was sent.
    pub(crate) oldest: Duration,
    /// When the last of them was sent.
    pub(crate) newest: Duration,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// How many.
    pub(crate) packets: u64,
}

impl Batch {
    /// A batch of one.
    pub(crate) fn new(sent: Duration, bytes: u64) -> Self {
        Self { oldest: sent, newest: sent, bytes, packets: 1 }
    }

    /// Adds a packet.
    pub(crate) fn add(&mut self, sent: Duration, bytes: u64) {
        self.oldest = self.oldest.min(sent);
        self.newest = self.newest.max(sent);
        self.bytes += bytes;
        self.packets += 1;
    }
}
