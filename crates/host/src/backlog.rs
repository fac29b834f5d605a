//! How many bytes of programs' requests wait for the link.
//!
//! Content is held back by its own budget, but requests are not: a program that sends them without end would fill the
//! carrier's queue and end the session for all. So the run loop counts what it hands over against what the link sends,
//! like water in a leaking bucket, and while the bucket is full it does not read those programs that filled it.
//! Requests go before all content, so the bucket leaks only half of what the link sends: the other half stays for
//! pixels. A link that has sent everything has room for all. Invariant: a program that sends little is always read, and
//! every program is while the link has nothing to send.

use wayferry_proto::LinkState;

/// The bucket.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: u64,
    sent: u64,
}

impl Backlog {
    /// Counts bytes that were handed over.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.waiting += bytes;
    }

    /// Lets the bucket leak by what the link has sent; all that was added has been handed to it. `true` if the bucket
    /// is empty, so that all programs start afresh.
    pub(crate) fn drain(&mut self, link: &LinkState) -> bool {
        let leaked = link.sent_bytes.saturating_sub(self.sent) / SHARE;
        self.waiting = if link.idle { 0 } else { self.waiting.saturating_sub(leaked) };
        self.sent = link.sent_bytes;
        self.waiting == 0
    }

    /// Whether a program that handed over `bytes` since the bucket was last empty is to wait.
    pub(crate) fn must_wait(&self, bytes: u64) -> bool {
        self.waiting > FULL && bytes > FAIR
    }
}

/// Bytes that may wait before the programs that sent them are held back.
const FULL: u64 = 512 << 10;
/// Bytes that every program may send even then: more than a large program sends at its start.
const FAIR: u64 = 128 << 10;
/// One in so many bytes of the link is for requests when there are too many of them.
const SHARE: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: u64) -> LinkState {
        LinkState { sent_bytes: bytes, ..LinkState::default() }
    }

    #[test]
    fn only_who_fills_the_bucket_waits_and_only_while_it_is_full() {
        let mut backlog = Backlog::default();
        assert!(backlog.drain(&sent(1000)));
        backlog.add(FULL + 1);
        assert!(!backlog.drain(&sent(1000)));
        assert!(backlog.must_wait(FULL) && !backlog.must_wait(FAIR));
        backlog.drain(&sent(1000 + SHARE));
        assert!(!backlog.must_wait(FULL));
        assert!(backlog.drain(&sent(1000 + 4 * SHARE * FULL)));
        backlog.add(10);
        let same = sent(1000 + 4 * SHARE * FULL);
        assert!(!backlog.drain(&same), "what was sent too much is no credit for later");
    }

    #[test]
    fn regression_a_program_that_is_held_back_waits_for_a_link_that_sends_nothing_more() {
        let mut backlog = Backlog::default();
        backlog.add(4 * FULL);
        // All that there is has left: half of it is more than the bucket may hold.
        assert!(!backlog.drain(&sent(4 * FULL)));
        assert!(backlog.must_wait(FULL));
        assert!(backlog.drain(&LinkState { idle: true, ..sent(4 * FULL) }));
        assert!(!backlog.must_wait(FULL));
    }
}
